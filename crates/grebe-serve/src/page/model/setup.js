// What the numbers of a lane mean: name, unit, scale; as the stream says and as a person set it.

import { laneText } from "../data/picture.js";

/**
 * @typedef {import("../data/picture.js").Picture} Picture
 * @typedef {import("../data/picture.js").LaneId} LaneId
 *
 * @typedef {object} OwnSetup what a person set of a lane
 * @property {number | null} perDivision units; `null`: the scale follows the signal
 * @property {number} position divisions above the middle
 * @property {boolean} isInverted
 * @property {boolean} isAc
 *
 * @typedef {object} Setup
 * @property {string} label
 * @property {string} unit
 * @property {number} scale units per raw count, turned over and shifted as set
 * @property {number} offset
 * @property {number} dcOffset the offset without AC coupling
 * @property {OwnSetup} own
 */

/** @returns {OwnSetup} */
export const plainSetup = () => ({ perDivision: null, position: 0, isInverted: false, isAc: false });

/**
 * The meaning of a lane's numbers in a picture.
 * @param {Picture} picture @param {LaneId} lane @param {Map<string, OwnSetup>} owns @returns {Setup}
 */
export function setupOf(picture, lane, owns) {
  const own = owns.get(laneText(lane)) ?? plainSetup();
  const told = picture.description?.channels[lane.channel];
  let { unit, scale, offset } = { unit: told?.unit ?? "", scale: told?.scale ?? 1, offset: told?.offset ?? 0 };
  const rate = picture.stream?.rateHz ?? 0;
  if (lane.part === "frequency") [unit, scale, offset] = rate > 0 ? ["Hz", rate, 0] : ["", 1, 0];
  else if (lane.part === "db") [unit, scale, offset] = ["dB", 1, 0];
  else if (lane.part === "phase") [unit, scale, offset] = ["rad", 1, 0];
  const sign = own.isInverted ? -1 : 1;
  const mean = picture.lanes.find((data) => laneText(data.lane) === laneText(lane))?.mean ?? 0;
  scale *= sign;
  const dcOffset = offset * sign;
  offset = own.isAc ? -mean * scale : dcOffset;
  return { label: labelOf(lane, told?.name ?? ""), unit, scale, offset, dcOffset, own };
}

/** @param {LaneId} lane @param {string} name */
function labelOf({ channel, part }, name) {
  const channelLabel = name === "" ? `CH${channel + 1}` : `${channel + 1} ${name}`;
  return `${channelLabel} ${SYMBOLS[part]}`.trimEnd();
}

/** The number of a lane's colour, one of eight. @param {LaneId} lane */
export function hueOf({ channel, part }) {
  const place = HUE_PARTS.indexOf(part);
  return part === "math" ? 7 : (place < 0 ? channel : channel * 2 + place) % 8;
}

/** The value of a raw count. @param {Setup} setup @param {number} count */
export const valueOf = (setup, count) => count * setup.scale + setup.offset;

/** How parts are written behind a channel's name. */
export const SYMBOLS = { real: "", i: "I", q: "Q", magnitude: "|A|", db: "dB", phase: "φ", frequency: "f", math: "M" };
const HUE_PARTS = ["i", "q", "magnitude", "db", "phase", "frequency"];
