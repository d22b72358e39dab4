"""The two blocks."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pmt  # type: ignore[import-not-found]
from gnuradio import gr  # type: ignore[import-not-found]

from .._errors import UsageError
from .._grebe import Block
from .._stream import Policy, open, publish


class Type(NamedTuple):
    """A type of item in GNU Radio."""

    item: Any
    """As in GNU Radio's Python blocks: a NumPy type, or a type and a number."""
    format: str
    """grebe's format with the same memory layout."""


TYPES = {
    "complex": Type(np.complex64, "cf32"),
    "float": Type(np.float32, "f32"),
    "int": Type(np.int32, "i32"),
    "short": Type(np.int16, "i16"),
    "byte": Type(np.int8, "i8"),
    "sc16": Type((np.int16, 2), "ci16"),
    "sc8": Type((np.int8, 2), "ci8"),
}
"""The types of items, by GNU Radio's names; ``sc16`` and ``sc8`` are vectors of two."""

_Items = list[npt.NDArray[Any]]


class source(gr.sync_block):  # type: ignore[misc]  # noqa: N801 - as GNU Radio's blocks are called
    """Reads the stream that ``uri`` names, with a port per channel.

    type
        Type of the output: one of ``TYPES``. ``"complex"`` and ``"float"`` also accept integers, scaled to full scale 1.0. The
        others need the same format.
    channels
        Channels of the stream.
    policy
        Policy if the flow graph is too slow, as for ``grebe.open``. A ``gap`` tag counts the drops.
    wait, timeout
        As for ``grebe.open``.
    zeros
        Fills gaps with zeros, so that the number of items equals the samples made.

    Listens from its creation on. The end of the stream ends the graph. So does an error or an unexpected format; the reason is
    printed, and stays in ``error``.
    """

    def __init__(
        self,
        uri: str,
        type: str = "complex",  # noqa: A002
        channels: int = 1,
        *,
        policy: Policy | None = None,
        wait: bool = False,
        timeout: float | None = None,
        zeros: bool = False,
    ) -> None:
        self._type = _type_of(type)
        gr.sync_block.__init__(self, name="grebe source", in_sig=None, out_sig=[self._type.item] * channels)
        self._channels = channels
        self._zeros = zeros
        self._stream = open(uri, policy=policy, wait=wait, timeout=timeout, name="GNU Radio")
        self._block: Block | None = None
        self._before: Block | None = None
        self._taken = 0
        self._missing = 0
        self._told: tuple[Any, ...] = ()
        self.error: Exception | None = None
        self.set_min_output_buffer(_BUFFER_ITEMS)

    @property
    def address(self) -> str | None:
        """Address on which a UDP stream is received."""
        return self._stream.address

    def stats(self) -> dict[str, Any]:
        """Counters of the stream: received and lost samples."""
        return self._stream.stats()

    def work(self, input_items: _Items, output_items: _Items) -> int:
        try:
            return self._fill(output_items)
        except Exception as error:  # an exception would leave the other blocks waiting for ever
            self.error = error
            print(f"grebe source: {error}", file=sys.stderr)
            return int(gr.WORK_DONE)

    def stop(self) -> bool:
        self._block = self._before = None
        self._stream.close()
        return True

    def _fill(self, out: _Items) -> int:
        filled, length = 0, len(out[0])
        while filled < length:
            if self._block is None:
                try:
                    block = self._stream.poll()
                    if block is None and filled == 0:
                        # No longer than `stop` may take.
                        self._stream._wait(_WAIT_S)
                        block = self._stream.poll()
                except StopIteration:
                    return filled if filled else int(gr.WORK_DONE)
                if block is None:
                    return filled
                self._begin(block, filled)
            if self._missing:
                zeros = min(self._missing, length - filled)
                for port in out:
                    port[filled : filled + zeros] = 0
                self._missing -= zeros
                filled += zeros
                continue
            filled += self._copy(out, filled)
        return filled

    def _begin(self, block: Block, filled: int) -> None:
        if block.channels != self._channels:
            raise UsageError(
                f"the stream has {block.channels} channels, and the block was made for {self._channels}: "
                f"give channels={block.channels}"
            )
        gap = int(block.gap)
        self._missing = gap if self._zeros else 0
        self._tell(block, filled + self._missing, gap)
        self._block, self._before, self._taken = block, block, 0

    def _tell(self, block: Block, at: int, gap: int) -> None:
        """Adds tags at changes."""
        offset = self.nitems_written(0) + at
        if gap:
            self._tag(offset - self._missing, "gap", pmt.from_uint64(gap))
        before = self._before
        is_known = before is not None and block._is_described_as(before)
        frequency = self._told[1] if is_known else _frequency(block)
        said = (block.rate, frequency)
        if said == self._told and not gap and not block.restarted:
            return
        self._told = said
        if block.rate > 0:
            self._tag(offset, "rx_rate", pmt.from_double(block.rate))
        if frequency is not None:
            self._tag(offset, "rx_freq", pmt.from_double(frequency))
        if block.time_ns is not None:
            seconds, fraction_ns = divmod(block.time_ns, 1_000_000_000)
            time = pmt.make_tuple(pmt.from_uint64(seconds), pmt.from_double(fraction_ns / 1e9))
            self._tag(offset, "rx_time", time)

    def _tag(self, offset: int, key: str, value: Any) -> None:
        for port in range(self._channels):
            self.add_item_tag(port, offset, pmt.intern(key), value, pmt.intern("grebe"))

    def _copy(self, out: _Items, filled: int) -> int:
        block = self._block
        assert block is not None
        count = min(len(out[0]) - filled, len(block) - self._taken)
        rows = block.samples[:, self._taken : self._taken + count]
        for port, row in zip(out, rows, strict=True):
            _take(row, block.format, self._type, port[filled : filled + count])
        self._taken += count
        if self._taken == len(block):
            self._block = None
        return count


class sink(gr.sync_block):  # type: ignore[misc]  # noqa: N801
    """Writes the stream that ``uri`` names, with a port per channel: sends, lends to other processes, or records it.

    rate
        Samples per second and channel.
    type
        Type of the input: one of ``TYPES``.
    channels, description, pace, overwrite
        As for ``grebe.publish``.

    Tags at the first port: ``gap`` skips that number of samples before its item, ``rx_freq`` changes ``core:frequency``. The end of
    the graph ends the stream. An error ends the graph; the reason is printed, and stays in ``error``.
    """

    def __init__(
        self,
        uri: str,
        rate: float,
        type: str = "complex",  # noqa: A002
        channels: int = 1,
        *,
        description: Mapping[str, Any] | None = None,
        pace: bool = False,
        overwrite: bool = False,
    ) -> None:
        self._type = _type_of(type)
        gr.sync_block.__init__(self, name="grebe sink", in_sig=[self._type.item] * channels, out_sig=None)
        self._said = dict(description or {})
        self._out = publish(
            uri,
            rate=rate,
            channels=channels,
            dtype=self._type.format,
            description=self._said,
            pace=pace,
            overwrite=overwrite,
        )
        self.error: Exception | None = None
        self.set_min_noutput_items(1)

    def stats(self) -> dict[str, Any]:
        """The counters of the stream."""
        return self._out.stats()

    def work(self, input_items: _Items, output_items: _Items) -> int:
        try:
            return self._write(input_items)
        except Exception as error:
            self.error = error
            print(f"grebe sink: {error}", file=sys.stderr)
            return int(gr.WORK_DONE)

    def stop(self) -> bool:
        try:
            self._out.close()
        except Exception as error:
            self.error = self.error or error
            print(f"grebe sink: {error}", file=sys.stderr)
        return True

    def _write(self, items: _Items) -> int:
        length, first = len(items[0]), self.nitems_read(0)
        tags = sorted(self.get_tags_in_window(0, 0, length), key=lambda tag: tag.offset)
        at = 0
        for tag in tags:
            self._write_from(items, at, tag.offset - first)
            at = tag.offset - first
            self._heed(pmt.symbol_to_string(tag.key), tag.value)
        self._write_from(items, at, length)
        return length

    def _write_from(self, items: _Items, at: int, end: int) -> None:
        while at < end:
            count = min(end - at, self._out.block_samples)
            with self._out.block(count) as rows:
                for row, port in zip(rows, items, strict=True):
                    row[:] = _as_format(port[at : at + count], self._type)
            at += count

    def _heed(self, key: str, value: Any) -> None:
        if key == "gap" and pmt.is_uint64(value):
            self._out.drop(pmt.to_uint64(value))
        elif key == "rx_freq" and pmt.is_number(value):
            self._said["core:frequency"] = pmt.to_double(value)
            self._out.describe(self._said)


def _type_of(name: str) -> Type:
    if name not in TYPES:
        raise UsageError(f"unknown type of items {name}; supported: {', '.join(TYPES)}")
    return TYPES[name]


def _frequency(block: Block) -> float | None:
    frequency = block.description.get("core:frequency")
    return None if frequency is None else float(frequency)


def _take(row: npt.NDArray[Any], format: str, type: Type, out: npt.NDArray[Any]) -> None:  # noqa: A002
    """Copies samples of a channel to a port, and scales integers for a floating-point type."""
    if format == type.format:
        out[:] = row if out.ndim == 1 else _parts(row)
    elif type.format == "cf32" and format in _SCALES:
        parts = out.view(np.float32).reshape(-1, 2)
        np.multiply(_parts(row), _SCALES[format], out=parts, dtype=np.float32)
        if format == "cu8":
            parts -= np.float32(127.5 / 128)
    elif type.format == "f32" and format in _SCALES_REAL:
        np.multiply(row, _SCALES_REAL[format], out=out, dtype=np.float32, casting="same_kind")
        if format == "u8":
            out -= np.float32(1)
    else:
        asked = next(name for name, one in TYPES.items() if one is type)
        fits = [name for name, one in TYPES.items() if one.format == format]
        fits += ["complex"] if format in _SCALES else []
        fits += ["float"] if format in _SCALES_REAL else []
        raise UsageError(f"the stream has samples of {format}, which do not fit type={asked}: give {' or '.join(fits)}")


def _parts(row: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Complex integers as two columns."""
    return row.view(row.dtype["re"]).reshape(-1, 2)


def _as_format(items: npt.NDArray[Any], type: Type) -> npt.NDArray[Any]:  # noqa: A002
    """Items as grebe's samples: the same memory."""
    if items.ndim == 1:
        return items
    return items.view(np.dtype([("re", items.dtype), ("im", items.dtype)])).reshape(-1)


_SCALES = {"ci16": np.float32(1 / 32_768), "ci8": np.float32(1 / 128), "cu8": np.float32(1 / 128)}
_SCALES_REAL = {
    "i16": np.float32(1 / 32_768),
    "i8": np.float32(1 / 128),
    "u8": np.float32(1 / 128),
    "i32": np.float32(1 / 2_147_483_648),
    "f64": np.float32(1),
}
_WAIT_S = 0.1
# So that a call of Python's is worth its price.
_BUFFER_ITEMS = 65_536
