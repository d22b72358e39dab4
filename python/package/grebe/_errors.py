"""One family of exceptions, with the words of the command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


class Error(Exception):
    """An error of grebe. The message states the problem and a remedy."""


class UsageError(Error, ValueError):
    """A name or a value that cannot be."""


class GoneError(Error, ConnectionError):
    """The other side fell silent or is gone, without an end of stream."""


class Timeout(Error, TimeoutError):
    """Nothing came in time. The stream goes on: ask again."""


class GapError(Error):
    """Samples are missing within the requested range; the next read continues after the gap."""

    samples: np.ndarray[Any, Any]
    """The samples before the gap, channels x samples."""
    index: int
    """Index of the first sample behind the gap."""
    missing: int
    """Samples per channel that are missing."""
    source: int
    """Those that the producer never made."""
    transit: int
    """Samples lost in transit."""
    reader: int
    """Those that were dropped here, because this reader was too slow."""


class LeaseWarning(RuntimeWarning):
    """A program keeps more blocks than their stream can spare; from now on it gets copies."""


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
