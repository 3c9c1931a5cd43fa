// curves.js: line chart over epochs on a canvas, with logarithmic axes, zoom and a tooltip.
import {onNight, prepared, short, style} from "./common.js";

const kLeft = 62, kRight = 20, kTop = 10, kBottom = 30;

// About `count` round tick values from low to high, on the scale of the axis. A logarithmic axis has powers of ten;
// with too few of them also their multiples by 2 and 5, and below that evenly spaced round values.
function ticks(low, high, log, count) {
  if (!log) return even(low, high, count);
  const from = Math.floor(low), to = Math.ceil(high);
  for (const digits of [[1], [1, 2, 5]]) {
    const step = digits.length > 1 ? 1 : Math.max(1, Math.ceil((to - from) / count)), made = [];
    for (let power = from; power <= to; power += step) {
      for (const digit of digits) made.push(power + Math.log10(digit));
    }
    const seen = made.filter((one) => one >= low - 1e-9 && one <= high + 1e-9);
    if (seen.length > 2) return seen;
  }
  return even(10 ** low, 10 ** high, count).filter((one) => one > 0).map(Math.log10);
}

function even(low, high, count) {
  const rough = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough * 0.999);
  const made = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9 && made.length < 50; at += step) made.push(at);
  return made;
}

export class Curves {
  constructor(canvas, onZoom) {
    this.canvas = canvas;
    this.onZoom = onZoom;
    this.series = [];  // {name, colour, dash, x: [], y: []}; apart[i]: no evaluation in the epochs before point i
    this.log = {x: false, y: true};
    this.zoom = null;  // {x: [low, high], y: [low, high]} on the scale of each axis
    this.pointer = null;
    this.drag = null;
    this.due = 0;
    this.cursor = undefined;  // epoch of a vertical line
    new ResizeObserver(() => this.draw()).observe(canvas);
    onNight(() => this.draw());
    canvas.addEventListener("pointerdown", (event) => {
      this.drag = {from: this.at(event), to: this.at(event)};
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      this.pointer = this.at(event);
      if (this.drag) this.drag.to = this.pointer;
      this.draw();
    });
    canvas.addEventListener("pointerleave", () => { this.pointer = null; this.draw(); });
    canvas.addEventListener("pointerup", () => this.finishDrag());
    canvas.addEventListener("pointercancel", () => { this.drag = null; this.draw(); });  // the page scrolls
    canvas.addEventListener("dblclick", () => this.setZoom(null));
    canvas.addEventListener("keydown", (event) => this.onKey(event));
  }

  set(series) { this.series = series; this.draw(); }
  setLog(axis, log) { this.log[axis] = log; this.setZoom(null); }
  setZoom(zoom) { this.zoom = zoom; this.onZoom?.(zoom !== null); this.draw(); }
  at({offsetX: x, offsetY: y}) { return {x, y}; }

  // Keyboard: + and - zoom in x, arrows pan, 0 resets.
  onKey(event) {
    const {x: [low, high]} = this.range(), size = high - low;
    const range = this.zoom || this.range();
    const to = (x) => { event.preventDefault(); this.setZoom({...range, x}); };
    if (event.key === "+") to([low + size / 4, high - size / 4]);
    if (event.key === "-") to([low - size / 2, high + size / 2]);
    if (event.key === "ArrowLeft") to([low - size / 8, high - size / 8]);
    if (event.key === "ArrowRight") to([low + size / 8, high + size / 8]);
    if (event.key === "0") this.setZoom(null);
  }

  finishDrag() {
    const {from, to} = this.drag || {};
    this.drag = null;
    if (!from || Math.abs(from.x - to.x) < 6 || !this.frame) return this.draw();
    const {px, py} = this.frame;
    const tall = Math.abs(from.y - to.y) > 12;
    const pair = (a, b) => [Math.min(a, b), Math.max(a, b)];
    this.setZoom({x: pair(px(from.x), px(to.x)), y: tall ? pair(py(from.y), py(to.y)) : (this.zoom || this.range()).y});
  }

  scale(axis, value) { return this.log[axis] ? (value > 0 ? Math.log10(value) : NaN) : value; }

  range() {
    if (this.zoom) return this.zoom;
    const range = {x: [Infinity, -Infinity], y: [Infinity, -Infinity]};
    for (const one of this.series) {
      for (let i = 0; i < one.x.length; i++) {
        const x = this.scale("x", one.x[i]), y = this.scale("y", one.y[i]);
        if (!Number.isFinite(x) || !Number.isFinite(y)) continue;
        range.x[0] = Math.min(range.x[0], x); range.x[1] = Math.max(range.x[1], x);
        range.y[0] = Math.min(range.y[0], y); range.y[1] = Math.max(range.y[1], y);
      }
    }
    for (const axis of ["x", "y"]) {
      const [low, high] = range[axis];
      if (!(low <= high)) range[axis] = [0, 1];
      else if (low === high) range[axis] = [low - 0.5, high + 0.5];
    }
    const margin = (range.y[1] - range.y[0]) * 0.05;
    range.y = [range.y[0] - margin, range.y[1] + margin];
    return range;
  }

  draw() {
    if (this.due) return;
    this.due = requestAnimationFrame(() => { this.due = 0; this.paint(); });
  }

  paint() {
    if (!this.canvas.clientWidth) return;
    const {context, width, height} = prepared(this.canvas);
    const {x: [x0, x1], y: [y0, y1]} = this.range();
    const wide = width - kLeft - kRight, tall = height - kTop - kBottom;
    const sx = (x) => kLeft + wide * (x - x0) / (x1 - x0), sy = (y) => kTop + tall * (1 - (y - y0) / (y1 - y0));
    this.frame = {px: (x) => x0 + (x - kLeft) / wide * (x1 - x0), py: (y) => y0 + (1 - (y - kTop) / tall) * (y1 - y0)};
    const ink = style("--ink"), quiet = style("--quiet"), line = style("--line");
    // Enough digits to distinguish adjacent ticks.
    const named = (axis, value, all) => {
      const shown = (one) => this.log[axis] ? 10 ** one : Number(one.toPrecision(12));
      const [number, next] = [value, all[1] ?? value].map(shown);
      const apart = Math.abs(next - (this.log[axis] ? 10 ** all[0] : all[0])) || Math.abs(number);
      return short(number, Math.min(12, Math.max(3, Math.ceil(Math.log10(Math.abs(number) / apart || 1)) + 1)))
        .replace(/\.?0+e/, "e");
    };
    context.lineWidth = 1;
    context.fillStyle = quiet;
    context.strokeStyle = line;
    context.textAlign = "center";
    const across = ticks(x0, x1, this.log.x, Math.max(2, wide / 90)), up = ticks(y0, y1, this.log.y, 6);
    for (const tick of across) {
      context.fillText(named("x", tick, across), sx(tick), height - kBottom + 16);
      context.beginPath(); context.moveTo(sx(tick), kTop); context.lineTo(sx(tick), height - kBottom); context.stroke();
    }
    context.textAlign = "right";
    for (const tick of up) {
      context.fillText(named("y", tick, up), kLeft - 7, sy(tick) + 4);
      context.beginPath(); context.moveTo(kLeft, sy(tick)); context.lineTo(width - kRight, sy(tick)); context.stroke();
    }
    context.textAlign = "end";
    context.fillText("Epoch", width - kRight, height - 3);
    context.save();
    context.beginPath();
    context.rect(kLeft, kTop, wide, tall);
    context.clip();
    let shown = 0;
    for (const one of this.series) {
      context.strokeStyle = one.colour;
      context.lineWidth = one.width || 1.6;
      context.setLineDash(one.dash || []);
      context.beginPath();
      let pen = false, drawn = 0, last = null;
      const marks = [];
      for (let i = 0; i < one.x.length; i++) {
        if (one.y[i] === undefined) continue;  // not evaluated: the line continues
        const x = sx(this.scale("x", one.x[i])), y = sy(this.scale("y", one.y[i]));
        if (!Number.isFinite(x) || !Number.isFinite(y)) { pen = false; continue; }
        if (pen && !one.apart?.[i]) context.lineTo(x, y); else context.moveTo(x, y);
        pen = true; drawn++; last = [x, y];
        if (one.apart) marks.push(last);
      }
      context.stroke();
      shown += drawn;
      if (drawn === 1) marks.push(last);
      context.fillStyle = one.colour;
      const radius = marks.length > 40 ? 1.5 : 3;
      for (const [x, y] of marks) { context.beginPath(); context.arc(x, y, radius, 0, 7); context.fill(); }
    }
    context.setLineDash([]);
    if (this.cursor !== undefined) {
      const x = sx(this.scale("x", this.cursor));
      context.strokeStyle = ink;
      context.beginPath(); context.moveTo(x, kTop); context.lineTo(x, kTop + tall); context.stroke();
    }
    context.restore();
    if (!shown) {
      context.textAlign = "center";
      context.fillStyle = quiet;
      context.font = "13px system-ui, sans-serif";
      const any = this.series.some((one) => one.y.some(Number.isFinite));
      this.message = any ? "No positive values to show on a logarithmic axis."
        : "No data yet. Click Train and save to start a run.";
      context.fillText(this.message, kLeft + wide / 2, kTop + tall / 2);
    } else {
      this.message = "";
    }
    if (this.drag) {
      context.fillStyle = style("--accent") + "22";
      const {from, to} = this.drag;
      context.fillRect(Math.min(from.x, to.x), kTop, Math.abs(from.x - to.x), tall);
    } else if (this.pointer && this.pointer.x > kLeft) this.drawTooltip(context, sx, ink, line, width, tall);
  }

  // Tooltip: value of each series at the epoch nearest to the pointer.
  drawTooltip(context, sx, ink, line, width, tall) {
    const lines = [];
    let place = null;
    for (const one of this.series) {
      if (one.isBehind) continue;
      let best = -1, distance = Infinity;
      for (let i = 0; i < one.x.length; i++) {
        const away = Math.abs(sx(this.scale("x", one.x[i])) - this.pointer.x);
        if (one.y[i] !== undefined && away < distance) { best = i; distance = away; }
      }
      if (best < 0) continue;
      place ??= one.x[best];
      lines.push([one.colour, `${one.name}  ${short(one.y[best], 5)}`]);
    }
    if (place === null) return;
    const x = sx(this.scale("x", place));
    context.strokeStyle = ink;
    context.globalAlpha = 0.4;
    context.beginPath(); context.moveTo(x, kTop); context.lineTo(x, kTop + tall); context.stroke();
    context.globalAlpha = 1;
    lines.unshift([ink, `Epoch ${short(place)}`]);
    const wide = Math.max(...lines.map(([, text]) => context.measureText(text).width)) + 16;
    const high = lines.length * 15 + 8;
    const left = x + wide + 16 > width ? x - wide - 10 : x + 10;
    context.fillStyle = style("--card");
    context.strokeStyle = line;
    context.beginPath(); context.rect(left, kTop + 6, wide, high); context.fill(); context.stroke();
    context.textAlign = "left";
    lines.forEach(([tint, text], i) => {
      context.fillStyle = tint;
      context.fillText(text, left + 8, kTop + 21 + i * 15);
    });
  }
}
