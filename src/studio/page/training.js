// training.js: the Training tab: curves, runtime hyperparameters, evaluation plots, predictions.
import {$, colour, element, guarded, labelOf, metricHint, onNight, phaseName, post, RequestError, table, notify} from "./common.js";
import {Curves} from "./curves.js";
import {on, state} from "./state.js";

const curves = new Curves($("curves"), (zoomed) => { $("unzoom").hidden = !zoomed; });
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
      made.push({apart: apart.includes(true) ? apart : null, name: name ? `${name} ${phaseName(split)}` : phaseName(split), colour: colour(first + (name ? 0 : i)), dash: kDashes[name ? i : 0], width,
        x: there.map((point) => point.epoch), y: there.map((point) => valueOf(point, split, metric) ?? NaN)});
  });
  return made;
}

// The model sets the interval of reports. The loss of the latest steps fills the gap after the last one.
function withLive(points) {
  const {live} = state;
  return live.length ? [...points, ...live].sort((a, b) => a.step - b.step) : points;
}

function drawCurves() {
  const metric = $("metric").value || "loss";
  const series = seriesOf("", withLive(state.points), metric, 0, 1.8);
  let i = 3;
  for (const [run, points] of state.others) series.push(...seriesOf(run, points, metric, i++, 1.2));
  curves.set(series);
  $("legend").replaceChildren(...series.map((one) => {
    const swatch = element("i");
    swatch.style.background = one.colour;
    return element("span", {}, swatch, one.name);
  }));
  $("curves").setAttribute("aria-label", `Curves of ${metric}: ` + (series.map((one) => `${one.name} ${one.y.at(-1)}`).join(", ") || "no data"));
}

for (const axis of ["x", "y"]) $(`log-${axis}`).addEventListener("change", (event) => curves.setLog(axis, event.target.checked));
$("unzoom").addEventListener("click", () => curves.setZoom(null));
$("metric").addEventListener("change", () => { $("metric").title = metricHint($("metric").value); drawCurves(); });

// ---- runtime hyperparameters

const changeText = ({number, from, to, step}) =>
  `${labelOf(number)} ${from} → ${to} after step ${step.toLocaleString("en")}`;

function showHyperparameters() {
  const {numbers = {}, changes = [], state: now} = state.training;
  const underWay = ["running", "paused"].includes(now), names = underWay ? Object.keys(numbers) : [];
  $("hyperparameters").hidden = !names.length && !changes.length;
  const key = JSON.stringify([names, numbers, changes]);
  if (key === $("hyperparameters").dataset.key) return;
  $("hyperparameters").dataset.key = key;
  const focused = document.activeElement?.id;
  $("hyperparameters").replaceChildren(...names.map((name) => {
    const set = guarded(async (value) => {
      notify(null);
      try {
        await post("/api/number", {name, value});
      } catch (error) {
        input.value = state.training.numbers[name];  // the value is unchanged
        throw error;
      }
    });
    const input = element("input", {type: "number", step: "any", min: "0", id: `hyperparameter-${name}`,
      onchange: () => { if (input.value !== "") set(Number(input.value)); else input.value = numbers[name]; }});
    input.value = numbers[name];
    const times = (factor, sign) => element("button", {type: "button", "aria-label": `${labelOf(name)} ${sign}`,
      onclick: () => set(Number((numbers[name] * factor).toPrecision(6)))}, sign);
    const label = element("label", {for: input.id, title: name}, labelOf(name));
    return element("span", {class: "hyperparameter"}, label, times(0.5, "÷2"), input, times(2, "×2"));
  }), element("span", {class: "quiet"}, changes.length ? `Changed: ${changes.map(changeText).join("; ")}`
    : "A change takes effect in the next step."));
  if (focused?.startsWith("hyperparameter-")) $(focused)?.focus();
}

// ---- evaluation plots, drawn by the studio between two steps

const kTitles = {surface: "Output surface and data", confusion: "Confusion matrix (rows: actual, columns: predicted)",
  roc: "ROC curve", pr: "Precision-recall curve", calibration: "Calibration", misclassified: "Misclassified images", predicted: "Predicted vs. actual", residuals: "Residuals", weights: "Weights",
  histogram: "Weight histogram"};
let shown = "", isBusy = false, isStale = false, version = 0, refreshed = 0;

function showPictures() {
  const pictures = state.training.facts.pictures || [];
  const key = pictures.join() + state.training.number;
  if (key !== shown) {
    shown = key;
    $("pictures").replaceChildren(...pictures.map((what) => element("figure", {"data-what": what},
      element("figcaption", {}, kTitles[what] || what), element("img", {alt: kTitles[what] || what, width: 640, height: 400}))));
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
  notify(null);
  $("predictions").replaceChildren();
  $("predict-error").textContent = "";
  const hasClasses = state.training.facts.pictures?.includes("confusion");
  let answer;
  try {
    answer = await post("/api/predict", {rows: $("rows").value.trimEnd() + "\n", probabilities: hasClasses ? "yes" : "no"});
  } catch (error) {
    $("predict-error").textContent = error.message.trimEnd();
    if (!(error instanceof RequestError)) throw error;
    return;
  }
  $("predictions").replaceChildren(table(answer.columns, answer.predictions.slice(0, 1000).map((row) => row.map(String))));
}));

on("training", () => {
  const {facts, state: now} = state.training;
  const names = ["loss", ...(facts.metrics || [])];
  if ($("metric").dataset.names !== names.join()) {
    $("metric").dataset.names = names.join();
    $("metric").replaceChildren(...names.map((name) => element("option", {value: name, title: metricHint(name)}, name)));
  }
  $("metric").title = metricHint($("metric").value);
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
on("others", drawCurves);
onNight(drawCurves);
on("view", (view) => { if (view === "training") { drawCurves(); showPictures(); } });
