"""Bands that grebe cuts out of noise beside those that SciPy makes of the same samples by mixing, firwin and resample_poly: the
difference is at least 80 dB below them.

    target/ci/venv/bin/python ci/cut.py target/release/grebe FOLDER
"""

import subprocess
import sys
from fractions import Fraction
from math import floor, pi
from pathlib import Path

import numpy
from scipy import signal

RATE_HZ = 1_000_000
ATTENUATION_DB = 85


def main(grebe, folder):
    folder.mkdir(exist_ok=True)
    noise = numpy.random.default_rng(1)
    complex_noise = (noise.standard_normal(400_000) + 1j * noise.standard_normal(400_000)).astype("c8") / 4
    real_noise = noise.standard_normal(400_000).astype("f4") / 4
    for samples, centre_hz, bandwidth_hz, rate_hz in (
        (complex_noise, 123_456.7, 20_000, None),
        (complex_noise, -400_000, 150_000, None),
        (complex_noise, 250_000, 20_000, 48_000),
        (complex_noise, 0, 300_000, 441_000),
        (real_noise, 200_000, 8_000, None),
        (real_noise, 330_000, 20_000, 44_100),
    ):
        wide = folder / ("wide.cf32" if numpy.iscomplexobj(samples) else "wide.f32")
        samples.tofile(wide)
        made = folder / "cut.npy"
        rate = [] if rate_hz is None else ["--rate", f"{rate_hz}"]
        subprocess.run([grebe, "convert", f"{wide}?rate={RATE_HZ}", made, "--overwrite", "--center", f"{centre_hz}",
                        "--bandwidth", f"{bandwidth_hz}", *rate], check=True, stderr=subprocess.DEVNULL)
        got = numpy.load(made).ravel()
        expected = cut(samples, centre_hz, bandwidth_hz, rate_hz)
        assert len(got) == len(expected), (len(got), len(expected))
        error_db = 10 * numpy.log10(numpy.sum(abs(got - expected) ** 2) / numpy.sum(abs(expected) ** 2))
        print(f"{centre_hz:>10} Hz, {bandwidth_hz:>7} Hz, {rate_hz or 'least'}: {error_db:.1f} dB")
        assert error_db < -80


def cut(samples, centre_hz, bandwidth_hz, rate_hz):
    ratio = Fraction(1, floor(RATE_HZ / (1.25 * bandwidth_hz))) if rate_hz is None else Fraction(rate_hz, RATE_HZ)
    edge_hz = min(bandwidth_hz / 8, (RATE_HZ * ratio - bandwidth_hz) / 2)
    mixed = samples * numpy.exp(-2j * pi * centre_hz / RATE_HZ * numpy.arange(len(samples)))
    fine_hz = RATE_HZ * ratio.numerator
    reach = (ATTENUATION_DB - 7.95) / (2.285 * 2 * pi * float(edge_hz) / fine_hz) / 2
    window = ("kaiser", 0.1102 * (ATTENUATION_DB - 8.7))
    taps = signal.firwin(2 * round(reach) + 1, float(bandwidth_hz / 2 + edge_hz / 2), window=window, fs=fine_hz)
    made = signal.resample_poly(mixed, ratio.numerator, ratio.denominator, window=taps)
    return made if numpy.iscomplexobj(samples) else 2 * made


main(sys.argv[1], Path(sys.argv[2]))
