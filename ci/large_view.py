#!/usr/bin/env python3
"""How long `grebe view` takes for pictures of a terabyte, without a summary and with one.

usage: target/ci/venv/bin/python ci/large_view.py target/release/grebe FOLDER [--terabytes 1] [--rounds 5] [--keys 48] [--pictures 12]

FOLDER gets sparse recordings of i16 with noise in 24 places, 8 MB each: 0.5 GB of the disk, removed at the end. The summary is made here,
by docs/summary-format.md, as sparse as they are: grebe itself would read a terabyte of holes for it. It is first held to what grebe makes of
a small file, byte for byte.

Each row is of a terminal of 150 x 40 characters: from the start of the command to its first trace (page cache of the files dropped before); from
a key (`+` and `-`, from the whole to 1e-6 of it and back) to the picture that it asks for, which is the first change below the two
lines of the head; the highest memory. Beside them a recording of 20 kB, of which nothing needs to be read twice, in turns. At last, pictures of
random stretches (`--png --json`) say whether they are exact, and their extremes are compared with those of all samples.
"""

import argparse
import fcntl
import hashlib
import json
import os
import pty
import random
import re
import select
import signal
import statistics
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import numpy as np

LEVELS_FINE = (8, 10, 12, 14)
LEVELS_COARSE = (28, 26, 24, 22, 20, 18, 16)
BLOCK_LOG2 = 24
SUMS_LOG2 = 18
NOISE_SAMPLES = 4_000_000
RATE_HZ = 1e6


# --- recordings ------------------------------------------------------------------------------------------------

class Recording:
    """Zeros, with noise in some places: every sample is known without reading it."""

    def __init__(self, base, samples, places, rate_hz=RATE_HZ):
        self.base, self.samples, self.rate_hz = base, samples, rate_hz
        last = samples - NOISE_SAMPLES
        at = [0, last // 2, last] + [random.randrange(last) for _ in range(max(places - 3, 0))]
        self.noise = {}
        for seed, first in enumerate(sorted(at)[:places]):
            if not any(abs(first - other) < NOISE_SAMPLES for other in self.noise):
                top = 2_000 + 750 * seed
                self.noise[first] = np.random.default_rng(seed).integers(-top, top, NOISE_SAMPLES, dtype=np.int16)

    @property
    def data(self):
        return self.base.with_suffix(".sigmf-data")

    @property
    def meta(self):
        return self.base.with_suffix(".sigmf-meta")

    @property
    def summary(self):
        return self.base.with_suffix(".grebe-summary")

    def write(self):
        with open(self.data, "wb") as file:
            file.truncate(self.samples * 2)
            for first, noise in self.noise.items():
                file.seek(first * 2)
                file.write(noise.tobytes())
            os.fsync(file.fileno())
        said = {"core:datatype": "ri16_le", "core:sample_rate": self.rate_hz, "core:version": "1.2.0"}
        whole = {"global": said, "captures": [{"core:sample_start": 0}], "annotations": []}
        self.meta.write_text(json.dumps(whole))

    def read(self, first, count):
        out = np.zeros(count, dtype=np.int16)
        for at, noise in self.noise.items():
            begin, end = max(at, first), min(at + len(noise), first + count)
            if begin < end:
                out[begin - first:end - first] = noise[begin - at:end - at]
        return out

    def blocks_with_noise(self):
        numbers = set()
        for at, noise in self.noise.items():
            numbers.update(range(at >> BLOCK_LOG2, ((at + len(noise) - 1) >> BLOCK_LOG2) + 1))
        return numbers

    def remove(self):
        for path in (self.data, self.meta, self.summary):
            path.unlink(missing_ok=True)


# --- the summary, by docs/summary-format.md --------------------------------------------------------------------

CRC = [0] * 256
for number in range(256):
    crc = number
    for _ in range(8):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    CRC[number] = crc


def crc_of(data, crc=0xFFFFFFFF):
    """The state of a CRC-32C after these bytes: runs of zeros by squaring, so that gigabytes of them take no time."""
    at = 0
    array = np.frombuffer(data, dtype=np.uint8)
    others = np.flatnonzero(array)
    for other in others.tolist():
        crc = crc_of_zeros(other - at, crc)
        crc = crc >> 8 ^ CRC[(crc ^ data[other]) & 0xFF]
        at = other + 1
    return crc_of_zeros(len(data) - at, crc)


ZEROS = []  # what 1, 2, 4, ... bytes of zero make of each bit of a state


def crc_of_zeros(count, crc):
    if not ZEROS:
        ZEROS.append([(1 << bit) >> 8 ^ CRC[(1 << bit) & 0xFF] for bit in range(32)])
    power = 0
    while count:
        if power == len(ZEROS):
            ZEROS.append([apply(ZEROS[-1], column) for column in ZEROS[-1]])
        if count & 1:
            crc = apply(ZEROS[power], crc)
        count >>= 1
        power += 1
    return crc


def apply(columns, crc):
    out = 0
    while crc:
        low = crc & -crc
        out ^= columns[low.bit_length() - 1]
        crc ^= low
    return out


def checksum(data):
    return struct.pack("<I", crc_of(data) ^ 0xFFFFFFFF)


def nodes(samples, log2):
    """The smallest and the largest of each 2^log2 samples; the last group may be shorter."""
    starts = np.arange(0, len(samples), 1 << log2)
    out = np.empty((len(starts), 2), dtype=np.int16)
    out[:, 0] = np.minimum.reduceat(samples, starts)
    out[:, 1] = np.maximum.reduceat(samples, starts)
    return out


def write_summary(recording):
    samples, block = recording.samples, 1 << BLOCK_LOG2
    of = lambda length: 4 * sum(-(-length // (1 << log2)) for log2 in LEVELS_FINE)
    sizes = (of(block), of(samples % block))
    empty = checksum(bytes(sizes[0]))
    coarse = {log2: np.zeros((-(-samples // (1 << log2)), 2), dtype=np.int16) for log2 in LEVELS_COARSE}
    sums = np.zeros(-(-samples // (1 << SUMS_LOG2)), dtype=np.dtype([("sum", "<f8"), ("sq", "<f8"), ("not", "<u4")]))
    noisy = recording.blocks_with_noise()
    with open(recording.summary, "wb") as file:
        at = 68
        for number in range(-(-samples // block)):
            length = min(block, samples - number * block)
            size = sizes[0] if length == block else sizes[1]
            if number in noisy:
                own = recording.read(number * block, length)
                fine = b"".join(nodes(own, log2).tobytes() for log2 in LEVELS_FINE)
                file.seek(at)
                file.write(fine + checksum(fine))
                for log2 in LEVELS_COARSE:
                    # A node of a long level has the blocks before in it.
                    first = number * block >> log2
                    made = nodes(own, min(log2, BLOCK_LOG2))
                    there = coarse[log2][first:first + len(made)]
                    there[:, 0] = np.minimum(there[:, 0], made[:, 0])
                    there[:, 1] = np.maximum(there[:, 1], made[:, 1])
                for part in range(0, length, 1 << SUMS_LOG2):
                    values = own[part:part + (1 << SUMS_LOG2)].astype(np.float64)
                    sums[(number * block + part) >> SUMS_LOG2] = (values.sum(), (values * values).sum(), 0)
            else:
                file.seek(at + size)
                file.write(empty if length == block else checksum(bytes(size)))
            at += size + 4
        behind = b"".join(coarse[log2].tobytes() for log2 in LEVELS_COARSE) + sums.tobytes()
        for part in range(0, len(behind), 1 << 20):
            piece = behind[part:part + (1 << 20)]
            if piece.count(0) != len(piece):
                file.seek(at + part)
                file.write(piece)
        file.truncate(at + len(behind))
        there = os.stat(recording.data)
        hashed = hashlib.sha256()
        for look in range(16):
            hashed.update(recording.read((samples - 1024) * look // 15, 1024).tobytes())
        head = struct.pack("<8sHBBIQQQ16s", b"GREBESUM", 1, FORMAT_I16, BLOCK_LOG2, 1, samples, there.st_size,
                           there.st_mtime_ns, hashed.digest()[:16]) + checksum(behind) + bytes(4)
        file.seek(0)
        file.write(head + checksum(head))


FORMAT_I16 = 0


def compare_with_grebe(grebe, folder):
    """Of 40 M samples, grebe's own summary and this one."""
    small = Recording(folder / "small", 40_000_001, 3)
    small.write()
    picture = folder / "small.png"
    subprocess.run([grebe, "view", small.meta, "--png", picture, "--no-session"], check=True, capture_output=True)
    theirs = small.summary.read_bytes()
    write_summary(small)
    ours = small.summary.read_bytes()
    small.remove()
    picture.unlink()
    if theirs != ours:
        at = next((at for at, (a, b) in enumerate(zip(theirs, ours)) if a != b), min(len(theirs), len(ours)))
        sys.exit(f"the summary made here is not grebe's: {len(ours)} bytes, theirs {len(theirs)}, first at {at}")


# --- a terminal ------------------------------------------------------------------------------------------------

class Terminal:
    """`grebe view` in a terminal of 150 x 40."""

    def __init__(self, grebe, path, *more):
        self.began = time.monotonic()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 150, 0, 0))
            os.environ.update(TERM="xterm-256color", LANG="C.UTF-8")
            os.execv(grebe, [grebe, "view", str(path), "--term", "--no-session", *more])

    def wait(self, is_there, limit_s=20.0):
        """Seconds until the output meets a condition; none after the limit."""
        begun, seen = time.monotonic(), b""
        while (waited := time.monotonic() - begun) < limit_s:
            if select.select([self.fd], [], [], 0.002)[0]:
                seen += os.read(self.fd, 1 << 16)
                if is_there(seen):
                    return time.monotonic() - begun
        return None

    def rest(self, seconds):
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                os.read(self.fd, 1 << 16)

    def first_trace(self):
        return self.wait(has_trace) and time.monotonic() - self.began

    def key(self, key):
        self.rest(0.3)
        os.write(self.fd, key)
        return self.wait(has_picture, 3.0)

    def peak_mb(self):
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1000

    def close(self):
        os.write(self.fd, b"q")
        ended = time.monotonic() + 5
        while time.monotonic() < ended:
            try:
                if not os.read(self.fd, 1 << 16):
                    break
            except OSError:
                break
        # One that does not end by itself would be left behind.
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def has_trace(written):
    return re.search(rb"\xe2[\xa0-\xa3][\x80-\xbf]", written) is not None


def has_picture(written):
    return any(int(row) > HEAD_ROWS for row in re.findall(rb"\x1b\[(\d+);\d+H", written))


HEAD_ROWS = 2


def drop_cache(*paths):
    for path in paths:
        if path.exists():
            with open(path, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


# --- rows ------------------------------------------------------------------------------------------------------

def first_traces(grebe, recording, keep_summary, rounds):
    out = []
    for _ in range(rounds):
        if not keep_summary:
            recording.summary.unlink(missing_ok=True)
        drop_cache(recording.data, recording.summary)
        terminal = Terminal(grebe, recording.meta)
        out.append(terminal.first_trace() or float("nan"))
        terminal.close()
    return out


def keys(grebe, recording, count):
    terminal = Terminal(grebe, recording.meta)
    terminal.first_trace()
    terminal.rest(1.0)
    drop_cache(recording.data, recording.summary)
    half = count // 2
    pressed = [b"+"] * half + [b"-"] * half
    took = [terminal.key(key) for key in pressed]
    peak = terminal.peak_mb()
    terminal.close()
    return took, peak


def row(name, first, took, peak):
    # A key that changes nothing on the screen: a short recording whose samples are shown singly already.
    order = sorted(it * 1e3 for it in took if it is not None)
    at = lambda part: order[min(int(len(order) * part), len(order) - 1)]
    slow = sum(it > 100 for it in order)
    print(f"| {name} | {statistics.median(first):.2f} s ({min(first):.2f} - {max(first):.2f}) | "
          f"{at(0.5):.0f} / {at(0.95):.0f} / {order[-1]:.0f} ms of {len(order)}, {slow} above 100 | {peak:.0f} MB |", flush=True)
    print("  each, in ms:", " ".join("-" if it is None else f"{it * 1e3:.0f}" for it in took), flush=True)


def exact(grebe, recording, folder, count):
    """Random ranges: the extremes in the picture, compared with those of all samples."""
    picture, took, wrong, inexact = folder / "stretch.png", [], 0, 0
    random.seed(2)
    places = sorted(recording.noise)
    for number in range(count):
        length = random.choice([10_000, 1_000_000, 30_000_000])
        first = places[number % len(places)] + random.randrange(-length // 2, NOISE_SAMPLES)
        first = min(max(first, 0), recording.samples - length)
        begun = time.monotonic()
        said = subprocess.run(
            [grebe, "view", recording.meta, "--png", picture, "--json", "--no-session", "--after", f"{(first + length) / RATE_HZ:.6f}s",
             "--span", f"{length / RATE_HZ:.6f}s"], check=True, capture_output=True, text=True)
        took.append(time.monotonic() - begun)
        told = json.loads(said.stdout)
        inexact += not told["exact"]
        channel = told["channels"][0]
        # The measurement covers the window exactly, or to a node of the summary.
        own = recording.read(first, length)
        around = length // 1000 + 512
        near = recording.read(max(first - around, 0), length + 2 * around)
        good = near.min() <= channel["min"] <= own.min() and own.max() <= channel["max"] <= near.max()
        wrong += not good
        if not good:
            print(f"  {first} + {length}: {channel}, and of all samples {own.min()} to {own.max()}")
    picture.unlink(missing_ok=True)
    print(f"pictures of {count} stretches of 10k to 30M samples: {statistics.median(took):.2f} s (at most {max(took):.2f}); "
          f"{inexact} not exact, {wrong} with other extremes than their samples", flush=True)
    return wrong


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("grebe")
    options.add_argument("folder", type=Path)
    options.add_argument("--terabytes", type=float, default=1.0)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--keys", type=int, default=48)
    options.add_argument("--pictures", type=int, default=12)
    options = options.parse_args()
    grebe, folder = os.path.abspath(options.grebe), options.folder
    folder.mkdir(parents=True, exist_ok=True)
    random.seed(1)
    big = Recording(folder / "big", int(options.terabytes * 1e12) // 2, 24)
    small = Recording(folder / "baseline", 10_000, 0)
    wrong = 0
    try:
        compare_with_grebe(grebe, folder)
        big.write()
        small.write()
        print(f"load {os.getloadavg()[0]:.1f}; {big.samples * 2 / 1e12:.2f} TB of i16, {big.samples / 1e9:.0f} GS")
        print("| recording | first trace | a key: p50 / p95 / worst | memory |")
        print("|---|---|---|---|")
        for name in ("without a summary", "with its summary"):
            is_kept = name.startswith("with ")
            if is_kept:
                write_summary(big)
                took = os.stat(big.summary)
                print(f"  its summary: {took.st_size / 1e9:.2f} GB ({took.st_size / (big.samples * 2):.2%} of the data), "
                      f"{took.st_blocks * 512 / 1e6:.0f} MB on the disk")
            row(name, first_traces(grebe, big, is_kept, options.rounds), *keys(grebe, big, options.keys))
            row("20 kB, beside it", first_traces(grebe, small, True, options.rounds), *keys(grebe, small, options.keys))
            wrong += exact(grebe, big, folder, options.pictures)
            big.summary.unlink(missing_ok=True)
        print(f"load {os.getloadavg()[0]:.1f}")
    finally:
        big.remove()
        small.remove()
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
