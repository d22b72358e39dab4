"""Writes expected.tsv: what NumPy and SciPy say about examples/data/ecg.wav (pip install numpy scipy).

Run from the repository's root: python3 crates/grebe-scope/tests/reference/reference.py
"""

import numpy as np
from scipy import signal
from scipy.io import wavfile

rate, counts = wavfile.read("examples/data/ecg.wav")
x = counts.astype(np.float64)
rows = [("rate_hz", rate), ("samples", len(x))]
rows += [("min", x.min()), ("max", x.max()), ("mean", x.mean()), ("rms", np.sqrt(np.mean(x**2))), ("deviation", x.std())]

# Averaged spectrum, full-scale sine = 0 dB: 'spectrum' scaling gives A^2 / 2 of a sine of amplitude A.
for window in ["hann", "blackmanharris", "flattop"]:
    lines, power = signal.welch(x / 32768, rate, window, 4096, 2048, detrend=False, scaling="spectrum")
    for line in [13, 40, 55, 170, 683, 1000, 1500]:
        rows.append((f"dbfs_{window}_{line}", 10 * np.log10(2 * power[line])))

# Heart rate as textbooks do it: QRS band (zero phase), squared, smoothed, peaks a refractory time apart.
band = signal.sosfiltfilt(signal.butter(2, [5, 15], "band", fs=rate, output="sos"), x)
energy = np.convolve(band**2, np.ones(int(0.15 * rate)) / int(0.15 * rate), "same")
beats = []
for start, end in [(0, 60), (60, 120), (120, 180), (180, 240), (240, 300)]:
    part = energy[start * rate : end * rate]
    peaks, _ = signal.find_peaks(part, distance=int(0.3 * rate), height=0.25 * np.median(np.sort(part)[-rate * 6 :]))
    beats += [start * rate + peak for peak in peaks]
    rows.append((f"beats_per_minute_{start}", 60 * rate * (len(peaks) - 1) / (peaks[-1] - peaks[0])))
rows += [("beats", len(beats)), ("beats_per_minute_last_64", 60 * rate * 63 / (beats[-1] - beats[-64]))]

# A sine with noise and its parameters by least squares, an independent way to what crossings give.
n = np.arange(20000)
tone = np.round(12000 * np.sin(2 * np.pi * n * 0.00731 + 0.7) + 500 * np.sin(2 * np.pi * n * 0.2)).astype(np.int16)
zero_crossings = np.where(np.diff(np.signbit(signal.sosfiltfilt(signal.butter(4, 0.05, output="sos"), tone))))[0]
rows += [("tone_rms", np.sqrt(np.mean(tone.astype(float) ** 2))), ("tone_crossings", len(zero_crossings))]

with open("crates/grebe-scope/tests/reference/expected.tsv", "w") as out:
    for name, value in rows:
        out.write(f"{name}\t{value:.9g}\n")
        print(name, value)
