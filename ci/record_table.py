#!/usr/bin/env python3
"""Recording rates of a disk, compared with its own maximum: rows for docs/benchmarks-recording.md, in turns, several rounds.

    cargo build --release
    ci/record_table.py target/release/grebe FOLDER --seconds 6 --rounds 3

FOLDER is on the disk to test, with space for twice the seconds at its rate. Needs fio (Debian: apt-get install fio), dd, and for its row GNU Radio
for /usr/bin/python3. Rows with missing programs are skipped, with a message. Nothing is left in FOLDER. Each round starts with fio's rate, and
the recorders get parts of that rate, so a disk that slows down as it fills does not count against later rows.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
import zlib
from pathlib import Path

GNU_RADIO = """
import os, sys, time
from gnuradio import blocks, gr
path, count = sys.argv[1], int(sys.argv[2])
top = gr.top_block()
sink = blocks.file_sink(gr.sizeof_short, path, False)
top.connect(blocks.null_source(gr.sizeof_short), blocks.head(gr.sizeof_short, count), sink)
began = time.monotonic()
top.run()
sink.close()
written = time.monotonic() - began
with open(path) as file:
    os.fsync(file.fileno())
print(written, time.monotonic() - began)
"""


def canary():
    """Time of this CPU for a fixed task, which shows other load."""
    block, began = bytes(1 << 20), time.monotonic()
    for _ in range(256):
        zlib.crc32(block)
    return time.monotonic() - began


class Reader:
    """A process that reads the disk at full rate, past the page cache, until it is closed."""

    def __init__(self, path):
        self.arguments = ["fio", "--name=r", f"--filename={path}", "--rw=read", "--bs=1M", "--direct=1", "--ioengine=io_uring"]
        self.arguments += ["--iodepth=4", "--time_based", "--runtime=600", "--output-format=json"]

    def __enter__(self):
        self.process = subprocess.Popen(self.arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        return self

    def __exit__(self, *_):
        self.process.send_signal(2)
        told, _ = self.process.communicate(timeout=60)
        self.rate = json.loads(told[told.index(b"{") :])["jobs"][0]["read"]["bw_bytes"]


class Table:
    def __init__(self, options):
        self.options = options
        self.folder = options.folder
        self.rows = {}

    def note(self, row, rate, baseline, lost=None):
        """A rate in bytes per second; the lost part of the samples; fio's rate in the same round."""
        self.rows.setdefault(row, []).append((rate, rate / baseline, lost))
        told = "" if lost is None else f", lost {100 * lost:.2f} %"
        print(f"  {row}: {rate / 1e9:.2f} GB/s, {rate / baseline:.2f} of fio{told}", flush=True)

    def path(self, name="x.bin"):
        return self.folder / name

    def clean(self):
        for path in self.folder.glob("*"):
            if path.name != "read.bin":
                path.unlink()
        # The disk frees removed files after some time.
        time.sleep(0.5)

    def fio(self):
        arguments = ["fio", "--name=w", f"--filename={self.path()}", "--rw=write", "--bs=4M", "--direct=1", "--ioengine=io_uring"]
        arguments += ["--iodepth=8", "--size=64G", f"--runtime={self.options.seconds}", "--fallocate=none", "--output-format=json"]
        told = subprocess.run(arguments, check=True, capture_output=True).stdout
        return json.loads(told[told.index(b"{") :])["jobs"][0]["write"]["bw_bytes"]

    def grebe(self, rate, *more):
        """A generator of 16-bit samples and a recorder, each a process: the recorded rate, and the lost part."""
        name, samples = f"record-table-{time.time_ns()}", int(rate / 2 * self.options.seconds)
        to = f"shm://{name}?wait=1"
        command = [self.options.grebe, "sg", "--channels", "1", "--wave", "square", "--rate", f"{rate / 2:.0f}"]
        maker = subprocess.Popen(command + ["--samples", str(samples), "--to", to], stderr=subprocess.DEVNULL)
        command = [self.options.grebe, "record", f"shm://{name}", str(self.path("x.sigmf-meta")), "--json"]
        try:
            taken = subprocess.run(command + ["--buffer", self.options.buffer, *more], capture_output=True, timeout=300)
        finally:
            maker.kill()
            maker.wait()
        told = json.loads(taken.stdout)
        recorded = told["samples"]
        lost = max(samples - recorded, 0)
        print(f"    {told['losses']['generator_samples']} samples not made, stall {told['disk']['longest_stall_us'] / 1e3:.0f} ms, "
              f"buffer full for {told['disk']['waited_us'] / 1e3:.0f} ms")
        return recorded * 2 / self.options.seconds, lost / samples

    def dd(self, seconds_rate):
        count = int(seconds_rate * self.options.seconds / 2) >> 22
        command = ["dd", "if=/dev/zero", f"of={self.path()}", "bs=4M", f"count={count}", "oflag=direct"]
        began = time.monotonic()
        subprocess.run(command, check=True, capture_output=True)
        return (count << 22) / (time.monotonic() - began)

    def gnu_radio(self, bytes_s):
        """Writes into the page cache, then flushes: both rates."""
        count = int(bytes_s * self.options.seconds / 4) // 2
        command = ["/usr/bin/python3", "-c", GNU_RADIO, str(self.path()), str(count)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return None
        return [count * 2 / float(seconds) for seconds in done.stdout.split()]

    def round(self):
        options = self.options
        baseline = self.fio()
        self.clean()
        self.note("fio, 4 MiB, direct, io_uring, depth 8", baseline, baseline)
        if options.only_reader:
            return self.beside_a_reader(baseline)
        for part in options.parts:
            rate, lost = self.grebe(part * baseline)
            self.note(f"grebe sg over shm to grebe record, {part:.2f} of fio asked for", rate, baseline, lost)
            self.clean()
        rate, lost = self.grebe(options.parts[0] * baseline, "--write-by", "page-cache")
        self.note(f"the same with --write-by page-cache, {options.parts[0]:.2f} asked for", rate, baseline, lost)
        self.clean()
        self.note("dd oflag=direct, 4 MiB", self.dd(baseline), baseline)
        self.clean()
        rates = self.gnu_radio(baseline)
        if rates:
            self.note("GNU Radio's file sink, into the page cache", rates[0], baseline)
            self.note("GNU Radio's file sink, until the disk has it", rates[1], baseline)
        else:
            print("  skipped: GNU Radio is not there (apt-get install --no-install-recommends gnuradio)")
        self.clean()
        if options.reader:
            self.beside_a_reader(baseline)

    def beside_a_reader(self, baseline):
        with Reader(self.path("read.bin")) as reader:
            beside = self.fio()
        self.clean()
        self.note("fio, beside a process that reads", beside, baseline)
        self.note("  what that one reads", reader.rate, baseline)
        for part in self.options.reader_parts:
            with Reader(self.path("read.bin")) as reader:
                rate, lost = self.grebe(part * beside)
            self.note(f"grebe beside a reading process, {part:.2f} of fio beside it", rate, baseline, lost)
            self.note(f"  what that one reads ({part:.2f})", reader.rate, baseline)
            self.clean()

    def print(self):
        def spread(values, form):
            return f"{form.format(statistics.median(values))} ({form.format(min(values))} - {form.format(max(values))})"

        print("\n| what | GB/s | of fio's of its round | lost |\n|---|---|---|---|")
        for row, values in self.rows.items():
            lost = [value[2] for value in values if value[2] is not None]
            told = spread([100 * part for part in lost], "{:.2f}") + " %" if lost else ""
            rates = spread([value[0] / 1e9 for value in values], "{:.2f}")
            print(f"| {row.strip()} | {rates} | {spread([value[1] for value in values], '{:.2f}')} | {told} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: [float(part) for part in text.split(",")]
    parser.add_argument("grebe")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=int, default=6, help="of each run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--buffer", default="2G", help="of the recorder")
    parser.add_argument("--parts", type=numbers, default=[0.5, 0.7, 0.8, 0.9], help="of fio's rate")
    parser.add_argument("--reader-parts", type=numbers, default=[0.5, 0.8], help="of fio's rate beside the reader")
    parser.add_argument("--no-reader", dest="reader", action="store_false")
    parser.add_argument("--only-reader", action="store_true", help="only fio and the rows beside a reader")
    options = parser.parse_args()
    if not shutil.which("fio"):
        sys.exit("fio is not there (apt-get install fio)")
    options.folder = options.folder / f"record-table-{os.getpid()}"
    options.folder.mkdir()
    table, canaries = Table(options), []
    try:
        if options.reader:
            subprocess.run(["dd", "if=/dev/urandom", f"of={table.path('read.bin')}", "bs=4M", "count=256", "oflag=direct"], check=True, capture_output=True)
        for number in range(options.rounds):
            canaries.append(canary())
            print(f"round {number + 1}: canary {canaries[-1] * 1e3:.0f} ms, load {os.getloadavg()[0]:.1f}", flush=True)
            table.round()
        canaries.append(canary())
    finally:
        shutil.rmtree(options.folder, ignore_errors=True)
    table.print()
    print(f"\nEach run {options.seconds} s, {options.rounds} rounds, {os.cpu_count()} cores, --buffer {options.buffer}: median (range). Canary "
          f"{min(canaries) * 1e3:.0f} - {max(canaries) * 1e3:.0f} ms, load at the end {os.getloadavg()[0]:.1f}.")


if __name__ == "__main__":
    main()
