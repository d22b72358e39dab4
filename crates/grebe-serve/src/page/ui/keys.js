// The keys for each action: those of the window.

import { toggleChannel } from "./actions.js";

/** @typedef {import("./scope.js").Scope} Scope */

/** Does what a key says; returns whether it means something. @param {Scope} scope @param {KeyboardEvent} event */
export function pressed(scope, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  if (/^[1-8]$/.test(event.key)) {
    scope.do(() => toggleChannel(scope, Number(event.key) - 1));
    return true;
  }
  const action = KEYS[event.key];
  if (!action) return false;
  scope.act(action);
  return true;
}

/** @type {Record<string, string | undefined>} */
const KEYS = {
  " ": "pause", ArrowLeft: "shorter", ArrowRight: "longer", "+": "shorter", "=": "shorter", "-": "longer",
  "[": "earlier", "]": "later", PageUp: "earlier", PageDown: "later", End: "live", Home: "fit", "*": "fit", "|": "zoomToCursors", _: "overview",
  9: "allChannels", "/": "parts", n: "nextChannel", y: "finer", Y: "coarser", u: "autoScale", j: "down", k: "up", i: "invert", a: "coupling",
  o: "overlay", d: "persistence", I: "sinc", l: "channels",
  m: "triggerMode", s: "single", b: "triggerKind", e: "slope", r: "triggerLane", ArrowUp: "levelUp", ArrowDown: "levelDown", 0: "levelAuto",
  p: "triggerPlace", ";": "holdoffLess", ":": "holdoffMore", L: "lfReject", g: "triggers", '"': "find", "{": "triggerBefore", "}": "triggerBehind",
  c: "cursors", x: "otherCursor", ",": "cursorLeft", ".": "cursorRight", "<": "cursorFarLeft", ">": "cursorFarRight", v: "measure",
  f: "spectrum", w: "waterfall", "(": "shorterTransform", ")": "longerTransform", W: "weighting", A: "averages", H: "peakHold",
  S: "savePicture", Z: "link", G: "source", "&": "nextSource", t: "theme", "?": "help", h: "help",
};

/** What the help shows. @type {[string, [string, string][]][]} */
export const KEY_GROUPS = [
  ["time", [
    ["space", "pause / run"], ["← →  + −  wheel", "shorter / longer time span"], ["[ ]  page up/down  drag", "back / forward in time"],
    ["end, double click", "to the newest samples"], ["home  *", "all of the history"], ["|", "zoom to what lies between cursors"],
    ["shift and drag", "zoom to a stretch"], ["_", "strip with all of the history"],
  ]],
  ["channels", [
    ["1 … 8  9", "channel on / off, all on"], ["/", "parts of I and Q"], ["n", "next channel for the keys below"], ["y Y  u", "finer / coarser scale, automatic"],
    ["j k", "trace down / up"], ["i  a", "invert, AC coupling"], ["o  d", "overlay, persistence"], ["I", "line between samples: straight, sin(x)/x"], ["l", "channel panel"],
  ]],
  ["trigger", [
    ["m  s", "roll, auto, normal; single shot"], ["b", "what triggers"], ["e  r", "direction, channel"], ["↑ ↓  0", "level up / down, automatic"],
    ["p", "left, middle, right of the screen"], ["; :  L", "shorter / longer holdoff, LF reject"], ["g  { }", "last triggers, to each"], ['"', "find in all of the history; { } to each"],
  ]],
  ["measure", [["v", "measurements"], ["c", "time cursors"], [", .  < >  x", "move a cursor, far, the other one"]]],
  ["spectrum", [["f  w", "spectrum, waterfall"], ["( )  W", "shorter / longer transform, weighting"], ["A  H", "averages, peak hold"]]],
  ["more", [["S", "save the picture (PNG)"], ["Z", "a link to this view"], ["&", "the next source of this server"], ["G", "generator, receiver, what is kept there"], ["t", "dark / light"], ["?", "this help"]]],
];
