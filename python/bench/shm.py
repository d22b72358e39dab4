"""Blocks of int16 from one process to a NumPy array in another, compared with Python's own means: in turns, in the same run.

    python python/bench/shm.py                       4 MiB blocks, each touched once (max)
    python python/bench/shm.py --block 16K --touch none

``pip install pyzmq`` adds it. Compare each figure with the first row: the machine's own limit, NumPy's ``max`` over as many
blocks in one process.
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import os
import statistics
import time
from collections.abc import Callable
from multiprocessing import shared_memory
from typing import Any

import numpy as np

import grebe

SLOTS = 16  # blocks on their way, where a technique does not say itself


def look(samples: np.ndarray, touch: str) -> int:
    return int(samples.max()) if touch == "max" else len(samples)


def fill(array: np.ndarray, number: int) -> None:
    """A new block, as from a device; only its first sample is new, so that the reader is measured."""
    array.flat[0] = number & 0x7FFF


def in_place(blocks: int, samples: int, touch: str) -> float:
    """The limit: the same blocks, filled and read by one process."""
    arrays = [np.zeros(samples, "i2") for _ in range(SLOTS)]
    began = time.perf_counter()
    for number in range(blocks):
        fill(arrays[number % SLOTS], number)
        look(arrays[number % SLOTS], touch)
    return time.perf_counter() - began


def produce_grebe(name: str, blocks: int, samples: int) -> None:
    with grebe.publish(f"shm://{name}?wait=1&readers=1", rate=0, dtype="i16", block=samples) as out:
        for number in range(blocks):
            with out.block(samples) as array:
                fill(array, number)


def through_grebe(blocks: int, samples: int, touch: str) -> float:
    name = f"bench-{os.getpid()}"
    with process(produce_grebe, name, blocks, samples):
        began, got = 0.0, 0
        for block in grebe.open(f"shm://{name}", wait=True, policy="block", timeout=60):
            began = began or time.perf_counter()
            look(block.samples, touch)
            assert block.index == got * samples and not block.gap
            got += 1
        assert got == blocks
        return time.perf_counter() - began


def produce_shared_memory(name: str, full: Any, free: Any, blocks: int, samples: int) -> None:
    memory = shared_memory.SharedMemory(name)
    slots = np.ndarray((SLOTS, samples), "i2", memory.buf)
    for number in range(blocks):
        slot = free.get()
        fill(slots[slot], number)
        full.put((slot, number))
    full.put(None)
    free.get()
    del slots
    memory.close()


def through_shared_memory(blocks: int, samples: int, touch: str) -> float:
    context = mp.get_context("spawn")
    full, free = context.Queue(), context.Queue()
    memory = shared_memory.SharedMemory(create=True, size=SLOTS * samples * 2)
    slots = np.ndarray((SLOTS, samples), "i2", memory.buf)
    for slot in range(SLOTS):
        free.put(slot)
    with process(produce_shared_memory, memory.name, full, free, blocks, samples):
        began, got = 0.0, 0
        while (item := full.get(timeout=60)) is not None:
            began = began or time.perf_counter()
            look(slots[item[0]], touch)
            free.put(item[0])
            got += 1
        took = time.perf_counter() - began
        free.put(None)
        assert got == blocks
    del slots
    memory.close()
    memory.unlink()
    return took


def produce_zmq(address: str, blocks: int, samples: int) -> None:
    import zmq

    socket = zmq.Context().socket(zmq.PUSH)
    socket.set_hwm(SLOTS)
    socket.bind(address)
    array = np.zeros(samples, "i2")
    for number in range(blocks):
        fill(array, number)
        socket.send(array.data, copy=False)
    socket.close(linger=60_000)


def through_zmq(blocks: int, samples: int, touch: str) -> float:
    import zmq

    address = f"ipc:///tmp/grebe-bench-{os.getpid()}"
    socket = zmq.Context().socket(zmq.PULL)
    socket.set_hwm(SLOTS)
    socket.connect(address)
    with process(produce_zmq, address, blocks, samples):
        began = 0.0
        for _ in range(blocks):
            message = socket.recv(copy=False)
            began = began or time.perf_counter()
            look(np.frombuffer(message.buffer, "i2"), touch)
        return time.perf_counter() - began


class process:
    """A process that runs while its blocks are read."""

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        self.process = mp.get_context("spawn").Process(target=target, args=arguments)

    def __enter__(self) -> None:
        self.process.start()

    def __exit__(self, *_: object) -> None:
        self.process.join(60)


def size(text: str) -> int:
    unit = {"K": 10, "M": 20}.get(text[-1:].upper())
    return int(text) if unit is None else int(text[:-1]) << unit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--block", type=size, default=size("4M"), help="bytes of a block (4M)")
    parser.add_argument("--touch", choices=["max", "none"], default="max", help="what is done with each (max)")
    parser.add_argument("--bytes", type=size, default=size("4096M"), help="bytes in a turn (4096M)")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    samples = options.block // 2
    blocks = min(max(options.bytes // options.block, 10), 200_000)
    ways: dict[str, Callable[[int, int, str], float]] = {
        "one process": in_place,
        "grebe": through_grebe,
        "shared_memory + queues": through_shared_memory,
    }
    try:
        import zmq  # noqa: F401

        ways["pyzmq ipc"] = through_zmq
    except ImportError:
        print("skipped: pyzmq is not installed")
    took: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.turns):
        for name, way in ways.items():
            took[name].append(way(blocks, samples, options.touch))
    print(f"{blocks} blocks of {options.block >> 10} KiB of int16, touch: {options.touch}; {options.turns} turns")
    base = statistics.median(took["one process"])
    for name, seconds in took.items():
        middle = statistics.median(seconds)
        rates = sorted(blocks * options.block / second / 1e9 for second in seconds)
        print(
            f"{name:24} {blocks * options.block / middle / 1e9:7.2f} GB/s ({rates[0]:.2f} to {rates[-1]:.2f})"
            f" {middle / blocks * 1e6:9.2f} us a block {base / middle:6.2f} of one process"
        )


if __name__ == "__main__":
    main()
