// A canvas that has a pixel for each of the screen's.

import { el } from "./dom.js";

export class Canvas {
  pixelRatio = window.devicePixelRatio || 1;
  canvas;
  context;
  #observer;

  /** @param {string} label @param {() => void} resized */
  constructor(label, resized) {
    this.canvas = el("canvas", { role: "img", "aria-label": label, width: 1, height: 1 });
    this.context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    this.#observer = new ResizeObserver(([entry]) => {
      const { width, height } = entry.contentRect;
      const ratio = window.devicePixelRatio || 1;
      const exact = entry.devicePixelContentBoxSize?.[0];
      // Where the ratio is emulated, the exact size is that of the real screen.
      const isExact = exact && Math.abs(exact.inlineSize - width * ratio) <= 1;
      const wanted = isExact ? [exact.inlineSize, exact.blockSize] : [Math.round(width * ratio), Math.round(height * ratio)];
      const [w, h] = wanted.map((side) => Math.min(Math.max(side, 1), SIDE_MAX));
      if (this.canvas.width !== w || this.canvas.height !== h) [this.canvas.width, this.canvas.height] = [w, h];
      this.pixelRatio = width > 0 ? this.canvas.width / width : ratio;
      resized();
    });
    try {
      this.#observer.observe(this.canvas, { box: "device-pixel-content-box" });
    } catch {
      this.#observer.observe(this.canvas);
    }
  }

  close() {
    this.#observer.disconnect();
  }
}

const SIDE_MAX = 8192;
