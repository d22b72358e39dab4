"""Recordings: samples of any range, gaps, annotations."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ._analysis import Burst, Spectrogram, _bounds, _check_size, _frequencies, _signal, envelope
from ._errors import Error, UsageError
from ._grebe import ChannelSpectrum, plot_columns
from ._grebe import Recording as _Recording
from ._picture import WIDTH, lanes_of, picture


@dataclass(frozen=True)
class Missing:
    """A gap of a recording."""

    position: int
    """Position of the first sample after it, in the file."""
    index: int
    """Index of the first missing sample, in the recorded stream."""
    samples: int
    """Missing samples per channel."""


@dataclass(frozen=True)
class Annotation:
    """An annotation of a range of a recording."""

    start: int
    """Start position in the file, in samples per channel."""
    length: int
    """Length in samples per channel; 0: a point."""
    label: str = ""
    comment: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """All its fields, with SigMF's keys."""


@dataclass(frozen=True)
class Event:
    """A search result."""

    kind: str
    channel: str
    """Channel: ``"1"``, ``"1.magnitude"``; empty for gaps."""
    start: int
    """Position of its first sample in the file; of a gap, of the sample after it."""
    length: int
    """Length in samples per channel; 0: a moment. Of a gap, the missing samples."""
    index: int
    """Index of its first sample, in the recorded stream."""
    seconds: float | None
    """The same in seconds after the first sample, if the rate is known."""
    burst: Burst | None = None
    """Of a burst, its band and its power. Frequencies are those on the air if the recording has a centre frequency."""


class Recording(_Recording):
    """A recording: SigMF, WAV or raw samples.

    ``rec[a:b]`` returns the samples at these positions of the file, channels x samples; ``rec.seconds(t0, t1)`` those of a time
    range. ``gaps`` lists missing samples, which take no space in the file.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Channels and samples per channel."""
        return self.channels, len(self)

    @property
    def gaps(self) -> list[Missing]:
        """Gaps of the recording."""
        gaps, segments = [], self._segments()
        for before, behind in zip(segments, segments[1:]):
            end = before[2] + before[1]
            # A step back is another stream.
            if behind[2] > end:
                gaps.append(Missing(position=behind[0], index=end, samples=behind[2] - end))
        return gaps

    @property
    def annotations(self) -> list[Annotation]:
        """Annotations of the file, in its order."""
        found = []
        for start, length, text in self._annotations():
            fields: dict[str, Any] = json.loads(text)
            label, comment = str(fields.get("core:label", "")), str(fields.get("core:comment", ""))
            found.append(Annotation(start, length, label, comment, fields))
        return found

    def time(self, position: int = 0) -> np.datetime64 | None:
        """Time of the sample at this position of the file, in UTC; ``None`` if the file does not state it."""
        for start, length, _, unix_ns in self._segments():
            if start <= position < start + length and unix_ns is not None:
                later_ns = round((position - start) / self.rate * 1e9) if self.rate else 0
                return np.datetime64(unix_ns + later_ns, "ns")
        return None

    def __getitem__(self, places: slice) -> npt.NDArray[Any]:
        start, stop, step = places.indices(len(self))
        if step < 1:
            raise UsageError("a recording is read forwards: give a step of 1 or more")
        return self.read(start, max(start, stop))[:, ::step]

    def seconds(self, t0: float = 0.0, t1: float | None = None) -> npt.NDArray[Any]:
        """The samples from ``t0`` to ``t1`` seconds after the first one, in stream time: gaps count."""
        return self.read(*self._places(t0, t1))

    def envelope(self, t0: float = 0.0, t1: float | None = None, columns: int = 1000) -> npt.NDArray[Any]:
        """Extremes of ``columns`` equal ranges of the file between two times: channels x columns x 2, minimum and maximum.

        Covers every sample. NaN counts only if a range has nothing else. Complex samples have their parts in an axis after the
        channels: channels x 2 x columns x 2. With a summary (``grebe view`` and ``summarize`` write one), less than a percent of
        the file is read.
        """
        start, stop = self._places(t0, t1)
        bounds = start + np.append(_bounds(stop - start, columns), stop - start)
        known = self._known_extremes(bounds.tolist())
        if known is not None:
            channels = (self.channels, 2) if self._parts_per_channel() == 2 else (self.channels,)
            kind = self.dtype[0] if self.dtype.names else self.dtype
            return known.reshape(*channels, -1, 2).astype(np.float32 if kind.kind == "c" else kind)
        return np.stack([self._extremes(int(a), int(b)) for a, b in zip(bounds, bounds[1:])], axis=-2)

    def spectrogram(
        self,
        t0: float = 0.0,
        t1: float | None = None,
        *,
        columns: int | None = 1000,
        size: int = 1024,
        window: str = "hann",
        full_scale: float | None = None,
        center: float | None = None,
    ) -> Spectrogram:
        """Spectra of ``columns`` equal ranges of the file between two times. Other parameters as for ``grebe.spectrogram``.

        Each is the mean power of all whole transforms within its range, none of which spans a gap. ``columns=None`` returns every
        transform. ``center`` defaults to the file's centre frequency.
        """
        _check_size(size)
        start, stop = self._places(t0, t1)
        if stop - start < size:
            raise UsageError(f"{stop - start} samples are fewer than a transform of size={size}")
        if self.rate <= 0:
            raise UsageError(f"{self.path} does not say its rate: read samples, and use grebe.spectrogram")
        is_complex = self._parts_per_channel() == 2
        if center is None:
            center = float(self.description(start).get("core:frequency", 0.0)) if is_complex else 0.0
        columns = (stop - start) // size if columns is None else min(columns, (stop - start) // size)
        bounds = start + np.append(_bounds(stop - start, columns), stop - start)
        pieces = [self._mean_spectrum(int(a), int(b), size, window, full_scale) for a, b in zip(bounds, bounds[1:])]
        middle = (bounds[:-1] + bounds[1:]) / 2 - start
        frequency = _frequencies(self.rate, size, is_complex, center)
        return Spectrogram(middle / self.rate, frequency, np.stack(pieces, axis=-1))

    def to_xarray(self, t0: float = 0.0, t1: float | None = None) -> Any:
        """The samples between two times as an ``xarray.DataArray`` of channel x time, in stream seconds after its first sample.

        Complex integers become ``complex64``. Needs the package ``xarray``.
        """
        try:
            import xarray  # type: ignore[import-not-found, import-untyped, unused-ignore]
        except ImportError as error:
            raise Error("xarray is not installed: pip install xarray") from error
        start, stop = self._places(t0, t1)
        samples = self.read(start, stop)
        if samples.dtype.names:
            samples = (samples["re"] + 1j * samples["im"]).astype(np.complex64)
        segments = self._segments()
        index = np.concatenate([np.arange(length) + first for _, length, first, _ in segments])[start:stop]
        attributes = {**self.description(start), "rate": self.rate}
        time = (index - segments[0][2]) / self.rate
        names = [str(it.get("name") or number) for number, it in enumerate(attributes.get("grebe:channels", []))]
        channel = names if len(set(names)) == self.channels else list(range(self.channels))
        return xarray.DataArray(
            samples, dims=("channel", "time"), coords={"channel": channel, "time": time}, attrs=attributes
        )

    def find(
        self,
        kind: Literal["edge", "pulse", "runt", "window", "dropout", "level", "power", "silence", "burst", "gap"] = "edge",
        *,
        level: float | None = None,
        low: float | None = None,
        high: float | None = None,
        slope: Literal["rising", "falling", "either"] = "rising",
        hysteresis: float = 0.0,
        longer: float | None = None,
        shorter: float | None = None,
        holdoff: float = 0.0,
        window: float = 1e-3,
        above: float | None = None,
        band: tuple[float, float] | None = None,
        false_alarms: float | None = None,
        transform: int | None = None,
        channel: int | str | Sequence[int | str] | None = None,
        t0: float = 0.0,
        t1: float | None = None,
        count: int | None = None,
        annotate: bool = False,
        label: str | None = None,
    ) -> list[Event]:
        """Every event of a kind, in the order of the file. Runs ``grebe find``.

        kind
            As ``grebe.find``, and conditions that last: ``"level"`` (the signal stays at or above the level, or with ``slope="falling"`` below),
            ``"power"`` and ``"silence"`` (its mean power over ``window`` stays at or above a level in dB of full scale, or below), and
            ``"gap"``. ``"burst"``, with ``above``, ``band``, ``false_alarms`` and ``transform`` as in ``grebe.find``.
        level, low, high, hysteresis
            In the unit of the channel in the recording.
        longer, shorter, holdoff, window, t0, t1
            In seconds; the last two limit the search.
        channel
            Counted from 1; for complex samples their magnitude, or ``"1.i"``, ``"1.db"``, ``"1.frequency"``, ...; all by default.
        count
            Maximum number of events.
        annotate, label
            Also writes them into the recording (SigMF only). Open it again to read them.
        """
        channels = [channel] if isinstance(channel, (int, str)) else list(channel or [])
        given: dict[str, Any] = {
            "--level": level,
            "--low": low,
            "--high": high,
            "--hysteresis": hysteresis or None,
            "--longer": longer,
            "--shorter": shorter,
            "--holdoff": holdoff or None,
            "--window": window if kind in ("power", "silence") else None,
            "--above": above,
            "--false-alarms": false_alarms,
            "--start": t0 or None,
            "--duration": None if t1 is None else max(t1 - t0, 0.0),
        }
        words = ["--trigger", kind, "--slope", slope, "--json"]
        words += ["--band={:.6f},{:.6f}".format(*band)] if band is not None else []
        words += ["--transform", str(transform)] if transform is not None else []
        # The equals sign protects negative numbers.
        words += [f"{name}={value:.15f}" for name, value in given.items() if value is not None]
        words += ["--channels", ",".join(map(str, channels))] if channels else []
        words += ["--max", str(count)] if count is not None else []
        words += ["--annotate"] if annotate else []
        words += ["--label", label] if label is not None else []
        found = []
        for line in _command("find", str(self.path), *words).splitlines():
            it = json.loads(line)
            burst = Burst(**{field.name: it[field.name] for field in fields(Burst)}) if kind == "burst" else None
            place = it["position"], it["samples"], it["sample_index"], it["seconds"]
            found.append(Event(it["event"], it["channel"] or "", *place, burst))
        return found

    def annotate(
        self,
        start: int,
        length: int = 0,
        label: str | None = None,
        *,
        comment: str | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        """Adds an annotation to a range of the file. Replaces its ``.sigmf-meta`` in one step.

        ``fields`` takes more of SigMF's keys, such as ``core:freq_lower_edge``. Open the recording again to read it.
        """
        if start < 0 or length < 0 or start + length > len(self):
            raise UsageError(f"{start}, {length} long, does not lie within the {len(self)} samples of the recording")
        meta = pathlib.Path(self.path)
        if meta.suffix.lower() == ".sigmf-data":
            meta = meta.with_suffix(".sigmf-meta")
        if meta.suffix.lower() != ".sigmf-meta" or not meta.is_file():
            raise Error(f"{self.path} cannot be labelled: only a .sigmf-meta of its own can")
        content = json.loads(meta.read_text())
        annotation: dict[str, Any] = {"core:sample_start": start, "core:sample_count": length, **(fields or {})}
        if label is not None:
            annotation["core:label"] = label
        if comment is not None:
            annotation["core:comment"] = comment
        annotations = [*content.get("annotations", []), annotation]
        # In the order of SigMF; equal starts keep their order.
        content["annotations"] = sorted(annotations, key=lambda it: int(it["core:sample_start"]))
        _replace(meta, json.dumps(content, indent=2) + "\n")

    def _places(self, t0: float, t1: float | None) -> tuple[int, int]:
        """Positions in the file of a time range."""
        if self.rate <= 0:
            raise UsageError(f"{self.path} does not say its rate: use places, rec[a:b]")
        segments = self._segments()
        first = segments[0][2]

        def place(seconds: float) -> int:
            index = first + round(seconds * self.rate)
            for position, length, index_of_first, _ in segments:
                if index < index_of_first + length:
                    return position + max(0, index - index_of_first)
            return len(self)

        start = place(t0)
        stop = len(self) if t1 is None else place(t1)
        return start, max(start, stop)

    def _repr_png_(self) -> bytes:
        """The whole recording in stream time, or its beginning if that would take long."""
        segments = self._segments()
        begins = np.array([it[0] for it in segments])
        lengths = np.array([it[1] for it in segments])
        firsts = np.array([it[2] for it in segments])
        if (firsts[1:] < firsts[:-1] + lengths[:-1]).any():
            # Another stream begins within the file: its places are all there is.
            firsts = begins
        span = int(firsts[-1] + lengths[-1] - firsts[0])
        header = [repr(self)[1:-1]]
        if len(self) > _DRAWN_MAX and self._known_extremes([0, 1]) is None:
            span = _DRAWN_MAX
            header.append("the beginning: all of it is drawn where it has a summary")
        columns = max(1, min(plot_columns(WIDTH), span))
        index = firsts[0] + np.arange(columns + 1) * span // columns
        # Position in the file of the first sample at or after each index.
        number = np.searchsorted(firsts, index, side="right") - 1
        bounds = begins[number] + np.minimum(index - firsts[number], lengths[number])
        known = self._known_extremes(bounds.tolist())
        if known is None:
            nothing = np.full(self.channels * self._parts_per_channel() * 2, np.nan).reshape(-1, 2)
            pairs = zip(bounds.tolist(), bounds[1:].tolist())
            found = [self._extremes(a, b).reshape(-1, 2) if b > a else nothing for a, b in pairs]
            known = np.stack(found, axis=1)
        lanes = np.asarray(known, np.float32).reshape(-1, columns, 2)
        shown = lanes_of(self.channels, self._parts_per_channel() == 2, self.description())
        end, unit = (span / self.rate, "s") if self.rate > 0 else (float(span), "")
        return picture(lanes, shown, header=header, start=0.0, end=end, unit=unit)

    def _parts_per_channel(self) -> int:
        return 2 if self.dtype.names or self.dtype.kind == "c" else 1

    def _mean_spectrum(
        self, start: int, stop: int, size: int, window: str, full_scale: float | None
    ) -> npt.NDArray[np.float32]:
        """Mean power of the lines of every channel, over all transforms of a range of the file."""
        channels: list[ChannelSpectrum] = []
        for position, length, first, _ in self._segments():
            begin, end = max(start, position), min(stop, position + length)
            for at in range(begin, end, _STEP):
                i, q, _, scale = _signal(self.read(at, min(at + _STEP, end)), full_scale)
                if not channels:
                    hop = size // 2
                    channels = [
                        ChannelSpectrum(size, q is not None, window, hop, scale, True) for _ in range(self.channels)
                    ]
                for number, channel in enumerate(channels):
                    index = at - position + first
                    channel.append(index, i[number : number + 1], None if q is None else q[number : number + 1])
        dbfs = np.concatenate([channel.dbfs() for channel in channels])
        dbfs[[channel.counts()[0] == 0 for channel in channels]] = np.nan
        return dbfs

    def _extremes(self, start: int, stop: int) -> npt.NDArray[Any]:
        """The minimum and maximum of each channel, or of each of its parts, in the last axis."""
        parts: npt.NDArray[Any] | None = None
        for at in range(start, stop, _STEP):
            extremes = envelope(self.read(at, min(at + _STEP, stop)), 1)[..., 0, :]
            if parts is not None:
                extremes[..., 0] = np.fmin(extremes[..., 0], parts[..., 0])
                extremes[..., 1] = np.fmax(extremes[..., 1], parts[..., 1])
            parts = extremes
        assert parts is not None, "a column has a sample"
        return parts


def _command(*words: str) -> str:
    """Output of a grebe command; its errors as exceptions."""
    # Without the path of this folder, which may contain a file called grebe.
    command = [sys.executable, "-P", "-m", "grebe", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            said, errors = process.communicate()
        except BaseException:
            process.kill()
            raise
    if process.returncode == 0:
        return said
    # Usage follows after an empty line.
    what = " ".join(errors.strip().partition("\n\n")[0].split())
    what = what.removeprefix("grebe: ").removeprefix("error: ") or f"grebe {words[0]} failed"
    raise (UsageError if process.returncode == 2 else Error)(what)


def _replace(path: pathlib.Path, text: str) -> None:
    """Replaces a file in one step."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=path.name, suffix=".part", delete=False) as file:
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, path.stat().st_mode & 0o777)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


_STEP = 1 << 20
# Samples per channel that a picture of a recording reads at most.
_DRAWN_MAX = 1 << 26
