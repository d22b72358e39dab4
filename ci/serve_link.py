#!/usr/bin/env python3
"""Pictures of a remote scope over an emulated link: rows for docs/benchmarks-network.md. Linux, root.

    cargo build --release
    sudo ci/serve_link.py target/release/grebe ./wanlink --rate 1G --links 1,50,0.01 0.128,50,0.01

The emulator is that of ci/copy_table.py. A generator and `grebe serve` run in one namespace, a viewer of this script in the other. Both have one
monotonic clock, so the age of a picture when it comes is what it is: from the newest sample in it to its last byte here. Bytes are those that the
sending namespace's device counted, and losses those that the server's scope knows: all since it began, and those while the row was measured.
--jumps has a viewer go to that many places of the history by turns, each held: how long until a picture of it is there, and an exact one.
--waterfall adds a waterfall to the picture: rows that arrived per second; then boxes of the past by turns: how long until one is measured exactly.
--hour FOLDER serves a recording of an hour of 100 MS/s instead (720 GB, sparse, with noise in 24 places and its summary; 0.3 GB of the disk, removed
at the end; needs numpy), whose pages were dropped from the cache, and jumps in it, every second time to the noise:

    sudo target/ci/venv/bin/python ci/serve_link.py target/release/grebe ./wanlink --hour /data/box --links 1,50,0.01 --spans 0.001 0.1 10 --jumps 40
"""

import argparse
import base64
import json
import os
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

NAME = f"sv{os.getpid()}"
THERE = "198.18.0.1"
BEGINS_S = 3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grebe", type=Path)
    parser.add_argument("wanlink", type=Path)
    parser.add_argument("--links", nargs="+", default=["1,50,0.01", "0.128,50,0.01"], help="Mbit/s, ms one way, loss")
    parser.add_argument("--rate", default="1G")
    parser.add_argument("--wave", default="sine")
    parser.add_argument("--spans", nargs="+", type=float, default=[1e-3, 1.0], help="s")
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--viewers", type=int, default=1)
    parser.add_argument("--duration", type=float, default=20)
    parser.add_argument("--jumps", type=int, default=0)
    parser.add_argument("--waterfall", action="store_true")
    parser.add_argument("--hour", type=Path, metavar="FOLDER")
    parser.add_argument("--memory", default="", help="of the stream's shared memory, for one reader, as 1G; as it is where none is given")
    parser.add_argument("--tcp", default="", help="congestion control of the sending end, as bbr; as it is where none is given")
    options = parser.parse_args()
    # A path that begins with "." loses that, and would be looked for among the commands.
    options.grebe, options.wanlink = options.grebe.resolve(), options.wanlink.resolve()
    if options.hour:
        return hour(options)
    stream = f"shm://{NAME}"
    written = f"{stream}?readers=1&memory={options.memory}" if options.memory else stream
    memory = f", memory {options.memory}" if options.memory else ""
    print(f"1 channel of {options.rate}S/s {options.wave}, {options.columns} columns, {options.viewers} viewers{memory}; load {os.getloadavg()[0]:.1f}\n")
    print("| link | span | pictures/s | age p50, p95, max | wire | server's processor: alone, with them | samples lost, in all |\n|---|--:|--:|--:|--:|--:|--:|", flush=True)
    generator = [options.grebe, "sg", "--to", written, "--rate", options.rate, "--wave", options.wave, "--frequency", "997"]
    with Kept(generator):
        for link in options.links:
            rate, delay_ms, loss = (float(number) for number in link.split(","))
            with Kept(emulator(options, (rate, delay_ms, loss)), is_up):
                if options.tcp:
                    run(["ip", "netns", "exec", f"{NAME}-a", "sysctl", "-qw", f"net.ipv4.tcp_congestion_control={options.tcp}"])
                with Kept(serve(options, stream)) as server:
                    token = token_of(server)
                    alone = used(server, options.duration / 2)
                    for span in options.spans:
                        print(row(options, server, token, (rate, delay_ms, loss), span, alone), flush=True)
                        if options.waterfall:
                            print(waterfall(options, token, (rate, delay_ms, loss), span), flush=True)
                    if options.jumps:
                        print(jumps(options, token, (rate, delay_ms, loss), options.spans[0]), flush=True)
    print(f"\nload {os.getloadavg()[0]:.1f}")


def hour(options):
    # They need more than the rest of this does.
    from large_view import Recording, drop_cache, write_summary

    rate_hz = 100e6
    recording = Recording(options.hour / "hour", int(3600 * rate_hz), 24, rate_hz)
    places = [first + len(noise) // 2 for first, noise in recording.noise.items()]
    try:
        recording.write()
        write_summary(recording)
        print(f"an hour of 100 MS/s i16, {recording.samples * 2 / 1e9:.0f} GB, {options.columns} columns; load {os.getloadavg()[0]:.1f}")
        for link in options.links:
            link = tuple(float(number) for number in link.split(","))
            with Kept(emulator(options, link), is_up):
                for span in options.spans:
                    drop_cache(recording.data, recording.summary)
                    with Kept(serve(options, recording.meta)) as server:
                        print(jumps(options, token_of(server), link, span, places), flush=True)
    finally:
        recording.remove()
    print(f"\nload {os.getloadavg()[0]:.1f}")


def emulator(options, link):
    rate, delay_ms, loss = link
    return [options.wanlink, "--name", NAME, "--rate", rate, "--delay", delay_ms, "--loss", loss, "--seed", 1]


def serve(options, what):
    return ["ip", "netns", "exec", f"{NAME}-a", options.grebe, "serve", what, "--json", "--listen", f"{THERE}:4780"]


def token_of(server):
    return json.loads(server.line())["link"].split("token=")[1]


def row(options, server, token, link, span, alone):
    before, cpu_before, begun = sent_bytes(), cpu_s(server), time.monotonic()
    own = viewer(token, span, options.columns, options.duration, 0)
    viewers = [subprocess.Popen(["ip", "netns", "exec", f"{NAME}-b", *own], stdout=subprocess.PIPE) for _ in range(options.viewers)]
    found = [json.loads(viewer.communicate()[0]) for viewer in viewers]
    # Those of the first seconds count too: the path was full then.
    wire = (sent_bytes() - before) * 8 / (options.duration + BEGINS_S) / 1e6
    cores = (cpu_s(server) - cpu_before) / (time.monotonic() - begun)
    ages = sorted(age for one in found for age in one["ages_ms"])
    if not ages:
        return f"| {words_of(link)} | {span:g} s | none | | | | |"
    per_s = min(len(one["ages_ms"]) for one in found) / options.duration
    lost, in_all = (max(one[key] for one in found) for key in ("lost", "lost_in_all"))
    return (
        f"| {words_of(link)} | {span:g} s | {per_s:.1f} | {at(ages, 0.5):.0f}, {at(ages, 0.95):.0f}, {ages[-1]:.0f} ms"
        f" | {wire:.2f} Mbit/s | {alone:.2f}, {cores:.2f} cores | {lost}, {in_all} |"
    )


def jumps(options, token, link, span, places=()):
    """Seconds until a place of the history is visible, and until it is exact."""
    own = viewer(token, span, options.columns, 0, options.jumps, places)
    found = json.loads(subprocess.run(["ip", "netns", "exec", f"{NAME}-b", *own], stdout=subprocess.PIPE, check=True).stdout)
    words = [f"{at(times, 0.5):.0f}, {at(times, 0.95):.0f}, {max(times):.0f} ms" for times in (sorted(found["shown_ms"]), sorted(found["exact_ms"]))]
    return (
        f"\n{options.jumps} jumps to {span:g} s each in {found['history_s']:.0f} s of history over {words_of(link)}: shown after {words[0]}, exact after {words[1]}"
        f" (p50, p95, worst; a round trip of the link takes {2 * link[1]:g} ms)\n"
    )


def waterfall(options, token, link, span):
    own = [sys_executable(), __file__, "--fall", token, str(span), str(options.columns), str(options.duration)]
    found = json.loads(subprocess.run(["ip", "netns", "exec", f"{NAME}-b", *own], stdout=subprocess.PIPE, check=True).stdout)
    boxes = sorted(found["boxes_ms"])
    return (
        f"\nwaterfall of {span:g} s over {words_of(link)}: {found['rows'] / options.duration:.1f} rows a second, in {found['waterfalls']} parts, at most"
        f" {found['gap_s']:.2f} s apart; {len(boxes)} boxes exact after {at(boxes, 0.5):.0f}, {at(boxes, 0.95):.0f}, {boxes[-1]:.0f} ms (p50, p95, worst)\n"
    )


def viewer(token, span, columns, duration, jumps, places=()):
    return [sys_executable(), __file__, "--look", token, str(span), str(columns), str(duration), str(jumps), *map(str, places)]


def words_of(link):
    rate, delay_ms, loss = link
    return f"{rate:g} Mbit/s, {delay_ms:g} ms, {loss * 100:g} %"


def at(ordered, part):
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)]


def used(server, duration):
    """Mean number of cores that the server uses within a duration."""
    time.sleep(BEGINS_S)
    before = cpu_s(server)
    time.sleep(duration)
    return (cpu_s(server) - before) / duration


def cpu_s(server):
    words = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class Scope:
    """A connection to a served scope: says messages, and reads them."""

    def __init__(self, token):
        self.stream, self.reader = opened()
        self.say({"hello": {"protocol": 1, "token": token, "pictures_per_s": 60}})

    def say(self, message):
        text = json.dumps(message).encode()
        length = struct.pack("!B", 0x80 | len(text)) if len(text) < 126 else struct.pack("!BH", 0x80 | 126, len(text))
        self.stream.sendall(b"\x81" + length + b"\0\0\0\0" + text)

    def read(self):
        """Its kind (1 text, 2 binary) and its body."""
        kind, length = struct.unpack("!BB", self.reader.read(2))
        if length == 126:
            (length,) = struct.unpack("!H", self.reader.read(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", self.reader.read(8))
        return kind & 15, self.reader.read(length)


def opened():
    stream = socket.create_connection((THERE, 4780))
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    key = base64.b64encode(os.urandom(16)).decode()
    head = f"GET /scope HTTP/1.1\r\nHost: {THERE}:4780\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
    stream.sendall(head.encode())
    reader = stream.makefile("rb")
    while reader.readline().strip():
        pass
    return stream, reader


def fall(token, span, columns, duration):
    """A viewer of a waterfall: counts its new rows, and then asks for boxes of the past."""
    scope = Scope(token)
    viewport = {"number": 1, "columns": columns, "span": span, "spectrum": {"size": 1024, "window": "hann", "averages": 1, "is_peak_held": False, "waterfall": 0, "detector": "highest", "band": None}}
    scope.say({"viewport": viewport})
    item, boxes, begun, region, rate_hz, newest = bytearray(), [], None, None, 1.0, 0
    rows, came = 0, []
    while len(boxes) < 20:
        kind, body = scope.read()
        now = time.monotonic()
        if kind == 1:
            told = json.loads(body).get("told", {})
            rate_hz = (told.get("stream") or {}).get("rate_hz", rate_hz)
            measured = told.get("region")
            if region and measured and measured["region"]["samples"] == region["samples"]:
                if measured["signal"]["samples"] == region["samples"]["end"] - region["samples"]["start"]:
                    boxes.append((now - asked) * 1e3)
                    region = None
        elif kind == 2:
            number, drawn = picture(body)
            scope.say({"ack": number})
            newest = drawn["next"] if drawn else newest
            begun = begun or now + BEGINS_S
            for which, total, offset, piece in Parts(body).pieces():
                if which != 2:
                    continue
                item = item[:offset] + piece
                if len(item) == total > 0 and now < begun + duration:
                    # Each has the rows up to its moment.
                    passed = now - came[-1] if came else 0
                    if now >= begun:
                        rows += min(passed / span, 1) * Parts(item, 0).rows()
                    came.append(now)
        if begun and now > begun + duration and region is None and newest:
            start = int(newest - (0.2 + 0.04 * len(boxes)) * rate_hz)
            region = {"channel": 0, "samples": {"start": start, "end": start + int(0.05 * rate_hz)}, "band": [0.0, 0.1]}
            viewport, asked = viewport | {"number": viewport["number"] + 1, "region": region}, now
            scope.say({"viewport": viewport})
    gap_s = max((after - before for before, after in zip(came, came[1:]) if after >= begun), default=duration)
    print(json.dumps({"rows": rows, "waterfalls": len(came), "gap_s": gap_s, "boxes_ms": boxes}))


def look(token, span, columns, duration, jumps, places):
    """A viewer: requests a viewport, acknowledges messages, and notes their age or delay."""
    scope = Scope(token)
    say = scope.say
    say({"viewport": {"number": 1, "columns": columns, "span": span}})
    ages, begun, lost, lost_before, rate_hz = [], None, 0, None, 1.0
    asked, seen, shown, exact = 1, None, [], []
    while begun is None or (time.monotonic() < begun + duration if jumps == 0 else len(exact) < jumps):
        kind, body = scope.read()
        now_ns = time.monotonic_ns()
        if kind == 1:
            told = json.loads(body).get("told", {})
            lost = told["counts"]["lost_samples"] if "counts" in told else lost
            rate_hz = (told.get("stream") or {}).get("rate_hz", rate_hz)
        elif kind == 2:
            number, drawn = picture(body)
            say({"ack": number})
            # The first seconds find out what the path carries; of a recording no second picture comes unasked.
            begun = begun or time.monotonic() + BEGINS_S
            if not drawn or time.monotonic() < begun and not drawn["is_ended"]:
                continue
            lost_before = lost if lost_before is None else lost_before
            if jumps == 0:
                if drawn["made_ns"]:
                    ages.append((now_ns - drawn["made_ns"]) / 1e6)
                continue
            if drawn["viewport"] == asked and asked > 1:
                if len(shown) < asked - 1:
                    shown.append((now_ns - asked_ns) / 1e6)
                if not drawn["is_estimated"]:
                    exact.append((now_ns - asked_ns) / 1e6)
            if asked == 1 or len(exact) == asked - 1:
                seen = seen or drawn
                asked, asked_ns = asked + 1, time.monotonic_ns()
                # Far and near by turns, so that no answer is like the one before.
                part = (asked * 0.382) % 1.0
                place = drawn["oldest"] + span * rate_hz + part * (drawn["next"] - drawn["oldest"] - 2 * span * rate_hz)
                if places and asked % 2 == 0:
                    # Not twice the same.
                    place = places[(asked * 7 // 2) % len(places)] + span * rate_hz / 2 + asked
                say({"viewport": {"number": asked, "columns": columns, "span": span, "ending": place}})
    history_s = (seen["next"] - seen["oldest"]) / rate_hz if seen else 0
    lost_in_row = lost - (lost_before or 0)
    print(json.dumps({"ages_ms": ages, "lost": lost_in_row, "lost_in_all": lost, "shown_ms": shown, "exact_ms": exact, "history_s": history_s}))


class Parts:
    """Reads the parts of a binary message in turn."""

    def __init__(self, body, place=1):
        self.body, self.place = body, place

    def varint(self):
        value = shift = 0
        while True:
            byte = self.body[self.place]
            self.place += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def take(self, length):
        self.place += length
        return self.body[self.place - length : self.place]

    def byte(self):
        return self.take(1)[0]

    def skip_picture(self):
        """From the flags of its trigger to the end of its lanes."""
        flags = self.drawn[1]
        if flags & 4:
            self.byte()
            self.take(16 + 8 * (self.byte() & 1))
        for _ in range(self.varint()):
            self.varint()
            self.byte()
            own = self.byte()
            self.take(8 * (1 + bool(own & 8) + bool(own & 16)))
            left = self.drawn[0]
            while left > 0:
                left -= self.varint() >> 4
            self.byte()
            self.take(self.varint())
            if own & 2:
                for _ in range(self.varint() * 2):
                    self.varint()
                self.byte()
                self.take(self.varint())

    def picture(self):
        viewport, flags = self.varint(), self.byte()
        self.take(8)
        _, columns, oldest, following, server_ns = (self.varint() for _ in range(5))
        drawn = {"viewport": viewport, "is_ended": bool(flags & 1), "is_estimated": bool(flags & 2), "oldest": oldest, "next": following, "made_ns": None}
        if flags & 8:
            zigzag = self.varint()
            drawn["made_ns"] = server_ns - ((zigzag >> 1) ^ -(zigzag & 1))
            self.varint(), self.varint()
        self.drawn = (columns, flags)
        return drawn

    def pieces(self):
        """Item, its size, and a piece of it with its place."""
        self.varint()
        if self.body[0] == 1:
            self.picture()
            self.skip_picture()
        while self.body[0] < 3 and self.place < len(self.body):
            item, total, offset = self.byte(), self.varint(), self.varint()
            yield item, total, offset, self.take(self.varint())

    def rows(self):
        """Rows of a waterfall."""
        self.varint(), self.varint()
        return self.varint()


def picture(body):
    """Number of a message, and its picture's range: time of the newest sample, and length of the history."""
    parts = Parts(body)
    number = parts.varint()
    return number, parts.picture() if body[0] == 1 else None


def is_up():
    told = [subprocess.run(["ip", "netns", "exec", f"{NAME}-{side}", "ip", "-o", "addr"], capture_output=True, text=True) for side in "ab"]
    return all(f"198.18.0.{number}" in it.stdout for number, it in enumerate(told, 1))


def sent_bytes():
    text = subprocess.run(["ip", "netns", "exec", f"{NAME}-a", "cat", "/proc/net/dev"], capture_output=True, text=True, check=True).stdout
    lines = [line.split(":") for line in text.splitlines() if ":" in line]
    return sum(int(rest.split()[8]) for name, rest in lines if name.strip() != "lo")


def run(words, check=True):
    return subprocess.run([str(word) for word in words], check=check, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode


def sys_executable():
    import sys

    return sys.executable


class Kept:
    """A process that runs until it is closed."""

    def __init__(self, words, is_ready=None):
        self.process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        until = time.monotonic() + 30
        while is_ready and not is_ready():
            if time.monotonic() > until:
                raise SystemExit(f"{words[0]} does not come up")
            time.sleep(0.1)

    def line(self):
        return self.process.stdout.readline()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


if __name__ == "__main__":
    import sys

    if sys.argv[1:2] == ["--fall"]:
        fall(sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
    elif sys.argv[1:2] == ["--look"]:
        look(sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]), int(sys.argv[6]), [int(place) for place in sys.argv[7:]])
    else:
        main()
