// Evaluated in the page by ci/page.py with the messages of crates/grebe-serve/tests/vectors.json, which the Rust codec wrote:
// returns where the page's decoder finds something else in them, as lines.
async (messages) => {
  const { Session } = await import(new URL("data/wire.js", location.href).href);
  const failed = [];
  const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  const bits = (values) => hex(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
  const bytesOf = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  const levels = (values) => Array.from(values, (value) => (Number.isFinite(value) ? value : null));
  const same = (what, got, expected) => {
    const [a, b] = [JSON.stringify(got), JSON.stringify(expected)];
    if (a !== b) failed.push(`${what}: ${a.slice(0, 200)}, expected ${b.slice(0, 200)}`);
  };
  const seen = {
    lane: ({ lane, min, max, coverage, isClipped, mean, atCursors, runs }) => ({
      lane: lane, min: bits(min), max: bits(max), coverage: [...coverage], isClipped, mean, atCursors,
      runs: runs && runs.map(({ first, samples }) => ({ first, samples: bits(samples) })),
    }),
    picture: ({ answers, isEnded, leftIndex, oldestIndex, nextIndex, lanes, trigger }) => ({
      answers, isEnded, leftIndex, oldestIndex, nextIndex, lanes: lanes.map(seen.lane),
      trigger: trigger && { level: trigger.level, upper: trigger.upper, at: trigger.at },
    }),
    items: ({ spectrum, waterfall, density, overview }) => ({
      spectrum: spectrum && {
        size: spectrum.size, isTwoSided: spectrum.isTwoSided,
        channels: spectrum.channels.map(({ channel, dbfs, hold, peaks }) => ({ channel, dbfs: levels(dbfs), hold: levels(hold), peaks })),
      },
      waterfall: waterfall && {
        channel: waterfall.channel, width: waterfall.width, band: waterfall.band, cells: levels(waterfall.cells), spanSamples: waterfall.spanSamples, sampled: waterfall.sampled,
      },
      density: density && {
        records: density.records, fraction: density.fraction,
        lanes: density.lanes.map(({ lane, width, cells }) => ({ lane: lane, width, cells: hex(cells) })),
      },
      overview: overview && {
        leftIndex: overview.leftIndex, spanSamples: overview.spanSamples,
        lanes: overview.lanes.map(({ lane, min, max }) => ({ lane: lane, min: bits(min), max: bits(max) })),
      },
    }),
  };
  // Keys stand in another order in what Rust wrote.
  const sorted = (it) =>
    Array.isArray(it) ? it.map(sorted) : it && typeof it === "object" ? Object.fromEntries(Object.keys(it).sort().map((key) => [key, sorted(it[key])])) : it;
  const session = new Session();
  messages.forEach((message, at) => {
    try {
      const { picture, number } = session.read(bytesOf(message.bytes));
      same(`message ${at}: number`, number, at + 1);
      if (message.picture) same(`message ${at}`, sorted(seen.picture(picture)), sorted(message.picture));
      const { isLive, rate, samples } = session.extras().sound ?? {};
      if (message.sound) same(`sound of message ${at}`, { isLive, rate, samples: Array.from(samples ?? [], (it) => it * 32768) }, sorted(message.sound));
      if (message.items) same(`items of message ${at}`, sorted(seen.items(session.extras())), sorted(message.items));
    } catch (error) {
      failed.push(`message ${at}: ${error.stack}`);
    }
  });
  // Cut anywhere, they are refused, and nothing hangs.
  for (const { bytes } of messages) {
    const whole = bytesOf(bytes);
    for (let length = 0; length < whole.length; length += 1 + (whole.length >> 5)) {
      try {
        new Session().read(whole.subarray(0, length));
      } catch (error) {
        if (error.constructor.name !== "BadMessage") failed.push(`cut at ${length}: ${error.stack}`);
      }
    }
  }
  return failed;
}
