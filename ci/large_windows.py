#!/usr/bin/env python3
"""Time and memory that programs need to show a large recording in a window.

    target/ci/venv/bin/python ci/large_windows.py target/release/grebe FOLDER [--rounds 3]

Needs Xvfb, and any of inspectrum and Audacity (Debian: apt-get install xvfb inspectrum audacity); missing programs are skipped, with a
message. FOLDER needs 0.8 GB, and Audacity's import, removed at the end. Each program opens the file by its command line, in turns, on an X server without a screen whose
pixels are read fifty times a second. A picture counts from the time when nineteen of twenty of its pixels have their final
value, which is the one after two seconds without a change (Audacity: six, because it imports first). Check the pictures in target/ci: an error message is a picture, too.
"""

import argparse
import mmap
import os
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np

WIDTH, HEIGHT = 1280, 800
# Seconds with few changed pixels until a window counts as settled. grebe shows its progress, and
# Audacity imports first.
SETTLE = {"": (2, WIDTH * HEIGHT // 200), "audacity": (6, 0)}
KEPT = Path(__file__).resolve().parent.parent / "target" / "ci"


class Screen:
    """An X server without a screen, whose pixels are in a file."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        read, write = os.pipe()
        command = ["Xvfb", "-displayfd", str(write), "-screen", "0", f"{WIDTH}x{HEIGHT}x24", "-nolisten", "tcp", "-noreset", "-fbdir", self.folder.name]
        self.server = subprocess.Popen(command, pass_fds=[write], stderr=subprocess.DEVNULL)
        os.close(write)
        with open(read) as told:
            self.display = ":" + told.readline().strip()
        with open(f"{self.folder.name}/Xvfb_screen0", "rb") as file:
            self.map = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        header, colours = struct.unpack(">I", self.map[:4])[0], struct.unpack(">I", self.map[76:80])[0]
        self.first = header + colours * 12

    def pixels(self):
        all = np.frombuffer(self.map, dtype=np.uint32, offset=self.first, count=WIDTH * HEIGHT)
        return all.reshape(HEIGHT, WIDTH) & 0xFFFFFF

    def close(self):
        self.server.terminate()
        self.server.wait()


def write_png(path, pixels):
    rows = np.zeros((HEIGHT, 1 + WIDTH * 3), dtype=np.uint8)
    for channel, shift in enumerate((16, 8, 0)):
        rows[:, 1 + channel::3] = pixels >> shift & 0xFF
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows.tobytes(), 1)) + chunk(b"IEND", b""))


def show(command, home, limit_s, settle, name):
    """Seconds until its picture, and its memory in MB; none if it ends, or draws nothing until the limit."""
    screen = Screen()
    environment = dict(os.environ, DISPLAY=screen.display, HOME=str(home), XDG_CONFIG_HOME=str(home / ".config"), XDG_STATE_HOME=str(home / "state"))
    environment.pop("WAYLAND_DISPLAY", None)
    blank = screen.pixels().copy()
    began = time.monotonic()
    program = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    os.set_blocking(program.stderr.fileno(), False)
    seen, last, changed, peak_mb = [], blank, began, 0
    while (now := time.monotonic()) - began < limit_s and program.poll() is None:
        pixels = screen.pixels().copy()
        if not np.array_equal(pixels, last):
            seen.append((now - began, pixels[::4, ::4].copy()))
            if np.count_nonzero(pixels != last) > settle[1]:
                changed = now
            last = pixels
        peak_mb = max(peak_mb, memory_mb(program.pid))
        # A mere pointer or a progress box does not count as the picture.
        if now - changed > settle[0] and np.count_nonzero(last != blank) > WIDTH * HEIGHT // 10:
            break
        time.sleep(0.02)
    status = program.poll()
    said = (program.stderr.read() or b"").decode(errors="replace").strip().splitlines()
    if status is None:
        os.killpg(program.pid, signal.SIGKILL)
    program.wait()
    KEPT.mkdir(parents=True, exist_ok=True)
    write_png(KEPT / f"large-{name}.png", last)
    screen.close()
    if status is not None or np.array_equal(last, blank):
        return None, peak_mb, (f"ended with {status}: {said[-1] if said else 'no word'}" if status is not None else "drew nothing")
    final = last[::4, ::4]
    for at, pixels in seen:
        if np.count_nonzero(pixels != final) * 20 < final.size:
            return at, peak_mb, ""
    return None, peak_mb, "never the same"


def memory_mb(pid):
    try:
        return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1000
    except (OSError, TypeError):
        return 0


def noise(file, samples, top=12_000):
    made = np.random.default_rng(1).integers(-top, top, 1 << 22, dtype=np.int16).tobytes()
    for at in range(0, samples * 2, len(made)):
        file.write(made[:min(len(made), samples * 2 - at)])


def write_files(folder):
    """A terabyte and 8 GB, sparse, with noise at the beginning; half a gigabyte of it as WAV."""
    for name, size in (("terabyte.cs16", 10**12), ("eight.cs16", 8 * 10**9)):
        with open(folder / name, "wb") as file:
            file.truncate(size)
            noise(file, 32_000_000)
            file.seek(size // 2)
            noise(file, 16_000_000)
    samples = 250_000_000
    with open(folder / "half.wav", "wb") as file:
        file.write(struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + samples * 2, b"WAVE", b"fmt ", 16, 1, 1, 48_000, 96_000, 2, 16, b"data", samples * 2))
        noise(file, samples)
        os.fsync(file.fileno())


def audacity_home(folder):
    """Disables its greeting and its recovery after a kill."""
    home = folder / "home"
    shutil.rmtree(home, ignore_errors=True)
    place = home / ".config" / "audacity"
    place.mkdir(parents=True, exist_ok=True)
    said = ["NewPrefsInitialized=1", "PrefsVersion=1.1.1r1", "[GUI]", "ShowSplashScreen=0", "[Version]", "Major=3", "Minor=2", "Micro=4"]
    said += ["[Update]", "DefaultUpdatesChecking=0", "[Directories]", f"TempDir={home / 'tmp'}"]
    (place / "audacity.cfg").write_text("\n".join(said) + "\n")
    return home


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("grebe")
    options.add_argument("folder", type=Path)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--limit", type=float, default=120, help="seconds for each")
    options = options.parse_args()
    grebe, folder = os.path.abspath(options.grebe), options.folder / f"large-windows-{os.getpid()}"
    folder.mkdir(parents=True)
    rate = "?rate=1M"
    cases = [
        ("1 TB of cs16, sparse", "terabyte.cs16", [("grebe view", lambda path: [grebe, "view", path + rate, "--no-session"]), ("inspectrum", lambda path: ["inspectrum", "-r", "1000000", path])]),
        ("8 GB of cs16, sparse", "eight.cs16", [("grebe view", lambda path: [grebe, "view", path + rate, "--no-session"]), ("inspectrum", lambda path: ["inspectrum", "-r", "1000000", path])]),
        ("0.5 GB of WAV", "half.wav", [("grebe view", lambda path: [grebe, "view", path, "--no-session"]), ("audacity", lambda path: ["audacity", path])]),
    ]
    try:
        write_files(folder)
        print(f"load {os.getloadavg()[0]:.1f}\n| file | program | its picture, {options.rounds} runs | memory |\n|---|---|---|---|")
        for title, name, programs in cases:
            took = {program: [] for program, _ in programs}
            memory, words = {}, {}
            for _ in range(options.rounds):
                for program, command in programs:
                    if program != "grebe view" and not shutil.which(program):
                        words[program] = "is not there"
                        continue
                    for path in folder.iterdir():
                        if path.is_file():
                            with open(path, "rb") as file:
                                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                    # Each as if it had never seen the file.
                    for summary in folder.glob("*.grebe-summary*"):
                        summary.unlink()
                    short = f"{program.split()[0]}-{Path(name).stem}"
                    at, peak_mb, said = show(command(str(folder / name)), audacity_home(folder), options.limit, SETTLE.get(program, SETTLE[""]), short)
                    memory[program] = max(memory.get(program, 0), peak_mb)
                    words[program] = said
                    if at is not None:
                        took[program].append(at)
            for program, _ in programs:
                times = took[program]
                told = f"{statistics.median(times):.2f} s ({min(times):.2f} - {max(times):.2f})" if times else words[program]
                print(f"| {title} | {program} | {told} | {memory.get(program, 0):.0f} MB |", flush=True)
        print(f"load {os.getloadavg()[0]:.1f}; what they showed: {KEPT}/large-*.png")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
