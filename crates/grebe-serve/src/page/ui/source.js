// What of the source can be changed from here: its generator, its receiver, stretches that are kept there.

import { rateOrOne } from "../data/picture.js";
import { engineering, parseQuantity, step125Down, step125Up } from "../model/units.js";
import { button, el, select } from "./dom.js";

/** @typedef {import("./scope.js").Scope} Scope */

/** The controls of a scope's source, as it is now; `null` where nothing of it can be changed. @param {Scope} scope @returns {HTMLElement | null} */
export function sourceControls(scope) {
  const { controls, mayControl } = scope.connection.session;
  const parts = [
    ...(controls.waves ? generator(scope, controls.waves) : []),
    ...(controls.tuned ? receiver(scope, scope.connection.session.status.tuned ?? controls.tuned) : []),
    ...(controls.keeps ? keeper(scope, controls.keeps) : []),
  ];
  if (parts.length === 0) return null;
  const words = mayControl ? [] : [el("p", {}, MAY_NOT)];
  return el("div", {}, ...words, el("fieldset", { disabled: !mayControl }, ...parts));
}

/** @param {Scope} scope @param {string[]} waves */
function generator(scope, waves) {
  const { connection } = scope;
  /** The rate that was asked for last: the stream's own follows a little later. */
  let rate = scope.picture.stream?.rateHz ?? 0;
  const step = (/** @type {number} */ to) => {
    rate = Math.min(Math.max(to, 1), RATE_HZ_MAX);
    connection.control({ rate });
  };
  /** @type {[string, string][]} */
  const choices = [["", "waveform"], ...waves.map((wave) => /** @type {[string, string]} */ ([wave, wave]))];
  return [
    el("h3", {}, "generator"),
    el("div", { class: "row" },
      button("slower", "the next lower rate", () => rate > 0 && step(step125Down(rate * 0.99))),
      button("faster", "the next higher rate", () => rate > 0 && step(step125Up(rate * 1.01))),
      button("pause", "make samples, or none", () => connection.control("pause")),
      select("waveform of all channels", choices, (wave) => wave && connection.control({ wave }))),
  ];
}

/** @param {Scope} scope @param {import("../data/wire.js").Tuned} tuned */
function receiver(scope, { frequency_hz, rate_hz, gain_db }) {
  const field = (/** @type {string} */ name, /** @type {string} */ value) =>
    el("input", { type: "text", size: 12, spellcheck: "false", "aria-label": name, value });
  const frequency = field("frequency", engineering(frequency_hz, "Hz", 9));
  const rate = field("samples a second", engineering(rate_hz, "Hz", 9));
  const gain = field("gain in dB, or auto", gain_db === null ? "auto" : String(gain_db));
  const tune = (/** @type {Event} */ event) => {
    event.preventDefault();
    const [frequencyHz, rateHz] = [parseQuantity(frequency.value, "Hz"), parseQuantity(rate.value, "Hz")];
    const isAuto = gain.value.trim() === "auto";
    const gainDb = isAuto ? null : Number.parseFloat(gain.value);
    if (frequencyHz === null || rateHz === null || (gainDb !== null && !Number.isFinite(gainDb))) {
      scope.say("nothing is tuned so: a frequency as 433.92M, samples a second as 2.4M, a gain as 20 or auto");
      return;
    }
    scope.connection.control({ tune: { frequency_hz: frequencyHz, rate_hz: rateHz, gain_db: gainDb } });
  };
  return [
    el("h3", {}, "receiver"),
    el("form", { submit: tune },
      el("div", { class: "row" }, el("label", {}, "frequency ", frequency), el("label", {}, "rate ", rate)),
      el("div", { class: "row" }, el("label", {}, "gain ", gain), el("button", { type: "submit" }, "tune"))),
  ];
}

/** @param {Scope} scope @param {string} last */
function keeper(scope, last) {
  const keep = (/** @type {object} */ stretch, /** @type {string} */ words) => {
    scope.connection.keep(stretch);
    scope.say(`keeping ${words} …`);
  };
  const screen = () => {
    const { left, samples } = scope.shown();
    const [from, to] = [Math.max(Math.floor(left), 0), Math.min(Math.floor(left + samples), scope.picture.nextIndex)];
    keep({ samples: [from, to], rate_hz: rateOrOne(scope.picture) }, "what is on the screen");
  };
  return [
    el("h3", {}, "keep for good, there"),
    el("div", { class: "row" },
      button(last, `keep ${last} of the ring`, () => keep({}, last)),
      button("the screen", "keep what is on the screen", screen)),
  ];
}

const MAY_NOT = "Your link lets you look and change nothing: who started grebe serve has another one, with --control.";
const RATE_HZ_MAX = 10e9;
