// The channel panel: which channels are on, and how the selected lane is shown.

import { COMPLEX_PARTS, isComplex, isSameLane, laneText } from "../data/picture.js";
import { SYMBOLS, hueOf } from "../model/setup.js";
import { engineering } from "../model/units.js";
import { css } from "../draw/theme.js";
import { toggleChannel } from "./actions.js";
import { button, el, setAttribute, setText } from "./dom.js";

/** @typedef {import("./scope.js").Scope} Scope */

export class ChannelPanel {
  #scope;
  #channels = el("ul", { class: "channels" });
  #parts = el("div", { class: "row", role: "group", "aria-label": "parts of complex channels" });
  #name = el("h3");
  #scale = el("output", { "aria-label": "scale" });
  #invert;
  #coupling;
  #auto;
  /** How all lanes are drawn. @type {[keyof import("../model/settings.js").Settings["show"], HTMLButtonElement][]} */
  #ways;
  #key = "";

  /** @param {Scope} scope */
  constructor(scope) {
    this.#scope = scope;
    const act = (/** @type {string} */ name) => () => scope.act(name);
    this.#invert = button("invert", "turned over  (i)", act("invert"), { "aria-pressed": "false" });
    this.#coupling = button("AC", "without its mean  (a)", act("coupling"), { "aria-pressed": "false" });
    this.#auto = button("auto", "the scale follows the signal  (u)", act("autoScale"), { "aria-pressed": "false" });
    this.#ways = [
      ["overlay", button("overlay", "all in one lane  (o)", act("overlay"), { "aria-pressed": "false" })],
      ["persistence", button("persistence", "all triggers upon each other  (d)", act("persistence"), { "aria-pressed": "false" })],
      ["sinc", button("sin(x)/x", "the line between samples that lie wide apart  (I)", act("sinc"), { "aria-pressed": "false" })],
      ["overview", button("history", "the strip with all of the history  (_)", act("overview"), { "aria-pressed": "false" })],
    ];
    const row = (/** @type {(Node | string)[]} */ ...inside) => el("div", { class: "row" }, ...inside);
    this.element = el("aside", { class: "panel", "aria-label": "channels" },
      el("h2", {}, "channels", button("×", "close  (l)", act("channels"), { class: "close" })),
      this.#channels, this.#parts, this.#name,
      row(button("−", "coarser scale  (Y)", act("coarser")), this.#scale, button("+", "finer scale  (y)", act("finer")), this.#auto),
      row(button("▲", "trace up  (k)", act("up")), button("▼", "trace down  (j)", act("down")), this.#invert, this.#coupling),
      el("h3", {}, "all lanes"), row(...this.#ways.map(([, way]) => way)));
  }

  update() {
    const { settings, picture, theme } = this.#scope;
    setAttribute(this.element, "hidden", !settings.show.channels || !picture.stream ? "" : null);
    if (!settings.show.channels || !picture.stream) return;
    const count = Math.min(picture.stream.channels, CHANNELS_SHOWN);
    const complex = isComplex(picture.stream);
    const names = Array.from({ length: count }, (_, channel) => this.#scope.setup({ channel, part: "real" }).label);
    const key = [names.join("\n"), complex].join();
    if (key !== this.#key) this.#build(names, complex);
    this.#key = key;
    const selected = settings.selectedLane(picture);
    [...this.#channels.children].forEach((item, channel) => {
      const [box, name] = [item.querySelector("input"), item.querySelector("button")];
      if (box) box.checked = !settings.hidden.has(channel);
      if (name) setAttribute(name, "aria-pressed", String(selected.channel === channel));
      const part = complex ? "i" : "real";
      /** @type {HTMLElement} */ (item).style.setProperty("--trace", css(theme.traces[hueOf({ channel, part })]));
    });
    for (const part of this.#parts.querySelectorAll("button")) setAttribute(part, "aria-pressed", String(settings.parts.has(/** @type {any} */ (part.dataset.part))));
    const setup = this.#scope.setup(selected);
    const drawn = this.#scope.placed?.lanes.find(({ lane }) => isSameLane(lane, selected));
    const division = setup.own.perDivision ?? drawn?.division ?? 0;
    setText(this.#name, setup.label);
    setText(this.#scale, `${engineering(division, setup.unit)}/div`);
    setAttribute(this.#auto, "aria-pressed", String(setup.own.perDivision === null));
    setAttribute(this.#invert, "aria-pressed", String(setup.own.isInverted));
    setAttribute(this.#coupling, "aria-pressed", String(setup.own.isAc));
    for (const [name, way] of this.#ways) setAttribute(way, "aria-pressed", String(settings.show[name]));
  }

  /** @param {string[]} names @param {boolean} complex */
  #build(names, complex) {
    const scope = this.#scope;
    const choose = (/** @type {number} */ channel) =>
      scope.do(() => (scope.settings.selected = scope.picture.lanes.find(({ lane }) => lane.channel === channel)?.lane ?? { channel, part: complex ? "i" : "real" }));
    this.#channels.replaceChildren(...names.map((name, channel) =>
      el("li", {},
        el("input", { type: "checkbox", "aria-label": `${name} on`, change: () => scope.do(() => toggleChannel(scope, channel)) }),
        button(name, `keys and the settings below work on ${name}`, () => choose(channel), { "aria-pressed": "false" }))));
    this.#parts.replaceChildren(...(complex ? COMPLEX_PARTS : []).map((part) =>
      button(SYMBOLS[part], part === "i" || part === "q" ? `component ${SYMBOLS[part]}` : part, () => scope.do(() => {
        if (!scope.settings.parts.delete(part)) scope.settings.parts.add(part);
      }), { "data-part": part, "aria-pressed": "false" })));
  }
}

/** The names of the lanes, over the canvas: a click selects a lane and opens its settings. */
export class LaneNames {
  element = el("div", { class: "names" });
  #scope;
  #key = "";

  /** @param {Scope} scope */
  constructor(scope) {
    this.#scope = scope;
  }

  update() {
    const { settings, picture, theme, placed, pixelRatio } = this.#scope;
    const lanes = placed?.lanes ?? [];
    const key = lanes.map(({ lane }) => laneText(lane)).join();
    if (key !== this.#key) {
      this.#key = key;
      this.element.replaceChildren(...lanes.map(({ lane }) =>
        button("", `settings of ${this.#scope.setup(lane).label}`, () => this.#open(lane), { class: "name" })));
    }
    const selected = settings.selectedLane(picture);
    let beside = 0;
    lanes.forEach(({ lane, band, division }, place) => {
      const name = /** @type {HTMLElement} */ (this.element.children[place]);
      const setup = this.#scope.setup(lane);
      const flags = [setup.own.isAc && "AC", setup.own.isInverted && "inv", picture.lanes[place]?.isClipped && "CLIP"].filter(Boolean);
      setText(name, [setup.label, ...flags].join(" ") + `  ${engineering(division, setup.unit)}/div`);
      const left = band.x / pixelRatio + 6 + beside;
      name.style.transform = `translate(${left}px, ${band.y / pixelRatio + 5}px)`;
      name.style.backgroundColor = css(theme.traces[hueOf(lane)]);
      name.classList.toggle("selected", isSameLane(lane, selected) && lanes.length > 1);
      if (settings.show.overlay) beside += name.offsetWidth + 5;
    });
  }

  /** @param {import("../data/picture.js").LaneId} lane */
  #open(lane) {
    const { settings, picture } = this.#scope;
    const isAgain = isSameLane(settings.selectedLane(picture), lane);
    this.#scope.do(() => {
      settings.selected = lane;
      settings.show.channels = !(isAgain && settings.show.channels);
    });
  }
}

const CHANNELS_SHOWN = 255;
