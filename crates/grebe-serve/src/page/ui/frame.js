// What the page is made of: head, traces, spectrum, waterfall, the strip of the history, tables.

import { WEIGHTINGS } from "../model/settings.js";
import { engineering } from "../model/units.js";
import { css } from "../draw/theme.js";
import { Canvas } from "./canvas.js";
import { button, el, select, setAttribute, setChoice, setText } from "./dom.js";
import { FoundPanel } from "./found.js";
import { Head } from "./head.js";
import { ChannelPanel, LaneNames } from "./panel.js";
import { PlotPointer, followFrequencies, followOverview } from "./pointer.js";
import { Tables } from "./tables.js";
import { TriggerList } from "./triggers.js";

/**
 * @typedef {import("./scope.js").Scope} Scope
 * @typedef {import("../model/settings.js").Settings} Settings
 */

export class Frame {
  traces;
  spectrum;
  waterfall;
  overview;
  head;
  names;
  pointer;
  #panel;
  #tables;
  #triggers;
  #found;
  #plot;
  #spectrumPane;
  #waterfallPane;
  #notice = el("p", { class: "notice", role: "status" });
  /** Said by screen readers, seldom. */
  #announced = el("p", { class: "hidden", role: "status" });
  #spectrumWords = el("span", { class: "dim" });
  #waterfallWords = el("span", { class: "dim" });
  #size = el("output", { "aria-label": "samples of a transform" });
  #weighting;
  #hold;
  #averages;
  #scope;

  /** @param {Scope} scope @param {(at: {x: number} | null) => void} hoversFrequency */
  constructor(scope, hoversFrequency) {
    this.#scope = scope;
    const resized = () => scope.redraw();
    this.traces = new Canvas("traces", resized);
    this.spectrum = new Canvas("spectrum", resized);
    this.waterfall = new Canvas("waterfall", resized);
    this.overview = new Canvas("all of the history", resized);
    this.head = new Head(scope);
    this.names = new LaneNames(scope);
    this.#panel = new ChannelPanel(scope);
    this.#triggers = new TriggerList(scope);
    this.#found = new FoundPanel(scope);
    this.#tables = new Tables(scope);
    this.#plot = el("div", { class: "plot", tabindex: 0, role: "group", "aria-label": "traces: drag moves in time, the wheel zooms, ? shows the keys" }, this.traces.canvas, this.names.element);
    this.pointer = new PlotPointer(scope, this.#plot);
    this.#plot.addEventListener("contextmenu", (event) => event.preventDefault());
    const act = (/** @type {string} */ name) => () => scope.act(name);
    this.#weighting = select("weighting of the samples", WEIGHTINGS, (value) => scope.do(() => (scope.settings.spectrum.window = value)));
    this.#hold = button("hold", "keep the highest levels  (H)", act("peakHold"), { "aria-pressed": "false" });
    this.#averages = button("no average", "spectra that are averaged  (A)", act("averages"));
    this.#spectrumPane = pane("spectrum", this.#spectrumWords, this.spectrum.canvas,
      button("−", "shorter transform  (()", act("shorterTransform")), this.#size, button("+", "longer transform, finer lines  ())", act("longerTransform")),
      this.#weighting, this.#averages, this.#hold, button("×", "close  (f)", act("spectrum")));
    this.#waterfallPane = pane("waterfall", this.#waterfallWords, this.waterfall.canvas,
      button("next channel", "the next channel  (n)", act("nextChannel")), button("×", "close  (w)", act("waterfall")));
    for (const pane of [this.spectrum, this.waterfall]) followFrequencies(scope, pane.canvas, hoversFrequency);
    Object.entries({ role: "slider", tabindex: "0", "aria-label": "which part of the history is shown", "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": "100" })
      .forEach(([name, value]) => this.overview.canvas.setAttribute(name, value));
    followOverview(scope, this.overview.canvas);
    const panes = el("div", { class: "panes" }, this.#plot, this.#spectrumPane, this.#waterfallPane, this.overview.canvas);
    this.element = el("div", { class: "grebe" }, this.head.element, this.#notice,
      el("div", { class: "middle" }, panes, this.#triggers.element, this.#found.element, this.#panel.element), this.#tables.element, this.#announced);
  }

  close() {
    for (const canvas of [this.traces, this.spectrum, this.waterfall, this.overview]) canvas.close();
  }

  /** Which panes there are. @param {Settings["show"]} show */
  layOut(show) {
    setAttribute(this.#spectrumPane, "hidden", show.spectrum ? null : "");
    setAttribute(this.#waterfallPane, "hidden", show.waterfall ? null : "");
    setAttribute(this.overview.canvas, "hidden", show.overview ? null : "");
  }

  /** @param {{state: string, notice: string, spectrum: string, waterfall: string}} words */
  say({ state, notice, spectrum, waterfall }) {
    const { settings, picture } = this.#scope;
    setText(this.#notice, notice);
    setAttribute(this.#notice, "data-state", state.toLowerCase());
    setText(this.#announced, `${state.toLowerCase()}${picture.gaps.length > 0 ? ", samples were lost" : ""}`);
    setText(this.#spectrumWords, spectrum);
    const channel = picture.waterfall?.channel ?? settings.selectedLane(picture).channel;
    setText(this.#waterfallWords, `${this.#scope.setup({ channel, part: "real" }).label}  ${waterfall}`);
  }

  /** @param {import("../draw/theme.js").Theme} theme @param {Settings} settings @param {HTMLElement} host */
  update(theme, settings, host) {
    const { style } = this.element;
    const named = { background: theme.background, plot: theme.plot, grid: theme.grid, line: theme.gridZero, text: theme.text, dim: theme.textDim, gap: theme.gap };
    const look = theme.isDark ? "dark" : "light";
    if (this.element.dataset.theme !== look) {
      for (const [name, color] of Object.entries(named)) style.setProperty(`--${name}`, css(color));
      this.element.dataset.theme = look;
      host.style.colorScheme = look;
      // Dialogs stand beside the frame.
      for (const dialog of this.#scope.dialogs.elements) for (const [name, color] of Object.entries(named)) dialog.style.setProperty(`--${name}`, css(color));
    }
    const { spectrum } = settings;
    setText(this.#size, String(spectrum.size));
    setChoice(this.#weighting, spectrum.window);
    setAttribute(this.#hold, "aria-pressed", String(spectrum.is_peak_held));
    setText(this.#averages, spectrum.averages === 1 ? "no average" : `average ${spectrum.averages}`);
    setAttribute(this.#plot, "data-held", settings.time.isHeld() ? "" : null);
    this.#panel.update();
    this.#triggers.update();
    this.#found.update();
    this.#tables.update();
    this.#describe();
  }

  /** What the pictures show, for those who do not see them. */
  #describe() {
    const { picture } = this.#scope;
    const { left, samples } = this.#scope.shown();
    setAttribute(this.traces.canvas, "aria-label", `traces of ${picture.lanes.length} lanes`);
    const held = picture.nextIndex - picture.oldestIndex;
    const part = held > 0 ? ((left + samples - picture.oldestIndex) / held) * 100 : 100;
    setAttribute(this.overview.canvas, "aria-valuenow", Math.min(Math.max(part, 0), 100).toFixed(0));
  }

  /** A spectrum in words: `8192 samples, 3.05 kHz a line`. @param {import("../data/picture.js").SpectrumView} spectrum @param {number} rateHz */
  lineWords({ transformSize, size }, rateHz) {
    const words = `${transformSize} samples`;
    return rateHz > 0 ? `${words}, ${engineering(rateHz / size, "Hz")} a line` : words;
  }
}

/** @param {string} title @param {HTMLElement} words @param {HTMLCanvasElement} canvas @param {HTMLElement[]} controls */
function pane(title, words, canvas, ...controls) {
  const head = el("div", { class: "pane-head" }, el("h2", {}, title), words, el("span", { class: "controls" }, ...controls));
  return el("section", { class: `pane ${title}`, hidden: true, "aria-label": title }, head, canvas);
}
