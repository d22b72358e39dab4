// Columns to rectangles: grid, traces and marks of loss of one lane, in device pixels.

import { COVERAGE } from "../data/picture.js";
import { css } from "./theme.js";

/**
 * @typedef {import("../data/picture.js").LaneColumns} LaneColumns
 * @typedef {import("./theme.js").Rgb} Rgb
 * @typedef {import("./theme.js").Theme} Theme
 * @typedef {{x: number, y: number, width: number, height: number}} Band whole pixels
 *
 * @typedef {object} Stretch where the columns lie on the screen
 * @property {number} offset of the first column's left edge from the band's, as a part of the band's width
 * @property {number} width of all columns, as a part of the band's width
 *
 * @typedef {object} Lane
 * @property {Band} band
 * @property {number} gain height of a count, as a part of the band's
 * @property {number} shift height of count 0, from the lower edge
 * @property {Rgb} color
 */

/** Converts a height to pixels: 0 is the band's lower edge, 1 its upper one; clipped far outside. @param {Band} band @param {number} height */
export function yAt(band, height) {
  return band.y + (1 - Math.min(Math.max(height, -1e3), 1e3)) * band.height;
}

/** @param {Lane} lane @param {number} count */
function yOf({ band, gain, shift }, count) {
  return yAt(band, shift + gain * count);
}

/**
 * Lines of the divisions and of the levels.
 * @param {CanvasRenderingContext2D} ctx @param {Theme} theme @param {Band} band @param {[number, boolean][]} levels heights, and whether each is that of zero @param {number[]} divisions parts of the width
 */
export function drawGrid(ctx, theme, band, levels, divisions) {
  const { x, y, width, height } = band;
  ctx.fillStyle = css(theme.plot);
  ctx.fillRect(x, y, width, height);
  ctx.fillStyle = css(theme.grid);
  for (const part of [0, 1, ...divisions]) {
    if (part < 0 || part > 1) continue;
    ctx.fillRect(Math.min(Math.round(x + width * part), x + width - 1), y, 1, height);
  }
  ctx.fillRect(x, y, width, 1);
  ctx.fillRect(x, y + height - 1, width, 1);
  for (const [level, isZero] of levels) {
    const at = Math.round(yAt(band, level));
    if (at <= y || at >= y + height - 1) continue;
    ctx.fillStyle = css(isZero ? theme.zero : theme.grid);
    ctx.fillRect(x, at, width, 1);
  }
}

/**
 * The trace of a lane: a column is drawn from its smallest to its largest value, joined to its neighbour, never across a gap.
 * @param {CanvasRenderingContext2D} ctx @param {Lane} lane @param {Pick<LaneColumns, "min" | "max" | "coverage">} data
 * @param {Stretch} stretch @param {number} pixelRatio
 */
export function drawColumns(ctx, lane, { min, max, coverage }, stretch, pixelRatio) {
  const { band } = lane;
  const count = min.length;
  /** @type {number[][]} */
  const strokes = Array.from({ length: GLOWS }, () => []);
  const step = (band.width * stretch.width) / Math.max(count, 1);
  const start = band.x + band.width * stretch.offset;
  const [first, last] = [Math.floor((band.x - start) / step) - 1, Math.ceil((band.x + band.width - start) / step)];
  const [bottomPx, rightPx] = [band.y + band.height, band.x + band.width];
  const thickness = THICKNESS * Math.max(pixelRatio, 1);
  for (let place = Math.max(first, 0); place < Math.min(last + 1, count); place += 1) {
    let [a, b] = [min[place], max[place]];
    if (!(a <= b)) continue;
    if (place > 0 && coverage[place] !== COVERAGE.gap && coverage[place - 1] !== COVERAGE.gap) {
      const [before, beyond] = [min[place - 1], max[place - 1]];
      if (before <= beyond) [a, b] = [Math.min(a, beyond), Math.max(b, before)];
    }
    const [y1, y2] = [yOf(lane, a), yOf(lane, b)];
    let [top, bottom] = [Math.min(y1, y2), Math.max(y1, y2)];
    // A sloped line needs more height for the same thickness.
    const air = Math.max((thickness - (bottom - top)) / 2, 0.35);
    [top, bottom] = [Math.max(top - air, band.y), Math.min(bottom + air, bottomPx)];
    const left = Math.max(Math.round(start + place * step), band.x);
    const right = Math.min(Math.max(Math.round(start + (place + 1) * step), left + 1), rightPx);
    if (top >= bottom || left >= right) continue;
    strokes[glowOf((bottom - top) / pixelRatio)].push(left, top, right - left, bottom - top);
  }
  strokes.forEach((rects, glow) => {
    ctx.fillStyle = css(lane.color, 0.5 + (0.5 * glow) / (GLOWS - 1));
    for (let at = 0; at < rects.length; at += 4) ctx.fillRect(rects[at], rects[at + 1], rects[at + 2], rects[at + 3]);
  });
}

/**
 * The line through single samples, run by run, and a dot at each where there is room.
 * @param {CanvasRenderingContext2D} ctx @param {Lane} lane @param {import("../data/picture.js").Runs} runs
 * @param {{left: number, samples: number}} shown @param {boolean} isSinc @param {number} pixelRatio
 */
export function drawRuns(ctx, lane, runs, shown, isSinc, pixelRatio) {
  const { band } = lane;
  const step = band.width / shown.samples;
  const y = (/** @type {number} */ count) => yOf(lane, count);
  ctx.save();
  ctx.beginPath();
  ctx.rect(band.x, band.y, band.width, band.height);
  ctx.clip();
  ctx.strokeStyle = ctx.fillStyle = css(lane.color);
  ctx.lineWidth = THICKNESS * Math.max(pixelRatio, 1);
  ctx.lineJoin = "round";
  for (const { first, samples } of runs) {
    const x = band.x + (first - shown.left) * step;
    ctx.beginPath();
    if (isSinc && step > 1) {
      const [from, to] = [Math.max(-x / step, 0), Math.min((band.x + band.width - x) / step, samples.length - 1)];
      for (let at = from; at <= to; at += 1 / step) ctx.lineTo(x + at * step, y(sincAt(samples, at)));
    } else {
      samples.forEach((sample, at) => ctx.lineTo(x + at * step, y(sample)));
    }
    ctx.stroke();
    if (step < DOT_SPACING_MIN * pixelRatio) continue;
    ctx.beginPath();
    samples.forEach((sample, at) => {
      ctx.moveTo(x + at * step, y(sample));
      ctx.arc(x + at * step, y(sample), DOT_RADIUS * pixelRatio, 0, 2 * Math.PI);
    });
    ctx.fill();
  }
  ctx.restore();
}

/** Interpolates the signal below half the rate, with a kernel of 16 samples to either side. @param {Float32Array} samples @param {number} at */
function sincAt(samples, at) {
  const before = Math.floor(at);
  if (at === before) return samples[before];
  let [sum, weights] = [0, 0];
  for (let tap = Math.max(before - SINC_REACH + 1, 0); tap <= Math.min(before + SINC_REACH, samples.length - 1); tap += 1) {
    const away = Math.PI * (at - tap);
    const weight = (Math.sin(away) / away) * (0.5 + 0.5 * Math.cos(away / SINC_REACH));
    sum += weight * samples[tap];
    weights += weight;
  }
  return sum / weights;
}

/** As on a tube: a beam that crosses many rows spends less time on each. @param {number} height */
function glowOf(height) {
  const bright = GLOW_PX / (GLOW_PX + Math.max(height - THICKNESS, 0));
  return Math.round(bright * (GLOWS - 1));
}

/**
 * A stripe where samples are missing, at least a pixel wide; returns those that are wide enough to be named.
 * @param {CanvasRenderingContext2D} ctx @param {Theme} theme @param {Band} band @param {Uint8Array} coverage
 * @param {Stretch} stretch @param {number} pixelRatio @returns {{x: number, width: number}[]}
 */
export function drawLosses(ctx, theme, band, coverage, stretch, pixelRatio) {
  const step = (band.width * stretch.width) / Math.max(coverage.length, 1);
  const start = band.x + band.width * stretch.offset;
  const named = [];
  for (let place = 0; place < coverage.length; place += 1) {
    if (coverage[place] !== COVERAGE.gap) continue;
    const first = place;
    while (place + 1 < coverage.length && coverage[place + 1] === COVERAGE.gap) place += 1;
    const left = Math.max(Math.round(start + first * step), band.x);
    const right = Math.min(Math.max(Math.round(start + (place + 1) * step), left + 1), band.x + band.width);
    if (left >= right) continue;
    ctx.fillStyle = css(theme.gap, right - left < 3 ? 0.6 : 0.16);
    ctx.fillRect(left, band.y, right - left, band.height);
    ctx.fillStyle = css(theme.gap);
    const cap = Math.round(4 * pixelRatio);
    ctx.fillRect(left, band.y, right - left, cap);
    ctx.fillRect(left, band.y + band.height - cap, right - left, cap);
    if (right - left > 40 * pixelRatio) named.push({ x: left, width: right - left });
  }
  return named;
}

/** Steps of brightness, which is also the number of fills per trace. */
const GLOWS = 9;
const GLOW_PX = 40;
/** Thickness of a line, in CSS pixels. */
const THICKNESS = 1.7;
const SINC_REACH = 16;
/** In CSS pixels. */
const DOT_RADIUS = 2.5;
const DOT_SPACING_MIN = 8;
