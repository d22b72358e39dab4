// Plays the sound of a box, once or in a loop, or live sound.

import { button, el, setAttribute, setText } from "./dom.js";

/** @typedef {import("../data/picture.js").Sound} Sound */

export class Player {
  element;
  /** @type {AudioContext | null} */
  #context = null;
  /** @type {GainNode | null} */
  #gain = null;
  /** @type {AudioBuffer | null} */
  #buffer = null;
  /** What plays now. @type {AudioBufferSourceNode | null} */
  #source = null;
  /** @type {Sound | null} */
  #sound = null;
  #isLoop = true;
  /** When the live sound so far ends, in the context's seconds. */
  #liveUntil = 0;
  #play = button("stop", "play the sound, or stop it", () => (this.#source ? this.stop() : this.#start()));
  #loop = button("loop", "play it again and again", () => this.#setLoop(!this.#isLoop), { "aria-pressed": "true" });
  #volume = el("input", { type: "range", min: 0, max: 1, step: 0.01, value: 0.5, "aria-label": "volume", title: "volume" });
  #length = el("span", { class: "dim" });

  constructor() {
    this.element = el("span", { class: "controls player", role: "group", "aria-label": "sound", hidden: true }, this.#play, this.#loop, this.#volume, this.#length);
    this.#volume.addEventListener("input", () => this.#setVolume());
  }

  /** Plays a sound that just came. @param {Sound | null} sound */
  take(sound) {
    if (sound === this.#sound || sound === null) return;
    this.#sound = sound;
    this.#context ??= new AudioContext();
    const buffer = this.#context.createBuffer(1, sound.samples.length, sound.rate);
    buffer.copyToChannel(/** @type {Float32Array<ArrayBuffer>} */ (sound.samples), 0);
    setText(this.#length, sound.isLive ? "live" : `${buffer.duration.toFixed(2)} s`);
    setAttribute(this.element, "hidden", null);
    // The button of the waterfall ends live sound.
    for (const it of [this.#play, this.#loop]) setAttribute(it, "hidden", sound.isLive ? "" : null);
    this.stop();
    if (sound.isLive) return this.#continue(this.#context, buffer);
    this.#buffer = buffer;
    this.#start();
  }

  stop() {
    const source = this.#source;
    this.#source = null;
    if (source) source.onended = null;
    source?.stop();
    setText(this.#play, "play");
  }

  /** Another source has another sound. */
  clear() {
    this.stop();
    setAttribute(this.element, "hidden", "");
  }

  close() {
    this.stop();
    void this.#context?.close();
  }

  #start() {
    const context = this.#context;
    if (!context) return;
    const source = this.#sourceOf(context, this.#buffer);
    [source.loop, source.onended] = [this.#isLoop, () => this.stop()];
    source.start();
    this.#source = source;
    setText(this.#play, "stop");
  }

  /** Plays a piece of live sound after the one before. @param {AudioContext} context @param {AudioBuffer} buffer */
  #continue(context, buffer) {
    const now = context.currentTime;
    if (this.#liveUntil < now) this.#liveUntil = now + LIVE_LEAD_S;
    // The device is slower than the stream.
    if (this.#liveUntil > now + LIVE_LAG_MAX_S) return;
    this.#sourceOf(context, buffer).start(this.#liveUntil);
    this.#liveUntil += buffer.duration;
  }

  /** @param {AudioContext} context @param {AudioBuffer | null} buffer */
  #sourceOf(context, buffer) {
    // A browser may keep it silent until a person pressed something.
    void context.resume();
    if (!this.#gain) {
      this.#gain = context.createGain();
      this.#gain.connect(context.destination);
    }
    this.#setVolume();
    const source = context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.#gain);
    return source;
  }

  /** @param {boolean} isLoop */
  #setLoop(isLoop) {
    this.#isLoop = isLoop;
    setAttribute(this.#loop, "aria-pressed", String(isLoop));
    if (this.#source) this.#source.loop = isLoop;
  }

  /** Squared, because ears hear ratios. */
  #setVolume() {
    if (this.#gain) this.#gain.gain.value = Number(this.#volume.value) ** 2;
  }
}

/** Before live sound begins, for pieces that come late. */
const LIVE_LEAD_S = 0.4;
const LIVE_LAG_MAX_S = 1.5;
