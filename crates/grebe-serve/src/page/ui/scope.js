// One scope: the server's values, the newest picture, and the objects that draw them.

import { Connection } from "../data/connection.js";
import { waitingPicture } from "../data/picture.js";
import { Densities } from "../draw/density.js";
import { drawOverview, overviewArea } from "../draw/overview.js";
import { LEVELS_WIDTH, drawPlot, plotArea } from "../draw/plot.js";
import { WaterfallView, XyPlot, drawSpectrum } from "../draw/spectrum.js";
import { Dialogs } from "./dialogs.js";
import { Frame, PANES } from "./frame.js";

/**
 * @typedef {import("../data/picture.js").Picture} Picture
 * @typedef {{url: URL, token: string, view: string, pageUrl: URL, keys: HTMLElement | Document, onSource: (source: number) => void}} ScopeOptions
 * @typedef {{number: number, ending: number | null, samples: number}} Preview a stretch of which no picture came yet; `ending`: its right edge, `null`: it goes on
 */

export class Scope {
  /** The newest picture. @type {Picture} */
  picture = waitingPicture();
  /** The server's values; `null` before the first. @type {import("../data/shown.js").Shown | null} */
  shown = null;
  /** Places of the drawn elements. @type {import("../draw/plot.js").Placed | null} */
  placed = null;
  pixelRatio = 1;
  /** Place of the pointer over a frequency axis, in device pixels. @type {{x: number} | null} */
  frequencyPointer = null;
  /** The box being drawn on the waterfall: left, right, upper and lower edge as parts. @type {number[] | null} */
  drawnBox = null;
  /** URL of the page, for links. */
  pageUrl;
  dialogs;
  connection;
  #frame;
  #host;
  #waterfall = new WaterfallView();
  #xy = new XyPlot();
  #densities = new Densities();
  /** @type {Preview | null} */
  #preview = null;
  /** The visible part of the frequencies, before the server confirms it. @type {{number: number, zoom: [number, number]} | null} */
  #zoom = null;
  /** The bound keys, and their effect on the time axis. @type {Map<string, string>} */
  #keys = new Map();
  #sizes = "";
  #isDue = false;
  #isSaid = false;
  /** Time of the pending request. */
  #askedMs = 0;
  #dark = window.matchMedia("(prefers-color-scheme: dark)");
  #timer = 0;
  #abort = new AbortController();
  #ownsPage;
  #url;
  #onSource;
  #source;
  /** Settings by source number, so that a return to a source restores them. @type {Map<number, string>} */
  #views = new Map();

  /** @param {HTMLElement} host @param {ShadowRoot} root @param {ScopeOptions} options */
  constructor(host, root, { url, token, view, pageUrl, keys, onSource }) {
    this.#host = host;
    this.#url = url;
    this.#onSource = onSource;
    this.#ownsPage = keys === document;
    this.pageUrl = pageUrl;
    const said = new URLSearchParams(view);
    this.#source = Math.max(Number(said.get("source")) || 1, 1);
    for (const key of ["source", "token"]) said.delete(key);
    this.#views.set(this.#source, [...said].map(([key, value]) => `${key}=${value}`).join("\n"));
    this.dialogs = new Dialogs(this);
    this.connection = this.#connect(token);
    this.#frame = new Frame(this);
    root.append(this.#frame.element, ...this.dialogs.elements);
    const { signal } = this.#abort;
    keys.addEventListener("keydown", (event) => this.#key(/** @type {KeyboardEvent} */ (event)), { signal });
    this.#timer = window.setInterval(() => this.redraw(), IDLE_MS);
    this.redraw();
  }

  /** @param {string} token */
  #connect(token) {
    const hello = () => ({ view: this.#views.get(this.#source) ?? "", is_light: !this.#dark.matches });
    return new Connection(this.#url, token, this.#source, hello, {
      onPicture: (picture) => this.#take(picture),
      onNews: () => this.#takeNews(),
      onShown: (shown) => this.#takeShown(shown),
      onKeys: (keys) => (this.#keys = new Map(keys)),
      onFile: save,
      onGo: (source) => this.showSource(source),
      onLink: () => this.#linkChanged(),
    });
  }

  /** Shows another of the server's sources. The settings of this one return with it. @param {number} source from 1 */
  showSource(source) {
    if (source === this.#source) return;
    this.#source = source;
    this.picture = waitingPicture();
    this.shown = null;
    [this.#preview, this.#zoom] = [null, null];
    [this.#waterfall, this.#xy, this.#densities] = [new WaterfallView(), new XyPlot(), new Densities()];
    const { token } = this.connection;
    this.connection.close();
    this.#frame.player.clear();
    this.connection = this.#connect(token);
    this.#onSource(source);
  }

  /** The settings, as the fragment of a link. @param {string | null} token */
  fragment(token) {
    const said = new URLSearchParams();
    if (token !== null) said.set("token", token);
    if (this.#source !== 1) said.set("source", String(this.#source));
    for (const line of (this.#views.get(this.#source) ?? "").split("\n").filter(Boolean)) {
      const at = line.indexOf("=");
      said.set(line.slice(0, at), line.slice(at + 1));
    }
    return said.toString();
  }

  close() {
    this.connection.close();
    this.#frame.close();
    this.#abort.abort();
    window.clearInterval(this.#timer);
  }

  /** Sends a person's action. @param {any} what */
  do(what) {
    if (what === undefined) return 0;
    this.#askedMs = performance.now();
    return this.connection.do(what);
  }

  /** Shows a range at once by stretching the present picture, until the new one arrives. @param {any} what @param {number | null} ending @param {number} samples */
  preview(what, ending, samples) {
    this.#preview = { number: this.do(what), ending, samples };
    this.redraw();
  }

  /** Stretches the present picture at once; the request follows with the next frame. @param {number} ending @param {number} samples */
  aim(ending, samples) {
    this.#preview = { number: Infinity, ending, samples };
    this.redraw();
  }

  /** Steps to the next shorter or longer span, around a part of the screen. @param {any} what @param {boolean} isShorter @param {number} at */
  zoom(what, isShorter, at) {
    if (!this.shown) return;
    const { left, samples } = this.stretch();
    const { shorter, longer, anchor } = this.shown;
    // A further step may follow before the answer to the first.
    const factor = (isShorter ? shorter : longer) / this.picture.spanSamples;
    const next = this.#preview ? samples * factor : isShorter ? shorter : longer;
    const ending = anchor === null ? left + at * samples + (1 - at) * next : null;
    this.preview(what, ending, next);
  }

  /** Moves by parts of the screen, and holds the picture. @param {any} what @param {number} part */
  pan(what, part) {
    const { left, samples } = this.stretch();
    this.preview(what, left + samples * (1 + part), samples);
  }

  /** Shows a part of the frequencies. @param {[number, number]} zoom */
  zoomFrequencies(zoom) {
    this.#zoom = { number: this.do({ frequencies: zoom }), zoom };
    this.redraw();
  }

  /** The visible part of the frequencies. @returns {[number, number]} */
  frequencies() {
    return this.#zoom?.zoom ?? (this.shown?.spectrum ?? this.shown?.waterfall)?.zoom ?? [0, 1];
  }

  /** The visible range: the picture's, or the requested one while its picture is pending. */
  stretch() {
    const { leftIndex: left, spanSamples: samples } = this.picture;
    const preview = this.#preview;
    if (!preview) return { left, samples };
    if (preview.ending !== null) return { left: preview.ending - preview.samples, samples: preview.samples };
    return { left: left + (samples - preview.samples) * (this.shown?.anchor ?? 1), samples: preview.samples };
  }

  overviewArea() {
    return overviewArea(this.#frame.overview.canvas, this.pixelRatio);
  }

  /** Draws at the next frame of the screen. */
  redraw() {
    if (this.#isDue) return;
    this.#isDue = true;
    window.requestAnimationFrame(() => {
      this.#isDue = false;
      this.#draw();
    });
  }

  resized() {
    this.redraw();
  }

  /** @param {Picture} picture */
  #take(picture) {
    this.picture = picture;
    this.#densities.density = picture.density;
    this.#frame.player.take(picture.sound);
    this.#settle();
    this.redraw();
  }

  /** Pieces that arrived after their picture belong to it. */
  #takeNews() {
    Object.assign(this.picture, this.connection.session.extras());
    this.#densities.density = this.picture.density;
    this.#frame.player.take(this.picture.sound);
    this.redraw();
  }

  /** @param {Record<string, any>} shown */
  #takeShown(shown) {
    this.shown = /** @type {import("../data/shown.js").Shown} */ ({ ...this.shown, ...shown });
    if (shown.view !== undefined) this.#views.set(this.#source, shown.view);
    this.#isSaid = true;
    this.#settle();
    this.redraw();
  }

  /** Ends the wait once the request is answered, or changed nothing. */
  #settle() {
    const { done = 0, asked = 0 } = this.shown ?? {};
    const isThere = (/** @type {number} */ number) => this.picture.answers >= number || (done >= number && asked < number);
    if (this.#preview && isThere(this.#preview.number)) this.#preview = null;
    if (this.#zoom && done >= this.#zoom.number) this.#zoom = null;
  }

  #linkChanged() {
    // The first values arrive while connecting.
    if (!this.connection) return;
    const { state, words } = this.connection;
    if (state === "open") [this.#sizes, this.#preview, this.#zoom] = ["", null, null];
    if (state === "refused") this.dialogs.askForToken(words);
    this.#isSaid = true;
    this.redraw();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const from = event.composedPath()[0];
    const isTyping = from instanceof HTMLInputElement || from instanceof HTMLSelectElement;
    const isPress = from instanceof HTMLButtonElement && (event.key === " " || event.key === "Enter");
    const isElsewhere = event.ctrlKey || event.metaKey || event.altKey;
    const key = event.shiftKey && event.key.startsWith("Arrow") ? `Shift+${event.key}` : event.key;
    const ahead = this.#keys.get(key);
    if (isTyping || isPress || isElsewhere || ahead === undefined || this.dialogs.isOpen) return;
    event.preventDefault();
    const what = { key };
    if (ahead === "shorter" || ahead === "longer") this.zoom(what, ahead === "shorter", 0.5);
    else if (ahead === "earlier" || ahead === "later") this.pan(what, ahead === "earlier" ? -0.5 : 0.5);
    else this.do(what);
  }

  /** Spectrum and waterfall share one axis, so both leave room for the level bar. */
  #levelsWidth() {
    return this.shown?.waterfall ? LEVELS_WIDTH : 0;
  }

  /** Place of a pane's frequencies, in CSS pixels: left, width, top, height. @param {HTMLElement} element @returns {[number, number, number, number]} */
  frequencyArea(element) {
    const ratio = this.pixelRatio;
    const { x, width, y, height } = plotArea(element.clientWidth * ratio, element.clientHeight * ratio, ratio, this.#levelsWidth());
    return [x / ratio, width / ratio, y / ratio, height / ratio];
  }

  /** Sends the sizes of the drawing areas if they changed. */
  #saySizes() {
    const { traces, overview, panes } = this.#frame;
    if (traces.canvas.width < 2 || this.connection.state !== "open") return;
    const points = (/** @type {import("./canvas.js").Canvas} */ { canvas }, isShown = true, right = 0) => {
      const { width, height } = plotArea(canvas.width, canvas.height, this.pixelRatio, right);
      return isShown && canvas.width > 8 ? [width / this.pixelRatio, height / this.pixelRatio] : [0, 0];
    };
    const { width } = plotArea(traces.canvas.width, traces.canvas.height, this.pixelRatio);
    const [spectrum, waterfall, xy] = PANES.map((key) => points(panes[key].view, !!this.shown?.[key], key === "xy" ? 0 : this.#levelsWidth()));
    const strip = this.shown?.has_overview === false ? 0 : (overviewArea(overview.canvas, this.pixelRatio)?.width ?? 0);
    const sizes = { columns: width, overview: strip, plot: points(traces), spectrum, waterfall, xy };
    const said = JSON.stringify(sizes);
    if (said === this.#sizes) return;
    this.#sizes = said;
    this.do({ size: sizes });
  }

  #draw() {
    this.pixelRatio = this.#frame.traces.pixelRatio;
    this.#saySizes();
    const { shown, picture, pixelRatio } = this;
    if (!shown?.theme) return this.#say();
    this.#frame.layOut(shown);
    const now = performance.now();
    const theme = shown.theme;
    const stretch = this.stretch();
    const isOld = shown.state.word === "STALE" || this.connection.state !== "open";
    this.placed = drawPlot(this.#frame.traces.context, {
      picture, shown, stretch, pixelRatio,
      densities: this.#densities,
      scrolled: this.#frame.scrolled * pixelRatio,
      isPale: isOld || (this.#preview !== null && now - this.#askedMs > PALE_AFTER_MS),
      pointer: this.#frame.pointer.hover,
      box: this.#frame.pointer.box,
    });
    const right = this.#levelsWidth();
    const scene = { picture, theme, pixelRatio, right, zoom: this.frequencies(), pointer: this.frequencyPointer };
    const { spectrum, waterfall, xy } = this.#frame.panes;
    if (shown.spectrum) drawSpectrum(spectrum.view.context, { ...scene, shown: shown.spectrum });
    if (shown.waterfall) this.#waterfall.draw(waterfall.view.context, { ...scene, shown: shown.waterfall, drawn: this.drawnBox });
    if (shown.xy) this.#xy.draw(xy.view.context, { ...scene, shown: shown.xy });
    if (shown.has_overview) drawOverview(this.#frame.overview.context, { picture, shown, stretch, theme, pixelRatio });
    this.#frame.nameLanes(shown, this.placed);
    this.#say();
  }

  /** Updates the texts around the traces. */
  #say() {
    const { state, words } = this.connection;
    const { shown } = this;
    const isWaiting = this.#preview !== null || (shown?.asked ?? 0) > this.picture.answers;
    if (isWaiting || state !== "open") this.#isSaid = true;
    if (!this.#isSaid) return;
    this.#isSaid = false;
    if (!shown?.theme) return this.#frame.wait(this.#linkWords(words));
    const isOpen = state === "open";
    const isLate = isWaiting && performance.now() - this.#askedMs > PALE_AFTER_MS;
    const exact = !isOpen ? "" : isLate ? "on its way …" : isWaiting ? "" : shown.exact;
    this.#frame.update(shown, {
      state: isOpen ? shown.state.word : "OFFLINE",
      isHeld: shown.state.is_held,
      notice: isOpen ? shown.notice : this.#linkWords(words),
      exact,
    }, this.#host);
    this.dialogs.update(shown);
    if (this.#ownsPage) document.title = `${shown.source} - grebe`;
    if (isWaiting) this.#isSaid = true;
  }

  /** @param {string} words */
  #linkWords(words) {
    const { state, retryMs } = this.connection;
    if (state === "refused") return `not let in: ${words}`;
    if (state !== "cut") return `${words} …`;
    const seconds = Math.max(Math.ceil((retryMs - performance.now()) / 1000), 0);
    return `${words}: the picture is the last that came. Trying again${seconds > 0 ? ` in ${seconds} s` : " …"}`;
  }
}

/** Saves a file as a download. @param {{name: string, bytes: Uint8Array}} file */
function save({ name, bytes }) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([/** @type {BlobPart} */ (bytes)]));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** Update interval without pictures, so that a stale stream is marked. */
const IDLE_MS = 500;
/** A faster answer shows no wait mark. */
const PALE_AFTER_MS = 150;
