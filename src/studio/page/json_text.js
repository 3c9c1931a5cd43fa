// json_text.js: edits single values of a JSON text and preserves the rest. JSON pointers (RFC 6901) address the values.

export function pointerOf(path) {
  return path.map((part) => "/" + String(part).replace(/~/g, "~0").replace(/\//g, "~1")).join("");
}

// {spans: Map of pointer to {start, end, keyStart, kind}}, or null if the text is not JSON.
export function locate(text) {
  const spans = new Map();
  let at = 0;
  const space = () => { while (at < text.length && " \t\r\n".includes(text[at])) at++; };
  const fail = () => { throw new SyntaxError("not JSON"); };
  const string = () => {
    const start = at++;
    while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
    if (at++ >= text.length) fail();
    return JSON.parse(text.slice(start, at));
  };
  const value = (path, keyStart) => {
    space();
    const start = at;
    let kind;
    if (text[at] === "{") {
      kind = "object";
      at++;
      for (space(); text[at] !== "}";) {
        space();
        const begin = at;
        if (text[at] !== '"') fail();
        const key = string();
        space();
        if (text[at++] !== ":") fail();
        value([...path, key], begin);
        space();
        if (text[at] === ",") at++; else if (text[at] !== "}") fail();
      }
      at++;
    } else if (text[at] === "[") {
      kind = "array";
      at++;
      space();
      for (let i = 0; text[at] !== "]"; i++) {
        value([...path, i], undefined);
        space();
        if (text[at] === ",") at++; else if (text[at] !== "]") fail();
        space();
      }
      at++;
    } else if (text[at] === '"') {
      kind = "string";
      string();
    } else {
      kind = "number";
      while (at < text.length && /[-+.\w]/.test(text[at])) at++;
      if (at === start) fail();
    }
    spans.set(pointerOf(path), {start, end: at, keyStart, kind});
  };
  try {
    value([], undefined);
    space();
    return at === text.length ? spans : null;
  } catch {
    return null;
  }
}

export function parsed(text) {
  try { return JSON.parse(text); } catch { return undefined; }
}

const splice = (text, start, end, by) => text.slice(0, start) + by + text.slice(end);

const indentOf = (text, at) => /^[ \t]*/.exec(text.slice(text.lastIndexOf("\n", at - 1) + 1))[0];

// Returns the text with the value at the path replaced, or added to its object.
export function withValue(text, path, json) {
  const spans = locate(text);
  if (!spans) return text;
  const found = spans.get(pointerOf(path));
  if (found) return splice(text, found.start, found.end, json);
  const parentPath = path.slice(0, -1), key = JSON.stringify(path[path.length - 1]);
  const parent = spans.get(pointerOf(parentPath));
  if (!parent) return path.length > 1 ? withValue(text, parentPath, `{${key}: ${json}}`) : text;
  const inside = text.slice(parent.start + 1, parent.end - 1);
  const body = inside.trimEnd();
  const end = parent.start + 1 + body.length;
  const comma = body.trim() === "" ? "" : ",";
  const lines = inside.includes("\n");
  const before = lines ? "\n" + indentOf(text, parent.start) + "  " : comma ? " " : "";
  return splice(text, end, end, comma + before + `${key}: ${json}`);
}

// Returns the text without this array element or object member and its comma.
export function without(text, path) {
  const span = locate(text)?.get(pointerOf(path));
  if (!span) return text;
  let start = span.keyStart ?? span.start, end = span.end;
  const after = /^\s*,\s*/.exec(text.slice(end));
  if (after) end += after[0].length;
  else start = text.slice(0, start).replace(/,?\s*$/, "").length;
  return splice(text, start, end, "");
}

// Returns the text with an array element inserted before that of the path.
export function inserted(text, path, json) {
  const span = locate(text)?.get(pointerOf(path));
  if (!span) return text;
  return splice(text, span.start, span.start, json + ",\n" + indentOf(text, span.start));
}

// Converts the line and column of a diagnostic (from 1, in bytes of UTF-8) to an index into the text.
export function indexAt(text, line, column) {
  let at = 0;
  for (let i = 1; i < line && at >= 0; i++) at = text.indexOf("\n", at) + 1 || text.length;
  let bytes = 1;
  while (bytes < column && at < text.length && text[at] !== "\n") {
    const point = text.codePointAt(at);
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    at += point > 0xffff ? 2 : 1;
  }
  return at;
}
