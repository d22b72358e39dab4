"""Pictures of samples for notebooks: PNG, drawn by the scope's rasteriser."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ._analysis import _parts
from ._grebe import Block, draw_png, plot_columns

WIDTH = 960
LANE_HEIGHT = 180
WATERFALL_HEIGHT = 260
LANES_MAX = 16


class Lane(NamedTuple):
    """The quantity of a lane."""

    name: str
    unit: str = ""
    scale: float = 1.0
    """Units per count."""
    offset: float = 0.0
    """Value of the count 0, in units."""


def picture(
    columns: npt.NDArray[Any],
    shown: list[Lane],
    *,
    header: list[str],
    start: float,
    end: float,
    unit: str,
) -> bytes:
    """Lanes of columns (lanes x columns x 2) over an axis, as PNG."""
    left_out = len(columns) - LANES_MAX
    if left_out > 0:
        header = [*header, f"{left_out} more lanes"]
    lanes = []
    for lane, extremes in zip(shown[:LANES_MAX], columns):
        values = np.sort(extremes * lane.scale + lane.offset, axis=-1)
        rows = np.ascontiguousarray(values.T, np.float32)
        known = rows[np.isfinite(rows)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (-1.0, 1.0)
        margin = (high - low) * 0.08 or max(abs(high), 1.0) * 0.1
        lanes.append((lane.name, lane.unit, rows, low - margin, high + margin, False))
    height = 60 + LANE_HEIGHT * max(len(lanes), 1)
    return draw_png(lanes, header=header, start=start, end=end, unit=unit, width=WIDTH, height=height, dark=True)


def waterfall(
    dbfs: npt.NDArray[np.float32], bottom: float, top: float, *, header: list[str], start: float, end: float
) -> bytes:
    """Lanes of spectra (lanes x lines x times) over time, in seconds: brighter is higher, the highest frequency on top."""
    known = dbfs[np.isfinite(dbfs)]
    high = float(known.max()) if len(known) else 0.0
    low = max(float(np.percentile(known, 5)) if len(known) else -1.0, high - 100.0)
    lanes = []
    for number, lane in enumerate(dbfs[:LANES_MAX]):
        # The maximum of each cell, so that no peak is lost.
        lines, times = (np.arange(cells) * length // cells for length, cells in zip(lane.shape, _cells(lane.shape)))
        cells = np.fmax.reduceat(np.fmax.reduceat(lane[::-1], lines, axis=0), times, axis=1)
        brightness = np.nan_to_num((cells - low) / max(high - low, 1e-9), nan=0.0).clip(0.0, 1.0)
        lanes.append((str(number + 1), "Hz", np.ascontiguousarray(brightness, np.float32), bottom, top, True))
    height = 60 + WATERFALL_HEIGHT * max(len(lanes), 1)
    return draw_png(lanes, header=header, start=start, end=end, unit="s", width=WIDTH, height=height, dark=True)


def _cells(shape: tuple[int, ...]) -> tuple[int, int]:
    """The maximum that fits into a picture."""
    return min(shape[0], WATERFALL_HEIGHT), min(shape[1], plot_columns(WIDTH))


def columns_of(samples: npt.NDArray[Any], places: npt.NDArray[Any], span: int, columns: int) -> npt.NDArray[Any]:
    """Extremes of each column over a span with samples at these positions: lanes x columns x 2, NaN without samples."""
    i, q = _parts(samples)
    lanes = i if q is None else np.stack([i, q], axis=1).reshape(-1, i.shape[-1])
    columns = max(1, min(columns, span))
    found = np.full((len(lanes), columns, 2), np.nan, np.float32)
    column = places * columns // span
    begins = np.flatnonzero(np.diff(column, prepend=-1))
    if len(begins):
        at = column[begins]
        found[:, at, 0] = np.fmin.reduceat(lanes, begins, axis=-1)
        found[:, at, 1] = np.fmax.reduceat(lanes, begins, axis=-1)
    return found


def lanes_of(channels: int, is_complex: bool, description: dict[str, Any]) -> list[Lane]:
    """Names and quantities of the lanes."""
    said = description.get("grebe:channels") or []
    lanes = []
    for number in range(channels):
        channel = said[number] if number < len(said) else {}
        name, unit = str(channel.get("name") or number + 1), str(channel.get("unit") or "")
        scale, offset = float(channel.get("scale", 1.0)), float(channel.get("offset", 0.0))
        lanes += [Lane(f"{name} {part}".strip(), unit, scale, offset) for part in (("I", "Q") if is_complex else ("",))]
    return lanes


def blocks_png(blocks: list[Block], header: str) -> bytes:
    """Successive blocks of one stream, with gaps between them."""
    first = blocks[0]
    kind = first.samples.dtype
    blocks = [it for it in blocks if it.channels == first.channels and it.samples.dtype == kind and it.index >= first.index]
    samples = np.concatenate([it.samples for it in blocks], axis=1)
    places = np.concatenate([np.arange(len(it)) + it.index - first.index for it in blocks])
    span = int(places[-1]) + 1 if len(places) else 1
    is_complex = kind.names is not None or kind.kind == "c"
    columns = columns_of(samples, places, span, plot_columns(WIDTH))
    end, unit = (span / first.rate, "s") if first.rate > 0 else (float(span), "")
    lanes = lanes_of(len(samples), is_complex, first.description)
    return picture(columns, lanes, header=[header], start=0.0, end=end, unit=unit)
