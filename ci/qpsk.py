"""QPSK of known SNR and a tone, made by grebe, measured by SciPy: signal-to-noise ratio, occupied bandwidth and power equal the
generator's settings, and a tone has no image. The scope measures the same signals in crates/grebe-stages/tests/qpsk.rs, whose
table of SciPy's numbers this prints.

    target/ci/venv/bin/python ci/qpsk.py target/release/grebe FOLDER
"""

import subprocess
import sys
from pathlib import Path

import numpy
from scipy import optimize, signal

RATE_HZ = 2.4e6
ROLL_OFF = 0.35
SAMPLES = 262_144
LINES = 4096
# Of all power between the edges.
OCCUPIED = 0.99


def main(grebe, folder):
    folder.mkdir(exist_ok=True)
    for symbol_rate_hz in (600e3, 300e3, 123_456):
        clean = generate(grebe, folder, symbol_rate_hz, None)
        for snr_db in (10, 20, 30):
            noisy = generate(grebe, folder, symbol_rate_hz, snr_db)
            check_qpsk(symbol_rate_hz, snr_db, clean, noisy)
    for format, image_db in (("cf32", -120), ("ci16", -90), ("cu8", -60)):
        check_tone(grebe, folder, format, image_db)


def generate(grebe, folder, symbol_rate_hz, snr_db):
    path = folder / f"qpsk-{symbol_rate_hz:.0f}-{snr_db}.sigmf-meta"
    noise = [] if snr_db is None else ["--snr", f"{snr_db}"]
    run(grebe, path, "cf32", "--wave", "qpsk", "--symbol-rate", f"{symbol_rate_hz:.0f}", "--roll-off", f"{ROLL_OFF}",
        "--amplitude", "1", *noise)
    return numpy.fromfile(path.with_suffix(".sigmf-data"), "c8").astype("c16")


def run(grebe, path, format, *settings):
    command = [grebe, "sg", "--format", format, "--rate", f"{RATE_HZ:.0f}", "--samples", f"{SAMPLES}", "--free-run", *settings]
    subprocess.run([*command, "--to", path], check=True, capture_output=True)


def check_qpsk(symbol_rate_hz, snr_db, clean, noisy):
    name = f"{symbol_rate_hz / 1e3:.0f} kS/s, {snr_db} dB"
    # The RMS of QPSK is a quarter of its amplitude.
    level_db = decibels(power(clean)) - decibels(1 / 16)
    assert abs(level_db) < 0.2, f"{name}: its level is off by {level_db} dB"
    parts_db = decibels(power(clean) / power(noisy - clean))
    assert abs(parts_db - snr_db) < 0.2, f"{name}: {parts_db} dB between its parts"

    frequencies, density = spectrum(noisy)
    edge = (1 + ROLL_OFF) / 2 * symbol_rate_hz
    inside, beside = abs(frequencies) < edge, (abs(frequencies) > 0.35 * RATE_HZ) & (abs(frequencies) < 0.48 * RATE_HZ)
    noise = density[beside].mean()
    spectral_db = decibels((density[inside] - noise).sum() / (noise * LINES))
    assert abs(spectral_db - snr_db) < 0.2, f"{name}: {spectral_db} dB by its spectrum"

    within_hz = 1.6 * symbol_rate_hz
    occupied_hz = occupied_bandwidth(frequencies, density, within_hz)
    exact_hz = exact_bandwidth(symbol_rate_hz, snr_db, within_hz)
    assert abs(occupied_hz / exact_hz - 1) < 0.02, f"{name}: {occupied_hz} Hz, not {exact_hz}"
    print(f"        ({symbol_rate_hz:_.1f}, {snr_db:.1f}, {spectral_db:.3f}, {occupied_hz:_.0f}.0), // {exact_hz:.0f} by definition")


def check_tone(grebe, folder, format, image_db):
    path = folder / f"tone-{format}.sigmf-meta"
    run(grebe, path, format, "--wave", "sine", "--frequency", "100k")
    component = {"cf32": "f4", "ci16": "i2", "cu8": "u1"}[format]
    numbers = numpy.fromfile(path.with_suffix(".sigmf-data"), component).astype("f8") - (127.5 if format == "cu8" else 0)
    frequencies, density = spectrum(numbers[::2] + 1j * numbers[1::2])
    peak = frequencies[density.argmax()]
    assert abs(peak - 100e3) < RATE_HZ / LINES, f"{format}: the tone is at {peak} Hz"
    away = abs(frequencies - 100e3) > 8 * RATE_HZ / LINES
    at_image = abs(frequencies + 100e3) < 8 * RATE_HZ / LINES
    found_db = decibels(density[at_image].max() / density.max())
    assert found_db < image_db, f"{format}: an image of {found_db} dB"
    print(f"{format}: the tone is at {peak:.0f} Hz, its image {found_db:.0f} dB, all else {decibels(density[away].max() / density.max()):.0f} dB")


def spectrum(samples):
    frequencies, density = signal.welch(samples, RATE_HZ, "blackmanharris", LINES, detrend=False, return_onesided=False)
    order = numpy.argsort(frequencies)
    return frequencies[order], density[order]


def occupied_bandwidth(frequencies, density, within_hz):
    inside = abs(frequencies) < within_hz / 2
    below = numpy.concatenate(([0], numpy.cumsum(density[inside])))
    edges = numpy.append(frequencies[inside], frequencies[inside][-1] + RATE_HZ / LINES) - RATE_HZ / LINES / 2
    outside = (1 - OCCUPIED) / 2 * below[-1]
    low, high = numpy.interp([outside, below[-1] - outside], below, edges)
    return high - low


def exact_bandwidth(symbol_rate_hz, snr_db, within_hz):
    """A raised cosine (the spectrum of root-raised pulses) plus flat noise; the power of the former is 1."""
    noise = 10 ** (-snr_db / 10) / RATE_HZ
    begin, end = (1 - ROLL_OFF) / 2 * symbol_rate_hz, (1 + ROLL_OFF) / 2 * symbol_rate_hz

    def beyond(edge):
        x = (min(max(edge, begin), end) - begin) / (end - begin)
        roll = (end - begin) / symbol_rate_hz * ((1 - x) - numpy.sin(numpy.pi * x) / numpy.pi) / 2
        return roll + max(begin - edge, 0) / symbol_rate_hz + noise * (within_hz / 2 - edge)

    outside = (1 - OCCUPIED) / 2 * (1 + noise * within_hz)
    return 2 * optimize.brentq(lambda edge: beyond(edge) - outside, 0, within_hz / 2)


def power(samples):
    return numpy.mean(abs(samples) ** 2)


def decibels(ratio):
    return 10 * numpy.log10(ratio)


main(sys.argv[1], Path(sys.argv[2]))
