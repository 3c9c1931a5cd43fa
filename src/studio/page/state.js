// state.js: shared state of the page and its events. The tabs communicate only through them.

export const state = {
  text: "",            // model file
  name: "model.json",
  trained: null,       // model file of the latest run
  transforms: [],      // names of the transforms
  check: null,         // last response of /api/check without errors
  training: {state: "idle", number: 0, facts: {}, result: null, error: null, run: "", command: "", numbers: {},
    changes: [], summary: "", speed: 0},
  points: [],          // curve points, by report
  progress: null,      // latest step
  live: [],            // steps after the last report, drawn until the next one arrives
  frames: [],          // weights of the run, by epoch (replay.js)
  others: new Map(),   // runs selected for comparison: name to points
  names: new Map(),    // their names in legends
};

const listeners = new Map();
export function on(events, f) {
  for (const event of events.split(" ")) listeners.set(event, [...(listeners.get(event) || []), f]);
}
export function emit(event, detail) {
  for (const f of listeners.get(event) || []) f(detail);
}
