"""File transfer over any distance, and measurement of a path."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal, NamedTuple

from ._errors import UsageError
from ._grebe import probe_path, receive_files, send_files, serve_probes

Path = str | PathLike[str]


class LeftOut(NamedTuple):
    """A file that was not transferred."""

    path: pathlib.Path
    why: str


@dataclass(frozen=True)
class Progress:
    """Progress of a transfer."""

    bytes: int
    """Bytes that the receiver has."""
    total_bytes: int
    """Total bytes; 0 if unknown."""
    rate: float | None
    """Bits per second that the receiver confirms; ``None`` at the receiver."""
    rtt: float | None
    """The round trip in seconds, once it is known."""
    loss: float | None
    """Share of lost packets, 0 to 1; ``None`` at the receiver."""
    limit: str | None
    """The cause that limits the rate: ``"start"``, ``"path"``, ``"queue"``, ``"round_trip"``, ``"receiver"``, ``"source"`` or
    ``"limit"``; ``None`` at the receiver."""


@dataclass(frozen=True)
class Offer:
    """A sender's offer."""

    names: list[str]
    files: int
    bytes: int


@dataclass(frozen=True)
class Sent:
    """A transfer whose receiver has verified every byte."""

    names: list[str]
    """The named files and directories."""
    files: int
    bytes: int
    resumed_bytes: int
    """Bytes that the receiver had already, from an earlier session or in files of the same content."""
    left_out: list[LeftOut]
    """Files that were not sent, with reasons."""
    whole: bool
    """Whether the receiver has everything."""
    peer: str
    seconds: float
    wire_bytes: int
    """With all headers and repeats."""
    packets: int
    lost: int


@dataclass(frozen=True)
class Received:
    """Files received whole and verified."""

    paths: list[pathlib.Path]
    """Paths of the files and directories that the sender named."""
    files: int
    bytes: int
    resumed_bytes: int
    left_out: list[LeftOut]
    """Files that could not be received, with reasons."""
    peer: str
    seconds: float


def send(
    paths: Path | Iterable[Path],
    ticket: str | None = None,
    *,
    on_ticket: Callable[[str], object] | None = None,
    listen: str | None = None,
    expires: float = 3600.0,
    mode: Literal["fair", "greedy", "background"] = "fair",
    limit: float | None = None,
    answer_within: float = 10.0,
    keep_trying: float | None = None,
    progress: Callable[[Progress], object] | None = None,
) -> Sent:
    """Sends files and directories, and returns when the receiver has verified every byte.

    ticket
        The word from ``grebe.receive`` or ``grebe recv``. Without one this side waits for the receiver, and passes its own ticket
        to ``on_ticket``. A ticket is a secret, valid once and for ``expires`` seconds.
    listen
        Address to wait at, such as ``"192.0.2.7:9000"`` or ``"[2001:db8::7]:0"``; default: any port of every IPv6 and IPv4 address.
    mode
        Share of a path with other traffic.
    limit
        Maximum bits per second on the wire.
    answer_within, keep_trying
        Seconds to wait for an answer, and for a peer that became silent.
    progress
        Called about ten times per second, by this thread. Its exceptions end the transfer, and are raised here.

    A transfer stopped by Ctrl-C or an exception resumes when the same files are sent again.
    """
    _check(ticket, on_ticket)
    named = [paths] if isinstance(paths, (str, PathLike)) else list(paths)
    found = send_files(
        [pathlib.Path(path) for path in named],
        ticket,
        listen=listen,
        expires=expires,
        mode=mode,
        limit=limit,
        answer_within=answer_within,
        keep_trying=keep_trying,
        on_ticket=on_ticket,
        progress=None if progress is None else lambda *now: progress(Progress(*now)),
    )
    return Sent(**{**found, "left_out": [LeftOut(*it) for it in found["left_out"]]})


def receive(
    directory: Path = ".",
    ticket: str | None = None,
    *,
    on_ticket: Callable[[str], object] | None = None,
    listen: str | None = None,
    expires: float = 3600.0,
    overwrite: bool = False,
    accept: Callable[[Offer], object] | None = None,
    answer_within: float = 10.0,
    keep_trying: float | None = None,
    progress: Callable[[Progress], object] | None = None,
) -> Received:
    """Receives files into a directory, which it creates if needed. Each file gets its name once it is whole and verified.

    ticket
        The word from ``grebe.send`` or ``grebe send``. Without one this side waits for the sender, and passes its own ticket to
        ``on_ticket``. A ticket is a secret, valid once and for ``expires`` seconds.
    listen
        As ``grebe.send``.
    overwrite
        Replaces files of the same names, and adds to directories that exist.
    accept
        Called with the ``Offer``, by the transfer's thread. A true result accepts it. Without it every offer is accepted.
    answer_within, keep_trying, progress
        As ``grebe.send``.
    """
    _check(ticket, on_ticket)
    found = receive_files(
        pathlib.Path(directory),
        ticket,
        listen=listen,
        expires=expires,
        overwrite=overwrite,
        answer_within=answer_within,
        keep_trying=keep_trying,
        accept=None if accept is None else lambda *offer: accept(Offer(*offer)),
        on_ticket=on_ticket,
        progress=None if progress is None else lambda *now: progress(Progress(*now)),
    )
    return Received(**{**found, "left_out": [LeftOut(*it) for it in found["left_out"]]})


def probe(
    ticket: str,
    *,
    max_rate: float | None = None,
    max_bytes: int | None = None,
    duration: float | None = None,
    allow_fast_public: bool = False,
    size: int | None = None,
    interval: float | None = None,
    tcp_writes: Sequence[int] = (65_536,),
    amounts: Sequence[int] = (1_000_000_000,),
    progress: Callable[[dict[str, Any]], object] | None = None,
) -> dict[str, Any]:
    """Measures the capacity of the path to the server of a ticket, in both directions. Returns the report of ``grebe probe
    --json``.

    ticket
        The word from ``grebe.serve_probe`` or ``grebe probe --serve`` at the other end.
    max_rate, max_bytes, duration
        Maximum bits per second, bytes and seconds. The limit for public addresses is 1 Gbit/s unless ``allow_fast_public`` is set.
    size, interval
        Bytes of each datagram; seconds between two of them, instead of a search for the highest rate.
    tcp_writes
        Bytes per write of the TCP streams; empty: none.
    amounts
        Bytes to estimate the transfer time for.
    progress
        Called with events: ``{"event": "train", "direction": "up", "result": {...}}``; there are ``"waiting"``, ``"part"``,
        ``"round_trip"`` and ``"train"``. Its exceptions end the probe.
    """
    report = probe_path(
        ticket,
        max_rate=max_rate,
        max_bytes=max_bytes,
        duration=duration,
        allow_fast_public=allow_fast_public,
        size=size,
        interval=interval,
        tcp_writes=list(tcp_writes),
        amounts=list(amounts),
        progress=_as_dicts(progress),
    )
    found: dict[str, Any] = json.loads(report)
    return found


def serve_probe(
    on_ticket: Callable[[str], object],
    *,
    listen: str | None = None,
    clients: int = 1,
    idle_timeout: float = 600.0,
    max_rate: float | None = None,
    max_bytes: int | None = None,
    duration: float = 120.0,
    progress: Callable[[dict[str, Any]], object] | None = None,
) -> int:
    """Serves probes. Returns their number after ``clients`` probes, or after ``idle_timeout`` without one.

    It listens at every address unless ``listen`` names one.

    ``on_ticket`` receives the ticket for the other end. The limits hold per probe.
    """
    return serve_probes(
        on_ticket,
        listen=listen,
        clients=clients,
        idle_timeout=idle_timeout,
        max_rate=max_rate,
        max_bytes=max_bytes,
        duration=duration,
        progress=_as_dicts(progress),
    )


def _check(ticket: str | None, on_ticket: Callable[[str], object] | None) -> None:
    if ticket is None and on_ticket is None:
        raise UsageError("give the other side's ticket, or on_ticket=print to be given one for it")


def _as_dicts(progress: Callable[[dict[str, Any]], object] | None) -> Callable[[str], object] | None:
    return None if progress is None else lambda event: progress(json.loads(event))
