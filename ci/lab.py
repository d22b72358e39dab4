#!/usr/bin/env python3
"""A lab of five hosts at two sites with a router between. Hosts are killed, cut off and restored at random. Linux, root, NumPy.

    cargo build --release --features zenoh
    sudo target/ci/venv/bin/python ci/lab.py target/release/grebe --duration 10m --zenohd zenohd --wanlink ./wanlink

Each host is a network namespace at the switch of its site; the router is at site a. Every recording is compared, to the
sample, with the generator's output by index, and each gap with the indices on both sides. A name without a producer must
disappear, one with a producer must be listed, and all must end on request. One host runs a graph on four of them, and stages
that are killed or cut off must come back (restart = "always"); two of its edges connect other hosts, directly. Without --zenohd the router is a session of grebe in that
mode; without --wanlink the sites are joined by a plain link. Exit status 1 where anything is wrong.
"""

import argparse
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy

RUN = f"lab{os.getpid() % 10_000}"
PERIOD = 65_536  # two places of the wave are alike only so far apart; of the rate it is a part that floating point has exactly
RATE = 3 * PERIOD
SITES = {"a": ["a1", "a2", "a3"], "b": ["b1", "b2"]}
ROUTER = "198.18.0.1"
# Producers and recorders by host. Each recorder starts a new recording per run.
STREAMS = {"a1": "lab/a1/adc", "a2": "lab/a2/adc", "b1": "lab/b1/adc"}
RECORDERS = {"a3": ["lab/a1/adc", "lab/a2/adc"], "b1": ["lab/a1/adc"], "b2": ["lab/a2/adc", "lab/b1/adc"]}
GROUP = "udp://239.77.7.7:5077?ttl=1"
# A graph over both sites, run at a3: a source, an intermediate stage, and a recorder after each.
GRAPH = '''
stage = [
    { id = "adc", kind = "synth", host = "a1", params = { rate = RATE, wave = "saw", frequency = FREQUENCY, latency = "20ms" } },
    { id = "same", kind = "gain", host = "b2" },
    { id = "far", kind = "record", host = "b1", params = { file = "far.sigmf-meta" } },
    { id = "near", kind = "record", params = { file = "graph.sigmf-meta" } },
]
edge = [
    { from = "adc", to = "same", policy = "drop_oldest" },
    { from = "adc", to = "far", policy = "drop_oldest" },
    { from = "same", to = "near", policy = "drop_oldest" },
]
host = [{ name = "a1", restart = "always" }, { name = "b1", restart = "always" }, { name = "b2", restart = "always" }]
'''
# Replaces ssh: enters the namespace of a host, without its cable. The harness kills processes by
# their number.
SSH = '''#!/bin/sh
while [ "$1" != -- ]; do
    [ "$1" = -G ] && { for host; do :; done; sed -n "s/^$host /hostname /p" FOLDER/addresses; exit; }
    shift
done
cd "FOLDER/$2" && echo $$ > pid.new && mv pid.new pid
exec ip netns exec "RUN-$2" sh -c "exec $3"
'''


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grebe", type=Path)
    parser.add_argument("--duration", type=seconds, default=15, help="for how long hosts are killed and cut off: 10m")
    parser.add_argument("--zenohd", type=Path, help="a zenohd; else a session of grebe in the mode of a router")
    parser.add_argument("--wanlink", type=Path, help="the link emulator of ci/copy_table.py, between the sites")
    parser.add_argument("--graph", action="store_true", help="the graph alone: a command without Zenoh will do")
    parser.add_argument("--link", default="50,20,0.001", help="Mbit/s, ms one way, loss")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--keep", action="store_true", help="keep the recordings and the output of all processes")
    options = parser.parse_args()
    reason = "no root" if os.geteuid() else None if shutil.which("ip") else "no ip (iproute2)"
    reason = reason or (None if run(["ip", "netns", "add", RUN], check=False) == 0 else "no network namespaces")
    if reason:
        print(f"skipped: a lab of five hosts: {reason}")
        return
    run(["ip", "netns", "del", RUN])
    options.grebe = options.grebe.resolve()
    if options.graph:
        STREAMS.clear(), RECORDERS.clear()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print(f"seed {options.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{RUN}-"))
    lab = Lab(options, folder)
    try:
        lab.build()
        lab.start()
        lab.havoc(options.duration)
        lab.settle()
        lab.end()
        lab.judge()
    finally:
        lab.tear_down()
        if not options.keep and not lab.wrong:
            shutil.rmtree(folder)
    for line in lab.wrong:
        print(f"FAILED  {line}")
    print(f"{lab.good} passed, {len(lab.wrong)} failed")
    sys.exit(1 if lab.wrong else 0)


class Lab:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.dice = random.Random(options.seed)
        self.hosts = [host for hosts in SITES.values() for host in hosts]
        self.running = {}  # per host: its processes by key
        self.recordings = []  # (name of the stream, its file, whether its recorder ended by itself)
        self.base = []
        self.names, self.changed = {}, {}  # what the observer sees, and since when
        self.lock = threading.Lock()
        self.numbers = 0
        self.graph, self.graph_kills = None, 0
        self.good, self.wrong = 0, []
        self.went_s, self.came_s = [], []

    def check(self, is_good, words):
        if is_good:
            self.good += 1
        else:
            self.wrong.append(words)
            print(f"WRONG  {words}", flush=True)

    # The network

    def build(self):
        gates = {site: f"{RUN}-{site}" for site in SITES}
        if self.options.wanlink:
            rate, delay_ms, loss = self.options.link.split(",")
            link = ["--name", RUN, "--rate", rate, "--delay", delay_ms, "--loss", loss, "--loss-back", loss]
            self.spawn_base([self.options.wanlink.resolve(), *link])
            wait_for(lambda: all("198.18." in text_of(["ip", "-n", gate, "addr"]) for gate in gates.values()), "the emulator")
        else:
            for gate in gates.values():
                run(["ip", "netns", "add", gate])
            run(["ip", "link", "add", "wan", "netns", gates["a"], "type", "veth", "peer", "name", "wan", "netns", gates["b"]])
            for gate, address in zip(gates.values(), (ROUTER, "198.18.0.2")):
                run(["ip", "-n", gate, "addr", "add", f"{address}/30", "dev", "wan"])
                run(["ip", "-n", gate, "link", "set", "wan", "up"])
        for number, (site, hosts) in enumerate(SITES.items(), 1):
            gate, net = gates[site], f"10.77.{number}"
            run(["ip", "-n", gate, "link", "set", "lo", "up"])
            run(["ip", "-n", gate, "link", "add", "switch", "type", "bridge"])
            run(["ip", "-n", gate, "addr", "add", f"{net}.1/24", "dev", "switch"])
            run(["ip", "-n", gate, "link", "set", "switch", "up"])
            inside(gate, ["sysctl", "-qw", "net.ipv4.ip_forward=1"])
            # The other site is behind the link.
            other = ROUTER if number == 2 else "198.18.0.2"
            run(["ip", "-n", gate, "route", "add", f"10.77.{3 - number}.0/24", "via", other])
            for at, host in enumerate(hosts, 11):
                namespace = f"{RUN}-{host}"
                run(["ip", "netns", "add", namespace])
                run(["ip", "link", "add", host, "netns", gate, "type", "veth", "peer", "name", "eth0", "netns", namespace])
                run(["ip", "-n", gate, "link", "set", host, "master", "switch", "up"])
                run(["ip", "-n", namespace, "addr", "add", f"{net}.{at}/24", "dev", "eth0"])
                for device in ("lo", "eth0"):
                    run(["ip", "-n", namespace, "link", "set", device, "up"])
                run(["ip", "-n", namespace, "route", "add", "default", "via", f"{net}.1"])
                run(["ip", "-n", namespace, "route", "add", "224.0.0.0/4", "dev", "eth0"])
        self.gates = gates

    def plug(self, host, is_in):
        """Unplugs the cable from the switch, or plugs it in."""
        gate = next(self.gates[site] for site, hosts in SITES.items() if host in hosts)
        run(["ip", "-n", gate, "link", "set", host, "up" if is_in else "down"])

    # Processes

    def start(self):
        if not self.options.graph:
            self.start_router()
        for host in self.hosts:
            self.start_host(host)
        self.start_graph()
        self.await_names("at the start")
        self.await_growth("at the start")
        self.await_graph("at the start")
        self.look("at the start")

    def start_router(self):
        if self.options.zenohd:
            router = [self.options.zenohd, "--listen", "tcp/0.0.0.0:7447", "--no-multicast-scouting"]
        else:
            config = self.folder / "router.json5"
            config.write_text(
                '{ mode: "router", listen: { endpoints: ["tcp/0.0.0.0:7447"] }, scouting: { multicast: { enabled: false } },'
                " transport: { link: { tx: { lease: 1500, keep_alive: 6 } } } }"
            )
            router = [self.options.grebe, "ls", "-w", "--zenoh", config]
        self.spawn_base(["ip", "netns", "exec", self.gates["a"], *router])
        wait_for(lambda: inside(self.gates["b"], ["sh", "-c", f"exec 3<>/dev/tcp/{ROUTER}/7447"], check=False, shell="bash") == 0, "the router")
        observer = self.spawn_base(
            ["ip", "netns", "exec", self.gates["a"], self.options.grebe, "ls", "lab", "-w", "--json", "--router", f"tcp/{ROUTER}:7447"],
            stdout=subprocess.PIPE,
        )
        threading.Thread(target=self.observe, args=[observer], daemon=True).start()

    def start_graph(self):
        addresses = [
            f"{host} 10.77.{number}.{at}\n" for number, hosts in enumerate(SITES.values(), 1) for at, host in enumerate(hosts, 11)
        ]
        (self.folder / "addresses").write_text("".join(addresses))
        for host in self.hosts:
            (self.folder / host).mkdir()
        ssh = self.folder / "ssh.sh"
        ssh.write_text(SSH.replace("FOLDER", str(self.folder)).replace("RUN", RUN))
        ssh.chmod(0o755)
        graph = self.folder / "graph.toml"
        graph.write_text(GRAPH.replace("RATE", str(RATE)).replace("FREQUENCY", repr(RATE / PERIOD)))
        own = [self.options.grebe, "run", graph, "--no-config", "--json", "--ssh", ssh, "--remote-path", self.options.grebe]
        self.said = (self.folder / "graph.log").open("w")
        self.graph = subprocess.Popen(
            ["ip", "netns", "exec", f"{RUN}-a3", *map(str, own)],
            cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.said,
        )
        self.base.append(self.graph)

    def graph_recordings(self):
        """The recordings of the host that runs the graph, then b1's, in order."""
        numbered = lambda file: int(file.stem.partition("_")[2] or 1)
        return [self.folder / "graph.sigmf-meta", *sorted((self.folder / "b1").glob("far*.sigmf-meta"), key=numbered)]

    def await_graph(self, words):
        """Checks that both recorders continue."""
        all_written = lambda: (written(self.graph_recordings()[0]), sum(map(written, self.graph_recordings()[1:])))
        before = all_written()
        grows = patiently(lambda: all(now > then for now, then in zip(all_written(), before)) or self.graph.poll() is not None)
        self.check(grows and self.graph.poll() is None, f"{words} the graph does not go on: {before}, {all_written()}, {self.graph.poll()}")

    def start_host(self, host):
        self.running[host] = {}
        if name := STREAMS.get(host):
            to = ["--to", GROUP] if host == "a2" else []
            wave = ["--rate", RATE, "--wave", "saw", "--frequency", repr(RATE / PERIOD)]
            self.running[host][name] = self.spawn(host, ["sg", "--name", name, *to, *wave])
        for name in RECORDERS.get(host, []):
            self.numbers += 1
            file = self.folder / f"{self.numbers}-{host}-{name.replace('/', '-')}.sigmf-meta"
            process = self.spawn(host, ["record", name, file, "--json"])
            self.running[host][file] = process
            self.recordings.append([name, file, process])

    def spawn(self, host, arguments):
        """In its namespace, and under its name."""
        self.numbers += 1
        own = " ".join(shlex.quote(str(it)) for it in [self.options.grebe, *arguments])
        command = ["ip", "netns", "exec", f"{RUN}-{host}", "unshare", "--uts", "sh", "-c", f"hostname {host}; exec {own}"]
        environment = {**os.environ, "GREBE_ROUTER": f"tcp/{ROUTER}:7447"}
        log = self.folder / f"{self.numbers}-{host}.log"
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log.open("w"), env=environment)

    def spawn_base(self, command, **streams):
        log = (self.folder / f"base{len(self.base)}.log").open("w")
        streams = {"stdout": log, **streams}
        process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stderr=log, **streams)
        self.base.append(process)
        return process

    def observe(self, observer):
        for line in observer.stdout:
            said = json.loads(line)
            with self.lock:
                self.names[said["name"]] = said["event"] != "gone"
                self.changed[said["name"]] = time.monotonic()

    def listed(self):
        with self.lock:
            return {name for name, is_there in self.names.items() if is_there}

    # Faults

    def havoc(self, duration_s):
        until = time.monotonic() + duration_s
        done = 0
        while time.monotonic() < until:
            host, how = self.dice.choice(self.hosts), self.dice.choice(["kill", "cut", "flicker"])
            length_s = self.dice.uniform(0.2, 1.0) if how == "flicker" else self.dice.uniform(3, 5)
            name, began = STREAMS.get(host), time.monotonic()
            print(f"{began - until + duration_s:6.1f} s  {host}: {how}, {length_s:.1f} s", flush=True)
            if how == "kill":
                self.kill(host)
            else:
                self.plug(host, False)
            if how != "flicker" and name:
                self.await_name(name, False, f"{host} was {how}", self.went_s)
            time.sleep(max(0, began + length_s - time.monotonic()))
            if how == "kill":
                self.start_host(host)
            else:
                self.plug(host, True)
            if how != "flicker" and name:
                self.await_name(name, True, f"{host} returned", self.came_s)
            time.sleep(self.dice.uniform(0.2, 1.5))
            done += 1
        print(f"{done} times")

    def kill(self, host):
        part = self.folder / host / "pid"
        if part.exists():
            try:
                os.kill(int(part.read_text()), signal.SIGKILL)
                self.graph_kills += 1
            except ProcessLookupError:
                pass
        for process in self.running[host].values():
            process.send_signal(signal.SIGKILL)
            process.wait()

    def await_name(self, name, is_there, words, took):
        began = time.monotonic()
        is_so = patiently(lambda: (name in self.listed()) == is_there)
        took.append(time.monotonic() - began)
        self.check(is_so, f"{words}, and {name} is {'not ' if is_there else ''}listed after {PATIENCE_S} s")

    def settle(self):
        self.await_names("at the end")
        self.await_growth("at the end")
        self.await_graph("at the end")
        self.look("at the end")

    def await_names(self, words):
        expected = set(STREAMS.values())
        self.check(patiently(lambda: self.listed() == expected), f"{words} {self.listed()} are listed, not {expected}")

    def await_growth(self, words):
        """Checks that all recordings continue."""
        for name, file, process in self.recordings:
            if file not in self.running[host_of(file)] or process.poll() is not None:
                continue
            before = written(file)
            grows = patiently(lambda: written(file) > before or process.poll() is not None)
            self.check(grows and process.poll() is None, f"{words} {file.name} does not go on: exit status {process.poll()}")

    def look(self, words):
        """A viewer at the far site sees each stream."""
        for name in STREAMS.values():
            picture = self.folder / "picture.png"
            viewer = self.spawn("b2", ["view", name, "--png", picture, "--after", "0.3s", "--size", "400x300"])
            status = ended(viewer)
            self.check(status == 0 and picture.exists(), f"{words} {name} cannot be viewed: exit status {status}")
            picture.unlink(missing_ok=True)

    def end(self):
        self.graph.send_signal(signal.SIGINT)
        status = ended(self.graph)
        self.check(status == 130, f"the graph did not end normally after SIGINT: {status}")
        for host in self.hosts:
            for key, process in self.running[host].items():
                if key not in STREAMS.values():
                    process.send_signal(signal.SIGINT)
        for host in self.hosts:
            for key, process in self.running[host].items():
                if key not in STREAMS.values():
                    self.check(ended(process) == 130, f"{key.name} did not end after SIGINT: {process.poll()}")
        for host, name in STREAMS.items():
            producer = self.running[host][name]
            producer.send_signal(signal.SIGINT)
            self.check(ended(producer) == 130, f"{name} did not end after SIGINT: {producer.poll()}")
        self.check(patiently(lambda: not self.listed()), f"all have ended, and {self.listed()} are listed")

    # Results

    def judge(self):
        reference = self.folder / "made.sigmf-meta"
        uri = f"synth:saw?channels=1&rate={RATE}&frequency={RATE / PERIOD!r}&samples={4 * PERIOD}"
        run([self.options.grebe, "record", uri, reference])
        made = numpy.fromfile(reference.with_suffix(".sigmf-data"), "<i2")
        assert numpy.array_equal(made[:PERIOD], made[PERIOD : 2 * PERIOD]), "the generator is not periodic"
        table = made[:PERIOD]
        compared = gaps = lost = segments = 0
        for name, file, process in self.recordings:
            if not file.exists():
                # Its recorder was killed before the first sample.
                self.check(process.returncode == -signal.SIGKILL, f"{file.name} is not there")
                continue
            meta = json.loads(file.read_text())
            data = numpy.fromfile(file.with_suffix(".sigmf-data"), "<i2")
            data = data[: meta["global"].get("grebe:known_samples", len(data))]
            captures = meta["captures"]
            ends = [capture["core:sample_start"] for capture in captures[1:]] + [len(data)]
            begun = {it["core:sample_start"] for it in meta["annotations"] if "began again" in it.get("core:label", "")}
            wrong, next_index, here, heads = None, None, 0, [0]
            for capture, end in zip(captures, ends):
                at = capture["core:sample_start"]
                index = capture["core:global_index"]
                part = data[at:end]
                if not numpy.array_equal(part, numpy.resize(numpy.roll(table, -(index % PERIOD)), len(part))):
                    wrong = f"from sample {at} on it is not what the generator makes of index {index}"
                if at in begun or next_index is None:
                    segments += 1
                    # A recorder that has a producer's first frame knows the drops before it. A
                    # later one does not need them.
                    heads += [head + index for head in heads]
                elif index < next_index:
                    wrong = f"at sample {at} the index goes back from {next_index} to {index}, and no label says why"
                else:
                    gaps, here = gaps + 1, here + index - next_index
                next_index = index + len(part)
            compared, lost = compared + len(data), lost + here
            self.check(wrong is None, f"{file.name}: {wrong}")
            if process.returncode == 130:
                report = json.loads(process.stdout.read())
                told = report["losses"]
                told_lost = told["network_samples"] + told["late_samples"] + told["generator_samples"]
                self.check(report["samples"] == len(data), f"{file.name} has {len(data)} samples, but the report says {report['samples']}")
                self.check(told_lost - here in heads, f"{file.name} lacks {here} samples by its indices, but the report says {told_lost}")
        asked = [log for log in self.folder.glob("*-a3.log") if "by udp on request" in log.read_text()]
        self.check(asked or not STREAMS, "no reader beside a producer had datagrams from it on request")
        self.judge_graph(table)
        spread = lambda of: f"{sorted(of)[len(of) // 2]:.2f} s (at most {max(of):.2f})" if of else "-"
        print(
            f"{len(self.recordings)} recordings, {compared} samples compared, {segments} lives of producers, {gaps} gaps of {lost} samples\n"
            f"a name was gone after {spread(self.went_s)}, and there again after {spread(self.came_s)}; load {os.getloadavg()[0]:.1f}"
        )

    def judge_graph(self, table):
        """Each stretch is what the generator makes in a row, and goes on by its index, but where the source was started again."""
        compared = gaps = lost = 0
        files, lives = self.graph_recordings(), {}
        for file in files:
            if not file.exists():
                continue
            meta, data = json.loads(file.read_text()), numpy.fromfile(file.with_suffix(".sigmf-data"), "<i2")
            data = data[: meta["global"].get("grebe:known_samples", len(data))]
            captures = meta["captures"]
            ends = [capture["core:sample_start"] for capture in captures[1:]] + [len(data)]
            next_index = None
            for capture, end in zip(captures, ends):
                at, index = capture["core:sample_start"], capture["core:global_index"]
                part = data[at:end]
                if not len(part):
                    continue
                # Neighbours may have one value; more samples tell them apart.
                makes = lambda phase: numpy.array_equal(part, numpy.resize(numpy.roll(table, -phase), len(part)))
                phase = next((int(phase) for phase in numpy.flatnonzero(table == part[0]) if makes(phase)), None)
                self.check(phase is not None, f"{file.name}: from sample {at} on it is not what the generator makes in a row")
                self.check(next_index is None or index >= next_index, f"{file.name}: at sample {at} the index goes back to {index}")
                if next_index is not None:
                    gaps, lost = gaps + (index > next_index), lost + index - next_index
                next_index = index + len(part)
                if phase is not None and len(part) > 16:
                    # Where the source's first sample would stand: another place for each of its lives.
                    lives.setdefault(file.parent.name, set()).add((index - phase) % PERIOD)
            compared += len(data)
        restarts, said = {}, (self.folder / "graph.log").read_text()
        self.check(said.count(", directly\n") == 2, f"at the start {said.count(', directly' + chr(10))} of the 2 edges between others went directly")
        anew, through = said.count(", directly (after "), said.count("because neither reaches the other (after ")
        direct = 0
        if self.graph.returncode == 130:
            report = json.loads(self.graph.stdout.read())
            direct = sum(len(way["edges"]) for way in report["routes"] if way["other"] and way["route"])
            # Edges between hosts that cannot reach each other go through a3 until one of them restarts.
            self.check(direct == 2 or through, f"at the end {direct} of the 2 edges between others went directly, and nothing says why")
            rows = {stage["name"]: stage["own"] for stage in report["graph"]["stages"]}
            restarts = {host: rows[host]["restarts"] for host in ("a1", "b1", "b2")}
            for folder, those in lives.items():
                self.check(len(those) <= 1 + restarts["a1"], f"{folder}: {len(those)} lives of a source that was started again {restarts['a1']} times")
            self.check(len(files) <= 2 + restarts["b1"], f"{len(files) - 1} recordings of a host that was started again {restarts['b1']} times")
        print(
            f"the graph: killed {self.graph_kills} times, started again {restarts}; {len(files)} recordings, {compared} samples compared, "
            f"{gaps} gaps of {lost} samples\n"
            f"of the 2 edges between others {direct} went directly at the end; joined anew {anew} times directly, {through} times through the host that runs it"
        )

    def tear_down(self):
        for processes in self.running.values():
            for process in processes.values():
                if process.poll() is None:
                    process.kill()
                    process.wait()
        for process in reversed(self.base):
            process.send_signal(signal.SIGINT)
            ended(process)
        for name in [*self.hosts, *SITES]:
            run(["ip", "netns", "del", f"{RUN}-{name}"], check=False)


def host_of(file):
    return file.name.split("-")[1]


def ended(process):
    try:
        return process.wait(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return f"none within {PATIENCE_S} s"


def written(file):
    """Samples that a recording says it has while its recorder is at it; its data are longer, in steps of up to 64 MiB, as room is taken ahead."""
    try:
        said = json.loads(file.read_text())["global"].get("grebe:known_samples")
        return file.with_suffix(".sigmf-data").stat().st_size // 2 if said is None else said
    except (FileNotFoundError, ValueError):
        return 0


def patiently(is_so):
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() >= until:
            return False
        time.sleep(0.02)
    return True


def wait_for(is_so, what):
    if not patiently(is_so):
        sys.exit(f"{what} does not come up")


def run(command, check=True):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if check and done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")
    return done.returncode


def inside(namespace, command, check=True, shell=None):
    command = [shell, *command[1:]] if shell else command
    return run(["ip", "netns", "exec", namespace, *command], check)


def text_of(command):
    return subprocess.run(command, capture_output=True, text=True).stdout


def seconds(text):
    return float(text[:-1]) * {"s": 1, "m": 60}[text[-1]] if text[-1] in "sm" else float(text)


# How long anything may take beside a busy machine; how long it took is printed.
PATIENCE_S = 60

if __name__ == "__main__":
    main()
