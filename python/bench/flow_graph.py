"""Samples into a flow graph of GNU Radio, and out of one, by grebe's blocks and by GNU Radio's own: in turns, in the same run.

    /usr/bin/python3 -m venv --system-site-packages venv && venv/bin/pip install python/
    venv/bin/python python/bench/flow_graph.py
    /usr/bin/python3 python/bench/flow_graph.py --grebe target/release/grebe    # without the wheel, and without the rows of its blocks

Two processes, complex samples of 8 bytes, at the rate of the slower one. A row has the reader's rate, and its CPU time
for it. The first row is a flow graph that copies nothing between processes. A flow graph also limits the rate of its sender: rows of
a plain PUSH have a sender without one, so that they compare the readers (skipped without `python3-zmq`).
"""

from __future__ import annotations

import argparse
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from gnuradio import blocks, gr, network, zeromq

try:
    import zmq
except ImportError:
    zmq = None
try:
    import grebe
    from grebe.gnuradio import sink, source
except ImportError:
    grebe = None

COMMAND = [sys.executable, "-m", "grebe"]
ITEM = gr.sizeof_gr_complex
RATE = 1e9
# Of GNU Radio's UDP blocks: a 64-bit number before the samples of each packet, and the bytes of both.
NUMBERED = 1
PACKET = 1_472
# Bytes of a message of GNU Radio's sink: half of the buffer before it.
MESSAGE = 32_768


def alone(samples: int) -> tuple[float, float]:
    """Items from a null source through a head to a null sink."""
    return flow(blocks.null_source(ITEM), blocks.head(ITEM, samples), blocks.null_sink(ITEM))


def flow(*chain: Any) -> tuple[float, float]:
    graph = gr.top_block()
    graph.connect(*chain)
    began, cpu = time.monotonic(), processor_s()
    graph.run()
    return time.monotonic() - began, processor_s() - cpu


def processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def sender(kind: str, address: str) -> subprocess.Popen[bytes]:
    """A process with a flow graph that sends until it is killed."""
    return subprocess.Popen([sys.executable, __file__, "--send", kind, address], stdout=subprocess.DEVNULL)


def until_it_listens(address: str) -> None:
    host, port = address.split("//")[1].split(":")
    while True:
        try:
            return socket.create_connection((host, int(port))).close()
        except ConnectionRefusedError:
            time.sleep(0.05)


def send(kind: str, address: str) -> None:
    if kind == "plain":
        return send_plain(address)
    flow(blocks.null_source(ITEM), outlet(kind, address))


def send_plain(address: str) -> None:
    """The same message again and again, from a socket of ZeroMQ's own."""
    push = zmq.Context().socket(zmq.PUSH)
    push.bind(address)
    message = zmq.Frame(bytes(MESSAGE))
    while True:
        push.send(message, copy=False)


def outlet(kind: str, address: str) -> Any:
    if kind == "zmq":
        return zeromq.push_sink(ITEM, 1, address, 100)
    if kind == "udp":
        host, port = address.split("//")[1].split(":")
        return network.udp_sink(ITEM, 1, host, int(port), NUMBERED, PACKET, False)
    return sink(f"{address}?wait=1", RATE)


def ended(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()


def zmq_to_gnuradio(samples: int, address: str, kind: str = "zmq") -> tuple[float, float]:
    child = sender(kind, address)
    try:
        return flow(zeromq.pull_source(ITEM, 1, address, 100), blocks.head(ITEM, samples), blocks.null_sink(ITEM))
    finally:
        ended(child)


def zmq_to_grebe(samples: int, address: str, kind: str = "zmq") -> tuple[float, float]:
    child = sender(kind, address)
    try:
        until_it_listens(address)
        uri = f"zmq://{address.split('//')[1]}?type=pull&format=cf32&rate=1M"
        return by_grebe("zmq_in", uri, samples)
    finally:
        ended(child)


def udp_to_gnuradio(samples: int, address: str) -> tuple[float, float]:
    """Rate at GNU Radio's UDP source from its UDP sink; the kernel drops the rest."""
    out = network.udp_source(ITEM, 1, int(address.split(":")[-1]), NUMBERED, PACKET, False, False, False)
    child = sender("udp", address)
    try:
        return flow(out, blocks.head(ITEM, samples), blocks.null_sink(ITEM))
    finally:
        ended(child)


def udp_to_grebe(samples: int, address: str) -> tuple[float, float]:
    child = sender("udp", address)
    try:
        return by_grebe("raw_in", f"{address}?format=cf32&rate=1M&seq=0:u64le", samples)
    finally:
        ended(child)


def by_grebe(kind: str, uri: str, samples: int) -> tuple[float, float]:
    """grebe's command reads a stream to its end."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(
            f'stage = [{{ id = "in", kind = "{kind}", params = {{ uri = "{uri}", samples = {samples} }} }}, '
            '{ id = "end", kind = "null" }]\nedge = [{ from = "in", to = "end" }]\n'
        )
        file.flush()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.monotonic()
        subprocess.run([*COMMAND, "run", file.name], check=True, capture_output=True)
        took = time.monotonic() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def shm_to_gnuradio(samples: int, name: str) -> tuple[float, float]:
    generator = [*COMMAND, "sg", "--format", "cf32", "--channels", "1", "--rate", "1G", "--free-run"]
    child = subprocess.Popen([*generator, "--to", f"shm://{name}?wait=1"], stderr=subprocess.DEVNULL)
    try:
        block = source(f"shm://{name}", policy="block", wait=True, timeout=30)
        return flow(block, blocks.head(ITEM, samples), blocks.null_sink(ITEM))
    finally:
        ended(child)


def gnuradio_to_shm(samples: int, name: str) -> tuple[float, float]:
    child = sender("shm", f"shm://{name}")
    try:
        with grebe.open(f"shm://{name}", policy="block", wait=True, timeout=30, samples=samples) as stream:
            began, cpu = time.monotonic(), processor_s()
            got = sum(len(block) for block in stream)
            assert got == samples, got
            return time.monotonic() - began, processor_s() - cpu
    finally:
        ended(child)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--send", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--samples", type=int, default=200_000_000, help="a turn")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--grebe", help="this command, in place of the wheel")
    asked = parser.parse_args()
    if asked.send:
        return send(*asked.send)
    if asked.grebe:
        COMMAND[:] = [asked.grebe]
    elif not grebe:
        parser.error("the wheel is not installed: install it, or give --grebe")
    # Its UDP source is slow: fewer samples take as long.
    many, few = asked.samples, asked.samples // 200
    rows: dict[str, tuple[int, Callable[[int, int], tuple[float, float]]]] = {
        "a flow graph alone": (many, lambda samples, _: alone(samples)),
        "GNU Radio's PUSH -> GNU Radio's PULL": (many, lambda samples, n: zmq_to_gnuradio(samples, f"tcp://127.0.0.1:{n}")),
        "GNU Radio's PUSH -> grebe, zmq://": (many, lambda samples, n: zmq_to_grebe(samples, f"tcp://127.0.0.1:{n}")),
        "a plain PUSH -> GNU Radio's PULL": (many, lambda samples, n: zmq_to_gnuradio(samples, f"tcp://127.0.0.1:{n}", "plain")),
        "a plain PUSH -> grebe, zmq://": (many, lambda samples, n: zmq_to_grebe(samples, f"tcp://127.0.0.1:{n}", "plain")),
        "GNU Radio's UDP sink -> GNU Radio's UDP source": (few, lambda samples, n: udp_to_gnuradio(samples, f"udp://127.0.0.1:{n}")),
        "GNU Radio's UDP sink -> grebe, udp://": (many, lambda samples, n: udp_to_grebe(samples, f"udp://127.0.0.1:{n}")),
        "grebe, shm:// -> grebe's source block": (many, lambda samples, n: shm_to_gnuradio(samples, f"bench-{os.getpid()}-{n}")),
        "grebe's sink block -> grebe, shm://": (many, lambda samples, n: gnuradio_to_shm(samples, f"bench-{os.getpid()}-{n}")),
    }
    if asked.grebe:
        rows = {name: row for name, row in rows.items() if "block" not in name}
    if not zmq:
        rows = {name: row for name, row in rows.items() if "plain" not in name}
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in rows}
    port = 20_000 + os.getpid() % 10_000
    for _ in range(asked.turns):
        for name, (samples, turn) in rows.items():
            port += 1
            took[name].append(turn(samples, port))
    width = max(map(len, rows))
    for name, turns in took.items():
        samples, _ = rows[name]
        rates = [samples / seconds / 1e6 for seconds, _ in turns]
        cpu_s = statistics.median(cpu for _, cpu in turns) / samples * 1e9
        print(
            f"{name:{width}}  {statistics.median(rates):6.1f} MS/s ({min(rates):.1f} - {max(rates):.1f}), "
            f"{cpu_s:.2f} s of a processor for 1 GS at the reader"
        )


main()
