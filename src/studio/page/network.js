// network.js: the Train tab's drawing of a small network: a map per neuron, weights as lines, the output as a surface.
import {$, element, onNight, prepared, short, style} from "./common.js";
import {layerControls} from "./model.js";
import {networkOf, rowsOf, sigmoid, valuesOf, weightsOf} from "./network_values.js";
import {shownFrame} from "./replay.js";
import {on, state} from "./state.js";

const kCells = 50;      // along each axis of a map
const kMaxUnits = 10;   // drawn units in a layer
const kHead = 96, kRow = 36, kSize = 30;  // pixels
// Margins and distance of the columns of neurons.
const measures = (wide) => wide < 500 ? {left: 62, right: 42, between: 80} : {left: 84, right: 62, between: 116};

let network = null, rows = [], range = [], grid = [], scale = {mid: 0, half: 1};
let columns = [], lines = [], looked = null, pinned = null, due = 0, drawn = "";

// ---- colours: negative to positive

const rgb = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
let palette = [];
function readPalette() {  // light or dark
  const [low, mid, high] = ["--negative", "--zero", "--positive"].map((name) => rgb(style(name)));
  palette = Array.from({length: 201}, (_, i) => {
    const t = (i - 100) / 100, end = t < 0 ? low : high;
    return mid.map((from, k) => Math.round(from + (end[k] - from) * Math.abs(t)));
  });
}
const colourAt = (t) => palette[Math.round(100 * Math.max(-1, Math.min(1, t || 0))) + 100];
const css = (t) => `rgb(${colourAt(t).join(" ")})`;

// ---- values as numbers from -1 to 1

const outputTint = (value) => ((network.isLogit ? sigmoid(value) : value) - scale.mid) / scale.half;
function tinted(values, isOutput) {
  if (isOutput) return Float64Array.from(values, outputTint);
  const size = values.reduce((most, one) => Math.max(most, Math.abs(one)), 1e-9);
  return Float64Array.from(values, (one) => one / size);
}

function paintMap(canvas, tints, discrete = false) {
  canvas.width = kCells;
  canvas.height = network.width === 1 ? 1 : kCells;
  const context = canvas.getContext("2d"), image = context.createImageData(canvas.width, canvas.height);
  tints.forEach((tint, i) => image.data.set([...colourAt(discrete ? Math.sign(tint) : tint), 255], 4 * i));
  context.putImageData(image, 0, 0);
}

// ---- structure: columns of neurons, lines between them

function nodesOf() {
  const inputs = {name: network.layers[0].from, units: network.width, isInput: true};
  return [inputs, ...network.layers].map((layer, i) =>
    ({...layer, layer: i - 1, shown: Math.min(layer.units, kMaxUnits)}));
}

function build() {
  columns = nodesOf();
  const {left, right, between} = measures($("network").parentElement.clientWidth);
  const wide = Math.max($("network").parentElement.clientWidth, left + right + between * (columns.length - 1));
  const high = kHead + kRow * Math.max(...columns.map((one) => one.shown))
    + (columns.some((one) => one.shown < one.units) ? 26 : 4);
  const x = (i) => left + (wide - left - right) * i / (columns.length - 1), y = (k) => kHead + kRow * (k + 0.5);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const part = (name, attributes) => {
    const made = document.createElementNS(svg.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  svg.setAttribute("viewBox", `0 0 ${wide} ${high}`);
  svg.setAttribute("aria-hidden", "true");
  lines = [];
  const children = [svg];
  columns.forEach((column, i) => {
    for (let unit = 0; unit < column.shown; unit++) {
      for (let from = 0; i > 0 && from < columns[i - 1].shown; from++) {
        const [x0, x1] = [x(i - 1) + kSize / 2, x(i) - kSize / 2], mid = (x0 + x1) / 2;
        const d = `M${x0} ${y(from)} C${mid} ${y(from)} ${mid} ${y(unit)} ${x1} ${y(unit)}`;
        const group = part("g", {}), line = part("path", {d, class: "weight"}), title = part("title", {});
        group.append(title, line, part("path", {d, class: "reach"}));  // the second one is easier to point at
        svg.append(group);
        const names = `${unitName(columns[i - 1], from)} to ${unitName(column, unit)}`;
        lines.push({line, title, names, at: column.W + from * column.units + unit});
      }
      children.push(neuron(column, unit, x(i), y(unit)));
    }
    children.push(head(column, x(i)));
    if (column.shown < column.units) {
      const more = element("small", {class: "quiet more"}, `+${column.units - column.shown} more`);
      Object.assign(more.style, {left: `${x(i)}px`, top: `${kHead + kRow * column.shown}px`});
      children.push(more);
    }
  });
  Object.assign($("network").style, {width: `${wide}px`, height: `${high}px`});
  const focused = $("network").contains(document.activeElement) && document.activeElement.getAttribute("aria-label");
  $("network").replaceChildren(...children);
  if (focused) $("network").querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
}

const unitName = (column, unit) => column.isInput ? network.names[unit] : `${column.name}[${unit}]`;

function neuron(column, unit, x, y) {
  const name = unitName(column, unit), canvas = element("canvas", {width: 1, height: 1});
  canvas.hidden = !network.hasMaps;
  const button = element("button", {type: "button", class: "neuron", "aria-pressed": "false", "data-name": name},
    canvas);
  Object.assign(button.style, {left: `${x - kSize / 2}px`, top: `${y - kSize / 2}px`});
  column.canvases = [...column.canvases ?? [], canvas];
  const look = (one) => () => { looked = one; draw(); };
  const here = {name, layer: column.layer, unit};
  for (const event of ["pointerenter", "focus"]) button.addEventListener(event, look(here));
  for (const event of ["pointerleave", "blur"]) button.addEventListener(event, look(null));
  button.addEventListener("click", () => { pinned = pinned?.name === name ? null : here; draw(); });
  if (!column.isInput) return button;
  const label = element("small", {class: "input-name", title: name}, name);
  label.style.top = `${y}px`;
  const both = document.createDocumentFragment();
  both.append(label, button);
  return both;
}

function head(column, x) {
  const made = element("div", {class: "layer-head"},
    ...(column.isInput ? [element("b", {}, "Inputs")] : layerControls(column.name) ?? [element("b", {}, column.name)]));
  made.style.left = `${x}px`;
  return made;
}

// ---- drawing

function draw() { due ||= requestAnimationFrame(() => { due = 0; paint(); }); }

function paint() {
  const frame = shownFrame();
  if (!network || !frame || $("training").hidden) return;
  readPalette();
  const weights = weightsOf(frame), values = network.hasMaps ? valuesOf(network, weights, grid) : null;
  for (const {line, title, names, at} of lines) {
    const weight = weights[at];
    line.setAttribute("stroke", css(Math.sign(weight) * Math.min(1, 0.35 + Math.abs(weight))));
    line.setAttribute("stroke-width", Math.min(8, 0.4 + 2 * Math.abs(weight)));
    title.textContent = `Weight from ${names}: ${short(weight)}`;
  }
  columns.forEach((column, i) => column.canvases.forEach((canvas, unit) => {
    const button = canvas.parentElement, name = button.dataset.name;
    const bias = column.b === undefined ? "" : `, bias ${short(weights[column.b + unit])}`;
    button.title = name + bias;
    button.setAttribute("aria-label", (column.isInput ? "input " : "neuron ") + name + bias);
    button.setAttribute("aria-pressed", String(pinned?.name === name));
    if (!values) return;
    const own = column.isInput ? grid[unit] : values[i - 1][unit];
    paintMap(canvas, tinted(own, i === columns.length - 1));
  }));
  if (values) paintSurface(values);
  paintWeights(weights);
}

function paintSurface(values) {
  const shown = looked ?? pinned;
  const isOutput = !shown || shown.layer === network.layers.length - 1;
  const own = !shown ? values.at(-1)[0] : shown.layer < 0 ? grid[shown.unit] : values[shown.layer][shown.unit];
  $("surface-title").replaceChildren(element("b", {}, isOutput ? "Output" : shown.name), ...legend(isOutput));
  const {context, width, height} = prepared($("surface"));
  const [left, top, wide, tall] = [40, 6, width - 48, height - 28];
  const x = (value) => left + wide * (value - range[0][0]) / (range[0][1] - range[0][0]);
  context.fillStyle = style("--quiet");
  if (network.width === 2) {
    const map = document.createElement("canvas");
    paintMap(map, tinted(own, isOutput), isOutput && $("discrete").checked);
    context.globalAlpha = 0.65;  // keeps the points visible
    context.drawImage(map, left, top, wide, tall);
    context.globalAlpha = 1;
  }
  const axis = network.width === 2 ? range[1] : paintLine(context, own, x, top, tall);
  const y = (value) => top + tall * (1 - (value - axis[0]) / (axis[1] - axis[0]));
  context.fillStyle = style("--quiet");
  const text = (i, value) => short(network.units(i, value), 2);
  [["left", 0], ["right", 1]].forEach(([side, i]) => {
    context.textAlign = side;
    context.fillText(text(0, range[0][i]), left + wide * i, height - 8);
    context.textAlign = "right";
    context.fillText(network.width === 2 ? text(1, axis[i]) : short(axis[i], 2), left - 5, top + (i ? 9 : tall));
  });
  context.textAlign = "center";
  const axisName = (i) => network.names[i].length > 12 ? `${network.names[i].slice(0, 11)}…` : network.names[i];
  context.fillText(axisName(0), left + wide / 2, height - 8, wide / 2);
  context.textAlign = "right";
  context.fillText(network.width === 2 ? axisName(1) : "", left - 5, top + tall / 2, left - 5);
  for (const split of rows) {
    const isTrain = split.name === "train";
    if (!isTrain && !$("show-test").checked) continue;
    split.at[0].forEach((at, i) => {
      context.beginPath();
      context.arc(x(at), y(network.width === 2 ? split.at[1][i] : split.target[i]), isTrain ? 3 : 2.5, 0, 7);
      context.fillStyle = css(network.width === 2 ? (split.target[i] - scale.mid) / scale.half : 1);
      context.fill();
      context.strokeStyle = isTrain ? style("--zero") : style("--ink");
      context.stroke();
    });
  }
}

// One input: the curve of the shown neuron, and the targets. Returns the range of the y axis.
function paintLine(context, own, x, top, tall) {
  const all = [...own, ...rows.flatMap((one) => one.target)], axis = [Math.min(...all), Math.max(...all)];
  context.strokeStyle = style("--ink");
  context.lineWidth = 2;
  context.beginPath();
  own.forEach((value, i) => context.lineTo(x(grid[0][i]), top + tall * (1 - (value - axis[0]) / (axis[1] - axis[0]))));
  context.stroke();
  context.lineWidth = 1;
  return axis;
}

function legend(isOutput) {
  const ends = isOutput ? [scale.mid - scale.half, scale.mid + scale.half].map((one) => short(one, 3)) : ["−", "+"];
  return [element("span", {class: "quiet scale"}, ends[0], element("i"), ends[1])];
}

// Histogram of all weights and biases.
function paintWeights(weights) {
  if (!$("weights")) return;
  const {context, width, height} = prepared($("weights")), bins = 31;
  const size = weights.reduce((most, one) => Math.max(most, Math.abs(one)), 1e-9), counts = new Array(bins).fill(0);
  for (const one of weights) counts[Math.min(bins - 1, Math.floor((one / size + 1) / 2 * bins))]++;
  const most = Math.max(...counts), step = (width - 20) / bins;
  counts.forEach((count, i) => {
    context.fillStyle = i === (bins - 1) / 2 ? style("--quiet") : css(Math.sign(i - (bins - 1) / 2));
    const tall = (height - 38) * count / most;
    context.fillRect(10 + step * i, height - 24 - tall, Math.max(1, step - 1), tall);
  });
  context.fillStyle = style("--quiet");
  [["left", -size], ["center", 0], ["right", size]].forEach(([side, value]) => {
    context.textAlign = side;
    context.fillText(short(value, 3), 10 + (width - 20) * (value / size + 1) / 2, height - 8);
  });
  context.fillText(`Tallest bar: ${most} of ${weights.length} weights`, width - 10, 10);
}

// ---- the model of the training

function take() {
  const facts = state.training.facts, key = `${state.training.number} ${facts.model}`;
  if (key === drawn && network) return;
  drawn = key;
  network = networkOf(facts);
  looked = pinned = null;
  $("network-card").hidden = !network;
  $("surface-card").hidden = !network?.hasMaps;
  $("network-note").textContent = network?.hasMaps === false
    ? "The boxes have no maps: a map needs a network with one or two inputs and one output." : "";
  document.querySelector(".lab").classList.toggle("plain", !network);
  document.querySelector(".lab").classList.toggle("no-maps", Boolean(network) && !network.hasMaps);
  if (!network) return;
  rows = network.hasMaps ? rowsOf(network, facts) : [];
  if (network.hasMaps) {
    range = Array.from({length: network.width}, (_, i) => {
      const all = rows.flatMap((one) => one.at[i]), [low, high] = [Math.min(...all), Math.max(...all)];
      const margin = 0.03 * (high - low) || 0.5;
      return [low - margin, high + margin];
    });
    const at = (i, k) => range[i][0] + (range[i][1] - range[i][0]) * (k + 0.5) / kCells;
    const count = network.width === 1 ? kCells : kCells * kCells;
    grid = range.map((_, i) => Float64Array.from({length: count}, (_, k) =>
      i === 0 ? at(0, k % kCells) : at(1, kCells - 1 - Math.floor(k / kCells))));
    const targets = rows.flatMap((one) => one.target), [low, high] = [Math.min(...targets), Math.max(...targets)];
    scale = {mid: (low + high) / 2, half: (high - low) / 2 || 1};
  }
  show();
}

function show() {
  if (!network || $("training").hidden) return;
  build();
  draw();
}

for (const id of ["show-test", "discrete"]) $(id).addEventListener("change", draw);
on("training", take);
on("frame", draw);
on("check", show);
on("view", show);
onNight(draw);
new ResizeObserver(show).observe($("network-card"));
