"""Uses of arrays in a stream's memory: each must leave that memory intact, in any order.

Run by `test_memory.py`, one at a time, and by `ci/python.sh` under valgrind, all of them: returned memory must not be
read, whatever uses it by then.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import grebe
import numpy as np

_NUMBERS = count()
N = 4_096


def publish(**given: Any) -> grebe.Publisher:
    name = f"shm://memory-{os.getpid()}-{next(_NUMBERS)}"
    return grebe.publish(name, **{"rate": 1e6, "dtype": "i16", **given})


def interrupted_after(seconds: float) -> None:
    """As Ctrl-C."""
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()


def closed_within_a_block() -> None:
    out = publish()
    try:
        with out.block(N) as a:
            a[:] = 980
            out.close()
    except grebe.Error as error:
        assert "was closed" in str(error)
    del out
    gc.collect()
    assert (a == 980).all() and not a.flags.writeable


def closed_before_the_exception() -> None:
    out = publish()
    try:
        with out.block(N) as a:
            a[:] = 980
            out.close()
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    del out
    gc.collect()
    a += 1
    assert (a == 981).all(), "nobody else has it"


def interrupted_while_it_is_not_due() -> None:
    out = publish(rate=1e3, pace=True)
    reader = grebe.open(out.uri)
    interrupted_after(0.2)
    try:
        with out.block(N) as a:
            a[:] = 980
        raise AssertionError("it is not due for 4 s")
    except KeyboardInterrupt:
        pass
    for _ in range(10):
        try:
            with out.block(10) as other:
                other[:] = 1_000
        except KeyboardInterrupt:
            pass
        assert (a == 980).all() and (other == 1_000).all()
    assert (next(reader).samples == 1_000).all(), "nothing of the first was sent"
    out.close()
    assert (a == 980).all()


def interrupted_while_there_is_no_room() -> None:
    out = grebe.publish(f"shm://memory-{os.getpid()}-{next(_NUMBERS)}?memory=16M", rate=1e6, dtype="i16")
    reader = grebe.open(out.uri, policy="block")
    kept: list[Any] = []
    interrupted_after(0.5)
    try:
        while True:
            with out.block(N) as a:
                a[:] = len(kept)
            kept.append(a)
    except KeyboardInterrupt:
        pass
    value = int(a[0, 0])
    reader.close()
    for _ in range(100):
        with out.block(N) as other:
            other[:] = -1
    assert (a == value).all()
    out.close()
    assert all((array == n).all() for n, array in enumerate(kept)) and (a == value).all()


def arrays_outlive_everything() -> None:
    kept: list[Any] = []
    with publish() as out:
        stream = grebe.open(out.uri, policy="block")
        for n in range(20):
            with out.block(N) as a:
                a[:] = n
            block = next(stream)
            samples: Any = block.samples
            kept += [a, samples, samples[:, ::2], memoryview(samples), np.asarray(block)]
        for array in map(np.asarray, kept):
            assert not array.flags.writeable
            if not array.flags.owndata:
                try:
                    array.setflags(write=True)
                    raise AssertionError("others read it")
                except ValueError:
                    pass
        stream.close()
    del out, stream, block, samples, a
    gc.collect()
    for n in range(20):
        assert all((np.asarray(array) == n).all() for array in kept[5 * n : 5 * n + 5])


WAYS: dict[str, Callable[[Any], Any]] = {
    "view": lambda a: a[:],
    "view of a view": lambda a: a[:][0][1:],
    "base": lambda a: a.base,
    "buffer of its base": lambda a: np.frombuffer(a.base, "i2"),
    "buffer of its memory": lambda a: np.frombuffer(a.base.base, "i2"),
    "memory": lambda a: np.ndarray((N,), "i2", a.base.base),
    "memoryview": memoryview,
    "buffer": lambda a: np.frombuffer(a, "i2"),
    "another class": lambda a: a.view(np.recarray),
    "strides": lambda a: np.lib.stride_tricks.as_strided(a, writeable=True),
    "dlpack": lambda a: np.from_dlpack(a),
    "bytes": lambda a: memoryview(a).cast("B"),
}


def views_that_were_kept() -> None:
    """A sent block stays unchanged although its array is still writable."""
    with publish() as out:
        stream = grebe.open(out.uri, policy="block")
        for n, (name, keep) in enumerate(WAYS.items()):
            for forgets in (False, True):
                with out.block(N) as a:
                    a[:] = n
                    kept = keep(a)
                    if forgets:
                        del a
                block = next(stream)
                view = np.asarray(kept)
                if view.flags.writeable:
                    view.view("u1")[...] = 0x55
                assert (block.samples == n).all(), f"{name}, {forgets}"
                del kept, view, block
        copied = out.stats()["copied_blocks"]
        assert copied >= 2 * len(WAYS) - 2, f"{copied} were copied: this test has lost its teeth"


def _thread_writes(out: grebe.Publisher, stream: grebe.Stream) -> None:
    stop, views = threading.Event(), [np.zeros(1, "i2")]

    def write() -> None:
        while not stop.is_set():
            views[0][...] = 7

    thread = threading.Thread(target=write)
    thread.start()
    for n in range(200):
        with out.block(N) as a:
            views[0] = a[:]
            a[:] = 7
        samples = next(stream).samples
        assert (samples == 7).all()
        a = None  # type: ignore[assignment]
    stop.set()
    thread.join()


def a_thread_that_goes_on_writing() -> None:
    with publish() as out:
        _thread_writes(out, grebe.open(out.uri, policy="block"))


def many_arrays_are_kept() -> None:
    """More than the stream has chunks."""
    kept = []
    with publish() as out:
        for n in range(1_500):
            with out.block(100) as a:
                a[:] = n
            kept.append(a)
    assert all((array == n).all() for n, array in enumerate(kept))


def _in_a_generator(out: grebe.Publisher, blocks: int) -> Iterator[None]:
    for n in range(blocks):
        with out.block(N) as a:
            a[:] = n
            yield


def the_usual_ways_copy_nothing() -> None:
    with publish() as out:
        stream = grebe.open(out.uri, policy="block")
        for n in range(50):
            with out.block(N) as a:
                a[:] = n
                a[0, :10] += 1
                assert a.max() >= n and a.shape == (1, N)
            assert int(next(stream).samples[0, -1]) == n

        def nested() -> None:
            with out.block(N) as b:
                (lambda: b.fill(1))()

        nested()
        for _ in _in_a_generator(out, 50):
            pass
        del a
        space = {"out": out, "N": N}
        program = "for n in range(50):\n    with out.block(N) as a:\n        a[:] = n"
        exec(program, space)
        del space["a"]
        exec(program, space, {})
        stats = out.stats()
        assert stats["copied_blocks"] == 0 and stats["sender"]["copied_frames"] == 0, stats


def threads_share_a_publisher() -> None:
    with publish() as out:
        stream = grebe.open(out.uri, policy="block")

        def write(number: int) -> None:
            for _ in range(50):
                with out.block(N) as a:
                    a[:] = number
                out.write(np.full(N, number, "i2"))

        threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(300):
            samples = next(stream).samples
            assert (samples == samples[0, 0]).all()
        for thread in threads:
            thread.join()


ALL = [
    closed_within_a_block,
    closed_before_the_exception,
    interrupted_while_it_is_not_due,
    interrupted_while_there_is_no_room,
    arrays_outlive_everything,
    views_that_were_kept,
    a_thread_that_goes_on_writing,
    many_arrays_are_kept,
    the_usual_ways_copy_nothing,
    threads_share_a_publisher,
]

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    asked = sys.argv[1:] or [scenario.__name__ for scenario in ALL]
    for scenario in ALL:
        if scenario.__name__ in asked:
            scenario()
            print(scenario.__name__, "is good", flush=True)
