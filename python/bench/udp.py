"""Samples over UDP from ``grebe sg`` at full rate, to a NumPy array and to the Rust receiver alone: in turns, in the same run.

    python python/bench/udp.py                          datagrams of 1,400 bytes
    python python/bench/udp.py --datagram 65000 --samples 8G

A row has the received rate, and the lost part. With ``--touch``, every block is read (``max``).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import grebe

COMMAND = [sys.executable, "-m", "grebe"]
GRAPH = """
[[stage]]
id = "in"
kind = "udp_in"
params = {{ uri = "{uri}" }}

[[stage]]
id = "end"
kind = "null"

[[edge]]
from = "in"
to = "end"
"""


def send(uri: str, samples: int, datagram: int) -> float:
    """The generator's time."""
    words = ["sg", "--free-run", "--rate", "1G", "--samples", str(samples), "--datagram-size", str(datagram), "--to", uri]
    began = time.perf_counter()
    subprocess.run([*COMMAND, *words], check=True, capture_output=True)
    return time.perf_counter() - began


def by_rust(uri: str, samples: int, datagram: int) -> tuple[int, float]:
    with tempfile.TemporaryDirectory() as folder:
        graph = Path(folder, "graph.toml")
        graph.write_text(GRAPH.format(uri=uri))
        words = [*COMMAND, "run", str(graph), "--json"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as receiver:
            assert receiver.stderr is not None
            receiver.stderr.readline()  # it listens
            took = send(uri, samples, datagram)
            result = json.loads(receiver.communicate(timeout=60)[0])
    return result["graph"]["stages"][0]["samples_out"], took


def by_python(uri: str, samples: int, datagram: int, touch: bool) -> tuple[int, float]:
    got = 0
    with grebe.open(uri) as stream:
        words = [__file__, "--send", uri, "--samples", str(samples), "--datagram", str(datagram)]
        with subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True) as sender:
            for block in stream:
                got += block.samples.shape[1]
                if touch:
                    block.samples.max()
            took = float(sender.communicate()[0])
    return got, took


def number(text: str) -> int:
    unit = {"M": 10**6, "G": 10**9}.get(text[-1:])
    return int(text) if unit is None else int(float(text[:-1]) * unit)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datagram", type=int, default=1400, metavar="BYTES")
    parser.add_argument("--samples", type=number, default="8G", metavar="N")
    parser.add_argument("--repeats", type=int, default=5, metavar="N")
    parser.add_argument("--port", type=int, default=5909)
    parser.add_argument("--touch", action="store_true")
    parser.add_argument("--send", metavar="URI", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.send:
        print(send(options.send, options.samples, options.datagram))
        return
    uri = f"udp://127.0.0.1:{options.port}"
    rates: dict[str, list[float]] = {"Rust alone": [], "NumPy": []}
    lost: dict[str, list[float]] = {"Rust alone": [], "NumPy": []}
    for _ in range(options.repeats):
        for name in rates:
            if name == "NumPy":
                got, took = by_python(uri, options.samples, options.datagram, options.touch)
            else:
                got, took = by_rust(uri, options.samples, options.datagram)
            rates[name].append(got / took / 1e6)
            lost[name].append(100 * (1 - got / options.samples))
    for name, all_rates in rates.items():
        print(
            f"{name:12} {statistics.median(all_rates):8.0f} MS/s ({min(all_rates):.0f} - {max(all_rates):.0f}), "
            f"lost {statistics.median(lost[name]):.2f} % ({min(lost[name]):.2f} - {max(lost[name]):.2f})"
        )
    print(f"NumPy is {statistics.median(rates['NumPy']) / statistics.median(rates['Rust alone']):.2f} of Rust alone")


if __name__ == "__main__":
    main()
