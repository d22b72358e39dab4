"""Analysis of arrays with the scope's code: measurements, spectra, envelopes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from ._errors import UsageError
from ._grebe import ChannelSpectrum, burst_row, measure_rows, plot_columns, trigger_row

Floats = npt.NDArray[np.float64]
_LONGEST_S = 60.0
"""A longer signal becomes a part of the noise floor."""


@dataclass(frozen=True)
class Measurements:
    """Measurements of every channel: arrays of the channels' shape, or a number for one channel without an axis.

    NaN if a signal lacks a quantity (no edges, or an unknown rate). Terms and methods follow IEEE Std 181.
    """

    peak_to_peak: Floats
    """Largest minus smallest sample."""
    min: Floats
    max: Floats
    mean: Floats
    rms: Floats
    """Root of the mean square."""
    ac_rms: Floats
    """The same without the mean."""
    base: Floats
    """The level the signal rests at when low."""
    top: Floats
    """The level the signal rests at when high."""
    frequency: Floats
    """Cycles per second."""
    period: Floats
    """Seconds per cycle."""
    duty: Floats
    """Part of a cycle above the middle level, 0 to 1."""
    rise_time: Floats
    """Seconds from 10 % to 90 %."""
    fall_time: Floats
    """Seconds from 90 % to 10 %."""
    overshoot: Floats
    """Distance of the largest sample above the top, relative to top minus base."""
    positive_width: Floats
    """Seconds from a rising to the next falling edge."""
    negative_width: Floats
    """Seconds from a falling to the next rising edge."""


class Peak(NamedTuple):
    """A peak of a spectrum, found between lines."""

    frequency: float
    """Hertz."""
    dbfs: float


@dataclass(frozen=True)
class Burst:
    """Energy over the noise in time and frequency, with the fields of ``grebe find --trigger burst``."""

    position: int
    """Its first sample."""
    samples: int
    """Its length."""
    centre_frequency_hz: float
    """Mean frequency of its power."""
    bandwidth_hz: float
    """Width of the band that holds 99 % of its power."""
    power_dbfs: float
    """Mean power without the noise."""
    snr_db: float
    """That power over the noise in its bandwidth."""
    is_cut: bool
    """Samples are missing before or after it, and so a part of it."""


class Tone(NamedTuple):
    """Quality of a tone, by IEEE Std 1241."""

    fundamental: Peak
    snr_db: float
    """Fundamental relative to everything except harmonics and offset."""
    sinad_db: float
    """Fundamental relative to everything except the offset."""
    thd_db: float | None
    """Sum of all harmonics, relative to the fundamental; ``None`` if noise hides them."""
    enob: float
    """Bits of an ideal converter of this full scale that adds as much noise and distortion."""


class Spectrum:
    """The mean power spectrum of every channel, in dBFS: 0 is a sine of full scale, or a complex tone of that magnitude.

    Levels are those of tones: the same with every window, because the window's gain is divided out.
    """

    def __init__(
        self, channels: list[ChannelSpectrum], shape: tuple[int, ...], frequency: Floats, rate: float, center: float
    ) -> None:
        self._channels, self._shape, self._rate, self._center = channels, shape, rate, center
        self.frequency = frequency
        """Of each line, in hertz."""
        self.dbfs: npt.NDArray[np.float32] = np.concatenate([channel.dbfs() for channel in channels]).reshape(*shape, -1)
        """The channels' shape x lines."""

    @property
    def transforms(self) -> int:
        """Transforms in the mean of each channel; the minimum if channels have NaN samples."""
        return min(channel.counts()[0] for channel in self._channels)

    def peaks(self, count: int = 5, floor: float = -120.0, channel: int = 0) -> list[Peak]:
        """The highest peaks above a level in dBFS, highest first, with an interpolated frequency."""
        return [self._peak(peak) for peak in self._channels[channel].peaks(count, floor)]

    def power(self, low: float, high: float) -> Floats:
        """The power between two frequencies in hertz, in dBFS, of every channel."""
        band = self._cycles(low), self._cycles(high)
        return np.array([channel.band_power_dbfs(*band) for channel in self._channels]).reshape(self._shape)

    def occupied_band(self, part: float = 0.99, channel: int = 0) -> tuple[float, float] | None:
        """Frequency range in hertz that holds this part of the power; ``None`` without power."""
        band = self._channels[channel].occupied_band(part, -0.5, 0.5)
        return None if band is None else (self._hertz(band[0]), self._hertz(band[1]))

    def tone(self, harmonics: int = 5, channel: int = 0) -> Tone | None:
        """Quality of the highest tone, with its harmonics up to this number; ``None`` without a tone.

        ``window="blackman_harris"`` resolves 90 dB.
        """
        found = self._channels[channel].tone_quality(harmonics)
        return None if found is None else Tone(self._peak(found[0]), *found[1:])

    def _repr_png_(self) -> bytes:
        from ._picture import WIDTH, Lane, picture

        lanes = self.dbfs.reshape(-1, self.dbfs.shape[-1])
        columns = envelope(lanes, plot_columns(WIDTH))
        shown = [Lane(str(number + 1), "dBFS") for number in range(len(lanes))]
        low, high = float(self.frequency[0]), float(self.frequency[-1])
        return picture(columns, shown, header=[repr(self)[1:-1]], start=low, end=high, unit="Hz")

    def __repr__(self) -> str:
        low, high = self.frequency[0], self.frequency[-1]
        return f"<Spectrum {self._shape} x {len(self.frequency)} lines, {low:g} to {high:g} Hz, {self.transforms} transforms>"

    def _hertz(self, cycles_per_sample: float) -> float:
        return cycles_per_sample * self._rate + self._center

    def _cycles(self, hertz: float) -> float:
        return (hertz - self._center) / self._rate

    def _peak(self, peak: tuple[float, float]) -> Peak:
        return Peak(self._hertz(peak[0]), peak[1])


@dataclass(frozen=True)
class Spectrogram:
    """Successive spectra."""

    time: Floats
    """Of the middle of each transform, in seconds from the first sample."""
    frequency: Floats
    """Of each line, in hertz."""
    dbfs: npt.NDArray[np.float32]
    """The channels' shape x lines x times; NaN for missing and NaN samples."""

    def __repr__(self) -> str:
        low, high = self.frequency[0], self.frequency[-1]
        shape = " x ".join(map(str, self.dbfs.shape))
        return f"<Spectrogram {shape}, {low:g} to {high:g} Hz, {self.time[0]:g} to {self.time[-1]:g} s>"

    def _repr_png_(self) -> bytes:
        from ._picture import waterfall

        lanes = self.dbfs.reshape(-1, *self.dbfs.shape[-2:])
        low, high = float(self.frequency[0]), float(self.frequency[-1])
        header = [repr(self)[1:-1]]
        return waterfall(lanes, low, high, header=header, start=float(self.time[0]), end=float(self.time[-1]))


def measure(samples: npt.ArrayLike, rate: float = 0.0) -> Measurements:
    """Measures every channel of an array whose last axis is time, with ``rate`` samples per second (0: no times are known).

    Values are those of the array, in single precision. Accepts a block's ``samples``. For complex samples, measure ``abs(x)`` or
    their parts.
    """
    array = np.asarray(samples)
    if _parts(array)[1] is not None:
        raise UsageError("complex samples have no levels and no edges: measure abs(x), or one of their parts")
    is_short = array.dtype in (np.int8, np.uint8, np.int16)
    rows, shape = _rows(array, np.int16 if is_short else np.float32)
    values = np.array(measure_rows(rows, rate)).reshape(len(rows), -1)
    return Measurements(*(column.reshape(shape)[()] for column in values.T))


@overload
def find(
    samples: npt.ArrayLike,
    kind: Literal["edge", "pulse", "runt", "window", "dropout"] = "edge",
    *,
    level: float | None = None,
    low: float | None = None,
    high: float | None = None,
    slope: Literal["rising", "falling", "either"] = "rising",
    hysteresis: float = 0.0,
    longer: float = 0.0,
    shorter: float | None = None,
    holdoff: float = 0.0,
    rate: float = 1.0,
) -> list[Floats]: ...


@overload
def find(
    samples: npt.ArrayLike,
    kind: Literal["burst"],
    *,
    above: float | None = None,
    band: tuple[float, float] | None = None,
    false_alarms: float = 1e-7,
    transform: int = 1024,
    center: float = 0.0,
    full_scale: float | None = None,
    longer: float = 0.0,
    shorter: float | None = None,
    holdoff: float = 0.0,
    rate: float = 1.0,
) -> list[list[Burst]]: ...


def find(
    samples: npt.ArrayLike,
    kind: Literal["edge", "pulse", "runt", "window", "dropout", "burst"] = "edge",
    *,
    level: float | None = None,
    low: float | None = None,
    high: float | None = None,
    slope: Literal["rising", "falling", "either"] = "rising",
    hysteresis: float = 0.0,
    above: float | None = None,
    band: tuple[float, float] | None = None,
    false_alarms: float = 1e-7,
    transform: int = 1024,
    center: float = 0.0,
    full_scale: float | None = None,
    longer: float = 0.0,
    shorter: float | None = None,
    holdoff: float = 0.0,
    rate: float = 1.0,
) -> list[Floats] | list[list[Burst]]:
    """Triggers in every channel of an array whose last axis is time: an array of positions per channel, in samples with fraction.
    Of bursts, a list of them per channel, in the order of their starts.

    kind
        ``"edge"``: the level is crossed. ``"pulse"``: a pulse of a width ends (``longer``, ``shorter``). ``"runt"``: a pulse passes one of
        two levels and not the other (``low``, ``high``). ``"window"``: the range is left, or with ``slope="falling"`` entered.
        ``"dropout"``: the level is not crossed for a time (``longer``). ``"burst"``: energy over the noise, in time and frequency;
        only ``above`` to ``rate`` apply to it, and samples may be complex.
    slope
        Direction of the crossing; ``"falling"`` also means pulses below.
    hysteresis
        Distance that the signal must go back before the next crossing counts.
    longer, shorter, holdoff
        In seconds at ``rate`` samples per second; in samples without a rate. ``holdoff`` is the hold-off per channel.
    above
        Minimum signal-to-noise ratio of a burst in dB.
    band
        Frequencies in hertz in which the centre of a burst lies.
    false_alarms
        Maximum false alarms per line of a transform of noise, 1e-15 to 0.01.
    transform
        Samples per transform, a power of two from 64 to 16384: shorter ones resolve times, longer ones frequencies.
    center, full_scale
        As for ``spectrum``.

    For levels of complex samples, search ``abs(x)`` or one of their parts.
    """
    if not (0.0 < rate < np.inf and longer >= 0 and holdoff >= 0 and (shorter is None or shorter >= 0)):
        raise UsageError("rate, longer, shorter and holdoff are not negative, and rate is not 0")
    least, most = max(_samples(longer, rate), 1), 2**64 - 1 if shorter is None else _samples(shorter, rate)
    if kind == "burst":
        if (level, low, high, slope, hysteresis) != (None, None, None, "rising", 0.0):
            raise UsageError("a burst crosses no level: give above, the minimum signal-to-noise ratio in dB")
        i, q, _, full_scale = _signal(samples, full_scale)
        if center and q is None:
            raise UsageError("real samples have their 0 Hz at 0 Hz: only complex ones have a center")
        found = []
        for number in range(len(i)):
            row = slice(number, number + 1)
            bursts = burst_row(
                i[row],
                None if q is None else q[row],
                size=transform,
                false_alarms=false_alarms,
                full_scale=full_scale,
                longest=_samples(_LONGEST_S, rate) if rate != 1.0 else 2**62,
            )
            low_hz, high_hz = band or (-np.inf, np.inf)
            there = [
                Burst(at, length, f * rate + center, w * rate, power, snr, is_cut)
                for at, length, f, w, power, snr, is_cut in sorted(bursts)
            ]
            there = [it for it in there if least <= it.samples <= most and low_hz <= it.centre_frequency_hz <= high_hz]
            there = [it for it in there if above is None or it.snr_db >= above]
            found.append(_held_off(there, _samples(holdoff, rate)))
        return found
    array = np.asarray(samples)
    if _parts(array)[1] is not None:
        raise UsageError("complex samples cross no level: search abs(x), or one of their parts")
    if kind in ("runt", "window"):
        if low is None or high is None:
            raise UsageError(f"kind={kind!r} needs low and high")
    elif level is None:
        raise UsageError(f"kind={kind!r} needs a level")
    elif kind == "dropout" and longer <= 0:
        raise UsageError("kind='dropout' needs longer, the time without a crossing")
    rows, _ = _rows(array, np.float32)
    return [
        np.array(
            trigger_row(
                rows[number : number + 1],
                kind,
                slope=slope,
                level=level or 0.0,
                low=low or 0.0,
                high=high or 0.0,
                hysteresis=hysteresis,
                least=least,
                most=most,
                holdoff=_samples(holdoff, rate),
            )
        )
        for number in range(len(rows))
    ]


def _held_off(bursts: list[Burst], samples: int) -> list[Burst]:
    kept: list[Burst] = []
    for burst in bursts:
        if not kept or burst.position - kept[-1].position >= samples:
            kept.append(burst)
    return kept


def spectrum(
    samples: npt.ArrayLike,
    rate: float,
    *,
    size: int | None = None,
    window: str = "hann",
    hop: int | None = None,
    full_scale: float | None = None,
    center: float = 0.0,
) -> Spectrum:
    """The mean power spectrum of every channel of an array whose last axis is time (Welch's method).

    size
        Samples per transform, a power of two from 16 to 2^22; the largest that fits, up to 65,536, by default.
    window
        ``"rectangular"``, ``"hann"``, ``"hamming"``, ``"blackman"``, ``"blackman_harris"`` or ``"flat_top"``.
    hop
        Samples from one transform to the next; half the size by default.
    full_scale
        The amplitude of 0 dBFS; that of the array's type by default: 32768 of ``int16``, 1 of floats.
    center
        Frequency in hertz of 0 Hz in complex samples: a receiver's centre frequency.
    """
    i, q, shape, full_scale = _signal(samples, full_scale)
    size = size if size is not None else _fitting(i.shape[-1])
    frequency = _frequencies(rate, size, q is not None, center)
    channels = []
    for number in range(len(i)):
        channel = ChannelSpectrum(size, q is not None, window, size // 2 if hop is None else hop, full_scale, True)
        channel.append(0, i[number : number + 1], None if q is None else q[number : number + 1])
        channels.append(channel)
    if i.shape[-1] < size:
        raise UsageError(f"{i.shape[-1]} samples are fewer than a transform of size={size}")
    return Spectrum(channels, shape, frequency, rate, center)


def spectrogram(
    samples: npt.ArrayLike,
    rate: float,
    *,
    size: int = 1024,
    window: str = "hann",
    hop: int | None = None,
    full_scale: float | None = None,
    center: float = 0.0,
) -> Spectrogram:
    """The spectrum of every transform. Parameters as for ``spectrum``."""
    i, q, shape, full_scale = _signal(samples, full_scale)
    frequency = _frequencies(rate, size, q is not None, center)
    if i.shape[-1] < size:
        raise UsageError(f"{i.shape[-1]} samples are fewer than a transform of size={size}")
    hop = size // 2 if hop is None else hop
    rows = []
    for number in range(len(i)):
        channel = ChannelSpectrum(size, q is not None, window, hop, full_scale, False)
        rows.append(channel.each(i[number : number + 1], None if q is None else q[number : number + 1]))
    dbfs: npt.NDArray[np.float32] = np.stack(rows).swapaxes(1, 2)
    time: Floats = (np.arange(dbfs.shape[-1], dtype=np.float64) * hop + size / 2) / rate
    return Spectrogram(time, frequency, dbfs.reshape(*shape, *dbfs.shape[1:]))


def envelope(samples: npt.ArrayLike, columns: int = 1000) -> npt.NDArray[Any]:
    """Extremes of ``columns`` equal ranges of an array whose last axis is time: the channels' shape x columns x 2, minimum and
    maximum, of the array's type.

    Covers every sample. NaN counts only if a range has nothing else. Complex samples have their parts in an axis after the
    channels.
    """
    array = np.asarray(samples)
    i, q = _parts(array)
    array = i if q is None else np.stack([i, q], axis=-2)
    bounds = _bounds(array.shape[-1], columns)
    return np.stack([np.fmin.reduceat(array, bounds, axis=-1), np.fmax.reduceat(array, bounds, axis=-1)], axis=-1)


def _bounds(samples: int, columns: int) -> npt.NDArray[np.intp]:
    """Start of each column; at most one per sample."""
    if columns < 1:
        raise UsageError(f"{columns} columns: give 1 or more")
    if samples == 0:
        raise UsageError("no samples to draw")
    columns = min(columns, samples)
    return (np.arange(columns) * samples // columns).astype(np.intp)


def _parts(array: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
    """I and Q of complex samples; others unchanged."""
    if array.ndim == 0:
        raise UsageError("an array of samples is needed, whose last axis is time")
    if array.dtype.names == ("re", "im"):
        return array["re"], array["im"]
    if np.iscomplexobj(array):
        return array.real, array.imag
    if array.dtype.kind not in "iuf":
        raise UsageError(f"{array.dtype} is not a type of samples")
    return array, None


def _samples(seconds: float, rate: float) -> int:
    """As many as no array has, where it is longer."""
    return round(min(seconds * rate, 2.0**62))


def _rows(array: npt.NDArray[Any], kind: npt.DTypeLike) -> tuple[npt.NDArray[Any], tuple[int, ...]]:
    """Rows of numbers of a type, one a channel, and the channels' shape."""
    shape = array.shape[:-1]
    if array.size == 0:
        raise UsageError("the array has no samples")
    return np.ascontiguousarray(array, kind).reshape(-1, array.shape[-1]), shape


def _signal(
    samples: npt.ArrayLike, full_scale: float | None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None, tuple[int, ...], float]:
    """Rows of I, of Q where samples are complex, the channels' shape, and the amplitude of 0 dBFS."""
    i, q = _parts(np.asarray(samples))
    if full_scale is None:
        full_scale = 1.0 if i.dtype.kind == "f" else float(2 ** (8 * i.dtype.itemsize - 1))
    elif not (0.0 < full_scale < np.inf):
        raise UsageError(f"full_scale={full_scale}: give the amplitude of 0 dBFS")
    # The middle of complex samples without a sign lies between two of them.
    zero = np.float32(127.5 if q is not None and i.dtype == np.uint8 else 0.0)
    rows, shape = _rows(i, np.float32)
    return rows - zero if zero else rows, None if q is None else _rows(q, np.float32)[0] - zero, shape, full_scale


def _fitting(samples: int) -> int:
    """The largest transform that the samples fill."""
    return int(min(max(1 << (max(samples, 1).bit_length() - 1), 16), 1 << 16))


def _check_size(size: int) -> None:
    if not 16 <= size <= 1 << 22 or size & (size - 1):
        raise UsageError(f"size={size}: give a power of two from 16 to 2^22")


def _frequencies(rate: float, size: int, is_complex: bool, center: float) -> Floats:
    if not (0.0 < rate < np.inf):
        raise UsageError(f"rate={rate}: give samples per second")
    _check_size(size)
    if is_complex:
        lines: Floats = (np.arange(size, dtype=np.float64) - size // 2) * (rate / size) + center
        return lines
    if center:
        raise UsageError("real samples have their 0 Hz at 0 Hz: only complex ones have a center")
    lines = np.arange(size // 2 + 1, dtype=np.float64) * (rate / size)
    return lines
