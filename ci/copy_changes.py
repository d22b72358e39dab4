#!/usr/bin/env python3
"""Copies of a changed tree over an emulated link: rows for docs/benchmarks-trees.md, "Changes over a link". Linux, root.

    cargo build --release
    sudo ci/copy_changes.py target/release/grebe ./wanlink --cases places,front --link 100,100,0 --rounds 3

As ci/copy_table.py, whose emulator and sshd these are, with an older tree at the destination before each run:

    places    one file, of which 1 % changed in 100 places
    front     one file with 777 new bytes before it
    renamed   a directory of files of 1 MB, under another name
    same      unchanged files of 1 KiB; again with the index of the run before
    sparse    one file of --sparse bytes, 3 of which are data; an empty destination

Every received tree is compared with the sent one. CPU time is that of both ends, with their ssh and sshd.
"""

import argparse
import ctypes
import os
import random
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from copy_table import Link, Room, difference, size


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grebe", type=Path)
    parser.add_argument("wanlink", type=Path)
    parser.add_argument("--cases", default=",".join(CASES), help="by commas")
    parser.add_argument("--link", default="100,100,0", help="Mbit/s, round trip in ms, loss")
    parser.add_argument("--bytes", default="1000000000", help="of the file or the directory; K and M are 1024")
    parser.add_argument("--files", type=int, default=200_000, help="of which nothing changed")
    parser.add_argument("--sparse", type=int, default=10_000_000_000)
    parser.add_argument("--congestion", default="bbr,cubic", help="of rsync's TCP, by commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit-s", type=float, default=120, help="what takes longer is given up, and not tried again")
    parser.add_argument("--dir", type=Path, default=Path("/dev/shm"), help="where trees lie")
    options = parser.parse_args()
    # Adopts the children of finished ssh and sshd processes, so that their processor time counts
    # here.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for case in options.cases.split(","):
        with tempfile.TemporaryDirectory(dir=options.dir, prefix="grebe-copy-") as folder:
            print(f"\n{case}, over {options.link}; load {os.getloadavg()[0]:.1f}\n")
            print("| | median, s | runs | there, MB | back, MB | processor, s |\n|---|--:|---|--:|--:|--:|", flush=True)
            measure(options, case, Room(Path(folder)))


def measure(options, case, room):
    CASES[case](room, options)
    old = room.folder / "old"
    rate, rtt_ms, loss = (float(number) for number in options.link.split(","))
    ways = ["ssh", "grebe"] + (["grebe --index"] if case == "same" else []) + [f"rsync {tcp}" for tcp in options.congestion.split(",")]
    runs = {way: [] for way in ways}
    for number in range(options.rounds):
        for way in ways:
            if any(isinstance(run, str) for run in runs[way]):
                continue
            if old.is_dir() and not (case == "same" and room.arrived.is_dir()):
                shutil.rmtree(room.arrived, ignore_errors=True)
                subprocess.run(["cp", "-a", old, room.arrived], check=True)
            tcp = way.split()[1] if way.startswith("rsync") else "bbr"
            if why := Link.refuses(tcp):
                runs[way].append(why)
                continue
            with Link(options.wanlink, rate, rtt_ms, loss, seed=number + 1, tcp=tcp) as link:
                if way == "grebe --index" and number == 0:
                    run_one(options, room, link, way, case)
                runs[way].append(run_one(options, room, link, way, case))
    for way, measured in runs.items():
        wrong = next((run for run in measured if isinstance(run, str)), None)
        if wrong:
            print(f"| {way} | | {wrong} | | | |", flush=True)
            continue
        seconds, there, back, processor = zip(*measured)
        each = ", ".join(f"{value:.2f}" for value in seconds)
        middle = [statistics.median(values) for values in (there, back, processor)]
        print(f"| {way} | {statistics.median(seconds):.2f} | {each} | {middle[0] / 1e6:.3f} | {middle[1] / 1e6:.3f} | {middle[2]:.2f} |", flush=True)


def run_one(options, room, link, way, case):
    """Seconds, bytes in both directions, and CPU seconds; or the reason of the failure."""
    command = room.command(way.split()[0], options.grebe.resolve())
    if way == "ssh":
        case = ""
    command[-2:-2] = {"renamed": ["--delete"], "sparse": ["-S"] if way.startswith("rsync") else []}.get(case, [])
    if case == "renamed" and way.startswith("rsync"):
        command[-2:-2] = ["--fuzzy", "--delete-after"]
    if way == "grebe --index":
        command.insert(-2, "--index")
    # Keeps the state of copies beside this run's trees.
    environment = {**os.environ, "XDG_STATE_HOME": str(room.folder / "state")}
    before = processor_s()
    with room.sshd(link):
        there, back, began = link.sent_bytes(), link.sent_bytes("b"), time.monotonic()
        try:
            done = subprocess.run(link.inside("a") + command, capture_output=True, timeout=options.limit_s, env=environment)
        except subprocess.TimeoutExpired:
            return f"not done after {options.limit_s:g} s"
        took = time.monotonic() - began
        there, back = link.sent_bytes() - there, link.sent_bytes("b") - back
    wait_for_orphans(link.process.pid)
    processor = processor_s() - before
    if done.returncode != 0:
        return f"failed: {done.stderr.decode(errors='replace').strip().splitlines()[-1:]}"
    wrong = None if way == "ssh" else sparse_difference(room) if case == "sparse" else difference(room.tree, room.arrived)
    if case == "sparse":
        shutil.rmtree(room.arrived, ignore_errors=True)
    return wrong or (took, there, back, processor)


def wait_for_orphans(emulator):
    """Waits until only the emulator is left of this process's children, and its last packets are counted."""
    until = time.monotonic() + 5
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while time.monotonic() < until:
        left = [int(pid) for pid in children.read_text().split() if int(pid) != emulator]
        if not left:
            return
        for pid in left:
            os.waitpid(pid, os.WNOHANG)
        time.sleep(0.02)


def processor_s():
    """CPU time of all ended processes: the copy, the sshd, and their children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def plant_places(room, options):
    draw, total = random.Random(7), size(options.bytes)
    content = write_old(room, draw, total)
    place = total // 10_000
    for number in range(100):
        at = total // 100 * number + draw.randrange(total // 100 - place)
        content[at : at + place] = draw.randbytes(place)
    write(room.tree / "large.bin", content)


def plant_front(room, options):
    draw = random.Random(7)
    content = write_old(room, draw, size(options.bytes))
    write(room.tree / "large.bin", draw.randbytes(777), content)


def plant_renamed(room, options):
    draw = random.Random(7)
    for number in range(max(size(options.bytes) // 1_000_000, 1)):
        write(room.tree / f"new/{number}.bin", draw.randbytes(1_000_000))
    subprocess.run(["cp", "-a", room.tree, room.folder / "old"], check=True)
    (room.folder / "old/new").rename(room.folder / "old/before")


def plant_same(room, options):
    draw = random.Random(7)
    for number in range(options.files):
        write(room.tree / f"{number // 1000:03}/{number}.bin", draw.randbytes(1024))
    # Of what changed within two seconds no index keeps anything.
    time.sleep(2.5)
    subprocess.run(["cp", "-a", room.tree, room.folder / "old"], check=True)


def plant_sparse(room, options):
    write(room.tree / "sparse.bin")
    with open(room.tree / "sparse.bin", "r+b") as file:
        file.truncate(options.sparse)
        for at in (0, options.sparse // 3, options.sparse - 1):
            os.pwrite(file.fileno(), b"x", at)


def write_old(room, draw, total):
    content = bytearray().join(draw.randbytes(min(1 << 20, total - at)) for at in range(0, total, 1 << 20))
    old = room.folder / "old/large.bin"
    write(old, content)
    os.utime(old, (1_000_000_000, 1_000_000_000))
    return content


def write(path, *contents):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        for content in contents:
            file.write(content)


def sparse_difference(room):
    """Compares only data: the holes are the same in both."""
    sent, came = room.tree / "sparse.bin", room.arrived / "sparse.bin"
    if sent.stat().st_size != came.stat().st_size:
        return "it has another length"
    on_disk = came.stat().st_blocks * 512
    if on_disk > 1_000_000:
        return f"it takes {on_disk / 1e6:.1f} MB"
    with open(sent, "rb") as one, open(came, "rb") as other:
        for file in (one, other):
            at = 0
            while True:
                try:
                    at = os.lseek(file.fileno(), at, os.SEEK_DATA)
                except OSError:
                    break
                end = os.lseek(file.fileno(), at, os.SEEK_HOLE)
                if os.pread(one.fileno(), end - at, at) != os.pread(other.fileno(), end - at, at):
                    return f"it differs at {at}"
                at = end
    return None


PR_SET_CHILD_SUBREAPER = 36
CASES = {
    "places": plant_places,
    "front": plant_front,
    "renamed": plant_renamed,
    "same": plant_same,
    "sparse": plant_sparse,
}

if __name__ == "__main__":
    main()
