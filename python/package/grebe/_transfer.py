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
    """Where a transfer stands."""

    bytes: int
    """Bytes that the receiver has."""
    total_bytes: int
    """All of them; 0: not known yet."""
    rate: float | None
    """Bits per second that the receiver confirms; ``None`` at the receiver."""
    rtt: float | None
    """The round trip in seconds, once it is known."""
    loss: float | None
    """Part of the packets that were lost, 0 to 1; ``None`` at the receiver."""
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
    """The files and directories that were named."""
    files: int
    bytes: int
    resumed_bytes: int
    """Those that the receiver had already, from an earlier session or in files of the same content."""
    left_out: list[LeftOut]
    """Files that were not sent, with reasons."""
    whole: bool
    """Whether the receiver has all that was to be sent."""
    peer: str
    seconds: float
    wire_bytes: int
    """With all headers and repeats."""
    packets: int
    lost: int


@dataclass(frozen=True)
class Received:
    """Files that arrived whole, and were verified."""

    paths: list[pathlib.Path]
    """The files and directories that the sender named, where they are now."""
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
        The word that ``grebe.receive`` or ``grebe recv`` gave out. Without one this side waits for the receiver, and gives its own
        ticket to ``on_ticket``; it is a secret, good once and for ``expires`` seconds.
    listen
        Where to wait, as ``"192.0.2.7:9000"`` or ``"[2001:db8::7]:0"``; else at any port of every address, of IPv6 and IPv4.
    mode
        How much of a shared path to take.
    limit
        Bits per second on the wire at most.
    answer_within, keep_trying
        Seconds to wait for an answer, and for one that was there and fell silent.
    progress
        Is called about ten times per second, by this thread. What it raises ends the transfer, and is raised here.

    A transfer that is stopped, by Ctrl-C or an exception, goes on where it was when the same files are sent again.
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
    """Receives files into a directory, which is made where it is missing; each has its name once it is whole and verified.

    ticket
        The word that ``grebe.send`` or ``grebe send`` gave out. Without one this side waits for the sender, and gives its own ticket
        to ``on_ticket``; it is a secret, good once and for ``expires`` seconds.
    listen
        As ``grebe.send``.
    overwrite
        Replaces files of the same names, and adds to directories that exist.
    accept
        Is called with the ``Offer``, by the transfer's own thread: what is true takes it. Without it everything is taken.
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
    """Measures what the path to the server of a ticket carries, both ways: what ``grebe probe --json`` prints.

    ticket
        The word that ``grebe.serve_probe`` or ``grebe probe --serve`` gave out at the other end.
    max_rate, max_bytes, duration
        Bits per second, bytes and seconds that it may take at most; an address that is not private gets 1 Gbit/s unless
        ``allow_fast_public`` is said, too.
    size, interval
        Bytes of each datagram; seconds between two of them, instead of looking for the highest rate.
    tcp_writes
        Bytes per write of the TCP streams; empty: none.
    amounts
        Bytes whose transfer time is to be told.
    progress
        Is called with what happens: ``{"event": "train", "direction": "up", "result": {...}}``; there are ``"waiting"``, ``"part"``,
        ``"round_trip"`` and ``"train"``. What it raises ends the probe.
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
    """Answers probes, and returns how many there were: after so many ``clients``, or so long without one.

    It listens at every address unless ``listen`` names one.

    ``on_ticket`` is given the ticket that the other end needs. The limits are those of each probe.
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
