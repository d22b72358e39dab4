// What a person has set, and what is asked of the server for it.

import { isComplex, isSameLane, laneText } from "../data/picture.js";
import { plainSetup, setupOf } from "./setup.js";
import { TimeAxis, isSlow } from "./time.js";
import { step125Down, step125Up } from "./units.js";

/**
 * @typedef {import("../data/picture.js").Picture} Picture
 * @typedef {import("../data/picture.js").LaneId} LaneId
 * @typedef {import("../data/picture.js").Part} Part
 * @typedef {"roll" | "auto" | "normal" | "single"} TriggerMode
 * @typedef {"edge" | "pulse" | "runt" | "window" | "dropout"} TriggerKind
 *
 * @typedef {object} TriggerSettings
 * @property {TriggerMode} mode
 * @property {TriggerKind} kind
 * @property {LaneId} lane
 * @property {"rising" | "falling"} slope
 * @property {number | null} level raw counts; `null` follows the middle of the signal
 * @property {number} position 0 left edge, 1 right edge
 * @property {boolean} isLfReject
 * @property {number | null} cornerHz
 * @property {number} holdoffS
 * @property {number | null} pulseMinS
 * @property {number | null} pulseMaxS
 * @property {number | null} dropoutS
 * @property {number} shot
 *
 * @typedef {{size: number, window: string, averages: number, is_peak_held: boolean}} SpectrumSettings
 */

export class Settings {
  /** Which of the server's sources is shown, from 1. */
  source = 1;
  time = new TimeAxis();
  /** Channels that are off, from 0. @type {Set<number>} */
  hidden = new Set();
  /** Of complex channels. @type {Set<Part>} */
  parts = new Set(/** @type {Part[]} */ (["i", "q"]));
  /** The lane that keys work on. @type {LaneId} */
  selected = { channel: 0, part: "real" };
  /** @type {Map<string, import("./setup.js").OwnSetup>} */
  owns = new Map();
  /** @type {TriggerSettings} */
  trigger = {
    mode: "auto",
    kind: "edge",
    lane: { channel: 0, part: "real" },
    slope: "rising",
    level: null,
    position: 0.5,
    isLfReject: false,
    cornerHz: null,
    holdoffS: 0,
    pulseMinS: null,
    pulseMaxS: null,
    dropoutS: null,
    shot: 0,
  };
  /** Until a mode is chosen the span decides. */
  isModeChosen = false;
  show = {
    measurements: false,
    spectrum: false,
    waterfall: false,
    channels: false,
    triggers: false,
    find: false,
    overlay: false,
    persistence: false,
    overview: true,
    sinc: false,
  };
  /** What each lane shows now, in its unit. @type {Map<string, import("./range.js").Range>} */
  ranges = new Map();
  /** @type {SpectrumSettings} */
  spectrum = { size: 8192, window: "hann", averages: 1, is_peak_held: false };
  /** The shown part of the spectrum: 0 its lowest frequency, 1 its highest. @type {[number, number]} */
  spectrumZoom = [0, 1];
  /** Times of the cursors, in units of the axis. @type {[number, number] | null} */
  cursors = null;
  /** The cursor that keys move. */
  cursorAt = 0;
  /** @type {"auto" | "dark" | "light"} */
  theme = "auto";

  /** The trigger mode: the one chosen, or one that suits the span. @param {Picture} picture @returns {TriggerMode} */
  mode(picture) {
    return !this.isModeChosen && isSlow(picture, this.time.spanOr(picture)) ? "roll" : this.trigger.mode;
  }

  /** @param {TriggerMode} mode */
  chooseMode(mode) {
    this.trigger.mode = mode;
    if (mode === "single") this.trigger.shot += 1;
    this.isModeChosen = true;
    this.time.release();
  }

  /** @param {TriggerKind} kind */
  chooseKind(kind) {
    this.trigger.kind = kind;
    this.trigger.level = null;
  }

  /** @param {LaneId} lane */
  triggerOn(lane) {
    this.trigger.lane = lane;
    this.trigger.level = null;
  }

  /** From none over a hundredth of the screen in steps of 1-2-5. @param {Picture} picture @param {boolean} isUp */
  stepHoldoff(picture, isUp) {
    const least = step125Up(this.time.spanOr(picture) / 100);
    const now = this.trigger.holdoffS;
    if (isUp) this.trigger.holdoffS = now < least * 0.9 ? least : Math.min(step125Up(now * 1.1), least * 1e4);
    else this.trigger.holdoffS = now <= least * 1.1 ? 0 : step125Down(now * 0.9);
  }

  /** The lane that keys work on: the one that was selected, or the first of its channel that the stream has. @param {Picture} picture @returns {LaneId} */
  selectedLane(picture) {
    if (picture.lanes.some((data) => isSameLane(data.lane, this.selected))) return this.selected;
    const ofChannel = picture.lanes.find((data) => data.lane.channel === this.selected.channel);
    return ofChannel?.lane ?? { channel: this.selected.channel, part: isComplex(picture.stream) ? "i" : "real" };
  }

  /** What was set of a lane, to be changed. @param {LaneId} lane */
  own(lane) {
    const key = laneText(lane);
    const own = this.owns.get(key) ?? plainSetup();
    this.owns.set(key, own);
    return own;
  }

  /**
   * What to ask the server for, as its messages say it.
   * @param {Picture} picture what is seen now @param {number} columns @param {number} overview columns
   */
  viewport(picture, columns, overview) {
    const { spectrum, waterfall } = this.show;
    return {
      ending: this.time.heldAt,
      span: this.time.span,
      columns,
      channels: this.#channels(picture),
      parts: [...this.parts],
      sinc: this.show.sinc,
      trigger: this.#trigger(picture),
      measure: this.show.measurements ? this.#scales(picture) : null,
      cursors: this.cursors && { times: this.cursors, from: this.time.isHeld() ? this.time.reference(picture) : null },
      spectrum: spectrum || waterfall ? { ...this.spectrum, waterfall: waterfall ? this.selectedLane(picture).channel : null } : null,
      persistence: this.show.persistence ? this.#ranges(picture) : null,
      overview: this.show.overview && overview > 0 ? overview : null,
    };
  }

  /** The channels that are on; `null`: all of them. @param {Picture} picture */
  #channels({ stream }) {
    if (this.hidden.size === 0 || !stream) return null;
    return Array.from({ length: stream.channels }, (_, channel) => channel).filter((channel) => !this.hidden.has(channel));
  }

  /** @param {Picture} picture */
  #trigger(picture) {
    const { kind, lane, slope, level, position, isLfReject, cornerHz, holdoffS, pulseMinS, pulseMaxS, dropoutS, shot } = this.trigger;
    return {
      mode: this.mode(picture), kind, lane: laneText(lane), slope, level, position, is_lf_reject: isLfReject, corner_hz: cornerHz,
      holdoff_s: holdoffS, pulse_min_s: pulseMinS, pulse_max_s: pulseMaxS, dropout_s: dropoutS, shot,
    };
  }

  /** Of each lane what its numbers stand for, without AC coupling: the mean that it takes off differs from picture to picture. @param {Picture} picture */
  #scales(picture) {
    return picture.lanes.map(({ lane }) => {
      const { scale: factor, dcOffset: offset } = setupOf(picture, lane, this.owns);
      return { lane: laneText(lane), factor, offset };
    });
  }

  /** Of each lane the raw counts that its band shows. @param {Picture} picture */
  #ranges(picture) {
    return picture.lanes.flatMap(({ lane }) => {
      const range = this.ranges.get(laneText(lane));
      const { scale, offset } = setupOf(picture, lane, this.owns);
      const ends = range ? [range.bottom, range.top].map((value) => (value - offset) / scale) : [];
      return range ? [{ lane: laneText(lane), low: Math.min(...ends), high: Math.max(...ends) }] : [];
    });
  }
}

/** @type {TriggerMode[]} */
export const TRIGGER_MODES = ["roll", "auto", "normal", "single"];
/** @type {TriggerKind[]} */
export const TRIGGER_KINDS = ["edge", "pulse", "runt", "window", "dropout"];
/** As messages name them, and as a person reads them. @type {[string, string][]} */
export const WEIGHTINGS = [
  ["rectangular", "rectangular"], ["hann", "Hann"], ["hamming", "Hamming"],
  ["blackman", "Blackman"], ["blackman_harris", "Blackman-Harris"], ["flat_top", "flat top"],
];
/** Spectra that are averaged. */
export const AVERAGES = [1, 4, 16, 64];
/** Samples of a transform. */
export const TRANSFORM_SIZES = Array.from({ length: 11 }, (_, place) => 256 << place);
