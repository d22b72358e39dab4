#!/usr/bin/env python3
"""Holds the pages of running commands to the parser of Prometheus' own client: ci/metrics.py GREBE."""

import os
import subprocess
import sys
import tempfile
import time
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

GREBE = sys.argv[1]
passed = 0


class Served:
    """A command with --metrics, until it is closed."""

    def __init__(self, *arguments):
        self.child = subprocess.Popen([GREBE, *arguments, "--metrics", "0"], stderr=subprocess.PIPE, text=True)
        for line in self.child.stderr:
            if line.startswith("metrics at "):
                self.url = line.split()[2]
                return
        sys.exit(f"{arguments} served nothing")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()

    def families(self):
        with urllib.request.urlopen(self.url, timeout=10) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"), answer.headers
            text = answer.read().decode()
        families = list(text_string_to_metric_families(text))
        names = [family.name for family in families]
        assert len(names) == len(set(names)), f"a family stands in two places: {names}"
        return {family.name: family for family in families}

    def wait_for(self, name, least):
        for _ in range(300):
            families = self.families()
            if name in families and max(sample.value for sample in families[name].samples) >= least:
                return families
            time.sleep(0.1)
        sys.exit(f"{name} never was {least}: {families.get(name)}")


def check(what, families, expected):
    global passed
    for name, kind in expected.items():
        family = families.get(name)
        assert family, f"{what}: no {name} in {sorted(families)}"
        assert family.type == kind and family.documentation, f"{what}: {family}"
        for sample in family.samples:
            assert kind != "counter" or sample.name.endswith("_total"), sample
            assert sample.value >= 0, sample
    for family in families.values():
        assert family.type in ("counter", "gauge", "histogram"), f"{what}: {family}"
        rows = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in family.samples]
        assert len(rows) == len(set(rows)), f"{what}: twice the same labels: {family}"
    passed += 1
    print(f"ok      {what}: {len(families)} families")


def buckets_grow(family):
    of = {}
    for sample in family.samples:
        labels = tuple(sorted((k, v) for k, v in sample.labels.items() if k != "le"))
        if sample.name.endswith("_bucket"):
            counts = of.setdefault(labels, [])
            assert not counts or counts[-1] <= sample.value, family
            counts.append(sample.value)
        if sample.name.endswith("_count"):
            assert of[labels][-1] == sample.value, family


with tempfile.TemporaryDirectory() as folder:
    graph = os.path.join(folder, 'a "graph".toml')
    with open(graph, "w") as file:
        file.write(
            'stage = [{ id = "gen", kind = "synth", params = { rate = "1M" } }, { id = "end", kind = "null" }]\n'
            'edge = [{ from = "gen", to = "end" }]\n'
        )
    common = {
        "grebe_stage_frames": "counter",
        "grebe_stage_busy_seconds": "counter",
        "grebe_queue_fill_ratio": "gauge",
        "grebe_graph_start_time_seconds": "gauge",
    }
    disks = [os.path.join(folder, f"{disk}.sigmf-meta") for disk in "ab"]
    with Served("record", "synth:", "--to", disks[0], "--to", disks[1]) as recorder:
        families = recorder.wait_for("grebe_stage_latency_seconds", 1)
        buckets_grow(families["grebe_stage_latency_seconds"])
        both = {"grebe_stage_each_disk_samples": "counter", "grebe_stage_disk_buffer_fill_bytes": "gauge"}
        check("a recorder on two disks", families, common | both | {"grebe_stage_latency_seconds": "histogram"})
    with Served("record", "udp://127.0.0.1:0", os.path.join(folder, "c.sigmf-meta")) as receiver:
        check("a receiver", receiver.families(), common | {"grebe_stage_refused_datagrams": "counter"})
    with Served("run", graph) as running:
        families = running.wait_for("grebe_stage_samples", 1)
        assert {s.labels["graph"] for s in families["grebe_stage_samples"].samples} == {'a "graph"'}
        check("a graph with quotes in its name", families, common)
    with Served("relay", "--listen", "127.0.0.1:0") as relay:
        check("a relay", relay.families(), {"grebe_relay_sessions": "gauge", "grebe_relay_dropped_datagrams": "counter"})

print(f"{passed} passed, 0 failed")
