// The traces in their lanes, with axes, losses, the trigger and cursors.

import { axisUnit, isSameLane, rateOrOne } from "../data/picture.js";
import { DIVISIONS_VERTICAL } from "../model/range.js";
import { hueOf } from "../model/setup.js";
import { DIVISIONS } from "../model/time.js";
import { Ticks, engineering } from "../model/units.js";
import { changeWords } from "../model/words.js";
import { drawColumns, drawGrid, drawLosses, drawRuns, yOf } from "./lanes.js";
import { css, mix } from "./theme.js";
import { Pen } from "./pen.js";

/**
 * @typedef {import("../data/picture.js").Picture} Picture
 * @typedef {import("../data/picture.js").LaneId} LaneId
 * @typedef {import("../model/range.js").Range} Range
 * @typedef {import("../model/setup.js").Setup} Setup
 * @typedef {import("./lanes.js").Band} Band
 * @typedef {import("./theme.js").Theme} Theme
 *
 * @typedef {object} Scene what is to be drawn
 * @property {Picture} picture
 * @property {{left: number, samples: number}} shown the stretch of the screen: while a picture is on its way, another than the picture's
 * @property {number} reference the sample index that time counts from
 * @property {{lane: LaneId, setup: Setup, range: Range}[]} lanes
 * @property {number} front the lane that stands in front in an overlay
 * @property {boolean} isOverlay
 * @property {boolean} isSinc
 * @property {(gap: import("../data/picture.js").Gap) => string} placeOf where the samples of a gap were lost
 * @property {import("./density.js").Densities} densities of all triggers, in place of traces
 * @property {boolean} isPale what is seen is old, or on its way
 * @property {[number, number] | null} cursors
 * @property {number} cursorAt
 * @property {{x: number, y: number} | null} pointer in device pixels
 * @property {{from: number, to: number} | null} box a part of the width that is being chosen
 * @property {Theme} theme
 * @property {number} pixelRatio
 *
 * @typedef {object} Placed where things are, in device pixels: for pointers and for what stands over the canvas
 * @property {Band} area of all lanes
 * @property {{lane: LaneId, band: Band, division: number}[]} lanes
 * @property {number | null} triggerX
 * @property {{lane: LaneId, y: number, band: Band} | null} level
 * @property {number[]} cursorXs
 */

/** @param {number} width @param {number} height device pixels @param {number} pixelRatio @returns {Band} */
export function plotArea(width, height, pixelRatio) {
  const px = (/** @type {number} */ css) => Math.round(css * pixelRatio);
  const left = px(width / pixelRatio < NARROW ? GUTTER_NARROW : GUTTER);
  return {
    x: left,
    y: px(MARGIN_TOP),
    width: Math.max(width - left - px(MARGIN_RIGHT), 1),
    height: Math.max(height - px(MARGIN_TOP) - px(AXIS_HEIGHT), 1),
  };
}

/** @param {CanvasRenderingContext2D} ctx @param {Scene} scene @returns {Placed} */
export function drawPlot(ctx, scene) {
  const { theme, picture, pixelRatio } = scene;
  const { width, height } = ctx.canvas;
  const area = plotArea(width, height, pixelRatio);
  const pen = new Pen(ctx, pixelRatio);
  ctx.clearRect(0, 0, width, height);
  const rate = rateOrOne(picture);
  const start = (scene.shown.left - scene.reference) / rate;
  const span = scene.shown.samples / rate;
  const ticks = new Ticks(start, start + span, span / DIVISIONS);
  const divisions = ticks.values().map((value) => (value - start) / span);
  const stretch = {
    offset: (picture.leftIndex - scene.shown.left) / scene.shown.samples,
    width: picture.spanSamples / scene.shown.samples,
  };
  const count = scene.isOverlay ? 1 : Math.max(scene.lanes.length, 1);
  const gap = Math.round(LANE_GAP * pixelRatio);
  const bandOf = (/** @type {number} */ place) => {
    const from = Math.round((area.height * place) / count);
    const to = Math.round((area.height * (place + 1)) / count) - (place + 1 < count ? gap : 0);
    return { ...area, y: area.y + from, height: Math.max(to - from, 1) };
  };
  const lanes = scene.lanes.map(({ lane, setup, range }, place) => {
    const band = bandOf(scene.isOverlay ? 0 : place);
    const color = theme.traces[hueOf(lane)];
    const shown = scene.isPale ? mix(theme.plot, color, PALE) : color;
    return { lane, setup, band, range, scale: setup.scale, offset: setup.offset, color: shown, bright: color };
  });
  if (lanes.length === 0) {
    drawGrid(ctx, theme, { band: bandOf(0), range: { bottom: -1, top: 1 }, scale: 1, offset: 0, color: theme.text }, [0], divisions);
  }
  /** @type {Placed["lanes"]} */
  const placed = [];
  for (const [place, lane] of lanes.entries()) {
    const data = picture.lanes[place];
    const { lines, labels } = laneTicks(lane.band.height / pixelRatio, lane.range, lane.setup);
    placed.push({ lane: lane.lane, band: lane.band, division: lane.setup.own.perDivision ?? lines.step });
    if (scene.isOverlay && place !== scene.front) continue;
    drawGrid(ctx, theme, lane, lines.values(), divisions);
    levelLabels(pen, theme, lane.band, lane.range, labels, lane.setup.unit);
    const lost = drawLosses(ctx, theme, lane.band, data.coverage, stretch, pixelRatio);
    for (const { x, width: wide } of lost) nameLoss(pen, scene, lane.band, x, wide, area);
  }
  const inOrder = [...lanes.keys()].sort((a, b) => Number(a === scene.front) - Number(b === scene.front));
  for (const place of inOrder) {
    const { runs } = picture.lanes[place];
    const density = scene.densities.of(lanes[place].lane, lanes[place].bright, theme);
    if (density) ctx.drawImage(density, area.x, lanes[place].band.y, area.width, lanes[place].band.height);
    else if (runs) drawRuns(ctx, lanes[place], runs, scene.shown, scene.isSinc, pixelRatio);
    else drawColumns(ctx, lanes[place], picture.lanes[place], stretch, pixelRatio);
  }
  for (const change of picture.changes) drawChange(pen, scene, area, change);
  timeLabels(pen, theme, area, ticks, start, span, axisUnit(picture));
  const { triggerX, level } = drawTrigger(pen, scene, area, lanes);
  const cursorXs = drawCursors(pen, scene, area, start, span);
  if (scene.box) {
    ctx.fillStyle = css(theme.cursor, 0.14);
    const [from, to] = [scene.box.from, scene.box.to].sort((a, b) => a - b);
    ctx.fillRect(area.x + from * area.width, area.y, (to - from) * area.width, area.height);
  }
  if (scene.pointer) drawReadout(pen, scene, area, lanes, stretch, start, span);
  return { area, lanes: placed, triggerX, level, cursorXs };
}

/** A line per division where the scale is set, so that divisions can be counted; else in round steps. @param {number} height @param {Range} range @param {Setup} setup */
function laneTicks(height, { bottom, top }, { own }) {
  const division = height / DIVISIONS_VERTICAL;
  if (own.perDivision !== null && division >= DIVISION_HEIGHT_MIN) {
    const every = [1, 2].find((every) => division * every >= LABEL_HEIGHT) ?? 4;
    return { lines: new Ticks(bottom, top, own.perDivision), labels: new Ticks(bottom, top, own.perDivision * every) };
  }
  const ticks = Ticks.atMost(bottom, top, Math.min(Math.max(Math.floor(height / LABEL_HEIGHT), 3), 10));
  return { lines: ticks, labels: ticks };
}

/** Labels beside a band, none cut off. @param {Pen} pen @param {Theme} theme @param {Band} band @param {Range} range @param {Ticks} ticks @param {string} unit */
export function levelLabels(pen, theme, band, range, ticks, unit) {
  const half = pen.height / 2;
  for (const value of ticks.values()) {
    const y = yOf({ band, range, scale: 1, offset: 0, color: theme.text }, value);
    if (y < band.y + half - 1 || y > band.y + band.height - half + 1) continue;
    pen.text(ticks.label(value, unit), band.x - pen.px(6), y, theme.textDim, "right");
  }
}

/** @param {Pen} pen @param {Theme} theme @param {Band} area @param {Ticks} ticks @param {number} start @param {number} span @param {string} unit */
export function timeLabels(pen, theme, area, ticks, start, span, unit) {
  const y = area.y + area.height + pen.px(11);
  const labels = ticks.values().map((value) => ({ value, label: ticks.label(value, unit) }));
  const widest = Math.max(0, ...labels.map(({ label }) => pen.width(label)));
  // All the same distance apart, however many have room.
  const every = [1, 2, 5, 10].find((every) => ((every * ticks.step) / span) * area.width >= widest + pen.px(12)) ?? 20;
  for (const { value, label } of labels.filter(({ value }) => Math.round(value / ticks.step) % every === 0)) {
    const wide = pen.width(label);
    const x = area.x + ((value - start) / span) * area.width;
    pen.text(label, Math.min(x - wide / 2, pen.ctx.canvas.width - wide - pen.px(2)), y, theme.textDim, "left");
  }
}

/** @param {Pen} pen @param {Scene} scene @param {Band} band @param {number} x @param {number} wide @param {Band} area */
function nameLoss(pen, scene, band, x, wide, area) {
  const { picture, shown, theme } = scene;
  const index = (/** @type {number} */ at) => shown.left + ((at - area.x) / area.width) * shown.samples;
  const inside = picture.gaps.filter((gap) => gap.start <= index(x + wide) && gap.end >= index(x));
  const samples = inside.reduce((sum, gap) => sum + gap.end - gap.start, 0);
  const places = [...new Set(inside.map(scene.placeOf).filter((place) => place !== ""))];
  const words = ["lost", ...places, ...(samples > 0 ? [engineering(samples, "S")] : [])].join(" ");
  const fits = pen.width(words) + pen.px(8) < wide;
  if (fits || pen.width("lost") + pen.px(4) < wide) {
    pen.text(fits ? words : "lost", x + wide / 2, band.y + band.height - pen.px(14), theme.gap, "center");
  }
}

/** @param {Pen} pen @param {Scene} scene @param {Band} area @param {import("../data/picture.js").Change} change */
function drawChange(pen, { shown, theme }, area, change) {
  const { index } = change;
  const part = (index - shown.left) / shown.samples;
  if (part < 0 || part > 1) return;
  const x = area.x + part * area.width;
  pen.dashed(x, area.y, x, area.y + area.height, css(theme.textDim));
  pen.tag(changeWords(change), x, area.y + pen.px(22), area, theme.textDim, theme);
}

/**
 * The place of the trigger above the lanes, and its levels beside them.
 * @param {Pen} pen @param {Scene} scene @param {Band} area
 * @param {(import("./lanes.js").Lane & {lane: LaneId, bright: import("./theme.js").Rgb})[]} lanes
 */
function drawTrigger(pen, { picture, shown, theme }, area, lanes) {
  const trigger = picture.trigger;
  /** @type {{triggerX: number | null, level: Placed["level"]}} */
  const none = { triggerX: null, level: null };
  if (!trigger) return none;
  const part = trigger.at === null ? -1 : (trigger.at - shown.left) / shown.samples;
  const triggerX = part >= 0 && part <= 1 ? area.x + part * area.width : null;
  if (triggerX !== null) pen.triangle(triggerX, area.y - pen.px(1), 0, pen.px(6), css(theme.cursor));
  const lane = lanes.find((it) => isSameLane(it.lane, trigger.lane));
  if (!lane) return { ...none, triggerX };
  const mean = picture.lanes.find((data) => isSameLane(data.lane, trigger.lane))?.mean ?? 0;
  const zero = trigger.isLfReject ? mean : 0;
  const ends = (trigger.upper === trigger.level ? [trigger.level] : [trigger.level, trigger.upper]).map((level) => level + zero);
  const ys = ends.map((count) => yOf(lane, count * lane.scale + lane.offset));
  const { y, height } = lane.band;
  for (const at of ys.map((at) => Math.min(Math.max(at, y), y + height))) {
    pen.dashed(area.x, at, area.x + area.width, at, css(lane.bright, 0.55));
    pen.triangle(area.x + area.width + pen.px(1), at, 1, pen.px(6), css(lane.bright));
  }
  const middle = ys.reduce((sum, at) => sum + at, 0) / ys.length;
  return { triggerX, level: { lane: trigger.lane, y: Math.min(Math.max(middle, y), y + height), band: lane.band } };
}

/** @param {Pen} pen @param {Scene} scene @param {Band} area @param {number} start @param {number} span */
function drawCursors(pen, { cursors, cursorAt, theme }, area, start, span) {
  if (!cursors) return [];
  return cursors.map((time, place) => {
    const x = area.x + ((time - start) / span) * area.width;
    if (x >= area.x && x <= area.x + area.width) {
      pen.dashed(x, area.y, x, area.y + area.height, css(theme.cursor, place === cursorAt ? 0.9 : 0.55));
      pen.tag("AB"[place], x, area.y + area.height - pen.px(12), area, theme.cursor, theme);
    }
    return x;
  });
}

/**
 * Time and values under the pointer.
 * @param {Pen} pen @param {Scene} scene @param {Band} area
 * @param {(import("./lanes.js").Lane & {setup: Setup, bright: import("./theme.js").Rgb})[]} lanes
 * @param {import("./lanes.js").Stretch} stretch @param {number} start @param {number} span
 */
function drawReadout(pen, { pointer, picture, shown, theme }, area, lanes, stretch, start, span) {
  if (!pointer || pointer.x < area.x || pointer.x > area.x + area.width) return;
  const part = (pointer.x - area.x) / area.width;
  pen.ctx.fillStyle = css(theme.cursor, 0.3);
  pen.ctx.fillRect(Math.round(pointer.x), area.y, 1, area.height);
  const time = engineering(start + part * span, axisUnit(picture), 6);
  pen.tag(time, pointer.x, area.y + area.height - pen.px(12), area, theme.cursor, theme);
  let below = 0;
  for (const [place, lane] of lanes.entries()) {
    const data = picture.lanes[place];
    const words = valueAt(data, shown.left + part * shown.samples, (part - stretch.offset) / stretch.width, lane.setup);
    if (words === null) continue;
    const isOver = place > 0 && lanes[place - 1].band.y === lane.band.y;
    below = isOver ? below + pen.px(20) : 0;
    pen.tag(words, pointer.x, lane.band.y + pen.px(34) + below, area, lane.bright, theme);
  }
}

/** The sample next to a sample index, or the extremes of the column that it lies in. @param {import("../data/picture.js").LaneColumns} data @param {number} index @param {number} part of the picture @param {Setup} setup */
function valueAt({ min, max, runs }, index, part, setup) {
  const show = (/** @type {number} */ count, digits = 4) => engineering(count * setup.scale + setup.offset, setup.unit, digits);
  const run = runs?.find(({ first, samples }) => index >= first - 0.5 && index < first + samples.length - 0.5);
  if (run) return show(run.samples[Math.round(index - run.first)], 6);
  const place = Math.floor(part * min.length);
  if (!(min[place] <= max[place])) return null;
  const ends = [show(min[place]), show(max[place])];
  if (setup.scale < 0) ends.reverse();
  return ends[0] === ends[1] ? ends[0] : ends.join(" … ");
}

const GUTTER = 66;
const GUTTER_NARROW = 54;
const NARROW = 560;
const MARGIN_TOP = 12;
const MARGIN_RIGHT = 12;
const AXIS_HEIGHT = 22;
const LANE_GAP = 6;
const LABEL_HEIGHT = 24;
const DIVISION_HEIGHT_MIN = 8;
const PALE = 0.45;
