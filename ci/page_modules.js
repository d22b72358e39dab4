// Evaluated in the page by ci/page.py: its modules one by one, as they were served. Returns what failed, as lines.
(async () => {
  const load = (/** @type {string} */ name) => import(new URL(name, location.href).href);
  const failed = [];
  const same = (what, got, expected) => {
    const [a, b] = [got, expected].map((it) => JSON.stringify(it, (_, value) => (typeof value === "number" && !Number.isFinite(value) ? String(value) : value)));
    if (a !== b) failed.push(`${what}: ${a}, expected ${b}`);
  };

  // Every input ends with a picture or an error message.
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
      session.read(bytes);
    } catch (error) {
      refused += 1;
      if (!(error instanceof BadMessage)) failed.push(`bytes ${[...bytes]}: ${error.stack}`);
    }
  }
  same("noise is refused", refused > 2000, true);
  return failed;
})()
