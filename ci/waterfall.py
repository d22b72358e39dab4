#!/usr/bin/env python3
"""The speed of work in time and frequency, beside plain reads of the same files: one table for docs/benchmarks-view.md.

usage: target/ci/venv/bin/python ci/waterfall.py target/release/grebe FOLDER [--part 1.0]

Takes five minutes and 9 GB of FOLDER on a quiet machine, and leaves nothing. `--part 0.02` is a quick look with files as much smaller.
Processor time is that of the command and its threads, the rest is time by the clock. Files are read through the page cache, which is
dropped before where a row says "disk". An hour of 2.4 MS/s (69 GB) and a day of 1 MS/s (346 GB) are sparse: holes with noise in
places, read at the speed of memory. Their summaries are true, made by grebe: they are whole files on the disk.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from large_view import Terminal, drop_cache

RATE_HZ = 20_000_000
WIDE_S = 40
BOXES = 100
RECORD_RATE_HZ = 100_000_000
RECORD_S = 6
HOUR_RATE_HZ, HOUR_S = 2_400_000, 3600
DAY_RATE_HZ, DAY_PARTS, PART_S = 1_000_000, 16, 5400
TURNS = 3
KEYS = 40


def row(name, value, goal=""):
    print(f"| {name} | {value} | {goal} |", flush=True)


def timed(command, **more):
    """Processor time and time by the clock of a command, in seconds, and its output."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **more)
    after, took = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - began
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, took, done.stdout


def in_turns(*commands):
    """The lowest processor time and the lowest time of each command."""
    runs = [[timed(command)[:2] for command in commands] for _ in range(TURNS)]
    return [tuple(min(run[at][of] for run in runs) for of in (0, 1)) for at in range(len(commands))]


def read_command(path, first=0, length=None):
    """A plain read of a part of a file, by the fastest tool that is everywhere."""
    count = [] if length is None else [f"count={length}", "iflag=fullblock,count_bytes,skip_bytes", f"skip={first}"]
    return ["dd", f"if={path}", "of=/dev/null", "bs=1M", *count]


def sigmf(base, datatype, rate_hz, global_index=0):
    said = {"core:datatype": datatype, "core:sample_rate": rate_hz, "core:version": "1.2.0"}
    captures = [{"core:sample_start": 0, "core:global_index": global_index}]
    base.with_suffix(".sigmf-meta").write_text(json.dumps({"global": said, "captures": captures, "annotations": []}))


def work_on_a_file(grebe, folder, part):
    """Bursts, cuts and boxes of 20 MS/s."""
    samples = max(int(WIDE_S * part), 2) * RATE_HZ
    wide = folder / "wide.sigmf-meta"
    subprocess.run([grebe, "sg", "--format", "ci16", "--rate", str(RATE_HZ), "--wave", "qpsk", "--symbol-rate", "200k", "--snr", "20",
                    "--samples", str(samples), "--free-run", "--to", wide], check=True, capture_output=True)
    data = wide.with_suffix(".sigmf-data")
    size, seconds = data.stat().st_size, samples / RATE_HZ
    find = [grebe, "find", wide, "--trigger", "burst", "--above", "12dB"]
    (read_cpu, read_s), (find_cpu, find_s) = in_turns(read_command(data), find)
    row(f"plain read of {size / 1e9:.1f} GB from memory", f"{size / read_s / 1e9:.1f} GB/s")
    row("find --trigger burst, processor time beyond the read", f"{(find_cpu - read_cpu) / samples * 1e9:.1f} ns a sample, {(find_cpu - read_cpu) / size * 1e9:.2f} ns a byte")
    row("find --trigger burst, from memory", f"{size / find_s / 1e9:.2f} GB/s")
    drop_cache(data)
    disk_s = timed(read_command(data))[1]
    drop_cache(data)
    disk_find_s = timed(find)[1]
    row("find --trigger burst, from the disk, of a plain read", f"{disk_s / disk_find_s:.2f} ({size / disk_s / 1e9:.2f} GB/s read)", ">= 0.5")
    out = folder / "cut.sigmf-meta"
    at = seconds / 2
    cut = [grebe, "convert", wide, out, "--overwrite", "--box", f"{at - 0.5},{at + 0.5},900k,1100k"]
    second = read_command(data, int((at - 0.5) * RATE_HZ) * 4, RATE_HZ * 4)
    (read_cpu, read_s), (cut_cpu, cut_s) = in_turns(second, cut)
    row("1 s x 200 kHz of 20 MS/s, beyond the read", f"{cut_s - read_s:.2f} s, processor {cut_cpu - read_cpu:.2f} s", "<= 0.2 s")
    for name, goal, length in (("one after another", "<= 2 times", seconds / BOXES), ("of all times at once", "", seconds)):
        places = [(at * (seconds - length) / (BOXES - 1), -9.5e6 + at * 19e4) for at in range(BOXES)]
        boxes = [word for begin, low in places for word in ("--box", f"{begin:.6f},{begin + length:.6f},{low:.0f},{low + 1.5e4:.0f}")]
        drop_cache(data)
        cpu, took, _ = timed([grebe, "convert", wide, folder / "boxes.sigmf-meta", "--overwrite", *boxes])
        row(f"{BOXES} boxes of 15 kHz, {name}, in one pass", f"{size / took / 1e9:.2f} GB/s, {cpu / samples * 1e9:.0f} ns a sample, {took / disk_s:.1f} times the disk's read", goal)
    for path in folder.iterdir():
        path.unlink()


def recording(grebe, folder, part):
    """100 MS/s of cf32 with both summaries."""
    samples = int(max(RECORD_S * part, 1) * RECORD_RATE_HZ)
    path, name = folder / "record.sigmf-meta", f"waterfall-{os.getpid()}"
    maker = subprocess.Popen([grebe, "sg", "--format", "cf32", "--wave", "square", "--rate", str(RECORD_RATE_HZ), "--samples", str(samples),
                              "--to", f"shm://{name}?wait=1"], stderr=subprocess.DEVNULL)
    command = [grebe, "record", f"shm://{name}", path, "--json", "--buffer", "2G"]
    recorder = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    told = json.loads(recorder.stdout.read())
    _, _, used = os.wait4(recorder.pid, 0)
    maker.kill()
    maker.wait()
    size = path.with_suffix(".sigmf-data").stat().st_size
    made, seconds = samples * 8, samples / RECORD_RATE_HZ
    row("recording 100 MS/s of cf32: lost samples", f"{samples - told['samples']} of {samples}", "0")
    row("... processor time of all of it", f"{(used.ru_utime + used.ru_stime) / seconds:.2f} cores, {(used.ru_utime + used.ru_stime) / samples * 1e9:.1f} ns a sample")
    sizes = {ending: path.with_suffix(ending) for ending in (".grebe-summary", ".grebe-spectra")}
    there = {ending: it.stat().st_size / max(size, 1) if it.exists() else None for ending, it in sizes.items()}
    row("... its summaries, of the data", ", ".join(f"{ending[7:]} {'given up' if share is None else f'{share:.2%}'}" for ending, share in there.items()), "<= 2 % together")
    assert made >= size
    for path in folder.iterdir():
        path.unlink()


def sparse(base, samples, item_bytes, rate_hz, datatype):
    """A file of holes with noise in 24 places, 0.1 s each."""
    sigmf(base, datatype, rate_hz)
    random = np.random.default_rng(1)
    with open(base.with_suffix(".sigmf-data"), "wb") as file:
        file.truncate(samples * item_bytes)
        for place in range(24):
            noise = random.standard_normal(rate_hz // 10 * 2).astype("f4") * np.float32(0.1)
            file.seek(samples * place // 24 * item_bytes)
            file.write((noise if item_bytes == 8 else (noise * 32767).astype("<i2")).tobytes())


def make_spectra(grebe, base, limit_s=600):
    """Lets grebe make the summaries of a recording; the seconds that it takes."""
    begun = time.monotonic()
    terminal = Terminal(grebe, base.with_suffix(".sigmf-meta"), "--waterfall")
    wanted = [base.with_suffix(ending) for ending in (".grebe-summary", ".grebe-spectra")]
    while not all(path.exists() for path in wanted) and time.monotonic() - begun < limit_s:
        terminal.rest(0.2)
    took = time.monotonic() - begun
    terminal.close()
    return took


def pictures(grebe, path, name, span_s, goal):
    """The first waterfall of all of it by the clock, keys that zoom, and memory."""
    drop_cache(*(it for it in [*path.parent.iterdir(), *(path.iterdir() if path.is_dir() else [])] if it.is_file()))
    terminal = Terminal(grebe, path, "--waterfall", "--span", f"{span_s}s")
    first = terminal.wait(lambda seen: b"cell;" in seen)
    row(f"{name}: first waterfall of all", "none" if first is None else f"{first:.2f} s", goal)
    terminal.rest(1.0)
    took = sorted(it for it in (terminal.key(key) for key in [b"+"] * (KEYS // 2) + [b"-"] * (KEYS // 2)) if it is not None)
    at = lambda share: took[min(int(len(took) * share), len(took) - 1)] * 1e3 if took else float("nan")
    row(f"{name}: a key that zooms, p50 / p95", f"{at(0.5):.0f} / {at(0.95):.0f} ms of {len(took)}", "p95 <= 100 ms")
    row(f"{name}: highest memory of the scope", f"{max(terminal.peak_mb(), 0):.0f} MB", "<= 300 MB")
    terminal.close()


def hour(grebe, folder, part):
    base, samples = folder / "hour", int(HOUR_RATE_HZ * HOUR_S * part)
    sparse(base, samples, 8, HOUR_RATE_HZ, "cf32_le")
    size, span_s = samples * 8, samples / HOUR_RATE_HZ
    name = f"{size / 1e9:.0f} GB, sparse"
    meta = base.with_suffix(".sigmf-meta")
    pictures(grebe, meta, f"{name}, without a summary", span_s, "at once")
    for ending in (".grebe-summary", ".grebe-spectra"):
        base.with_suffix(ending).unlink(missing_ok=True)
    took = make_spectra(grebe, base)
    spectra = base.with_suffix(".grebe-spectra")
    row(f"{name}: its summaries in the background", f"{took:.0f} s, {size / took / 1e9:.1f} GB/s" if spectra.exists() else f"not whole after {took:.0f} s")
    pictures(grebe, meta, f"{name}, with its summary", span_s, "<= 2 s")
    for path in folder.iterdir():
        path.unlink()


def day(grebe, folder, part):
    """The ring of a day: its parts are one sparse part with a true summary, hard-linked."""
    ring, samples, parts = folder / "ring", PART_S * DAY_RATE_HZ, max(int(DAY_PARTS * part), 3)
    ring.mkdir()
    first = ring / "ring_000001"
    sparse(first, samples, 4, DAY_RATE_HZ, "ci16_le")
    make_spectra(grebe, first)
    endings = [ending for ending in (".sigmf-data", ".grebe-summary", ".grebe-spectra") if first.with_suffix(ending).exists()]
    for number in range(2, parts + 1):
        base = ring / f"ring_{number:06}"
        sigmf(base, "ci16_le", DAY_RATE_HZ, (number - 1) * samples)
        for ending in endings:
            os.link(first.with_suffix(ending), base.with_suffix(ending))
    own = sum(first.with_suffix(ending).stat().st_size for ending in endings if ending != ".sigmf-data")
    data = samples * 4
    name = f"{parts * PART_S / 3600:.1f} h of 1 MS/s ci16 in a ring, sparse"
    row(f"{name}: size", f"{parts * data / 1e9:.0f} GB of samples, {parts * own / 1e9:.2f} GB of summaries ({own / data:.2%})", "<= 2 %")
    pictures(grebe, ring, name, parts * PART_S, "<= 2 s")
    shutil.rmtree(ring)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("grebe")
    options.add_argument("folder", type=Path)
    options.add_argument("--part", type=float, default=1.0, help="of the full sizes")
    options.add_argument("--only", help="file, recording, hour, day")
    options = options.parse_args()
    grebe, folder = os.path.abspath(options.grebe), options.folder / f"waterfall-{os.getpid()}"
    folder.mkdir(parents=True)
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors\n\n| | | goal |\n|---|---|---|", flush=True)
    steps = {"file": work_on_a_file, "recording": recording, "hour": hour, "day": day}
    failed = False
    for name, step in steps.items():
        if options.only in (None, name):
            try:
                step(grebe, folder, options.part)
            except (subprocess.CalledProcessError, OSError, ValueError) as error:
                failed = True
                row(f"{name}: failed", f"{error} {(getattr(error, 'stderr', None) or '')[-300:]}")
                shutil.rmtree(folder)
                folder.mkdir()
    shutil.rmtree(folder)
    print(f"\nload {os.getloadavg()[0]:.1f}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
