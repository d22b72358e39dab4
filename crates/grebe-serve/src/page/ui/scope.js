// One scope: what is set, the newest picture, and what draws it.

import { Connection } from "../data/connection.js";
import { isSameLane, laneText, rateOrOne, rightIndex, waitingPicture } from "../data/picture.js";
import { Densities } from "../draw/density.js";
import { drawOverview, overviewArea } from "../draw/overview.js";
import { drawPlot, plotArea } from "../draw/plot.js";
import { LevelRange, WaterfallView, drawSpectrum } from "../draw/spectrum.js";
import { DARK, LIGHT } from "../draw/theme.js";
import { GapPlaces } from "../model/gaps.js";
import { Search } from "../model/found.js";
import { fromFragment, toFragment } from "../model/link.js";
import { AutoRange, rangeOfScale } from "../model/range.js";
import { Settings } from "../model/settings.js";
import { setupOf } from "../model/setup.js";
import { heldWords, runState } from "../model/words.js";
import { ACTIONS } from "./actions.js";
import { Dialogs } from "./dialogs.js";
import { Frame } from "./frame.js";
import { pressed } from "./keys.js";

/**
 * @typedef {import("../data/picture.js").Picture} Picture
 * @typedef {import("../data/picture.js").LaneId} LaneId
 * @typedef {{url: URL, token: string, view: string, pageUrl: URL, keys: HTMLElement | Document, onSource: (source: number) => void}} ScopeOptions
 */

export class Scope {
  settings = new Settings();
  /** The newest picture. @type {Picture} */
  picture = waitingPicture();
  /** Where things were drawn. @type {import("../draw/plot.js").Placed | null} */
  placed = null;
  pixelRatio = 1;
  /** The search that goes on, or the last. @type {Search | null} */
  search = null;
  /** The page that a link leads to. */
  pageUrl;
  dialogs;
  connection;
  #frame;
  #host;
  /** @type {Map<string, AutoRange>} */
  #autoRanges = new Map();
  #levelRange = new LevelRange();
  #waterfall = new WaterfallView();
  #densities = new Densities();
  #places = new GapPlaces();
  /** The number of the viewport that was asked for last, and when. */
  #asked = { number: 0, ms: 0 };
  #isDue = false;
  #wordsMs = 0;
  /** Pictures and bytes as of the last look, and when that was. */
  #counted = { pictures: 0, bytes: 0, ms: 0, picturesPerS: 0, bitsPerS: 0 };
  #message = { words: "", ms: -Infinity };
  #spectrumPointer = /** @type {{x: number} | null} */ (null);
  /** @type {MediaQueryList} */
  #dark = window.matchMedia("(prefers-color-scheme: dark)");
  #timer = 0;
  #abort = new AbortController();
  #ownsPage;
  #url;
  #onSource;
  /** What was set for sources that were left, by their numbers. @type {Map<number, string>} */
  #views = new Map();

  /** @param {HTMLElement} host @param {ShadowRoot} root @param {ScopeOptions} options */
  constructor(host, root, { url, token, view, pageUrl, keys, onSource }) {
    this.#host = host;
    this.#url = url;
    this.#onSource = onSource;
    this.#ownsPage = keys === document;
    this.pageUrl = pageUrl;
    fromFragment(this.settings, view);
    this.dialogs = new Dialogs(this);
    this.connection = this.#connect(token);
    this.#frame = new Frame(this, (at) => (this.#spectrumPointer = at));
    root.append(this.#frame.element, ...this.dialogs.elements);
    const { signal } = this.#abort;
    keys.addEventListener("keydown", (event) => this.#key(/** @type {KeyboardEvent} */ (event)), { signal });
    this.#dark.addEventListener("change", () => this.redraw(), { signal });
    this.#timer = window.setInterval(() => this.redraw(), IDLE_MS);
    this.redraw();
  }

  /** @param {string} token */
  #connect(token) {
    return new Connection(this.#url, token, this.settings.source, {
      onPicture: (picture) => this.#take(picture),
      onNews: () => this.#takeNews(),
      onSaid: (words) => this.say(words),
      onFound: (news) => this.#takeFound(news),
      onLink: () => this.#linkChanged(),
    });
  }

  /** Shows another of the server's sources. What was set for this one is there again when it is. @param {number} source from 1 */
  showSource(source) {
    if (source === this.settings.source) return;
    this.#views.set(this.settings.source, toFragment(this.settings, null));
    const { theme } = this.settings;
    this.settings = new Settings();
    fromFragment(this.settings, this.#views.get(source) ?? "");
    [this.settings.source, this.settings.theme] = [source, theme];
    this.picture = waitingPicture();
    this.search = null;
    this.#autoRanges.clear();
    [this.#levelRange, this.#waterfall, this.#densities, this.#places] = [new LevelRange(), new WaterfallView(), new Densities(), new GapPlaces()];
    [this.#asked, this.#counted] = [{ number: 0, ms: 0 }, { pictures: 0, bytes: 0, ms: 0, picturesPerS: 0, bitsPerS: 0 }];
    const { token } = this.connection;
    this.connection.close();
    this.connection = this.#connect(token);
    this.#onSource(source);
  }

  /** Holds the picture at a trigger, which stands where the settings have it. @param {number} at its sample index */
  showTrigger(at) {
    const { time, trigger } = this.settings;
    time.holdTrigger(this.picture, at, trigger.position);
  }

  /** Has all that the server holds searched; without words, ends that. @param {string} typed */
  find(typed) {
    const words = typed.trim();
    if (words === "") {
      this.connection.endFind();
      this.search = null;
      return;
    }
    if (this.connection.state !== "open") return this.say("there is no connection to the server: search when it is there again");
    const channels = this.picture.stream?.channels ?? 0;
    const scales = Array.from({ length: channels }, (_, channel) => {
      const { scale, offset } = this.picture.description?.channels[channel] ?? { scale: 1, offset: 0 };
      return /** @type {[number, number]} */ ([scale, offset]);
    });
    this.search = new Search(this.connection.find(words, scales), words);
  }

  close() {
    this.connection.close();
    this.#frame.close();
    this.#abort.abort();
    window.clearInterval(this.#timer);
  }

  get theme() {
    const { theme } = this.settings;
    return theme === "dark" || (theme === "auto" && this.#dark.matches) ? DARK : LIGHT;
  }

  /** Does an action by its name. @param {string} name */
  act(name) {
    const action = ACTIONS[name];
    if (action) this.do(() => action(this));
  }

  /** Changes settings; what follows from them is asked for and drawn. @param {() => unknown} change */
  do(change) {
    change();
    this.#wordsMs = 0;
    this.redraw();
  }

  /** Says something for a while. @param {string} words */
  say(words) {
    this.#message = { words, ms: performance.now() };
    this.#wordsMs = 0;
    this.redraw();
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

  /** The meaning of a lane's numbers in the newest picture. @param {LaneId} lane */
  setup(lane) {
    return setupOf(this.picture, lane, this.settings.owns);
  }

  /** The time at the left edge, and the span, in units of the axis. */
  axis() {
    const { left, samples } = this.shown();
    const rate = rateOrOne(this.picture);
    return { start: (left - this.settings.time.reference(this.picture)) / rate, span: samples / rate };
  }

  /** The stretch on the screen: the picture's, or while another is on its way, the one that was asked for. */
  shown() {
    const { picture } = this;
    const isAnswer = picture.answers === this.#asked.number;
    return isAnswer ? { left: picture.leftIndex, samples: picture.spanSamples } : this.settings.time.shown(picture);
  }

  overviewArea() {
    return overviewArea(this.#frame.overview.canvas, this.pixelRatio);
  }

  /** Saves what the traces show as a picture. */
  savePicture() {
    this.#frame.traces.canvas.toBlob((blob) => {
      if (!blob) return;
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = "grebe.png";
      link.click();
      URL.revokeObjectURL(link.href);
    });
  }

  /** @param {Picture} picture */
  #take(picture) {
    if (picture.streams !== this.picture.streams) this.#places.forget();
    this.picture = picture;
    this.#densities.density = picture.density;
    this.#places.look(picture.gaps, this.connection.session.status);
    this.redraw();
  }

  /** Pieces that came behind their picture belong to it. */
  #takeNews() {
    Object.assign(this.picture, this.connection.session.extras());
    this.#densities.density = this.picture.density;
    this.redraw();
  }

  /** @param {import("../model/found.js").FoundNews} news */
  #takeFound(news) {
    if (news.number !== this.search?.number) return;
    this.search.take(news);
    if (news.ended !== null) this.say(`${this.search.state}${this.search.events.length > 0 ? "; { and } go from one to the next" : ""}`);
    this.#wordsMs = 0;
    this.redraw();
  }

  #linkChanged() {
    // The first words come while the connection is being made.
    if (!this.connection) return;
    const { state, words } = this.connection;
    if (state !== "open" && this.search?.ended === null) this.search.ended = "the connection was cut: search again";
    if (state === "open") this.#asked.number = 0;
    if (state === "refused") this.dialogs.askForToken(words);
    this.#wordsMs = 0;
    this.redraw();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const from = event.composedPath()[0];
    const isTyping = from instanceof HTMLInputElement || from instanceof HTMLSelectElement;
    const isPress = from instanceof HTMLButtonElement && (event.key === " " || event.key === "Enter");
    if (isTyping || isPress || this.dialogs.isOpen) return;
    if (pressed(this, event)) event.preventDefault();
  }

  #draw() {
    const now = performance.now();
    const { settings, picture, theme } = this;
    this.#frame.layOut(settings.show);
    this.pixelRatio = this.#frame.traces.pixelRatio;
    this.#request(now);
    const ranges = this.#followRanges(now);
    const scene = { picture, theme, pixelRatio: this.pixelRatio };
    const isOld = this.#state(now) === "STALE" || this.connection.state !== "open";
    const shown = this.shown();
    const lanes = picture.lanes.map(({ lane }, place) => ({ lane, setup: this.setup(lane), range: ranges[place] }));
    const selected = settings.selectedLane(picture);
    const front = Math.max(picture.lanes.findIndex(({ lane }) => isSameLane(lane, selected)), 0);
    const isAside = shown.left !== picture.leftIndex || shown.samples !== picture.spanSamples;
    this.placed = drawPlot(this.#frame.traces.context, {
      ...scene, shown, lanes, front,
      reference: settings.time.reference(picture),
      isOverlay: settings.show.overlay,
      isSinc: settings.show.sinc,
      isPale: isOld || (isAside && now - this.#asked.ms > PALE_AFTER_MS),
      placeOf: (gap) => this.#places.of(gap),
      densities: settings.show.persistence && !settings.time.isHeld() ? this.#densities : NO_DENSITIES,
      cursors: settings.cursors,
      cursorAt: settings.cursorAt,
      pointer: this.#frame.pointer.hover,
      box: this.#frame.pointer.box,
    });
    const range = this.#levelRange.follow(picture);
    const spectrum = { ...scene, zoom: settings.spectrumZoom, range, pointer: this.#spectrumPointer };
    if (settings.show.spectrum) drawSpectrum(this.#frame.spectrum.context, spectrum);
    if (settings.show.waterfall) this.#waterfall.draw(this.#frame.waterfall.context, spectrum);
    if (settings.show.overview) drawOverview(this.#frame.overview.context, { ...scene, shown, owns: settings.owns });
    this.#frame.names.update();
    if (now - this.#wordsMs >= WORDS_MS) this.#sayAll(now);
  }

  /** Asks for what the settings describe, as wide as the plot. @param {number} now */
  #request(now) {
    const { canvas } = this.#frame.traces;
    if (canvas.width < 2) return;
    const { width } = plotArea(canvas.width, canvas.height, this.pixelRatio);
    const strip = this.overviewArea();
    const viewport = this.settings.viewport(this.picture, Math.min(width, COLUMNS_MAX), Math.min(strip?.width ?? 0, OVERVIEW_MAX));
    const number = this.connection.request(viewport);
    if (number !== this.#asked.number) this.#asked = { number, ms: now };
  }

  /** What each lane shows: the scale that is set, or one that follows the signal. @param {number} now */
  #followRanges(now) {
    return this.picture.lanes.map(({ lane, min, max }) => {
      const setup = this.setup(lane);
      const { perDivision, position } = setup.own;
      let range;
      if (perDivision !== null) range = rangeOfScale(perDivision, position);
      else {
        const key = [laneText(lane), setup.scale, setup.dcOffset, setup.own.isAc, this.picture.streams].join();
        let auto = this.#autoRanges.get(key);
        if (!auto) {
          // Another meaning of the numbers begins with another range.
          for (const old of this.#autoRanges.keys()) if (old.startsWith(`${laneText(lane)},`)) this.#autoRanges.delete(old);
          this.#autoRanges.set(key, (auto = new AutoRange()));
        }
        const seen = extremes(min, max, setup);
        const isCounts = ["real", "i", "q"].includes(lane.part) && !/f/.test(this.picture.stream?.format ?? "");
        const height = seen ? Math.max(Math.abs(seen.top), Math.abs(seen.bottom)) : 0;
        range = auto.follow(seen, isCounts ? Math.abs(setup.scale) : height * 1e-6 || Math.abs(setup.scale) * 1e-3, now);
      }
      this.settings.ranges.set(laneText(lane), range);
      return range;
    });
  }

  /** @param {number} now */
  #state(now) {
    return runState(this.picture, this.settings.time.isHeld(), this.connection.state === "open", now);
  }

  /** Everything that is written around the traces. @param {number} now */
  #sayAll(now) {
    this.#wordsMs = now;
    const { picture, settings, connection } = this;
    const { pictures, bytes } = connection.received;
    const seconds = (now - this.#counted.ms) / 1000;
    if (seconds >= 1) {
      const [picturesPerS, bitsPerS] = [(pictures - this.#counted.pictures) / seconds, ((bytes - this.#counted.bytes) * 8) / seconds];
      this.#counted = { pictures, bytes, ms: now, picturesPerS, bitsPerS };
    }
    const state = this.#state(now);
    const { roundTripS } = connection;
    this.#frame.head.update(state, { ...this.#counted, roundTripS, nowMs: now }, this.#exactWords(now));
    this.#frame.say({ state, notice: this.#notice(now), spectrum: this.#spectrumWords(), waterfall: picture.waterfall?.words ?? "" });
    this.#frame.update(this.theme, settings, this.#host);
    if (this.#ownsPage) document.title = `${this.#frame.head.sourceName} - grebe`;
  }

  /** What of the picture is not yet what was asked for. @param {number} now */
  #exactWords(now) {
    if (this.connection.state !== "open") return "";
    if (this.picture.answers !== this.#asked.number) return now - this.#asked.ms > PALE_AFTER_MS ? "on its way …" : "";
    if (this.picture.isEstimated) return "some samples of each column so far";
    return this.settings.time.isHeld() ? "exact" : "";
  }

  /** One line above the traces, or none. @param {number} now */
  #notice(now) {
    const { state, words, retryMs, session } = this.connection;
    if (state === "cut") {
      const seconds = Math.max(Math.ceil((retryMs - now) / 1000), 0);
      const picture = this.picture.stream ? ": the picture is the last that came" : "";
      return `${words}${picture}. Trying again${seconds > 0 ? ` in ${seconds} s` : " …"}`;
    }
    if (state === "refused") return `not let in: ${words}`;
    if (state !== "open") return this.picture.stream ? `${words} …` : "connecting …";
    if (now - this.#message.ms < MESSAGE_MS) return this.#message.words;
    if (session.status.notice) return session.status.notice;
    if (this.picture.refused) return this.picture.refused;
    if (!this.picture.stream) return session.status.advice ?? "nothing came yet";
    return this.settings.time.isHeld() ? heldWords(this.picture, rightIndex(this.picture)) : "";
  }

  #spectrumWords() {
    const { spectrum, stream } = this.picture;
    if (!spectrum) return "no samples yet";
    const { averages } = this.settings.spectrum;
    const lines = this.#frame.lineWords(spectrum, stream?.rateHz ?? 0);
    return averages > 1 ? `${lines}, ${averages} averaged` : lines;
  }
}

/** @param {Float32Array} min @param {Float32Array} max @param {import("../model/setup.js").Setup} setup */
function extremes(min, max, setup) {
  let [low, high] = [Infinity, -Infinity];
  for (let place = 0; place < min.length; place += 1) {
    if (!(min[place] <= max[place])) continue;
    if (min[place] < low && Number.isFinite(min[place])) low = min[place];
    if (max[place] > high && Number.isFinite(max[place])) high = max[place];
  }
  if (low > high) return null;
  const ends = [low * setup.scale + setup.offset, high * setup.scale + setup.offset];
  return { bottom: Math.min(...ends), top: Math.max(...ends) };
}

const NO_DENSITIES = new Densities();
/** What the protocol allows. */
const COLUMNS_MAX = 4096;
const OVERVIEW_MAX = 2048;
/** Words change five times a second, so that they can be read. */
const WORDS_MS = 200;
/** Without pictures: what is stale is to say so. */
const IDLE_MS = 500;
/** An answer that comes sooner is not waited for. */
const PALE_AFTER_MS = 150;
const MESSAGE_MS = 6000;
