// state.js: shared state of the page and its events. The tabs communicate only through them.

export const state = {
  text: "",            // model file
  name: "model.json",
  transforms: [],      // names of the transforms
  check: null,         // last response of /api/check without errors
  training: {state: "idle", number: 0, facts: {}, result: null, error: null, run: "", command: "", numbers: {}, changes: []},
  points: [],          // curve points, by report
  progress: null,      // latest step
  live: [],            // steps after the last report, drawn until the next one arrives
  others: new Map(),   // runs selected for comparison: name to points
};

const listeners = new Map();
export function on(events, f) {
  for (const event of events.split(" ")) listeners.set(event, [...(listeners.get(event) || []), f]);
}
export function emit(event, detail) {
  for (const f of listeners.get(event) || []) f(detail);
}
