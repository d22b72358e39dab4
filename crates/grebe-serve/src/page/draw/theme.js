// Colours as CSS styles, from `shown.theme`.

/**
 * @typedef {import("../data/shown.js").Rgb} Rgb
 * @typedef {import("../data/shown.js").Theme} Theme
 */

/** @param {Rgb} color @param {number} opacity */
export const css = ([r, g, b], opacity = 1) => `rgb(${r} ${g} ${b} / ${opacity})`;

/** Interpolates two colours. @param {Rgb} from @param {Rgb} to @param {number} part @returns {Rgb} */
export const mix = (from, to, part) => {
  const between = (/** @type {0 | 1 | 2} */ at) => Math.round(from[at] + (to[at] - from[at]) * part);
  return [between(0), between(1), between(2)];
};

/** Colours of levels, from the lowest to the highest. @param {Theme} theme */
export function rampOf({ ramp }) {
  return Uint32Array.from({ length: 256 }, (_, level) => {
    const at = (level / 255) * (ramp.length - 1);
    const before = Math.min(Math.floor(at), ramp.length - 2);
    return packed(mix(ramp[before], ramp[before + 1], at - before));
  });
}

/** Converts a colour to a pixel of an image, on a little-endian machine. @param {Rgb} color */
export const packed = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
