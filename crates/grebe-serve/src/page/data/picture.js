// What the server answers: one consistent moment of the stream, as `wire.js` decodes it and everything behind it draws it.

/**
 * @typedef {"real" | "i" | "q" | "magnitude" | "db" | "phase" | "frequency" | "math"} Part
 * @typedef {{channel: number, part: Part}} LaneId channels count from 0
 *
 * @typedef {object} StreamInfo
 * @property {number} channels
 * @property {string} format as `i16` or `cf32`
 * @property {number} rateHz 0 = unknown
 * @property {number} generatorDrops samples
 *
 * @typedef {{name: string, unit: string, scale: number, offset: number}} ChannelTold
 *
 * @typedef {object} Description what the stream says of itself
 * @property {string} name
 * @property {number | null} centreHz
 * @property {ChannelTold[]} channels
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
 * @typedef {{number: number, start: number, end: number, generator_samples: number, lost_frames: number}} Gap sample indices
 * @typedef {{index: number, rateHz: number | null, centreHz: number | null}} Change where the stream became another, and went on
 *
 * @typedef {{count: number, mean: number | null, deviation: number | null, gaps: number}} TriggerRate of the seconds between triggers
 * @typedef {object} TriggerView
 * @property {LaneId} lane
 * @property {number} level in raw counts, the lower one of two
 * @property {number} upper
 * @property {boolean} isLfReject levels count from the mean of what is visible
 * @property {"ready" | "triggered" | "free" | "stopped"} state
 * @property {number | null} at sample index of the trigger that is shown
 * @property {number} found
 * @property {TriggerRate} rate
 *
 * @typedef {{lane: LaneId, values: (number | null)[], samples: number, levelSamples: number}} Measured
 *
 * @typedef {{line: number, dbfs: number}} Peak
 * @typedef {{channel: number, dbfs: Float32Array, hold: Float32Array, peaks: Peak[]}} ChannelSpectrum
 * @typedef {object} Waterfall rows of levels, the newest first
 * @property {number} channel
 * @property {number} width
 * @property {Float32Array} cells dBFS; not-a-number: lost; minus infinity: nothing
 * @property {number} spanSamples
 * @property {number} number grows with each
 * @property {string} words
 * @typedef {object} SpectrumView
 * @property {number} answers the number of its viewport
 * @property {number} size a line is 1/size of the rate from the next
 * @property {number} transformSize
 * @property {boolean} isTwoSided
 * @property {ChannelSpectrum[]} channels
 *
 * @typedef {object} Density how often the traces of all triggers passed each cell
 * @property {number} number grows with each
 * @property {number} records
 * @property {number} fraction of all triggers
 * @property {{lane: LaneId, width: number, height: number, cells: Uint8Array}[]} lanes rows from the top
 *
 * @typedef {{leftIndex: number, spanSamples: number, lanes: {lane: LaneId, min: Float32Array, max: Float32Array, coverage: Uint8Array}[]}} Overview
 *
 * @typedef {object} Picture
 * @property {number} answers the number of the viewport that it is of
 * @property {StreamInfo | null} stream
 * @property {Description | null} description
 * @property {boolean} isEnded
 * @property {boolean} isEstimated
 * @property {number} leftIndex
 * @property {number} spanSamples
 * @property {LaneColumns[]} lanes
 * @property {number} oldestIndex
 * @property {number} nextIndex
 * @property {{framesPerS: number, samplesPerS: number, bytesPerS: number}} flow
 * @property {{seconds: number, isRelative: boolean} | null} latency of the newest sample, when the picture was made
 * @property {number} idleS since the newest batch, when the picture was made
 * @property {number} serverNs when it was made, by the server's clock
 * @property {number} takenMs when it came, by this machine's clock
 * @property {{frames: number, samples: number, lost_frames: number, generator_samples: number, late_frames: number, duplicate_frames: number}} counts
 * @property {Gap[]} gaps
 * @property {Change[]} changes
 * @property {TriggerView | null} trigger
 * @property {number[]} triggers sample indices
 * @property {Measured[]} measured
 * @property {string} refused what was asked for and is not shown, and why
 * @property {SpectrumView | null} spectrum
 * @property {Waterfall | null} waterfall
 * @property {Density | null} density
 * @property {Overview | null} overview
 * @property {number} streams
 */

/** What a column knows about the samples of its span. */
export const COVERAGE = { outside: 0, complete: 1, partial: 2, gap: 3 };

/** The parts in the order of their lanes. @type {Part[]} */
export const PARTS = ["real", "i", "q", "magnitude", "db", "phase", "frequency", "math"];
/** @type {Part[]} */
export const COMPLEX_PARTS = ["i", "q", "magnitude", "db", "phase", "frequency"];

/** A lane as messages and links write it: `3` for a real channel (from 1), `3.magnitude`, `math`. @param {LaneId} lane */
export const laneText = ({ channel, part }) => (part === "math" ? part : part === "real" ? `${channel + 1}` : `${channel + 1}.${part}`);

/** @param {string} text @returns {LaneId | null} */
export function laneOfText(text) {
  if (text === "math") return { channel: 0, part: "math" };
  const [number, name = "real"] = text.split(".");
  const part = PARTS.find((part) => part === name);
  const channel = Number(number) - 1;
  return part && part !== "math" && Number.isInteger(channel) && channel >= 0 && channel < 255 ? { channel, part } : null;
}

/** @param {LaneId} a @param {LaneId} b */
export const isSameLane = (a, b) => a.channel === b.channel && a.part === b.part;
/** @param {StreamInfo | null} stream */
export const isComplex = (stream) => stream !== null && stream.format.startsWith("c");
/** Samples per second where known, else 1. @param {Picture} picture */
export const rateOrOne = (picture) => (picture.stream && picture.stream.rateHz > 0 ? picture.stream.rateHz : 1);
/** @param {Picture} picture */
export const axisUnit = (picture) => (picture.stream && picture.stream.rateHz > 0 ? "s" : "S");
/** @param {Picture} picture */
export const rightIndex = (picture) => picture.leftIndex + picture.spanSamples;

/** Before anything came. @returns {Picture} */
export const waitingPicture = () => ({
  answers: 0,
  stream: null,
  description: null,
  isEnded: false,
  isEstimated: false,
  leftIndex: 0,
  spanSamples: 1,
  lanes: [],
  oldestIndex: 0,
  nextIndex: 0,
  serverNs: 0,
  takenMs: 0,
  counts: { frames: 0, samples: 0, lost_frames: 0, generator_samples: 0, late_frames: 0, duplicate_frames: 0 },
  flow: { framesPerS: 0, samplesPerS: 0, bytesPerS: 0 },
  latency: null,
  idleS: 0,
  gaps: [],
  changes: [],
  trigger: null,
  triggers: [],
  measured: [],
  refused: "",
  spectrum: null,
  waterfall: null,
  density: null,
  overview: null,
  streams: 0,
});
