// Decodes columns and samples: residuals from the lane's previous picture, or from a neighbour.

import { BadMessage, RiceContext } from "./bytes.js";

/**
 * @typedef {import("./bytes.js").ByteReader} ByteReader
 *
 * @typedef {object} CodedColumns
 * @property {Float32Array} min greater than `max` where a column is empty
 * @property {Float32Array} max
 * @property {Uint8Array} coverage
 * @property {Int32Array} codes of min and max, two a column
 * @property {boolean} isWhole whether codes are the values themselves
 * @property {number} firstColumn number on the grid
 * @property {number} samplesPerColumn
 */

/**
 * @param {ByteReader} reader @param {number} count @param {boolean} isWhole
 * @param {{firstColumn: number, samplesPerColumn: number}} grid @param {CodedColumns | null} base @returns {CodedColumns}
 */
export function readColumns(reader, count, isWhole, grid, base) {
  const out = emptyColumns(count, isWhole, grid);
  const kinds = readKinds(reader, count);
  const predictor = reader.u8();
  if (predictor > 2) throw new BadMessage(`predictor ${predictor}`);
  const bits = reader.bits();
  const contexts = [new RiceContext(), new RiceContext()];
  // A base of another number type is useless.
  const near = base !== null && base.isWhole === isWhole ? base : null;
  const shift = base === null ? 0 : grid.firstColumn - base.firstColumn;
  let [low, high, hasLeft] = [0, 0, false];
  for (let place = 0; place < count; place += 1) {
    const kind = kinds[place];
    if (kind === COPIED) {
      if (base === null) throw new BadMessage("columns of a base that there is not");
      const from = place + shift;
      if (from < 0 || from >= base.min.length) throw new BadMessage("a column beyond its base");
      out.min[place] = base.min[from];
      out.max[place] = base.max[from];
      out.coverage[place] = base.coverage[from];
      if (isBlank(base, from)) continue;
      hasLeft = true;
      // Use codes where possible, because the bits of a NaN do not survive as a number.
      low = out.codes[2 * place] = near ? base.codes[2 * from] : codeOf(base.min[from], isWhole);
      high = out.codes[2 * place + 1] = near ? base.codes[2 * from + 1] : codeOf(base.max[from], isWhole);
      continue;
    }
    out.coverage[place] = kind & 3;
    if (kind >= 4) continue;
    let [expectedLow, expectedHigh] = [low, high];
    const isThere = predictor === 2 && near !== null && place < near.min.length && !isBlank(near, place);
    if (isThere) [expectedLow, expectedHigh] = [near.codes[2 * place], near.codes[2 * place + 1]];
    const newLow = (expectedLow + contexts[0].residual(bits)) | 0;
    // The first column has no neighbour to follow.
    if (predictor === 1 && hasLeft) expectedHigh = (high + ((newLow - low) | 0)) | 0;
    const newHigh = (expectedHigh + contexts[1].residual(bits)) | 0;
    [low, high, hasLeft] = [newLow, newHigh, true];
    [out.codes[2 * place], out.codes[2 * place + 1]] = [low, high];
    [out.min[place], out.max[place]] = [valueOf(low, isWhole), valueOf(high, isWhole)];
  }
  return out;
}

/** Samples of a stretch, each coded as a difference from the previous one. @param {ByteReader} reader @param {number} count @param {boolean} isWhole */
export function readSamples(reader, count, isWhole) {
  const samples = new Float32Array(count);
  const [bits, context] = [reader.bits(), new RiceContext()];
  let before = 0;
  for (let at = 0; at < count; at += 1) {
    before = (before + context.residual(bits)) | 0;
    samples[at] = valueOf(before, isWhole);
  }
  return samples;
}

/** Whether a column holds no sample. @param {{min: Float32Array, max: Float32Array}} columns @param {number} place */
function isBlank({ min, max }, place) {
  return min[place] === HIGHEST && max[place] === -HIGHEST;
}

/** The kind of each column: coverage with samples, 4 + coverage without, or copied. @param {ByteReader} reader @param {number} count */
function readKinds(reader, count) {
  const kinds = new Uint8Array(count);
  for (let place = 0; place < count; ) {
    const run = reader.varint();
    const [kind, length] = [run % 16, Math.floor(run / 16)];
    if (kind > COPIED || length === 0 || place + length > count) throw new BadMessage("runs of columns");
    kinds.fill(kind, place, place + length);
    place += length;
  }
  return kinds;
}

/** @param {number} count @param {boolean} isWhole @param {{firstColumn: number, samplesPerColumn: number}} grid @returns {CodedColumns} */
function emptyColumns(count, isWhole, { firstColumn, samplesPerColumn }) {
  const [min, max] = [new Float32Array(count).fill(HIGHEST), new Float32Array(count).fill(-HIGHEST)];
  return { min, max, coverage: new Uint8Array(count), codes: new Int32Array(2 * count), isWhole, firstColumn, samplesPerColumn };
}

/** Integers are their own code; other values use their bits, in the order of the values. @param {number} code @param {boolean} isWhole */
function valueOf(code, isWhole) {
  if (isWhole) return code;
  WORD[0] = code >= 0 ? code : code ^ 0x7fffffff;
  return FLOAT[0];
}

/** @param {number} value @param {boolean} isWhole */
function codeOf(value, isWhole) {
  if (isWhole) return value | 0;
  FLOAT[0] = value;
  return WORD[0] >= 0 ? WORD[0] : WORD[0] ^ 0x7fffffff;
}

const COPIED = 8;
/** Values of a column without samples, so that merging needs no special case. */
const HIGHEST = Infinity;
const FLOAT = new Float32Array(1);
const WORD = new Int32Array(FLOAT.buffer);
