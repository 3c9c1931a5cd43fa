// model.js: the Data & model tab: data, layers, settings, and the text of the model file, which holds all of them.
import {$, ask, askFile, bytes, counted, download, element, guarded, hintOf, labelOf, post, RequestError, notify}
  from "./common.js";
import {examples} from "./examples.js";
import {indexAt, inserted, parsed, withValue, without} from "./json_text.js";
import {on, emit, state} from "./state.js";

const kMaxTable = 30 << 20;  // bytes, limit of a request

// ---- model file

function setText(text) {
  if ($("text").value !== text) $("text").value = text;
  state.text = text;
  showLineNumbers();
  changed();
}

// Line numbers; lines with errors are marked.
function showLineNumbers(bad = new Set()) {
  const lines = state.text.split("\n").length;
  $("gutter").replaceChildren(...Array.from({length: lines}, (_, i) =>
    bad.has(i + 1) ? element("b", {}, `${i + 1}\n`) : `${i + 1}\n`));
  $("gutter").scrollTop = $("text").scrollTop;
}

// Another model: the controls of the previous one disappear, and those of the new one appear after its check.
function setModel(name, text, isExample = false) {
  emit("opened", isExample);
  setName(name);
  for (const id of ["layers", "settings", "quick"]) $(id).replaceChildren();
  setText(text);
}

let timer = 0, checks = 0;
function changed() {
  checks++;  // the response to an earlier text is ignored
  clearTimeout(timer);
  timer = setTimeout(check, 250);
}

async function check() {
  const mine = ++checks;
  if (state.text.trim() === "") return showDiagnostics([]);
  try {
    const answer = await post("/api/check", {text: state.text, name: state.name});
    if (mine !== checks) return;
    state.check = answer;
    showDiagnostics([]);
    showControls();
    emit("check");
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    if (mine !== checks) return;
    if (error.diagnostics.length) showDiagnostics(error.diagnostics); else notify(error);
  }
}

let isNoticed = false;  // the notice has the first error
function showDiagnostics(diagnostics) {
  if (isNoticed) notify(null);
  isNoticed = diagnostics.length > 0 && $("model").hidden;  // an error of a change on the Train tab
  if (isNoticed) notify(`${diagnostics[0].pointer ? `${diagnostics[0].pointer}: ` : ""}${diagnostics[0].message}`);
  showLineNumbers(new Set(diagnostics.map((one) => one.line)));
  if (!diagnostics.length) {
    const check = state.check;
    $("diagnostics").replaceChildren(...(state.text.trim() && check
      ? [element("div", {class: "ok"}, `${check.name}: ${check.parameters.toLocaleString("en")} parameters`)] : []));
    $("diagnostics").hidden = !$("diagnostics").childElementCount;
    return;
  }
  $("diagnostics").hidden = false;
  $("diagnostics").replaceChildren(...diagnostics.map((one) =>
    element("button", {type: "button", onclick: () => select(one)},
      `${one.line ? `${one.line}:${one.column}: ` : ""}${one.pointer ? `${one.pointer}: ` : ""}${one.message}`,
      one.hint ? element("span", {class: "hint"}, `\n${one.hint}`) : null)));
}

function select({line, column}) {
  if (!line) return;
  const at = indexAt(state.text, line, column), text = $("text");
  $("json").open = true;
  text.focus();
  text.setSelectionRange(at, at + 1);
  text.scrollTop = Math.max(0, (line - 6) * parseFloat(getComputedStyle(text).lineHeight));
}

$("text").addEventListener("input", () => setText($("text").value));
$("text").addEventListener("scroll", () => { $("gutter").scrollTop = $("text").scrollTop; });
$("text").addEventListener("keydown", (event) => {  // Tab indents, Escape leaves the editor
  if (event.key === "Escape") $("save").focus();
  if (event.key !== "Tab" || event.shiftKey) return;
  event.preventDefault();
  $("text").setRangeText("  ", $("text").selectionStart, $("text").selectionEnd, "end");
  setText($("text").value);
});

// ---- controls of single settings

const entriesOf = (model) => Array.isArray(model.graph) ? model.graph : [];

// Path of a setting in the model file: "graph.h.units" names the entry h by its name, other parts are keys.
function pathOf(setting, model) {
  const parts = setting.split(".");
  if (parts[0] !== "graph") return parts.map((part) => /^\d+$/.test(part) ? Number(part) : part);
  for (let used = parts.length - 1; used > 1; used--) {
    const name = parts.slice(1, used).join(".");
    const index = entriesOf(model).findIndex((entry) => entry?.name === name);
    if (index >= 0) return ["graph", index, ...parts.slice(used)];
  }
  return null;
}

const valueAt = (model, path) => path.reduce((at, key) => at === undefined || at === null ? undefined : at[key], model);

const asJson = (text) => parsed(text) === undefined ? JSON.stringify(text) : text;

// The text may have changed since the controls were drawn, so they look up their paths when they are used.
const currentModel = () => parsed(state.text) ?? {};
const change = (path, json) => path && setText(withValue(state.text, path, json));
const remove = (path) => path && setText(without(state.text, path));

function control(setting, model) {
  const drawn = pathOf(setting.path, model), path = () => pathOf(setting.path, currentModel());
  if (!drawn) return null;
  const given = valueAt(model, drawn);
  const value = parsed(setting.value) ?? setting.value;
  if (typeof value === "object" && setting.choices.length === 0) return null;
  const shared = {class: given === undefined ? "" : "given", "data-path": setting.path, title: hintOf(setting.path)};
  let input;
  if (setting.choices.length) {
    const choices = setting.choices.includes(String(value)) ? setting.choices : [String(value), ...setting.choices];
    input = element("select", {...shared, onchange: () => changeChoice(path(), input.value, given)},
      ...choices.map((one) => element("option", {value: one}, one)));
    input.value = String(value);
  } else if (typeof value === "boolean") {
    input = element("input",
      {...shared, type: "checkbox", checked: value, onchange: () => change(path(), String(input.checked))});
  } else {
    const isNumber = typeof value === "number";
    input = element("input", {...shared, type: isNumber ? "number" : "text", step: "any", onchange: () => {
      const set = setting.change ?? ((json) => change(path(), json));
      if (input.value !== "") set(isNumber ? input.value : asJson(input.value));
      else if (given !== undefined && typeof drawn.at(-1) === "string") remove(path());  // back to its default
      else input.value = String(value);
    }});
    input.value = String(value);
  }
  const label = setting.label ?? labelOf(setting.path);
  return element("label", {class: "setting"}, element("span", {title: hintOf(setting.path)}, label), input);
}

// Another optimizer keeps the learning rate of {"adam": {"lr": 0.01}}.
function changeChoice(path, name, given) {
  if (given && typeof given === "object" && !Array.isArray(given)) {
    const [attributes] = Object.values(given);
    const kept = attributes?.lr === undefined ? {} : {lr: attributes.lr};
    return change(path, JSON.stringify({[name]: kept}).replace(/":/g, "\": "));
  }
  if (name === "") remove(path);
  else change(path, parsed(name) === undefined ? JSON.stringify(name) : name);
}

const kFirst = ["train.epochs", "train.batch", "train.seed", "train.shuffle", "train.clip_norm"];
const isFirst = (path) => kFirst.includes(path) || path.startsWith("train.optimizer");

function showControls() {
  const model = parsed(state.text);
  if (!model || !state.check) return;
  $("model-name").textContent = state.check.name;
  const settings = state.check.settings;
  const open = new Set([...document.querySelectorAll("#settings details[open]")].map((one) => one.dataset.group));
  const group = (title, rows, isOpen, first = []) => {
    const controls = [...first, ...rows.map((one) => control(one, model)).filter(Boolean)];
    if (!controls.length) return null;
    const made = element("details", {"data-group": title, class: "card"}, element("summary", {}, title),
      element("div", {class: "settings"}, ...controls));
    made.open = isOpen || open.has(title);
    return made;
  };
  const of = (section) => settings.filter((one) => one.path.startsWith(section + ".") && !isFirst(one.path));
  const focused = ["data-path", "aria-label"].find((name) => document.activeElement?.hasAttribute(name));
  const place = focused && `[${focused}="${CSS.escape(document.activeElement.getAttribute(focused))}"]`;
  const tab = document.activeElement?.closest("[role=tabpanel]")?.id;
  $("settings").replaceChildren(...[
    group("Training", settings.filter((one) => isFirst(one.path)), true),
    group("Data", [...splitSettings(model), ...of("data")], true, rowControls(model)),
    transformGroup(model, open),
    group("Loss, memory, precision, evaluation and early stopping", of("train"), false),
    group("Attributes of layers and ops", of("graph"), false),
    group("Parameters and constants", [...of("parameters"), ...of("constants")], false),
    otherNumbers(model, [...settings, ...splitSettings(model)], open),
  ].filter(Boolean));
  showLayers(model);
  showQuick(model);
  if (place) document.querySelector(`#${tab} ${place}`)?.focus();
}

// Settings of the Train tab: what changes the result of an experiment most.
function showQuick(model) {
  const noise = ["data", "source", "random", "columns", "noise", "normal"];
  const quick = [
    valueAt(model, noise) === undefined ? null
      : {path: noise.join("."), label: "Noise", value: String(valueAt(model, noise)), choices: []},
    ...splitSettings(model).slice(0, 1),
    ...["train.batch", "lr", "l2", "train.epochs"].map((name) =>
      state.check.settings.find(({path}) => path === name
        || (/^train\.optimizer\.\w+\./.test(path) && path.endsWith(`.${name}`)))),
  ].filter(Boolean).map((one) => one.path.endsWith(".lr") ? {...one, label: "Initial learning rate"} : one);
  $("quick").replaceChildren(...quick.map((one) => control(one, model)).filter(Boolean));
}

// Fractions of the splits, one control each: the last split (for the last, the first) takes the rest.
function splitSettings(model) {
  const split = model.data?.split;
  if (!Array.isArray(split)) return [];
  const labels = ["Training fraction", "Validation fraction", "Test fraction"];
  return split.map((value, i) => ({path: `data.split.${i}`, label: labels[i], value: String(value), choices: [],
    change: (json) => {
      const shares = split.map((share, k) => k === i ? Number(json) : share);
      const other = i === split.length - 1 ? 0 : split.length - 1;
      const rest = Number((1 - shares.reduce((sum, share, k) => k === other ? sum : sum + share, 0)).toPrecision(12));
      if (rest < 0 || split.length < 2) return change(["data", "split", i], json);  // the check reports the error
      setText(withValue(withValue(state.text, ["data", "split", i], json), ["data", "split", other], String(rest)));
    }}));
}

// Number of rows read from the start of a data file; an empty box means all.
function rowControls(model) {
  const inMemory = ["random", "inline", "grid"];
  return ["source", "train"].filter((part) => model.data?.[part]
    && !inMemory.some((kind) => kind in model.data[part])).map((part) => {
    const path = ["data", part, "range"], name = path.join("."), [first = 0, end = ""] = model.data[part].range ?? [];
    const input = element("input", {type: "number", min: first + 1, step: "1", placeholder: "All", "data-path": name,
      title: name, class: end === "" ? "" : "given",
      onchange: () => setText(input.value === "" ? without(state.text, path)
        : withValue(state.text, path, `[${first}, ${first + Number(input.value)}]`))});
    input.value = end === "" ? "" : end - first;
    return element("label", {class: "setting"}, element("span", {title: name}, "Rows to read"), input);
  });
}

// ---- transforms: a list of steps for each column or input

const kArguments = {scale: 1, class_weight: "balanced"};  // arguments of the transforms that need one
const stepJson = (name) => name in kArguments ? JSON.stringify({[name]: kArguments[name]}).replace(":", ": ")
  : JSON.stringify(name);

function columnsOf(model) {
  const source = model.data?.source ?? model.data?.train ?? {};
  const named = [source.x, source.y].flat().filter((one) => typeof one === "string" && /^[A-Za-z_][\w.]*$/.test(one));
  return [...new Set([...Object.keys(model.data?.transform ?? {}), ...Object.keys(model.inputs ?? {}), ...named])];
}

function transformGroup(model, open) {
  if (!model.data) return null;
  const transforms = () => state.transforms.map((one) => element("option", {value: one}, one));
  const rows = columnsOf(model).map((column) => {
    const path = ["data", "transform", column], steps = model.data.transform?.[column] ?? [];
    const parts = steps.map((step, i) => {
      const name = typeof step === "string" ? step : Object.keys(step)[0];
      const list = element("select", {"aria-label": `transform ${i + 1} of ${column}`,
        onchange: () => list.value !== "" ? change([...path, i], stepJson(list.value))
          : setText(without(state.text, steps.length > 1 ? [...path, i] : path))},
        element("option", {value: ""}, "Remove"), ...transforms());
      list.value = name;
      return list;
    });
    const more = element("select", {"aria-label": `add a transform to ${column}`, onchange: () => {
      if (more.value === "") return;
      if (!model.data.transform) change(["data", "transform"],
        `{${JSON.stringify(column)}: [${stepJson(more.value)}]}`);
      else change(path, JSON.stringify([...steps, parsed(stepJson(more.value))]).replace(/([:,])/g, "$1 "));
    }}, element("option", {value: ""}, "Add transform…"), ...transforms());
    return element("div", {class: "transform"}, element("span", {title: `/data/transform/${column}`}, column),
      element("span", {class: "steps"}, ...parts, more));
  });
  if (!rows.length) return null;
  const made = element("details", {"data-group": "Transforms", class: "card"}, element("summary", {}, "Transforms"),
    element("p", {class: "quiet"},
      "Transforms prepare a column. For example, standardize scales it to mean 0 and standard deviation 1. " +
      "Predictions are in the original units."), ...rows);
  made.open = open.has("Transforms");
  return made;
}

// ---- all other numbers of the file, by JSON pointer

const kMaxNumbers = 200, kLongestList = 16;  // longer lists are data

function otherNumbers(model, settings, open) {
  const known = new Set(settings.map((one) => pathOf(one.path, model)).filter(Boolean).map((path) => path.join("/")));
  const found = [];
  const walk = (value, path) => {
    const isNew = typeof value === "number" && !known.has(path.join("/"));
    if (isNew && found.length < kMaxNumbers) found.push([path, value]);
    if (Array.isArray(value) && value.length > kLongestList
      && value.every((one) => typeof one !== "object" || Array.isArray(one))) return;
    if (!value || typeof value !== "object") return;
    for (const key of Object.keys(value))
      if (key !== "inline") walk(value[key], [...path, Array.isArray(value) ? Number(key) : key]);
  };
  walk(model, []);
  if (!found.length) return null;
  const made = element("details", {"data-group": "All other numbers in the model file", class: "card"},
    element("summary", {}, "All other numbers in the model file"),
    element("div", {class: "settings"}, ...found.map(([path, value]) => {
      const pointer = "/" + path.map((key) => String(key).replace(/~/g, "~0").replace(/\//g, "~1")).join("/");
      const input = element("input", {type: "number", step: "any", class: "given", "data-path": pointer, title: pointer,
        onchange: () => { if (input.value !== "") change(path, input.value); else input.value = String(value); }});
      input.value = String(value);
      return element("label", {class: "setting"}, element("span", {title: pointer}, pointer), input);
    })));
  made.open = open.has("All other numbers in the model file");
  return made;
}

// ---- layers

const kActivations = ["none", "relu", "tanh", "sigmoid", "gelu", "silu", "elu", "softplus"];
const isLayer = (entry) => entry && typeof entry === "object" && entry.op === "dense"
  && typeof entry.units === "number";
const layersOf = (model) => entriesOf(model).filter(isLayer);

// Units, activation and removal of a layer.
function controlsOf(layer, isLast) {
  const path = (...keys) => pathOf(["graph", layer.name, ...keys].join("."), currentModel());
  const set = (count) => {
    units.value = Math.max(1, Math.round(count));
    change(path("units"), units.value);
  };
  const units = element("input", {type: "number", min: "1", step: "1", title: "Number of units (neurons)",
    "aria-label": `units of ${layer.name}`, onchange: () => set(Number(units.value || layer.units))});
  units.value = layer.units;
  const button = (label, text, onclick) =>
    element("button", {type: "button", "aria-label": label, title: label, disabled: isLast, onclick}, text);
  const activation = element("select", {title: "Activation function", "aria-label": `activation of ${layer.name}`,
    onchange: () => activation.value === "none" ? remove(path("activation"))
      : change(path("activation"), JSON.stringify(activation.value))},
    ...[...new Set([...kActivations, layer.activation || "none"])].map((one) => element("option", {value: one}, one)));
  activation.value = layer.activation || "none";
  return [element("b", {}, layer.name),
    element("span", {class: "units"},
      button(`remove a unit from ${layer.name}`, "−", () => set(Number(units.value) - 1)),
      units, button(`add a unit to ${layer.name}`, "+", () => set(Number(units.value) + 1))),
    activation, button(`remove ${layer.name}`, "×", () => removeLayer(layer.name))];
}

// Controls of a layer for the network drawing; null if it is not in the model file.
export function layerControls(name) {
  const layers = layersOf(currentModel()), layer = layers.find((one) => one.name === name);
  if (!layer) return null;
  return layer === layers.at(-1) ? [element("b", {}, name),
    element("button", {type: "button", "aria-label": "add a layer", onclick: addLayer}, "Add layer")]
    : controlsOf(layer, false);
}

function showLayers(model) {
  const layers = layersOf(model);
  const rows = layers.map((layer) => element("div", {class: "layer"}, ...controlsOf(layer, layer === layers.at(-1))));
  if (layers.length) {
    rows.push(element("div", {class: "row"},
      element("button", {type: "button", id: "add-layer", onclick: addLayer}, "Add layer"),
      element("span", {class: "quiet"}, "A new layer is inserted before the output layer.")));
  } else {
    rows.push(element("span", {class: "quiet"},
      "Only dense layers can be edited here. Edit other entries in the model file (JSON)."));
  }
  $("layers").replaceChildren(...rows);
}

function addLayer() {
  const entries = entriesOf(currentModel()), last = layersOf(currentModel()).at(-1);
  const at = entries.findIndex((entry) => entry?.name === last?.name);
  if (!last) return;
  const names = new Set(entries.map((entry) => entry?.name));
  let i = 1;
  while (names.has(`h${i}`)) i++;
  const layer = {name: `h${i}`, op: "dense", inputs: last.inputs, units: 8, activation: "tanh"};
  const text = withValue(state.text, ["graph", at, "inputs"], JSON.stringify([layer.name]));
  setText(inserted(text, ["graph", at],
    JSON.stringify(layer).replace(/([:,])"/g, '$1 "').replace(/":(\d|\[)/g, '": $1').replace(/,(")/g, ", $1")));
}

// Connects the readers of the layer to its input.
function removeLayer(name) {
  const entries = entriesOf(currentModel()), at = entries.findIndex((entry) => entry?.name === name),
    layer = entries[at];
  let text = state.text;
  if (layer) entries.forEach((entry, i) => {
    if (Array.isArray(entry?.inputs) && entry.inputs.includes(name))
      text = withValue(text, ["graph", i, "inputs"],
        JSON.stringify(entry.inputs.map((one) => one === name ? layer.inputs[0] : one)));
  });
  setText(without(text, ["graph", at]));
}

// ---- data

let table = "";

// Decodes UTF-8, or UTF-16 and Windows-1252 as spreadsheets write them. Returns the text and a note.
function decoded(bytes) {
  const mark = bytes[0] << 8 | bytes[1];
  const name = mark === 0xfffe ? "utf-16le" : mark === 0xfeff ? "utf-16be" : "utf-8";
  try {
    return [new TextDecoder(name, {fatal: true}).decode(bytes), ""];
  } catch {
    return [new TextDecoder("windows-1252").decode(bytes), "The file is not UTF-8, so it was read as Windows-1252."];
  }
}

const take = guarded(async (file) => {
  const tooLarge = () => new RequestError({error: `${file.name} is ${bytes(file.size)}, but the limit is ` +
    `${bytes(kMaxTable)}. Copy it to the model's folder and select it under Open table.`});
  if (file.size > kMaxTable) throw tooLarge();
  const [text, note] = decoded(new Uint8Array(await file.arrayBuffer()));
  if (JSON.stringify(text).length > kMaxTable) throw tooLarge();  // JSON escapes line breaks
  offer(await post("/api/data", {name: file.name, text}), note);
}, "data-error");

function offer({name, columns}, note = "") {
  table = name;
  if (![...$("tables").options].some((one) => one.value === name))
    $("tables").append(element("option", {value: name}, name));
  $("tables").value = name;
  $("target").replaceChildren(...columns.map((one) => element("option", {value: one}, one)));
  $("target").value = columns.at(-1);
  $("target-row").hidden = false;
  $("notes").replaceChildren(...[`${name}: ${counted(columns.length, "column")}`, note].filter(Boolean).map((one) =>
    element("li", {}, one)));
  $("create-model").focus();
}
$("tables").addEventListener("change", guarded(async () => {
  if ($("tables").value) offer(await ask(`/api/columns?${new URLSearchParams({table: $("tables").value})}`));
}));

$("file").addEventListener("change", () => $("file").files[0] && take($("file").files[0]));
for (const kind of ["dragover", "dragenter"]) {
  document.addEventListener(kind, (event) => { event.preventDefault(); $("drop").classList.add("over"); });
}
document.addEventListener("dragleave", () => $("drop").classList.remove("over"));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  $("drop").classList.remove("over");
  const file = event.dataTransfer?.files[0];
  if (file) {
    emit("show", "model");
    take(file);
  }
});
$("create-model").addEventListener("click", guarded(async () => {
  const answer = await post("/api/init", {table, target: $("target").value});
  $("notes").replaceChildren(...answer.notes.map((note) => element("li", {}, note)));
  setModel(table.replace(/\.\w+$/, "") + ".json", answer.text);
}));

const openExample = (example) => setModel(example.name + ".json", example.text, true);
for (const id of ["example", "lab-example"]) {
  $(id).replaceChildren(element("option", {value: ""}, "Select…"),
    ...examples.map((one, i) => element("option", {value: String(i)}, one.title)));
  $(id).addEventListener("change", () => { if (examples[$(id).value]) openExample(examples[$(id).value]); });
}
$("models").addEventListener("change", guarded(async () => {
  if ($("models").value) emit("model", await post("/api/open", {name: $("models").value}));
}));

// ---- files

function setName(name) {
  state.name = name;
  const example = examples.findIndex((one) => one.name + ".json" === name);
  for (const id of ["example", "lab-example"]) $(id).value = example < 0 ? "" : String(example);
  $("model-path").textContent = name;
}

function showFiles({models, tables}) {
  const fill = (list, names) =>
    list.replaceChildren(element("option", {value: ""}, names.length ? "Select…" : "None found"),
    ...names.map((one) => element("option", {value: one}, one)));
  fill($("models"), models);
  fill($("tables"), tables);
}

on("model", (model) => {
  state.transforms = model.transforms;
  showFiles(model);
  if (model.text.trim() === "") openExample(examples[0]);
  else setModel(model.name, model.text);
});

async function save(name, over) {
  try {
    const model = await post("/api/save", {name, text: state.text, over});
    setName(name);
    showFiles(model);
  } catch (error) {
    if (error.diagnostics?.[0]?.code !== "studio.exists") throw error;
    if (confirm(`${error.diagnostics[0].message}. Overwrite it?`)) await save(name, "yes");
  }
}
$("save").addEventListener("click", guarded(async () => {
  const name = prompt("Save the model file in this folder as", state.name)?.trim();
  if (name) await save(name.endsWith(".json") ? name : name + ".json", "no");
}));

// Another program may have written the file.
let warned = false;
addEventListener("focus", async () => {
  const model = await ask("/api/model").catch(() => null);
  if (model?.changed && !warned)
    notify(`${model.name} has changed on disk. Select it under Open model to reload it.`, "warning");
  warned = Boolean(model?.changed);
});

$("export-model").addEventListener("click", () =>
  download(state.name, new Blob([state.text], {type: "application/json"})));
$("export-weights").addEventListener("click", guarded(async () => {
  const run = state.training.run.split("/").at(-1) || state.training.facts.model;
  download(`${run}-weights.npz`, await askFile("/api/weights"));
}));
for (const kind of ["c", "onnx"]) {
  $(`export-${kind}`).addEventListener("click", guarded(async () => {
    const name = `${state.training.facts.model}.${kind}`;
    download(name, await askFile(`/api/export?${new URLSearchParams({name})}`));
  }));
}
$("copy-command").addEventListener("click", () => navigator.clipboard?.writeText(state.training.command));
// Notes below the command state where it cannot reproduce the weights.
function commandText({command, state: now, result, changes}) {
  if (!command && !changes.length) return result ? "# this run is not saved: click Train and save for one that is" : "";
  const notes = [];
  const note = command ? "replay applies the same changes" : "this run is not saved, so no command reproduces it";
  if (changes.length) notes.push(`# hyperparameters changed during training: ${note}`);
  const end = now === "stopped" ? `interrupted after step ${result?.steps} with ` : "";
  if (result) notes.push(`# ${end}weights ${result.weights_hash}`);
  return [command, ...notes].filter(Boolean).join("\n");
}
on("training", () => {
  const {command, state: now} = state.training;
  $("command").textContent = commandText(state.training);
  $("command").hidden = !$("command").textContent;
  $("copy-command").disabled = !command;
  const hasWeights = ["running", "paused", "done", "stopped"].includes(now);
  for (const what of ["weights", "c", "onnx"]) $(`export-${what}`).disabled = !hasWeights;
});
