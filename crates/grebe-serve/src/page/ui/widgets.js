// Buttons, fields and labels from the server's descriptions. A press or typed text goes back with its description.

import { css } from "../draw/theme.js";
import { el, setAttribute, setText } from "./dom.js";

/**
 * @typedef {import("./scope.js").Scope} Scope
 * @typedef {import("../data/shown.js").Widget} Widget
 */

/** The widget of each node. @type {WeakMap<Element, Widget>} */
const SHOWN = new WeakMap();

/** Shows widgets in an element. Keeps nodes of the same kind, so that none loses the focus. @param {Scope} scope @param {Element} parent @param {Widget[]} widgets */
export function setWidgets(scope, parent, widgets) {
  widgets.forEach((widget, place) => {
    const kind = widget.field !== undefined ? "input" : widget.act !== undefined ? "button" : "span";
    let node = parent.children[place];
    if (node?.localName !== kind) {
      const made = make(scope, kind);
      if (node) node.replaceWith(made);
      else parent.append(made);
      node = made;
    }
    show(node, widget);
  });
  while (parent.children.length > widgets.length) parent.lastElementChild?.remove();
}

/** @param {Scope} scope @param {"input" | "button" | "span"} kind */
function make(scope, kind) {
  if (kind === "span") return el("span");
  if (kind === "button") {
    /** @type {HTMLButtonElement} */
    const button = el("button", { type: "button", click: () => scope.do(SHOWN.get(button)?.act) });
    return button;
  }
  const input = el("input", { type: "text", spellcheck: "false", autocomplete: "off" });
  input.addEventListener("change", () => scope.do({ field: { field: SHOWN.get(input)?.field, text: input.value } }));
  return input;
}

/** @param {Element} node @param {Widget} widget */
function show(node, widget) {
  const before = SHOWN.get(node);
  SHOWN.set(node, widget);
  if (node instanceof HTMLInputElement) {
    // Not while the person types.
    if (!node.matches(":focus") && node.value !== widget.words) node.value = widget.words;
  } else setText(node, widget.words);
  if (before && JSON.stringify(before) === JSON.stringify(widget)) return;
  setAttribute(node, "class", widget.class || null);
  setAttribute(node, "title", widget.title || null);
  if (node instanceof HTMLButtonElement) node.disabled = widget.is_off === true;
  setAttribute(node, "aria-pressed", widget.is_on === undefined ? null : String(widget.is_on));
  // A button with a sign is named by its action.
  const isSign = widget.act !== undefined && !/\w\w/.test(widget.words);
  const name = widget.field !== undefined || isSign ? widget.title?.replace(/ {2}\(.*\)$/, "") : null;
  setAttribute(node, "aria-label", name || null);
  /** @type {HTMLElement} */ (node).style.borderLeftColor = widget.color ? css(widget.color) : "";
}

/** Rows of widgets. @param {Scope} scope @param {Element} parent @param {Widget[][]} rows */
export function setRows(scope, parent, rows) {
  rows.forEach((row, place) => {
    const node = parent.children[place] ?? parent.appendChild(el("div", { class: "row" }));
    setWidgets(scope, node, row);
  });
  while (parent.children.length > rows.length) parent.lastElementChild?.remove();
}

/** A table of numbers. @param {import("../data/shown.js").Table} said */
export function tableOf({ name, columns, rows }) {
  const heads = columns.map((words) => el("th", { scope: "col" }, words));
  const body = rows.map(([color, cells]) => {
    const row = el("tr", {}, ...cells.map((words, place) => (place === 0 ? el("th", { scope: "row" }, words) : el("td", {}, words))));
    row.style.color = css(color);
    return row;
  });
  return el("table", { "aria-label": name }, el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...body));
}
