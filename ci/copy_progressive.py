#!/usr/bin/env python3
"""Viewing a recording during its copy over an emulated link: rows for docs/benchmarks-trees.md. Linux, root.

    cargo build --release
    sudo ci/copy_progressive.py target/release/grebe ./wanlink --bytes 1000000000 --link 100,100,0

As ci/copy_table.py, whose emulator and sshd these are. The recording lies at the far end, one channel of 16 bits with one spike up and one
down, and has its summary beside it, as grebe record leaves it. Seconds are from the start of a command:

    seen from afar   `grebe view HOST:NAME --png`, nothing is copied: the exact extremes of the whole are in the picture
    the whole        the same of a copy with --progressive that has just begun: since the copy's command
    a stretch        the last hundredth of a second, since it was asked for: exact, to the sample
    all of it        the copy; --plain makes one without --progressive, too

Extremes are compared with those that were written, and the file with the one that was sent.
"""

import argparse
import filecmp
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from copy_table import THERE, Link, Room, size

RATE_HZ = 1_000_000
UP, DOWN, LATE = 30_000, -20_000, 5_000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grebe", type=Path)
    parser.add_argument("wanlink", type=Path)
    parser.add_argument("--link", default="100,100,0", help="Mbit/s, round trip in ms, loss")
    parser.add_argument("--bytes", default="2000000000", help="K and M are 1024")
    parser.add_argument("--plain", action="store_true", help="make a copy without --progressive, too")
    parser.add_argument("--dir", type=Path, default=Path("/dev/shm"), help="where recordings lie")
    options = parser.parse_args()
    rate, rtt_ms, loss = (float(number) for number in options.link.split(","))
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="grebe-copy-") as folder:
        room = Room(Path(folder))
        there, here = room.folder / "there", room.folder / "here"
        total = record(options.grebe, there, size(options.bytes))
        print(f"\n{total / 1e6:.0f} MB over {rate:g} Mbit/s, {rtt_ms:g} ms, {loss * 100:g} %; load {os.getloadavg()[0]:.1f}\n")
        print("| | s |\n|---|--:|", flush=True)
        with Link(options.wanlink, rate, rtt_ms, loss, seed=1, tcp="bbr") as link, room.sshd(link):
            use = Use(options.grebe.resolve(), room, link)
            row("`ssh host true`", use.timed(room.command("ssh", use.grebe)))
            row("seen from afar", use.picture(f"{THERE}:{there}/run7.sigmf-meta"))
            if options.plain:
                row("all of it, without --progressive", use.timed(use.copy(there, here)))
                check(there, here)
                shutil.rmtree(here)
            began, before = time.monotonic(), link.sent_bytes("b")
            copying = subprocess.Popen(link.inside("a") + use.copy(there, here, "--progressive"), env=use.environment)
            while not (here / "run7.sigmf-meta").exists():
                if copying.poll() is not None:
                    raise SystemExit("the copy ended before anything was seen")
                time.sleep(0.02)
            use.picture(here / "run7.sigmf-meta")
            row("the whole", time.monotonic() - began)
            for number in range(3):
                row("a stretch" if number == 0 else "the same stretch again", use.picture(here / "run7.sigmf-meta", "--span", "10ms"))
            if copying.wait() != 0:
                raise SystemExit("the copy failed")
            row("all of it, with --progressive", time.monotonic() - began)
            print(f"\nbytes on the wire / recording {(link.sent_bytes('b') - before) / total:.3f}; load {os.getloadavg()[0]:.1f}")
            check(there, here)


class Use:
    """The command, at the near end."""

    def __init__(self, grebe, room, link):
        self.grebe, self.room, self.link = grebe, room, link
        self.environment = {**os.environ, "XDG_CONFIG_HOME": str(room.folder), "XDG_CACHE_HOME": str(room.folder / "cache")}
        ssh = f"ssh -F {room.folder}/ssh_config"
        (room.folder / "grebe").mkdir()
        (room.folder / "grebe/cp.toml").write_text(f'[defaults]\nssh = "{ssh}"\nremote-path = "{grebe}"\n')

    def copy(self, there, here, *more):
        here.mkdir()
        names = [f"{THERE}:{there}/run7.sigmf-meta"] if more else [f"{THERE}:{there}/"]
        return [str(self.grebe), "cp", "-q", "-a", *more, *names, f"{here}/"]

    def timed(self, command):
        began = time.monotonic()
        subprocess.run(self.link.inside("a") + command, check=True, env=self.environment)
        return time.monotonic() - began

    def picture(self, name, *more):
        """Seconds until a picture shows the true extremes of its range."""
        command = [str(self.grebe), "view", str(name), "--png", str(self.room.folder / "picture.png"), "--json", *more]
        began = time.monotonic()
        done = subprocess.run(self.link.inside("a") + command, env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: {done.stderr}")
        took = time.monotonic() - began
        told = json.loads(done.stdout)
        channel = told["channels"][0]
        found, expected = (channel["min"], channel["max"]), (0, LATE) if more else (DOWN, UP)
        if not told["exact"] or found != expected:
            raise SystemExit(f"the picture shows {found}, exact {told['exact']}: {done.stderr}")
        return took


def record(grebe, folder, total):
    folder.mkdir()
    samples = total // 2
    ramp = b"".join((at % 1000).to_bytes(2, "little") for at in range(1_000_000))
    with open(folder / "run7.sigmf-data", "wb") as file:
        for at in range(0, samples, 1_000_000):
            file.write(ramp[: 2 * min(1_000_000, samples - at)])
        for at, value in [(samples // 3, UP), (samples // 5 * 4, DOWN), (samples - 5_000, LATE)]:
            file.seek(2 * at)
            file.write(value.to_bytes(2, "little", signed=True))
    about = {"core:datatype": "ri16_le", "core:sample_rate": RATE_HZ, "core:version": "1.2.0"}
    (folder / "run7.sigmf-meta").write_text(json.dumps({"global": about, "captures": [{"core:sample_start": 0}], "annotations": []}))
    # The first view writes the summary.
    subprocess.run([grebe, "view", folder / "run7.sigmf-meta", "--png", folder.parent / "made.png"], check=True, capture_output=True)
    if not (folder / "run7.grebe-summary").exists():
        raise SystemExit("it has no summary")
    return sum(path.stat().st_size for path in folder.iterdir())


def check(there, here):
    names = sorted(os.listdir(there))
    if sorted(os.listdir(here)) != names or filecmp.cmpfiles(there, here, names, shallow=False)[0] != names:
        raise SystemExit("what came is not what was sent")


def row(what, seconds):
    print(f"| {what} | {seconds:.2f} |", flush=True)


if __name__ == "__main__":
    main()
