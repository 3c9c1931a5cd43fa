// runs.js: the Runs tab: a table of saved runs to sort and filter, and the runs selected for comparison.
import {$, ask, capital, columnOf, counted, element, guarded} from "./common.js";
import {emit, on, state} from "./state.js";

let runs = {keys: [], rows: []}, sort = {key: -1, down: true};
const kMaxShown = 200;

const isMetric = (key) => /^(train|validation|test)\./.test(key);
function metricsFirst({keys, rows, ...rest}) {
  const order = [...keys.keys()].sort((a, b) => isMetric(keys[b]) - isMetric(keys[a]));
  return {...rest, keys: order.map((i) => keys[i]),
    rows: rows.map((row) => ({...row, cells: order.map((i) => row.cells[i])}))};
}

// Requests runs until all are read; a response has the runs that the studio could read in time, latest first.
const load = guarded(async () => {
  do {
    runs = metricsFirst(await ask("/api/runs"));
    const more = runs.unread ? `, loading ${runs.unread} more…` : "";
    $("run-dir").textContent = runs.folder ? `${counted(runs.rows.length, "run")} in the folder ${runs.folder}${more}`
      : "";
    showColumns();
    show();
  } while (runs.unread && !$("runs").hidden);
});

// ---- columns: the browser remembers the hidden ones

const kHidden = "graphrun.hidden-columns";
const hidden = new Set(JSON.parse(localStorage.getItem(kHidden) ?? "[]"));
function showColumns() {
  $("run-columns").replaceChildren(...runs.keys.map((key) => element("label", {title: key},
    element("input", {type: "checkbox", checked: !hidden.has(key), value: key}), columnName(key))));
}
$("run-columns").addEventListener("change", ({target}) => {
  if (target.checked) hidden.delete(target.value); else hidden.add(target.value);
  localStorage.setItem(kHidden, JSON.stringify([...hidden]));
  show();
});
// Two columns of the same name keep their keys.
const columnName = (key) => runs.keys.filter((one) => columnOf(one) === columnOf(key)).length > 1 ? key : columnOf(key);

// ---- table

function value(row, key) {
  if (key < 0) return row.run;
  const text = row.cells[key], number = Number(text);
  return text === "" ? Infinity : Number.isNaN(number) ? text : number;
}

function heading(name, key) {
  const isSorted = sort.key === key, arrow = !isSorted ? "" : sort.down ? " ↓" : " ↑";
  const by = () => { sort = {key, down: isSorted && !sort.down}; show(); };
  return element("th", {scope: "col", title: runs.keys[key] ?? "",
    "aria-sort": !isSorted ? "none" : sort.down ? "descending" : "ascending"},
  element("button", {type: "button", onclick: by}, name + arrow));
}

const digits = (cell) => cell !== "" && !Number.isNaN(Number(cell)) && cell.length > 9 ? Number(cell).toPrecision(6)
  : cell;
function rowOf(row, shown) {
  const isChosen = state.others.has(row.run);
  const box = element("input", {type: "checkbox", checked: isChosen, "aria-label": `plot the curves of ${row.run}`,
    onchange: (event) => choose(event, row.run, box.checked)});
  const weights = `/api/run-file?run=${encodeURIComponent(row.run)}&file=weights.npz`;
  return element("tr", {class: isChosen ? "selected" : ""}, element("td", {}, box),
    element("th", {scope: "row"}, state.names.get(row.run) ?? row.run),
    element("td", {class: row.error ? "broken" : "", title: row.error ?? ""}, capital(row.state)),
    ...shown.map((i) => element("td", {title: row.cells[i]}, digits(row.cells[i]))),
    element("td", {}, ["done", "interrupted"].includes(row.state)
      ? element("a", {href: weights, download: ""}, "Download weights") : null));
}

function show() {
  if (!runs.rows.length) {
    return $("run-table").replaceChildren(element("p", {class: "quiet"},
      "No saved runs yet. Click Train and save to create the first one, as graphrun train --run-dir does."));
  }
  const wanted = $("run-filter").value.trim().toLowerCase();
  const has = (cell) => cell.toLowerCase().includes(wanted);
  const rows = runs.rows.filter((row) => !wanted || [row.run, row.state, ...row.cells].some(has));
  rows.sort((a, b) => {
    const x = value(a, sort.key), y = value(b, sort.key), areNumbers = typeof x === "number" && typeof y === "number";
    const order = areNumbers ? x - y : String(x).localeCompare(String(y), "en", {numeric: true});
    return sort.down ? -order : order;
  });
  const shown = [...runs.keys.keys()].filter((i) => !hidden.has(runs.keys[i]));
  $("run-table").replaceChildren(element("table", {},
    element("thead", {}, element("tr", {}, element("th"), heading("Run", -1), element("th", {scope: "col"}, "State"),
      ...shown.map((i) => heading(columnName(runs.keys[i]), i)), element("th"))),
    element("tbody", {}, ...rows.slice(0, kMaxShown).map((row) => rowOf(row, shown)))),
  rows.length > kMaxShown ? element("p", {class: "quiet"},
    `${rows.length - kMaxShown} more runs are not shown. Filter or sort the list to see them.`) : "");
}

// ---- chosen runs: their curves, and names by what differs between them

// Parses the log of a run into curve points.
function pointsOf(csv) {
  const [heading, ...lines] = csv.trim().split("\n").map((line) => line.split(","));
  return lines.map((cells) => {
    const point = {}, number = (name) => {
      const cell = cells[heading.indexOf(name)];
      return cell === undefined || cell === "" ? undefined : Number(cell);
    };
    point.epoch = number("epoch");
    point.step = number("step");
    point.loss = number("loss");
    for (const name of heading) {
      const value = number(name);
      const metric = name.startsWith("validation_") && value !== undefined && name.slice("validation_".length);
      if (metric) (point.validation ??= {})[metric] = value;
    }
    return point;
  });
}

const isSetting = (key) => !isMetric(key) && !["changes", "steps", "weights_hash"].includes(key);

function nameRuns() {
  const chosen = runs.rows.filter((row) => state.others.has(row.run)), keys = [...runs.keys.keys()];
  const differs = (i) => isSetting(runs.keys[i]) && new Set(chosen.map((row) => row.cells[i])).size > 1;
  for (const row of chosen) {
    const parts = keys.filter(differs).map((i) => `${columnName(runs.keys[i])} ${row.cells[i] || "none"}`);
    state.names.set(row.run, parts.length ? `${row.run} (${parts.join(", ")})` : row.run);
  }
}

const choose = guarded(async (event, run, wanted) => {
  state.others.delete(run);
  state.names.delete(run);
  if (wanted) {
    const response = await fetch(`/api/run-file?run=${encodeURIComponent(run)}&file=log.csv`);
    if (response.ok) state.others.set(run, pointsOf(await response.text()));
  }
  nameRuns();
  show();
  emit("others");
});

$("run-filter").addEventListener("input", show);
on("view", (view) => { if (view === "runs") load(); });
on("training", () => {
  if (!$("runs").hidden && ["done", "stopped", "failed"].includes(state.training.state)) load();
});
