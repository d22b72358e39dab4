#!/usr/bin/env python3
"""How far times of another host's stream are off by this host's clock, and how far they are said to be: ci/time_axis.py GREBE [RUNS] [SECONDS]

The other host is a network namespace at the end of a wire, with a monotonic clock 37 s ahead (a time namespace): how far it is, is known
exactly. Needs root, ip and unshare."""

import json, os, subprocess, sys, tempfile

grebe = os.path.abspath(sys.argv[1])
runs, seconds = int((sys.argv[2:3] or [5])[0]), float((sys.argv[3:4] or [10])[0])
if os.geteuid() != 0:
    sys.exit("skipped: only root can make namespaces")
name, rate, ahead_ns = f"axis{os.getpid()}", 1_000_000, 37_000_000_000


def ip(words):
    subprocess.run(["ip", *words.split()], check=True)


def run(folder):
    """Each time that the recording states by the recorder's clock: seconds since its begin, how far off, how far at most, in us."""
    sender = ["ip", "netns", "exec", name, "unshare", "-T", "--monotonic", "37", "--fork", grebe, "sg", "--channels", "1"]
    samples = str(int(rate * (seconds + 3)))
    # The sender goes first: what is recorded before the first answer is by its own clock alone, which says how far the rest is off.
    sending = subprocess.Popen(
        [*sender, "--rate", str(rate), "--samples", samples, "--to", "udp://10.215.0.1:5990"], stderr=subprocess.DEVNULL)
    record = [grebe, "record", "udp://10.215.0.1:5990", f"{folder}/x.sigmf-meta", "--duration", f"{seconds}s"]
    subprocess.run(record, check=True, capture_output=True, timeout=seconds + 60)
    sending.wait(60)
    captures = json.load(open(f"{folder}/x.sigmf-meta"))["captures"]
    stated = [(it["core:global_index"], it["grebe:axis"]) for it in captures if "grebe:axis" in it]
    begin, theirs = stated[0]
    if theirs["error_ns"] > 0:
        return print("left out: the first answer came before any sample")
    for index, axis in stated[1:]:
        true_ns = theirs["ns"] + (index - begin) * 1_000_000_000 // rate - ahead_ns
        yield (index - begin) / rate, (axis["ns"] - true_ns) / 1e3, axis["error_ns"] / 1e3


ip(f"netns add {name}")
try:
    ip(f"link add {name} type veth peer name eth0 netns {name}")
    ip(f"addr add 10.215.0.1/24 dev {name}")
    ip(f"link set {name} up")
    ip(f"-n {name} addr add 10.215.0.2/24 dev eth0")
    ip(f"-n {name} link set eth0 up")
    held = count = 0
    for number in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            for since, off_us, most_us in run(folder):
                held, count = held + (abs(off_us) <= most_us), count + 1
                print(f"run {number + 1}, after {since:6.2f} s: {off_us:+8.2f} us off, +- {most_us:.2f} us stated")
    print(f"{held} of {count} stated intervals have the truth in them")
    sys.exit(held < count)
finally:
    ip(f"netns del {name}")
