#!/usr/bin/env python3
"""A tree of mixed sizes copied within this machine, each way in turn: a row for docs/benchmarks-trees.md, "Within one machine". Linux.

    cargo build --release
    ci/copy_here.py target/release/grebe FOLDER --bytes 4000M --rounds 3

Half of the bytes are in files of 1 KiB to 64 KiB, a quarter in files up to 4 MiB and a quarter in files up to 256 MiB; there are symbolic
links, hard links and empty directories, too. Before each run the previous copy is removed and the disk is flushed. The time
includes the flush of the copy, unless --cached. The source is in the page cache as far as that holds it. Every copy is compared, byte by byte, with
modes and times, after its first run.
"""

import argparse
import os
import random
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from copy_table import size

WAYS = {
    "grebe cp -a": "{grebe} cp --no-config -q -a {tree}/ {copy}",
    "cp -a": "cp -a {tree} {copy}",
    "rsync -a": "rsync -aH {tree}/ {copy}",
    "tar": "mkdir {copy} && tar -C {tree} -cf - . | tar -C {copy} -xpf -",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grebe", type=Path)
    parser.add_argument("folder", type=Path, help="on the disk that is measured: three times --bytes at most")
    parser.add_argument("--bytes", default="4000M", help="K and M are 1024")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cached", action="store_true", help="what was written may stay in the page cache")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="grebe-here-") as folder:
        tree, copy = Path(folder) / "tree", Path(folder) / "copy"
        files, total = plant(tree, size(options.bytes))
        print(f"\n{files} files, {total / 1e9:.2f} GB; load {os.getloadavg()[0]:.1f}\n")
        print("| | median, s | runs | GB/s | processor, s |\n|---|--:|---|--:|--:|", flush=True)
        runs = {way: [] for way in WAYS}
        for number in range(options.rounds):
            for way, line in WAYS.items():
                runs[way].append(run_one(line, options, tree, copy, is_first=number == 0))
        for way, measured in runs.items():
            seconds, processor = zip(*measured)
            middle = statistics.median(seconds)
            each = ", ".join(f"{value:.2f}" for value in seconds)
            print(f"| {way} | {middle:.2f} | {each} | {total / middle / 1e9:.2f} | {statistics.median(processor):.2f} |")
        print(f"\nload {os.getloadavg()[0]:.1f}")


def run_one(line, options, tree, copy, is_first):
    shutil.rmtree(copy, ignore_errors=True)
    os.sync()
    before, began = processor_s(), time.monotonic()
    subprocess.run(["sh", "-c", line.format(grebe=options.grebe.resolve(), tree=tree, copy=copy)], check=True)
    if not options.cached:
        os.sync()
    took, processor = time.monotonic() - began, processor_s() - before
    if is_first:
        wrong = subprocess.run(["diff", "-r", "--no-dereference", tree, copy], capture_output=True, text=True).stdout
        if wrong or facts(tree) != facts(copy):
            raise SystemExit(f"{line}: it is not the same: {wrong[:200]}")
    return took, processor


def processor_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def facts(tree):
    """Modes, times and links of all entries."""
    found = {}
    for folder, folders, files in os.walk(tree):
        for name in folders + files:
            path = Path(folder) / name
            status = path.lstat()
            # Other ways may leave times of directories and links to the second.
            found[path.relative_to(tree)] = (status.st_mode, status.st_nlink if not path.is_dir() else 0, int(status.st_mtime))
    return found


def plant(tree, total):
    draw, files = random.Random(7), 0
    for least, most, share in [(1 << 10, 64 << 10, 2), (64 << 10, 4 << 20, 1), (4 << 20, 256 << 20, 1)]:
        left = total * share // 4
        while left > 0:
            # As many small files as large ones, in their logarithms.
            bytes_ = min(int(least * (most / least) ** draw.random()), left)
            folder = tree / f"{files // 500:03}" / f"{files % 7}"
            folder.mkdir(parents=True, exist_ok=True)
            with open(folder / f"{files}.bin", "wb") as file:
                for at in range(0, bytes_, 1 << 20):
                    file.write(draw.randbytes(min(1 << 20, bytes_ - at)))
            left -= bytes_
            files += 1
    (tree / "empty").mkdir()
    (tree / "link").symlink_to("000/0/0.bin")
    (tree / "hard").hardlink_to(tree / "000/0/0.bin")
    return files, total


if __name__ == "__main__":
    main()
