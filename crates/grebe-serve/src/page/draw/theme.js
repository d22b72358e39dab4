// Colours: those of the window and of pictures, readable for people with colour vision deficiency.

/**
 * @typedef {[number, number, number]} Rgb
 * @typedef {{plot: Rgb, grid: Rgb, gridZero: Rgb, text: Rgb, textDim: Rgb, gap: Rgb, cursor: Rgb, background: Rgb, traces: Rgb[], isDark: boolean}} Theme
 */

/** @type {Theme} */
export const DARK = {
  isDark: true,
  background: [16, 18, 22],
  plot: [9, 10, 13],
  grid: [38, 42, 50],
  gridZero: [70, 76, 88],
  text: [232, 234, 238],
  textDim: [158, 164, 176],
  gap: [255, 84, 84],
  cursor: [255, 255, 255],
  traces: [
    [245, 214, 66], [86, 190, 245], [255, 128, 200], [90, 220, 140],
    [255, 159, 64], [176, 150, 255], [120, 230, 225], [225, 225, 225],
  ],
};

/** @type {Theme} */
export const LIGHT = {
  isDark: false,
  background: [243, 244, 246],
  plot: [255, 255, 255],
  grid: [222, 225, 230],
  gridZero: [168, 174, 184],
  text: [22, 24, 29],
  textDim: [84, 90, 102],
  gap: [200, 22, 30],
  cursor: [40, 40, 40],
  traces: [
    [148, 96, 0], [0, 98, 168], [176, 22, 116], [10, 112, 52],
    [176, 68, 0], [96, 60, 190], [0, 112, 118], [70, 70, 70],
  ],
};

/** @param {Rgb} color @param {number} opacity */
export const css = ([r, g, b], opacity = 1) => `rgb(${r} ${g} ${b} / ${opacity})`;

/** A colour between two. @param {Rgb} from @param {Rgb} to @param {number} part @returns {Rgb} */
export const mix = (from, to, part) => {
  const between = (/** @type {0 | 1 | 2} */ at) => Math.round(from[at] + (to[at] - from[at]) * part);
  return [between(0), between(1), between(2)];
};
