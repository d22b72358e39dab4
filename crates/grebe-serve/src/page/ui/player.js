// Plays the sound of a box, once or in a loop.

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
    this.#buffer = this.#context.createBuffer(1, sound.samples.length, sound.rate);
    this.#buffer.copyToChannel(/** @type {Float32Array<ArrayBuffer>} */ (sound.samples), 0);
    setText(this.#length, `${this.#buffer.duration.toFixed(2)} s`);
    setAttribute(this.element, "hidden", null);
    this.stop();
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
    // A browser may keep it silent until a person pressed something.
    void context.resume();
    if (!this.#gain) {
      this.#gain = context.createGain();
      this.#gain.connect(context.destination);
    }
    this.#setVolume();
    const source = context.createBufferSource();
    [source.buffer, source.loop, source.onended] = [this.#buffer, this.#isLoop, () => this.stop()];
    source.connect(this.#gain);
    source.start();
    this.#source = source;
    setText(this.#play, "stop");
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
