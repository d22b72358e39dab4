// Wheel, drag and two fingers on the traces; what can be taken hold of is the trigger's level, its place, and the cursors.

import { laneText } from "../data/picture.js";
import { step125Down, step125Up } from "../model/units.js";
import { stepScale } from "./actions.js";

/**
 * @typedef {import("./scope.js").Scope} Scope
 * @typedef {"pan" | "box" | "level" | "place" | 0 | 1} Grip what is moved; a number: that cursor
 */

export class PlotPointer {
  /** Where a pointer hovers, in device pixels. @type {{x: number, y: number} | null} */
  hover = null;
  /** The stretch that is being chosen, in parts of the plot. @type {{from: number, to: number} | null} */
  box = null;
  /** @type {Map<number, {x: number, y: number}>} */
  #down = new Map();
  /** @type {Grip | null} */
  #grip = null;
  #moved = 0;
  #wheel = 0;
  #scope;
  #element;

  /** @param {Scope} scope @param {HTMLElement} element */
  constructor(scope, element) {
    this.#scope = scope;
    this.#element = element;
    element.addEventListener("pointerdown", (event) => this.#pressed(event));
    element.addEventListener("pointermove", (event) => this.#movedTo(event));
    for (const kind of /** @type {const} */ (["pointerup", "pointercancel"])) element.addEventListener(kind, (event) => this.#released(event));
    element.addEventListener("pointerleave", () => this.#hovers(null));
    element.addEventListener("wheel", (event) => this.#turned(event), { passive: false });
    element.addEventListener("dblclick", () => scope.act("live"));
  }

  /** @param {PointerEvent} event */
  #pressed(event) {
    if (event.button > 0 && event.button !== 2) return;
    this.#element.setPointerCapture(event.pointerId);
    this.#element.focus({ preventScroll: true });
    this.#down.set(event.pointerId, this.#at(event));
    [this.#grip, this.#moved] = [this.#gripAt(event), 0];
    if (this.#grip === "box") this.box = { from: this.#part(event), to: this.#part(event) };
    if (typeof this.#grip === "number") this.#scope.settings.cursorAt = this.#grip;
  }

  /** @param {PointerEvent} event @returns {Grip} */
  #gripAt(event) {
    const { x, y } = this.#at(event);
    const { placed } = this.#scope;
    const near = GRIP_PX * this.#scope.pixelRatio * (event.pointerType === "touch" ? 2 : 1);
    if (placed) {
      const cursor = placed.cursorXs.findIndex((at) => Math.abs(at - x) < near);
      if (placed.level && x > placed.area.x + placed.area.width - near && Math.abs(y - placed.level.y) < near * 2) return "level";
      if (placed.triggerX !== null && y < placed.area.y + near && Math.abs(x - placed.triggerX) < near * 2) return "place";
      if (cursor === 0 || cursor === 1) return cursor;
    }
    return event.shiftKey || event.button === 2 ? "box" : "pan";
  }

  /** @param {PointerEvent} event */
  #movedTo(event) {
    const { x, y } = this.#at(event);
    if (!this.#down.has(event.pointerId)) return this.#hovers({ x, y });
    const scope = this.#scope;
    const before = /** @type {{x: number, y: number}} */ (this.#down.get(event.pointerId));
    const fingers = [...this.#down.values()];
    this.#down.set(event.pointerId, { x, y });
    if (fingers.length === 2) return this.#pinched(fingers);
    this.#moved += Math.abs(x - before.x) + Math.abs(y - before.y);
    if (this.#moved < 3 * scope.pixelRatio) return;
    const { placed, settings, picture } = scope;
    if (!placed) return;
    scope.do(() => {
      if (this.#grip === "pan") settings.time.pan(picture, (before.x - x) / placed.area.width);
      else if (this.#grip === "box" && this.box) this.box.to = this.#part(event);
      else if (this.#grip === "level") this.#moveLevel(y);
      else if (this.#grip === "place") settings.trigger.position = this.#part(event);
      else if (settings.cursors && typeof this.#grip === "number") {
        const { start, span } = scope.axis();
        settings.cursors[this.#grip] = start + this.#part(event) * span;
      }
    });
  }

  /** The level under a height; of two levels their middle. @param {number} y */
  #moveLevel(y) {
    const { placed, settings, picture } = this.#scope;
    const range = placed?.level && settings.ranges.get(laneText(placed.level.lane));
    if (!placed?.level || !range) return;
    const { band, lane } = placed.level;
    const value = range.top - ((y - band.y) / band.height) * (range.top - range.bottom);
    const setup = this.#scope.setup(lane);
    const mean = picture.lanes.find((data) => laneText(data.lane) === laneText(lane))?.mean ?? 0;
    // With LF reject a level counts from the mean of what is visible.
    settings.trigger.level = (value - setup.offset) / setup.scale - (settings.trigger.isLfReject ? mean : 0);
  }

  /** Two fingers: what lies under them stays there. @param {{x: number, y: number}[]} before */
  #pinched(before) {
    const { placed, settings, picture } = this.#scope;
    const now = [...this.#down.values()];
    if (!placed) return;
    const apart = (/** @type {{x: number}[]} */ [a, b]) => Math.max(Math.abs(a.x - b.x), 8);
    const middle = (/** @type {{x: number}[]} */ [a, b]) => ((a.x + b.x) / 2 - placed.area.x) / placed.area.width;
    this.#moved = Infinity;
    this.#scope.do(() => {
      const { time } = settings;
      time.pan(picture, middle(before) - middle(now));
      // By any factor while fingers move: steps come with wheel and keys.
      time.stretch(picture, apart(before) / apart(now), middle(now));
    });
  }

  /** @param {PointerEvent} event */
  #released(event) {
    const wasBox = this.#grip === "box" && this.box;
    this.#down.delete(event.pointerId);
    if (event.pointerType !== "mouse") this.#hovers(null);
    if (this.#down.size > 0) return;
    this.#grip = null;
    const { settings, picture } = this.#scope;
    if (wasBox && this.box) {
      const [from, to] = [this.box.from, this.box.to].sort((a, b) => a - b);
      this.box = null;
      this.#scope.do(() => to - from > 0.005 && settings.time.showPart(picture, from, to));
    }
    this.#scope.do(() => settings.time.settle(picture));
  }

  /** The wheel zooms; beside the lanes it changes a channel's scale. @param {WheelEvent} event */
  #turned(event) {
    if (event.ctrlKey && !event.cancelable) return;
    event.preventDefault();
    const scope = this.#scope;
    const { x, y } = this.#at(event);
    const { settings, picture, placed } = scope;
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const width = (placed?.area.width ?? 1) / scope.pixelRatio;
      return scope.do(() => settings.time.pan(picture, event.deltaX / width));
    }
    // A wheel turns by notches, a touchpad by many small steps.
    this.#wheel += event.deltaMode === 0 ? event.deltaY / NOTCH : event.deltaY;
    const notches = Math.trunc(this.#wheel);
    if (notches === 0) return;
    this.#wheel -= notches;
    const beside = placed?.lanes.find(({ band }) => x < band.x && y >= band.y && y < band.y + band.height);
    scope.do(() => {
      for (let notch = 0; notch < Math.min(Math.abs(notches), 5); notch += 1) {
        if (beside) {
          settings.selected = beside.lane;
          stepScale(scope, notches < 0 ? step125Down : step125Up, notches < 0 ? 0.9 : 1.1);
        } else settings.time.zoom(picture, notches < 0, Math.min(Math.max(this.#part(event), 0), 1));
      }
    });
  }

  /** @param {{x: number, y: number} | null} at */
  #hovers(at) {
    this.hover = at;
    this.#scope.redraw();
  }

  /** In device pixels of the canvas. @param {MouseEvent} event */
  #at(event) {
    const { left, top } = this.#element.getBoundingClientRect();
    return { x: (event.clientX - left) * this.#scope.pixelRatio, y: (event.clientY - top) * this.#scope.pixelRatio };
  }

  /** As a part of the plot: 0 its left edge, 1 its right edge. @param {MouseEvent} event */
  #part(event) {
    const area = this.#scope.placed?.area;
    return area ? Math.min(Math.max((this.#at(event).x - area.x) / area.width, 0), 1) : 0;
  }
}

/** Zooms and moves a frequency axis. @param {Scope} scope @param {HTMLElement} element @param {(at: {x: number} | null) => void} hovers */
export function followFrequencies(scope, element, hovers) {
  const { settings } = scope;
  /** @type {Map<number, number>} */
  const down = new Map();
  const partOf = (/** @type {MouseEvent} */ event) => {
    const { left, width } = element.getBoundingClientRect();
    const area = scope.placed?.area;
    const [from, wide] = area ? [area.x / scope.pixelRatio, area.width / scope.pixelRatio] : [0, width];
    return (event.clientX - left - from) / wide;
  };
  const zoom = (/** @type {number} */ factor, /** @type {number} */ at) => {
    const [from, to] = settings.spectrumZoom;
    const width = Math.min(Math.max((to - from) * factor, 1e-4), 1);
    const left = Math.min(Math.max(from + (to - from) * at - width * at, 0), 1 - width);
    settings.spectrumZoom = [left, left + width];
  };
  element.addEventListener("pointerdown", (event) => {
    element.setPointerCapture(event.pointerId);
    down.set(event.pointerId, partOf(event));
  });
  element.addEventListener("pointermove", (event) => {
    hovers({ x: (event.clientX - element.getBoundingClientRect().left) * scope.pixelRatio });
    const before = down.get(event.pointerId);
    if (before === undefined) return scope.redraw();
    const others = [...down].filter(([id]) => id !== event.pointerId).map(([, part]) => part);
    const now = partOf(event);
    down.set(event.pointerId, now);
    scope.do(() => {
      if (others.length === 1) {
        zoom(Math.max(Math.abs(before - others[0]), 0.01) / Math.max(Math.abs(now - others[0]), 0.01), (now + others[0]) / 2);
      } else {
        const [from, to] = settings.spectrumZoom;
        const left = Math.min(Math.max(from + (before - now) * (to - from), 0), 1 - (to - from));
        settings.spectrumZoom = [left, left + to - from];
      }
    });
  });
  for (const kind of /** @type {const} */ (["pointerup", "pointercancel"])) element.addEventListener(kind, (event) => down.delete(event.pointerId));
  element.addEventListener("pointerleave", () => {
    hovers(null);
    scope.redraw();
  });
  element.addEventListener("dblclick", () => scope.do(() => (settings.spectrumZoom = [0, 1])));
  element.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      scope.do(() => zoom(event.deltaY < 0 ? 0.7 : 1 / 0.7, Math.min(Math.max(partOf(event), 0), 1)));
    },
    { passive: false },
  );
}

/** The strip with all of the history: a click or a drag shows that place. @param {Scope} scope @param {HTMLElement} element */
export function followOverview(scope, element) {
  let grip = 0;
  const indexAt = (/** @type {PointerEvent} */ event) => {
    const { overview } = scope.picture;
    const { left } = element.getBoundingClientRect();
    const area = scope.overviewArea();
    if (!overview || !area) return null;
    return overview.leftIndex + (((event.clientX - left) * scope.pixelRatio - area.x) / area.width) * overview.spanSamples;
  };
  element.addEventListener("pointerdown", (event) => {
    const index = indexAt(event);
    if (index === null) return;
    element.setPointerCapture(event.pointerId);
    const { left, samples } = scope.shown();
    // Taken hold of beside its middle, it stays so.
    const isInside = index > left && index < left + samples;
    grip = isInside ? index - (left + samples / 2) : 0;
    if (!isInside) scope.do(() => scope.settings.time.showAt(scope.picture, index));
  });
  element.addEventListener("pointermove", (event) => {
    const index = indexAt(event);
    if (index !== null && element.hasPointerCapture(event.pointerId)) scope.do(() => scope.settings.time.showAt(scope.picture, index - grip));
  });
  element.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1 }[event.key];
    const { overview } = scope.picture;
    if (!step || !overview) return;
    event.preventDefault();
    event.stopPropagation();
    const { left, samples } = scope.shown();
    scope.do(() => scope.settings.time.showAt(scope.picture, left + samples / 2 + (step * overview.spanSamples) / 50));
  });
}

const GRIP_PX = 9;
/** What a notch of a wheel is in pixels, as browsers say it. */
const NOTCH = 100;
