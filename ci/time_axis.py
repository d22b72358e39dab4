#!/usr/bin/env python3
"""Checks the common time axis of two streams of one signal, from hosts whose clocks differ by 37 ms and 20 ppm:
ci/time_axis.py GREBE [RUNS] [SECONDS]

Each host is a network namespace at the end of a wire, with a sender of grebe's frames (this file) whose clock is as far off as it says, and which
answers what it shows. The signal goes up by one every 10 us of true time, which is this host's, and a sender says exactly when its first
sample was made: so how far everything is off is known. Checked are `grebe view A B` (its left edges), `grebe record A B` (what each capture states, the
first sample of each, and what stands side by side in the collection, from its begin to its end). Fails where fewer than 95 % of the stated
intervals have the truth in them; how far apart things are that stand beside each other depends on what else runs. Needs root and ip."""

import array, json, os, select, socket, struct, subprocess, sys, tempfile, time, wave, zlib

RATE, BLOCK, STEP_NS, STEPS = 100_000, 500, 10_000, 30_000
PERIOD_NS = 1_000_000_000 // RATE
AHEAD_NS, DRIFT_PPM, ALIGNED_US = 37_000_000, 20, 50


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


class Clock:
    """A host's clock: converts our time to its time, and back."""

    def __init__(self, ahead_ns, drift_ppm):
        self.began, self.ahead, self.ppm = time.monotonic_ns(), ahead_ns, drift_ppm

    def now(self):
        ours = time.monotonic_ns()
        return ours + self.ahead + (ours - self.began) * self.ppm // 1_000_000

    def ours(self, shown):
        since = shown - self.ahead - self.began
        return self.began + since * 1_000_000 // (1_000_000 + self.ppm)


def host(name, address, port, ahead_ns, drift_ppm):
    """Sends until it is killed; prints the time of its first sample by our clock."""
    clock, clock_id = Clock(ahead_ns, drift_ppm), 0xFA12C10C00000000 + zlib.crc32(name.encode())
    asked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asked.bind(("0.0.0.0", 0))
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.connect((address, port))
    # Of UTC it is wrong as well, and does not know.
    reading = {"producer_ts_ns": clock.now(), "unix_time_ns": 10**18, "clock": f"{clock_id:016x}"}
    text = json.dumps({"grebe:name": name, "grebe:clock": reading, "grebe:clock_port": asked.getsockname()[1]}).encode()
    crc, began, sequence = crc32c(text), clock.now(), 0
    print(clock.ours(began), flush=True)
    while True:
        first = sequence * BLOCK
        stamp = began + first * PERIOD_NS
        while (left := stamp + BLOCK * PERIOD_NS - clock.now()) > 0:
            if select.select([asked], [], [], left / 1e9)[0]:
                question, peer = asked.recvfrom(64)
                came = clock.now()
                number = struct.unpack_from("<Q", question, 8)[0]
                asked.sendto(struct.pack("<4sB3xQQQQQ", b"GTM1", 2, number, came, clock.now(), clock_id, 0), peer)
        head = struct.pack("<4sIQQ", b"GFH2", 64, sequence, stamp)
        try:
            if sequence % 100 == 0:
                said = struct.pack("<BBBBHHIIdIIQ", 1, 0, 1, 0, 0, 1, len(text), 0, RATE, len(text), crc, 0)
                out.send(head + said + text)
            true = [clock.ours(stamp + at * PERIOD_NS) // STEP_NS % STEPS for at in range(BLOCK)]
            body = struct.pack("<BBBBIIIdQQ", 1, 0, 0, 0, BLOCK, BLOCK * 2, 0, RATE, 0, first)
            out.send(head + body + array.array("h", true).tobytes())
        except ConnectionRefusedError:
            pass  # nobody listens yet
        sequence += 1


def ip(words):
    subprocess.run(["ip", *words.split()], check=True)


class Hosts:
    """Two hosts, which send to ports 5990 and 5991 of this one."""

    def __enter__(self):
        self.senders, self.true_ns = [], []
        for number, (ahead, ppm) in enumerate([(0, 0), (AHEAD_NS, DRIFT_PPM)]):
            words = ["ip", "netns", "exec", names[number], sys.executable, os.path.abspath(__file__), "host", names[number]]
            words += [f"10.21{5 + number}.0.1", str(5990 + number), str(ahead), str(ppm)]
            self.senders.append(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
        self.true_ns = [int(sender.stdout.readline()) for sender in self.senders]
        return self

    def __exit__(self, *_):
        for sender in self.senders:
            sender.kill()
            sender.wait()

    def made_ns(self, number, index):
        """Time of a sample by our clock."""
        ppm = [0, DRIFT_PPM][number]
        return self.true_ns[number] + index * PERIOD_NS * 1_000_000 / (1_000_000 + ppm)


def ours(axes):
    clock = next(iter(set(axis["clock"] for axis in axes[0]) & set(axis["clock"] for axis in axes[1])), None)
    return [next((axis for axis in of if axis["clock"] == clock), None) for of in axes]


def judge(what, stated, true_ns):
    """Notes one interval; returns its error in us."""
    off_us, most_us = (stated["ns"] - true_ns) / 1e3, stated["error_ns"] / 1e3
    intervals.append((abs(off_us) <= most_us + 0.1, abs(off_us)))
    print(f"  {what}: {off_us:+8.2f} us off, +- {most_us:.2f} us stated")
    return off_us


def view(folder):
    sources = ["udp://10.215.0.1:5990", "udp://10.216.0.1:5991"]
    for mode in ["auto", "roll"]:
        with Hosts() as hosts:
            words = [grebe, "view", *sources, "--png", f"{folder}/x.png", "--json", "--no-session", "--span", "20ms"]
            said = subprocess.run([*words, "--trigger", mode], check=True, capture_output=True, timeout=60).stdout
            shown = json.loads(said)
            offs = []
            for number, (stream, axis) in enumerate(zip(shown, ours([it["axes"] for it in shown]))):
                made = hosts.made_ns(number, stream["left_index"])
                offs.append(judge(f"view, {mode}, left edge of {number + 1}", axis, made))
                offs[-1] = made
            # Difference of two instants drawn in one column of 17 us.
            apart = abs(offs[0] - offs[1]) / 1e3
            aligned.append(apart <= ALIGNED_US)
            print(f"  view, {mode}: left edges {apart:.1f} us apart")


def record(folder):
    with Hosts() as hosts:
        sources = ["udp://10.215.0.1:5990", "udp://10.216.0.1:5991"]
        words = [grebe, "record", *sources, f"{folder}/both.sigmf-meta", "--duration", f"{seconds}s", "--json"]
        said = json.loads(subprocess.run(words, check=True, capture_output=True, timeout=seconds + 60).stdout)
        firsts = ours([it["axes"] for it in said["recordings"]])
        for number, (recording, axis) in enumerate(zip(said["recordings"], firsts)):
            captures = json.load(open(recording["file"]))["captures"]
            begin = captures[0]["core:global_index"]
            judge(f"record, first sample of {number + 1}", axis, hosts.made_ns(number, begin))
            for capture in captures:
                if capture.get("grebe:axis", {}).get("clock") == axis["clock"]:
                    index = capture["core:global_index"]
                    what = f"record, {number + 1} after {(index - begin) / RATE:6.2f} s"
                    judge(what, capture["grebe:axis"], hosts.made_ns(number, index))
    subprocess.run([grebe, "convert", said["collection"], f"{folder}/both.wav"], check=True, capture_output=True)
    with wave.open(f"{folder}/both.wav") as file:
        samples = array.array("h", file.readframes(file.getnframes()))
    for place in [0, len(samples) // 4 * 2, (len(samples) - 2_000) // 2 * 2]:
        steps = [(one - other + STEPS // 2) % STEPS - STEPS // 2 for one, other in zip(samples[place:place + 2000:2], samples[place + 1:place + 2000:2])]
        # A sample is 10 us, and so is a step of the signal.
        apart = max(abs(sum(steps) / len(steps)) * STEP_NS / 1e3 - STEP_NS / 1e3, 0)
        aligned.append(apart <= ALIGNED_US)
        print(f"  record, after {place / 2 / RATE:6.2f} s: samples beside each other made {apart:.1f} us apart")


if sys.argv[1] == "host":
    host(sys.argv[2], sys.argv[3], *map(int, sys.argv[4:7]))
grebe = os.path.abspath(sys.argv[1])
runs, seconds = int((sys.argv[2:3] or [5])[0]), float((sys.argv[3:4] or [10])[0])
if os.geteuid() != 0:
    sys.exit("skipped: only root can make namespaces")
names = [f"axis{os.getpid()}{letter}" for letter in "ab"]
intervals, aligned = [], []
try:
    for number, name in enumerate(names):
        ip(f"netns add {name}")
        ip(f"link add v{name} type veth peer name eth0 netns {name}")
        ip(f"addr add 10.21{5 + number}.0.1/24 dev v{name}")
        ip(f"link set v{name} up")
        ip(f"-n {name} addr add 10.21{5 + number}.0.2/24 dev eth0")
        ip(f"-n {name} link set eth0 up")
    for run in range(runs):
        print(f"run {run + 1}")
        with tempfile.TemporaryDirectory() as folder:
            view(folder)
            record(folder)
    held, worst = sum(it[0] for it in intervals), max(it[1] for it in intervals)
    print(f"{held} of {len(intervals)} stated intervals have the truth in them, none is off by more than {worst:.1f} us")
    print(f"{sum(aligned)} of {len(aligned)} times what stands beside each other was made within {ALIGNED_US} us")
    sys.exit(held < 0.95 * len(intervals))
finally:
    for name in names:
        subprocess.run(["ip", "netns", "del", name])
