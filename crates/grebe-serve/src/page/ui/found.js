// The panel of a search of all of the history: a line to type, how far it came, and what it found.

import { axisUnit, rateOrOne } from "../data/picture.js";
import { findWords } from "../model/found.js";
import { engineering } from "../model/units.js";
import { button, el, setAttribute, setText } from "./dom.js";

/**
 * @typedef {import("./scope.js").Scope} Scope
 * @typedef {import("../model/found.js").FoundEvent} FoundEvent
 */

export class FoundPanel {
  #scope;
  #words = el("input", { type: "text", spellcheck: "false", autocomplete: "off", "aria-label": "what to find, as behind grebe find --trigger" });
  #state = el("p", { class: "dim", role: "status" });
  #list = el("ol", { class: "triggers" });
  #end;
  #key = "";
  #isOpen = false;

  /** @param {Scope} scope */
  constructor(scope) {
    this.#scope = scope;
    const act = (/** @type {string} */ name) => () => scope.act(name);
    const form = el("form", {
      submit: (/** @type {Event} */ event) => {
        event.preventDefault();
        scope.do(() => scope.find(this.#words.value));
      },
      keydown: (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && scope.act("find"),
    }, this.#words, el("div", { class: "row" }, el("button", { type: "submit", title: "search all of the history" }, "find"), (this.#end = button("end", "look no further", () => scope.do(() => scope.find(""))))));
    this.element = el("aside", { class: "panel found", hidden: true, "aria-label": "find in all of the history" },
      el("h2", {}, "find", button("×", "close  (\")", act("find"))), form, this.#state,
      el("div", { class: "row" }, button("earlier", "what was found before  ({)", act("triggerBefore")), button("later", "what was found behind it  (})", act("triggerBehind"))),
      this.#list);
  }

  update() {
    const scope = this.#scope;
    const { settings, picture, search } = scope;
    const isOpen = settings.show.find;
    setAttribute(this.element, "hidden", isOpen ? null : "");
    if (isOpen && !this.#isOpen) {
      if (!this.#words.value) this.#words.value = search?.words ?? (picture.stream ? findWords(picture, settings) : "");
      this.#words.focus();
      this.#words.select();
    }
    this.#isOpen = isOpen;
    if (!isOpen) return;
    setText(this.#state, search?.state ?? EXAMPLES);
    setAttribute(this.#end, "hidden", search && search.ended === null ? null : "");
    const events = search?.events ?? [];
    const shown = events.findIndex((event) => isShown(scope, event));
    // A list of thousands is seen around the one that is shown.
    const first = Math.max(Math.min(shown - LISTED / 2, events.length - LISTED), 0);
    const listed = events.slice(first, first + LISTED);
    const key = [search?.number, events.length, first, shown, axisUnit(picture), picture.lanes.length].join();
    if (key === this.#key) return;
    this.#key = key;
    const root = /** @type {ShadowRoot} */ (this.#list.getRootNode());
    const isFocused = this.#list.contains(root.activeElement);
    const entries = listed.map((event, place) => el("li", {},
      button(eventWords(scope, event), "show it", () => scope.do(() => scope.showTrigger(event.index)), { "aria-current": first + place === shown ? "true" : null })));
    const more = (/** @type {number} */ count, /** @type {string} */ where) => (count > 0 ? [el("li", { class: "dim" }, `${count} ${where}`)] : []);
    this.#list.replaceChildren(...more(first, "before"), ...entries, ...more(events.length - first - listed.length, "behind"));
    const current = /** @type {HTMLElement | null} */ (this.#list.querySelector("[aria-current]"));
    const { element } = this;
    if (current && element.scrollHeight > element.clientHeight) {
      const [line, panel] = [current.getBoundingClientRect(), element.getBoundingClientRect()];
      if (line.bottom > panel.bottom || line.top < panel.top) element.scrollTop += line.top - panel.top - panel.height / 2;
    }
    if (isFocused) /** @type {HTMLElement | null} */ (current ?? this.#list.querySelector("button"))?.focus();
  }
}

/** Shows the event that is so many later than the one on the screen: of a picture that is not held, the first or the last. @param {Scope} scope @param {number} steps @returns {boolean} whether there is any */
export function stepFound(scope, steps) {
  const events = scope.search?.events ?? [];
  if (events.length === 0) return false;
  const { time } = scope.settings;
  const here = time.isHeld() ? time.shownTrigger(scope.picture) : null;
  let place = steps > 0 ? 0 : events.length - 1;
  if (here !== null) {
    place = steps > 0 ? events.findIndex((event) => event.index > here) : events.findLastIndex((event) => event.index < here);
    if (place < 0) place = steps > 0 ? events.length - 1 : 0;
  }
  scope.showTrigger(events[place].index);
  return true;
}

/** @param {Scope} scope @param {FoundEvent} event */
function isShown({ settings, picture }, event) {
  return settings.time.isHeld() && settings.time.shownTrigger(picture) === event.index;
}

/** When it was, how long it lasts, and where. @param {Scope} scope @param {FoundEvent} event */
function eventWords(scope, { index, length, lane }) {
  const { picture } = scope;
  const time = (/** @type {number} */ samples, /** @type {number} */ digits) => engineering(samples / rateOrOne(picture), axisUnit(picture), digits);
  const lasts = length > 0 ? ` for ${time(length, 4)}` : "";
  const where = lane && picture.lanes.length > 1 ? `  ${scope.setup(lane).label}` : "";
  return `${time(index, 9)}${lasts}${where}`;
}

/** Lines that are there at once. */
const LISTED = 200;
const EXAMPLES = "edge --level 0.5, pulse --level 1 --shorter 20us, level --level 2 --longer 1ms, gap, … in all that the server holds.";
