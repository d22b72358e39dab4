// The elements of the page: head, traces, panes, the overview strip, panels, tables.

import { css } from "../draw/theme.js";
import { Canvas } from "./canvas.js";
import { button, el, select, setAttribute, setChoice, setText } from "./dom.js";
import { Player } from "./player.js";
import { PlotPointer, followFrequencies, followOverview } from "./pointer.js";
import { setRows, setWidgets, tableOf } from "./widgets.js";

/**
 * @typedef {import("./scope.js").Scope} Scope
 * @typedef {import("../data/shown.js").Shown} Shown
 */

export class Frame {
  traces;
  overview;
  pointer;
  player = new Player();
  /** By their keys in the server's values. */
  panes;
  #scope;
  #state = el("span", { class: "state" });
  #source = el("strong", { class: "source" });
  #sources;
  #stream = el("span", { class: "stream" });
  #tools = el("div", { class: "tools", role: "toolbar", "aria-label": "what is shown" });
  #link;
  #facts = el("div", { class: "facts", "aria-label": "what arrives", role: "group" });
  #losses = el("div", { class: "losses", "aria-label": "samples lost, by place", role: "group" });
  #exact = el("span", { class: "exact" });
  #trigger = el("div", { class: "line trigger", role: "group", "aria-label": "trigger" });
  #notice = el("p", { class: "notice", role: "status" });
  /** For screen readers; changes seldom. */
  #announced = el("p", { class: "hidden", role: "status" });
  #names = el("div", { class: "names" });
  #scroller = el("div", { class: "scroller", hidden: true, tabindex: 0, role: "group", "aria-label": "scroll the lanes" }, el("div"));
  #selected = "";
  #plot;
  #side = el("div", { class: "side" });
  #tables = el("div", { class: "tables", tabindex: 0, role: "group", "aria-label": "tables" });
  #tablesKey = "";

  /** @param {Scope} scope */
  constructor(scope) {
    this.#scope = scope;
    const resized = () => scope.resized();
    this.traces = new Canvas("traces", resized);
    this.overview = new Canvas("all of the history", resized);
    this.panes = { spectrum: new Pane("spectrum", resized), waterfall: new Pane("waterfall", resized), xy: new Pane("XY", resized) };
    this.panes.waterfall.head.append(this.player.element);
    this.#sources = select("which source of this server is shown", [], (value) => scope.showSource(Number(value)));
    setAttribute(this.#sources, "class", "sources");
    this.#link = button("link", "a link to this view", () => scope.dialogs.openLink());
    this.#plot = el("div", { class: "plot", tabindex: 0, role: "group", "aria-label": "traces: drag moves in time, the wheel zooms, ? shows the keys" },
      this.traces.canvas, this.#names, this.#scroller, ...scope.dialogs.overlays);
    this.#scroller.addEventListener("scroll", () => scope.redraw());
    this.pointer = new PlotPointer(scope, this.#plot, this.#scroller);
    this.#plot.addEventListener("contextmenu", (event) => event.preventDefault());
    const hovers = (/** @type {{x: number} | null} */ at) => (scope.frequencyPointer = at);
    followFrequencies(scope, this.panes.spectrum.view.canvas, hovers, () => scope.shown?.spectrum?.markers ?? []);
    const boxed = (/** @type {"draw_box" | "annotate_part"} */ what, /** @type {number[]} */ times, /** @type {number[]} */ frequencies) => scope.do({ act: { [what]: { times, frequencies } } });
    followFrequencies(scope, this.panes.waterfall.view.canvas, hovers, () => [], boxed);
    Object.entries({ role: "slider", tabindex: "0", "aria-label": "which part of the history is shown", "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": "100" })
      .forEach(([name, value]) => this.overview.canvas.setAttribute(name, value));
    followOverview(scope, this.overview.canvas);
    const title = el("div", { class: "title" }, this.#state, this.#sources, this.#source, this.#stream);
    const head = el("header", {},
      el("div", { class: "line first" }, title, el("div", { class: "line buttons" }, this.#tools, this.#link)),
      el("div", { class: "line second" }, this.#facts, el("span", { class: "rule" }), this.#losses, this.#exact), this.#trigger);
    const panes = el("div", { class: "panes" }, this.#plot, ...Object.values(this.panes).map((pane) => pane.element), this.overview.canvas);
    this.element = el("div", { class: "grebe" }, head, this.#notice, el("div", { class: "middle" }, panes, this.#side), this.#tables, this.#announced);
  }

  close() {
    this.player.close();
    for (const canvas of [this.traces, this.overview, ...Object.values(this.panes).map((pane) => pane.view)]) canvas.close();
  }

  /** Shown before the first values. @param {string} words */
  wait(words) {
    setText(this.#notice, words);
  }

  /** Shows and hides panes. @param {Shown} shown */
  layOut(shown) {
    for (const key of PANES) setAttribute(this.panes[key].element, "hidden", shown[key] ? null : "");
    setAttribute(this.overview.canvas, "hidden", shown.has_overview ? null : "");
  }

  /** Scroll position of the lanes, in CSS pixels. */
  get scrolled() {
    return this.#scroller.hidden ? 0 : this.#scroller.scrollTop;
  }

  /** Places the names of the lanes over their traces. @param {Shown} shown @param {import("../draw/plot.js").Placed} placed */
  nameLanes(shown, placed) {
    setWidgets(this.#scope, this.#names, shown.lanes.map(({ chip }) => ({ ...chip, class: "name" })));
    const ratio = this.#scope.pixelRatio;
    const { area, hidden } = placed;
    const inner = /** @type {HTMLElement} */ (this.#scroller.firstElementChild);
    setAttribute(this.#scroller, "hidden", hidden > 0 ? null : "");
    inner.style.height = `${this.#scroller.clientHeight + hidden / ratio}px`;
    const selected = shown.lanes.findIndex(({ chip }) => chip.is_on);
    const key = shown.lanes[selected]?.lane ?? "";
    if (hidden > 0 && key !== this.#selected) {
      // Scroll the selected lane into view.
      const { y, height } = placed.lanes[selected].band;
      const away = Math.min(y - area.y, 0) + Math.max(y + height - area.y - area.height, 0);
      this.#scroller.scrollTop += away / ratio;
    }
    this.#selected = key;
    let left = 0;
    shown.lanes.forEach((lane, place) => {
      const node = /** @type {HTMLElement} */ (this.#names.children[place]);
      const { band } = placed.lanes[place];
      node.hidden = band.y < area.y - 1 || band.y + band.height > area.y + area.height + 1;
      const x = band.x / ratio + 6 + (shown.is_overlay ? left : 0);
      left += node.offsetWidth + 6;
      const style = { transform: `translate(${x}px, ${band.y / ratio + 5}px)`, background: css(lane.color) };
      Object.assign(node.style, style);
    });
  }

  /** Updates all texts. @param {Shown} shown @param {{state: string, isHeld: boolean, notice: string, exact: string}} link @param {HTMLElement} host */
  update(shown, { state, isHeld, notice, exact }, host) {
    const scope = this.#scope;
    this.#color(shown.theme, host);
    setText(this.#state, state);
    setAttribute(this.#state, "data-state", state.toLowerCase());
    setText(this.#source, shown.source);
    setText(this.#stream, shown.stream);
    this.#showSources(shown);
    setWidgets(scope, this.#tools, shown.tools);
    setItems(this.#facts, shown.facts);
    setItems(this.#losses, shown.losses, "lost");
    setText(this.#exact, exact);
    setWidgets(scope, this.#trigger, [{ words: "trigger", class: "dim" }, ...shown.trigger_row]);
    setText(this.#notice, notice);
    setAttribute(this.#notice, "data-state", state.toLowerCase());
    setText(this.#announced, `${state.toLowerCase()}${shown.lost.length > 0 ? ", samples were lost" : ""}`);
    setAttribute(this.#plot, "data-held", isHeld ? "" : null);
    for (const key of PANES) {
      const said = shown[key];
      if (said) this.panes[key].update(scope, said);
    }
    this.#showPanels(shown.panels);
    const key = JSON.stringify(shown.tables);
    if (key !== this.#tablesKey) {
      this.#tablesKey = key;
      this.#tables.replaceChildren(...shown.tables.map(tableOf));
      setAttribute(this.#tables, "hidden", shown.tables.length > 0 ? null : "");
    }
    const { picture } = scope;
    const { left, samples } = scope.stretch();
    setAttribute(this.traces.canvas, "aria-label", `traces of ${shown.lanes.length} lanes`);
    const held = picture.nextIndex - picture.oldestIndex;
    const part = held > 0 ? ((left + samples - picture.oldestIndex) / held) * 100 : 100;
    setAttribute(this.overview.canvas, "aria-valuenow", Math.min(Math.max(part, 0), 100).toFixed(0));
  }

  /** A menu replaces the name if there are several sources. @param {Shown} shown */
  #showSources({ sources, source_shown: place, source }) {
    if (sources.join("\n") !== [...this.#sources.options].map(({ text }) => text).join("\n")) {
      this.#sources.replaceChildren(...sources.map((name, at) => el("option", { value: at + 1 }, name)));
    }
    setAttribute(this.#sources, "hidden", sources.length > 1 ? null : "");
    setAttribute(this.#source, "hidden", sources.includes(source) ? "" : null);
    setChoice(this.#sources, String(place + 1));
  }

  /** @param {Shown["panels"]} panels */
  #showPanels(panels) {
    setAttribute(this.#side, "hidden", panels.length > 0 ? null : "");
    panels.forEach((said, place) => {
      let panel = this.#side.children[place];
      if (panel?.getAttribute("aria-label") !== said.name) {
        const made = el("aside", { class: "panel", "aria-label": said.name }, el("h2", {}, el("span"), el("span")), el("div"));
        if (panel) panel.replaceWith(made);
        else this.#side.append(made);
        panel = made;
        // On a phone it would open below the visible area.
        requestAnimationFrame(() => made.parentElement?.scrollIntoView({ block: "nearest" }));
      }
      setText(panel.children[0].children[0], said.name);
      setWidgets(this.#scope, panel.children[0].children[1], [said.close]);
      setRows(this.#scope, panel.children[1], said.rows);
    });
    while (this.#side.children.length > panels.length) this.#side.lastElementChild?.remove();
  }

  /** @param {import("../draw/theme.js").Theme} theme @param {HTMLElement} host */
  #color(theme, host) {
    const look = theme.is_dark ? "dark" : "light";
    if (this.element.dataset.theme === look) return;
    this.element.dataset.theme = look;
    host.style.colorScheme = look;
    const named = { background: theme.background, plot: theme.plot, grid: theme.grid, line: theme.zero, text: theme.text, dim: theme.dim, gap: theme.gap };
    // Dialogs are outside the frame.
    for (const { style } of [this.element, ...this.#scope.dialogs.elements]) {
      for (const [name, color] of Object.entries(named)) style.setProperty(`--${name}`, css(color));
    }
  }
}

class Pane {
  view;
  head;
  element;
  #words = el("span", { class: "dim" });
  #controls = el("span", { class: "controls" });

  /** @param {string} title @param {() => void} resized */
  constructor(title, resized) {
    this.view = new Canvas(title, resized);
    this.head = el("div", { class: "pane-head" }, el("h2", {}, title), this.#words, this.#controls);
    this.element = el("section", { class: `pane ${title.toLowerCase()}`, hidden: true, "aria-label": title }, this.head, this.view.canvas);
  }

  /** @param {Scope} scope @param {{words: string, controls: import("../data/shown.js").Widget[]}} said */
  update(scope, { words, controls }) {
    setText(this.#words, words);
    setWidgets(scope, this.#controls, controls);
  }
}

/** @type {("spectrum" | "waterfall" | "xy")[]} */
export const PANES = ["spectrum", "waterfall", "xy"];

/** Facts in a row. Keeps nodes while their names stay the same. @param {HTMLElement} element @param {[string, string, string][]} items @param {string} before */
function setItems(element, items, before = "") {
  const key = items.map(([label]) => label).join();
  if (element.dataset.key !== key) {
    element.dataset.key = key;
    const shown = items.map(([label]) => el("span", { class: "item" }, ...(label ? [el("span", { class: "dim" }, `${label} `)] : []), el("b")));
    element.replaceChildren(...(before ? [el("span", { class: "dim" }, before)] : []), ...shown);
  }
  element.querySelectorAll(".item").forEach((item, at) => {
    const value = /** @type {Element} */ (item.lastElementChild);
    setText(value, items[at][1]);
    setAttribute(value, "class", items[at][2] || null);
  });
}
