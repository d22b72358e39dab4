"""The scope's analysis of arrays against NumPy and SciPy."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import grebe
import numpy as np
import numpy.typing as npt
import pytest

RATE = 1e6
ECG = pathlib.Path(__file__).parents[2] / "examples/data/ecg.sigmf-meta"


def tone(hertz: float, amplitude: float = 1.0, samples: int = 1 << 16) -> npt.NDArray[np.float64]:
    wave: npt.NDArray[np.float64] = amplitude * np.sin(2 * np.pi * hertz / RATE * np.arange(samples) + 0.3)
    return wave


def ci16(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    samples = np.zeros(values.shape, [("re", "<i2"), ("im", "<i2")])
    samples["re"], samples["im"] = values.real.round(), values.imag.round()
    return samples


def test_measurements_are_those_of_numpy() -> None:
    rng = np.random.default_rng(1)
    square = np.where(np.arange(20_000) % 1_000 < 300, 1_000, -500) + rng.integers(-3, 4, 20_000)
    for kind in ["i2", "i4", "f4", "f8"]:
        x = np.stack([square, 2 * square]).astype(kind)
        found = grebe.measure(x, RATE)
        assert found.mean.shape == (2,)
        assert np.allclose(found.mean, x.mean(axis=1), rtol=1e-5)
        assert np.allclose(found.rms, np.sqrt((x.astype("f8") ** 2).mean(axis=1)), rtol=1e-5)
        assert np.allclose(found.ac_rms, x.std(axis=1), rtol=1e-5)
        assert (found.min == x.min(axis=1)).all() and (found.max == x.max(axis=1)).all()
        assert (found.peak_to_peak == np.ptp(x, axis=1)).all()
        assert np.allclose(found.frequency, 1e3) and np.allclose(found.duty, 0.3)
        assert np.allclose(found.positive_width, 300e-6, rtol=1e-2) and np.allclose(found.top, [1_000, 2_000], rtol=1e-2)
    one = grebe.measure(square.astype("i2"), RATE)
    assert one.mean.shape == () and float(one.period) == pytest.approx(1e-3)
    silent = grebe.measure(np.zeros(100))
    assert np.isnan(silent.frequency) and float(silent.rms) == 0
    assert np.isnan(grebe.measure(square.astype("i2")).period), "no rate, no times"
    strided = grebe.measure(np.stack([square, square], axis=1).T[:, ::2], RATE / 2)
    assert np.allclose(strided.frequency, 1e3), "whatever the array's memory looks like"
    mistakes: list[npt.ArrayLike] = [np.zeros(4, "c8"), np.zeros(4, "?"), 1.0]
    for wrong in mistakes:
        with pytest.raises(grebe.UsageError):
            grebe.measure(wrong)


def test_spectra_are_those_of_scipy() -> None:
    signal = pytest.importorskip("scipy.signal")
    x = tone(123_456.7, 0.25) + np.random.default_rng(2).normal(0, 0.01, 1 << 16)
    for ours, theirs in [("hann", "hann"), ("blackman", "blackman"), ("rectangular", "boxcar")]:
        found = grebe.spectrum(x, RATE, size=4096, window=ours)
        frequency, power = signal.welch(
            x.astype("f4"), RATE, theirs, 4096, detrend=False, scaling="spectrum", return_onesided=True
        )
        assert np.allclose(found.frequency, frequency) and found.dbfs.shape == (2049,)
        # Power of a sine is half the square of its amplitude; the ends have one side only.
        expected = 10 * np.log10(2 * power[1:-1])
        strong = expected > -90
        assert strong.sum() > 2_000 and np.allclose(found.dbfs[1:-1][strong], expected[strong], atol=0.05)
        assert found.transforms == 31
    z = (0.5 * np.exp(-2j * np.pi * 0.2 * np.arange(1 << 15))).astype("c8")
    found = grebe.spectrum(z, RATE, size=1024, center=100e6)
    frequency, power = signal.welch(z, RATE, "hann", 1024, detrend=False, scaling="spectrum", return_onesided=False)
    assert np.allclose(found.frequency, np.fft.fftshift(frequency) + 100e6)
    expected = 10 * np.log10(np.fft.fftshift(power))
    strong = expected > -60
    assert np.allclose(found.dbfs[strong], expected[strong], atol=0.05)
    counts = ci16(z * 32768)
    assert np.allclose(grebe.spectrum(counts, RATE, size=1024).dbfs[strong], expected[strong], atol=0.05), "of counts"


def test_a_spectrum_says_what_is_in_it() -> None:
    x = np.stack([tone(50_000, 0.5), tone(50_000, 0.5) + tone(100_000, 0.005)])
    found = grebe.spectrum(x, RATE, size=8192, window="blackman_harris")
    peak = found.peaks(1)[0]
    assert peak.frequency == pytest.approx(50_000, abs=1) and peak.dbfs == pytest.approx(-6.02, abs=0.01)
    assert np.allclose(found.power(40_000, 60_000), -6.02, atol=0.01)
    second = found.tone(channel=1)
    assert second is not None and second.thd_db == pytest.approx(-40, abs=0.1)
    band = found.occupied_band(0.99)
    assert band is not None and band[0] < 50_000 < band[1] < 51_000
    z = np.exp(2j * np.pi * 0.1 * np.arange(1 << 14))
    above = grebe.spectrum(z, RATE, center=433e6)
    assert above.peaks(1)[0].frequency == pytest.approx(433.1e6, abs=1)
    assert float(above.power(433.09e6, 433.11e6)) == pytest.approx(0, abs=0.01)
    assert "1024" not in repr(above) and "433.5e6" not in repr(above)
    for wrong in [dict(size=100), dict(window="round"), dict(hop=0), dict(full_scale=0.0), dict(center=1.0), dict(size=1 << 20)]:
        with pytest.raises(grebe.UsageError):
            grebe.spectrum(x, RATE, **wrong)  # type: ignore[arg-type]
    with pytest.raises(grebe.UsageError, match="rate"):
        grebe.spectrum(x, 0)


def test_spectrograms_are_those_of_scipy_and_hold_holes() -> None:
    signal = pytest.importorskip("scipy.signal")
    x = signal.chirp(np.arange(1 << 14) / RATE, 10_000, (1 << 14) / RATE, 400_000)
    found = grebe.spectrogram(np.stack([x, x]), RATE, size=256)
    frequency, time, power = signal.spectrogram(
        x.astype("f4"), RATE, "hann", 256, 128, detrend=False, scaling="spectrum", mode="psd"
    )
    assert np.allclose(found.time, time) and np.allclose(found.frequency, frequency)
    assert found.dbfs.shape == (2, *power.shape)
    expected = 10 * np.log10(2 * power[1:-1] + 1e-20)
    strong = expected > -60
    assert np.allclose(found.dbfs[0, 1:-1][strong], expected[strong], atol=0.05)
    x[1_000] = np.nan
    holed = grebe.spectrogram(x, RATE, size=256, hop=256)
    assert np.isnan(holed.dbfs[:, 3]).all() and np.isnan(holed.dbfs).sum() == 129
    assert grebe.spectrum(x, RATE, size=256, hop=256).transforms == 63


def test_an_envelope_of_an_array() -> None:
    rng = np.random.default_rng(3)
    for kind in ["i1", "u1", "i2", "i4", "f4", "f8"]:
        x = (rng.normal(size=(3, 9_999)) * 30 + 100).astype(kind)
        found = grebe.envelope(x, 7)
        assert found.shape == (3, 7, 2) and found.dtype == x.dtype
        for column in range(7):
            part = x[:, 9_999 * column // 7 : 9_999 * (column + 1) // 7]
            assert (found[:, column, 0] == part.min(axis=1)).all() and (found[:, column, 1] == part.max(axis=1)).all()
    assert grebe.envelope(np.arange(3), 10).tolist() == [[0, 0], [1, 1], [2, 2]], "no more columns than samples"
    assert grebe.envelope(np.array([1.0, np.nan, 3.0]), 1).tolist() == [[1, 3]]
    assert grebe.envelope(ci16(np.array([1 + 2j, -3 - 4j])), 1).tolist() == [[[-3, 1]], [[-4, 2]]]
    for wrong in [(np.arange(3), 0), (np.zeros(0), 1)]:
        with pytest.raises(grebe.UsageError):
            grebe.envelope(*wrong)


def test_an_envelope_from_a_summary_is_that_of_the_samples(tmp_path: pathlib.Path) -> None:
    # Large enough for a summary.
    rng = np.random.default_rng(4)
    for name, samples in [("i16", 17_000_000), ("cu8", 17_000_000), ("cf32", 4_500_000)]:
        path = tmp_path / f"{name}.sigmf-meta"
        with grebe.publish(str(path), rate=1e6, dtype=name) as out:
            if name == "cf32":
                out.write((rng.normal(size=samples) + 1j * rng.normal(size=samples)).astype("c8"))
            else:
                out.write(rng.integers(0, 256, samples * out.dtype.itemsize, "u1").view(out.dtype))
        rec = grebe.Recording(path)
        without = rec.envelope(columns=5)
        # A recent file may still grow.
        os.utime(path.with_suffix(".sigmf-data"), (1e9, 1e9))
        rec = grebe.Recording(path)
        rec.summarize()
        assert path.with_suffix(".grebe-summary").exists()
        assert (rec.envelope(columns=5) == without).all()
        for begin, end, columns in [(0.0, 1.0, 100), (0.01013, 0.8999, 3), (0.1, 0.1003, 7), (0.5, 1.0, 1)]:
            t0, t1 = (part * len(rec) / rec.rate for part in (begin, end))
            start, stop = rec._places(t0, t1)
            bounds = start + np.arange(columns + 1) * (stop - start) // columns
            assert rec._known_extremes(bounds.tolist()) is not None, "the summary is used"
            assert (rec.envelope(t0, t1, columns) == grebe.envelope(rec[start:stop], columns)).all(), (name, columns)
        path.with_suffix(".grebe-summary").unlink()
        assert rec._known_extremes([0, 10]) is None and (rec.envelope(columns=5) == without).all()
        path.with_suffix(".sigmf-data").unlink()


def test_a_spectrogram_of_a_recording(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "two.sigmf-meta"
    with grebe.publish(str(path), rate=RATE, dtype="f32") as out:
        out.write(tone(50_000).astype("f4"))
        out.drop(999)
        out.write(tone(200_000).astype("f4"))
    rec = grebe.Recording(path)
    found = rec.spectrogram(columns=8, size=512)
    assert found.dbfs.shape == (1, 257, 8) and len(found.time) == 8
    loudest = found.frequency[found.dbfs[0].argmax(axis=0)]
    assert np.allclose(loudest[:4], 50_000, atol=1_000) and np.allclose(loudest[4:], 200_000, atol=1_000)
    assert found.dbfs[0].max() == pytest.approx(0, abs=1.5) and found.dbfs[0].min() < -60, "none reaches across the gap"
    assert np.allclose(found.dbfs[0, :, 0], grebe.spectrum(rec[: 1 << 14][0], RATE, size=512).dbfs, atol=1e-3)
    assert rec.spectrogram(columns=None, size=512).dbfs.shape == (1, 257, 256)
    assert repr(found) == "<Spectrogram 1 x 257 x 8, 0 to 500000 Hz, 0.008192 to 0.12288 s>"
    with pytest.raises(grebe.UsageError, match="fewer than a transform"):
        rec.spectrogram(0, 0.0001)


def test_a_recording_as_xarray(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("xarray")
    rec = grebe.Recording(ECG)
    array = rec.to_xarray(1, 2)
    assert array.dims == ("channel", "time") and array.shape[0] == rec.channels
    assert float(array.time[0]) == pytest.approx(1) and (array.values == rec.seconds(1, 2)).all()
    path = tmp_path / "gap.sigmf-meta"
    with grebe.publish(str(path), rate=10, dtype="ci16") as out:
        out.write(ci16(np.arange(5) * 1j))
        out.drop(5)
        out.write(ci16(np.arange(5) + 0j))
    array = grebe.Recording(path).to_xarray()
    assert array.dtype == np.complex64 and array.time.values.tolist() == [0, 0.1, 0.2, 0.3, 0.4, 1.0, 1.1, 1.2, 1.3, 1.4]


def test_events_are_where_the_signal_crosses() -> None:
    x = np.stack([tone(1_000, samples=10_000), tone(2_000, 0.5, 10_000)])
    rising = grebe.find(x, level=0.0)
    below, above = x[:, :-1] < 0, x[:, 1:] >= 0
    for channel in range(2):
        at = np.flatnonzero(below[channel] & above[channel])
        part = -x[channel, at] / (x[channel, at + 1] - x[channel, at])
        assert np.allclose(rising[channel], at + part, atol=1e-2)
    assert len(grebe.find(x, level=0.0, slope="either")[0]) == 20
    assert len(grebe.find(x, level=0.0, holdoff=1.5e-3, rate=RATE)[0]) == 5
    assert [len(it) for it in grebe.find(x, level=0.7)] == [10, 0]
    pulses = np.zeros(1_000, "i2")
    pulses[100:110], pulses[200:250], pulses[300:310] = 10, 10, 4
    assert grebe.find(pulses, "pulse", level=5, longer=20)[0].round().astype(int).tolist() == [250]
    assert grebe.find(pulses, "pulse", level=5, shorter=2e-5, rate=RATE)[0].round().astype(int).tolist() == [110]
    assert len(grebe.find(pulses, "runt", low=2, high=8)[0]) == 1
    assert len(grebe.find(pulses, "window", low=-1, high=5)[0]) == 2
    assert len(grebe.find(pulses, "dropout", level=5, longer=100)[0]) == 1
    for wrong in [dict(), dict(kind="edge"), dict(kind="runt", low=1.0), dict(kind="dropout", level=1.0), dict(kind="bump", level=1.0), dict(level=0.0, slope="up"), dict(level=0.0, rate=0.0)]:
        with pytest.raises(grebe.UsageError):
            grebe.find(x, **wrong)  # type: ignore[arg-type]
    with pytest.raises(grebe.UsageError, match="complex"):
        grebe.find(x + 1j, level=0.0)


def test_bursts_have_times_bands_and_powers() -> None:
    random, rate = np.random.default_rng(5), 1e6
    noise = random.standard_normal((2, 400_000)) + 1j * random.standard_normal((2, 400_000))
    x = (noise * np.sqrt(0.5e-6)).astype(np.complex64)
    # The first one is there from the first sample on; both frequencies of the last one are one burst.
    made = [(0, 120_000, 100e3), (200_000, 5_000, -200e3), (300_000, 40_000, 50e3), (300_000, 40_000, 80e3)]
    for start, length, frequency in made:
        x[1, start : start + length] += (0.1 * np.exp(2j * np.pi * frequency / rate * np.arange(length))).astype(np.complex64)
    none, found = grebe.find(x, "burst", rate=rate, center=433e6, above=6.0)
    assert none == [] and [it.is_cut for it in found] == [True, False, False]
    for burst, (start, length, centre_hz, dbfs) in zip(
        found, [(0, 120_000, 433.1e6, -20), (200_000, 5_000, 432.8e6, -20), (300_000, 40_000, 433.065e6, -17)]
    ):
        assert abs(burst.position - start) <= 1_024 and abs(burst.samples - length) <= 1_024
        assert abs(burst.centre_frequency_hz - centre_hz) < 200 and abs(burst.power_dbfs - dbfs) < 0.3 and burst.snr_db > 20

    def of(above: float = 6.0, **more: Any) -> list[int]:
        return [it.position for it in grebe.find(x[1], "burst", rate=rate, above=above, **more)[0]]

    all_of = [it.position for it in found]
    assert of() == all_of and of(band=(50e3, 150e3)) == [all_of[0], all_of[2]]
    assert of(longer=0.01) == [all_of[0], all_of[2]] and of(shorter=0.01) == [all_of[1]] and of(holdoff=0.25) == [all_of[0], all_of[2]]
    assert of(above=90.0) == []
    real = grebe.find(x[1].real, "burst", rate=rate, above=6.0)[0]
    assert [round(it.centre_frequency_hz, -3) for it in real] == [100e3, 200e3, 65e3]
    for wrong in (dict(level=1.0), dict(transform=1_000), dict(false_alarms=0.0), dict(rate=0.0), dict(full_scale=-1.0)):
        with pytest.raises(grebe.UsageError):
            grebe.find(x, "burst", **wrong)
    with pytest.raises(grebe.UsageError, match="only complex ones"):
        grebe.find(x.real, "burst", center=1e6)


def test_no_samples_and_sizes_that_cannot_be_are_refused_in_words(tmp_path: pathlib.Path) -> None:
    for nothing in (np.zeros(0, "i2"), np.zeros((2, 0), "f4"), np.zeros((0, 10), "i2")):
        for use in (
            lambda: grebe.measure(nothing, 1e3),
            lambda: grebe.find(nothing, level=0.0),
            lambda: grebe.spectrum(nothing, 1e3),
            lambda: grebe.spectrogram(nothing, 1e3),
        ):
            with pytest.raises(grebe.UsageError, match="has no samples"):
                use()
    path = str(tmp_path / "a.sigmf-meta")
    with grebe.publish(path, rate=1e3, dtype="i16") as out:
        out.write(np.zeros(1_000, "i2"))
    for size in (0, -1, 15, 100):
        for draw in (
            lambda: grebe.spectrogram(np.zeros(1_000), 1e3, size=size),
            lambda: grebe.spectrum(np.zeros(1_000), 1e3, size=size),
            lambda: grebe.Recording(path).spectrogram(size=size),
        ):
            with pytest.raises(grebe.UsageError, match="power of two from 16"):
                draw()
    assert grebe.find([0.0, 1.0], level=0.5, longer=np.inf, shorter=np.inf, holdoff=np.inf)[0].size == 1
