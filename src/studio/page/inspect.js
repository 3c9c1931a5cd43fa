// inspect.js: the Inspect tab: graph, profile, values, memory plan, fused regions, verification.
import {$, ask, bytes, colour, counted, element, guarded, onNight, phaseName, post, prepared, short, style, table, term}
  from "./common.js";
import {on, state} from "./state.js";

const weightsText = ({trained}) => trained ? "current weights"
  : !state.training.run && !state.points.length ? "initial weights"
  : "initial weights (the trained weights do not fit the edited model)";
const rowsText = (answer) =>
  `first ${answer.rows} rows of the ${phaseName(answer.split)} split, ${weightsText(answer)}`;
const hints = (...sentences) => sentences.map((one) => element("p", {class: "quiet"}, one));
// Explanations that open on demand, also with the keyboard.
const explained = (summary, ...sentences) =>
  element("details", {class: "explained"}, element("summary", {}, summary), ...hints(...sentences));
const kColumnsSummary = "About these columns";
const isSeen = () => !$("inspect").hidden;
let version = 0, values = null, plan = null, costs = null, chosen = "", plannedText = "";

// ---- graph: the drawing of `show --svg`, and a button over each node

function showGraph() {
  const graph = state.check?.graph;
  if (!graph || !isSeen()) return;
  if (graph.error) return $("graph").replaceChildren(element("p", {class: "quiet"}, graph.error));
  const picture = element("div", {class: "picture"},
    element("img", {alt: "Computation graph, inputs at the top", src: `/api/graph.svg?version=${++version}`}));
  picture.style.maxWidth = `${graph.width}px`;
  picture.style.minWidth = `${Math.min(graph.width, 0.5 * graph.width + 160)}px`;  // narrower: it scrolls
  picture.style.setProperty("--point", `${100 / graph.width}cqw`);
  for (const box of graph.boxes) {
    const button = element("button", {type: "button", "aria-label": `${box.name} ${box.type} ${box.formula}`,
      "aria-pressed": String(box.name === chosen),
      title: box.name, onclick: (event) => choose(event, box)});
    button.style.left = `${100 * box.x / graph.width}%`;
    button.style.top = `${100 * box.y / graph.height}%`;
    button.style.width = `${100 * box.width / graph.width}%`;
    button.style.height = `${100 * box.height / graph.height}%`;
    const cost = costs?.of(box);
    if (cost) {
      button.append(element("small", {}, costText(cost)));
      button.style.setProperty("--share", Math.round(60 * cost.share) + "%");
      button.setAttribute("aria-label", `${button.getAttribute("aria-label")}, ${costText(cost)}`);
    }
    picture.append(button);
  }
  $("graph").replaceChildren(picture);
  showCosts();
}

// ---- profile: time and memory of each value, and its error against the reference executor

const duration = (seconds) => seconds === 0 ? "–" : seconds < 1e-6 ? `${Math.round(seconds * 1e9)} ns`
  : seconds < 1e-3 ? `${short(seconds * 1e6, 3)} µs` : `${short(seconds * 1e3, 3)} ms`;
const microseconds = (seconds) => seconds === 0 ? "–" : short(seconds * 1e6, 3);
const errorText = (cost) => cost.difference === null ? "not finite" : cost.difference === 0 ? "exact"
  : `error ${short(cost.difference, 2)}`;
const takesTime = (cost) => cost.seconds + cost.back > 0;  // false for inputs
const costText = (cost) =>
  [takesTime(cost) ? duration(cost.seconds + cost.back) : "", bytes(cost.bytes), errorText(cost)]
    .filter(Boolean).join(" · ");
const chosenExecutor = () => $("executor").value;

const profile = guarded(async () => {
  $("profiled").textContent = "Profiling…";
  $("profile").disabled = true;
  try {
    const answer = await ask(`/api/costs?${new URLSearchParams({executor: chosenExecutor()})}`);
    const nodes = new Map(answer.nodes.map((node) => [node.name, node]));
    const gradient = (name) => nodes.get(`${name}:gradient`)?.seconds ?? 0;
    const total = answer.nodes.reduce((sum, node) => sum + node.seconds, 0) || 1;
    costs = {
      of(box) {
        const node = nodes.get(box.name);
        if (!node) return null;
        const back = [box.name, ...box.parameters].reduce((sum, name) => sum + gradient(name), 0);
        return {...node, back, share: (node.seconds + back) / total};
      },
    };
    $("profiled").textContent = `Profile of ${answer.executor}: ${rowsText(answer)}. Each op was timed separately.`;
  } catch (error) {
    $("profiled").textContent = "";
    throw error;
  } finally {
    $("profile").disabled = false;
    showGraph();
  }
});
$("profile").addEventListener("click", profile);
$("executor").addEventListener("change", () => { costs = null; plannedText = ""; showGraph(); loadPlan(); });

function showCosts() {
  const rows = costs ? state.check.graph.boxes.map((box) => [box, costs.of(box)]).filter(([, cost]) => cost) : [];
  rows.sort(([, a], [, b]) => b.share - a.share);
  $("costs").replaceChildren(...rows.length
    ? [table(["Value", "Forward (µs)", "Backward (µs)", "Time (%)", "Size (bytes)", "Stored", "Error",
    term("Error (ulp)", "Error in units in the last place: the gaps between neighbouring 32-bit numbers")],
    rows.map(([box, cost]) =>
      [element("button", {type: "button", onclick: (event) => choose(event, box)}, box.name),
      microseconds(cost.seconds), microseconds(cost.back),
      String(Math.round(100 * cost.share)), cost.bytes.toLocaleString("en"), cost.in_arena ? "yes" : "no",
        short(cost.difference, 3), short(cost.ulp, 2)])),
  explained(kColumnsSummary,
    "Forward: time to compute the value. Backward: time to compute its gradients. Time: both, in percent of the total.",
    "Stored: whether the value is stored in memory. A value that only one region (a group of fused plan steps) uses " +
      "is not stored.",
    "Error: largest difference from the same value in double precision. One ulp (unit in the last place) is the gap " +
      "between neighbouring 32-bit numbers at the largest element of the value.")] : []);
}

// ---- values

async function runBatch() {
  values = await ask(`/api/values?${new URLSearchParams({executor: chosenExecutor()})}`);
}

const choose = guarded(async (event, box) => {
  chosen = box.name;
  for (const button of document.querySelectorAll(".picture button"))
    button.setAttribute("aria-pressed", String(button.title === chosen));
  await runBatch();
  const names = [box.name, ...box.parameters];
  showArrays(names.flatMap((name) => [name, `${name}:gradient`]), `${box.name} = ${box.formula || box.type}`);
});

function statistics(arrays) {
  return table(["Value", "Shape", "Min", "Max", "Mean", term("Std", "Standard deviation"),
    term("Zeros (%)", "Percentage of elements that are 0")], arrays.map((one) => [
    element("button", {type: "button", onclick: () => showPictures(one.name)}, one.name), `(${one.shape.join(", ")})`,
    short(one.min), short(one.max), short(one.mean), short(one.std), short(100 * one.zeros / (one.elements || 1), 3)]));
}

function showArrays(names, title) {
  const arrays = names ? names.map((name) => values.arrays.find((one) => one.name === name)).filter(Boolean)
    : values.arrays;
  $("value").replaceChildren(
    ...hints(`${title || "All values"}: ${rowsText(values)}`),
    element("div", {class: "wide"}, statistics(arrays)), element("div", {id: "value-pictures", class: "pictures"}));
  if (arrays.length) showPictures(arrays[0].name);
}

function showPictures(name) {
  const picture = (as, alt) =>
    element("img", {alt, src: `/api/value.svg?${new URLSearchParams({name, as, version: ++version})}`});
  $("value-pictures").replaceChildren(element("figure", {}, picture("histogram", `Histogram of ${name}`)),
    element("figure", {}, picture("heat", `Heat map of ${name}`)));
}

const runAll = $("run-batch");
runAll.addEventListener("click", guarded(async () => { await runBatch(); showArrays(null, ""); }));

// ---- memory plan, with a cursor over its steps

const kTitles = {parameter: "Parameters", activation: "Intermediate values and gradients", workspace: "Workspace",
  metric: "Sums for metrics", counter: "Step counters", slot: "Optimizer state", data: "Data", constant: "Constants"};
const kKinds = Object.keys(kTitles);
// Name of a buffer in the plan, without its phase; "region 1" for region_1.accumulators.
const valueName = (name) =>
  name.replace(/^(train|predict|evaluate\.\w+)\//, "").replace(/^region_(\d+)\.\w+$/, "region $1");
const kindColour = (kind) => colour([0, 1, 2, 3, 4, 5, 6, 7][Math.max(0, kKinds.indexOf(kind))]);

const loadPlan = guarded(async () => {
  if (!isSeen() || !state.check || plannedText === state.text) return;
  plannedText = state.text;
  plan = await ask(`/api/plan?${new URLSearchParams({executor: chosenExecutor()})}`);
  plan.starts = [];
  plan.steps = 0;
  for (const phase of plan.phases) {
    plan.starts.push(plan.steps);
    plan.steps += Math.max(1, phase.steps.length);
  }
  $("cursor").max = Math.max(0, plan.steps - 1);
  drawPlan();
  showRegions();
});

const isLive = (block, step) => block.from <= step && step < block.to;

function drawPlan() {
  if (!plan || !$("plan").clientWidth) return;
  const {context, width, height} = prepared($("plan")), left = 66, bottom = 26, top = 6,
    step = Number($("cursor").value);
  const passing = plan.blocks.filter((block) => block.to - block.from < plan.steps);
  const low = passing.length ? Math.min(...passing.map((block) => block.offset)) : 0,
    high = Math.max(plan.arena_bytes, low + 1);
  const x = (at) => left + (width - left - 8) * at / plan.steps;
  const y = (at) => height - bottom - (height - bottom - top) * (at - low) / (high - low);
  for (const block of plan.blocks) {
    const y0 = y(block.offset + block.bytes), y1 = y(Math.max(block.offset, low));
    if (block.offset + block.bytes <= low) continue;
    context.globalAlpha = isLive(block, step) ? 1 : 0.45;
    context.fillStyle = kindColour(block.kind);
    context.fillRect(x(block.from), y0, Math.max(1, x(block.to) - x(block.from) - 0.5), Math.max(0.6, y1 - y0 - 0.4));
    if (y1 - y0 > 13 && x(block.to) - x(block.from) > 30) {
      context.globalAlpha = 1;
      context.fillStyle = style("--card");
      context.save();
      context.beginPath(); context.rect(x(block.from), y0, x(block.to) - x(block.from), y1 - y0); context.clip();
      context.fillText(valueName(block.name), x(block.from) + 4, (y0 + y1) / 2 + 4);
      context.restore();
    }
  }
  context.globalAlpha = 1;
  context.fillStyle = style("--quiet");
  context.textAlign = "right";
  for (let i = 0; i <= 4; i++) {
    const at = low + (high - low) * i / 4;
    context.fillText(bytes(Math.round(at), (high - low) / 4), left - 6, y(at) + 4);
  }
  context.textAlign = "left";
  plan.phases.forEach((phase, i) => {
    const end = plan.starts[i + 1] ?? plan.steps;
    context.strokeStyle = style("--line");
    context.beginPath(); context.moveTo(x(plan.starts[i]), top); context.lineTo(x(plan.starts[i]), height - 8);
    context.stroke();
    if (x(end) - x(plan.starts[i]) > 50) context.fillText(phaseName(phase.name), x(plan.starts[i]) + 4, height - 9,
      x(end) - x(plan.starts[i]) - 8);
  });
  context.strokeStyle = style("--ink");
  context.lineWidth = 1.5;
  context.beginPath(); context.moveTo(x(step + 0.5), top); context.lineTo(x(step + 0.5), height - bottom);
  context.stroke();
  const phase = plan.starts.findLastIndex((start) => start <= step);
  const live = plan.blocks.filter((block) => isLive(block, step) && block.to - block.from < plan.steps);
  const total = live.reduce((sum, block) => sum + block.bytes, 0);
  const at = step - plan.starts[phase];
  $("cursor-text").textContent = `Plan step ${at + 1} of ${phaseName(plan.phases[phase]?.name ?? "")}: ` +
    `${valueName(plan.phases[phase]?.steps[at] ?? "none")}. ` +
    `In use: ${bytes(total)}, plus ${bytes(low)} for the whole run.`;
  $("plan-summary").textContent = `Before the run, graphrun reserves the arena: ${bytes(plan.arena_bytes)} for data, ` +
    `parameters, optimizer state and intermediate values. ` +
    `No arrangement of their buffers needs less than ${bytes(plan.lower_bound)}.`;
  $("plan-legend").replaceChildren(...kKinds.filter((kind) =>
    plan.blocks.some((block) => block.kind === kind)).map((kind) => {
    const swatch = element("i");
    swatch.style.background = kindColour(kind);
    const sum = plan.blocks.filter((block) => block.kind === kind).reduce((total, block) => total + block.bytes, 0);
    return element("span", {}, swatch, `${kTitles[kind]} ${bytes(sum)}`);
  }));
  const largest = live.sort((a, b) => b.bytes - a.bytes).slice(0, 8);
  $("live-values").replaceChildren(table(["Buffer", "Kind",
    term("Type and shape", "f32: 32-bit floating-point numbers; i32: 32-bit integers; bool: true or false"),
    "Size (bytes)", term("Offset (bytes)", "Distance from the start of the arena")],
    largest.map((one) => [valueName(one.name), kTitles[one.kind] ?? one.kind, one.kind === "workspace" ? "–" : one.type,
      one.bytes.toLocaleString("en"), one.offset.toLocaleString("en")])));
}
$("cursor").addEventListener("input", drawPlan);
$("plan").addEventListener("pointermove", (event) => {
  if (!plan || event.buttons === 0 && event.pointerType === "mouse" && !event.shiftKey) return;
  const box = $("plan").getBoundingClientRect();
  $("cursor").value = Math.floor((event.clientX - box.left - 66) / (box.width - 74) * plan.steps);
  drawPlan();
});
new ResizeObserver(drawPlan).observe($("plan"));
onNight(drawPlan);

function showRegions() {
  const rows = plan.regions.map((one, i) => [String(i + 1), phaseName(one.phase), String(one.steps),
    one.chains ? `${counted(one.chains, "chain")} of elementwise plan steps`
      : `${counted(one.stages, "stage")}, ${counted(one.row_steps, "per-row step")}`,
    one.tiling.replace(/^tiles of (\d+) rows.*/, "$1 rows at a time"), one.bytes_in_tiles.toLocaleString("en")]);
  const sum = (key) => plan.regions.reduce((total, one) => total + one[key], 0);
  $("fusion-summary").textContent = !rows.length ? "No plan steps are fused."
    : `${sum("steps").toLocaleString("en")} plan steps run as ${counted(rows.length, "region")}. This keeps ` +
      `${bytes(sum("bytes_in_tiles"))} of values out of memory.`;
  $("regions").replaceChildren(...rows.length
    ? [table(["Region", "Phase", "Plan steps", "Structure", "Tiling", "Kept out of memory (bytes)"], rows),
      explained(kColumnsSummary,
        "Structure: a stage is a part of a region. At its end, graphrun combines the sums over all rows. A per-row " +
        "step runs on one tile of rows at a time. A chain is a group of elementwise plan steps that run together, " +
        "element by element.",
        "Tiling: the way in which the work is cut into tiles and distributed to threads. A tile is the rows that a " +
          "region processes at a time. On a GPU, the numbers are those of blocks and threads.",
        "Kept out of memory: size of the values that only this region uses. They stay in registers or in the cache.")]
    : [],
  ...hints(...[...plan.notes, ...plan.fallbacks].map((note) =>
    phaseName(note).replace(/: (a cut|no region|region dissolved): /, " is not fused: "))));
}

// ---- verify

$("verify").addEventListener("click", guarded(async () => {
  $("verified").textContent = "Verifying…";
  try {
    const report = await post("/api/verify", {executor: chosenExecutor()});
    const worst = report.ops[0];
    $("verified").replaceChildren(report.passed
      ? element("p", {}, `Verified: ${report.values.toLocaleString("en")} elements of ` +
        `${counted(report.steps, "training step")} and ${counted(report.evaluation_steps, "evaluation step")}. ` +
          (worst && worst.worst > 0
            ? `Largest error: ${short(100 * worst.worst, 2)} % of the tolerance, in ${worst.node}.`
            : "No differences."))
      : element("pre", {class: "command"}, report.difference),
      element("div", {class: "wide"},
        table(["Op", "Results compared", "Elements compared", "Error (% of tolerance)"], report.ops.map((op) =>
        [op.op, op.steps.toLocaleString("en"), op.values.toLocaleString("en"), short(100 * op.worst, 2)]))),
      ...hints("The tolerance is the largest error that rounding may cause. The table gives the largest error of " +
        "each op. Verification fails above 100 %."));
  } catch (error) {
    $("verified").textContent = "";
    throw error;
  }
}));

on("model", ({executors, executor}) => {
  const names = [...new Set([...executors, ...(executor === "auto" ? [] : [executor])])];
  const before = chosenExecutor();
  $("executor").replaceChildren(...names.map((name) => element("option", {value: name}, name)));
  $("executor").value = before || (names.includes(executor) ? executor : "cpu");
});
// Results of an earlier model or earlier weights.
function clearResults() {
  values = costs = null;
  for (const id of ["profiled", "verified"]) $(id).replaceChildren();
  $("value").replaceChildren(element("p", {class: "quiet"}, "Click a box in the graph to see its value here. "),
    runAll);
}
on("check", () => { clearResults(); showGraph(); loadPlan(); });
on("run", () => { clearResults(); showGraph(); });
on("view", (view) => { if (view === "inspect") { showGraph(); loadPlan().then(drawPlan); } });
