// examples.js: example models that need no data file.

const model = ({name, description, data, inputs = 2, hidden, tail, outputs, metrics, optimizer, batch, epochs}) => ({
  name,
  text: `{
  "format": 1,
  "name": "${name}",
  "description": "${description}",
  "data": ${data},
  "inputs": {"x": ["batch", ${inputs}], "y": ["batch", 1]},
  "graph": [
${hidden.map((line) => `    ${line}`).join(",\n")},
${tail.map((line) => `    ${line}`).join(",\n")}
  ],
  "outputs": ${outputs},
  "train": {
    "minimize": "loss",
    "metrics": ${metrics},
    "optimizer": ${optimizer},
    "batch": ${batch},
    "epochs": ${epochs},
    "seed": 1
  }
}
`});

const dense = (name, from, units, activation) => `{"name": "${name}", "op": "dense", "inputs": ["${from}"], ` +
  `"units": ${units}${activation ? `, "activation": "${activation}"` : ""}}`;

// Points of two classes; `noise` is the standard deviation of a random column of that name.
const points = ({columns, x, y, rows = 400, noise = 0, split = "0.5, 0, 0.5"}) => `{
    "source": {
      "random": {
        "rows": ${rows}, "seed": 7,
        "columns": {${columns}, "noise": {"normal": ${noise}}}
      },
      "x": ["${x[0]}", "${x[1]}"],
      "y": "cast(${y}, dtype=f32)"
    },
    "split": [${split}]
  }`;

const square = {columns: '"u": {"uniform": [-1, 1]}, "v": {"uniform": [-1, 1]}', x: ["u", "v"]};
const turn = "(9 * t + noise + 3.1416 * cast(c > 0.5, dtype=f32))";
const spiral = {columns: '"t": {"uniform": [0.03, 1]}, "c": {"uniform": [0, 1]}',
  x: [`t * sin${turn}`, `t * cos${turn}`], y: "c > 0.5"};

const classes = (hidden, epochs = 300, lr = 0.02) => ({
  hidden: hidden.map((units, i) => dense(`h${i + 1}`, i ? `h${i}` : "x", units, "tanh")),
  tail: [dense("logit", `h${hidden.length}`, 1), '"loss = mean(sigmoid_cross_entropy(logit, y))"'],
  outputs: '{"logit": "y"}', metrics: '["accuracy"]', optimizer: `{"adam": {"lr": ${lr}}}`, batch: 20, epochs,
});

const kPeaks = "3 * (1 - u)^2 * exp(-u^2 - (v + 1)^2) - 10 * (u / 5 - u^3 - v^5) * exp(-u^2 - v^2) " +
  "- exp(-(u + 1)^2 - v^2) / 3";

// The page opens on the first one.
export const examples = [
  {title: "Circle: disk and ring", ...model({name: "circle",
    description: "Points inside and outside a circle",
    data: points({...square, y: "u * u + v * v + noise < 0.4", noise: 0.05}), ...classes([6, 4])})},
  {title: "XOR: four quadrants", ...model({name: "exclusive_or",
    description: "Two classes in opposite quadrants",
    data: points({...square, y: "u * v + noise > 0", noise: 0.03}), ...classes([6, 4])})},
  {title: "Spiral: two arms", ...model({name: "spiral", description: "Two arms of a spiral",
    data: points({...spiral, noise: 0.1}), ...classes([8, 8], 1000, 0.01)})},
  {title: "Overfitting: few rows", ...model({name: "overfitting",
    description: "A network with too many units for few noisy rows",
    data: points({...square, y: "u + v + noise > 0", noise: 0.6, split: "0.15, 0, 0.85"}),
    ...classes([8, 8], 600, 0.005)})},
  {title: "Peaks: smooth surface", ...model({name: "peaks",
    description: "Regression of the peaks function by a 2-20-8-1 network",
    data: `{
    "train": {
      "grid": {"u": [-3, 3, 60], "v": [-3, 3, 60]},
      "x": ["u", "v"],
      "y": "${kPeaks}"
    }
  }`, hidden: [dense("h1", "x", 20, "tanh"), dense("h2", "h1", 8, "tanh")],
    tail: [dense("y_hat", "h2", 1), '"loss = mean(square(y_hat - y))"'],
    outputs: '{"y_hat": "y"}', metrics: '["mse", "mae"]',
    optimizer: '{"adam": {"lr": 0.01}}', batch: 300, epochs: 400})},
  {title: "Sine: noisy curve", ...model({name: "sine", inputs: 1,
    description: "Regression of a noisy sine by a 1-12-1 network",
    data: `{
    "source": {
      "random": {"rows": 400, "seed": 7, "columns": {"t": {"uniform": [-3, 3]}, "noise": {"normal": 0.1}}},
      "x": ["t"],
      "y": "sin(2 * t) + noise"
    },
    "split": [0.7, 0.15, 0.15]
  }`, hidden: [dense("h", "x", 12, "tanh")], tail: [dense("y_hat", "h", 1), '"loss = mean(square(y_hat - y))"'],
    outputs: '{"y_hat": "y"}', metrics: '["rmse"]', optimizer: '{"adam": {"lr": 0.02}}', batch: 40, epochs: 300})},
];
