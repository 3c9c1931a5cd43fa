// runs.js: the Runs tab: a table of saved runs to sort and filter, and the runs selected for comparison.
import {$, ask, capital, columnOf, counted, element, guarded} from "./common.js";
import {emit, on, state} from "./state.js";

let runs = {keys: [], rows: []}, sort = {key: -1, down: true};
const kMaxShown = 200;

function metricsFirst({keys, rows, ...rest}) {
  const rank = (i) => /^(train|validation|test)\./.test(keys[i]) ? 0 : 1;
  const order = [...keys.keys()].sort((a, b) => rank(a) - rank(b));
  return {...rest, keys: order.map((i) => keys[i]), rows: rows.map((row) => ({...row, cells: order.map((i) => row.cells[i])}))};
}

// Requests runs until all are read; a response has the runs that the studio could read in time, latest first.
const load = guarded(async () => {
  do {
    runs = metricsFirst(await ask("/api/runs"));
    $("run-dir").textContent = runs.folder ? `${counted(runs.rows.length, "run")} in the folder ${runs.folder}${runs.unread ? `, loading ${runs.unread} more…` : ""}` : "";
    show();
  } while (runs.unread && !$("runs").hidden);
});

function value(row, key) {
  if (key < 0) return row.run;
  const text = row.cells[key], number = Number(text);
  return text === "" ? Infinity : Number.isNaN(number) ? text : number;
}

function show() {
  if (!runs.rows.length) {
    return $("run-table").replaceChildren(element("p", {class: "quiet"},
      "No runs yet. Click Train to create the first run. The studio saves every run, like graphrun train --run-dir."));
  }
  const wanted = $("run-filter").value.trim().toLowerCase();
  const rows = runs.rows.filter((row) => !wanted || [row.run, row.state, ...row.cells].some((cell) => cell.toLowerCase().includes(wanted)));
  rows.sort((a, b) => {
    const x = value(a, sort.key), y = value(b, sort.key);
    const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", {numeric: true});
    return sort.down ? -order : order;
  });
  const names = runs.keys.map(columnOf);  // two columns of the same name keep their keys
  const heading = (name, key) => element("th", {scope: "col", title: runs.keys[key] ?? "", "aria-sort": sort.key === key ? (sort.down ? "descending" : "ascending") : "none"},
    element("button", {type: "button", onclick: () => { sort = {key, down: sort.key === key ? !sort.down : false}; show(); }}, name + (sort.key === key ? (sort.down ? " ↓" : " ↑") : "")));
  const shown = rows.slice(0, kMaxShown);
  const digits = (cell) => cell !== "" && !Number.isNaN(Number(cell)) && cell.length > 9 ? Number(cell).toPrecision(6) : cell;
  $("run-table").replaceChildren(element("table", {},
    element("thead", {}, element("tr", {}, element("th"), heading("Run", -1), element("th", {scope: "col"}, "State"), ...runs.keys.map((key, i) => heading(names.indexOf(names[i]) === names.lastIndexOf(names[i]) ? names[i] : key, i)), element("th"))),
    element("tbody", {}, ...shown.map((row) => {
      const box = element("input", {type: "checkbox", checked: state.others.has(row.run), "aria-label": `plot the curves of ${row.run}`, onchange: () => choose(row.run, box.checked)});
      return element("tr", {class: state.others.has(row.run) ? "selected" : ""}, element("td", {}, box), element("th", {scope: "row"}, row.run), element("td", {class: row.error ? "broken" : "", title: row.error ?? ""}, capital(row.state)),
        ...row.cells.map((cell) => element("td", {title: cell}, digits(cell))),
        element("td", {}, ["done", "interrupted"].includes(row.state) ? element("a", {href: `/api/run-file?run=${encodeURIComponent(row.run)}&file=weights.npz`, download: ""}, "Download weights") : null));
    }))), rows.length > kMaxShown ? element("p", {class: "quiet"},
    `${rows.length - kMaxShown} more runs are not shown. Filter or sort the list to see them.`) : "");
}

// Parses the log of a run into curve points.
function pointsOf(csv) {
  const [heading, ...lines] = csv.trim().split("\n").map((line) => line.split(","));
  return lines.map((cells) => {
    const point = {}, number = (name) => { const cell = cells[heading.indexOf(name)]; return cell === undefined || cell === "" ? undefined : Number(cell); };
    point.epoch = number("epoch");
    point.step = number("step");
    point.loss = number("loss");
    for (const name of heading) {
      const value = number(name);
      if (name.startsWith("validation_") && value !== undefined) (point.validation ??= {})[name.slice("validation_".length)] = value;
    }
    return point;
  });
}

const choose = guarded(async (run, wanted) => {
  if (wanted) {
    const response = await fetch(`/api/run-file?run=${encodeURIComponent(run)}&file=log.csv`);
    if (response.ok) state.others.set(run, pointsOf(await response.text()));
  } else {
    state.others.delete(run);
  }
  show();
  emit("others");
});

$("run-filter").addEventListener("input", show);
on("view", (view) => { if (view === "runs") load(); });
on("training", () => { if (!$("runs").hidden && ["done", "stopped", "failed"].includes(state.training.state)) load(); });
