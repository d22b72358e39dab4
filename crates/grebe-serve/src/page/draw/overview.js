// The strip with all of the history, and a frame around what is shown of it.

import { drawColumns, drawLosses } from "./lanes.js";
import { css } from "./theme.js";
import { Pen } from "./pen.js";
import { plotArea } from "./plot.js";

/**
 * @typedef {object} OverviewScene
 * @property {import("../data/picture.js").Picture} picture
 * @property {import("../data/shown.js").Shown} shown what was said of it
 * @property {{left: number, samples: number}} stretch of the screen
 * @property {import("./theme.js").Theme} theme
 * @property {number} pixelRatio
 */

/** @param {HTMLCanvasElement} canvas @param {number} pixelRatio */
export function overviewArea(canvas, pixelRatio) {
  if (canvas.height < 8) return null;
  const { x, width } = plotArea(canvas.width, canvas.height, pixelRatio);
  return { x, width, y: Math.round(2 * pixelRatio), height: canvas.height - Math.round(4 * pixelRatio) };
}

/** @param {CanvasRenderingContext2D} ctx @param {OverviewScene} scene */
export function drawOverview(ctx, { picture, shown, stretch: screen, theme, pixelRatio }) {
  const { canvas } = ctx;
  ctx.clearRect(0, 0, canvas.width, canvas.height);
  const band = overviewArea(canvas, pixelRatio);
  const { overview } = picture;
  if (!band || !overview) return;
  const pen = new Pen(ctx, pixelRatio);
  ctx.fillStyle = css(theme.plot);
  ctx.fillRect(band.x, band.y, band.width, band.height);
  const stretch = { offset: 0, width: 1 };
  overview.lanes.forEach((data, place) => {
    const said = shown.lanes.find((it) => it.lane === data.lane);
    const [low, high] = [Math.min(...finite(data.min, data)), Math.max(...finite(data.max, data))];
    if (place === 0) drawLosses(ctx, theme, band, data.coverage, stretch, pixelRatio);
    if (low > high || !said) return;
    const flat = low < high ? 0 : 1;
    const gain = (Math.sign(said.gain) || 1) / (high - low + 2 * flat);
    const shift = gain > 0 ? (flat - low) * gain : 1 + (flat - low) * gain;
    drawColumns(ctx, { band, gain, shift, color: said.color }, data, stretch, pixelRatio);
  });
  pen.text("all", band.x - pen.px(6), band.y + band.height / 2, theme.dim, "right");
  const part = (/** @type {number} */ index) => Math.min(Math.max((index - overview.leftIndex) / overview.spanSamples, 0), 1);
  const [from, to] = [part(screen.left), part(screen.left + screen.samples)];
  const wide = Math.max((to - from) * band.width, pen.px(6));
  const left = Math.min(band.x + from * band.width, band.x + band.width - wide);
  ctx.fillStyle = css(theme.background, 0.55);
  ctx.fillRect(band.x, band.y, left - band.x, band.height);
  ctx.fillRect(left + wide, band.y, band.x + band.width - left - wide, band.height);
  ctx.strokeStyle = css(theme.cursor);
  ctx.lineWidth = pen.px(1);
  ctx.strokeRect(left + 0.5, band.y + 0.5, wide - 1, band.height - 1);
}

/** Extremes of the columns with samples. @param {Float32Array} ends @param {{min: Float32Array, max: Float32Array}} data */
function finite(ends, { min, max }) {
  return ends.filter((end, place) => min[place] <= max[place] && Number.isFinite(end));
}
