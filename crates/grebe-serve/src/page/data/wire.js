// What the server says, put together: what it told stays until it tells otherwise, and each picture is of all that was told before.

import { ByteReader } from "./bytes.js";
import { readColumns, readSamples } from "./columns.js";
import { COLUMNS_MAX, LANES_MAX, Pieces, WHOLE, readLane } from "./pieces.js";
import { isSameLane, laneOfText } from "./picture.js";

/**
 * @typedef {import("./picture.js").Picture} Picture
 * @typedef {import("./picture.js").LaneColumns} LaneColumns
 * @typedef {import("./columns.js").CodedColumns} CodedColumns
 * @typedef {{frames: number, samples: number} | null} SourceLoss
 *
 * @typedef {object} Status what only the source knows
 * @property {string} name
 * @property {boolean} is_same_boot
 * @property {SourceLoss} network
 * @property {SourceLoss} shared_memory
 * @property {SourceLoss} queue
 * @property {number | null} kernel_datagrams
 * @property {number} refused_datagrams
 * @property {number} foreign_datagrams
 * @property {string | null} advice
 * @property {string | null} notice
 * @property {boolean} is_recording
 * @property {Tuned | null} [tuned] what its receiver is tuned to
 *
 * @typedef {{name: string, unit: string, scale: number, offset: number}} ChannelWords
 * @typedef {{frequency_hz: number, rate_hz: number, gain_db: number | null}} Tuned
 * @typedef {{waves: string[] | null, tuned: Tuned | null, keeps: string | null}} Controls what there is to be changed
 */

/** One connection's memory. */
export class Session {
  /** @type {Status} */
  status = { name: "", is_same_boot: false, network: null, shared_memory: null, queue: null, kernel_datagrams: null,
    refused_datagrams: 0, foreign_datagrams: 0, advice: null, notice: null, is_recording: false };
  /** @type {Controls} */
  controls = { waves: null, tuned: null, keeps: null };
  mayControl = false;
  /** Whether the server searches all that is held. */
  canFind = false;
  /** What each source of the server is called, where there are several. @type {string[]} */
  sources = [];
  /** As the server was told of the channels. @type {ChannelWords[]} */
  #channels = [];
  /** @type {Record<string, any>} */
  #told = {};
  #pieces = new Pieces();
  /** The lanes of the picture before, which those of the next are coded by. @type {{lane: import("./picture.js").LaneId, coded: CodedColumns}[]} */
  #bases = [];

  /** Takes `welcome`. @param {{name: string, channels?: ChannelWords[], controls?: Controls, may_control?: boolean, sources?: string[], finds?: boolean}} welcome */
  welcome({ name, channels, controls, may_control, sources, finds }) {
    this.controls = { ...this.controls, ...controls };
    this.mayControl = may_control === true;
    this.canFind = finds === true;
    this.sources = sources ?? [];
    this.status.name = name;
    this.#channels = channels ?? [];
  }

  /** Takes `told`. @param {Record<string, any>} told */
  tell(told) {
    Object.assign(this.#told, told);
  }

  /**
   * Takes a binary message: its number, to be acknowledged, and the picture if it holds one.
   * @param {Uint8Array} bytes @param {number} nowMs @returns {{number: number, picture: Picture | null, hasPieces: boolean}}
   */
  read(bytes, nowMs) {
    const reader = new ByteReader(bytes);
    const kind = reader.u8();
    const number = reader.varint();
    const made = kind === KIND_PICTURE ? this.#picture(reader, nowMs) : null;
    const hasPieces = kind <= KIND_PIECES && !reader.isAtEnd;
    while (kind <= KIND_PIECES && !reader.isAtEnd) this.#pieces.read(reader);
    return { number, picture: made && { ...made, ...this.extras() }, hasPieces };
  }

  /** What searches found since the last call. */
  takeFound() {
    return this.#pieces.found.splice(0);
  }

  /** What came in pieces. */
  extras() {
    const { spectrum, waterfall, overview, density } = this.#pieces;
    return { spectrum, waterfall, overview, density };
  }

  /** @param {ByteReader} reader @param {number} nowMs @returns {Picture} */
  #picture(reader, nowMs) {
    const told = this.#told;
    const answers = reader.varint();
    const flags = reader.u8();
    const samplesPerColumn = reader.f64();
    const firstColumn = reader.zigzag();
    const columns = reader.count(COLUMNS_MAX);
    const [oldestIndex, nextIndex, serverNs] = [reader.varint(), reader.varint(), reader.varint()];
    const arrival = flags & FLAG.hasArrived ? readArrival(reader) : null;
    const trigger = flags & FLAG.hasTrigger ? this.#trigger(reader) : null;
    const grid = { samplesPerColumn, firstColumn };
    const isSameBoot = this.status.is_same_boot;
    const lanes = this.#lanes(reader, columns, grid);
    return {
      answers,
      isEnded: (flags & FLAG.isEnded) !== 0,
      isEstimated: (flags & FLAG.isEstimated) !== 0,
      stream: streamOf(told.stream),
      streams: told.streams ?? 0,
      description: descriptionOf(told.description, this.#channels),
      leftIndex: firstColumn * samplesPerColumn,
      spanSamples: Math.max(columns, 1) * samplesPerColumn,
      lanes,
      oldestIndex,
      nextIndex,
      serverNs,
      takenMs: nowMs,
      latency: arrival && { seconds: Math.max(arrival.ageNs - (isSameBoot ? 0 : told.transit_min_ns ?? 0), 0) * 1e-9, isRelative: !isSameBoot },
      idleS: arrival ? arrival.idleNs * 1e-9 : 0,
      counts: { ...NO_COUNTS, ...told.counts },
      flow: flowOf(told.flow),
      gaps: told.gaps ?? [],
      changes: changesOf(told.changes ?? []),
      trigger,
      triggers: told.triggers ?? [],
      measured: measuredOf(told.measured ?? []),
      refused: told.refused ?? "",
      ...this.extras(),
    };
  }

  /** @param {ByteReader} reader @param {number} columns @param {{firstColumn: number, samplesPerColumn: number}} grid @returns {LaneColumns[]} */
  #lanes(reader, columns, grid) {
    /** @type {{lane: import("./picture.js").LaneId, coded: CodedColumns}[]} */
    const bases = [];
    const lanes = Array.from({ length: reader.count(LANES_MAX) }, () => {
      const lane = readLane(reader);
      const flags = reader.u8();
      const mean = reader.f64();
      /** @type {[number | null, number | null]} */
      const atCursors = [flags & LANE.cursorA ? reader.f64() : null, flags & LANE.cursorB ? reader.f64() : null];
      const base = this.#bases.find((base) => isSameLane(base.lane, lane))?.coded ?? null;
      const coded = readColumns(reader, columns, (flags & WHOLE) !== 0, grid, base);
      bases.push({ lane, coded });
      const { min, max, coverage } = coded;
      const runs = flags & LANE.hasLine ? readRuns(reader) : null;
      return { lane, min, max, coverage, mean, isClipped: (flags & LANE.isClipped) !== 0, runs, atCursors };
    });
    this.#bases = bases;
    return lanes;
  }

  /** @param {ByteReader} reader @returns {import("./picture.js").TriggerView} */
  #trigger(reader) {
    const [state, hasAt] = [STATES[reader.u8()] ?? "ready", reader.u8() !== 0];
    const [level, upper] = [reader.f64(), reader.f64()];
    const told = this.#told.trigger ?? {};
    const lane = laneOfText(told.lane ?? "") ?? { channel: 0, part: "real" };
    const rate = { count: 0, mean: null, deviation: null, gaps: 0, ...told.rate };
    return { lane, level, upper, state, at: hasAt ? reader.f64() : null, isLfReject: told.is_lf_reject === true, found: told.found ?? 0, rate };
  }
}

/** How old the newest sample is, and since when none came. @param {ByteReader} reader */
function readArrival(reader) {
  const ageNs = reader.zigzag();
  reader.varint();
  return { ageNs, idleNs: reader.varint() };
}

/** @param {ByteReader} reader @returns {import("./picture.js").Runs} */
function readRuns(reader) {
  const heads = Array.from({ length: reader.count(COLUMNS_MAX) }, () => ({ first: reader.varint(), count: reader.count(SAMPLES_MAX) }));
  const isWhole = (reader.u8() & WHOLE) !== 0;
  const all = readSamples(reader, heads.reduce((sum, { count }) => sum + count, 0), isWhole);
  let at = 0;
  return heads.map(({ first, count }) => ({ first, samples: all.subarray(at, (at += count)) }));
}

/** @param {any} told @returns {import("./picture.js").StreamInfo | null} */
function streamOf(told) {
  if (!told) return null;
  return { channels: told.channels, format: told.format, rateHz: told.rate_hz, generatorDrops: told.generator_drops ?? 0 };
}

/** What the stream says, and before it what the server was told. @param {any} told @param {ChannelWords[]} set @returns {import("./picture.js").Description} */
function descriptionOf(told, set) {
  /** @type {Partial<ChannelWords>[]} */
  const said = told?.["grebe:channels"] ?? [];
  const channels = Array.from({ length: Math.max(said.length, set.length) }, (_, at) => {
    const [own, stream] = [set[at], said[at] ?? {}];
    const hasScale = own && (own.unit !== "" || own.scale !== 1 || own.offset !== 0);
    const scale = hasScale ? own : { unit: stream.unit ?? "", scale: stream.scale ?? 1, offset: stream.offset ?? 0 };
    return { name: own?.name || stream.name || "", unit: scale.unit, scale: scale.scale, offset: scale.offset };
  });
  return { name: told?.["grebe:name"] ?? "", centreHz: told?.["core:frequency"] ?? null, channels };
}

/** @param {any} flow */
function flowOf(flow) {
  return { framesPerS: flow?.frames_per_s ?? 0, samplesPerS: flow?.samples_per_s ?? 0, bytesPerS: flow?.bytes_per_s ?? 0 };
}

/** @param {any[]} changes @returns {import("./picture.js").Change[]} */
function changesOf(changes) {
  return changes.map(({ index, rate_hz: rateHz, centre_frequency_hz: centreHz }) => ({ index, rateHz: rateHz ?? null, centreHz: centreHz ?? null }));
}

/** @param {any[]} measured @returns {import("./picture.js").Measured[]} */
function measuredOf(measured) {
  return measured.flatMap(({ lane, values, samples, level_samples: levelSamples }) => {
    const found = laneOfText(lane);
    return found ? [{ lane: found, values, samples, levelSamples }] : [];
  });
}

const KIND_PICTURE = 1;
const KIND_PIECES = 2;
const FLAG = { isEnded: 1, isEstimated: 2, hasTrigger: 4, hasArrived: 8 };
const LANE = { isClipped: 1, hasLine: 2, cursorA: 8, cursorB: 16 };
/** @type {import("./picture.js").TriggerView["state"][]} */
const STATES = ["ready", "triggered", "free", "stopped"];
const NO_COUNTS = { frames: 0, samples: 0, lost_frames: 0, generator_samples: 0, late_frames: 0, duplicate_frames: 0 };
const SAMPLES_MAX = 1 << 20;
