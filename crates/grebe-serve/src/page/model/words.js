// The text around the traces: the words of the window and the terminal.

import { axisUnit, rateOrOne } from "../data/picture.js";
import { DIVISIONS } from "./time.js";
import { setupOf } from "./setup.js";
import { engineering } from "./units.js";

/**
 * @typedef {import("../data/picture.js").Picture} Picture
 * @typedef {import("../data/wire.js").Status} Status
 * @typedef {"WAITING" | "LIVE" | "PAUSED" | "STALE" | "ENDED" | "OFFLINE"} RunState
 * @typedef {{label: string, value: string, tone: "" | "good" | "bad"}} Item
 */

/** Whether the stream moves, and whether the picture does. @param {Picture} picture @param {boolean} isHeld @param {boolean} isOnline @param {number} nowMs @returns {RunState} */
export function runState(picture, isHeld, isOnline, nowMs) {
  if (!isOnline) return "OFFLINE";
  if (picture.isEnded) return isHeld && picture.stream ? "PAUSED" : "ENDED";
  if (!picture.stream) return "WAITING";
  if (isHeld) return "PAUSED";
  return picture.idleS + (nowMs - picture.takenMs) / 1000 > STALE_S ? "STALE" : "LIVE";
}

/** `4 × 25 MS/s cf32`. @param {Picture} picture */
export function streamText(picture) {
  const { stream, description } = picture;
  if (!stream) return "no data yet";
  const rate = stream.rateHz > 0 ? engineering(stream.rateHz, "S/s", 4) : "unknown rate";
  const samples = stream.format === "i16" ? rate : `${rate} ${stream.format}`;
  const all = stream.channels === 1 ? samples : `${stream.channels} × ${samples}`;
  return description?.centreHz ? `${all}, at ${engineering(description.centreHz, "Hz", 9)}` : all;
}

/** `1 ms/div`. @param {Picture} picture @param {number} span */
export const divisionText = (picture, span) => `${engineering(span / DIVISIONS, axisUnit(picture))}/div`;

/**
 * What arrives, and how old it is.
 * @param {Picture} picture @param {RunState} state @param {{picturesPerS: number, bitsPerS: number, roundTripS: number | null, nowMs: number}} link @returns {Item[]}
 */
export function facts(picture, state, { picturesPerS, bitsPerS, roundTripS, nowMs }) {
  const plain = (/** @type {string} */ label, /** @type {string} */ value) => ({ label, value, tone: /** @type {""} */ ("") });
  if (picture.isEnded) {
    const { frames, samples } = picture.counts;
    const held = engineering(samples, "S", 4);
    return [frames === 0 ? plain("holds", `${held} a channel`) : plain("received", `${engineering(frames, "frames")}, ${held} a channel`)];
  }
  const { framesPerS, samplesPerS, bytesPerS } = picture.flow;
  let latency = "--";
  if (state === "LIVE" && picture.latency) {
    const seconds = picture.latency.seconds + (roundTripS ?? 0) / 2 + (nowMs - picture.takenMs) / 1000;
    latency = engineering(seconds, "s", 2) + (picture.latency.isRelative ? " relative" : "");
  }
  return [
    plain("", engineering(framesPerS, "frames/s")),
    plain("", engineering(samplesPerS, "S/s")),
    plain("", engineering(bytesPerS * 8, "bit/s")),
    plain("latency", latency),
    plain("", `${picturesPerS.toFixed(0)} fps`),
    plain("link", engineering(bitsPerS, "bit/s", 2) + (roundTripS === null ? "" : `, ${engineering(roundTripS, "s", 2)}`)),
  ];
}

/** What is missing, by place, in the order of the path. @param {Picture} picture @param {Status} status @returns {Item[]} */
export function losses({ counts }, status) {
  const item = (/** @type {string} */ label, /** @type {number} */ count, /** @type {string} */ unit) =>
    /** @type {Item} */ ({ label, value: count === 0 ? "0" : engineering(count, unit), tone: count === 0 ? "good" : "bad" });
  if (status.is_recording) return [item("in the recording", counts.generator_samples, "S")];
  const { network, shared_memory: shared, queue, kernel_datagrams: kernel } = status;
  const where = network
    ? item("network", network.frames, "frames")
    : shared
      ? item("shared memory", shared.frames, "frames")
      : item("on the way", counts.lost_frames, "frames");
  const rare = [
    item("refused", status.refused_datagrams, "datagrams"),
    item("of another sender", status.foreign_datagrams, "datagrams"),
    item("late", counts.late_frames, "frames"),
    item("twice", counts.duplicate_frames, "frames"),
  ];
  return [
    item("generator", counts.generator_samples, "S"),
    where,
    ...(kernel === null ? [] : [item("kernel", kernel, "datagrams")]),
    ...(queue ? [item("queue", queue.frames, "frames")] : []),
    ...rare.filter(({ value }) => value !== "0"),
  ];
}

/** The trigger's level in the unit of its lane. @param {Picture} picture @param {Map<string, import("./setup.js").OwnSetup>} owns */
export function levelText(picture, owns) {
  const { trigger } = picture;
  if (!trigger) return "";
  const setup = setupOf(picture, trigger.lane, owns);
  const value = (/** @type {number} */ count) => engineering(count * setup.scale + (trigger.isLfReject ? 0 : setup.offset), setup.unit);
  const levels = trigger.upper === trigger.level ? [trigger.level] : [trigger.level, trigger.upper];
  return levels.map(value).join(" … ");
}

/** @param {import("../data/picture.js").Change} change */
export function changeWords({ rateHz, centreHz }) {
  if (rateHz !== null) return rateHz > 0 ? engineering(rateHz, "S/s", 4) : "unknown rate";
  return centreHz === null ? "no centre frequency" : engineering(centreHz, "Hz", 9);
}

/** Where the right edge of a held picture lies. @param {Picture} picture @param {number} index */
export const heldWords = (picture, index) => `right edge at ${engineering(index / rateOrOne(picture), axisUnit(picture), 9)} of the stream`;

export const STATE_WORDS = { ready: "READY", triggered: "TRIGGERED", free: "FREE RUN", stopped: "STOPPED" };
const STALE_S = 1;
