// state.js: what the page knows, and who wants to hear of it. Parts of the page speak through it, not to each other.

export const state = {
  text: "",            // of the model
  name: "model.json",
  transforms: [],      // their names
  check: null,         // of the text as the studio last checked it: its answer
  training: {state: "idle", number: 0, facts: {}, result: null, error: null, run: "", command: "", numbers: {}, changes: []},
  points: [],          // of the curves
  progress: null,      // between two points
  live: [],            // of it what the curves show until points come
  others: new Map(),   // runs whose curves are drawn too: name to points
};

const listeners = new Map();
export function on(events, f) {
  for (const event of events.split(" ")) listeners.set(event, [...(listeners.get(event) || []), f]);
}
export function emit(event, detail) {
  for (const f of listeners.get(event) || []) f(detail);
}
