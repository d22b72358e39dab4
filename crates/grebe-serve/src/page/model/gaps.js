// In which place the samples of each gap were lost: where the source's counter grew when the gap came.

/**
 * @typedef {import("../data/picture.js").Gap} Gap
 * @typedef {import("../data/wire.js").Status} Status
 */

export class GapPlaces {
  #seen = { network: 0, kernel: 0, sharedMemory: 0, queue: 0 };
  /** Number of the first gap without a name. */
  #next = 0;
  /** @type {Map<number, string>} */
  #named = new Map();

  /** Names the gaps that came since the last look. @param {Gap[]} gaps @param {Status} status */
  look(gaps, status) {
    const now = {
      network: status.network?.frames ?? 0,
      kernel: status.kernel_datagrams ?? 0,
      sharedMemory: status.shared_memory?.frames ?? 0,
      queue: status.queue?.frames ?? 0,
    };
    const hasGrown = (/** @type {keyof typeof now} */ place) => now[place] > this.#seen[place];
    // What the kernel drops is missing in the network's count too: the kernel is the more exact answer.
    const grown = [
      ...(hasGrown("kernel") ? ["kernel"] : hasGrown("network") ? ["network"] : []),
      ...(hasGrown("sharedMemory") ? ["shared memory"] : []),
      ...(hasGrown("queue") ? ["queue"] : []),
    ];
    const fresh = gaps.filter((gap) => gap.number >= this.#next);
    const isCounted = [status.network, status.shared_memory, status.queue].some((loss) => loss !== null);
    // The counters may be a moment behind the picture: then the next look names it.
    if (fresh.some((gap) => gap.lost_frames > 0) && grown.length === 0 && isCounted) return;
    for (const gap of fresh) {
      const made = status.is_recording ? "missing in the recording" : "generator";
      const lost = grown.length === 0 ? "on the way" : grown.join(" + ");
      const places = gap.generator_samples > 0 ? (gap.lost_frames > 0 ? `${made} + ${lost}` : made) : lost;
      this.#named.set(gap.number, places);
      this.#next = gap.number + 1;
    }
    for (const number of this.#named.keys()) {
      if (this.#named.size <= NAMED_MAX) break;
      this.#named.delete(number);
    }
    this.#seen = now;
  }

  /** Another stream counts its gaps anew. */
  forget() {
    this.#named.clear();
    this.#next = 0;
  }

  /** @param {Gap} gap */
  of(gap) {
    return this.#named.get(gap.number) ?? "";
  }
}

const NAMED_MAX = 512;
