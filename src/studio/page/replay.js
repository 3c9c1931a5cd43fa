// replay.js: the slider over the epochs of a run. It shows the latest frame until the user moves it back.
import {$, short} from "./common.js";
import {emit, on, state} from "./state.js";

let follows = true;

export const shownFrame = () => state.frames[follows ? state.frames.length - 1 : Number($("replay").value)];
export const isReplay = () => !follows;

function show() {
  const last = state.frames.length - 1;
  $("replay-row").hidden = last < 1;
  $("replay").max = Math.max(0, last);
  if (follows) $("replay").value = last;
  $("latest").hidden = follows;
  const frame = shownFrame();
  if (!frame) return;
  const text = `Epoch ${short(frame.epoch)}, step ${short(frame.step)}`;
  $("replay-text").textContent = text;
  $("replay").setAttribute("aria-valuetext", text);
}

function follow(wanted) {
  follows = wanted;
  show();
  emit("frame");
}

$("replay").addEventListener("input", () => follow(Number($("replay").value) === state.frames.length - 1));
$("latest").addEventListener("click", () => { follow(true); $("replay").focus(); });
on("run", () => { follows = true; });
on("frames", () => { show(); emit("frame"); });
