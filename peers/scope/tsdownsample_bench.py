"""The same envelope by tsdownsample (pip install tsdownsample numpy), one thread, beside a NumPy read."""

import time

import numpy as np
from tsdownsample import MinMaxDownsampler

COLUMN = 1000


def rate(count, work):
    rounds = []
    for _ in range(10):
        start, done = time.perf_counter(), 0
        while time.perf_counter() - start < 0.2:
            work()
            done += count
        rounds.append(done / (time.perf_counter() - start) / 1e9)
    return sorted(rounds[1:])[4]


for place, count in [("in cache", 256 << 10), ("beyond L3", 128 << 20)]:
    samples = np.random.default_rng(1).integers(-32768, 32768, count, dtype=np.int16)
    words = samples.view(np.uint64)
    n_out = count // COLUMN * 2
    sampler = MinMaxDownsampler()
    print(f"envelope, {count >> 9} KiB {place}: numpy xor of words {rate(count, lambda: np.bitwise_xor.reduce(words)):.2f} GS/s, "
          f"tsdownsample MinMax {rate(count, lambda: sampler.downsample(samples, n_out=n_out)):.2f} GS/s")
