#!/usr/bin/env python3
"""Records a ring at a high rate, saves random ranges of it, and compares every sample with the generator's sample of that index.

    cargo build --release
    target/ci/venv/bin/python ci/black_box.py target/release/grebe FOLDER --rate 200M --ring 4G --saves 50

FOLDER is on the disk to test, with space for the ring and some saves; each save is removed after its comparison. Two channels of 16
bits, so 200M means 400 million samples per second. Needs NumPy. Exit status 1 if a sample is wrong, or any was lost.
"""

import argparse
import json
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy

PERIODS = (2048, 3125)  # without a common factor: no two places within 6.4 million samples are alike


def number(text):
    return float(text[:-1]) * {"k": 1e3, "M": 1e6, "G": 1e9}[text[-1]] if text[-1] in "kMG" else float(text)


def written_bytes(process):
    io = Path(f"/proc/{process.pid}/io").read_text()
    return int(next(line.split()[1] for line in io.splitlines() if line.startswith("write_bytes")))


def compare(meta, channel, tables):
    """The number of samples of a recording. Checks that each has the value of its index."""
    meta = Path(meta)
    captures = json.loads(meta.read_text())["captures"]
    data = numpy.memmap(meta.with_suffix(".sigmf-data"), dtype="<i2", mode="r")
    ends = [capture["core:sample_start"] for capture in captures[1:]] + [len(data)]
    table, period = tables[channel], PERIODS[channel]
    for capture, end in zip(captures, ends):
        for begin in range(capture["core:sample_start"], end, 320 * period):
            part = data[begin : min(end, begin + 320 * period)]
            index = capture["core:global_index"] + begin - capture["core:sample_start"]
            expected = numpy.resize(numpy.roll(table, -(index % period)), len(part))
            if not numpy.array_equal(part, expected):
                sys.exit(f"{meta}: wrong from sample {begin + int(numpy.argmax(part != expected))} on")
    return len(data), len(captures)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grebe")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rate", default="200M", help="samples per second and channel")
    parser.add_argument("--ring", default="4G")
    parser.add_argument("--buffer", default="1G")
    parser.add_argument("--saves", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=50, help="over which the saves begin, at random")
    parser.add_argument("--at-a-time", type=int, default=3)
    parser.add_argument("--longest", type=float, default=1.5, help="of a save, in seconds")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    dice = random.Random(options.seed)
    rate = number(options.rate)
    frequencies = ",".join(str(rate / period) for period in PERIODS)
    ring = options.folder / "ring"
    ring.mkdir(parents=True)
    name = f"black-box-{time.time_ns()}"

    first = options.folder / "made.sigmf-meta"
    uri = f"synth:saw?channels=2&rate={rate:.0f}&frequency={frequencies}&samples=20k"
    subprocess.run([options.grebe, "record", uri, first], check=True, capture_output=True)
    tables = []
    for channel, period in enumerate(PERIODS):
        made = numpy.fromfile(options.folder / f"made_ch{channel + 1}.sigmf-data", "<i2")
        assert numpy.array_equal(made[:period], made[period : 2 * period]), "the generator is not periodic"
        tables.append(made[:period])

    generator = subprocess.Popen(
        [options.grebe, "sg", "--channels", "2", "--wave", "saw", "--rate", f"{rate:.0f}", "--frequency", frequencies]
        + ["--to", f"shm://{name}?wait=1", "--json"],
        stdout=subprocess.PIPE,
    )
    recorder = subprocess.Popen(
        [options.grebe, "record", f"shm://{name}", ring, "--ring", options.ring, "--buffer", options.buffer, "--json"],
        stdout=subprocess.PIPE,
    )
    began = time.monotonic()
    while len(list(ring.glob("ring_*.sigmf-collection"))) < 3:
        assert recorder.poll() is None and time.monotonic() - began < 120, "the ring does not begin"
        time.sleep(0.1)
    running, compared, gaps, partial, saved_bytes = [], 0, 0, 0, 0
    started = 0
    while started < options.saves or running:
        if started < options.saves and len(running) < options.at_a_time:
            last, after = dice.uniform(0.1, options.longest), dice.choice([0, dice.uniform(0, 1)])
            running.append(
                subprocess.Popen(
                    [options.grebe, "save", ring, "--last", f"{last:.3f}", "--after", f"{after:.3f}", "--json"]
                    + ["--to", options.folder / f"save{started}.sigmf-meta"],
                    stdout=subprocess.PIPE,
                )
            )
            started += 1
            time.sleep(dice.uniform(0, 2 * options.seconds / options.saves))
        for save in [save for save in running if save.poll() is not None]:
            running.remove(save)
            told = json.loads(save.stdout.read() or "{}")
            if save.returncode not in (0, 4):
                sys.exit(f"a save failed with {save.returncode}")
            partial += save.returncode == 4
            gaps += told["gaps"]
            for channel, meta in enumerate(path for path in told["files"] if path.endswith("-meta")):
                length, _ = compare(meta, channel, tables)
                assert length == told["samples"], meta
                saved_bytes += 2 * length
            compared += told["samples"]
            for path in told["files"]:
                Path(path).unlink()
            print(f"{started} begun; {told['seconds']:.2f} s right, {told['gaps']} gaps", file=sys.stderr, flush=True)
        time.sleep(0.05)
    seconds = time.monotonic() - began
    recorder_bytes = written_bytes(recorder)
    generator.send_signal(2)
    sent = json.loads(generator.communicate(timeout=120)[0])
    report = json.loads(recorder.communicate(timeout=120)[0])
    lost = {name: count for name, count in report["losses"].items() if count}
    stream_bytes = report["samples"] * 4
    print(json.dumps({
        "seconds": round(seconds, 1),
        "samples_per_channel": report["samples"],
        "rate_per_channel": report["samples"] / seconds,
        "saves": options.saves,
        "partial_saves": partial,
        "compared_samples_per_channel": compared,
        "gaps_in_saves": gaps,
        "lost": lost,
        "generator": sent["losses"],
        "recorder_written_per_stream": recorder_bytes / stream_bytes,
        "saved_bytes": saved_bytes,
        "disk": report["disk"],
    }, indent=1))
    sys.exit(1 if lost or gaps else 0)


if __name__ == "__main__":
    main()
