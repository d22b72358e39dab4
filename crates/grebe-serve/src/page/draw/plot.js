// Draws the traces in their lanes, with axes, losses, the trigger and cursors, all from the server's values.

import { drawColumns, drawGrid, drawLosses, drawRuns, yAt } from "./lanes.js";
import { css, mix } from "./theme.js";
import { Pen } from "./pen.js";

/**
 * @typedef {import("../data/picture.js").Picture} Picture
 * @typedef {import("../data/shown.js").Shown} Shown
 * @typedef {import("./lanes.js").Band} Band
 * @typedef {import("../data/shown.js").Lane & {band: Band, bright: Rgb, data: import("../data/picture.js").LaneColumns | undefined}} LaneDrawn
 * @typedef {import("./theme.js").Theme} Theme
 * @typedef {import("./theme.js").Rgb} Rgb
 *
 * @typedef {object} Scene what is to be drawn
 * @property {Picture} picture
 * @property {Shown} shown what was said of it
 * @property {{left: number, samples: number}} stretch of the screen: while a picture is on its way, another than the picture's
 * @property {import("./density.js").Densities} densities
 * @property {number} scrolled how far lanes are scrolled, in device pixels
 * @property {boolean} isPale what is seen is old, or on its way
 * @property {{x: number, y: number} | null} pointer in device pixels
 * @property {{from: number, to: number} | null} box a part of the width that is being chosen
 * @property {number} pixelRatio
 *
 * @typedef {object} Placed where things are, in device pixels: for pointers and for what stands over the canvas
 * @property {Band} area of all lanes
 * @property {{lane: string, band: Band}[]} lanes
 * @property {number} hidden what of the lanes has no room, in device pixels
 * @property {number | null} triggerX
 * @property {{y: number, band: Band} | null} level
 * @property {number[]} cursorXs
 * @property {{band: Band, ys: number[]} | null} values
 */

/** @param {number} width @param {number} height device pixels @param {number} pixelRatio @param {number} right room for a level bar @returns {Band} */
export function plotArea(width, height, pixelRatio, right = 0) {
  const px = (/** @type {number} */ css) => Math.round(css * pixelRatio);
  const left = px(width / pixelRatio < NARROW ? GUTTER_NARROW : GUTTER);
  return {
    x: left,
    y: px(MARGIN_TOP),
    width: Math.max(width - left - px(MARGIN_RIGHT + right), 1),
    height: Math.max(height - px(MARGIN_TOP) - px(AXIS_HEIGHT), 1),
  };
}

/** @param {CanvasRenderingContext2D} ctx @param {Scene} scene @returns {Placed} */
export function drawPlot(ctx, scene) {
  const { picture, shown, pixelRatio } = scene;
  const { theme } = shown;
  const { width, height } = ctx.canvas;
  const area = plotArea(width, height, pixelRatio);
  const pen = new Pen(ctx, pixelRatio);
  ctx.clearRect(0, 0, width, height);
  const stretch = {
    offset: (picture.leftIndex - scene.stretch.left) / scene.stretch.samples,
    width: picture.spanSamples / scene.stretch.samples,
  };
  /** Converts a part of the picture to a part of the screen. @param {number} part */
  const at = (part) => stretch.offset + part * stretch.width;
  const x = (/** @type {number} */ part) => area.x + at(part) * area.width;
  const isInside = (/** @type {number} */ part) => at(part) >= 0 && at(part) <= 1;
  /** @type {[number, string][]} */
  const ticks = shown.ticks.map(([part, words]) => [at(part), words]);
  const divisions = ticks.map(([part]) => part);
  const count = shown.is_overlay ? 1 : Math.max(shown.lanes.length, 1);
  const hidden = Math.max(count * pen.px(LANE_HEIGHT_MIN) - area.height, 0);
  const inside = { ...area, y: area.y - Math.min(scene.scrolled, hidden), height: area.height + hidden };
  const bands = bandsOf(inside, shown.lanes.length, shown.is_overlay, pixelRatio);
  const isSeen = (/** @type {Band} */ { y, height }) => y < area.y + area.height && y + height > area.y;
  ctx.save();
  ctx.beginPath();
  ctx.rect(0, area.y, width, area.height);
  ctx.clip();
  if (shown.lanes.length === 0) {
    drawGrid(ctx, theme, bands[0], [], divisions);
    shown.empty.forEach((words, line) => {
      pen.text(words, area.x + area.width / 2, area.y + area.height / 2 + line * pen.px(22), theme.dim, "center");
    });
  }
  /** @type {LaneDrawn[]} */
  const lanes = shown.lanes.map((said, place) => {
    const color = scene.isPale ? mix(theme.plot, said.color, PALE) : said.color;
    return { ...said, band: bands[place], bright: said.color, color, data: picture.lanes.find(({ lane }) => lane === said.lane) };
  });
  lanes.forEach((lane, place) => {
    if ((shown.is_overlay && place !== shown.front) || !isSeen(lane.band)) return;
    drawGrid(ctx, theme, lane.band, lane.lines, divisions);
    pen.levels(lane.band, lane.labels, theme);
    if (!lane.data) return;
    drawLosses(ctx, theme, lane.band, lane.data.coverage, stretch, pixelRatio);
    for (const [from, to, words] of shown.lost) {
      const wide = x(to) - x(from);
      const said = [words, "lost"].find((it) => pen.width(it) + pen.px(8) < wide);
      if (said) pen.text(said, (x(from) + x(to)) / 2, lane.band.y + lane.band.height - pen.px(14), theme.gap, "center");
    }
  });
  // Draw the front lane last.
  for (const lane of [...lanes.filter((_, place) => place !== shown.front), ...lanes.slice(shown.front, shown.front + 1)]) {
    if (!isSeen(lane.band)) continue;
    const density = shown.density === null ? null : scene.densities.of(lane.lane, lane.bright, theme);
    if (density) ctx.drawImage(density, area.x, lane.band.y, area.width, lane.band.height);
    else if (lane.data?.runs?.length) drawRuns(ctx, lane, lane.data.runs, scene.stretch, shown.is_sinc, pixelRatio);
    else if (lane.data) drawColumns(ctx, lane, lane.data, stretch, pixelRatio);
    if (lane.is_clipped) pen.tag("CLIP", area.x + area.width - pen.px(60), lane.band.y + pen.px(12), area, theme.gap, theme);
  }
  ctx.restore();
  if (shown.density) pen.text(shown.density, area.x + area.width - pen.px(16), area.y + pen.px(10), theme.dim, "right");
  for (const [from, to, words, own] of shown.notes) {
    const [left, right] = [Math.max(x(from), area.x), Math.min(Math.max(x(to), x(from) + 1), area.x + area.width)];
    if (right <= left) continue;
    const color = own ?? theme.cursor;
    ctx.fillStyle = css(color, 0.08);
    ctx.fillRect(left, area.y, right - left, area.height);
    pen.tag(words, left - pen.px(4), area.y + pen.px(12), area, color, theme);
  }
  for (const [part, words] of shown.marks.filter(([part]) => isInside(part))) {
    pen.dashed(x(part), area.y, x(part), area.y + area.height, css(theme.dim));
    pen.tag(words, x(part), area.y + area.height - pen.px(14), area, theme.dim, theme);
  }
  pen.ticks(area, ticks, theme.dim);
  const triggerX = shown.trigger !== null && isInside(shown.trigger) ? x(shown.trigger) : null;
  if (triggerX !== null) pen.triangle(triggerX, area.y - pen.px(1), 0, pen.px(6), css(theme.cursor));
  const level = drawLevels(pen, shown.levels, lanes, area);
  const cursorXs = shown.cursors.map(([part, name], place) => {
    if (isInside(part)) {
      pen.dashed(x(part), area.y, x(part), area.y + area.height, css(theme.cursor, place === 0 ? 0.9 : 0.6));
      pen.tag(name, x(part), area.y + area.height - pen.px(12), area, theme.cursor, theme);
    }
    return x(part);
  });
  const values = drawValueCursors(pen, shown.value_cursors, lanes, area, theme);
  if (scene.box) {
    ctx.fillStyle = css(theme.cursor, 0.14);
    const [from, to] = [scene.box.from, scene.box.to].sort((a, b) => a - b);
    ctx.fillRect(area.x + from * area.width, area.y, (to - from) * area.width, area.height);
  }
  drawReadout(pen, scene, area, lanes, theme);
  return { area, lanes, hidden, triggerX, level, cursorXs, values };
}

/** @param {Band} area @param {number} lanes @param {boolean} isOverlay @param {number} pixelRatio @returns {Band[]} */
function bandsOf(area, lanes, isOverlay, pixelRatio) {
  const count = isOverlay ? 1 : Math.max(lanes, 1);
  const gap = Math.round(LANE_GAP * pixelRatio);
  return Array.from({ length: Math.max(lanes, 1) }, (_, lane) => {
    const place = isOverlay ? 0 : lane;
    const from = Math.round((area.height * place) / count);
    const to = Math.round((area.height * (place + 1)) / count) - (place + 1 < count ? gap : 0);
    return { ...area, y: area.y + from, height: Math.max(to - from, 1) };
  });
}

/** @param {Pen} pen @param {[string, number[]] | null} levels @param {LaneDrawn[]} lanes @param {Band} area */
function drawLevels(pen, levels, lanes, area) {
  const lane = levels && lanes.find((it) => it.lane === levels[0]);
  if (!lane) return null;
  const ys = levels[1].map((height) => yAt(lane.band, Math.min(Math.max(height, 0), 1)));
  for (const y of ys) {
    pen.dashed(area.x, y, area.x + area.width, y, css(lane.bright, 0.55));
    pen.triangle(area.x + area.width + pen.px(1), y, 1, pen.px(6), css(lane.bright));
  }
  return { y: ys.reduce((sum, y) => sum + y, 0) / ys.length, band: lane.band };
}

/** @param {Pen} pen @param {[string, [number, string][]] | null} cursors @param {LaneDrawn[]} lanes @param {Band} area @param {Theme} theme */
function drawValueCursors(pen, cursors, lanes, area, theme) {
  const lane = cursors && lanes.find((it) => it.lane === cursors[0]);
  if (!lane) return null;
  const ys = cursors[1].map(([height, name]) => {
    const y = yAt(lane.band, Math.min(Math.max(height, 0), 1));
    pen.dashed(area.x, y, area.x + area.width, y, css(theme.cursor, 0.8));
    pen.tag(name, area.x + area.width * 0.08, y, area, theme.cursor, theme);
    return y;
  });
  return { band: lane.band, ys };
}

/** The values under the pointer. @param {Pen} pen @param {Scene} scene @param {Band} area @param {LaneDrawn[]} lanes @param {Theme} theme */
function drawReadout(pen, { pointer, shown }, area, lanes, theme) {
  if (!pointer || pointer.x < area.x || pointer.x > area.x + area.width) return;
  pen.ctx.fillStyle = css(theme.cursor, 0.3);
  pen.ctx.fillRect(Math.round(pointer.x), area.y, 1, area.height);
  const [time, ...values] = shown.hover;
  if (!time) return;
  pen.tag(time[0], pointer.x, area.y + area.height - pen.px(12), area, time[1], theme);
  let below = 0;
  values.forEach(([words, color], place) => {
    const band = lanes[place]?.band;
    if (!band || words === "") return;
    below = place > 0 && lanes[place - 1].band.y === band.y ? below + pen.px(20) : 0;
    pen.tag(words, pointer.x, band.y + pen.px(34) + below, area, color, theme);
  });
}

/** Width of the level bar with its labels. */
export const LEVELS_WIDTH = 76;
const GUTTER = 66;
const GUTTER_NARROW = 54;
const NARROW = 560;
const MARGIN_TOP = 12;
const MARGIN_RIGHT = 12;
const AXIS_HEIGHT = 22;
const LANE_GAP = 6;
/** Minimum height of a lane; lower ones are unreadable, so they scroll. */
const LANE_HEIGHT_MIN = 44;
const PALE = 0.45;
