"""Streams, read and written."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

import numpy.typing as npt

from ._grebe import Block, Publisher
from ._grebe import Stream as _Stream
from ._picture import blocks_png

Policy = Literal["block", "drop_oldest", "drop_latest"]


class Stream(_Stream):
    """A stream that is being received: iterate over it for blocks, or ``read`` so many samples.

    Reception goes on in threads of its own while Python computes; what Python is too slow for is dropped by the policy, and stands
    in the gap of the next block. ``async for`` works, too.
    """

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Block:
        while True:
            try:
                block = self.poll()
            except StopIteration:
                raise StopAsyncIteration from None
            if block is not None:
                return block
            # A wait that nobody wants any more takes nothing, and ends by itself.
            await asyncio.get_running_loop().run_in_executor(None, self._wait, _WAIT_S)

    def _repr_png_(self) -> bytes | None:
        """The next available blocks, without taking them."""
        blocks = self._peek(_DRAWN_BLOCKS)
        return blocks_png(blocks, repr(self)[1:-1]) if blocks else None


def open(  # noqa: A001 - as one says it: grebe.open
    uri: str,
    *,
    timeout: float | None = None,
    copy: bool = False,
    policy: Policy | None = None,
    wait: bool = False,
    samples: int | None = None,
    speed: float | None = None,
    repeat: bool = False,
    name: str | None = None,
) -> Stream:
    """Opens the stream that ``uri`` names, to be read.

    timeout
        Seconds without a block after which reading raises ``grebe.Timeout``; ``None`` waits for ever. The stream goes on.
    copy
        Gives each block memory of its own, which may be changed and kept. Without it a block lies in the memory of the kernel
        or the producer; who keeps many of them gets a ``grebe.LeaseWarning``, and copies from then on.
    policy
        What happens when Python is too slow: ``"drop_oldest"``, ``"drop_latest"`` or ``"block"``. Recordings and pipes block, others
        drop the oldest.
    wait
        Waits for a stream in shared memory that is not there yet (no longer than ``timeout``).
    samples
        Ends the stream after so many samples per channel.
    speed, repeat
        Of a recording: plays it at so many times its rate (as fast as it is read by default); begins again at its end.
    name
        What the producer of shared memory calls this reader.

    Raises ``grebe.UsageError`` for a name that cannot be, ``grebe.Error`` for a stream that cannot be had.
    """
    return Stream(
        uri,
        timeout=timeout,
        copy=copy,
        policy=policy,
        wait=wait,
        samples=samples,
        speed=speed,
        repeat=repeat,
        name=name,
    )


def publish(
    uri: str,
    *,
    rate: float,
    channels: int = 1,
    dtype: npt.DTypeLike | str = "f32",
    block: int | None = None,
    pace: bool = False,
    description: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    timeout: float | None = None,
) -> Publisher:
    """Makes the stream that ``uri`` names, to be written to: sent, lent to other processes, or recorded.

    rate
        Samples per second and channel; 0 where there is none.
    dtype
        What the samples are: ``"i16"``, ``"cf32"``, ... or a ``numpy.dtype``.
    block
        Samples per channel of a frame at most. What shared memory holds and a datagram carries is the default; for more than that
        give it here, and shared memory is made for it (64 MiB a frame at most).
    pace
        Sends samples when they are due by ``rate``; else at once, as fast as readers that block take them.
    description
        What the stream is, with SigMF's keys: ``{"core:frequency": 100e6, "grebe:channels": [{"name": "I"}]}``.
    overwrite
        Replaces a recording of this name.
    timeout
        Seconds to wait for the readers that ``shm://NAME?wait=2`` asks for.
    """
    return Publisher(
        uri,
        rate=rate,
        channels=channels,
        dtype=dtype,
        block=block,
        pace=pace,
        description=description,
        overwrite=overwrite,
        timeout=timeout,
    )


_WAIT_S = 0.1
# About 1 MiB of the samples to come.
_DRAWN_BLOCKS = 16
