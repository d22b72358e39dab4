"""Graphs that run from Python, with functions as stages."""

from __future__ import annotations

import gc
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import grebe
import numpy as np
import numpy.typing as npt
import pytest


def chain(function: Any, path: pathlib.Path, **params: Any) -> grebe.Graph:
    graph = grebe.Graph()
    graph.add("source", "synth", channels=2, rate="1M", samples="100k", free_run=True)
    graph.add("mine", function, **params)
    graph.add("recorder", "record", file=path)
    graph.connect("source", "mine", "recorder")
    return graph


def test_a_function_is_a_stage(tmp_path: pathlib.Path) -> None:
    whole, made = tmp_path / "whole.sigmf-meta", tmp_path / "made.sigmf-meta"
    threads = set()

    def halve(block: grebe.Block) -> npt.NDArray[Any]:
        threads.add(threading.get_ident())
        assert block.samples.dtype == np.int16 and not block.gap and block.rate == 1e6
        halved: npt.NDArray[Any] = block.samples // 2
        return halved

    graph = chain(halve, made)
    graph.add("beside", "record", file=whole)
    graph.connect("source", "beside")
    counters = graph.run()
    a, b = grebe.Recording(whole), grebe.Recording(made)
    assert (b[:] == a[:] // 2).all() and b.shape == (2, 100_000) and b.rate == 1e6 and b.gaps == []
    assert len(threads) == 1 and threads != {threading.get_ident()}
    mine = counters["stages"]["mine"]
    assert mine["samples_in"] == mine["samples_out"] == 100_000 and mine["own"]["calls"] > 0
    assert [queue["dropped_samples"] for queue in counters["queues"]] == [0, 0, 0]


def test_a_class_may_hand_on_other_samples_and_something_at_the_end(tmp_path: pathlib.Path) -> None:
    class Means:
        """The mean of each 1,000 samples, as f32; what is left over at the end."""

        def __init__(self) -> None:
            self.rest = np.zeros((2, 0), "f4")

        def process(self, block: grebe.Block) -> list[npt.NDArray[Any]] | None:
            self.rest = np.concatenate([self.rest, block.samples], axis=1)
            whole = self.rest.shape[1] // 1_000
            if whole == 0:
                return None
            parts = self.rest[:, : whole * 1_000].reshape(2, whole, 1_000).mean(axis=2, dtype="f4")
            self.rest = self.rest[:, whole * 1_000 :]
            return [parts]

        def finish(self) -> npt.NDArray[Any]:
            return np.full((2, 5), 7, "f4")

    path = tmp_path / "means.sigmf-meta"
    graph = chain(Means, path, rate=1_000)
    graph.add("whole", "record", file=tmp_path / "whole.sigmf-meta")
    graph.connect("source", "whole")
    for _ in range(2):  # a class is made anew for each run
        graph.run()
        made, whole = grebe.Recording(path), grebe.Recording(tmp_path / "whole.sigmf-meta")
        assert made.format == "f32" and made.rate == 1_000 and made.shape == (2, 105) and made.gaps == []
        assert np.allclose(made[:100], whole[:].reshape(2, 100, 1_000).mean(axis=2))
        assert (made[100:] == 7).all()
        for file in tmp_path.iterdir():
            file.unlink()


def test_blocks_that_are_handed_on_keep_their_place(tmp_path: pathlib.Path) -> None:
    path, whole = tmp_path / "some.sigmf-meta", tmp_path / "whole.sigmf-meta"
    kept: list[tuple[int, int]] = []

    def second(block: grebe.Block) -> grebe.Block | None:
        second.count += 1  # type: ignore[attr-defined]
        if second.count % 3 == 0:  # type: ignore[attr-defined]
            return None
        kept.append((block.index, len(block)))
        return block

    second.count = 0  # type: ignore[attr-defined]
    graph = chain(second, path)
    graph.add("beside", "record", file=whole)
    graph.connect("source", "beside")
    graph.run()
    some, all_of_it = grebe.Recording(path), grebe.Recording(whole)[:]
    assert some.gaps and len(some) == sum(length for _, length in kept)
    for position, length, index, _ in some._segments():
        assert (some[position : position + length] == all_of_it[:, index : index + length]).all()


def test_a_slow_function_drops_by_its_queue_and_sees_the_gap() -> None:
    begun, go_on = threading.Event(), threading.Event()
    seen: list[tuple[int, int, int]] = []

    def slow(block: grebe.Block) -> None:
        seen.append((block.index, len(block), block.gap.samples))
        begun.set()
        go_on.wait(60)

    graph = grebe.Graph()
    graph.add("source", "synth", channels=1, rate="1M", samples="2M", free_run=True)
    graph.add("slow", slow)
    graph.add("fast", "null")
    graph.connect("source", "slow", policy="drop_oldest", capacity=4)
    graph.connect("source", "fast")
    with graph.start("test") as running:
        assert begun.wait(60)
        while running.counters()["stages"]["fast"]["samples_in"] < 2_000_000:
            assert not running.wait(0.01), "the slow stage holds it up"
        go_on.set()
        running.join()
        counters = running.counters()
    dropped = counters["queues"][0]["dropped_samples"]
    assert dropped > 1_000_000 and counters["queues"][1]["dropped_samples"] == 0
    assert sum(length for _, length, _ in seen) + dropped == 2_000_000
    assert sum(gap for _, _, gap in seen) + seen[0][0] == dropped, "drop_oldest keeps the end"


def test_blocks_that_a_stage_keeps_starve_nobody() -> None:
    kept: list[grebe.Block] = []
    graph = grebe.Graph()
    graph.add("source", "synth", channels=1, rate="1M", samples="4M", free_run=True, datagram_size="60K")
    graph.add("keeper", kept.append)
    graph.connect("source", "keeper")
    counters = graph.run()
    assert sum(len(block) for block in kept) == 4_000_000
    assert counters["stages"]["keeper"]["own"]["copied_blocks"] > 0 and sum(block.lent for block in kept) < 20


def test_an_exception_ends_the_graph_with_its_name_and_traceback(tmp_path: pathlib.Path) -> None:
    def broken(block: grebe.Block) -> None:
        raise ZeroDivisionError("by nothing")

    with pytest.raises(grebe.Error, match="^mine: ZeroDivisionError: by nothing$") as raised:
        chain(broken, tmp_path / "x.sigmf-meta").run()
    cause = raised.value.__cause__
    assert isinstance(cause, ZeroDivisionError)
    assert "in broken" in "".join(traceback.format_exception(raised.value))
    for wrong, said in [(lambda _: "text", "is not a sample format"), (lambda _: np.zeros((1, 1, 1), "f4"), "channels x samples")]:
        with pytest.raises(grebe.Error, match=said):
            chain(wrong, tmp_path / f"{len(said)}.sigmf-meta").run()


def test_a_function_that_has_seen_enough_ends_its_stage(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "some.sigmf-meta"
    seen: list[grebe.Block] = []

    def some(block: grebe.Block) -> grebe.Block:
        if len(seen) == 3:
            raise StopIteration
        seen.append(block)
        return block

    graph = grebe.Graph()
    graph.add("source", "synth", channels=1, rate="1M", free_run=True)
    graph.add("some", some)
    graph.add("recorder", "record", file=path)
    graph.connect("source", "some", "recorder")
    graph.run()
    assert len(grebe.Recording(path)) == sum(len(block) for block in seen) > 0


def test_a_stage_that_joins_late_misses_nothing(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "late.sigmf-meta"
    go_on = threading.Event()

    def late(block: grebe.Block) -> grebe.Block:
        go_on.wait(60)
        return block

    graph = grebe.Graph()
    graph.add("source", "synth", channels=1, rate="1M", samples="2M", free_run=True)
    graph.add("late", late)
    graph.add("recorder", "record", file=path)
    graph.add("fast", "null")
    graph.connect("source", "late", policy="drop_oldest", capacity=4)
    graph.connect("source", "fast")
    graph.connect("late", "recorder")
    with graph.start() as running:
        while running.counters()["stages"]["fast"]["samples_in"] < 2_000_000:
            assert not running.wait(0.01)
        go_on.set()
        running.join()
        counters = running.counters()
    rec = grebe.Recording(path)
    first = rec._segments()[0][2]
    dropped = counters["queues"][0]["dropped_samples"]
    assert dropped == 2_000_000 - len(rec) == first + sum(gap.samples for gap in rec.gaps)


TEXT = """
[[stage]]
id = "source"
kind = "synth"
params = { channels = 1, rate = "1M", samples = "10k", free_run = true }

[[stage]]
id = "mine"
kind = "python"
params = { function = "count" }

[[edge]]
from = "source"
to = "mine"
"""


def test_graphs_are_read_from_toml_and_say_what_is_wrong(tmp_path: pathlib.Path) -> None:
    lengths: list[int] = []

    def count(block: grebe.Block) -> None:
        lengths.append(len(block))

    grebe.Graph.from_toml(TEXT, {"count": count}).run()
    assert sum(lengths) == 10_000
    path = tmp_path / "graph.toml"
    path.write_text(TEXT)
    graph = grebe.Graph.load(path, {"count": count})
    graph.add("more", "null")
    graph.connect("source", "more")
    assert grebe.Graph.from_toml(graph.to_toml(), {"count": count}).to_toml() == graph.to_toml()
    assert graph.run()["stages"]["more"]["samples_in"] == 10_000
    with pytest.raises(grebe.UsageError, match="no function 'count'"):
        grebe.Graph.from_toml(TEXT)
    with pytest.raises(grebe.UsageError, match=r"unknown kind 'sinth'(.|\n)*rate(.|\n)*unknown stage 'nowhere'"):
        grebe.Graph.from_toml(TEXT.replace("synth", "sinth").replace('to = "mine"', 'to = "nowhere"') + "rate = 1\n")
    with pytest.raises(grebe.Error, match="no-such-file"):
        missing = grebe.Graph()
        missing.add("player", "play", file="no-such-file.sigmf-meta")
        missing.add("end", "null")
        missing.connect("player", "end")
        missing.run()
    with pytest.raises(grebe.Error, match="cannot read .*none.toml"):
        grebe.Graph.load(tmp_path / "none.toml")
    with pytest.raises(grebe.UsageError, match="cannot be a parameter"):
        graph.add("odd", "gain", gain=object())
        graph.check()


def test_a_graph_is_stopped_and_watched() -> None:
    graph = grebe.Graph()
    graph.add("source", "synth", channels=1, rate="1M")
    seen = threading.Event()
    graph.add("mine", lambda block: seen.set())
    graph.connect("source", "mine")
    running = graph.start("watched-test")
    assert seen.wait(60) and not running.wait(0.01)
    top = subprocess.Popen([sys.executable, "-m", "grebe", "top", "watched-test", "--json"], stdout=subprocess.PIPE, text=True)
    assert top.stdout is not None and '"mine"' in top.stdout.readline()
    top.kill()
    top.communicate()
    running.stop()
    running.stop()
    running.join()
    assert running.wait() and running.counters()["stages"]["mine"]["samples_in"] > 0


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_stops_a_graph_and_leaves_its_recording_whole(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "cut.sigmf-meta"
    code = f"""
        import grebe
        graph = grebe.Graph()
        graph.add("source", "synth", channels=1, rate="1M")
        graph.add("mine", lambda block: print("on", flush=True) or block)
        graph.add("recorder", "record", file={str(path)!r})
        graph.connect("source", "mine", "recorder")
        try:
            graph.run()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "on\n"
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and said.endswith("interrupted\n"), errors
    assert len(grebe.Recording(path)) > 0 and grebe.Recording(path).gaps == []


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_as_a_graph_starts_leaves_its_recording_whole(tmp_path: pathlib.Path) -> None:
    code = f"""
        import os, pathlib, signal, threading, time
        import grebe
        # Another thread has the interpreter most of the time, so that the main thread comes late.
        threading.Thread(target=lambda: all(iter(lambda: True, False)), daemon=True).start()
        for run in range(20):
            path = pathlib.Path({str(tmp_path)!r}) / f"{{run}}.sigmf-meta"
            def interrupt(block, delay_s=run % 4 * 1e-4):
                time.sleep(delay_s)
                if block.index == 0:
                    os.kill(os.getpid(), signal.SIGINT)
                return block
            graph = grebe.Graph()
            graph.add("source", "synth", channels=1, rate="1M")
            graph.add("mine", interrupt)
            graph.add("recorder", "record", file=str(path))
            graph.connect("source", "mine", "recorder")
            try:
                graph.run()
            except KeyboardInterrupt:
                print(len(grebe.Recording(path)) > 0)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout == "True\n" * 20, done.stderr


def test_a_graph_that_nobody_keeps_ends_before_the_interpreter() -> None:
    code = """
        import grebe, threading, time
        seen = threading.Event()
        def busy(block):
            seen.set()
            time.sleep(0.02)
        graph = grebe.Graph()
        graph.add("source", "synth", channels=1, rate="1M")
        graph.add("mine", busy)
        graph.connect("source", "mine", capacity=8)
        running = graph.start()
        seen.wait()
        del running
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == "", done.returncode


def test_an_interpreter_that_ends_stops_its_graphs() -> None:
    code = """
        import grebe, threading
        seen = threading.Event()
        graph = grebe.Graph()
        graph.add("source", "synth", channels=1, rate="1M")
        graph.add("mine", lambda block: seen.set())
        graph.connect("source", "mine")
        running = graph.start()
        seen.wait()
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_a_forked_child_leaves_graphs_and_scopes_alone() -> None:
    seen = threading.Event()
    graph = grebe.Graph()
    graph.add("source", "synth", channels=1, rate="1M")
    graph.add("mine", lambda block: seen.set())
    graph.connect("source", "mine")
    with graph.start() as running, grebe.Scope("synth:?channels=1&rate=1M") as scope:
        assert seen.wait(60) and scope.png()
        child = os.fork()
        if child == 0:
            # Nothing of pytest's may run in here.
            status = 1
            try:
                refused = 0
                uses: list[Callable[[], object]] = [lambda: running.wait(10), scope.png, lambda: scope.is_ended]
                for use in uses:
                    try:
                        use()
                    except grebe.Error as error:
                        refused += "before the process forked" in str(error)
                running.stop()
                scope.close()
                status = 0 if refused == 3 else 2
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        seen.clear()
        assert seen.wait(60) and scope.png() and not running.wait(0.01), "the parent's go on"


def test_graphs_that_nobody_has_any_more_end() -> None:
    before = len(os.listdir("/proc/self/task"))
    for _ in range(20):
        graph = grebe.Graph()
        graph.add("source", "synth", channels=1, rate="1M")
        graph.add("mine", lambda block: block)
        graph.connect("source", "mine")
        graph.start()
    gc.collect()
    end = time.monotonic() + 60
    while len(os.listdir("/proc/self/task")) > before and time.monotonic() < end:
        time.sleep(0.05)
    assert len(os.listdir("/proc/self/task")) <= before
