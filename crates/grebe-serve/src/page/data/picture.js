// Content of a picture message: columns in raw counts, and their places. `shown` has their scales.

/**
 * @typedef {string} LaneId as messages write it: `3` for a real channel (from 1), `3.magnitude`, `math`
 *
 * @typedef {{first: number, samples: Float32Array}[]} Runs samples that lie wider apart than columns, in runs without a gap; `first`: sample index
 *
 * @typedef {object} LaneColumns in raw counts
 * @property {LaneId} lane
 * @property {Float32Array} min greater than `max` where a column is empty
 * @property {Float32Array} max
 * @property {Uint8Array} coverage one of `COVERAGE`
 * @property {Runs | null} runs the samples themselves, where they lie wider apart than columns
 * @property {boolean} isClipped
 * @property {number} mean of the visible samples
 * @property {[number | null, number | null]} atCursors
 *
 * @typedef {{line: number, dbfs: number}} Peak
 * @typedef {{channel: number, dbfs: Float32Array, hold: Float32Array, peaks: Peak[]}} ChannelSpectrum
 * @typedef {object} Waterfall rows of levels, the newest first
 * @property {number} channel
 * @property {number} width
 * @property {[number, number]} band lowest and highest frequency of the cells, as parts of the rate
 * @property {Float32Array} cells levels; not-a-number: lost; minus infinity: nothing
 * @property {number} spanSamples
 * @property {number} number grows with each
 * @property {{done: number, all: number} | null} sampled
 * @typedef {{answers: number, size: number, transformSize: number, isTwoSided: boolean, channels: ChannelSpectrum[]}} SpectrumView
 *
 * @typedef {{width: number, height: number, cells: Uint8Array}} Cells rows from the top, 0: never
 * @typedef {{number: number, records: number, fraction: number, lanes: (Cells & {lane: LaneId})[]}} Density how often the traces of all triggers passed each cell
 * @typedef {Cells & {answers: number, number: number, points: number}} Xy how often points fell into each cell
 * @typedef {{leftIndex: number, spanSamples: number, lanes: {lane: LaneId, min: Float32Array, max: Float32Array, coverage: Uint8Array}[]}} Overview
 * @typedef {{isLive: boolean, rate: number, samples: Float32Array}} Sound of a box, or a piece of live sound; full scale: 1
 *
 * @typedef {object} Picture
 * @property {number} answers the number of the deed that it follows from
 * @property {boolean} isEnded
 * @property {number} leftIndex
 * @property {number} spanSamples
 * @property {number} oldestIndex what the history covers
 * @property {number} nextIndex
 * @property {LaneColumns[]} lanes
 * @property {{level: number, upper: number, at: number | null} | null} trigger
 * @property {SpectrumView | null} spectrum
 * @property {Waterfall | null} waterfall
 * @property {Density | null} density
 * @property {Xy | null} xy
 * @property {Overview | null} overview
 * @property {Sound | null} sound
 */

/** Coverage of a column's span by samples. */
export const COVERAGE = { outside: 0, complete: 1, partial: 2, gap: 3 };

/** The empty picture, before the first message. @returns {Picture} */
export const waitingPicture = () => ({
  answers: 0, isEnded: false, leftIndex: 0, spanSamples: 1, oldestIndex: 0, nextIndex: 0, lanes: [], trigger: null,
  spectrum: null, waterfall: null, density: null, xy: null, overview: null, sound: null,
});
