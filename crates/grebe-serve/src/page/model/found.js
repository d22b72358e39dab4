// A search of all of the history: what was asked, and what came of it so far.

import { laneText, rateOrOne } from "../data/picture.js";
import { setupOf } from "./setup.js";
import { DIVISIONS } from "./time.js";

/**
 * @typedef {import("../data/picture.js").Picture} Picture
 * @typedef {{index: number, length: number, lane: import("../data/picture.js").LaneId | null}} FoundEvent
 * @typedef {{number: number, events: FoundEvent[], found: number, searched: number, all: number, ended: string | null}} FoundNews
 */

export class Search {
  /** In the order of the stream. @type {FoundEvent[]} */
  events = [];
  /** All that was found, listed or not. */
  found = 0;
  #searched = 0;
  #all = 0;
  /** Why it is over; `null`: it goes on. @type {string | null} */
  ended = null;

  /** @param {number} number @param {string} words as behind `grebe find --trigger` */
  constructor(number, words) {
    this.number = number;
    this.words = words;
  }

  /** @param {FoundNews} news */
  take({ events, found, searched, all, ended }) {
    // What lasts is found when it ends.
    if (events.length > 0) this.events = [...this.events, ...events].sort((a, b) => a.index - b.index);
    [this.found, this.#searched, this.#all, this.ended] = [found, searched, all, ended];
  }

  /** How far it came, in words. */
  get state() {
    const listed = this.events.length;
    const found = this.found === listed ? `${listed} found` : `${this.found} found, the first ${listed} listed`;
    if (this.ended !== null) return this.#all === 0 ? this.ended : `${found}: ${this.ended}`;
    return this.#all === 0 ? "searching …" : `${found}, ${Math.floor((this.#searched * 100) / this.#all)} % searched …`;
  }
}

/** What would find what triggers now, as it is typed. @param {Picture} picture @param {import("./settings.js").Settings} settings */
export function findWords(picture, settings) {
  const { trigger } = settings;
  const lane = picture.trigger?.lane ?? settings.selectedLane(picture);
  const { scale, dcOffset } = setupOf(picture, lane, settings.owns);
  const data = picture.lanes.find((data) => laneText(data.lane) === laneText(lane));
  const value = (/** @type {number} */ count) => count * scale + dcOffset;
  const counts = data ? [data.min.reduce((a, b) => Math.min(a, b), Infinity), data.max.reduce((a, b) => Math.max(a, b), -Infinity)] : [0, 0];
  const height = Math.abs(value(counts[1]) - value(counts[0]));
  const zero = picture.trigger?.isLfReject ? (data?.mean ?? 0) : 0;
  const [level, upper] = picture.trigger ? [picture.trigger.level + zero, picture.trigger.upper + zero] : [(counts[0] + counts[1]) / 2, (counts[0] + counts[1]) / 2];
  const [low, high] = [Math.min(value(level), value(upper)), Math.max(value(level), value(upper))];
  const isTimed = (picture.stream?.rateHz ?? 0) > 0;
  const division = picture.spanSamples / rateOrOne(picture) / DIVISIONS;
  const words = /** @type {string[]} */ ([trigger.kind]);
  const add = (/** @type {string} */ name, /** @type {string} */ said) => words.push(`--${name} ${said}`);
  if (picture.lanes.length > 1 || lane.part !== "real") add("channel", laneText(lane));
  if (trigger.slope === "falling" && trigger.kind !== "dropout") add("slope", "falling");
  if (trigger.kind === "runt" || trigger.kind === "window") {
    add("low", rounded(low));
    add("high", rounded(high));
  } else add("level", rounded(value(level)));
  if (trigger.kind !== "runt" && height > 0 && Number.isFinite(height)) add("hysteresis", rounded(height / HYSTERESIS_PART));
  const time = (/** @type {number} */ seconds) => `${rounded(seconds * 1e6)}us`;
  if (isTimed && trigger.kind === "pulse") {
    if (trigger.pulseMinS !== null) add("longer", time(trigger.pulseMinS));
    const widest = trigger.pulseMaxS ?? (trigger.pulseMinS === null ? division : null);
    if (widest !== null) add("shorter", time(widest));
  }
  if (isTimed && trigger.kind === "dropout") add("longer", time(trigger.dropoutS ?? division));
  if (isTimed && trigger.holdoffS > 0) add("holdoff", time(trigger.holdoffS));
  return words.join(" ");
}

/** Five digits, as a person types a number. @param {number} value */
const rounded = (value) => String(Number(value.toPrecision(5)));

/** The trigger's own. */
const HYSTERESIS_PART = 16;
