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

const dense = (name, from, units, activation) =>
  `{"name": "${name}", "op": "dense", "inputs": ["${from}"], "units": ${units}${activation ? `, "activation": "${activation}"` : ""}}`;

// Uniform points in a square, and a class computed by a formula.
const plane = (formula, rows = 600) => `{
    "source": {
      "random": {"rows": ${rows}, "seed": 7, "columns": {"u": {"uniform": [-1, 1]}, "v": {"uniform": [-1, 1]}}},
      "x": ["u", "v"],
      "y": "${formula}"
    },
    "split": [0.6, 0.2, 0.2]
  }`;

const classes = {
  tail: [dense("logit", "h2", 1), '"loss = mean(sigmoid_cross_entropy(logit, y))"'],
  outputs: '{"logit": "y"}', metrics: '["accuracy"]', optimizer: '{"adam": {"lr": 0.02}}', batch: 60, epochs: 200,
};

export const examples = [
  {title: "Circle: one class surrounds the other", ...model({name: "circle",
    description: "Points inside and outside a circle",
    data: plane("cast(u * u + v * v < 0.4, dtype=f32)"), hidden: [dense("h1", "x", 8, "tanh"), dense("h2", "h1", 4, "tanh")], ...classes})},
  {title: "XOR: classes in opposite quadrants", ...model({name: "exclusive_or", description: "Two classes in opposite quadrants",
    data: plane("cast(u * v > 0, dtype=f32)"), hidden: [dense("h1", "x", 8, "tanh"), dense("h2", "h1", 4, "tanh")], ...classes})},
  {title: "Peaks: regression of a smooth surface", ...model({name: "peaks",
    description: "Regression of the peaks function by a 2-20-8-1 network",
    data: `{
    "train": {
      "grid": {"u": [-3, 3, 60], "v": [-3, 3, 60]},
      "x": ["u", "v"],
      "y": "3 * (1 - u)^2 * exp(-u^2 - (v + 1)^2) - 10 * (u / 5 - u^3 - v^5) * exp(-u^2 - v^2) - exp(-(u + 1)^2 - v^2) / 3"
    }
  }`, hidden: [dense("h1", "x", 20, "tanh"), dense("h2", "h1", 8, "tanh")],
    tail: [dense("y_hat", "h2", 1), '"loss = mean(square(y_hat - y))"'], outputs: '{"y_hat": "y"}', metrics: '["mse", "mae"]',
    optimizer: '{"adam": {"lr": 0.01}}', batch: 300, epochs: 400})},
  {title: "Sine: regression of a noisy curve", ...model({name: "sine", inputs: 1, description: "Regression of a noisy sine by a 1-12-1 network",
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
