#!/usr/bin/env python3
"""Another Zenoh program (eclipse-zenoh for Python) reads grebe's streams, and grebe reads its streams, by docs/zenoh-programs.md alone.

    cargo build --release --features zenoh && target/ci/venv/bin/python ci/foreign_peer.py target/release/grebe

The reader is the program on that page, unchanged.
"""

import importlib.metadata
import json
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy
import zenoh

GREBE = sys.argv[1]
PAGE = Path(__file__).parent.parent / "docs/zenoh-programs.md"
NAME = f"foreign/{time.time_ns()}/adc"
RATE, PERIOD = 3 * 65_536, 65_536  # of which floating point has the quotient exactly
passed = 0


def main():
    print(f"eclipse-zenoh {importlib.metadata.version('eclipse-zenoh')}")
    reads()
    sends()
    print(f"{passed} passed, 0 failed")


def check(is_good, words):
    global passed
    assert is_good, words
    passed += 1


def reads():
    """Runs the page's program beside a generator, and checks each frame by its index."""
    program = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.S)[1].replace("lab/mast3/adc", NAME)
    wave = ["--channels", "2", "--rate", str(RATE), "--wave", "saw", "--frequency", f"{RATE / PERIOD!r},{2 * RATE / PERIOD!r}"]
    with tempfile.TemporaryDirectory() as folder, Ended([GREBE, "sg", "--name", NAME, *wave]):
        made = Path(folder) / "made.sigmf-meta"
        uri = f"synth:saw?channels=2&rate={RATE}&frequency={RATE / PERIOD!r},{2 * RATE / PERIOD!r}&samples={2 * PERIOD}"
        subprocess.run([GREBE, "record", uri, made], check=True, capture_output=True)
        tables = [numpy.fromfile(Path(folder) / f"made_ch{channel}.sigmf-data", "<i2") for channel in (1, 2)]
        space = {"FRAMES_MAX": 40}
        exec(compile(program, str(PAGE), "exec"), space)
        what, frames = space["what"], space["frames"]
        check(what["command"] == "sg" and what["channels"] == 2 and what["sample_rate_hz"] == RATE, what)
        check(len(frames) == 40, len(frames))
        for (sequence, index, samples), after in zip(frames, [*frames[1:], None]):
            check(samples.dtype == numpy.dtype("<i2") and samples.shape[0] == 2, samples.shape)
            for channel, table in zip(samples, tables):
                check(numpy.array_equal(channel, numpy.roll(table[:PERIOD], -(index % PERIOD))[: len(channel)]), f"frame {sequence}")
            if after:
                check(after[0] > sequence and after[1] >= index + samples.shape[1], f"behind frame {sequence}: {after[:2]}")


def sends():
    """Frames as in docs/wire-format.md, with one missing: a gap of its samples."""
    key = f"foreign/{time.time_ns()}/made"
    session = zenoh.open(config())
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "came.sigmf-meta"
        recorder = subprocess.Popen([GREBE, "record", f"zenoh://{key}", file, "--json"], stdout=subprocess.PIPE)
        publisher = session.declare_publisher(f"{key}", congestion_control=zenoh.CongestionControl.BLOCK)
        token = session.liveliness().declare_token(f"grebe/live/{session.info.zid()}/{key}")
        until = time.monotonic() + 30
        while not publisher.matching_status.matching:
            assert time.monotonic() < until, "nobody reads"
            time.sleep(0.02)
        samples, block, sender = numpy.arange(10_000, dtype="<i2"), 1_000, bytes(range(16))
        for sequence, begin in enumerate(range(0, len(samples), block)):
            if sequence != 6:
                part = samples[begin : begin + block]
                publisher.put(header(sequence, begin, len(part)) + part.tobytes(), attachment=sender)
        publisher.put(header(len(samples) // block, len(samples), 0), attachment=sender)
        report = json.loads(recorder.communicate(timeout=60)[0])
        check(recorder.returncode == 0, report)
        came = numpy.fromfile(file.with_suffix(".sigmf-data"), "<i2")
        check(numpy.array_equal(came, numpy.delete(samples, slice(6 * block, 7 * block))), came)
        check(report["losses"]["network_samples"] == block, report["losses"])
        captures = [(it["core:sample_start"], it["core:global_index"]) for it in json.loads(file.read_text())["captures"]]
        check(captures == [(0, 0), (6 * block, 7 * block)], captures)
        token.undeclare()
    session.close()


def header(sequence, first_index, count):
    """One channel of i16; no checksum."""
    return struct.pack("<4sIQQBBBBIIIdQQ", b"GFH2", 64, sequence, sequence * 1_000_000, 1, 0, 0, 0, count, 2 * count, 0, 1e6, 0, first_index)


def config():
    own = zenoh.Config()
    own.insert_json5("scouting/multicast/interface", '"127.0.0.1"')
    own.insert_json5("listen/endpoints", '["tcp/127.0.0.1:0"]')
    return own


class Ended:
    """Asks a process to end, and checks that it does."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self.process

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=30)


if __name__ == "__main__":
    main()
