// app.js: page frame: tabs, training controls, and the event stream of the studio.
import {$, ask, bytes, capital, guarded, post, short, notify} from "./common.js";
import {emit, on, state} from "./state.js";
import "./model.js";
import "./training.js";
import "./network.js";
import "./inspect.js";
import "./runs.js";

// ---- views

const tabs = [...document.querySelectorAll("[role=tab]")];

function show(name, focus = false) {
  for (const tab of tabs) {
    const chosen = tab.getAttribute("aria-controls") === name;
    tab.setAttribute("aria-selected", chosen);
    tab.tabIndex = chosen ? 0 : -1;
    $(tab.getAttribute("aria-controls")).hidden = !chosen;
    if (chosen && focus) tab.focus();
  }
  if (location.hash !== "#" + name) history.replaceState(null, "", "#" + name);
  emit("view", name);
}
tabs.forEach((tab, i) => {
  tab.addEventListener("click", () => show(tab.getAttribute("aria-controls")));
  tab.addEventListener("keydown", (event) => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!step) return;
    event.preventDefault();
    show(tabs[(i + step + tabs.length) % tabs.length].getAttribute("aria-controls"), true);
  });
});
on("show", (name) => show(name));

// ---- training controls

const isUnderWay = () => ["loading", "running", "paused"].includes(state.training.state);
const control = (action) => guarded(() => post("/api/control", {action}));

// `save`: "no" for runs that start by themselves.
async function train(save) {
  notify(null);
  state.trained = state.text;
  if (nextSpeed !== null && !isSpeedChosen) {
    $("speed").value = nextSpeed;
    nextSpeed = null;
    await setSpeed();
  }
  await post("/api/train", {text: state.text, name: state.name, save});
}
const trainAndSave = guarded(async () => {
  await train("yes");
  if (!$("model").hidden) show("training");
});
$("train").addEventListener("click", trainAndSave);
// On the Train tab, a change of the model restarts training.
on("check", guarded(async () => {
  state.trained ??= state.text;
  if (!$("training").hidden && state.text !== state.trained) await train("no");
  showStatus();
}));

const kExampleSpeed = "20";  // epochs per second: slow enough to watch
let nextSpeed = null;  // for the next run; null: unchanged
let isSpeedChosen = false;
const setSpeed = () => post("/api/speed", {value: Number($("speed").value)});
$("speed").addEventListener("change", guarded(async () => {
  isSpeedChosen = true;
  await setSpeed();
}));
// The results of the previous model leave the page, except during a run that is saved.
on("opened", (isExample) => {
  nextSpeed = isExample ? kExampleSpeed : "0";
  const {state: now, run} = state.training, isStarted = document.documentElement.dataset.ready;
  if (isStarted && now !== "idle" && !(isUnderWay() && run)) control("reset")();
});

$("pause").addEventListener("click", () => control(state.training.state === "paused" ? "resume" : "pause")());
for (const action of ["step", "stop", "reset"]) $(action).addEventListener("click", control(action));
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) trainAndSave();
});

function showTraining() {
  const {state: now, facts, error, run} = state.training, isRestart = isUnderWay() && run;
  $("train").textContent = isRestart ? "Restart" : "Train and save";
  $("train").title = isRestart ? "End this run and train again from the initial weights (Ctrl+Enter)"
    : "Train from the initial weights and save the run (Ctrl+Enter)";
  $("stop").title = isUnderWay() && !run ? "End the run, which is not saved" : "End the run and save its results";
  $("pause").disabled = now !== "running" && now !== "paused";
  $("pause").textContent = now === "paused" ? "Resume" : "Pause";
  $("step").disabled = now !== "paused";
  $("stop").disabled = !isUnderWay();
  $("reset").disabled = now === "idle" || now === "loading";
  $("arena").textContent = facts.arena_bytes ? bytes(facts.arena_bytes) : "–";
  if (error) notify(error.error);
  else if (facts.warnings?.length) notify(facts.warnings.join("\n"), "warning");
  showStatus();
}

function showStatus() {
  const {state: now, facts} = state.training, other = state.check && facts.model !== state.check.name && facts.model;
  const isEdited = !other && !isUnderWay() && now !== "idle" && state.text !== (state.trained ?? state.text);
  $("state").textContent = capital(isEdited ? "edited" : now === "stopped" ? "interrupted" : now);
  $("state").className = isEdited ? "" : now;
  $("state").title = isEdited ? "The model has changed since the last run" : "";
  $("state").previousElementSibling.textContent = other ? `State of ${other}` : "State";
  if (isEdited) {
    for (const id of ["epoch", "steps", "loss", "validation", "test", "rate"]) $(id).textContent = "–";
    $("progress").firstElementChild.style.width = 0;
    return;
  }
  const last = state.points.at(-1), progress = state.progress, epochs = facts.epochs;
  const fresh = progress && (!last || progress.step > last.step) ? progress : null;
  const epoch = fresh || last ? Math.floor((fresh ?? last).epoch) : undefined;
  // After the run: loss of the saved weights. During it: the latest evaluation, which may be of an earlier epoch.
  const showSplit = (split) => {
    const has = (one) => one[split];
    const point = state.live.findLast(has) ?? state.points.findLast(has), end = state.training.result?.[split]?.loss;
    const isOld = end === undefined && point && epoch !== undefined && Math.floor(epoch) > Math.floor(point.epoch);
    $(split).textContent = short(end ?? point?.[split].loss, 5);
    $(split).previousElementSibling.textContent = `${split === "test" ? "Test" : "Validation"} loss` +
      (isOld ? `, epoch ${short(Math.floor(point.epoch))}` : "");
  };
  $("epoch").textContent = epoch === undefined ? "–" : epochs ? `${short(epoch)} / ${short(epochs)}` : short(epoch);
  $("steps").textContent = short(fresh?.step ?? last?.step);
  $("loss").textContent = short(fresh?.loss ?? state.points.findLast((one) => one.loss !== undefined)?.loss, 5);
  for (const split of ["validation", "test"]) showSplit(split);
  const rate = (isUnderWay() ? progress : last)?.steps_per_second;
  $("rate").textContent = rate ? short(Math.round(rate * (rate < 100 ? 10 : 1)) / (rate < 100 ? 10 : 1)) : "–";
  const share = epochs && epoch !== undefined ? Math.min(100, 100 * (fresh?.epoch ?? epoch) / epochs) : 0;
  $("progress").firstElementChild.style.width = share + "%";
  $("progress").setAttribute("aria-valuenow", Math.round(share));
}

// ---- events

const kMaxLive = 1000;

function add(points) {
  for (const point of points) {
    const last = state.points.at(-1);
    if (last?.step === point.step) state.points.pop();  // the new point has more metrics
    if (!last || point.step >= last.step) state.points.push(point);
  }
  if (state.points.length > 1) state.live = state.live.filter((one) => one.step > state.points.at(-1).step);
  emit("points");
  showStatus();
}

const events = new EventSource("/api/events");
const connected = new Promise((done) => events.addEventListener("hello", done, {once: true}));
events.addEventListener("hello", (event) => {
  const {points, frames, ...training} = JSON.parse(event.data);
  if (isDisconnected) notify(null);
  isDisconnected = false;
  $("train").disabled = false;
  state.training = training;
  state.points = points;
  state.frames = frames;
  $("speed").value = String(training.speed);
  emit("training");
  emit("points");
  emit("frames");
  showTraining();
});
events.addEventListener("state", (event) => {
  state.training = JSON.parse(event.data);
  if (["loading", "idle"].includes(state.training.state)) {
    state.points = [];
    state.progress = null;
    state.live = [];
    state.frames = [];
    if (state.training.state === "loading") notify(null);
    emit("run");
    emit("points");
    emit("frames");
  }
  emit("training");
  showTraining();
});
events.addEventListener("points", (event) => add(JSON.parse(event.data)));
events.addEventListener("frames", (event) => {
  for (const frame of JSON.parse(event.data)) {
    if (state.frames.at(-1)?.step === frame.step) state.frames.pop();  // the last one has the weights of the result
    state.frames.push(frame);
  }
  emit("frames");
});
events.addEventListener("progress", (event) => {
  state.progress = JSON.parse(event.data);
  if (state.progress.loss !== null) state.live.push(state.progress);
  if (state.live.length > kMaxLive) state.live = state.live.filter((_, i) => i % 2 === 0);
  emit("progress");
  showStatus();
});
let isDisconnected = false;
events.addEventListener("error", () => {
  $("state").textContent = "Disconnected";
  $("state").className = "failed";
  for (const id of ["train", "pause", "step", "stop", "reset"]) $(id).disabled = true;
  isDisconnected = true;
  notify(events.readyState !== EventSource.CLOSED ? "No connection to the studio. Retrying…"
    : "The studio has restarted. Open the address that it printed. Your edits stay here until you close this page.");
});

// ---- startup

await connected;
const given = await ask("/api/model");
emit("model", given);
const isNew = given.text.trim() === "" && state.training.state === "idle";
const named = tabs.map((tab) => tab.getAttribute("aria-controls")).find((name) => "#" + name === location.hash);
show(named ?? (isNew || isUnderWay() ? "training" : "model"));
document.documentElement.dataset.ready = "yes";
if (isNew) await guarded(train)("no");
