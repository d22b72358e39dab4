// Spectra, the waterfall over the same axis, and one lane over another.

import { COVERAGE } from "../data/picture.js";
import { drawColumns, drawGrid, yAt } from "./lanes.js";
import { Pen } from "./pen.js";
import { plotArea } from "./plot.js";
import { css, mix, packed, rampOf } from "./theme.js";

/**
 * @typedef {import("./theme.js").Theme} Theme
 * @typedef {import("../data/picture.js").Picture} Picture
 * @typedef {object} SpectrumScene
 * @property {Picture} picture
 * @property {Theme} theme
 * @property {[number, number]} zoom the part of the frequencies on the screen
 * @property {{x: number} | null} pointer in device pixels
 * @property {number} pixelRatio
 * @property {number} right room for the bar of levels
 * @property {number[] | null} [drawn] the box being drawn: left, right, upper and lower edge as parts
 */

/** Maps places of another zoom to this one. @param {[number, number]} said @param {[number, number]} zoom */
const moved = (said, zoom) => (/** @type {number} */ part) => (said[0] + part * (said[1] - said[0]) - zoom[0]) / (zoom[1] - zoom[0]);

/** @param {CanvasRenderingContext2D} ctx @param {SpectrumScene & {shown: import("../data/shown.js").SpectrumShown}} scene */
export function drawSpectrum(ctx, { picture, shown, theme, zoom, pointer, pixelRatio, right }) {
  const area = plotArea(ctx.canvas.width, ctx.canvas.height, pixelRatio, right);
  const pen = new Pen(ctx, pixelRatio);
  ctx.clearRect(0, 0, ctx.canvas.width, ctx.canvas.height);
  const at = moved(shown.zoom, zoom);
  /** @type {[number, string][]} */
  const ticks = shown.ticks.map(([part, words]) => [at(part), words]);
  drawGrid(ctx, theme, area, shown.levels.map(([height]) => [height, false]), ticks.map(([part]) => part));
  const colors = new Map(shown.colors);
  const gain = 1 / (shown.top - shown.bottom);
  const lane = { band: area, gain, shift: -shown.bottom * gain, color: theme.text };
  const stretch = { offset: 0, width: 1 };
  // The highest line of complex samples is one below the right edge.
  const beside = picture.spectrum?.isTwoSided ? 0 : 1;
  const columns = (/** @type {Float32Array} */ levels) => levelColumns(levels, zoom.map((part) => part * (levels.length - beside)), area.width);
  for (const { channel, dbfs, hold } of picture.spectrum?.channels ?? []) {
    const color = colors.get(channel) ?? theme.text;
    if (hold.length > 0) drawColumns(ctx, { ...lane, color: mix(theme.plot, color, 0.45) }, columns(hold), stretch, pixelRatio);
    drawColumns(ctx, { ...lane, color }, columns(dbfs), stretch, pixelRatio);
  }
  pen.levels(area, shown.levels, theme);
  pen.ticks(area, ticks, theme.dim);
  for (const [part, words, color] of shown.harmonics) {
    const x = area.x + at(part) * area.width;
    pen.dashed(x, area.y + pen.px(14), x, area.y + area.height, css(color, 0.5));
    pen.text(words, x, area.y + pen.px(7), color, "center");
  }
  /** Heights of tags, so that none overlaps. @type {number[]} */
  const taken = [];
  for (const { part, height, words, color } of shown.peaks) {
    if (at(part) < 0 || at(part) > 1) continue;
    const [x, y] = [area.x + at(part) * area.width, yAt(area, height)];
    pen.triangle(x, y - pen.px(2), 0, pen.px(5), css(color));
    let tag = Math.max(y, area.y + pen.px(10));
    while (taken.some((other) => Math.abs(other - tag) < pen.px(18))) tag += pen.px(4);
    taken.push(tag);
    pen.tag(words, x, tag, area, color, theme);
  }
  for (const [part, name] of shown.markers) {
    if (at(part) < 0 || at(part) > 1) continue;
    const x = area.x + at(part) * area.width;
    pen.dashed(x, area.y, x, area.y + area.height, css(theme.cursor));
    pen.tag(name, x, area.y + area.height - pen.px(12), area, theme.cursor, theme);
  }
  if (pointer && pointer.x >= area.x && pointer.x <= area.x + area.width) {
    ctx.fillStyle = css(theme.cursor, 0.3);
    ctx.fillRect(Math.round(pointer.x), area.y, 1, area.height);
  }
  if (shown.empty !== "") pen.text(shown.empty, area.x + area.width / 2, area.y + area.height / 2, theme.dim, "center");
}

/** An image that is made again when its content changes. */
class Image {
  canvas = document.createElement("canvas");
  #key = "";

  /** @param {string} key @param {number} width @param {number} height @param {(words: Uint32Array) => void} fill */
  draw(key, width, height, fill) {
    if (key === this.#key) return;
    this.#key = key;
    [this.canvas.width, this.canvas.height] = [width, height];
    const ctx = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    const image = ctx.createImageData(width, height);
    fill(new Uint32Array(image.data.buffer));
    ctx.putImageData(image, 0, 0);
  }
}

export class WaterfallView {
  #image = new Image();

  /** @param {CanvasRenderingContext2D} ctx @param {SpectrumScene & {shown: import("../data/shown.js").WaterfallShown}} scene */
  draw(ctx, { picture, shown, theme, zoom, pixelRatio, right, drawn }) {
    const area = plotArea(ctx.canvas.width, ctx.canvas.height, pixelRatio, right);
    const pen = new Pen(ctx, pixelRatio);
    ctx.clearRect(0, 0, ctx.canvas.width, ctx.canvas.height);
    ctx.fillStyle = css(theme.plot);
    ctx.fillRect(area.x, area.y, area.width, area.height);
    const at = moved(shown.zoom, zoom);
    pen.ticks(area, shown.ticks.map(([part, words]) => [at(part), words]), theme.dim);
    drawLevelBar(pen, area, shown.levels, theme);
    const { waterfall } = picture;
    if (!waterfall || waterfall.width === 0) return;
    const { width, cells } = waterfall;
    const height = Math.floor(cells.length / width);
    // The edges of the cells as parts of the whole band.
    const [low, high] = waterfall.band.map((cycles) => (picture.spectrum?.isTwoSided ? cycles + 0.5 : cycles * 2));
    // A small pane has one level of several cells per pixel: smoothing would dim a short burst.
    const across = Math.max(Math.min(width, Math.floor((area.width * (high - low)) / (zoom[1] - zoom[0]))), 1);
    const rows = Math.max(Math.min(height, Math.floor(area.height)), 1);
    this.#image.draw([waterfall.number, waterfall.channel, shown.detector, shown.bottom, shown.top, theme.is_dark, across, rows].join(), across, rows, (words) => {
      const ramp = rampOf(theme);
      const isMean = shown.detector === "mean";
      const [gap, none] = [packed(mix(theme.plot, theme.gap, 0.35)), packed(theme.plot)];
      for (let at = 0; at < words.length; at += 1) {
        const [x, y] = [at % across, Math.floor(at / across)];
        let [highest, power, count, isLost] = [-Infinity, 0, 0, false];
        for (let row = Math.floor((y * height) / rows); row < Math.floor(((y + 1) * height) / rows); row += 1) {
          for (let cell = Math.floor((x * width) / across); cell < Math.floor(((x + 1) * width) / across); cell += 1) {
            const own = cells[row * width + cell];
            if (Number.isNaN(own)) isLost = true;
            else if (own > -Infinity) [highest, power, count] = [Math.max(highest, own), power + (isMean ? 10 ** (own / 10) : 0), count + 1];
          }
        }
        const level = isMean && count > 1 ? 10 * Math.log10(power / count) : highest;
        const part = (level - shown.bottom) / (shown.top - shown.bottom);
        words[at] = level > -Infinity ? ramp[Math.min(Math.max(Math.round(part * 255), 0), 255)] : isLost ? gap : none;
      }
    });
    ctx.imageSmoothingEnabled = true;
    const place = (/** @type {number} */ part) => ((part - low) / (high - low)) * across;
    ctx.drawImage(this.#image.canvas, place(zoom[0]), 0, place(zoom[1]) - place(zoom[0]), rows, area.x, area.y, area.width, area.height);
    pen.levels(area, shown.ages, theme);
    for (const [[left, right, top, bottom], words, own] of shown.marks) {
      const color = own ?? theme.cursor;
      const [from, to] = [area.x + at(left) * area.width, area.x + at(right) * area.width];
      const [above, below] = [area.y + top * area.height, area.y + bottom * area.height];
      ctx.strokeStyle = css(color);
      ctx.strokeRect(from, above, Math.max(to - from, 1), Math.max(below - above, 1));
      if (words !== "") pen.text(words, Math.max(from, area.x) + pen.px(4), above + pen.px(8), color, "left");
    }
    if (drawn) {
      const [left, right, top, bottom] = drawn;
      ctx.strokeStyle = css(theme.cursor);
      ctx.strokeRect(area.x + left * area.width, area.y + top * area.height, (right - left) * area.width, (bottom - top) * area.height);
    }
  }
}

/** The colour scale of the levels. @param {Pen} pen @param {import("./lanes.js").Band} area @param {[number, string][]} levels @param {Theme} theme */
function drawLevelBar(pen, area, levels, theme) {
  const left = area.x + area.width + pen.px(8);
  const colors = pen.ctx.createLinearGradient(0, area.y + area.height, 0, area.y);
  theme.ramp.forEach((color, at) => colors.addColorStop(at / (theme.ramp.length - 1), css(color)));
  pen.ctx.fillStyle = colors;
  pen.ctx.fillRect(left, area.y, pen.px(12), area.height);
  for (const [height, words] of levels) {
    const y = Math.min(Math.max(yAt(area, height), area.y + pen.px(6)), area.y + area.height - pen.px(6));
    pen.text(words, left + pen.px(16), y, theme.dim, "left");
  }
}

export class XyPlot {
  #image = new Image();

  /** @param {CanvasRenderingContext2D} ctx @param {{picture: Picture, shown: import("../data/shown.js").XyShown, theme: Theme, pixelRatio: number}} scene */
  draw(ctx, { picture, shown, theme, pixelRatio }) {
    const area = plotArea(ctx.canvas.width, ctx.canvas.height, pixelRatio);
    const pen = new Pen(ctx, pixelRatio);
    ctx.clearRect(0, 0, ctx.canvas.width, ctx.canvas.height);
    drawGrid(ctx, theme, area, shown.upwards.map(([height]) => [height, false]), shown.across.map(([part]) => part));
    pen.levels(area, shown.upwards, theme);
    pen.ticks(area, shown.across, theme.dim);
    const { xy } = picture;
    if (!xy || !shown.place || xy.width * xy.height === 0) return;
    this.#image.draw([xy.number, xy.width, theme.is_dark].join(), xy.width, xy.height, (words) => {
      // The first colour is that of nothing: the grid is seen through it.
      const ramp = rampOf(theme);
      xy.cells.forEach((cell, at) => (words[at] = cell === 0 ? 0 : ramp[64 + Math.floor((cell * 191) / 255)]));
    });
    const [left, right, low, high] = shown.place;
    ctx.save();
    ctx.beginPath();
    ctx.rect(area.x, area.y, area.width, area.height);
    ctx.clip();
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(this.#image.canvas, area.x + left * area.width, yAt(area, high), (right - left) * area.width, (high - low) * area.height);
    ctx.restore();
  }
}

/** Converts lines of a spectrum to columns: extremes if a column has many lines, interpolated if it has few. @param {Float32Array} levels @param {number[]} lines @param {number} columns */
function levelColumns(levels, [from, to], columns) {
  const out = { min: new Float32Array(columns).fill(1), max: new Float32Array(columns), coverage: new Uint8Array(columns) };
  const last = levels.length - 1;
  if (last < 1) return out;
  out.coverage.fill(COVERAGE.complete);
  const lineAt = (/** @type {number} */ place) => Math.min(from + ((to - from) * place) / columns, last);
  const between = (/** @type {number} */ line) => {
    const before = Math.min(Math.floor(line), last);
    const [a, b] = [levels[before], levels[Math.min(before + 1, last)]];
    return a + (b - a) * (line - before);
  };
  for (let place = 0; place < columns; place += 1) {
    const [left, right] = [lineAt(place), lineAt(place + 1)];
    const [a, b] = [between(left), between(right)];
    let [low, high] = [Math.min(a, b), Math.max(a, b)];
    for (let line = Math.ceil(left); line <= Math.min(Math.floor(right), last); line += 1) {
      if (levels[line] < low) low = levels[line];
      if (levels[line] > high) high = levels[line];
    }
    [out.min[place], out.max[place]] = [low, high];
  }
  return out;
}
