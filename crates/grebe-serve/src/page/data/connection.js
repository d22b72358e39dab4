// The connection to the server: asks for viewports, takes pictures, and comes back after a cut.

import { BadMessage } from "./bytes.js";
import { Session } from "./wire.js";

/**
 * @typedef {"connecting" | "open" | "cut" | "refused" | "asleep"} LinkState
 *
 * @typedef {object} Listener what is told of a connection; the newest picture is asked for
 * @property {(picture: import("./picture.js").Picture) => void} onPicture
 * @property {() => void} onNews pieces came behind their picture
 * @property {(shown: Record<string, any>) => void} onShown what is shown from now on, as far as it is another
 * @property {(keys: [string, string][]) => void} onKeys the keys that mean something, and what each does to the time axis
 * @property {(file: {name: string, bytes: Uint8Array}) => void} onFile
 * @property {(source: number) => void} onGo another source of the server's, from 1
 * @property {() => void} onLink the state of the connection changed
 */

export class Connection {
  /** @type {LinkState} */
  state = "connecting";
  /** Why it is in that state, for a person. */
  words = "connecting";
  /** Time of the next attempt, by `performance.now()`; 0: none. */
  retryMs = 0;
  session = new Session();
  #url;
  #token;
  #source;
  #listener;
  /** @type {WebSocket | null} */
  #socket = null;
  #attempts = 0;
  #heardMs = 0;
  #number = 0;
  #timer = 0;
  #hiddenMs = 0;
  #isClosed = false;
  #isWelcome = false;
  #hello;

  /** @param {URL} url of the page's server @param {string} token @param {number} source number of the server's source, from 1 @param {() => object} hello the page's part of the first message @param {Listener} listener */
  constructor(url, token, source, hello, listener) {
    this.#url = new URL("scope", url);
    this.#url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    this.#token = token;
    this.#source = source;
    this.#hello = hello;
    this.#listener = listener;
    this.#timer = window.setInterval(() => this.#tick(), TICK_MS);
    this.#connect();
  }

  /** Sends a person's action; returns its number, which pictures of it carry, or a later one. @param {any} what */
  do(what) {
    this.#number += 1;
    this.#send({ do: { number: this.#number, what } });
    return this.#number;
  }

  /** Tries again now. @param {string | null} token a new one, if given */
  retry(token = null) {
    if (token !== null) this.#token = token;
    this.#attempts = 0;
    if (this.state !== "open") this.#connect();
  }

  get token() {
    return this.#token;
  }

  close() {
    this.#isClosed = true;
    window.clearInterval(this.#timer);
    this.#drop();
  }

  #connect() {
    this.#drop();
    this.#say("connecting", "connecting", 0);
    this.#isWelcome = false;
    this.#heardMs = performance.now();
    /** @type {WebSocket} */
    let socket;
    try {
      socket = new WebSocket(this.#url);
    } catch (error) {
      return this.#cut(`no connection to ${this.#url.host}: ${error}`);
    }
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    const hello = { protocol: 1, token: this.#token, program: "page", pictures_per_s: 60, source: this.#source, page: this.#hello() };
    socket.onopen = () => socket.send(JSON.stringify({ hello }));
    socket.onmessage = (event) => socket === this.#socket && this.#take(event.data);
    socket.onclose = () => socket === this.#socket && this.#cut(this.#isWelcome ? "connection lost" : `no answer from ${this.#url.host}`);
  }

  /** @param {string | ArrayBuffer} data */
  #take(data) {
    this.#heardMs = performance.now();
    try {
      if (typeof data === "string") this.#takeText(JSON.parse(data));
      else this.#takeBytes(new Uint8Array(data));
    } catch (error) {
      // A damaged message leaves the state unknown, so start again.
      if (!(error instanceof BadMessage || error instanceof SyntaxError || error instanceof RangeError)) throw error;
      this.#cut(`an invalid message (${error.message})`);
    }
  }

  /** @param {Record<string, any>} message */
  #takeText(message) {
    const [kind, said] = Object.entries(message)[0] ?? ["", null];
    if (kind === "welcome") {
      this.session = new Session();
      this.#isWelcome = true;
      this.#attempts = 0;
      this.#listener.onKeys(said.keys ?? []);
      this.#say("open", "connected", 0);
    } else if (kind === "refused") {
      // A page that was accepted before connects again; a new one would get the same refusal.
      if (this.#isWelcome) this.#cut(String(said));
      else {
        this.#drop();
        this.#say("refused", String(said), 0);
      }
    } else if (kind === "shown") {
      this.#listener.onShown(said);
    } else if (kind === "go") {
      this.#listener.onGo(Number(said.source));
    }
  }

  /** @param {Uint8Array} bytes */
  #takeBytes(bytes) {
    const { number, picture, hasPieces, file } = this.session.read(bytes);
    this.#send({ ack: number });
    if (file) this.#listener.onFile(file);
    if (picture) this.#listener.onPicture(picture);
    else if (hasPieces) this.#listener.onNews();
  }

  #ping() {
    this.#send({ ping: { at: performance.now() } });
  }

  /** @param {object} message */
  #send(message) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #tick() {
    const now = performance.now();
    this.#hiddenMs = document.hidden ? this.#hiddenMs + TICK_MS : 0;
    if (this.#hiddenMs > ASLEEP_MS && this.state === "open") {
      this.#drop();
      this.#say("asleep", "nobody looked", 0);
    } else if (this.state === "asleep" && !document.hidden) {
      this.#connect();
    } else if (this.state === "cut" && now >= this.retryMs) {
      this.#connect();
    } else if (this.state === "open" || this.state === "connecting") {
      if (now - this.#heardMs > SILENCE_MS && !document.hidden) this.#cut(`nothing came for ${SILENCE_MS / 1000} s`);
      else this.#ping();
    }
  }

  /** @param {string} words */
  #cut(words) {
    this.#drop();
    if (this.#isClosed) return;
    const delay = Math.min(RETRY_MS * 2 ** this.#attempts, RETRY_MS_MAX) * (0.75 + Math.random() / 2);
    this.#attempts += 1;
    this.#say("cut", words, performance.now() + delay);
  }

  #drop() {
    const socket = this.#socket;
    this.#socket = null;
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
  }

  /** @param {LinkState} state @param {string} words @param {number} retryMs */
  #say(state, words, retryMs) {
    [this.state, this.words, this.retryMs] = [state, words, retryMs];
    this.#listener.onLink();
  }
}

const TICK_MS = 1000;
/** The server answers one ping per second. */
const SILENCE_MS = 5000;
const RETRY_MS = 500;
const RETRY_MS_MAX = 8000;
/** A hidden page disconnects after this time. */
const ASLEEP_MS = 20_000;
