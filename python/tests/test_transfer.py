"""Files sent and received, and paths probed, between threads and processes."""

from __future__ import annotations

import os
import pathlib
import queue
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import grebe
import pytest

LOCAL = "127.0.0.1:0"


def beside(work: Callable[[Callable[[str], object]], Any]) -> tuple[str, Future[Any]]:
    """Starts a listening side. Returns its ticket and its future result."""
    tickets: queue.Queue[str] = queue.Queue()
    executor = ThreadPoolExecutor(1)
    future = executor.submit(work, tickets.put)
    executor.shutdown(wait=False)
    while True:
        try:
            return tickets.get(timeout=0.2), future
        except queue.Empty:
            if future.done():
                future.result()


@pytest.fixture
def files(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "from"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.bin").write_bytes(os.urandom(3_000_000))
    (folder / "deep/b.bin").write_bytes(b"b" * 10_000)
    return folder


def same(a: pathlib.Path, b: pathlib.Path) -> bool:
    names = sorted(str(path.relative_to(a)) for path in a.rglob("*"))
    there = sorted(str(path.relative_to(b)) for path in b.rglob("*"))
    return names == there and all((a / it).is_dir() or (a / it).read_bytes() == (b / it).read_bytes() for it in names)


def test_without_an_address_both_families_are_listened_to(tmp_path: pathlib.Path) -> None:
    (tmp_path / "one").write_bytes(b"1" * 50_000)
    ticket, receiving = beside(lambda tell: grebe.receive(tmp_path / "into", on_ticket=tell))
    assert grebe.send(tmp_path / "one", ticket).whole
    receiving.result(60)
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    ticket, receiving = beside(lambda tell: grebe.receive(tmp_path / "again", on_ticket=tell, listen="[::1]:0"))
    assert grebe.send(tmp_path / "one", ticket).peer.startswith("[::1]:")
    receiving.result(60)


def test_a_folder_goes_either_way(files: pathlib.Path, tmp_path: pathlib.Path) -> None:
    seen: list[grebe.Progress] = []
    into = tmp_path / "into"
    offers: list[grebe.Offer] = []

    def accept(offer: grebe.Offer) -> bool:
        offers.append(offer)
        return True

    ticket, receiving = beside(lambda tell: grebe.receive(into, on_ticket=tell, listen=LOCAL, accept=accept))
    sent = grebe.send(files, ticket, progress=seen.append)
    received = receiving.result(60)
    assert sent.whole and sent.files == 2 and sent.bytes == 3_010_000 and sent.left_out == []
    assert received.paths == [into / "from"] and same(files, into / "from")
    assert offers == [grebe.Offer(["from"], 2, 3_010_000)]
    assert all(0 <= now.bytes <= now.total_bytes == 3_010_000 and now.limit for now in seen)

    other = tmp_path / "other"
    ticket, sending = beside(lambda tell: grebe.send([files / "a.bin"], on_ticket=tell, listen=LOCAL, mode="background"))
    arrived: list[grebe.Progress] = []
    received = grebe.receive(other, ticket, progress=arrived.append)
    assert sending.result(60).whole and (other / "a.bin").read_bytes() == (files / "a.bin").read_bytes()
    assert received.left_out == [] and received.files == 1 and received.bytes == 3_000_000


def test_an_exception_of_the_progress_ends_both_sides_and_what_came_is_kept(
    files: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    class Enough(Exception):
        pass

    def stop(_: grebe.Progress) -> None:
        raise Enough

    into = tmp_path / "into"
    ticket, receiving = beside(lambda tell: grebe.receive(into, on_ticket=tell, listen=LOCAL))
    with pytest.raises(Enough):
        # So slow that there is progress to be told before the end.
        grebe.send(files, ticket, limit=5e6, progress=stop)
    with pytest.raises(grebe.GoneError, match="the other side ended the transfer|the other end stopped"):
        receiving.result(60)
    ticket, receiving = beside(lambda tell: grebe.receive(into, on_ticket=tell, listen=LOCAL))
    assert grebe.send(files, ticket).whole and receiving.result(60) and same(files, into / "from")


def test_who_does_not_accept_says_so(files: pathlib.Path, tmp_path: pathlib.Path) -> None:
    ticket, receiving = beside(lambda tell: grebe.receive(tmp_path / "no", on_ticket=tell, listen=LOCAL, accept=lambda _: False))
    with pytest.raises(grebe.GoneError, match="declined"):
        grebe.send(files, ticket)
    with pytest.raises(grebe.Error, match="declined"):
        receiving.result(60)

    def broken(_: grebe.Offer) -> bool:
        raise ZeroDivisionError("asked too much")

    ticket, receiving = beside(lambda tell: grebe.receive(tmp_path / "no", on_ticket=tell, listen=LOCAL, accept=broken))
    with pytest.raises(grebe.GoneError):
        grebe.send(files, ticket)
    with pytest.raises(ZeroDivisionError, match="asked too much"):
        receiving.result(60)


def test_what_cannot_be_says_why(files: pathlib.Path, tmp_path: pathlib.Path) -> None:
    told: list[str] = []
    tell = told.append
    mistakes: list[Callable[[], object]] = [
        lambda: grebe.send(files),
        lambda: grebe.send(files, "grebenonsense"),
        lambda: grebe.receive(tmp_path, "grebenonsense"),
        lambda: grebe.send(files, on_ticket=tell, mode="fast"),  # type: ignore[arg-type]
        lambda: grebe.send(files, on_ticket=tell, listen="nowhere"),
        lambda: grebe.send(files, on_ticket=tell, limit=-1.0),
        lambda: grebe.probe("grebenonsense"),
        lambda: grebe.serve_probe(tell, listen="nowhere"),
    ]
    for wrong in mistakes:
        with pytest.raises(grebe.UsageError) as refused:
            wrong()
        assert "grebenonsense" not in str(refused.value), "a ticket is a secret"
    with pytest.raises(grebe.Error, match="no-such-file"):
        grebe.send(tmp_path / "no-such-file", on_ticket=tell, listen=LOCAL)
    with pytest.raises(grebe.GoneError, match="the ticket expired unused"):
        grebe.receive(tmp_path, on_ticket=tell, listen=LOCAL, expires=1.0)
    words: list[str] = []

    def leave(word: str) -> None:
        words.append(word)
        raise InterruptedError

    with pytest.raises(InterruptedError):
        grebe.receive(tmp_path, on_ticket=leave, listen=LOCAL)
    with pytest.raises(grebe.GoneError, match="no answer from"):
        grebe.send(files, words[0], answer_within=1.0)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("what", ["grebe.receive('into', on_ticket=tell, listen=L)", "grebe.serve_probe(tell, listen=L)"])
def test_ctrl_c_ends_a_wait_at_once(what: str, tmp_path: pathlib.Path) -> None:
    code = f"""
        import grebe
        L = "127.0.0.1:0"
        def tell(word): print("waits", flush=True)
        try:
            {what}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert process.stdout is not None and process.stdout.readline() == "waits\n"
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=60)
    assert said == "interrupted\n" and process.returncode == 0, errors


def test_a_path_is_probed(tmp_path: pathlib.Path) -> None:
    served: list[dict[str, Any]] = []
    ticket, serving = beside(lambda tell: grebe.serve_probe(tell, listen=LOCAL, progress=served.append))
    events: list[dict[str, Any]] = []
    report = grebe.probe(
        ticket, max_rate=20e6, max_bytes=2_000_000, duration=3.0, interval=2e-3, size=1_000, tcp_writes=(), progress=events.append
    )
    assert serving.result(60) == 1 and [it["event"] for it in served] == ["began", "ended"]
    assert report["rtt"]["min_ms"]["value"] <= report["rtt"]["p99_ms"]["high"]
    assert report["up"]["datagram_bytes"] == 1_000 and report["up"]["loss"] is not None
    assert {"part", "round_trip", "train"} <= {it["event"] for it in events}


def test_an_exception_of_the_progress_ends_a_probe() -> None:
    ticket, serving = beside(lambda tell: grebe.serve_probe(tell, listen=LOCAL))

    def stop(event: dict[str, Any]) -> None:
        raise ZeroDivisionError(event["event"])

    with pytest.raises(ZeroDivisionError):
        grebe.probe(ticket, max_rate=20e6, duration=3.0, progress=stop)
    assert threading.active_count() < 10 and serving.result(60) == 1
