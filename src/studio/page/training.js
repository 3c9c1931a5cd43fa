// training.js: the Train tab: charts, runtime hyperparameters, evaluation plots, predictions.
import {$, capital, colour, element, guarded, labelOf, metricHint, onNight, phaseName, post, table, term}
  from "./common.js";
import {Curves} from "./curves.js";
import {isReplay, shownFrame} from "./replay.js";
import {on, state} from "./state.js";

const isSeen = () => !$("training").hidden;

// ---- curves

const kDashes = [[], [6, 3], [2, 3]];
const kSplits = ["train", "validation", "test"];

function valueOf(point, split, metric) {
  if (split !== "train") return point[split]?.[metric];
  return metric === "loss" ? point.loss : undefined;
}

function seriesOf(name, points, metric, first, width) {
  const made = [];
  kSplits.forEach((split, i) => {
    const there = [], apart = [];
    let before = -1;
    points.forEach((point, k) => {
      if (valueOf(point, split, metric) === undefined) return;
      apart.push(there.length > 0 && before !== k - 1);
      there.push(point);
      before = k;
    });
    if (there.length)
      made.push({apart: apart.includes(true) ? apart : null, width, dash: kDashes[name ? i : 0],
        name: name ? `${name} ${phaseName(split)}` : phaseName(split), colour: colour(first + (name ? 0 : i)),
        x: there.map((point) => point.epoch), y: there.map((point) => valueOf(point, split, metric) ?? NaN)});
  });
  return made;
}

// The model sets the interval of reports. The loss of the latest steps fills the gap after the last one.
function withLive(points) {
  const {live} = state;
  return live.length ? [...points, ...live].sort((a, b) => a.step - b.step) : points;
}

// ---- charts: one for each chosen metric

const charts = new Map();  // metric to {figure, curves}
const chosen = () => [...$("metrics").querySelectorAll("input:checked")].map((one) => one.value);

function showCharts() {
  const names = chosen();
  for (const [name, {figure}] of charts) {
    if (names.includes(name)) continue;
    figure.remove();
    charts.delete(name);
  }
  for (const name of names) {
    if (charts.has(name)) continue;
    const canvas = element("canvas", {id: `curves-${name}`, height: "220", role: "img", tabindex: "0"});
    const figure = element("figure", {class: "card"}, element("figcaption", {title: metricHint(name)}, capital(name)),
      canvas);
    const curves = new Curves(canvas, showZoom);
    for (const axis of ["x", "y"]) curves.log[axis] = $(`log-${axis}`).checked;
    charts.set(name, {figure, curves});
  }
  $("charts").replaceChildren(...names.map((name) => charts.get(name).figure), ...extras());
  showZoom();
  drawCurves();
}

// Histogram of the weights of the shown epoch (network.js).
const extras = () => state.training.facts.parameters ? [element("figure", {class: "card"},
  element("figcaption", {}, "Histogram of weights"), element("canvas", {id: "weights", height: "220", role: "img",
    "aria-label": "Histogram of the weights of the shown epoch"}))] : [];

const allCurves = () => [...charts.values()].map((one) => one.curves);
const showZoom = () => { $("unzoom").hidden = allCurves().every((one) => !one.zoom); };

// Exponential moving average; the first values count fully.
function smoothed(values, share) {
  let mean = 0, total = 0;
  return values.map((value) => {
    if (!Number.isFinite(value)) return value;
    mean = share * mean + (1 - share) * value;
    total = share * total + (1 - share);
    return mean / total;
  });
}

function seriesOfAll(metric) {
  const series = seriesOf("", withLive(state.points), metric, 0, 1.8);
  let i = 3;
  for (const [run, points] of state.others)
    series.push(...seriesOf(state.names.get(run) ?? run, points, metric, i++, 1.2));
  const share = Number($("smoothing").value);
  if (share === 0) return series;
  const behind = series.map((one) => ({...one, colour: one.colour + "44", isBehind: true}));
  return [...behind, ...series.map((one) => ({...one, y: smoothed(one.y, share), apart: null}))];
}

function drawCurves() {
  const cursor = isReplay() ? shownFrame()?.epoch : undefined, legend = new Map();
  for (const [metric, {curves}] of charts) {
    const series = seriesOfAll(metric), front = series.filter((one) => !one.isBehind);
    curves.cursor = cursor;
    curves.set(series);
    curves.canvas.setAttribute("aria-label", `Curves of ${metric}: ` +
      (front.map((one) => `${one.name} ${one.y.at(-1)}`).join(", ") || "no data"));
    for (const one of front) legend.set(one.name, one.colour);
  }
  $("legend").replaceChildren(...[...legend].map(([name, tint]) => {
    const swatch = element("i");
    swatch.style.background = tint;
    return element("span", {}, swatch, name);
  }));
}

for (const axis of ["x", "y"]) {
  $(`log-${axis}`).addEventListener("change", (event) =>
    allCurves().forEach((one) => one.setLog(axis, event.target.checked)));
}
$("unzoom").addEventListener("click", () => allCurves().forEach((one) => one.setZoom(null)));
$("metrics").addEventListener("change", showCharts);
$("smoothing").addEventListener("input", drawCurves);

function showMetrics() {
  const {splits = {}} = state.training.facts, first = splits.validation || splits.test ? 2 : 1;  // charts with data
  const names = ["loss", ...(state.training.facts.metrics || [])];
  if ($("metrics").dataset.names === names.join()) return;
  $("metrics").dataset.names = names.join();
  $("metrics").replaceChildren("Charts:", ...names.map((name, i) => element("label", {title: metricHint(name)},
    element("input", {type: "checkbox", value: name, checked: i < first}), name)));
  showCharts();
}

// ---- results: the metrics that `graphrun train` prints, in original units

function showResults() {
  const {summary} = state.training;
  const [, heading, ...lines] = summary.trimEnd().split("\n").map((line) => line.trim().split(/\s{2,}/));
  $("results").hidden = !summary;
  if (!summary) return;
  const end = lines.findIndex((one) => one[0] === "epochs");  // the page shows the rest elsewhere
  $("summary").replaceChildren(table(["", ...heading.map((one) => capital(phaseName(one)))],
    lines.slice(0, end < 0 ? undefined : end).map(([name, ...cells]) =>
      [term(name, metricHint(name.replace(" ", "_"))), ...cells])));
}

// ---- runtime hyperparameters

// One text for each hyperparameter: its first and its last value.
function changeTexts(changes) {
  const byNumber = new Map();
  for (const one of changes) byNumber.set(one.number, [...byNumber.get(one.number) ?? [], one]);
  return [...byNumber.values()].map((all) => `${labelOf(all[0].number)} ${all[0].from} → ${all.at(-1).to} ` +
    `${all.length > 1 ? `in ${all.length} changes, the last ` : ""}after step ${all.at(-1).step.toLocaleString("en")}`);
}

function showHyperparameters() {
  const {numbers = {}, changes = [], state: now} = state.training;
  const underWay = ["running", "paused"].includes(now), names = underWay ? Object.keys(numbers) : [];
  $("hyperparameters").hidden = !names.length && !changes.length;
  const key = JSON.stringify([names, numbers, changes]);
  if (key === $("hyperparameters").dataset.key) return;
  $("hyperparameters").dataset.key = key;
  const focused = document.activeElement?.id;
  const title = names.length ? element("span", {title: "Changes of this run only; the model keeps its values"},
    "During this run:") : null;
  $("hyperparameters").replaceChildren(...[title].filter(Boolean), ...names.map((name) => {
    const set = guarded(async (event, value) => {
      try {
        await post("/api/number", {name, value});
      } catch (error) {
        input.value = state.training.numbers[name];  // the value is unchanged
        throw error;
      }
    });
    const input = element("input", {type: "number", step: "any", min: "0", id: `hyperparameter-${name}`,
      onchange: (event) => input.value !== "" ? set(event, Number(input.value)) : input.value = numbers[name]});
    input.value = numbers[name];
    const times = (factor, sign) => element("button", {type: "button", "aria-label": `${labelOf(name)} ${sign}`,
      onclick: (event) => set(event, Number((numbers[name] * factor).toPrecision(6)))}, sign);
    const label = element("label", {for: input.id, title: name}, labelOf(name));
    return element("span", {class: "hyperparameter"}, label, times(0.5, "÷2"), input, times(2, "×2"));
  }), element("span", {class: "quiet"}, changes.length ? `Changed: ${changeTexts(changes).join("; ")}`
    : "A change takes effect in the next step."));
  if (focused?.startsWith("hyperparameter-")) $(focused)?.focus();
}

// ---- evaluation plots, drawn by the studio between two steps

const kTitles = {surface: "Output surface and data", confusion: "Confusion matrix (rows: actual, columns: predicted)",
  roc: "ROC curve", pr: "Precision-recall curve", calibration: "Calibration", misclassified: "Misclassified images",
    predicted: "Predicted vs. actual", residuals: "Residuals", weights: "Weights",
  histogram: "Weight histogram"};
let shown = "", isBusy = false, isStale = false, version = 0, refreshed = 0;

function showPictures() {
  const {pictures: all = [], parameters} = state.training.facts;
  const pictures = all.filter((one) => !parameters || !["surface", "weights", "histogram"].includes(one));
  const key = pictures.join() + state.training.number;
  if (key !== shown) {
    shown = key;
    $("pictures").replaceChildren(...pictures.map((what) => element("figure", {"data-what": what},
      element("figcaption", {}, kTitles[what] || what),
      element("img", {alt: kTitles[what] || what, width: 640, height: 400}))));
  }
  refresh();
}

// Requests one plot at a time, so that slow plots do not slow training down. A call during a round starts another one.
async function refresh() {
  if (!isSeen() || ["idle", "loading"].includes(state.training.state)) return;
  isStale = isBusy;
  if (isBusy) return;
  isBusy = true;
  version++;
  const training = state.training.number;
  for (const figure of [...$("pictures").children]) {
    if (training !== state.training.number) break;  // plots of another run
    const image = figure.lastElementChild;
    const query = new URLSearchParams({what: figure.dataset.what, split: $("split").value, training, version});
    const next = new Image();
    next.alt = image.alt;
    next.src = `/api/picture.svg?${query}`;
    try {
      await next.decode();
      image.replaceWith(next);
      figure.hidden = false;
    } catch {
      figure.hidden = next.naturalWidth === 0 && !image.complete;
    }
  }
  isBusy = false;
  if (isStale) refresh();
}
$("split").addEventListener("change", refresh);
function refreshLive() {
  if (isBusy || !$("live").checked || performance.now() - refreshed < 700) return;
  refreshed = performance.now();
  refresh();
}

// ---- predictions

$("predict").addEventListener("click", guarded(async () => {
  $("predictions").replaceChildren();
  const hasClasses = state.training.facts.pictures?.includes("confusion");
  const rows = $("rows").value.trimEnd() + "\n";
  const answer = await post("/api/predict", {rows, probabilities: hasClasses ? "yes" : "no"});
  $("predictions").replaceChildren(table(answer.columns,
    answer.predictions.slice(0, 1000).map((row) => row.map(String))));
}));
// Results of an earlier run.
on("run", () => {
  for (const id of ["predictions", "pictures"]) $(id).replaceChildren();
  shown = "";
});

on("training", () => {
  const {facts, state: now} = state.training;
  showMetrics();
  showResults();
  const splits = ["test", "validation", "train"].filter((split) => facts.splits?.[split]);
  if ($("split").dataset.names !== splits.join()) {
    $("split").dataset.names = splits.join();
    $("split").replaceChildren(...splits.map((name) => element("option", {value: name}, phaseName(name))));
  }
  showHyperparameters();
  drawCurves();
  if (["done", "stopped", "paused", "running", "failed"].includes(now)) showPictures();
});
on("points", () => { drawCurves(); refreshLive(); });
on("progress", () => { if (state.live.length && isSeen()) drawCurves(); refreshLive(); });
on("others frame", drawCurves);
onNight(drawCurves);
on("view", (view) => { if (view === "training") { drawCurves(); showPictures(); } });
