// The connection to the server: asks for viewports, takes pictures, and comes back after a cut.

import { BadMessage } from "./bytes.js";
import { Session } from "./wire.js";

/**
 * @typedef {"connecting" | "open" | "cut" | "refused" | "asleep"} LinkState
 *
 * @typedef {object} Listener what is told of a connection; the newest picture is asked for
 * @property {(picture: import("./picture.js").Picture) => void} onPicture
 * @property {() => void} onNews something but a picture came: pieces, losses, what the stream says
 * @property {(words: string) => void} onSaid
 * @property {(news: import("../model/found.js").FoundNews) => void} onFound
 * @property {() => void} onLink the state of the connection changed
 */

export class Connection {
  /** @type {LinkState} */
  state = "connecting";
  /** Why it is in that state, for a person. */
  words = "connecting";
  /** When the next attempt is due, by `performance.now()`; 0: none is. */
  retryMs = 0;
  /** Round trip, in seconds; `null` before it is known. @type {number | null} */
  roundTripS = null;
  /** What came of the pictures so far, in bytes and in number. */
  received = { bytes: 0, pictures: 0 };
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
  /** What was asked for last, as text: asked again after a cut, and not twice. */
  #asked = "";
  #timer = 0;
  #hiddenMs = 0;
  #isClosed = false;
  #isWelcome = false;
  #keepNumber = 0;
  #findNumber = 0;

  /** @param {URL} url of the page's server @param {string} token @param {number} source which of the server's, from 1 @param {Listener} listener */
  constructor(url, token, source, listener) {
    this.#url = new URL("scope", url);
    this.#url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    this.#token = token;
    this.#source = source;
    this.#listener = listener;
    this.#timer = window.setInterval(() => this.#tick(), TICK_MS);
    this.#connect();
  }

  /** Asks to see a viewport from now on; returns the number that its pictures bear. @param {object} viewport */
  request(viewport) {
    const asked = JSON.stringify(viewport);
    if (asked !== this.#asked) {
      this.#asked = asked;
      this.#number += 1;
      this.#ask();
    }
    return this.#number;
  }

  /** Has something changed at the source. @param {object | string} wish */
  control(wish) {
    this.#send({ control: wish });
  }

  /** Has a stretch kept there; what became of it is said. @param {object} stretch */
  keep(stretch) {
    this.#keepNumber += 1;
    this.control({ keep: { number: this.#keepNumber, ...stretch } });
  }

  /** Has all that is held searched, in place of what was searched before; returns the number that its news bear. @param {string} words @param {[number, number][]} scales of each channel units per count, and units at a count of zero */
  find(words, scales) {
    this.#findNumber += 1;
    this.#send({ find: { number: this.#findNumber, words, scales } });
    return this.#findNumber;
  }

  /** Nothing more is to be looked for. */
  endFind() {
    this.#send({ find: null });
  }

  /** Tries again now. @param {string | null} token another one, if it is given */
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
    const hello = { protocol: 1, token: this.#token, program: "page", pictures_per_s: 60, source: this.#source };
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
      // What is under way cannot be told from what was lost: begin anew.
      if (!(error instanceof BadMessage || error instanceof SyntaxError || error instanceof RangeError)) throw error;
      this.#cut(`a message that means nothing (${error.message})`);
    }
  }

  /** @param {Record<string, any>} message */
  #takeText(message) {
    const [kind, said] = Object.entries(message)[0] ?? ["", null];
    if (kind === "welcome") {
      this.session = new Session();
      this.session.welcome(said);
      this.#isWelcome = true;
      this.#attempts = 0;
      this.#say("open", "connected", 0);
      this.#ask();
      this.#ping();
    } else if (kind === "refused") {
      // Whoever was in before comes back; another answer is the same the next time.
      if (this.#isWelcome) this.#cut(String(said));
      else {
        this.#drop();
        this.#say("refused", String(said), 0);
      }
    } else if (kind === "pong") {
      const seconds = (performance.now() - said.at) / 1000;
      // The least of late ones, slowly forgotten: what waits behind a picture is no round trip.
      if (seconds >= 0) this.roundTripS = this.roundTripS === null ? seconds : Math.min(seconds, this.roundTripS * 1.2 + 1e-4);
    } else if (kind === "status") {
      this.session.status = { ...this.session.status, ...said };
      this.#listener.onNews();
    } else if (kind === "told") {
      this.session.tell(said);
      this.#listener.onNews();
    } else if (kind === "said" || kind === "kept") {
      this.#listener.onSaid(String(said.words));
    }
  }

  /** @param {Uint8Array} bytes */
  #takeBytes(bytes) {
    const { number, picture, hasPieces } = this.session.read(bytes, performance.now());
    this.#send({ ack: number });
    this.received.bytes += bytes.length;
    for (const news of this.session.takeFound()) this.#listener.onFound(news);
    if (picture) {
      this.received.pictures += 1;
      this.#listener.onPicture(picture);
    } else if (hasPieces) {
      this.#listener.onNews();
    }
  }

  #ask() {
    if (this.state !== "open" || this.#asked === "") return;
    this.#socket?.send(`{"viewport":{"number":${this.#number},${this.#asked.slice(1)}}`);
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
/** An open connection answers a ping a second. */
const SILENCE_MS = 5000;
const RETRY_MS = 500;
const RETRY_MS_MAX = 8000;
/** A page that nobody sees costs nobody anything. */
const ASLEEP_MS = 20_000;
