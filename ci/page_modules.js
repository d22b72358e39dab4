// Evaluated in the page by ci/page.py: its modules one by one, as they were served. Returns what failed, as lines.
(async () => {
  const load = (/** @type {string} */ name) => import(new URL(name, location.href).href);
  const failed = [];
  const same = (what, got, expected) => {
    const [a, b] = [got, expected].map((it) => JSON.stringify(it, (_, value) => (typeof value === "number" && !Number.isFinite(value) ? String(value) : value)));
    if (a !== b) failed.push(`${what}: ${a}, expected ${b}`);
  };

  const { engineering, parseQuantity, step125Down, step125Up, stepTimeDown, stepTimeUp, Ticks } = await load("model/units.js");
  for (const [value, unit, expected] of [
    [0, "V", "0 V"], [-0, "V", "0 V"], [1e9, "S/s", "1 GS/s"], [48_000, "Hz", "48 kHz"], [-0.34, "V", "-340 mV"], [1.25e-6, "s", "1.25 µs"],
    [123_456, "", "123 k"], [9.999e-4, "s", "1 ms"], [1e-18, "s", "0 fs"], [5e15, "S", "5000 TS"], [NaN, "V", "-- V"], [999.96, "Hz", "1 kHz"], [12.5, "", "12.5"],
    [999, "s", "999 s"], [999.96, "s", "0:16:40"], [-3_599.6, "s", "-1:00:00"], [86_400, "s", "24:00:00"], [1e9, "s", "1 Gs"], [3_600, "S", "3.6 kS"],
  ]) same(`engineering ${value}`, engineering(value, unit), expected);
  same("digits", engineering(0.00123456, "s", 4), "1.235 ms");
  let step = 1e-12;
  for (let count = 0; count < 71; count += 1) {
    const next = step125Up(step * 1.1);
    same(`down from ${next}`, step125Down(next * 0.9), step);
    step = next;
  }
  same("a step of nothing", [step125Up(NaN), step125Down(-3)], [1, 1]);
  step = 1e-3;
  while (step < 1e9) {
    const next = stepTimeUp(step * 1.1);
    same(`a step of a clock down from ${next}`, stepTimeDown(next * 0.95), step);
    step = next;
  }
  for (const [seconds, shown] of [[1_000, "0:16:40"], [3_599.9999, "0:59:59.9999"], [-3_600.25, "-1:00:00.25"], [31_536_000, "8760:00:00"]]) {
    same(`a long time ${seconds}`, [engineering(seconds, "s", 9), parseQuantity(shown, "s")], [shown, seconds]);
  }
  same("typed", [parseQuantity("90:00 s", "s"), ...["1:60", ":10", "1:", "1:2:3:4", "1:70:00"].map((typed) => parseQuantity(typed, "s"))], [5400, null, null, null, null, null]);
  for (const [low, high, count, shown] of [
    [0, 600, 6, "0 s 100 s 200 s 300 s 400 s 500 s 600 s"], [0, 3_725, 5, "0:00:00 0:20:00 0:40:00 1:00:00"],
    [-1_200, 0, 4, "-0:20:00 -0:15:00 -0:10:00 -0:05:00 0:00:00"], [7_199.5, 7_200.1, 3, "1:59:59.6 1:59:59.8 2:00:00.0"],
  ]) {
    const axis = Ticks.ofUnit(low, high, count, "s");
    same(`an axis from ${low}`, axis.values().map((value) => axis.label(value, "s")).join(" "), shown);
  }
  const ticks = Ticks.atMost(-0.3, 1.1, 8);
  same("labels", ticks.values().map((value) => ticks.label(value, "V")), ["-200 mV", "0 mV", "200 mV", "400 mV", "600 mV", "800 mV", "1000 mV"]);
  const division = new Ticks(0, 7.2e-3, 2.4e-3);
  same("two digits", division.values().map((value) => division.label(value, "s")), ["0.0 ms", "2.4 ms", "4.8 ms", "7.2 ms"]);
  same("endless", [Ticks.atMost(NaN, 1, 10).values().length, Ticks.atMost(-1e300, 1e300, 10).values().length <= 1000], [0, true]);
  for (const typed of ["0.00015", "150u", "150 µV", "1.5e-4V", ".15 mV"]) same(typed, Math.abs(parseQuantity(typed, "V") - 150e-6) < 1e-18, true);
  same("metres, not milli", [parseQuantity("5 m", "m"), parseQuantity("150 x", "V"), parseQuantity("", "")], [5, null, null]);

  const { AutoRange } = await load("model/range.js");
  const auto = new AutoRange();
  const first = auto.follow({ bottom: -900, top: 900 }, 1, 0);
  const grown = auto.follow({ bottom: -900, top: 5000 }, 1, 1000);
  same("a range grows at once", [first.top >= 900 && first.top <= 1300 && first.bottom === -first.top, grown.top >= 5000], [true, true]);
  same("... and shrinks late", [2000, 3000].map((ms) => auto.follow({ bottom: -900, top: 900 }, 1, ms)), [grown, grown]);
  same("... but does", auto.follow({ bottom: -900, top: 900 }, 1, 5000), first);

  const { TimeAxis, fittedSpan } = await load("model/time.js");
  const { waitingPicture, laneOfText, laneText } = await load("data/picture.js");
  const picture = { ...waitingPicture(), stream: { channels: 1, format: "i16", rateHz: 1e6, generatorDrops: 0 }, leftIndex: 0, spanSamples: 10_000, nextIndex: 10_000 };
  const time = new TimeAxis();
  time.zoom(picture, true, 0.5);
  same("a step shorter, live", [time.span, time.heldAt], [5e-3, null]);
  time.hold(picture, 8000);
  time.zoom(picture, true, 0.25);
  same("what lies under the pointer stays", time.heldAt - 0.75 * 2000, 8000 - 0.75 * 5000);
  for (const [from, isShorter, to] of [[500, false, 600], [600, true, 500], [3_600, false, 6_000], [36_000, true, 18_000]]) {
    const long = new TimeAxis();
    long.span = from;
    long.zoom(picture, isShorter, 0.5);
    same(`a step from ${from} s`, long.span, to);
  }
  same("spans", [fittedSpan(0.0123, 1e6), fittedSpan(20, 1e3), fittedSpan(1e-9, 1e6)], [0.013, 20, 1e-5]);
  for (const text of ["1", "3.magnitude", "255.i", "math"]) same(text, laneText(laneOfText(text)), text);
  same("no lanes", ["0", "256", "1.x", "", "1.math", "-1", "1.5"].map(laneOfText), Array(7).fill(null));

  const { Settings } = await load("model/settings.js");
  const { fromFragment, toFragment } = await load("model/link.js");
  const settings = new Settings();
  same("nothing set says nothing", toFragment(settings, null), "");
  const view = "span=0.002&at=123456&hide=2%2C5&trigger=normal&kind=pulse&on=2.i&slope=falling&level=-12.5&place=0.1&reject=100&holdoff=0.001&times=0.001..0.002" +
    "&show=measurements%2Cspectrum%2Coverview&transform=4096%2Cblackman%2C16%2Chold&band=0.25%2C0.5&cursors=0.1%2C0.2&select=3&scales=1%3A0.5%3A-1%3Ainverted%3Aac&theme=light";
  same("the token", fromFragment(settings, `#token=secret&${view}`), "secret");
  same("a view comes back", toFragment(settings, null), view);
  same("with the token where asked", toFragment(settings, "t").startsWith("token=t&"), true);
  const odd = new Settings();
  fromFragment(odd, "#span=-1&at=x&hide=0,999,a&trigger=no&place=7&transform=3,x,0&band=0.5,0.1&cursors=1&scales=9999:1&theme=<b>&%E0%A4%A");
  same("what means nothing is left out", toFragment(odd, null), "");

  const { Search, findWords } = await load("model/found.js");
  const search = new Search(1, "gap");
  same("nothing is known", search.state, "searching …");
  const event = (index) => ({ index, length: 0, lane: null });
  search.take({ number: 1, events: [event(7), event(3)], found: 5, searched: 30, all: 60, ended: null });
  same("some of it", [search.state, search.events.map(({ index }) => index)], ["5 found, the first 2 listed, 50 % searched …", [3, 7]]);
  search.take({ number: 1, events: [event(5)], found: 3, searched: 60, all: 60, ended: "all of it was searched" });
  same("all of it", [search.state, search.events.map(({ index }) => index)], ["3 found: all of it was searched", [3, 5, 7]]);
  const wanted = new Settings();
  fromFragment(wanted, "kind=pulse&slope=falling&times=0.001..0.002&holdoff=0.5");
  const traced = { ...picture, lanes: [{ lane: { channel: 0, part: "real" }, min: Float32Array.of(-8), max: Float32Array.of(24), coverage: Uint8Array.of(1), mean: 0, isClipped: false, runs: null, atCursors: [null, null] }] };
  same("what triggers is found", findWords(traced, wanted), "pulse --slope falling --level 8 --hysteresis 2 --longer 1000us --shorter 2000us --holdoff 500000us");

  const { GapPlaces } = await load("model/gaps.js");
  const places = new GapPlaces();
  const loss = (frames) => ({ frames, samples: frames * 10 });
  const status = (network, kernel, queue) => ({ network: loss(network), shared_memory: null, kernel_datagrams: kernel, queue: loss(queue), is_recording: false });
  const gaps = [];
  for (const [said, made, lost, expected] of [
    [status(0, 0, 0), 5, 0, "generator"], [status(3, 0, 0), 0, 3, "network"], [status(6, 3, 0), 0, 3, "kernel"], [status(6, 3, 2), 7, 2, "generator + queue"],
  ]) {
    gaps.push({ number: gaps.length, start: 0, end: 10, generator_samples: made, lost_frames: lost });
    places.look(gaps, said);
    same(`a gap is named ${expected}`, places.of(gaps.at(-1)), expected);
  }

  // Whatever comes, it ends: with a picture or with a word about what is wrong.
  const { Session } = await load("data/wire.js");
  const { BadMessage } = await load("data/bytes.js");
  let seed = 7;
  const random = (below) => (seed = (seed * 48271) % 2147483647) % below;
  let refused = 0;
  const session = new Session();
  for (let message = 0; message < 3000; message += 1) {
    const bytes = Uint8Array.from({ length: random(200) }, () => random(random(2) ? 256 : 8));
    if (bytes.length > 0) bytes[0] = 1 + (message % 2);
    try {
      session.read(bytes, 0);
    } catch (error) {
      refused += 1;
      if (!(error instanceof BadMessage)) failed.push(`bytes ${[...bytes]}: ${error.stack}`);
    }
  }
  same("noise is refused", refused > 2000, true);
  return failed;
})()
