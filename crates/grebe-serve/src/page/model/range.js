// The vertical range of a lane: set, or fitted to the signal in round steps, without jumping about.

import { step125Up } from "./units.js";

/** @typedef {{bottom: number, top: number}} Range in the lane's unit */

/** The range of a scale that is set. @param {number} perDivision @param {number} position divisions above the middle @returns {Range} */
export function rangeOfScale(perDivision, position) {
  const half = DIVISIONS_VERTICAL / 2;
  return { bottom: (-half - position) * perDivision, top: (half - position) * perDivision };
}

/** Follows a signal: grows at once, shrinks when the signal stayed small for two seconds. */
export class AutoRange {
  /** @type {Range | null} */
  range = null;
  /** Since when the range is larger than needed, and the extremes since then. @type {{since: number, seen: Range} | null} */
  #small = null;

  /**
   * The range to show where `seen` are the extremes at `nowMs`. Differences below `resolution` are noise of the converter.
   * @param {Range | null} seen @param {number} resolution @param {number} nowMs @returns {Range}
   */
  follow(seen, resolution, nowMs) {
    if (!seen) return this.range ?? { bottom: -resolution, top: resolution };
    const fitted = fit(seen, resolution);
    const range = this.range;
    if (!range) return (this.range = fitted);
    if (seen.bottom < range.bottom || seen.top > range.top) {
      this.#small = null;
      const grown = fit(union(range, seen), resolution);
      const isMuchSmaller = height(fitted) < height(grown) * 0.4;
      return (this.range = isMuchSmaller ? fitted : grown);
    }
    if (height(fitted) > height(range) * 0.6) {
      this.#small = null;
      return range;
    }
    this.#small ??= { since: nowMs, seen };
    this.#small.seen = union(this.#small.seen, seen);
    if (nowMs - this.#small.since < SHRINK_AFTER_MS) return range;
    this.range = fit(this.#small.seen, resolution);
    this.#small = null;
    return this.range;
  }
}

/** The smallest range with round borders that holds `seen` with a margin. @param {Range} seen @param {number} resolution @returns {Range} */
function fit(seen, resolution) {
  const tall = Math.max(height(seen), resolution * 8);
  const middle = (seen.bottom + seen.top) / 2;
  // Eighths, so that a range is at most a quarter larger than needed.
  const step = step125Up(tall / 8);
  const bottom = Math.floor((middle - tall * 0.54) / step) * step;
  const top = Math.ceil((middle + tall * 0.54) / step) * step;
  // A signal around zero looks right with zero in the middle.
  if (-bottom > top * 0.6 && -bottom < top / 0.6) {
    const side = Math.max(top, -bottom);
    return { bottom: -side, top: side };
  }
  return { bottom, top };
}

/** @param {Range} range */
const height = (range) => range.top - range.bottom;
/** @param {Range} a @param {Range} b @returns {Range} */
const union = (a, b) => ({ bottom: Math.min(a.bottom, b.bottom), top: Math.max(a.top, b.top) });

/** Divisions of a vertical scale that is set. */
export const DIVISIONS_VERTICAL = 8;
const SHRINK_AFTER_MS = 2000;
