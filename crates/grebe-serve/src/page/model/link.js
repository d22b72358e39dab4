// A view as the fragment of a link: what is shown of which stretch, and how. The token is in it only where somebody wants that.

import { PARTS, laneOfText, laneText } from "../data/picture.js";
import { TRANSFORM_SIZES, TRIGGER_KINDS, TRIGGER_MODES, WEIGHTINGS } from "./settings.js";

/** @typedef {import("./settings.js").Settings} Settings */

/** @param {Settings} settings @param {string | null} token */
export function toFragment(settings, token) {
  const { time, trigger, spectrum, show } = settings;
  const said = new URLSearchParams();
  const say = (/** @type {string} */ key, /** @type {string | number | null} */ value) => value === null || value === "" || said.set(key, `${value}`);
  say("token", token);
  say("source", settings.source === 1 ? null : settings.source);
  say("span", time.span);
  say("at", time.heldAt === null ? null : Math.round(time.heldAt));
  say("hide", [...settings.hidden].map((channel) => channel + 1).join(","));
  say("parts", isUsualParts(settings) ? null : [...settings.parts].join(","));
  if (settings.isModeChosen) {
    say("trigger", trigger.mode);
  }
  say("kind", trigger.kind === "edge" ? null : trigger.kind);
  say("on", trigger.lane.channel === 0 && trigger.lane.part === "real" ? null : laneText(trigger.lane));
  say("slope", trigger.slope === "rising" ? null : trigger.slope);
  say("level", trigger.level);
  say("place", trigger.position === 0.5 ? null : trigger.position);
  say("reject", trigger.isLfReject ? (trigger.cornerHz ?? "auto") : null);
  say("holdoff", trigger.holdoffS || null);
  say("times", trigger.kind === "dropout" ? trigger.dropoutS : pulseText(trigger));
  say("show", SHOWN.filter((part) => show[part] !== (part === "overview")).join(","));
  if (show.spectrum || show.waterfall) {
    say("transform", [spectrum.size, spectrum.window, spectrum.averages, ...(spectrum.is_peak_held ? ["hold"] : [])].join(","));
    say("band", settings.spectrumZoom.join() === "0,1" ? null : settings.spectrumZoom.map((part) => Number(part.toFixed(5))).join(","));
  }
  say("cursors", settings.cursors?.join(",") ?? null);
  say("select", laneText(settings.selected) === "1" ? null : laneText(settings.selected));
  const scales = [...settings.owns].map(([lane, own]) => {
    const words = [lane, own.perDivision ?? "auto", own.position, ...(own.isInverted ? ["inverted"] : []), ...(own.isAc ? ["ac"] : [])];
    return words.join(":");
  });
  say("scales", scales.filter((scale) => !scale.endsWith(":auto:0")).join(","));
  say("theme", settings.theme === "auto" ? null : settings.theme);
  return said.toString();
}

/** Takes over what a fragment says; what means nothing is left out. @param {Settings} settings @param {string} fragment @returns {string | null} the token */
export function fromFragment(settings, fragment) {
  const said = new URLSearchParams(fragment.replace(/^#/, ""));
  const words = (/** @type {string} */ key) => (said.get(key) ?? "").split(",").filter((word) => word !== "");
  const number = (/** @type {string} */ key) => numberOf(said.get(key));
  const { trigger, spectrum } = settings;
  const source = number("source");
  if (source !== null && Number.isInteger(source) && source > 0) settings.source = source;
  const span = number("span");
  if (span !== null && span > 0) settings.time.span = span;
  const at = number("at");
  if (at !== null) settings.time.holdAt(at);
  for (const channel of words("hide").map(Number)) if (Number.isInteger(channel) && channel > 0 && channel < 256) settings.hidden.add(channel - 1);
  const parts = PARTS.filter((part) => part !== "real" && part !== "math" && words("parts").includes(part));
  if (parts.length > 0) settings.parts = new Set(parts);
  const mode = TRIGGER_MODES.find((mode) => mode === said.get("trigger"));
  if (mode) [trigger.mode, settings.isModeChosen] = [mode, true];
  trigger.kind = TRIGGER_KINDS.find((kind) => kind === said.get("kind")) ?? trigger.kind;
  trigger.lane = laneOfText(said.get("on") ?? "") ?? trigger.lane;
  if (said.get("slope") === "falling") trigger.slope = "falling";
  trigger.level = number("level");
  const place = number("place");
  if (place !== null && place >= 0 && place <= 1) trigger.position = place;
  if (said.has("reject")) [trigger.isLfReject, trigger.cornerHz] = [true, number("reject")];
  trigger.holdoffS = Math.max(number("holdoff") ?? 0, 0);
  const [narrowest, widest] = (said.get("times") ?? "").split("..").map(numberOf);
  if (trigger.kind === "dropout") trigger.dropoutS = narrowest;
  else [trigger.pulseMinS, trigger.pulseMaxS] = widest === undefined ? [null, narrowest] : [narrowest, widest];
  for (const part of SHOWN) if (words("show").includes(part)) settings.show[part] = part !== "overview";
  const [size, window, averages, hold] = words("transform");
  if (TRANSFORM_SIZES.includes(Number(size))) spectrum.size = Number(size);
  spectrum.window = WEIGHTINGS.find(([name]) => name === window)?.[0] ?? spectrum.window;
  if (Number.isInteger(Number(averages)) && Number(averages) >= 1 && Number(averages) <= 256) spectrum.averages = Number(averages);
  spectrum.is_peak_held = hold === "hold";
  const [from, to] = words("band").map(Number);
  if (from >= 0 && to > from && to <= 1) settings.spectrumZoom = [from, to];
  const [a, b] = words("cursors").map(Number);
  if (Number.isFinite(a) && Number.isFinite(b)) settings.cursors = [a, b];
  settings.selected = laneOfText(said.get("select") ?? "") ?? settings.selected;
  for (const scale of words("scales")) {
    const [name, perDivision, position, ...flags] = scale.split(":");
    const lane = laneOfText(name);
    if (!lane) continue;
    const division = numberOf(perDivision);
    const own = settings.own(lane);
    own.perDivision = division !== null && division > 0 ? division : null;
    own.position = numberOf(position) ?? 0;
    [own.isInverted, own.isAc] = [flags.includes("inverted"), flags.includes("ac")];
  }
  const theme = said.get("theme");
  if (theme === "dark" || theme === "light") settings.theme = theme;
  return said.get("token");
}

/** `1e-6..2e-6`, `1e-6..`, or `2e-6` for the widest alone. @param {import("./settings.js").TriggerSettings} trigger */
function pulseText({ pulseMinS, pulseMaxS }) {
  return pulseMinS === null ? pulseMaxS : `${pulseMinS}..${pulseMaxS ?? ""}`;
}

/** @param {Settings} settings */
const isUsualParts = ({ parts }) => parts.size === 2 && parts.has("i") && parts.has("q");

/** @param {string | null | undefined} text */
function numberOf(text) {
  if (text === null || text === undefined || text.trim() === "") return null;
  const value = Number(text);
  return Number.isFinite(value) ? value : null;
}

/** `overview` stands there where it is off: it is on otherwise. @type {(keyof Settings["show"])[]} */
const SHOWN = ["measurements", "spectrum", "waterfall", "channels", "triggers", "overlay", "persistence", "overview", "sinc"];
