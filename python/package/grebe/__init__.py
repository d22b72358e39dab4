"""Sampled signals at the speed of the machine: streams as NumPy arrays without a copy, with their losses.

    import grebe

    for block in grebe.open("udp://:5000"):
        print(block.index, block.gap, block.samples.max())

    with grebe.publish("shm://out", rate=1e6, channels=2, dtype="i16") as out:
        out.write(array)

A URI names a stream, as on the command line: ``udp://HOST:PORT``, ``shm://NAME``, ``pipe:``, ``synth:`` or the path of a
recording. ``docs/python.md`` has recipes. The package includes the command ``grebe``; ``python -m grebe`` is the same.
"""

from __future__ import annotations

from ._analysis import Burst, Measurements, Peak, Spectrogram, Spectrum, Tone, envelope, find, measure, spectrogram, spectrum
from ._errors import Error, GapError, GoneError, LeaseWarning, Timeout, UsageError
from ._grebe import Block, Gap, Publisher, __version__
from ._graph import Graph, Running
from ._recording import Annotation, Event, Missing, Recording
from ._scope import Scope
from ._stream import Stream, open, publish
from ._transfer import LeftOut, Offer, Progress, Received, Sent, probe, receive, send, serve_probe

__all__ = [
    "Annotation",
    "Block",
    "Burst",
    "Error",
    "Event",
    "Gap",
    "GapError",
    "GoneError",
    "Graph",
    "LeaseWarning",
    "LeftOut",
    "Measurements",
    "Missing",
    "Offer",
    "Peak",
    "Progress",
    "Publisher",
    "Received",
    "Recording",
    "Running",
    "Scope",
    "Sent",
    "Spectrogram",
    "Spectrum",
    "Stream",
    "Timeout",
    "Tone",
    "UsageError",
    "__version__",
    "envelope",
    "find",
    "measure",
    "open",
    "probe",
    "publish",
    "receive",
    "send",
    "serve_probe",
    "spectrogram",
    "spectrum",
]
