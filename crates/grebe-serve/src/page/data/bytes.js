// Reads what the server sends: numbers, and residuals of the adaptive Rice code.

/** A malformed message, after which the connection starts again. */
export class BadMessage extends Error {}

export class ByteReader {
  #at = 0;
  #view;

  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get isAtEnd() {
    return this.#at === this.bytes.length;
  }

  u8() {
    return this.#view.getUint8(this.#take(1));
  }

  f64() {
    return this.#view.getFloat64(this.#take(8), true);
  }

  /** Beyond 2^53 the lowest bits are lost. Only clocks and indices count that far, and nobody sees those bits. */
  varint() {
    let [value, weight] = [0, 1];
    for (let length = 0; length < 10; length += 1) {
      const byte = this.u8();
      value += (byte & 127) * weight;
      if (byte < 128) return value;
      weight *= 128;
    }
    throw new BadMessage("a number of more than ten bytes");
  }

  /** A varint of at most `most`, for counts that size an allocation. @param {number} most */
  count(most) {
    const value = this.varint();
    if (value > most) throw new BadMessage(`${value} where at most ${most} can be`);
    return value;
  }

  zigzag() {
    const value = this.varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  /** @param {number} length */
  take(length) {
    const at = this.#take(length);
    return this.bytes.subarray(at, at + length);
  }

  rest() {
    return this.take(this.bytes.length - this.#at);
  }

  /** A block of bits, by its length. */
  bits() {
    return new BitReader(this.take(this.varint()));
  }

  /** @param {number} length */
  #take(length) {
    const at = this.#at;
    if (at + length > this.bytes.length) throw new BadMessage("it ends too early");
    this.#at = at + length;
    return at;
  }
}

/** Reads bits, from the most significant one of the first byte on. */
export class BitReader {
  #bit = 0;
  #bytes;

  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.#bytes = bytes;
  }

  /** @param {number} count 0 to 53 */
  take(count) {
    if (this.#bit + count > this.#bytes.length * 8) throw new BadMessage("bits end too early");
    let [value, left] = [0, count];
    while (left > 0) {
      const room = 8 - (this.#bit & 7);
      const some = Math.min(room, left);
      const byte = this.#bytes[this.#bit >> 3];
      value = value * 2 ** some + ((byte >> (room - some)) & ((1 << some) - 1));
      this.#bit += some;
      left -= some;
    }
    return value;
  }

  /** Counts ones before a zero, and reads the zero too; at most `most` ones. @param {number} most */
  ones(most) {
    for (let count = 0; count < most; count += 1) {
      if (this.#bit >= this.#bytes.length * 8) throw new BadMessage("bits end too early");
      const bit = (this.#bytes[this.#bit >> 3] >> (7 - (this.#bit & 7))) & 1;
      this.#bit += 1;
      if (bit === 0) return count;
    }
    return most;
  }
}

/** State of the adaptive Rice code for one kind of numbers. */
export class RiceContext {
  #sum = 8;
  #count = 1;

  /** The next number, 0 to 2^32 - 1. @param {BitReader} bits */
  unsigned(bits) {
    let k = 0;
    for (let reach = this.#count; reach < this.#sum && k < LOW_BITS_MAX; reach *= 2) k += 1;
    const ones = bits.ones(ONES_MAX);
    const value = ones === ONES_MAX ? bits.take(32) : ones * 2 ** k + bits.take(k);
    this.#sum += value;
    this.#count += 1;
    if (this.#count === 64) [this.#sum, this.#count] = [Math.floor(this.#sum / 2), 32];
    return value;
  }

  /** The next residual, an i32. @param {BitReader} bits */
  residual(bits) {
    const value = this.unsigned(bits);
    return (value >>> 1) ^ -(value & 1);
  }
}

const ONES_MAX = 20;
const LOW_BITS_MAX = 31;
