"""Reading and writing streams."""

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
    """A stream to read: iterate over it for blocks, or ``read`` a number of samples.

    Threads receive while Python computes. If Python is too slow, the policy drops samples, which show in the gap of the next block.
    ``async for`` works too.
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
            # An abandoned wait takes nothing, and ends by itself.
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
    """Opens the stream that ``uri`` names, for reading.

    timeout
        Seconds without a block after which reading raises ``grebe.Timeout``; ``None`` waits for ever. The stream continues.
    copy
        Gives each block its own memory, to change and keep. Otherwise a block lies in the memory of the kernel or the producer.
        Keeping many of them causes a ``grebe.LeaseWarning``, and copies from then on.
    policy
        Policy if Python is too slow: ``"drop_oldest"``, ``"drop_latest"`` or ``"block"``. Recordings and pipes block, others
        drop the oldest.
    wait
        Waits for a stream in shared memory that does not exist yet (up to ``timeout``).
    samples
        Ends the stream after this many samples per channel.
    speed, repeat
        For a recording: playback speed as a multiple of its rate (by default as fast as it is read); repeats it.
    name
        Name of this reader towards the producer of shared memory.

    Raises ``grebe.UsageError`` for an invalid name, ``grebe.Error`` if the stream cannot be opened.
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
    """Opens the stream that ``uri`` names, for writing: sends, lends to other processes, or records it.

    rate
        Samples per second and channel; 0 without a rate.
    dtype
        Format of samples: ``"i16"``, ``"cf32"``, ... or a ``numpy.dtype``.
    block
        Maximum samples per channel of a frame; by default what shared memory holds or a datagram carries. A larger value enlarges
        shared memory (64 MiB per frame at most).
    pace
        Sends samples when they are due by ``rate``; otherwise at once, as fast as blocking readers accept them.
    description
        Description of the stream, with SigMF's keys: ``{"core:frequency": 100e6, "grebe:channels": [{"name": "I"}]}``.
    overwrite
        Replaces a recording of this name.
    timeout
        Seconds to wait for the readers of ``shm://NAME?wait=2``.
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
