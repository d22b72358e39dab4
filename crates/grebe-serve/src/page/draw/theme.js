// Colours as styles. Which they are is said in `shown.theme`.

/**
 * @typedef {import("../data/shown.js").Rgb} Rgb
 * @typedef {import("../data/shown.js").Theme} Theme
 */

/** @param {Rgb} color @param {number} opacity */
export const css = ([r, g, b], opacity = 1) => `rgb(${r} ${g} ${b} / ${opacity})`;

/** A colour between two. @param {Rgb} from @param {Rgb} to @param {number} part @returns {Rgb} */
export const mix = (from, to, part) => {
  const between = (/** @type {0 | 1 | 2} */ at) => Math.round(from[at] + (to[at] - from[at]) * part);
  return [between(0), between(1), between(2)];
};

/** Colours of levels: from the plot's over a hue to the text's. @param {Theme} theme */
export function rampOf(theme) {
  const stops = theme.is_dark ? DARK_RAMP : LIGHT_RAMP;
  return Uint32Array.from({ length: 256 }, (_, level) => {
    const at = (level / 255) * (stops.length - 1);
    const before = Math.min(Math.floor(at), stops.length - 2);
    return packed(mix(stops[before], stops[before + 1], at - before));
  });
}

/** As a pixel of an image, on a machine whose words begin with the lowest byte. @param {Rgb} color */
export const packed = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;

/** @type {Rgb[]} */
const DARK_RAMP = [[9, 10, 13], [40, 20, 90], [150, 35, 120], [245, 120, 50], [255, 245, 170]];
/** @type {Rgb[]} */
const LIGHT_RAMP = [[255, 255, 255], [198, 214, 236], [96, 140, 200], [40, 60, 140], [20, 10, 50]];
