// The lines above the traces: state, source, time span, what is shown, losses, trigger.

import { axisUnit, isComplex, isSameLane, laneOfText, laneText } from "../data/picture.js";
import { TRIGGER_KINDS, TRIGGER_MODES } from "../model/settings.js";
import { engineering, parseQuantity } from "../model/units.js";
import { STATE_WORDS, divisionText, facts, levelText, losses, streamText } from "../model/words.js";
import { button, el, select, setAttribute, setChoice, setText } from "./dom.js";

/**
 * @typedef {import("./scope.js").Scope} Scope
 * @typedef {import("../model/words.js").Item} Item
 */

export class Head {
  #scope;
  #state = el("span", { class: "state" });
  #source = el("strong", { class: "source" });
  #sources;
  #stream = el("span", { class: "stream" });
  #division = el("output", { class: "division", "aria-label": "time a division" });
  #pause;
  #facts = el("div", { class: "facts", "aria-label": "what arrives", role: "group" });
  #losses = el("div", { class: "losses", "aria-label": "samples lost, by place", role: "group" });
  #exact = el("span", { class: "exact" });
  /** @type {Map<string, HTMLButtonElement>} */
  #toggles = new Map();
  /** @type {Map<string, HTMLButtonElement>} */
  #modes = new Map();
  #triggerLane;
  #triggerKind;
  #slope;
  #coupling;
  #level;
  #times = el("input", { type: "text", size: 9, spellcheck: "false", placeholder: "a division" });
  #place = button("50 %", "where the trigger stands: left, middle, right  (p); drag the arrow above the traces", () => this.#scope.act("triggerPlace"));
  #triggerState = el("span", { class: "trigger-state" });
  #trigger;
  #controls = button("source", "generator, receiver, what is kept there  (G)", () => this.#scope.act("source"));

  /** @param {Scope} scope */
  constructor(scope) {
    this.#scope = scope;
    const act = (/** @type {string} */ name) => () => scope.act(name);
    this.#pause = button("pause", "hold the picture, or let it go on  (space)", act("pause"), { class: "pause" });
    for (const [action, words, title] of TOGGLES) {
      this.#toggles.set(action, button(words, title, act(action), { "aria-pressed": "false" }));
    }
    for (const mode of TRIGGER_MODES) {
      this.#modes.set(mode, button(mode, MODE_TITLES[mode], () => scope.do(() => scope.settings.chooseMode(mode)), { "aria-pressed": "false" }));
    }
    const choose = (/** @type {(value: string) => void} */ set) => (/** @type {string} */ value) => scope.do(() => set(value));
    this.#sources = select("which source of this server is shown", [], choose((value) => scope.showSource(Number(value))));
    setAttribute(this.#sources, "class", "sources");
    setAttribute(this.#sources, "hidden", "");
    this.#triggerLane = select("what triggers", [], choose((value) => {
      const lane = laneOfText(value);
      if (lane) scope.settings.triggerOn(lane);
    }));
    const kinds = TRIGGER_KINDS.map((kind) => /** @type {[string, string]} */ ([kind, kind]));
    this.#triggerKind = select("kind of trigger", kinds, choose((value) => scope.settings.chooseKind(/** @type {any} */ (value))));
    this.#slope = button("rising", "the other direction  (e)", act("slope"));
    this.#coupling = button("DC", "without its slow part, or all of it  (L)", act("lfReject"));
    this.#level = button("0", "level to the middle of the signal  (0); drag it at the right edge", act("levelAuto"));
    const modes = el("span", { class: "choice", role: "group", "aria-label": "trigger mode" }, ...this.#modes.values());
    this.#times.addEventListener("change", () => this.#setTimes());
    const details = [this.#triggerLane, this.#triggerKind, this.#times, this.#slope, this.#level, this.#coupling, this.#place];
    this.#trigger = el("div", { class: "line trigger", role: "group", "aria-label": "trigger" },
      el("span", { class: "dim" }, "trigger"), modes, ...details, this.#triggerState);
    const span = el("span", { class: "span", role: "group", "aria-label": "time span" },
      button("−", "longer time span  (-)", act("longer")), this.#division, button("+", "shorter time span  (+)", act("shorter")));
    const tools = el("div", { class: "tools", role: "toolbar", "aria-label": "what is shown" },
      span, this.#pause, ...this.#toggles.values(),
      this.#controls,
      button("link", "a link to this view  (Z)", act("link")),
      button("theme", "dark / light  (t)", act("theme")),
      button("?", "all keys  (?)", act("help")));
    const title = el("div", { class: "title" }, this.#state, this.#sources, this.#source, this.#stream);
    this.element = el("header", {},
      el("div", { class: "line first" }, title, tools),
      el("div", { class: "line second" }, this.#facts, el("span", { class: "rule" }), this.#losses, this.#exact), this.#trigger);
  }

  /** As the stream says it, and as the server was told. */
  get sourceName() {
    const { picture, connection } = this.#scope;
    return [picture.description?.name, connection.session.status.name].filter(Boolean).join(", ") || "grebe";
  }

  /** Says what is so now. @param {import("../model/words.js").RunState} state @param {{picturesPerS: number, bitsPerS: number, roundTripS: number | null, nowMs: number}} link @param {string} exact */
  update(state, link, exact) {
    const { settings, picture, connection } = this.#scope;
    const { status } = connection.session;
    setText(this.#state, state);
    setAttribute(this.#state, "data-state", state.toLowerCase());
    setText(this.#source, this.sourceName);
    setText(this.#stream, streamText(picture));
    setText(this.#division, divisionText(picture, settings.time.spanOr(picture)));
    const isHeld = settings.time.isHeld();
    setText(this.#pause, isHeld ? "go on" : "pause");
    setAttribute(this.#pause, "data-held", isHeld ? "" : null);
    this.#updateSources(connection.session.sources);
    setItems(this.#facts, facts(picture, state, link));
    setItems(this.#losses, losses(picture, status), "lost");
    setText(this.#exact, exact);
    const { waves, tuned, keeps } = connection.session.controls;
    setAttribute(this.#controls, "hidden", waves || tuned || keeps ? null : "");
    for (const [action, toggle] of this.#toggles) {
      if (action === "find") setAttribute(toggle, "hidden", connection.session.canFind ? null : "");
      const isOn = action === "cursors" ? settings.cursors !== null : settings.show[SHOWN_BY[action]];
      setAttribute(toggle, "aria-pressed", String(isOn));
    }
    this.#updateTrigger();
  }

  /** A menu stands in place of the name where there are several. @param {string[]} names */
  #updateSources(names) {
    // Until another source has let the page in, what was known stays.
    if (names.length > 0 && names.join("\n") !== [...this.#sources.options].map(({ text }) => text).join("\n")) {
      this.#sources.replaceChildren(...names.map((name, place) => el("option", { value: place + 1 }, name)));
    }
    const isMenu = this.#sources.options.length > 1;
    setAttribute(this.#sources, "hidden", isMenu ? null : "");
    setAttribute(this.#source, "hidden", isMenu && !this.#scope.picture.description?.name ? "" : null);
    if (isMenu) setText(this.#source, this.#scope.picture.description?.name ?? "");
    setChoice(this.#sources, String(this.#scope.settings.source));
  }

  /** `20u` for pulses that are not wider, `1m..` for those that are not narrower, `20u..1m` for both; nothing for a division. */
  #setTimes() {
    const { trigger } = this.#scope.settings;
    const parts = this.#times.value.split("..").map((part) => (part.trim() === "" ? undefined : parseQuantity(part, "s")));
    if (parts.length > 2 || parts.some((part) => part === null || (part !== undefined && part <= 0))) {
      this.#scope.say(`${JSON.stringify(this.#times.value)} is no time: 20u, 1m.. or 20u..1m`);
      return;
    }
    const [first, second] = parts;
    this.#scope.do(() => {
      if (trigger.kind === "dropout") trigger.dropoutS = first ?? null;
      else [trigger.pulseMinS, trigger.pulseMaxS] = parts.length === 2 ? [first ?? null, second ?? null] : [null, first ?? null];
    });
  }

  #showTimes() {
    const { trigger } = this.#scope.settings;
    const isTimed = trigger.kind === "pulse" || trigger.kind === "dropout";
    setAttribute(this.#times, "hidden", isTimed ? null : "");
    setAttribute(this.#times, "aria-label", trigger.kind === "dropout" ? "time without a crossing: 2m" : "width of pulses: 20u, 1m.. or 20u..1m");
    // Not while somebody types.
    if (!this.#times.matches(":focus")) this.#times.value = timesText(trigger);
  }

  #updateTrigger() {
    const { settings, picture } = this.#scope;
    const mode = settings.mode(picture);
    for (const [name, button] of this.#modes) setAttribute(button, "aria-pressed", String(name === mode));
    setAttribute(this.#trigger, "data-mode", mode);
    const lanes = picture.lanes.map(({ lane }) => lane).filter(({ part }) => part !== "math");
    const shown = picture.trigger?.lane ?? settings.trigger.lane;
    if (!lanes.some((lane) => isSameLane(lane, shown)) && (shown.part === "real") !== isComplex(picture.stream)) lanes.unshift(shown);
    const texts = lanes.map(laneText);
    if (texts.join() !== [...this.#triggerLane.options].map(({ value }) => value).join()) {
      this.#triggerLane.replaceChildren(...lanes.map((lane) => el("option", { value: laneText(lane) }, this.#scope.setup(lane).label)));
    }
    setChoice(this.#triggerLane, laneText(shown));
    setChoice(this.#triggerKind, settings.trigger.kind);
    this.#showTimes();
    setText(this.#place, `${(settings.trigger.position * 100).toFixed(0)} %`);
    setText(this.#slope, settings.trigger.slope);
    setText(this.#level, `${levelText(picture, settings.owns) || "0"}${settings.trigger.level === null ? " auto" : ""}`);
    const corner = settings.trigger.cornerHz;
    const unit = axisUnit(picture) === "s" ? "Hz" : "/S";
    setText(this.#coupling, settings.trigger.isLfReject ? `LF reject${corner === null ? "" : ` ${engineering(corner, unit)}`}` : "DC");
    const state = picture.trigger?.state;
    setText(this.#triggerState, state ? STATE_WORDS[state] : "");
    setAttribute(this.#triggerState, "data-state", state ?? "");
  }
}

/** What it shows, and what of it is set. @param {import("../model/settings.js").TriggerSettings} trigger */
function timesText({ kind, pulseMinS, pulseMaxS, dropoutS }) {
  const show = (/** @type {number | null} */ value) => (value === null ? "" : engineering(value, "s"));
  if (kind === "dropout") return show(dropoutS);
  return pulseMinS === null ? show(pulseMaxS) : `${show(pulseMinS)} .. ${show(pulseMaxS)}`.trim();
}

/** Facts in a row: nodes are kept while their names are the same. @param {HTMLElement} element @param {Item[]} items @param {string} before */
function setItems(element, items, before = "") {
  const key = items.map(({ label }) => label).join();
  if (element.dataset.key !== key) {
    element.dataset.key = key;
    const shown = items.map(({ label }) => el("span", { class: "item" }, ...(label ? [el("span", { class: "dim" }, `${label} `)] : []), el("b")));
    element.replaceChildren(...(before ? [el("span", { class: "dim" }, before)] : []), ...shown);
  }
  element.querySelectorAll(".item").forEach((item, at) => {
    const value = /** @type {Element} */ (item.lastElementChild);
    setText(value, items[at].value);
    setAttribute(value, "class", items[at].tone || null);
  });
}

/** @type {[string, string, string][]} */
const TOGGLES = [
  ["measure", "measure", "table of measurements  (v)"],
  ["cursors", "cursors", "time cursors  (c)"],
  ["spectrum", "spectrum", "spectra of all channels  (f)"],
  ["waterfall", "waterfall", "spectra of the selected channel over time  (w)"],
  ["triggers", "triggers", "the last triggers, to go to each  (g)"],
  ["find", "find", "search all of the history  (\")"],
  ["channels", "channels", "channels: on, off, scale, coupling  (l)"],
];
/** @type {Record<string, keyof import("../model/settings.js").Settings["show"]>} */
const SHOWN_BY = { measure: "measurements", spectrum: "spectrum", waterfall: "waterfall", triggers: "triggers", find: "find", channels: "channels" };
const MODE_TITLES = {
  roll: "the newest samples at the right edge",
  auto: "a picture at each trigger, the newest samples where none comes",
  normal: "a picture at each trigger, and only then",
  single: "the next trigger, which stays; again for another  (s)",
};
