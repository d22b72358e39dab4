// The list of the last triggers: each is a place in the history that can be gone to.

import { axisUnit, rateOrOne } from "../data/picture.js";
import { engineering } from "../model/units.js";
import { button, el, setAttribute, setText } from "./dom.js";

/** @typedef {import("./scope.js").Scope} Scope */

export class TriggerList {
  #scope;
  #count = el("p", { class: "dim" });
  #list = el("ol", { class: "triggers" });
  #key = "";

  /** @param {Scope} scope */
  constructor(scope) {
    this.#scope = scope;
    const act = (/** @type {string} */ name) => () => scope.act(name);
    this.element = el("aside", { class: "panel", hidden: true, "aria-label": "last triggers" },
      el("h2", {}, "triggers", button("×", "close  (g)", act("triggers"))),
      el("div", { class: "row" }, button("earlier", "the trigger before  ({)", act("triggerBefore")), button("later", "the trigger behind  (})", act("triggerBehind"))),
      this.#count, this.#list);
  }

  update() {
    const { settings, picture } = this.#scope;
    setAttribute(this.element, "hidden", settings.show.triggers ? null : "");
    if (!settings.show.triggers) return;
    const [unit, rate] = [axisUnit(picture), rateOrOne(picture)];
    const there = placesOf(picture);
    const found = picture.trigger?.found ?? 0;
    setText(this.#count, there.length === 0 ? NONE[settings.mode(picture)] ?? "none yet" : `${found} found; ${there.length} of them here`);
    const shown = settings.time.shownTrigger(picture);
    // Nodes are kept while the list is the same: a button that is being pressed stays.
    const key = [unit, shown, ...there].join();
    if (key === this.#key) return;
    this.#key = key;
    const focused = this.#list.contains(/** @type {ShadowRoot} */ (this.#list.getRootNode()).activeElement);
    const entries = there.map((at, place) => {
      const before = there[place - 1];
      const words = `${engineering(at / rate, unit, 9)}${before === undefined ? "" : `  +${engineering((at - before) / rate, unit, 4)}`}`;
      return el("li", {}, button(words, "show it", () => this.#scope.do(() => this.#scope.showTrigger(at)), { "aria-current": at === shown ? "true" : null }));
    });
    this.#list.replaceChildren(...entries.reverse());
    this.#scrollToShown();
    if (focused) /** @type {HTMLElement | null} */ (this.#list.querySelector("[aria-current]") ?? this.#list.querySelector("button"))?.focus();
  }

  /** Within the panel alone: on a phone the page is what scrolls. */
  #scrollToShown() {
    const shown = /** @type {HTMLElement | null} */ (this.#list.querySelector("[aria-current]"));
    const { element } = this;
    if (!shown || element.scrollHeight <= element.clientHeight) return;
    const [line, panel] = [shown.getBoundingClientRect(), element.getBoundingClientRect()];
    if (line.bottom > panel.bottom || line.top < panel.top) element.scrollTop += line.top - panel.top - panel.height / 2;
  }
}

/** Shows the trigger that is so many later than the one on the screen. @param {Scope} scope @param {number} steps */
export function stepTrigger(scope, steps) {
  const there = placesOf(scope.picture);
  if (there.length === 0) return scope.say("no trigger is known yet");
  const shown = scope.settings.time.shownTrigger(scope.picture) ?? Infinity;
  const here = there.filter((at) => at < shown).length;
  scope.showTrigger(there[Math.min(Math.max(here + steps, 0), there.length - 1)]);
}

/** Triggers that the history still holds, the newest last; of a held picture those around it. @param {import("../data/picture.js").Picture} picture */
const placesOf = ({ triggers, oldestIndex }) => triggers.filter((at) => at >= oldestIndex);

/** @type {Record<string, string>} */
const NONE = { roll: "none is looked for: choose auto, normal or single" };
