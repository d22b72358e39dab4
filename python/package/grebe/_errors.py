"""Exceptions, with the messages of the command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


class Error(Exception):
    """An error of grebe. The message states the problem and a remedy."""


class UsageError(Error, ValueError):
    """An invalid name or value."""


class GoneError(Error, ConnectionError):
    """The other side is silent or gone, without an end of stream."""


class Timeout(Error, TimeoutError):
    """Nothing arrived in time. The stream continues: read again."""


class GapError(Error):
    """Samples are missing within the requested range; the next read continues after the gap."""

    samples: np.ndarray[Any, Any]
    """The samples before the gap, channels x samples."""
    index: int
    """Index of the first sample after the gap."""
    missing: int
    """Missing samples per channel."""
    source: int
    """Samples that the producer never made."""
    transit: int
    """Samples lost in transit."""
    reader: int
    """Samples dropped here, because this reader was too slow."""


class LeaseWarning(RuntimeWarning):
    """The program keeps more blocks than the stream can lend; from now on it gets copies."""


def _gap_error(found: tuple[np.ndarray[Any, Any], int, tuple[int, int, int]]) -> GapError:
    samples, index, (source, transit, reader) = found
    missing = source + transit + reader
    error = GapError(
        f'{missing} samples are missing before sample {index} ({source} at the source, {transit} in transit, {reader} at this '
        f'reader): gaps="zero", "nan" or "skip" reads on'
    )
    error.samples, error.index, error.missing = samples, index, missing
    error.source, error.transit, error.reader = source, transit, reader
    return error
