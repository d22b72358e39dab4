// Items too large for one message: spectra, waterfalls, the whole history. They arrive in pieces, and are decoded
// when complete.

import { BadMessage, ByteReader, RiceContext } from "./bytes.js";
import { readColumns, readSamples } from "./columns.js";

/**
 * @typedef {import("./picture.js").SpectrumView} SpectrumView
 * @typedef {import("./picture.js").Waterfall} Waterfall
 * @typedef {import("./picture.js").Overview} Overview
 * @typedef {import("./picture.js").Density} Density
 * @typedef {import("./picture.js").Xy} Xy
 * @typedef {import("./picture.js").Sound} Sound
 */

/** Partial and complete items. */
export class Pieces {
  /** @type {Map<number, {bytes: Uint8Array, filled: number}>} */
  #underWay = new Map();
  /** @type {SpectrumView | null} */
  spectrum = null;
  /** @type {Waterfall | null} */
  waterfall = null;
  /** @type {Overview | null} */
  overview = null;
  /** @type {Density | null} */
  density = null;
  /** @type {Xy | null} */
  xy = null;
  /** @type {Sound | null} */
  sound = null;

  /** Takes one piece. @param {ByteReader} reader */
  read(reader) {
    const item = reader.u8();
    const [total, offset, length] = [reader.count(BYTES_MAX), reader.varint(), reader.varint()];
    const bytes = reader.take(length);
    if (total === 0) return this.#forget(item);
    if (offset === 0) this.#underWay.set(item, { bytes: new Uint8Array(total), filled: 0 });
    const coming = this.#underWay.get(item);
    if (!coming || coming.filled !== offset || coming.bytes.length !== total || offset + length > total) {
      throw new BadMessage("a piece that does not fit the ones before");
    }
    coming.bytes.set(bytes, offset);
    coming.filled += length;
    if (coming.filled < total) return;
    this.#underWay.delete(item);
    this.#finish(item, new ByteReader(coming.bytes));
  }

  /** @param {number} item */
  #forget(item) {
    this.#underWay.delete(item);
    if (item === ITEM.spectrum) this.spectrum = null;
    else if (item === ITEM.waterfall) this.waterfall = null;
    else if (item === ITEM.persistence) this.density = null;
    else if (item === ITEM.xy) this.xy = null;
    else if (item === ITEM.overview) this.overview = null;
  }

  /** @param {number} item @param {ByteReader} reader */
  #finish(item, reader) {
    if (item === ITEM.spectrum) this.spectrum = readSpectrum(reader);
    else if (item === ITEM.waterfall) this.waterfall = readWaterfall(reader, this.waterfall);
    else if (item === ITEM.persistence) this.density = readDensity(reader);
    else if (item === ITEM.overview) this.overview = readOverview(reader);
    else if (item === ITEM.xy) this.xy = readXy(reader);
    else if (item === ITEM.sound) this.sound = readSound(reader);
    // Skip unknown items of later versions.
  }
}

/** @param {ByteReader} reader @returns {SpectrumView} */
function readSpectrum(reader) {
  const answers = reader.varint();
  const [size, transformSize] = [reader.varint(), reader.varint()];
  const isTwoSided = (reader.u8() & 1) !== 0;
  const channels = Array.from({ length: reader.count(LANES_MAX) }, () => {
    const channel = reader.varint();
    const lines = reader.count(LINES_MAX);
    const dbfs = readLevels(reader, lines, null);
    const hold = reader.u8() === 0 ? new Float32Array(0) : readLevels(reader, lines, dbfs);
    const peaks = Array.from({ length: reader.count(PEAKS_MAX) }, () => ({ line: reader.f64(), dbfs: reader.f64() }));
    return { channel, dbfs, hold, peaks };
  });
  return { answers, size, transformSize, isTwoSided, channels };
}

/** Levels in steps of 1/8 dB, each as a difference from the line before; held levels as a difference from the present ones. @param {ByteReader} reader @param {number} lines @param {Float32Array | null} below */
function readLevels(reader, lines, below) {
  const levels = new Float32Array(lines);
  const [bits, context] = [reader.bits(), new RiceContext()];
  let before = 0;
  for (let line = 0; line < lines; line += 1) {
    before = (before + context.residual(bits)) | 0;
    levels[line] = levelOf(below ? (before + codeOfLevel(below[line], 8)) | 0 : before, 8);
  }
  return levels;
}

/** @param {ByteReader} reader @param {Waterfall | null} previous @returns {Waterfall} */
function readWaterfall(reader, previous) {
  const channel = reader.varint();
  const [width, rows] = [reader.count(LINES_MAX), reader.count(ROWS_MAX)];
  if (width * rows > CELLS_MAX) throw new BadMessage("a waterfall too large");
  const spanSamples = reader.f64();
  /** @type {[number, number]} */
  const band = [reader.f64(), reader.f64()];
  const number = reader.varint();
  const sampled = reader.u8() === 0 ? null : { done: reader.varint(), all: reader.varint() };
  const moved = reader.count(rows);
  const news = reader.take(Math.ceil(rows / 8));
  const cells = new Float32Array(width * rows);
  const [bits, context] = [reader.bits(), new RiceContext()];
  for (let row = 0; row < rows; row += 1) {
    if ((news[row >> 3] >> (row & 7)) & 1) {
      let before = 0;
      for (let at = row * width; at < (row + 1) * width; at += 1) {
        before = (before + context.residual(bits)) | 0;
        cells[at] = levelOf(before, 2);
      }
      continue;
    }
    const from = (row - moved) * width;
    if (from < 0 || !previous || previous.width !== width || previous.channel !== channel || previous.cells.length < from + width) {
      throw new BadMessage("a row of a waterfall that there is not");
    }
    cells.set(previous.cells.subarray(from, from + width), row * width);
  }
  return { channel, width, band, cells, spanSamples, number, sampled };
}

/** @param {ByteReader} reader @returns {Density} */
function readDensity(reader) {
  const [number, records, fraction] = [reader.varint(), reader.varint(), reader.f64()];
  const lanes = Array.from({ length: reader.count(LANES_MAX) }, () => {
    const lane = readLane(reader);
    const [width, height] = [reader.count(CELLS_MAX), reader.count(CELLS_MAX)];
    if (width * height > CELLS_MAX) throw new BadMessage("a density too large");
    return { lane, width, height, cells: readCells(reader, width * height) };
  });
  return { number, records, fraction, lanes };
}

/** @param {ByteReader} reader @returns {Xy} */
function readXy(reader) {
  const [answers, number, points] = [reader.varint(), reader.varint(), reader.varint()];
  const [width, height] = [reader.count(CELLS_MAX), reader.count(CELLS_MAX)];
  if (width * height > CELLS_MAX) throw new BadMessage("more cells than there can be");
  return { answers, number, points, width, height, cells: readCells(reader, width * height) };
}

/** @param {ByteReader} reader @param {number} count */
function readCells(reader, count) {
  const cells = new Uint8Array(count);
  const [bits, zeros, values] = [reader.bits(), new RiceContext(), new RiceContext()];
  for (let at = 0; at < count; at += 1) {
    at += zeros.unsigned(bits);
    if (at < count) cells[at] = values.unsigned(bits) + 1;
  }
  return cells;
}

/** @param {ByteReader} reader @returns {Overview} */
function readOverview(reader) {
  const [leftIndex, spanSamples] = [reader.f64(), reader.f64()];
  const lanes = Array.from({ length: reader.count(LANES_MAX) }, () => {
    const lane = readLane(reader);
    const isWhole = (reader.u8() & WHOLE) !== 0;
    const { min, max, coverage } = readColumns(reader, reader.count(COLUMNS_MAX), isWhole, { firstColumn: 0, samplesPerColumn: 1 }, null);
    return { lane, min, max, coverage };
  });
  return { leftIndex, spanSamples, lanes };
}

/** @param {ByteReader} reader @returns {Sound} */
function readSound(reader) {
  const isLive = reader.u8() !== 0;
  const [rate, count] = [reader.count(SOUND_RATE_MAX), reader.count(SOUND_SAMPLES_MAX)];
  if (rate < SOUND_RATE_MIN || count === 0) throw new BadMessage("a sound that nothing can play");
  const samples = readSamples(reader, count, (reader.u8() & WHOLE) !== 0);
  return { isLive, rate, samples: samples.map((sample) => sample / 32768) };
}

/** @param {ByteReader} reader @returns {import("./picture.js").LaneId} */
export function readLane(reader) {
  const [channel, part] = [reader.count(255), reader.u8()];
  if (part >= PARTS.length) throw new BadMessage(`part ${part} of a channel`);
  if (part === PARTS.length - 1) return PARTS[part];
  return part === 0 ? `${channel + 1}` : `${channel + 1}.${PARTS[part]}`;
}

/** @param {number} code @param {number} perDb */
function levelOf(code, perDb) {
  if (code === -32768) return -Infinity;
  return code === 32767 ? NaN : code / perDb;
}

/** @param {number} level @param {number} perDb */
function codeOfLevel(level, perDb) {
  if (level === -Infinity) return -32768;
  return Number.isNaN(level) ? 32767 : Math.round(level * perDb);
}

/** Codes of lanes. */
const PARTS = ["", "i", "q", "magnitude", "db", "phase", "frequency", "math"];
const ITEM = { spectrum: 1, waterfall: 2, persistence: 3, xy: 4, overview: 5, sound: 8 };
/** Flag of values: integers instead of floating point. */
export const WHOLE = 4;
/** Limit of a valid answer, checked before memory is reserved. */
const BYTES_MAX = 64 << 20;
const LINES_MAX = 1 << 18;
const ROWS_MAX = 4096;
const CELLS_MAX = 1 << 24;
const PEAKS_MAX = 4096;
/** What every browser plays, and a minute of it. */
const SOUND_RATE_MIN = 8000;
const SOUND_RATE_MAX = 96_000;
const SOUND_SAMPLES_MAX = 60 * SOUND_RATE_MAX;
export const COLUMNS_MAX = 16384;
export const LANES_MAX = 255 * 6 + 1;
