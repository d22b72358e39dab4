"""Makes the pictures of docs/waterfall.md with the built command.

    target/ci/venv/bin/python ci/waterfall_pictures.py target/release/grebe

The signal is the same in each run: two remote controls, a beacon, an FM station, a chirp, and a carrier weaker than the noise.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

RATE, SECONDS, CENTRE = 480_000, 12, 434e6
IMAGES = Path("docs/images")


def signal():
    rng = np.random.default_rng(48)
    count = RATE * SECONDS
    time = np.arange(count) / RATE
    total = 0.004 * (rng.standard_normal(count) + 1j * rng.standard_normal(count))

    def add(start, duration, frequencies, size):
        own = slice(round(start * RATE), round((start + duration) * RATE))
        frequencies = np.broadcast_to(frequencies, time[own].shape)
        total[own] += size * np.exp(2j * np.pi * np.cumsum(frequencies) / RATE)

    for start in (1.2, 1.5, 1.8, 7.3, 7.6):
        bits = np.repeat(rng.integers(0, 2, 24), round(0.12 * RATE) // 24)
        add(start, len(bits) / RATE, -80e3 + 20e3 * (bits - 0.5), 0.05)
    for start in (3.0, 9.5):
        bits = np.repeat(rng.integers(0, 2, 40), round(0.4 * RATE) // 40)
        add(start, len(bits) / RATE, 20e3, 0.02 * (0.2 + 0.8 * bits))
    for start in range(12):
        add(start + 0.3, 0.05, 150e3, 0.03)
    add(4.4, 1.4, 60e3 + 8e3 * np.sin(2 * np.pi * 3 * time[: round(1.4 * RATE)]), 0.03)
    add(6.0, 3.0, np.linspace(-200e3, 200e3, 3 * RATE), 0.01)
    add(0, SECONDS, -50e3, 0.0003)
    return total


def main():
    grebe = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "night"
        signal().astype(np.complex64).tofile(base.with_suffix(".sigmf-data"))
        captures = [{"core:sample_start": 0, "core:frequency": CENTRE}]
        common = {"core:datatype": "cf32_le", "core:sample_rate": RATE, "core:version": "1.0.0"}
        meta = base.with_suffix(".sigmf-meta")
        meta.write_text(json.dumps({"global": common, "captures": captures, "annotations": []}))
        view = [grebe, "view", meta.name, "--no-session", "--parts", "magnitude", "--span", f"{SECONDS}s", "--waterfall"]
        for name, more in [
            ("waterfall", ["--size", "900x480", "--box", "4.3,5.9,434.04M,434.08M"]),
            ("waterfall-mean", ["--size", "900x480", "--detector", "mean", "--theme", "light"]),
        ]:
            picture = IMAGES.resolve() / f"{name}.png"
            subprocess.run([*view, "--png", picture, *more], check=True, cwd=folder)
            print(f"{picture}: {picture.stat().st_size // 1000} kB")


main()
