#!/usr/bin/env python3
"""Cost of other programs' datagrams, compared with grebe's own frames: at the generator's full rate, in turns, in the same run.

    python3 ci/bridge_rates.py target/release/grebe

A row has the received rate, the part that was lost, and the ratio to grebe's own frames in datagrams of the same size. The time
to send one sample (start of the command, and the end of the stream, which own frames say for half a second) is not counted. Two
processes on this machine, or four if three read a group; one channel of i16.
"""

import argparse
import json
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

# Rows: name, datagram bytes, receiving kind, URI, number of receivers.
ROWS = [
    ("own frames, 1,400 B", 1400, "udp_in", "udp://127.0.0.1:{port}", 1),
    ("VITA-49, 1,400 B", 1400, "vita49_in", "vrt://127.0.0.1:{port}", 1),
    ("no headers, 1,400 B", 1400, "raw_in", "udp://127.0.0.1:{port}?format=i16&rate=1G", 1),
    ("own frames, 8,972 B", 8972, "udp_in", "udp://127.0.0.1:{port}", 1),
    ("VITA-49, 8,972 B", 8972, "vita49_in", "vrt://127.0.0.1:{port}", 1),
    ("no headers, 8,972 B", 8972, "raw_in", "udp://127.0.0.1:{port}?format=i16&rate=1G", 1),
    ("multicast, 1 reader, 8,972 B", 8972, "udp_in", "udp://239.255.77.7:{port}?interface=lo", 1),
    ("multicast, 3 readers, 8,972 B", 8972, "udp_in", "udp://239.255.77.7:{port}?interface=lo", 3),
]


def receiver(grebe, kind, uri, folder):
    """A process that receives until the data ends, and its port."""
    graph = Path(folder, f"{time.monotonic_ns()}.toml")
    graph.write_text(
        f'stage = [{{ id = "in", kind = "{kind}", params = {{ uri = "{uri}", idle_timeout = "2s" }} }}, '
        '{ id = "end", kind = "null" }]\nedge = [{ from = "in", to = "end" }]\n'
    )
    program = subprocess.Popen([grebe, "run", graph, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in program.stderr:
        if found := re.search(r"listening on \S+:(\d+)", line):
            return program, found[1]
    raise SystemExit(f"{uri}: it does not listen")


def turn(grebe, kind, uri, datagram, readers, samples):
    """Samples at the reader that got the fewest, and the time to send them."""
    around = send(grebe, uri.format(port=9), datagram, 1)
    with tempfile.TemporaryDirectory() as folder:
        programs, port = [], 0
        for _ in range(readers):
            program, port = receiver(grebe, kind, uri.format(port=port), folder)
            programs.append(program)
        took = send(grebe, uri.format(port=port), datagram, samples)
        results = [json.loads(program.communicate(timeout=60)[0]) for program in programs]
    return min(result["graph"]["stages"][0]["samples_out"] for result in results), took - around


def send(grebe, uri, datagram, samples):
    """The time of a generator that sends `samples` at full rate."""
    words = ["sg", "--free-run", "--rate", "1G", "--channels", "1", "--samples", samples, "--datagram-size", datagram, "--to", uri]
    began = time.monotonic()
    subprocess.run([str(word) for word in [grebe, *words]], check=True, capture_output=True)
    return time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grebe", type=Path)
    parser.add_argument("--samples", type=int, default=4_000_000_000)
    parser.add_argument("--turns", type=int, default=5)
    asked = parser.parse_args()
    rates, lost = ({name: [] for name, *_ in ROWS} for _ in range(2))
    for _ in range(asked.turns):
        for name, datagram, kind, uri, readers in ROWS:
            got, took = turn(asked.grebe.resolve(), kind, uri, datagram, readers, asked.samples)
            rates[name].append(got / took / 1e6)
            lost[name].append(100 * (1 - got / asked.samples))
    for name, datagram, *_ in ROWS:
        own = statistics.median(rates[f"own frames, {datagram:,} B"])
        row = rates[name]
        print(
            f"{name:30} {statistics.median(row):6.0f} MS/s ({min(row):.0f} - {max(row):.0f}), lost {statistics.median(lost[name]):5.2f} %, "
            f"{statistics.median(row) / own:.2f} of own frames"
        )


main()
