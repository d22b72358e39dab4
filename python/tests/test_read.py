"""Reading a stream: every sample at its index, in its format, and every loss at its place."""

from __future__ import annotations

import asyncio
import gc
import pathlib
import warnings

import grebe
import numpy as np
import pytest

ECG = pathlib.Path(__file__).parents[2] / "examples/data/ecg.sigmf-meta"
FORMATS = ["i8", "u8", "i16", "i32", "f32", "f64", "ci8", "cu8", "ci16", "cf32"]


def ramp(out: grebe.Publisher, first: int, n: int) -> np.ndarray:
    """Samples that encode their channel and index."""
    index = np.arange(first, first + n)
    rows = np.stack([index + channel for channel in range(out.channels)])
    if out.dtype.names:
        array = np.empty(rows.shape, out.dtype)
        array["re"], array["im"] = rows % 100, rows % 50
        return array
    return (rows % 100).astype(out.dtype)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_arrives_as_it_was_written(shm: str, name: str) -> None:
    with grebe.publish(shm, rate=1e6, channels=2, dtype=name) as out:
        stream = grebe.open(shm, timeout=20)
        written = ramp(out, 0, 5_000)
        out.write(written)
        block = next(stream)
        assert (block.format, block.dtype, block.rate, block.channels) == (name, out.dtype, 1e6, 2)
        assert block.samples.shape == (2, 5_000) and len(block) == 5_000
        assert block.samples.dtype == out.dtype
        assert (block.samples == written).all()
        assert not block.samples.flags.writeable and block.lent
        copy = block.copy()
        copy[:] = 0
        assert (block.samples == written).all(), "the copy is its own"
    assert list(stream) == []


def test_time_and_description_come_with_the_samples(shm: str) -> None:
    description = {"core:hw": "adc", "grebe:channels": [{"name": "A", "unit": "V", "scale": 0.5}]}
    before = np.datetime64("now", "ns") - np.timedelta64(2, "s")
    with grebe.publish(shm, rate=1e3, dtype="i16", description=description) as out:
        stream = grebe.open(shm, timeout=20)
        out.write(np.zeros(100, "i2"))
        block = next(stream)
        assert block.description["core:hw"] == "adc"
        assert block.description["grebe:channels"][0]["name"] == "A"
        assert block.time is not None and block.time_ns is not None
        assert before < block.time < before + np.timedelta64(60, "s")
        out.describe({"core:hw": "another"})
        out.write(np.zeros(100, "i2"))
        second = next(stream)
        assert (second.index, second.description["core:hw"]) == (100, "another")
        assert block.description["core:hw"] == "adc", "it stays as it was"


def test_gaps_stand_before_their_block_and_in_read(shm: str) -> None:
    with grebe.publish(shm, rate=1e3, channels=2, dtype="f32") as out:
        stream = grebe.open(shm, timeout=20)
        blocks = grebe.open(shm, timeout=20)
        out.write(ramp(out, 0, 100))
        out.drop(30)
        out.write(ramp(out, 130, 100))
        out.drop(5)
        out.write(ramp(out, 235, 100))
        found = [next(blocks) for _ in range(3)]
        assert [(block.index, len(block), int(block.gap)) for block in found] == [(0, 100, 0), (130, 100, 30), (235, 100, 5)]
        assert [bool(block.gap) for block in found] == [False, True, True]
        assert (found[1].gap.source, found[1].gap.transit, found[1].gap.reader) == (30, 0, 0)
        with pytest.raises(grebe.GapError, match="30 samples are missing before sample 130") as error:
            stream.read(150)
        assert error.value.samples.shape == (2, 100) and (error.value.missing, error.value.index) == (30, 130)
        assert (error.value.samples == ramp(out, 0, 100)).all()
        filled = stream.read(150, gaps="nan")
        assert (filled[:, :100] == ramp(out, 130, 100)).all(), "after the reported gap"
        assert np.isnan(filled[:, 100:105]).all()
        assert (filled[:, 105:] == ramp(out, 235, 45)).all()
    rest = stream.read(1_000)
    assert (rest == ramp(out, 280, 55)).all(), "what there is at the end"
    assert stream.read(10).shape == (2, 0)
    assert stream.stats()["missing_source"] == 35


def test_gaps_are_zero_or_left_out(shm: str) -> None:
    with grebe.publish(shm, rate=1e3, dtype="i16") as out:
        zero, skip, nan = (grebe.open(shm, timeout=20) for _ in range(3))
        for _ in range(2):
            out.write(np.full(10, 7, "i2"))
            out.drop(4)
        out.write(np.full(10, 7, "i2"))
        assert zero.read(24, gaps="zero").tolist() == [[7] * 10 + [0] * 4 + [7] * 10]
        assert skip.read(24, gaps="skip").tolist() == [[7] * 24]
        with pytest.raises(grebe.UsageError, match="these are i16"):
            nan.read(24, gaps="nan")
        with pytest.raises(grebe.UsageError, match="there are"):
            nan.read(24, gaps="none")  # type: ignore[arg-type]


def test_reading_goes_on_block_by_block(shm: str) -> None:
    with grebe.publish(shm, rate=1e3, dtype="i16") as out:
        stream = grebe.open(shm, timeout=20)
        out.write(ramp(out, 0, 100))
        assert stream.read(40).tolist() == [list(range(40))]
        rest = next(stream)
        assert (rest.index, rest.samples.tolist()) == (40, [list(range(40, 100))])
        out.write(ramp(out, 100, 20))
        with pytest.raises(grebe.Timeout):
            stream.read(50, timeout=0.05)
        taken = next(stream)
        assert (taken.index, len(taken)) == (100, 20), "what the timeout interrupted is not lost"
        out.write(ramp(out, 120, 20))
        with pytest.raises(grebe.Timeout):
            stream.read(30, timeout=0.05)
        out.write(ramp(out, 140, 20))
        longer = stream.read(35)
        assert longer.tolist() == [[n % 100 for n in range(120, 155)]]


def test_a_timeout_ends_the_wait_and_not_the_stream(shm: str) -> None:
    with grebe.publish(shm, rate=1e3, dtype="i16") as out:
        stream = grebe.open(shm, timeout=0.05)
        for n in range(3):
            with pytest.raises(grebe.Timeout, match="nothing came"):
                next(stream)
            with pytest.raises(TimeoutError):
                next(stream)
            out.write(np.full(10, n, "i2"))
            while stream.poll() is None:
                pass


def test_small_frames_are_handed_out_together() -> None:
    receiver = grebe.open("udp://127.0.0.1:0", timeout=20)
    with grebe.publish(f"udp://{receiver.address}", rate=1e6, channels=2, dtype="i16", block=100) as out:
        for first in range(0, 20_000, 2_000):
            out.write(ramp(out, first, 2_000))
    blocks = list(receiver)
    assert len(blocks) < 200, "of 100 samples each there are 200"
    end = 0
    for block in blocks:
        assert block.index - end == block.gap.samples
        assert (block.samples == ramp(out, block.index, len(block))).all()
        end = block.index + len(block)
    assert receiver.stats()["samples"] + receiver.stats()["missing_transit"] == end


def test_who_keeps_every_block_gets_copies_and_is_told(shm: str) -> None:
    with grebe.publish(f"{shm}?readers=2", rate=1e6, dtype="i16", block=16_384) as out:
        other = grebe.open(shm, timeout=20, policy="block", name="other")
        keeper = grebe.open(shm, timeout=20, policy="block")
        kept, seen = [], 0
        limit = keeper.stats()["leases_max"]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for n in range(4 * limit):
                out.write(np.full(16_384, n, "i2"))
                kept.append(next(keeper))
                seen += next(other).samples[0, 0] == n
        assert seen == len(kept), "the other reader misses nothing"
        assert [warning.category for warning in caught] == [grebe.LeaseWarning], "once"
        assert "copy=True" in str(caught[0].message)
        assert 0 < sum(block.lent for block in kept) <= limit
        assert keeper.stats()["copied_blocks"] == sum(not block.lent for block in kept)
        assert all((block.samples == n).all() for n, block in enumerate(kept)), "and each is what it was"
        kept.clear()
        gc.collect()
        out.write(np.zeros(16_384, "i2"))
        assert next(keeper).lent, "what was given back is lent again"


def test_arrays_outlive_block_stream_and_publisher(shm: str) -> None:
    out = grebe.publish(shm, rate=1e6, dtype="i16", block=16_384)
    stream = grebe.open(shm, timeout=20)
    out.write(np.full(16_384, 77, "i2"))
    array = next(stream).samples[:, 5:]
    stream.close()
    out.close()
    del stream, out
    gc.collect()
    assert (array == 77).all()
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 1


def test_copies_are_the_readers_own(shm: str) -> None:
    with grebe.publish(shm, rate=1e6, dtype="i16") as out:
        stream = grebe.open(shm, timeout=20, copy=True)
        out.write(np.full(1_000, 1, "i2"))
        block = next(stream)
        assert not block.lent
        block.samples[:] = 2
        assert (block.samples == 2).all()
        assert stream.stats()["leases"] == 0


def test_dlpack_and_array_protocol(shm: str) -> None:
    with grebe.publish(shm, rate=1e6, dtype="f32") as out:
        stream = grebe.open(shm, timeout=20)
        out.write(np.arange(100, dtype="f4"))
        block = next(stream)
        assert np.asarray(block) is block.samples
        assert np.array(block, "f8").dtype == "f8"
        assert block.__dlpack_device__() == (1, 0)
        if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
            shared = np.from_dlpack(block)
            assert np.shares_memory(shared, block.samples)
            assert not shared.flags.writeable


def test_a_recording_is_read_from_its_first_sample_to_its_last() -> None:
    stream = grebe.open(str(ECG))
    blocks = list(stream)
    assert blocks[0].index == 0 and blocks[0].rate == 360
    total = sum(map(len, blocks))
    whole = grebe.open(str(ECG)).read(10 * total)
    assert (whole == np.concatenate([block.samples for block in blocks], axis=1)).all()
    assert grebe.open(str(ECG), samples=100).read(200).shape[1] == 100


def test_async_iteration(shm: str) -> None:
    async def read(stream: grebe.Stream) -> list[int]:
        return [block.index async for block in stream]

    async def both() -> list[int]:
        stream = grebe.open(shm)
        reading = asyncio.create_task(read(stream))
        await asyncio.sleep(0.05)
        for _ in range(5):
            out.write(np.zeros(100, "i2"))
            await asyncio.sleep(0.01)
        await asyncio.to_thread(out.close)
        return await reading

    out = grebe.publish(shm, rate=1e3, dtype="i16")
    assert asyncio.run(both()) == [0, 100, 200, 300, 400]


def test_a_wait_that_is_given_up_loses_nothing(shm: str) -> None:
    async def main() -> None:
        stream = grebe.open(shm)
        for n in range(3):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(anext(stream), 0.02)
            out.write(np.full(10, n, "i2"))
            block = await anext(stream)
            assert block.samples.tolist() == [[n] * 10]

    with grebe.publish(shm, rate=1e3, dtype="i16") as out:
        asyncio.run(main())
