// Which stretch of time is shown, and where time counts from.

import { axisUnit, rateOrOne, rightIndex } from "../data/picture.js";
import { step125Down, step125Up, stepTimeDown, stepTimeUp } from "./units.js";

/** @typedef {import("../data/picture.js").Picture} Picture */

export class TimeAxis {
  /** In units of the axis; `null` leaves the choice to the scope. @type {number | null} */
  span = null;
  /** The right edge, as a sample index, while the picture is held. @type {number | null} */
  heldAt = null;
  /** The sample index that time was counted from when the picture was held. */
  #reference = 0;
  /** The trigger that it is held at. @type {number | null} */
  #trigger = null;

  isHeld() {
    return this.heldAt !== null;
  }

  release() {
    this.heldAt = this.#trigger = null;
  }

  /** Holds the picture at a trigger, `position` of the screen (0 left edge, 1 right edge) before it. @param {Picture} picture @param {number} at @param {number} position */
  holdTrigger(picture, at, position) {
    this.heldAt = at + (1 - position) * this.spanSamples(picture);
    this.#reference = this.#trigger = at;
  }

  /** The trigger that the screen stands at. @param {Picture} picture */
  shownTrigger(picture) {
    return this.isHeld() ? this.#trigger : (picture.trigger?.at ?? null);
  }

  /** Holds the right edge at a sample index, within a screen of what there is. @param {Picture} picture @param {number} index */
  hold(picture, index) {
    if (!this.isHeld()) this.#reference = this.reference(picture);
    this.#trigger = null;
    const margin = this.spanSamples(picture) * 0.5;
    const { oldestIndex: oldest, nextIndex: next } = picture;
    this.heldAt = Math.max(Math.min(index, next + margin), oldest + Math.min(margin, next - oldest));
  }

  /** Shows a right edge that came from elsewhere: a link. @param {number} index */
  holdAt(index) {
    this.heldAt = index;
    this.#reference = index;
    this.#trigger = null;
  }

  /** Moves by a part of the screen, to the right where positive; holds the picture. @param {Picture} picture @param {number} part */
  pan(picture, part) {
    this.hold(picture, this.rightIndex(picture) + part * this.spanSamples(picture));
  }

  /**
   * Goes to the next step of 1-2-5; what lies at `at` (0 left edge, 1 right edge) stays there where the picture is held.
   * @param {Picture} picture @param {boolean} isShorter @param {number} at
   */
  zoom(picture, isShorter, at) {
    const span = this.spanOr(picture);
    const rate = picture.stream?.rateHz ?? 0;
    this.#zoomTo(picture, isShorter ? shorterSpan(span, rate) : longerSpan(span, rate), at);
  }

  /** By any factor, as two fingers say; `settle` then rounds it. @param {Picture} picture @param {number} factor @param {number} at */
  stretch(picture, factor, at) {
    const least = 10 / (picture.stream && picture.stream.rateHz > 0 ? picture.stream.rateHz : 1);
    this.#zoomTo(picture, Math.min(Math.max(this.spanOr(picture) * factor, least), SPAN_MAX), at);
  }

  /** Rounds a span that fingers left to two digits. @param {Picture} picture */
  settle(picture) {
    if (this.span !== null) this.span = fittedSpan(this.span, picture.stream?.rateHz ?? 0);
  }

  /** @param {Picture} picture @param {number} span @param {number} at */
  #zoomTo(picture, span, at) {
    const fixed = this.rightIndex(picture) - (1 - at) * this.spanSamples(picture);
    this.span = span;
    if (this.isHeld()) this.hold(picture, fixed + (1 - at) * this.spanSamples(picture));
  }

  /** Shows all of the history. @param {Picture} picture @param {boolean} isFollowed */
  fit(picture, isFollowed) {
    const samples = picture.nextIndex - picture.oldestIndex;
    if (!(samples > 0)) return;
    this.span = fittedSpan(samples / rateOrOne(picture), picture.stream?.rateHz ?? 0);
    if (isFollowed && !this.isHeld()) this.release();
    else this.hold(picture, picture.nextIndex);
  }

  /** Shows a part of the screen (0 left edge, 1 right edge) in its middle; holds. @param {Picture} picture @param {number} from @param {number} to */
  showPart(picture, from, to) {
    const samples = this.spanSamples(picture);
    const right = this.rightIndex(picture);
    const middle = right - (1 - (from + to) / 2) * samples;
    this.hold(picture, right);
    this.span = fittedSpan((Math.abs(to - from) * samples) / rateOrOne(picture), picture.stream?.rateHz ?? 0);
    this.showAt(picture, middle);
  }

  /** Shows a sample index in the middle; holds the picture. @param {Picture} picture @param {number} index */
  showAt(picture, index) {
    this.hold(picture, index + this.spanSamples(picture) / 2);
  }

  /** The right edge as it is set: the picture may be older than the setting. @param {Picture} picture */
  rightIndex(picture) {
    return this.heldAt ?? rightIndex(picture);
  }

  /** @param {Picture} picture */
  spanSamples(picture) {
    return this.span === null ? picture.spanSamples : this.span * rateOrOne(picture);
  }

  /** @param {Picture} picture */
  spanOr(picture) {
    return this.span ?? picture.spanSamples / rateOrOne(picture);
  }

  /** The sample index that time counts from: the trigger, else the newest sample. @param {Picture} picture */
  reference(picture) {
    if (this.isHeld()) return this.#reference;
    return picture.trigger?.at ?? rightIndex(picture);
  }

  /** What the screen shows as it is set: the first sample index, and how many. @param {Picture} picture */
  shown(picture) {
    const samples = this.spanSamples(picture);
    if (this.isHeld()) return { left: this.rightIndex(picture) - samples, samples };
    const at = picture.trigger?.at;
    if (samples === picture.spanSamples || at === null || at === undefined) {
      return { left: rightIndex(picture) - samples, samples };
    }
    // A trigger keeps its place on the screen.
    const part = (at - picture.leftIndex) / picture.spanSamples;
    return { left: at - part * samples, samples };
  }
}

/** The next shorter span, at least 10 samples. Divisions of a minute and more are those of a clock. @param {number} span @param {number} rateHz */
function shorterSpan(span, rateHz) {
  const shorter = span * 0.9;
  const isLong = rateHz > 0 && shorter >= LONG_SPAN_S;
  const stepped = isLong ? DIVISIONS * stepTimeDown(shorter / DIVISIONS) : step125Down(shorter);
  return Math.max(stepped, step125Up(10 / (rateHz > 0 ? rateHz : 1)));
}

/** @param {number} span @param {number} rateHz */
function longerSpan(span, rateHz) {
  const longer = span * 1.1;
  const isLong = rateHz > 0 && longer > LONGEST_PLAIN_SPAN_S;
  return Math.min(isLong ? DIVISIONS * stepTimeUp(longer / DIVISIONS) : step125Up(longer), SPAN_MAX);
}

/** Rounded up to two digits, at least ten samples. @param {number} span @param {number} rateHz */
export function fittedSpan(span, rateHz) {
  const least = 10 / (rateHz > 0 ? rateHz : 1);
  const value = Math.max(span, least);
  const exponent = Math.floor(Math.log10(value)) - 1;
  const digits = Math.ceil(value / 10 ** exponent - 1e-6);
  return Math.min(Number(`${digits}e${exponent}`), SPAN_MAX);
}

/** Spans that take half a second can be followed by eye; shorter ones are held by a trigger. @param {Picture} picture @param {number} span */
export const isSlow = (picture, span) => span >= ROLL_SPAN_S || axisUnit(picture) !== "s";

/** Divisions of the time axis. */
export const DIVISIONS = 10;
const ROLL_SPAN_S = 0.5;
const SPAN_MAX = 1e13;
/** Of divisions of a minute, and what comes before it. */
const LONG_SPAN_S = 600;
const LONGEST_PLAIN_SPAN_S = 500;
