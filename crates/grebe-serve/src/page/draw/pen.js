// Text and marks on a canvas, in device pixels.

import { yAt } from "./lanes.js";
import { css } from "./theme.js";

export class Pen {
  /** @param {CanvasRenderingContext2D} ctx @param {number} pixelRatio */
  constructor(ctx, pixelRatio) {
    this.ctx = ctx;
    this.pixelRatio = pixelRatio;
    ctx.font = `${11 * pixelRatio}px ${FONT}`;
    ctx.textBaseline = "middle";
  }

  /** Converts CSS pixels to device pixels. @param {number} css */
  px(css) {
    return Math.round(css * this.pixelRatio);
  }

  /** Height of a line of text, in device pixels. */
  get height() {
    return this.px(13);
  }

  /** @param {string} words */
  width(words) {
    return this.ctx.measureText(words).width;
  }

  /** @param {string} words @param {number} x @param {number} y its middle @param {import("./theme.js").Rgb} color @param {CanvasTextAlign} align */
  text(words, x, y, color, align) {
    this.ctx.fillStyle = css(color);
    this.ctx.textAlign = align;
    this.ctx.fillText(words, x, y);
  }

  /**
   * Text on a plate beside `x`, inside `area`.
   * @param {string} words @param {number} x @param {number} y its middle
   * @param {import("./lanes.js").Band} area @param {import("./theme.js").Rgb} color @param {import("./theme.js").Theme} theme
   */
  tag(words, x, y, area, color, theme) {
    const wide = this.width(words) + this.px(10);
    const fitsRight = x + this.px(6) + wide < area.x + area.width;
    const left = fitsRight ? x + this.px(6) : Math.max(x - this.px(6) - wide, area.x);
    this.ctx.fillStyle = css(theme.background, 0.86);
    this.ctx.fillRect(left, y - this.px(9), wide, this.px(18));
    this.text(words, left + this.px(5), y, color, "left");
  }

  /** Draws labels of heights beside a band, none clipped. @param {import("./lanes.js").Band} band @param {[number, string][]} labels @param {import("./theme.js").Theme} theme */
  levels(band, labels, theme) {
    const color = theme.dim;
    const half = this.height / 2;
    for (const [height, words] of labels) {
      const y = yAt(band, height);
      if (y < band.y + half - 1 || y > band.y + band.height - half + 1) continue;
      // Labels wider than the margin extend into the band, so that no sign is lost.
      const wide = this.width(words) + this.px(8);
      if (wide > band.x) {
        this.ctx.fillStyle = css(theme.background, 0.8);
        this.ctx.fillRect(band.x, y - half, wide - band.x, this.height);
      }
      this.text(words, Math.max(band.x - this.px(6), wide - this.px(6)), y, color, "right");
    }
  }

  /** Draws labels below an area, at equal distances, as many as fit. @param {import("./lanes.js").Band} area @param {[number, string][]} ticks parts of the width @param {import("./theme.js").Rgb} color */
  ticks(area, ticks, color) {
    const y = area.y + area.height + this.px(11);
    const apart = ticks.length > 1 ? Math.abs(ticks[1][0] - ticks[0][0]) * area.width : Infinity;
    const widest = Math.max(0, ...ticks.map(([, words]) => this.width(words)));
    const every = [1, 2, 5, 10].find((every) => every * apart >= widest + this.px(12)) ?? 20;
    ticks.forEach(([part, words], place) => {
      if (place % every !== 0 || part < -0.001 || part > 1.001) return;
      const wide = this.width(words);
      const x = Math.min(area.x + part * area.width - wide / 2, this.ctx.canvas.width - wide - this.px(2));
      this.text(words, x, y, color, "left");
    });
  }

  /** @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 @param {string} style */
  dashed(x1, y1, x2, y2, style) {
    const { ctx } = this;
    ctx.strokeStyle = style;
    ctx.lineWidth = Math.max(1, Math.round(this.pixelRatio));
    ctx.setLineDash([this.px(5), this.px(4)]);
    ctx.beginPath();
    const half = (at = 0) => Math.round(at) + (ctx.lineWidth % 2) / 2;
    ctx.moveTo(half(x1), half(y1));
    ctx.lineTo(half(x2), half(y2));
    ctx.stroke();
    ctx.setLineDash([]);
  }

  /** Draws a tip that points down (0) or left (1) to a place. @param {number} x @param {number} y @param {0 | 1} turned @param {number} size @param {string} style */
  triangle(x, y, turned, size, style) {
    const { ctx } = this;
    ctx.fillStyle = style;
    ctx.beginPath();
    ctx.moveTo(x, y);
    if (turned === 0) {
      ctx.lineTo(x - size * 0.8, y - size * 1.3);
      ctx.lineTo(x + size * 0.8, y - size * 1.3);
    } else {
      ctx.lineTo(x + size * 1.5, y - size * 0.9);
      ctx.lineTo(x + size * 1.5, y + size * 0.9);
    }
    ctx.fill();
  }
}

export const FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";
