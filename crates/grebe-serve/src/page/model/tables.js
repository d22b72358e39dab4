// Tables of numbers beside the traces: measurements, cursors, the trigger's rate.

import { COVERAGE, axisUnit, isSameLane, rateOrOne } from "../data/picture.js";
import { setupOf, valueOf } from "./setup.js";
import { engineering } from "./units.js";

/**
 * @typedef {import("../data/picture.js").Picture} Picture
 * @typedef {import("../data/picture.js").LaneId} LaneId
 * @typedef {Map<string, import("./setup.js").OwnSetup>} Owns
 * @typedef {{title: string, head: string[], rows: {lane: LaneId | null, cells: string[]}[]}} Table
 */

/** One row a lane. @param {Picture} picture @param {Owns} owns @returns {Table | null} */
export function measurementTable(picture, owns) {
  if (picture.measured.length === 0) return null;
  const rows = picture.measured.map(({ lane, values }) => {
    const setup = setupOf(picture, lane, owns);
    const cells = QUANTITIES.map(([name, unit], at) => showQuantity(quantity(values, at, setup.own.isAc), name, unit ?? setup.unit));
    return { lane, cells: [setup.label, ...cells] };
  });
  const { samples, levelSamples } = picture.measured[0];
  const over = (/** @type {number} */ count) => engineering(count / rateOrOne(picture), axisUnit(picture));
  const title = samples === levelSamples ? `of ${over(levelSamples)}` : `of ${over(levelSamples)}, edges of ${over(samples)}`;
  return { title, head: QUANTITIES.map(([name]) => name), rows };
}

/** With AC coupling, without the mean. @param {(number | null)[]} values @param {number} at @param {boolean} isAc */
function quantity(values, at, isAc) {
  const value = values[at];
  if (!isAc || value === null) return value;
  const [name] = QUANTITIES[at];
  if (name === "RMS") return values[QUANTITIES.findIndex(([name]) => name === "AC RMS")];
  return OF_LEVEL.includes(name) ? value - (values[QUANTITIES.findIndex(([name]) => name === "mean")] ?? 0) : value;
}

/** @param {number | null} value @param {string} name @param {string} unit */
function showQuantity(value, name, unit) {
  if (value === null || Number.isNaN(value)) return NOTHING;
  if (unit !== "%") return engineering(value, unit, 4);
  // A prefix before a percent sign means nothing to anybody.
  return Math.abs(value) < 0.01 ? `${(value * 100).toFixed(3)} %` : engineering(value * 100, "%", 4);
}

/** How often the trigger came. @param {Picture} picture @param {Owns} owns @returns {Table | null} */
export function triggerTable(picture, owns) {
  const { trigger } = picture;
  if (!trigger) return null;
  const [unit, isTimed] = [axisUnit(picture), axisUnit(picture) === "s"];
  const { count, mean, deviation, gaps } = trigger.rate;
  const show = (/** @type {number | null} */ value, /** @type {string} */ unit) => (value === null ? NOTHING : engineering(value, unit, 4));
  const rate = mean !== null && mean > 0 ? 1 / mean : null;
  const perMinute = isTimed && rate !== null && rate < 10 ? `${(rate * 60).toFixed(1)} /min` : NOTHING;
  const label = `${setupOf(picture, trigger.lane, owns).label} trigger`;
  const cells = [label, show(rate, isTimed ? "Hz" : "/S"), perMinute, show(mean, unit), show(deviation, unit), `${count}`, `${gaps}`];
  return { title: "", head: ["rate", "a minute", "interval", "σ", "intervals", "across gaps"], rows: [{ lane: trigger.lane, cells }] };
}

/** Times of the cursors, and of each lane what lies there. @param {Picture} picture @param {Owns} owns @param {[number, number] | null} cursors @param {number} reference @returns {Table | null} */
export function cursorTable(picture, owns, cursors, reference) {
  if (!cursors) return null;
  const unit = axisUnit(picture);
  const [a, b] = cursors;
  const exact = (/** @type {number} */ value, /** @type {string} */ unit) => engineering(value, unit, 9);
  const rows = [{ lane: /** @type {LaneId | null} */ (null), cells: ["time", exact(a, unit), exact(b, unit), exact(b - a, unit)] }];
  if (unit === "s" && a !== b) rows.push({ lane: null, cells: ["1/Δ", "", "", exact(1 / Math.abs(b - a), "Hz")] });
  for (const data of picture.lanes) {
    const setup = setupOf(picture, data.lane, owns);
    const texts = cursors.map((time, at) => {
      const sample = data.atCursors[at];
      if (sample !== null) return exact(valueOf(setup, sample), setup.unit);
      const index = reference + time * rateOrOne(picture);
      const column = Math.floor(((index - picture.leftIndex) / picture.spanSamples) * data.min.length);
      if (!(data.min[column] <= data.max[column]) || data.coverage[column] === COVERAGE.outside) return NOTHING;
      const ends = [data.min[column], data.max[column]].map((end) => engineering(valueOf(setup, end), setup.unit));
      if (setup.scale < 0) ends.reverse();
      return ends[0] === ends[1] ? ends[0] : ends.join("…");
    });
    const [from, to] = data.atCursors;
    const apart = from === null || to === null ? NOTHING : exact((to - from) * setup.scale, setup.unit);
    rows.push({ lane: data.lane, cells: [setup.label, ...texts, apart] });
  }
  return { title: "", head: ["A", "B", "B − A"], rows };
}

/** Whether two tables have the same rows and columns: then only their cells differ. @param {Table} a @param {Table} b */
export function isSameShape(a, b) {
  const isSame = (/** @type {LaneId | null} */ x, /** @type {LaneId | null} */ y) => x === y || (x !== null && y !== null && isSameLane(x, y));
  return a.head.join() === b.head.join() && a.rows.length === b.rows.length && a.rows.every((row, at) => isSame(row.lane, b.rows[at].lane));
}

/** In the order in which the server sends them; without a unit: that of the lane. @type {[string, string?][]} */
const QUANTITIES = [
  ["Vpp"], ["min"], ["max"], ["mean"], ["RMS"], ["AC RMS"], ["base"], ["top"], ["frequency", "Hz"], ["period", "s"],
  ["duty", "%"], ["rise", "s"], ["fall", "s"], ["overshoot", "%"], ["+width", "s"], ["-width", "s"],
];
const OF_LEVEL = ["min", "max", "mean", "base", "top"];
const NOTHING = "–";
