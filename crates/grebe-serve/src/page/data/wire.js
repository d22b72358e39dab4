// Assembles the server's messages: a value stays until it changes, and a picture uses all values so far.

import { ByteReader } from "./bytes.js";
import { readColumns, readSamples } from "./columns.js";
import { COLUMNS_MAX, LANES_MAX, Pieces, WHOLE, readLane } from "./pieces.js";

/**
 * @typedef {import("./picture.js").Picture} Picture
 * @typedef {import("./picture.js").LaneColumns} LaneColumns
 * @typedef {import("./columns.js").CodedColumns} CodedColumns
 * @typedef {{number: number, picture: Picture | null, hasPieces: boolean, file: {name: string, bytes: Uint8Array} | null}} Taken
 */

/** The decoder's state of one connection. */
export class Session {
  #pieces = new Pieces();
  /** The lanes of the previous picture, from which the next is coded. @type {Map<string, CodedColumns>} */
  #bases = new Map();

  /** Decodes a binary message: its number, to be acknowledged, and its content. @param {Uint8Array} bytes @returns {Taken} */
  read(bytes) {
    const reader = new ByteReader(bytes);
    const kind = reader.u8();
    const number = reader.varint();
    if (kind === KIND_FILE) {
      const name = new TextDecoder().decode(reader.take(reader.varint()));
      return { number, picture: null, hasPieces: false, file: { name, bytes: reader.rest() } };
    }
    const made = kind === KIND_PICTURE ? this.#picture(reader) : null;
    const hasPieces = kind <= KIND_PIECES && !reader.isAtEnd;
    while (kind <= KIND_PIECES && !reader.isAtEnd) this.#pieces.read(reader);
    return { number, picture: made && { ...made, ...this.extras() }, hasPieces, file: null };
  }

  /** Completed items. */
  extras() {
    const { spectrum, waterfall, overview, density, xy, sound } = this.#pieces;
    return { spectrum, waterfall, overview, density, xy, sound };
  }

  /** @param {ByteReader} reader */
  #picture(reader) {
    const answers = reader.varint();
    const flags = reader.u8();
    const samplesPerColumn = reader.f64();
    const firstColumn = reader.zigzag();
    const columns = reader.count(COLUMNS_MAX);
    const [oldestIndex, nextIndex] = [reader.varint(), reader.varint()];
    reader.varint(); // the server's clock
    if (flags & FLAG.hasArrived) [reader.zigzag(), reader.varint(), reader.varint()];
    const trigger = flags & FLAG.hasTrigger ? readTrigger(reader) : null;
    return {
      answers,
      isEnded: (flags & FLAG.isEnded) !== 0,
      leftIndex: firstColumn * samplesPerColumn,
      spanSamples: Math.max(columns, 1) * samplesPerColumn,
      lanes: this.#lanes(reader, columns, { samplesPerColumn, firstColumn }),
      oldestIndex,
      nextIndex,
      trigger,
    };
  }

  /** @param {ByteReader} reader @param {number} columns @param {{firstColumn: number, samplesPerColumn: number}} grid @returns {LaneColumns[]} */
  #lanes(reader, columns, grid) {
    /** @type {Map<string, CodedColumns>} */
    const bases = new Map();
    const lanes = Array.from({ length: reader.count(LANES_MAX) }, () => {
      const lane = readLane(reader);
      const flags = reader.u8();
      const mean = reader.f64();
      /** @type {[number | null, number | null]} */
      const atCursors = [flags & LANE.cursorA ? reader.f64() : null, flags & LANE.cursorB ? reader.f64() : null];
      const coded = readColumns(reader, columns, (flags & WHOLE) !== 0, grid, this.#bases.get(lane) ?? null);
      bases.set(lane, coded);
      const { min, max, coverage } = coded;
      const runs = flags & LANE.hasLine ? readRuns(reader) : null;
      return { lane, min, max, coverage, mean, isClipped: (flags & LANE.isClipped) !== 0, runs, atCursors };
    });
    this.#bases = bases;
    return lanes;
  }
}

/** @param {ByteReader} reader */
function readTrigger(reader) {
  reader.u8();
  const hasAt = reader.u8() !== 0;
  const [level, upper] = [reader.f64(), reader.f64()];
  return { level, upper, at: hasAt ? reader.f64() : null };
}

/** @param {ByteReader} reader @returns {import("./picture.js").Runs} */
function readRuns(reader) {
  const heads = Array.from({ length: reader.count(COLUMNS_MAX) }, () => ({ first: reader.varint(), count: reader.count(SAMPLES_MAX) }));
  const isWhole = (reader.u8() & WHOLE) !== 0;
  const all = readSamples(reader, heads.reduce((sum, { count }) => sum + count, 0), isWhole);
  let at = 0;
  return heads.map(({ first, count }) => ({ first, samples: all.subarray(at, (at += count)) }));
}

const KIND_PICTURE = 1;
const KIND_PIECES = 2;
const KIND_FILE = 3;
const FLAG = { isEnded: 1, hasTrigger: 4, hasArrived: 8 };
const LANE = { isClipped: 1, hasLine: 2, cursorA: 8, cursorB: 16 };
const SAMPLES_MAX = 1 << 20;
