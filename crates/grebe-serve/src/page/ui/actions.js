// What keys and buttons do. The same names and keys as in the window.

import { COMPLEX_PARTS, isSameLane, laneText } from "../data/picture.js";
import { AVERAGES, TRANSFORM_SIZES, TRIGGER_KINDS, TRIGGER_MODES, WEIGHTINGS } from "../model/settings.js";
import { step125Down, step125Up } from "../model/units.js";
import { DIVISIONS_VERTICAL } from "../model/range.js";
import { stepFound } from "./found.js";
import { stepTrigger } from "./triggers.js";

/** @typedef {import("./scope.js").Scope} Scope */

/** @type {Record<string, (scope: Scope) => void>} */
export const ACTIONS = {
  pause({ settings, picture }) {
    if (settings.time.isHeld()) settings.time.release();
    else settings.time.hold(picture, settings.time.rightIndex(picture));
  },
  shorter: ({ settings, picture }) => settings.time.zoom(picture, true, 0.5),
  longer: ({ settings, picture }) => settings.time.zoom(picture, false, 0.5),
  earlier: ({ settings, picture }) => settings.time.pan(picture, -0.5),
  later: ({ settings, picture }) => settings.time.pan(picture, 0.5),
  live: ({ settings }) => settings.time.release(),
  fit({ settings, picture }) {
    settings.time.fit(picture, !picture.isEnded && settings.mode(picture) === "roll");
  },
  zoomToCursors(scope) {
    const { settings, picture } = scope;
    if (!settings.cursors) return scope.say("no cursors to zoom between: switch them on first (c)");
    const { start, span } = scope.axis();
    const [from, to] = settings.cursors.map((time) => (time - start) / span);
    settings.time.showPart(picture, Math.min(from, to), Math.max(from, to));
  },
  measure: toggled("measurements"),
  spectrum: toggled("spectrum"),
  waterfall: toggled("waterfall"),
  channels: toggled("channels"),
  overlay: toggled("overlay"),
  persistence: toggled("persistence"),
  overview: toggled("overview"),
  sinc: toggled("sinc"),
  allChannels: ({ settings }) => settings.hidden.clear(),
  parts({ settings }) {
    // The next choice: the components, what is made of them, all.
    const choices = [["i", "q"], ["magnitude", "phase"], ["db", "frequency"], COMPLEX_PARTS];
    const now = choices.findIndex((parts) => parts.length === settings.parts.size && parts.every((part) => settings.parts.has(/** @type {any} */ (part))));
    settings.parts = new Set(/** @type {any} */ (choices[(now + 1) % choices.length]));
  },
  nextChannel({ settings, picture }) {
    const now = picture.lanes.findIndex(({ lane }) => isSameLane(lane, settings.selectedLane(picture)));
    const next = picture.lanes[(now + 1) % Math.max(picture.lanes.length, 1)];
    if (next) settings.selected = next.lane;
  },
  finer: (scope) => stepScale(scope, step125Down, 0.9),
  coarser: (scope) => stepScale(scope, step125Up, 1.1),
  autoScale: ({ settings, picture }) => Object.assign(settings.own(settings.selectedLane(picture)), { perDivision: null, position: 0 }),
  down: (scope) => shift(scope, -0.5),
  up: (scope) => shift(scope, 0.5),
  invert: ({ settings, picture }) => toggleOwn(settings.own(settings.selectedLane(picture)), "isInverted"),
  coupling: ({ settings, picture }) => toggleOwn(settings.own(settings.selectedLane(picture)), "isAc"),
  triggerMode({ settings, picture }) {
    settings.chooseMode(after(TRIGGER_MODES, settings.mode(picture)));
  },
  single: ({ settings }) => settings.chooseMode("single"),
  triggerKind: ({ settings }) => settings.chooseKind(after(TRIGGER_KINDS, settings.trigger.kind)),
  slope({ settings: { trigger } }) {
    trigger.slope = trigger.slope === "rising" ? "falling" : "rising";
  },
  triggerLane({ settings, picture }) {
    const lanes = picture.lanes.map(({ lane }) => lane);
    const now = lanes.findIndex((lane) => isSameLane(lane, picture.trigger?.lane ?? settings.trigger.lane));
    if (lanes.length > 0) settings.triggerOn(lanes[(now + 1) % lanes.length]);
  },
  levelUp: (scope) => stepLevel(scope, 1),
  levelDown: (scope) => stepLevel(scope, -1),
  levelAuto: ({ settings: { trigger } }) => (trigger.level = null),
  triggerPlace: ({ settings: { trigger } }) => (trigger.position = after([0.1, 0.5, 0.9], trigger.position)),
  holdoffLess: ({ settings, picture }) => settings.stepHoldoff(picture, false),
  holdoffMore: ({ settings, picture }) => settings.stepHoldoff(picture, true),
  lfReject({ settings: { trigger } }) {
    [trigger.isLfReject, trigger.level] = [!trigger.isLfReject, null];
  },
  triggers: toggled("triggers"),
  find(scope) {
    if (!scope.connection.session.canFind) return scope.say("this server cannot search: it is an older one");
    scope.settings.show.find = !scope.settings.show.find;
  },
  // Those of the list that is open.
  triggerBefore: (scope) => stepFound(scope, -1) || stepTrigger(scope, -1),
  triggerBehind: (scope) => stepFound(scope, 1) || stepTrigger(scope, 1),
  nextSource(scope) {
    const { sources } = scope.connection.session;
    if (sources.length < 2) return scope.say("this server shows one source");
    scope.showSource((scope.settings.source % sources.length) + 1);
  },
  cursors(scope) {
    const { start, span } = scope.axis();
    scope.settings.cursors = scope.settings.cursors ? null : [start + span * 0.3, start + span * 0.7];
  },
  otherCursor: ({ settings }) => (settings.cursorAt = 1 - settings.cursorAt),
  cursorLeft: (scope) => moveCursor(scope, -1),
  cursorRight: (scope) => moveCursor(scope, 1),
  cursorFarLeft: (scope) => moveCursor(scope, -10),
  cursorFarRight: (scope) => moveCursor(scope, 10),
  shorterTransform: ({ settings: { spectrum } }) => (spectrum.size = Math.max(spectrum.size / 2, TRANSFORM_SIZES[0])),
  longerTransform: ({ settings: { spectrum } }) => (spectrum.size = Math.min(spectrum.size * 2, TRANSFORM_SIZES[TRANSFORM_SIZES.length - 1])),
  weighting({ settings: { spectrum } }) {
    const names = WEIGHTINGS.map(([name]) => name);
    spectrum.window = after(names, spectrum.window);
  },
  averages: ({ settings: { spectrum } }) => (spectrum.averages = after(AVERAGES, spectrum.averages)),
  peakHold: ({ settings: { spectrum } }) => (spectrum.is_peak_held = !spectrum.is_peak_held),
  theme(scope) {
    scope.settings.theme = scope.theme.isDark ? "light" : "dark";
  },
  link: (scope) => scope.dialogs.openLink(),
  source: (scope) => scope.dialogs.openSource(),
  savePicture: (scope) => scope.savePicture(),
  help: (scope) => scope.dialogs.openHelp(),
};

/** Switches a channel on or off. @param {Scope} scope @param {number} channel from 0 */
export function toggleChannel({ settings }, channel) {
  if (!settings.hidden.delete(channel)) settings.hidden.add(channel);
}

/** The scale of a lane in steps of 1-2-5. @param {Scope} scope @param {(value: number) => number} step @param {number} factor */
export function stepScale({ settings, picture }, step, factor) {
  const lane = settings.selectedLane(picture);
  const range = settings.ranges.get(laneText(lane));
  if (!range) return;
  const own = settings.own(lane);
  if (own.perDivision === null) {
    // What lay in the middle stays there.
    own.perDivision = step125Up((range.top - range.bottom) / DIVISIONS_VERTICAL);
    own.position = -(range.top + range.bottom) / 2 / own.perDivision;
  }
  const middle = own.position * own.perDivision;
  own.perDivision = step(own.perDivision * factor);
  own.position = middle / own.perDivision;
}

/** @param {Scope} scope @param {number} divisions */
function shift(scope, divisions) {
  const { settings, picture } = scope;
  if (settings.own(settings.selectedLane(picture)).perDivision === null) stepScale(scope, step125Up, 1);
  settings.own(settings.selectedLane(picture)).position += divisions;
}

/** @param {Scope} scope @param {number} steps of a fiftieth of the lane's height */
function stepLevel({ settings, picture }, steps) {
  const { trigger } = picture;
  const range = trigger && settings.ranges.get(laneText(trigger.lane));
  if (!trigger || !range) return;
  const scale = picture.description?.channels[trigger.lane.channel]?.scale ?? 1;
  const middle = (trigger.level + trigger.upper) / 2;
  settings.trigger.level = (settings.trigger.level ?? middle) + (steps * (range.top - range.bottom)) / 50 / Math.abs(scale);
}

/** @param {Scope} scope @param {number} steps of a two-hundredth of the screen */
function moveCursor(scope, steps) {
  const { settings } = scope;
  if (settings.cursors) settings.cursors[settings.cursorAt] += (steps * scope.axis().span) / 200;
}

/** @param {keyof import("../model/settings.js").Settings["show"]} part @returns {(scope: Scope) => void} */
function toggled(part) {
  return ({ settings: { show } }) => (show[part] = !show[part]);
}

/** @param {import("../model/setup.js").OwnSetup} own @param {"isInverted" | "isAc"} what */
const toggleOwn = (own, what) => (own[what] = !own[what]);

/** The one behind it, or the first. @template T @param {T[]} all @param {T} now @returns {T} */
const after = (all, now) => all[(all.indexOf(now) + 1) % all.length];
