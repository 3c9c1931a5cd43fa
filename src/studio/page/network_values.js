// network_values.js: values of a chain of dense layers, computed in the page from the weights of a frame. They are for
// drawing: graphrun computes all results that the page prints.

function erf(x) {  // Abramowitz and Stegun 7.1.26, error below 2e-7
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const sum = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return Math.sign(x) * (1 - sum * Math.exp(-x * x));
}
export const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const kFunctions = {
  none: (x) => x, relu: (x) => Math.max(0, x), tanh: Math.tanh, sigmoid,
  gelu: (x) => x * (1 + erf(x / Math.SQRT2)) / 2, silu: (x) => x * sigmoid(x),
  elu: (x) => x > 0 ? x : Math.expm1(x), softplus: (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x))),
};

// The chain of dense layers from the model's input to an output, or null if there is none. `facts`: of the
// training. W and b are positions in the weights of a frame.
export function networkOf(facts) {
  const places = new Map(), layers = [];
  let at = 0, before = null;
  for (const {name, elements} of facts.parameters ?? []) {
    places.set(name, {at, elements});
    at += elements;
  }
  for (const {name, from, units, activation} of facts.layers ?? []) {
    const W = places.get(`${name}.W`), b = places.get(`${name}.b`);
    if (!W || (before && from !== before.name)) continue;
    before = {name, from, units, inputs: W.elements / units, f: kFunctions[activation], W: W.at, b: b?.at};
    layers.push(before);
  }
  // The last layer is an output, or an output is a function of it, such as sigmoid(z).
  const last = layers.at(-1);
  const output = facts.outputs?.find((one) => one.name === last?.name || one.reads.includes(last?.name));
  if (!output) return null;  // other ops are between
  const input = (facts.inputs ?? []).find((one) => one.name === layers[0].from);
  const isLogit = output.numbers === "logits" || (output.name !== last.name && output.numbers === "probabilities");
  const width = layers[0].inputs;
  const hasMaps = width <= 2 && last.units === 1 && layers.every((one) => one.f) && Boolean(facts.rows?.train);
  return {layers, width, hasMaps, isLogit, target: output.target,
    names: Array.from({length: width}, (_, i) => shortName(input?.columns?.[i], layers[0].from, i)),
    units: (i, value) => input?.scale ? value * input.scale[i] + input.shift[i] : value};
}

// A long formula gets a short name.
const shortName = (name, input, i) => name && name.length <= 40 ? name : `${input}${i + 1}`;

export function weightsOf(frame) {
  frame.decoded ??= new Float32Array(Uint8Array.from(atob(frame.weights), (one) => one.charCodeAt(0)).buffer);
  return frame.decoded;
}

// Values of every unit of every layer. `inputs`: an array of values for each input of the network.
export function valuesOf(network, weights, inputs) {
  const made = [];
  for (const layer of network.layers) {
    const from = made.at(-1) ?? inputs;
    made.push(Array.from({length: layer.units}, (_, unit) => {
      const values = new Float64Array(inputs[0].length).fill(layer.b === undefined ? 0 : weights[layer.b + unit]);
      from.forEach((input, i) => {
        const weight = weights[layer.W + i * layer.units + unit];
        for (let k = 0; k < values.length; k++) values[k] += weight * input[k];
      });
      return values.map(layer.f);
    }));
  }
  return made;
}

// Rows of each split, at most 293: {name, at: an array for each input, target}.
export function rowsOf(network, facts) {
  const input = network.layers[0].from, width = network.width;
  return Object.entries(facts.rows ?? {}).filter(([, columns]) => columns[input]).map(([name, columns]) => {
    const count = columns[input].length / width;
    const at = Array.from({length: width}, (_, i) =>
      Array.from({length: count}, (_, k) => columns[input][k * width + i]));
    return {name, at, target: columns[network.target] ?? []};
  });
}
