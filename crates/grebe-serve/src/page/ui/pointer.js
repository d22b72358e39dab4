// Wheel, drag and two fingers on the traces; what can be taken hold of is the trigger's level, its place, and the cursors.

/**
 * @typedef {import("./scope.js").Scope} Scope
 * @typedef {{x: number, y: number}} Point in device pixels
 * @typedef {{kind: "pan" | "box" | "note" | "level" | "place"} | {kind: "cursor" | "value", which: number}} Grip what is moved
 */

export class PlotPointer {
  /** Place of the pointer. @type {Point | null} */
  hover = null;
  /** The range being selected, in parts of the plot. @type {{from: number, to: number} | null} */
  box = null;
  /** @type {Map<number, Point>} */
  #down = new Map();
  /** @type {Grip | null} */
  #grip = null;
  #moved = 0;
  #wheel = 0;
  /** The movement since the last frame: one message per frame is enough. @type {(() => void) | null} */
  #due = null;
  #scope;
  #scroller;
  #element;

  /** @param {Scope} scope @param {HTMLElement} element @param {HTMLElement} scroller scrolls lanes that do not fit */
  constructor(scope, element, scroller) {
    this.#scope = scope;
    this.#scroller = scroller;
    this.#element = element;
    element.addEventListener("pointerdown", (event) => this.#pressed(event));
    element.addEventListener("pointermove", (event) => this.#movedTo(event));
    for (const kind of /** @type {const} */ (["pointerup", "pointercancel"])) element.addEventListener(kind, (event) => this.#released(event));
    element.addEventListener("pointerleave", () => this.#hovers(null));
    element.addEventListener("wheel", (event) => this.#turned(event), { passive: false });
    element.addEventListener("dblclick", (event) => this.#isOnPlot(event) && scope.do({ act: "live" }));
  }

  /** Buttons and lists over the traces have their own presses. @param {Event} event */
  #isOnPlot(event) {
    return event.composedPath()[0] === this.#element || event.composedPath()[0] instanceof HTMLCanvasElement;
  }

  /** @param {PointerEvent} event */
  #pressed(event) {
    if ((event.button > 0 && event.button !== 2) || !this.#isOnPlot(event)) return;
    this.#element.setPointerCapture(event.pointerId);
    this.#element.focus({ preventScroll: true });
    this.#down.set(event.pointerId, this.#at(event));
    [this.#grip, this.#moved] = [this.#gripAt(event), 0];
    if (this.#grip.kind === "box" || this.#grip.kind === "note") this.box = { from: this.#part(event), to: this.#part(event) };
  }

  /** @param {PointerEvent} event @returns {Grip} */
  #gripAt(event) {
    const { x, y } = this.#at(event);
    const { placed } = this.#scope;
    const near = GRIP_PX * this.#scope.pixelRatio * (event.pointerType === "touch" ? 2 : 1);
    if (placed) {
      const which = placed.cursorXs.findIndex((at) => Math.abs(at - x) < near);
      const value = (placed.values?.ys ?? []).findIndex((at) => Math.abs(at - y) < near);
      if (placed.level && x > placed.area.x + placed.area.width - near && Math.abs(y - placed.level.y) < near * 2) return { kind: "level" };
      if (placed.triggerX !== null && y < placed.area.y + near && Math.abs(x - placed.triggerX) < near * 2) return { kind: "place" };
      if (which >= 0) return { kind: "cursor", which };
      if (value >= 0) return { kind: "value", which: value };
    }
    if (event.ctrlKey || event.metaKey) return { kind: "note" };
    return { kind: event.shiftKey || event.button === 2 ? "box" : "pan" };
  }

  /** @param {PointerEvent} event */
  #movedTo(event) {
    const { x, y } = this.#at(event);
    if (!this.#down.has(event.pointerId)) return this.#hovers({ x, y });
    const scope = this.#scope;
    const before = /** @type {Point} */ (this.#down.get(event.pointerId));
    const fingers = [...this.#down.values()];
    this.#down.set(event.pointerId, { x, y });
    if (fingers.length === 2) return this.#pinched(fingers);
    this.#moved += Math.abs(x - before.x) + Math.abs(y - before.y);
    const { placed } = scope;
    const grip = this.#grip;
    if (this.#moved < 3 * scope.pixelRatio || !placed || !grip) return;
    const part = this.#part(event);
    const height = (/** @type {{y: number, height: number}} */ band) => 1 - (y - band.y) / band.height;
    if (grip.kind === "pan") {
      const { left, samples } = scope.stretch();
      this.#show(left + samples + ((before.x - x) / placed.area.width) * samples, samples);
    } else if ((grip.kind === "box" || grip.kind === "note") && this.box) this.box.to = part;
    else if (grip.kind === "level" && placed.level) this.#say({ level: height(placed.level.band) });
    else if (grip.kind === "place") this.#say({ place: part });
    else if (grip.kind === "cursor") this.#say({ cursor: { which: grip.which, at: part } });
    else if (grip.kind === "value" && placed.values) this.#say({ value_cursor: { which: grip.which, at: height(placed.values.band) } });
    scope.redraw();
  }

  /** Two fingers keep the samples under them in place. @param {Point[]} before */
  #pinched(before) {
    const { placed } = this.#scope;
    const now = [...this.#down.values()];
    if (!placed) return;
    const apart = (/** @type {Point[]} */ [a, b]) => Math.max(Math.abs(a.x - b.x), 8);
    const middle = (/** @type {Point[]} */ [a, b]) => ((a.x + b.x) / 2 - placed.area.x) / placed.area.width;
    this.#moved = Infinity;
    const { left, samples } = this.#scope.stretch();
    const next = (samples * apart(before)) / apart(now);
    this.#show(left + middle(before) * samples + (1 - middle(now)) * next, next);
  }

  /** Shows a range now, and requests it once per frame. @param {number} ending @param {number} samples */
  #show(ending, samples) {
    this.#scope.aim(ending, samples);
    this.#later(() => this.#scope.preview({ show: { ending, samples } }, ending, samples));
  }

  /** @param {any} what */
  #say(what) {
    this.#later(() => this.#scope.do(what));
  }

  /** @param {() => void} say */
  #later(say) {
    const isDue = this.#due !== null;
    this.#due = say;
    if (isDue) return;
    window.requestAnimationFrame(() => {
      const due = this.#due;
      this.#due = null;
      due?.();
    });
  }

  /** @param {PointerEvent} event */
  #released(event) {
    const kind = this.#grip?.kind;
    const wasBox = (kind === "box" || kind === "note") && this.box;
    this.#down.delete(event.pointerId);
    if (event.pointerType !== "mouse") this.#hovers(null);
    if (this.#down.size > 0) return;
    this.#grip = null;
    if (!wasBox || !this.box) return;
    const { from, to } = this.box;
    this.box = null;
    const act = kind === "note" ? { annotate_part: { times: [from, to], frequencies: null } } : { zoom: { times: [from, to], values: null } };
    if (Math.abs(to - from) > 0.005) this.#scope.do({ act });
    this.#scope.redraw();
  }

  /** The wheel zooms; beside the lanes it changes a channel's scale. @param {WheelEvent} event */
  #turned(event) {
    if ((event.ctrlKey && !event.cancelable) || !this.#isOnPlot(event)) return;
    event.preventDefault();
    if (event.shiftKey && !this.#scroller.hidden) {
      this.#scroller.scrollTop += event.deltaY || event.deltaX;
      return;
    }
    const scope = this.#scope;
    const { x, y } = this.#at(event);
    const { placed } = scope;
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const { left, samples } = scope.stretch();
      const part = (event.deltaX * scope.pixelRatio) / (placed?.area.width ?? 1);
      return this.#show(left + samples * (1 + part), samples);
    }
    // A wheel turns by notches, a touchpad by many small steps.
    this.#wheel += event.deltaMode === 0 ? event.deltaY / NOTCH : event.deltaY;
    const notches = Math.trunc(this.#wheel);
    if (notches === 0) return;
    this.#wheel -= notches;
    const beside = placed?.lanes.find(({ band }) => x < band.x && y >= band.y && y < band.y + band.height);
    const at = Math.min(Math.max(this.#part(event), 0), 1);
    for (let notch = 0; notch < Math.min(Math.abs(notches), 5); notch += 1) {
      if (beside) scope.do({ scale: { lane: beside.lane, is_finer: notches < 0 } });
      else scope.zoom({ zoom: { is_shorter: notches < 0, at } }, notches < 0, at);
    }
  }

  /** @param {Point | null} at */
  #hovers(at) {
    const was = this.hover;
    this.hover = at;
    const area = this.#scope.placed?.area;
    const part = at && area ? (at.x - area.x) / area.width : null;
    const said = part !== null && part >= 0 && part <= 1 ? part : null;
    if (said !== null || was) this.#say({ hover: said });
    this.#scope.redraw();
  }

  /** In device pixels of the canvas. @param {MouseEvent} event @returns {Point} */
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

/** Zooms and moves a frequency axis, and the markers on it. @param {Scope} scope @param {HTMLElement} element @param {(at: {x: number} | null) => void} hovers @param {() => [number, string][]} markers @param {((what: "draw_box" | "annotate_part", times: number[], frequencies: number[]) => void) | null} boxed */
export function followFrequencies(scope, element, hovers, markers, boxed = null) {
  /** The dragged marker. */
  let held = -1;
  /** @type {Map<number, number>} */
  const down = new Map();
  const partOf = (/** @type {MouseEvent} */ event) => {
    const [from, wide] = scope.frequencyArea(element);
    return (event.clientX - element.getBoundingClientRect().left - from) / wide;
  };
  const zoom = (/** @type {number} */ factor, /** @type {number} */ at) => {
    const [from, to] = scope.frequencies();
    const width = Math.min(Math.max((to - from) * factor, ZOOM_MIN), 1);
    const left = Math.min(Math.max(from + (to - from) * at - width * at, 0), 1 - width);
    scope.zoomFrequencies([left, left + width]);
  };
  /** Start of a box, drawn with shift or the right button, or with ctrl to be annotated at once. @type {["draw_box" | "annotate_part", number, number] | null} */
  let box = null;
  const heightOf = (/** @type {PointerEvent} */ event) => {
    const [, , top, height] = scope.frequencyArea(element);
    return 1 - (event.clientY - element.getBoundingClientRect().top - top) / height;
  };
  element.addEventListener("pointerdown", (event) => {
    element.setPointerCapture(event.pointerId);
    const annotates = event.ctrlKey || event.metaKey;
    if (boxed && (event.shiftKey || event.button === 2 || annotates)) {
      box = [annotates ? "annotate_part" : "draw_box", partOf(event), heightOf(event)];
      return;
    }
    const part = partOf(event);
    held = markers().findIndex(([at]) => Math.abs(at - part) * scope.frequencyArea(element)[1] < GRIP_PX);
    down.set(event.pointerId, part);
  });
  element.addEventListener("pointerup", (event) => {
    if (!box || !boxed) return;
    const [what, part, height] = box;
    const [times, frequencies] = [[height, heightOf(event)], [part, partOf(event)]];
    if (Math.abs(times[1] - times[0]) + Math.abs(frequencies[1] - frequencies[0]) > 0.01) boxed(what, times, frequencies);
  });
  element.addEventListener("contextmenu", (event) => boxed && event.preventDefault());
  element.addEventListener("pointermove", (event) => {
    hovers({ x: (event.clientX - element.getBoundingClientRect().left) * scope.pixelRatio });
    if (box) {
      const within = (/** @type {number} */ part) => Math.min(Math.max(part, 0), 1);
      scope.drawnBox = [box[1], partOf(event), 1 - box[2], 1 - heightOf(event)].map(within);
      return scope.redraw();
    }
    const before = down.get(event.pointerId);
    if (before === undefined) return scope.redraw();
    const others = [...down].filter(([id]) => id !== event.pointerId).map(([, part]) => part);
    const now = partOf(event);
    down.set(event.pointerId, now);
    if (held >= 0) scope.do({ marker: { which: held, at: now } });
    else if (others.length === 1) {
      zoom(Math.max(Math.abs(before - others[0]), 0.01) / Math.max(Math.abs(now - others[0]), 0.01), (now + others[0]) / 2);
    } else {
      const [from, to] = scope.frequencies();
      const left = Math.min(Math.max(from + (before - now) * (to - from), 0), 1 - (to - from));
      scope.zoomFrequencies([left, left + to - from]);
    }
  });
  for (const kind of /** @type {const} */ (["pointerup", "pointercancel"])) {
    element.addEventListener(kind, (event) => {
      down.delete(event.pointerId);
      [box, scope.drawnBox] = [null, null];
      scope.redraw();
    });
  }
  element.addEventListener("pointerleave", () => {
    hovers(null);
    scope.redraw();
  });
  element.addEventListener("dblclick", () => scope.zoomFrequencies([0, 1]));
  element.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      zoom(event.deltaY < 0 ? 0.7 : 1 / 0.7, Math.min(Math.max(partOf(event), 0), 1));
    },
    { passive: false },
  );
}

/** The overview strip: a click or a drag shows that place. @param {Scope} scope @param {HTMLElement} element */
export function followOverview(scope, element) {
  let grip = 0;
  const indexAt = (/** @type {PointerEvent} */ event) => {
    const { overview } = scope.picture;
    const { left } = element.getBoundingClientRect();
    const area = scope.overviewArea();
    if (!overview || !area) return null;
    return overview.leftIndex + (((event.clientX - left) * scope.pixelRatio - area.x) / area.width) * overview.spanSamples;
  };
  /** @param {number} middle */
  const show = (middle) => {
    const { samples } = scope.stretch();
    scope.preview({ act: { show_at: middle } }, middle + samples / 2, samples);
  };
  element.addEventListener("pointerdown", (event) => {
    const index = indexAt(event);
    if (index === null) return;
    element.setPointerCapture(event.pointerId);
    const { left, samples } = scope.stretch();
    // Taken hold of beside its middle, it stays so.
    const isInside = index > left && index < left + samples;
    grip = isInside ? index - (left + samples / 2) : 0;
    if (!isInside) show(index);
  });
  element.addEventListener("pointermove", (event) => {
    const index = indexAt(event);
    if (index !== null && element.hasPointerCapture(event.pointerId)) show(index - grip);
  });
  element.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1 }[event.key];
    const { overview } = scope.picture;
    if (!step || !overview) return;
    event.preventDefault();
    event.stopPropagation();
    const { left, samples } = scope.stretch();
    show(left + samples / 2 + (step * overview.spanSamples) / 50);
  });
}

const GRIP_PX = 9;
/** Pixels per notch of a wheel, as browsers report it. */
const NOTCH = 100;
/** As a part of all frequencies. */
const ZOOM_MIN = 1e-4;
