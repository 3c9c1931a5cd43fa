// common.js: shared helpers: elements, requests, number formats.

export const $ = (id) => document.getElementById(id);

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key in made && key !== "list" && typeof value !== "string") made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export class RequestError extends Error {
  constructor(answer) {
    super(answer.error || "The studio did not respond.");
    this.diagnostics = answer.diagnostics || [];
  }
}

async function answered(response) {
  let answer;
  const failed = {error: `The studio returned HTTP status ${response.status}.`};
  try { answer = await response.json(); } catch { answer = failed; }
  if (!response.ok || answer.error) throw new RequestError(answer);
  return answer;
}

const gone = () => new RequestError({error: "The studio has exited. Start it again with graphrun studio."});

export const ask = (path) => fetch(path).then(answered, () => { throw gone(); });
export async function askFile(path) {
  const response = await fetch(path).catch(() => { throw gone(); });
  return response.ok ? response.blob() : answered(response);
}
export const post = (path, body = {}) =>
  fetch(path, {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body)})
    .then(answered, () => { throw gone(); });

let closed = "";  // warning that the user has closed; it stays closed in later runs
export function notify(error, kind = "error") {
  const notice = $("notice"), text = error ? String(error.message ?? error).trimEnd() : "";
  notice.hidden = !error || (kind === "warning" && text === closed);
  notice.className = kind === "warning" ? "warning" : "";
  const close = () => { closed = text; notice.hidden = true; };
  notice.replaceChildren(element("span", {}, text),
    element("button", {type: "button", "aria-label": "close", title: "Close", onclick: close}, "×"));
}

// Place of the errors of a control, behind it. Controls of the header have the notice below the header.
function errorPlace(event) {
  const control = event instanceof Event && event.currentTarget instanceof HTMLElement ? event.currentTarget : null;
  if (!control || control.closest("header")) return null;
  const before = control.closest("label") ?? control;
  if (!before.nextElementSibling?.matches(".error")) before.after(element("span", {class: "error", role: "alert"}));
  return before.nextElementSibling;
}

// Runs f. An error of a request appears in the element `id`, or next to the control whose event is the first argument,
// else below the header.
export const guarded = (f, id) => async (...given) => {
  const place = id ? $(id) : errorPlace(given[0]);
  place?.replaceChildren();
  try {
    return await f(...given);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    if (place) place.textContent = error.message.trimEnd(); else notify(error);
  }
};

export function short(value, digits = 4) {
  if (value === null || value === undefined || value === "") return "–";
  if (typeof value !== "number") return String(value);
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e12) return value.toLocaleString("en");
  return size >= 1e6 || size < 1e-4 ? value.toExponential(digits - 1) : String(Number(value.toPrecision(digits)));
}

// Names of common settings: keys of "train" and "data", and attributes of optimizers.
const kLabels = {
  epochs: "Epochs", batch: "Batch size", seed: "Seed", shuffle: "Shuffle rows", clip_norm: "Clip gradient norm",
  clip_value: "Clip gradient elements",
  optimizer: "Optimizer", lr: "Learning rate", momentum: "Momentum", weight_decay: "Weight decay", l2: "L2 penalty",
  beta1: "Beta 1", beta2: "Beta 2", eps: "Epsilon", minimize: "Loss", metrics: "Metrics", last_batch: "Last batch",
  max_memory: "Memory limit", precision: "Matrix product precision (GPU)", math: "Accuracy of exp, tanh, ... (GPU)",
  log_every: "Report every (epochs)", log_spaced: "Report at 1, 2, 5, 10, ... epochs",
  evaluate_every: "Evaluate every (epochs)", evaluate_every_steps: "Evaluate every (steps)",
  lr_plateau: "Reduce learning rate on plateau",
  early_stopping: "Early stopping", every: "Update every (steps)", split_seed: "Split seed", stratify: "Stratify by",
  split_by: "Split by",
  objectives: "Objectives", "source.csv": "CSV file", "source.y": "Column to predict",
  "source.rows": "Number of rows", "source.delimiter": "Separator", shards: "Shards of a batch", stop_at: "Stop at",
  threshold: "Decision threshold",
   "source.random.rows": "Number of rows", "source.random.seed": "Data seed",
};
const kParts = {monitor: "metric", mode: "direction", patience: "patience (evaluations)",
  min_delta: "minimum improvement (min_delta)",
  restore_best: "restore best weights", cooldown: "cooldown (evaluations)", min_factor: "minimum factor"};

// Explanations of settings, by their keys, in the words of the reference (tests/docs/facts.py compares them).
const kHints = {
  lr: "Learning rate, which scales each update; or a schedule",
  momentum: "Share of the velocity, a running sum of gradients, that each step keeps",
  beta1: "Decay rate of the first moment, the running mean of the gradient",
  beta2: "Decay rate of the second moment, the running mean of the squared gradient",
  clip_value: "Largest absolute value of an element of a gradient", eps: "Keeps the divisor above 0",
  clip_norm: "Largest norm of all gradients of the loss together. Larger gradients are scaled down before the update",
  weight_decay: "Decoupled weight decay: shrinks each parameter by lr * weight_decay of its value",
  l2: "L2 penalty: adds l2 times each parameter to its gradient",
  "train.batch": "Rows per step, at most the size of the training split",
  "train.epochs": "Passes over the training split", shuffle: "Use a different order of rows in each epoch",
  "train.seed": "Seed of initial values, order of rows, random numbers and the split of the data",
  stratify: "Input or column whose values occur in the same proportions in every split",
  "early_stopping.patience": "Consecutive evaluations without improvement until training stops",
  "lr_plateau.patience": "Consecutive evaluations without improvement until the learning rate drops",
  "lr_plateau.factor": "Factor by which the learning rate (or the value of its schedule) is multiplied",
  cooldown: "Evaluations to ignore after each reduction", min_factor: "Lowest fraction of the original learning rate",
  min_delta: "Smallest change that counts as an improvement",
  restore_best: "Restore the parameters of the best evaluation when training ends",
  max_memory: "Memory limit of the plan, in bytes or as 512MiB",
  last_batch: "drop omits an incomplete last batch from training, but not from evaluation",
  precision: "tf32 allows large matrix products to round their operands to a 10-bit mantissa, for tensor cores",
  math: "exact: bitwise identical to functions on cpu (sums may differ); fast: faster, and off by a few units in the " +
  "last place",
};
// other sections use the keys differently
const hasHint = (path) => path.startsWith("train.") || path === "data.stratify";
export function hintOf(path) {
  const parts = path.split("."), hint = hasHint(path) && (kHints[parts.slice(-2).join(".")] ?? kHints[parts.at(-1)]);
  return hint ? `${hint} (${path})` : path;
}
const kMetrics = {
  loss: "Value that training minimizes", mse: "Mean squared error",
  rmse: "Root mean squared error, in the target's units", mae: "Mean absolute error, in the target's units",
  r2: "Coefficient of determination: 1 if every prediction is exact, 0 for a model that always predicts the mean",
  mape: "Mean absolute error as a fraction of the target (0.1: 10 %)",
  accuracy: "Fraction of correctly classified rows", auc: "Area under the ROC curve: 1 is perfect, 0.5 is guessing",
  f1: "Harmonic mean of precision and recall",
  mcc: "Matthews correlation coefficient: 1 is perfect, 0 is guessing",
  log_loss: "Mean of -log of the probability of the actual class",
};
export const metricHint = (name) => kMetrics[name] ?? name;

// "Early stopping: metric" for train.early_stopping.monitor, "Learning rate" for train.optimizer.adam.lr. A path of
// another section keeps its keys, which the user has named.
export function labelOf(path) {
  const [section] = path.split("."), key = path.replace(/^(train|data|graph|constants|parameters)\./, "");
  if (section === "data") return kLabels[key] ?? key.replace(/^source\.missing\./, "Missing values of ")
    .replace(/^source\.random\.columns\.(\w+)\.(\w+)$/, "Column $1: $2");
  const parts = key.replace(/^objectives\./, "").split(/\.?\boptimizer\.\w+\.|[.:]/).filter(Boolean);
  const at = ["graph", "constants", "parameters"].includes(section) ? -1 : parts.findIndex((part) => part in kLabels);
  return at < 0 ? key
    : [...parts.slice(0, at), kLabels[parts[at]],
      parts.slice(at + 1).map((one) => kParts[one] ?? one).join(" ")].filter(Boolean).join(": ");
}

// A term with its explanation as a tooltip.
export const term = (text, title) => element("abbr", {title}, text);

// Phases and splits: "training" for train, "evaluation (test)" for evaluate.test, "prediction" for predict.
export const phaseName = (name) => name.replace(/^train\b/, "training").replace(/^predict\b/, "prediction")
  .replace(/^evaluate\.(\w+)/, (_, split) => `evaluation (${phaseName(split)})`);

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// Head of a column of runs: "Test rmse" for test.rmse, "Learning rate" for settings.optimizer.adam.lr.
const kColumns = {model: "Model", changes: "Changes", steps: "Steps", weights_hash: "Weight hash"};
export const columnOf = (key) =>
  kColumns[key] ?? (/^(train|validation|test)\./.test(key) ? capital(phaseName(key).replace(".", " "))
  : labelOf(key.replace(/^settings\./, "train.")));

export const counted = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

// `apart`: distance to the next number on the same axis, in bytes; it sets the number of digits.
export function bytes(count, apart = Infinity) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (count >= 1024 && unit < 4) { count /= 1024; apart /= 1024; unit++; }
  const digits = apart < 1 ? Math.min(3, Math.ceil(-Math.log10(apart))) : count < 10 ? 1 : 0;
  return `${unit ? count.toFixed(digits) : count} ${units[unit]}`;
}

export function table(heading, rows) {
  return element("table", {},
    element("thead", {}, element("tr", {}, ...heading.map((one) => element("th", {scope: "col"}, one)))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((cell, i) =>
      i === 0 ? element("th", {scope: "row"}, cell) : element("td", {}, cell))))));
}

export function download(name, blob) {
  const link = element("a", {href: URL.createObjectURL(blob), download: name});
  link.click();
  URL.revokeObjectURL(link.href);
}

// Same colours as `graphrun plot`.
const light = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#6a3d9a", "#56616b", "#8b4513"];
const dark = ["#56b4e9", "#ff8c42", "#2fd6a6", "#e79bc6", "#f0d050", "#b794f4", "#c0c8d0", "#d2976b"];
const night = matchMedia("(prefers-color-scheme: dark)");
export const colour = (i) => (night.matches ? dark : light)[i % light.length];
export const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const onNight = (f) => night.addEventListener("change", f);

// Resizes the canvas to the device resolution and clears it. Returns its context, and its size in CSS pixels.
export function prepared(canvas) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth,
    height = Number(canvas.getAttribute("data-height") || canvas.getAttribute("height"));
  canvas.setAttribute("data-height", height);
  canvas.style.height = height + "px";
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "11px system-ui, sans-serif";
  return {context, width, height};
}
