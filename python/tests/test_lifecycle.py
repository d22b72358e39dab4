"""Streams that start and end in any order, at any moment."""

from __future__ import annotations

import gc
import os
import pathlib
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time

import grebe
import numpy as np
import pytest


def threads_and_files() -> tuple[int, int]:
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


def python(code: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="/proc")
def test_a_thousand_streams_leave_nothing() -> None:
    kept = []
    before = threads_and_files()
    for n in range(1_000):
        stream = grebe.open("synth:?channels=1&rate=1M")
        if n % 4 == 0:
            kept.append(next(stream).samples)
        if n % 100 == 0:
            # Those that were dropped end by themselves, within a step.
            stream.close()
            kept.clear()
    del stream
    kept.clear()
    gc.collect()
    end = time.monotonic() + 60
    while threads_and_files() > before and time.monotonic() < end:
        time.sleep(0.05)
    assert threads_and_files() <= before


def test_a_forked_child_leaves_the_parents_streams_alone(shm: str) -> None:
    with grebe.publish(shm, rate=1e6, dtype="i16", block=16_384) as out:
        stream = grebe.open(shm, timeout=20, policy="block")
        out.write(np.full(16_384, 1, "i2"))
        block = next(stream)
        samples = block.samples
        out.write(np.full(16_384, 2, "i2"))
        child = os.fork()
        if child == 0:
            # Nothing of pytest's may run in here.
            status = 1
            try:
                refused = 0
                for use in [lambda: next(stream), lambda: out.write(samples), stream.stats, out.close]:
                    try:
                        use()
                    except grebe.Error as error:
                        refused += "before the process forked" in str(error)
                own = next(grebe.open("synth:?channels=1&rate=1M")).samples.shape[0]
                good = refused == 4 and own == 1 and bool((samples == 1).all())
                del block, samples, stream, out
                gc.collect()
                status = 0 if good else 2
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert (samples == 1).all() and (next(stream).samples == 2).all()
        for n in range(300):  # more than the stream has chunks: what the child dropped was not given back twice
            out.write(np.full(16_384, n, "i2"))
            assert next(stream).samples[0, 0] == n


def test_a_producer_that_is_killed_is_gone(shm: str) -> None:
    producer = python(f"""
        import grebe, numpy as np, time
        out = grebe.publish("{shm}?wait=1", rate=1e3, dtype="i16")
        out.write(np.arange(1000, dtype="i2"))
        time.sleep(100)
    """)
    stream = grebe.open(shm, wait=True, timeout=60)
    block = next(stream)
    producer.kill()
    with pytest.raises(grebe.GoneError, match="producer gone"):
        next(stream)
    assert block.samples[0].tolist() == list(range(1000)), "what came is good"
    assert list(stream) == [], "it is reported once"
    producer.communicate()


def test_a_reader_that_is_killed_holds_up_nobody(shm: str) -> None:
    with grebe.publish(shm, rate=1e6, dtype="i16") as out:
        reader = python(f"""
            import grebe
            kept = []
            for block in grebe.open("{shm}", policy="block"):
                kept.append(block)
                print(len(kept), flush=True)
        """)
        while out.stats()["sender"].get("consumers", 0) < 1:
            out.write(np.zeros(100, "i2"))
            time.sleep(0.01)
        for n in range(20):
            out.write(np.zeros(100, "i2"))
        reader.kill()
        reader.communicate()
        for n in range(1_000):
            out.write(np.full(100, n, "i2"))
        assert out.index >= 102_000


@pytest.mark.parametrize("code", ["next(stream)", "stream.read(1 << 20)", "out.write(x)", "grebe.open(uri + '-none', wait=True)"])
def test_ctrl_c_ends_every_wait(shm: str, code: str) -> None:
    process = python(f"""
        import grebe, numpy as np, sys
        uri = "{shm}"
        out = grebe.publish(uri, rate=0.1, dtype="i16", pace=True)
        stream, x = grebe.open(uri), np.zeros(1000, "i2")
        print("there", flush=True)
        try:
            {code}
        except KeyboardInterrupt:
            sys.exit(7)
    """)
    assert process.stdout is not None and process.stdout.readline() == "there\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 7, said


WORK = {
    "streams": """
        with grebe.publish(f"shm://sigint-{hits}-{os.getpid()}", rate=1e6, dtype="i16") as out:
            stream = grebe.open(out.uri, timeout=30, policy="block")
            while True:
                out.write(x)
                with out.block(5000) as a:
                    a[:] = 1
                stream.read(5000)
                next(stream).samples.sum()
    """,
    "graphs": """
        graph = grebe.Graph()
        graph.add("source", "synth", channels=1, rate="1M")
        graph.add("mine", lambda block: block.samples + 1)
        graph.add("end", "null")
        graph.connect("source", "mine", "end")
        while True:
            with graph.start() as running:
                running.wait(0.02)
                running.counters()
    """,
    "scopes": """
        with grebe.Scope("synth:?channels=1&rate=1M") as scope:
            while True:
                scope.png(320, 240)
    """,
    "transfers": """
        while True:
            try:
                grebe.receive(sys.argv[1], on_ticket=lambda ticket: None, listen="127.0.0.1:0", expires=0.05)
            except grebe.GoneError:
                pass
    """,
}


@pytest.mark.parametrize(("what", "times"), [("streams", 200), ("graphs", 40), ("scopes", 40), ("transfers", 40)])
def test_ctrl_c_at_any_moment_is_a_keyboard_interrupt(what: str, times: int, tmp_path: pathlib.Path) -> None:
    """Each thread is in a wait, a copy, a write, or frees an array."""
    program = """
        import grebe, numpy as np, os, signal, sys
        hits, is_armed, is_pending = 0, False, False

        def hit(*_):
            # Within what is tested; a signal that comes while this program counts is raised there next.
            global is_pending
            if is_armed:
                raise KeyboardInterrupt
            is_pending = True

        def work():
            WORK

        signal.signal(signal.SIGINT, hit)
        x = np.zeros((1, 5000), "i2")
        print("there", flush=True)
        while hits < TIMES:
            try:
                is_armed = True
                if is_pending:
                    raise KeyboardInterrupt
                work()
            except KeyboardInterrupt:
                # The next one starts after the report of this one.
                is_armed = is_pending = False
                hits += 1
                print(hits, flush=True)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print("done", flush=True)
    """
    body = textwrap.indent(textwrap.dedent(WORK[what]).strip(), " " * 12).strip()
    process = python(program.replace("WORK", body).replace("TIMES", str(times)), str(tmp_path))
    assert process.stdout is not None
    chance, line = random.Random(7), process.stdout.readline()
    while line not in ("done\n", ""):
        time.sleep(chance.random() * 0.01)
        process.send_signal(signal.SIGINT)
        line = process.stdout.readline()
    _, said = process.communicate(timeout=60)
    assert line == "done\n" and process.returncode == 0, said


def test_four_threads_read_four_streams() -> None:
    seen = [0] * 4

    def read(at: int) -> None:
        for block in grebe.open("synth:?channels=1&rate=1M&samples=200k", policy="block", copy=at % 2 == 0):
            seen[at] += len(block) + int(block.gap)

    threads = [threading.Thread(target=read, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [200_000] * 4


def test_threads_share_a_stream(shm: str) -> None:
    indices: list[int] = []

    def read() -> None:
        indices.extend(block.index for block in stream)

    with grebe.publish(shm, rate=1e6, dtype="i16") as out:
        stream = grebe.open(shm, policy="block")
        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(500):
            out.write(np.zeros(100, "i2"))
    for thread in threads:
        thread.join()
    assert sorted(indices) == list(range(0, 50_000, 100)), "each block goes to one of them"


def test_a_stream_is_closed_while_another_thread_reads(shm: str) -> None:
    with grebe.publish(shm, rate=1e6, dtype="i16"):
        stream = grebe.open(shm)
        reading = threading.Thread(target=lambda: list(stream))
        reading.start()
        time.sleep(0.05)
        stream.close()
        reading.join(60)
        assert not reading.is_alive()
        stream.close()
        assert list(stream) == []


def test_names_and_values_that_cannot_be(shm: str) -> None:
    for uri, words in [("", "is empty"), ("udp://127.0.0.1", "has no port"), ("x.mp3", "not the URI of a stream"), ("shm://../x", "needs a name")]:
        with pytest.raises(grebe.UsageError, match=words):
            grebe.open(uri)
    with pytest.raises(grebe.Error, match="does not exist"):
        grebe.open(shm)
    with pytest.raises(grebe.UsageError, match="policy"):
        grebe.open("synth:", policy="all")  # type: ignore[arg-type]
    with pytest.raises(grebe.UsageError, match="timeout"):
        grebe.open("synth:", timeout=-1)
    with pytest.raises(grebe.UsageError, match="unknown sample format"):
        grebe.publish(shm, rate=1, dtype="i24")
    with pytest.raises(grebe.UsageError, match="channels is not 1..=255"):
        grebe.publish(shm, rate=1, channels=300)
    with pytest.raises(grebe.UsageError, match="at most 64 MiB"):
        grebe.publish(shm, rate=1, block=1 << 30)
    with pytest.raises(grebe.UsageError, match="rate"):
        grebe.publish(shm, rate=0, pace=True)
    with pytest.raises(grebe.UsageError, match="cannot be sent to"):
        grebe.publish("synth:", rate=1)
    with pytest.raises(grebe.UsageError, match="description"):
        grebe.publish(shm, rate=1, description={"grebe:channels": 7})
    first = grebe.publish(shm, rate=1)
    with pytest.raises(grebe.Error, match="exists already"):
        grebe.publish(shm, rate=1)
    first.close()
    first.close()
