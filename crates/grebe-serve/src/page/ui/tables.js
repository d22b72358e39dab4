// The tables below the traces: real ones, for eyes and for screen readers.

import { hueOf } from "../model/setup.js";
import { cursorTable, isSameShape, measurementTable, triggerTable } from "../model/tables.js";
import { css } from "../draw/theme.js";
import { el, setAttribute, setText } from "./dom.js";

/**
 * @typedef {import("./scope.js").Scope} Scope
 * @typedef {import("../model/tables.js").Table} Table
 */

export class Tables {
  element = el("div", { class: "tables", tabindex: 0, role: "region", "aria-label": "numbers" });
  #shown = ["cursors", "measurements", "trigger"].map((name) => new ShownTable(name));
  #scope;

  /** @param {Scope} scope */
  constructor(scope) {
    this.#scope = scope;
    this.element.append(...this.#shown.map(({ element }) => element));
  }

  update() {
    const { settings, picture, theme } = this.#scope;
    const cursors = cursorTable(picture, settings.owns, settings.cursors, settings.time.reference(picture));
    const isMeasuring = settings.show.measurements;
    const measurements = isMeasuring ? measurementTable(picture, settings.owns) : null;
    const trigger = isMeasuring && settings.mode(picture) !== "roll" ? triggerTable(picture, settings.owns) : null;
    [cursors, measurements, trigger].forEach((table, at) => this.#shown[at].update(table, theme));
    setAttribute(this.element, "hidden", cursors || measurements || trigger ? null : "");
  }
}

class ShownTable {
  /** @type {Table | null} */
  #table = null;
  #caption = el("caption");

  /** @param {string} name */
  constructor(name) {
    this.name = name;
    this.element = el("table", { hidden: true, "aria-label": name });
  }

  /** @param {Table | null} table @param {import("../draw/theme.js").Theme} theme */
  update(table, theme) {
    setAttribute(this.element, "hidden", table ? null : "");
    if (!table) return;
    if (!this.#table || !isSameShape(this.#table, table)) this.#build(table);
    this.#table = table;
    setText(this.#caption, [this.name, table.title].join(" ").trim());
    table.rows.forEach(({ lane, cells }, at) => {
      const row = this.element.tBodies[0].rows[at];
      cells.forEach((words, place) => setText(row.cells[place], words));
      row.cells[0].style.color = lane ? css(theme.traces[hueOf(lane)]) : "";
    });
  }

  /** @param {Table} table */
  #build(table) {
    const head = ["", ...table.head].map((words) => el("th", { scope: "col" }, words));
    const rows = table.rows.map(({ cells }) =>
      el("tr", {}, ...cells.map((words, at) => (at === 0 ? el("th", { scope: "row" }, words) : el("td", {}, words)))));
    this.element.replaceChildren(this.#caption, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows));
  }
}
