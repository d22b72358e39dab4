// Densities as images: what came often is bright, what came once is still seen.

import { mix } from "./theme.js";

/**
 * @typedef {import("../data/picture.js").LaneId} LaneId
 * @typedef {import("./theme.js").Rgb} Rgb
 * @typedef {import("./theme.js").Theme} Theme
 */

export class Densities {
  /** @type {import("../data/picture.js").Density | null} */
  density = null;
  /** @type {Map<string, {key: string, image: HTMLCanvasElement}>} */
  #images = new Map();

  /** The image of a lane; `null` without densities. @param {LaneId} lane @param {Rgb} color @param {Theme} theme @returns {HTMLCanvasElement | null} */
  of(lane, color, theme) {
    const cells = this.density?.lanes.find((it) => it.lane === lane);
    if (!this.density || !cells || this.density.records === 0) return null;
    const key = [this.density.number, cells.width, theme.is_dark, color].join();
    const kept = this.#images.get(lane);
    if (kept?.key === key) return kept.image;
    const image = kept?.image ?? document.createElement("canvas");
    [image.width, image.height] = [cells.width, cells.height];
    const ctx = /** @type {CanvasRenderingContext2D} */ (image.getContext("2d"));
    const pixels = ctx.createImageData(cells.width, cells.height);
    const words = new Uint32Array(pixels.data.buffer);
    const ramp = Uint32Array.from({ length: 256 }, (_, level) => glow(level / 255, color, theme.text));
    cells.cells.forEach((level, at) => (words[at] = ramp[level]));
    ctx.putImageData(pixels, 0, 0);
    this.#images.set(lane, { key, image });
    return image;
  }
}

/** Fades in, then turns towards the colour of text, so that frequent levels stand out. @param {number} level @param {Rgb} color @param {Rgb} text */
function glow(level, color, text) {
  const [r, g, b] = mix(color, text, Math.min(Math.max((level - 0.6) / 0.4, 0), 1) * 0.5);
  const alpha = Math.round(Math.min(level / 0.6, 1) * 255);
  return ((alpha << 24) | (b << 16) | (g << 8) | r) >>> 0;
}
