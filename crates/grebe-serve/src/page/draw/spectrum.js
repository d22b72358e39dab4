// Spectra, and the waterfall, over one frequency axis.

import { COVERAGE } from "../data/picture.js";
import { hueOf } from "../model/setup.js";
import { Ticks, engineering } from "../model/units.js";
import { drawColumns, drawGrid, yOf } from "./lanes.js";
import { Pen } from "./pen.js";
import { levelLabels, plotArea, timeLabels } from "./plot.js";
import { css, mix } from "./theme.js";

/**
 * @typedef {import("../data/picture.js").Picture} Picture
 * @typedef {import("../data/picture.js").Waterfall} Waterfall
 * @typedef {import("../model/range.js").Range} Range
 * @typedef {import("./theme.js").Theme} Theme
 *
 * @typedef {object} SpectrumScene
 * @property {Picture} picture
 * @property {[number, number]} zoom
 * @property {Range} range in dB
 * @property {{x: number} | null} pointer
 * @property {Theme} theme
 * @property {number} pixelRatio
 */

/** @param {CanvasRenderingContext2D} ctx @param {SpectrumScene} scene */
export function drawSpectrum(ctx, { picture, zoom, range, pointer, theme, pixelRatio }) {
  const area = plotArea(ctx.canvas.width, ctx.canvas.height, pixelRatio);
  const pen = new Pen(ctx, pixelRatio);
  ctx.clearRect(0, 0, ctx.canvas.width, ctx.canvas.height);
  const { start, end, unit, ticks } = frequencyTicks(picture, zoom, area.width / pixelRatio);
  const levels = Ticks.atMost(range.bottom, range.top, Math.min(Math.max(area.height / pixelRatio / 24, 3), 10));
  const divisions = ticks.values().map((value) => (value - start) / (end - start));
  const lane = { band: area, range, scale: 1, offset: 0, color: theme.text };
  drawGrid(ctx, theme, lane, levels.values(), divisions);
  const channels = picture.spectrum?.channels ?? [];
  const stretch = { offset: 0, width: 1 };
  const colorOf = (/** @type {number} */ channel) => theme.traces[hueOf(laneOfChannel(picture, channel))];
  const columns = channels.map(({ dbfs }) => levelColumns(dbfs, zoom, area.width));
  channels.forEach(({ channel, hold }, place) => {
    const color = colorOf(channel);
    if (hold.length > 0) {
      const held = levelColumns(hold, zoom, area.width);
      drawColumns(ctx, { ...lane, color: mix(theme.plot, color, 0.45) }, held, stretch, pixelRatio);
    }
    drawColumns(ctx, { ...lane, color }, columns[place], stretch, pixelRatio);
  });
  levelLabels(pen, theme, area, range, levels, "dB");
  timeLabels(pen, theme, area, ticks, start, end - start, unit);
  /** Heights of tags: none covers another. @type {number[]} */
  const taken = [];
  for (const { channel, peaks } of channels) {
    if (peaks.length === 0) continue;
    const part = partOfLine(picture, peaks[0].line, zoom);
    if (part < 0 || part > 1) continue;
    const x = area.x + part * area.width;
    const y = yOf(lane, peaks[0].dbfs);
    pen.triangle(x, y - pen.px(2), 0, pen.px(5), css(colorOf(channel)));
    const words = `${frequencyWords(picture, peaks[0].line)}  ${peaks[0].dbfs.toFixed(1)} dB`;
    let at = Math.max(y, area.y + pen.px(10));
    while (taken.some((other) => Math.abs(other - at) < pen.px(18))) at += pen.px(4);
    taken.push(at);
    pen.tag(words, x, at, area, colorOf(channel), theme);
  }
  if (pointer && pointer.x >= area.x && pointer.x <= area.x + area.width) {
    const part = (pointer.x - area.x) / area.width;
    ctx.fillStyle = css(theme.cursor, 0.3);
    ctx.fillRect(Math.round(pointer.x), area.y, 1, area.height);
    let y = area.y + area.height - pen.px(12);
    pen.tag(engineering(start + part * (end - start), unit, 6), pointer.x, y, area, theme.cursor, theme);
    channels.forEach(({ channel }, place) => {
      const level = columns[place].max[Math.min(Math.floor(part * area.width), area.width - 1)];
      pen.tag(`${level.toFixed(1)} dB`, pointer.x, (y -= pen.px(20)), area, colorOf(channel), theme);
    });
  }
  if (channels.length === 0) {
    const words = "no run of samples without a gap is long enough yet";
    pen.text(words, area.x + area.width / 2, area.y + area.height / 2, theme.textDim, "center");
  }
}

/** Keeps the image of the newest waterfall, and draws the part of it that is shown. */
export class WaterfallView {
  #image = document.createElement("canvas");
  #key = "";

  /** @param {CanvasRenderingContext2D} ctx @param {SpectrumScene} scene */
  draw(ctx, { picture, zoom, range, theme, pixelRatio }) {
    const area = plotArea(ctx.canvas.width, ctx.canvas.height, pixelRatio);
    const pen = new Pen(ctx, pixelRatio);
    ctx.clearRect(0, 0, ctx.canvas.width, ctx.canvas.height);
    ctx.fillStyle = css(theme.plot);
    ctx.fillRect(area.x, area.y, area.width, area.height);
    const { waterfall } = picture;
    const { start, end, unit, ticks } = frequencyTicks(picture, zoom, area.width / pixelRatio);
    timeLabels(pen, theme, area, ticks, start, end - start, unit);
    if (!waterfall || waterfall.width === 0) return;
    this.#render(waterfall, range, theme);
    const { width, height } = this.#image;
    ctx.imageSmoothingEnabled = true;
    ctx.drawImage(this.#image, zoom[0] * width, 0, (zoom[1] - zoom[0]) * width, height, area.x, area.y, area.width, area.height);
    const rate = picture.stream && picture.stream.rateHz > 0 ? picture.stream.rateHz : 1;
    const ages = { bottom: -waterfall.spanSamples / rate, top: 0 };
    const ageUnit = rate === 1 ? "S" : "s";
    const rows = Ticks.ofUnit(ages.bottom, 0, Math.min(Math.max(area.height / pixelRatio / 24, 3), 6), ageUnit);
    levelLabels(pen, theme, area, ages, rows, ageUnit);
  }

  /** @param {Waterfall} waterfall @param {Range} range @param {Theme} theme */
  #render(waterfall, range, theme) {
    const key = [waterfall.number, waterfall.channel, range.bottom, theme.isDark].join();
    if (key === this.#key) return;
    this.#key = key;
    const { width, cells } = waterfall;
    const rows = Math.floor(cells.length / width);
    [this.#image.width, this.#image.height] = [width, rows];
    const ctx = /** @type {CanvasRenderingContext2D} */ (this.#image.getContext("2d"));
    const image = ctx.createImageData(width, rows);
    const words = new Uint32Array(image.data.buffer);
    const ramp = rampOf(theme);
    const [gap, none] = [packed(mix(theme.plot, theme.gap, 0.35)), packed(theme.plot)];
    for (let at = 0; at < words.length; at += 1) {
      const db = cells[at];
      if (Number.isNaN(db)) words[at] = gap;
      else if (db === -Infinity) words[at] = none;
      else {
        const part = (db - range.bottom) / (range.top - range.bottom);
        words[at] = ramp[Math.min(Math.max(Math.round(part * 255), 0), 255)];
      }
    }
    ctx.putImageData(image, 0, 0);
  }
}

/** The range of levels: full scale near the top, a margin below the noise floor; steady. */
export class LevelRange {
  #bottom = -60;

  /** @param {Picture} picture @returns {Range} */
  follow(picture) {
    const channels = picture.spectrum?.channels ?? [];
    if (channels.length > 0) {
      const floor = Math.min(0, ...channels.map(({ dbfs }) => floorOf(dbfs)));
      const wanted = Math.min(Math.max(Math.floor((floor - 6) / 20) * 20, -140), -60);
      // Lower at once, higher only by 40 dB: a floor that moves a little does not move the picture.
      if (wanted < this.#bottom || wanted >= this.#bottom + 40) this.#bottom = wanted;
    }
    // The first harmonic of a full-scale square wave lies 2.1 dB above a sine's.
    return { bottom: this.#bottom, top: 6 };
  }
}

/** The frequency of a line in words. @param {Picture} picture @param {number} line */
export function frequencyWords(picture, line) {
  const { band, rate, centre, unit } = frequencies(picture);
  const value = centre + (line / (picture.spectrum?.size ?? 1) + band[0]) * rate;
  if (unit !== "Hz") return `${value.toFixed(5)} ${unit}`;
  const digits = centre === 0 ? 5 : Math.min(Math.ceil(Math.log10(Math.max(Math.abs(value) / rate, 1))) + 4, 12);
  return engineering(value, "Hz", digits);
}

/** @param {Picture} picture */
function frequencies(picture) {
  const isTwoSided = picture.stream?.format.startsWith("c") ?? false;
  const rateHz = picture.stream?.rateHz ?? 0;
  const centre = (isTwoSided && rateHz > 0 && picture.description?.centreHz) || 0;
  /** @type {[number, number]} */
  const band = isTwoSided ? [-0.5, 0.5] : [0, 0.5];
  return { band, rate: rateHz > 0 ? rateHz : 1, centre, unit: rateHz > 0 ? "Hz" : "c/S" };
}

/** @param {Picture} picture @param {[number, number]} zoom @param {number} width CSS pixels */
function frequencyTicks(picture, zoom, width) {
  const { band, rate, centre, unit } = frequencies(picture);
  const at = (/** @type {number} */ part) => centre + (band[0] + (band[1] - band[0]) * part) * rate;
  const [start, end] = [at(zoom[0]), at(zoom[1])];
  return { start, end, unit, ticks: Ticks.atMost(start, end, Math.min(Math.max(width / 110, 2), 12)) };
}

/** Where a line stands in the shown part of the spectrum. @param {Picture} picture @param {number} line @param {[number, number]} zoom */
function partOfLine(picture, line, [from, to]) {
  const { band } = frequencies(picture);
  return (line / (picture.spectrum?.size ?? 1) / (band[1] - band[0]) - from) / (to - from);
}

/** A part of a spectrum as columns: extremes where a column has many lines, interpolated where it has few. @param {Float32Array} dbfs @param {[number, number]} zoom @param {number} columns */
function levelColumns(dbfs, [from, to], columns) {
  const out = { min: new Float32Array(columns).fill(1), max: new Float32Array(columns), coverage: new Uint8Array(columns) };
  const last = dbfs.length - 1;
  if (last < 1) return out;
  out.coverage.fill(COVERAGE.complete);
  const lineAt = (/** @type {number} */ place) => (from + ((to - from) * place) / columns) * last;
  const between = (/** @type {number} */ line) => {
    const before = Math.min(Math.floor(line), last);
    const [a, b] = [dbfs[before], dbfs[Math.min(before + 1, last)]];
    return a + (b - a) * (line - before);
  };
  for (let place = 0; place < columns; place += 1) {
    const [left, right] = [lineAt(place), lineAt(place + 1)];
    const [a, b] = [between(left), between(right)];
    let [low, high] = [Math.min(a, b), Math.max(a, b)];
    for (let line = Math.ceil(left); line <= Math.min(Math.floor(right), last); line += 1) {
      if (dbfs[line] < low) low = dbfs[line];
      if (dbfs[line] > high) high = dbfs[line];
    }
    [out.min[place], out.max[place]] = [low, high];
  }
  return out;
}

/** The level that a fifth of the lines lie below. @param {Float32Array} dbfs */
function floorOf(dbfs) {
  const some = [];
  for (let at = 0; at < dbfs.length; at += Math.max(Math.floor(dbfs.length / 512), 1)) some.push(dbfs[at]);
  some.sort((a, b) => a - b);
  const floor = some[Math.floor(some.length / 5)] ?? 0;
  return Number.isFinite(floor) ? floor : -140;
}

/** @param {Picture} picture @param {number} channel @returns {import("../data/picture.js").LaneId} */
const laneOfChannel = (picture, channel) => ({ channel, part: picture.stream?.format.startsWith("c") ? "i" : "real" });

/** Colours of levels: from the plot's over a hue to the text's. @param {Theme} theme */
function rampOf(theme) {
  const stops = theme.isDark ? DARK_RAMP : LIGHT_RAMP;
  return Uint32Array.from({ length: 256 }, (_, level) => {
    const at = (level / 255) * (stops.length - 1);
    const before = Math.min(Math.floor(at), stops.length - 2);
    return packed(mix(stops[before], stops[before + 1], at - before));
  });
}

/** As a pixel of an image, on a machine whose words begin with the lowest byte. @param {import("./theme.js").Rgb} color */
const packed = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;

/** @type {import("./theme.js").Rgb[]} */
const DARK_RAMP = [[9, 10, 13], [40, 20, 90], [150, 35, 120], [245, 120, 50], [255, 245, 170]];
/** @type {import("./theme.js").Rgb[]} */
const LIGHT_RAMP = [[255, 255, 255], [198, 214, 236], [96, 140, 200], [40, 60, 140], [20, 10, 50]];
