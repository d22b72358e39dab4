"""Writing a stream."""

from __future__ import annotations

import concurrent.futures
import pathlib
import time

import grebe
import numpy as np
import pytest


def test_a_block_is_filled_where_it_is_read(shm: str) -> None:
    with grebe.publish(shm, rate=1e6, channels=2, dtype="i16", block=4_096) as out:
        stream = grebe.open(shm, timeout=20)
        for n in range(10):
            with out.block(4_000) as array:
                assert array.shape == (2, 4_000) and array.flags.writeable
                array[:] = n
            assert not array.flags.writeable, "it was sent"
            block = next(stream)
            assert (block.samples == n).all() and block.index == 4_000 * n
        assert out.index == 40_000
        assert out.stats()["sender"]["copied_frames"] == 0


def test_an_exception_inside_a_block_sends_nothing(shm: str) -> None:
    with grebe.publish(shm, rate=1e6, dtype="i16", block=4_096) as out:
        stream = grebe.open(shm, timeout=20)
        for _ in range(300):  # more than the stream has chunks
            with pytest.raises(ZeroDivisionError), out.block(100) as array:
                array[:] = 1 // 0
        with out.block(100) as array:
            array[:] = 3
        block = next(stream)
        assert (block.index, block.samples[0, 0]) == (0, 3)


def test_a_block_of_any_length_can_be_filled() -> None:
    receiver = grebe.open("udp://127.0.0.1:0", timeout=20)
    with grebe.publish(f"udp://{receiver.address}", rate=1e6, dtype="f32", block=300) as out:
        with out.block(1_000) as array:
            array[0] = np.arange(1_000)
    assert (receiver.read(1_000) == np.arange(1_000)).all()


def test_long_arrays_are_sent_in_frames(shm: str) -> None:
    with grebe.publish(shm, rate=1e6, channels=3, dtype="i32") as out:
        stream = grebe.open(shm, timeout=20, policy="block")
        n = 4 * out.block_samples + 17
        written = np.arange(3 * n, dtype="i4").reshape(3, n)
        out.write(written)
        assert (stream.read(n) == written).all()
        out.write(written[:, ::2])
        assert (stream.read((n + 1) // 2) == written[:, ::2]).all(), "in steps"
        out.write(np.asfortranarray(written))
        assert (stream.read(n) == written).all(), "whatever the order in memory"
        out.write(written[:, :0])
    assert stream.read(1).shape == (3, 0)


def test_complex_integers_come_as_pairs_too(shm: str) -> None:
    with grebe.publish(shm, rate=1e6, dtype="ci16") as out:
        stream = grebe.open(shm, timeout=20)
        pairs = np.arange(20, dtype="i2").reshape(10, 2)
        out.write(pairs)
        out.write(pairs[None])
        for _ in range(2):
            block = next(stream)
            assert (block.samples["re"][0] == pairs[:, 0]).all() and (block.samples["im"][0] == pairs[:, 1]).all()


def test_what_does_not_fit_is_refused_with_what_to_do(shm: str) -> None:
    with grebe.publish(shm, rate=1e6, channels=2, dtype="i16") as out:
        with pytest.raises(grebe.UsageError, match=r"the samples are f64, and the stream is i16: array.astype\(\"int16\"\)"):
            out.write(np.zeros((2, 10)))
        with pytest.raises(grebe.UsageError, match=r"\[3, 10\], and 2 channels"):
            out.write(np.zeros((3, 10), "i2"))
        with pytest.raises(ValueError, match="2 channels x samples"):
            out.write(np.zeros(10, "i2"))
        assert out.index == 0
    with pytest.raises(grebe.Error, match="was closed"):
        out.write(np.zeros((2, 10), "i2"))


def test_numbers_that_cannot_be_are_refused_in_words(shm: str) -> None:
    for block in (2**62, 2**64 - 1, 2**61 + 1):
        with pytest.raises(grebe.UsageError, match="64 MiB"):
            grebe.publish(shm, rate=1e6, block=block)
    with pytest.raises(grebe.UsageError, match="block=0"):
        grebe.publish(shm, rate=1e6, block=0)
    with grebe.publish(shm, rate=1e6, dtype="i16") as out:
        out.write(np.zeros(10, "i2"))
        for n in (2**64 - 1, 2**64 - 10, 2**63):
            with pytest.raises(grebe.UsageError, match="after 10 samples"):
                out.drop(n)
        assert out.index == 10
        out.drop(2**62)
        with pytest.raises(grebe.UsageError, match="at most"):
            out.drop(2**62)
        out.write(np.zeros(10, "i2"))
        assert out.index == 2**62 + 20


def test_pace_sends_when_samples_are_due(shm: str) -> None:
    with grebe.publish(shm, rate=1e4, dtype="i16", pace=True) as out:
        began = time.monotonic()
        out.write(np.zeros(1_000, "i2"))
        out.write(np.zeros(1_000, "i2"))
        # No sooner; how much later, the machine decides.
        assert time.monotonic() - began >= 0.19


def test_a_recording_is_written_and_read(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "out.sigmf-meta")
    written = np.arange(100_000, dtype="i2")
    with grebe.publish(path, rate=48_000, dtype="i16", description={"core:author": "me"}) as out:
        out.write(written[:60_000])
        out.drop(500)
        out.write(written[60_000:])
    stream = grebe.open(path)
    assert (stream.read(60_000) == written[:60_000]).all()
    with pytest.raises(grebe.GapError) as error:
        stream.read(1)
    assert error.value.missing == 500
    assert (stream.read(40_000) == written[60_000:]).all()
    with pytest.raises(grebe.Error, match="exists already"):
        grebe.publish(path, rate=48_000, dtype="i16")
    with grebe.publish(path, rate=1, dtype="i16", overwrite=True) as out:
        out.write(written)


def test_readers_and_streams_are_waited_for(shm: str) -> None:
    with pytest.raises(grebe.Timeout):
        grebe.publish(f"{shm}?wait=1", rate=1, timeout=0.1)
    with pytest.raises(grebe.Timeout):
        grebe.open(f"{shm}-none", wait=True, timeout=0.1)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        reader = pool.submit(grebe.open, f"{shm}-late", wait=True, timeout=20)
        with grebe.publish(f"{shm}-late?wait=1", rate=1, dtype="u8", timeout=20) as out:
            out.write(np.arange(10, dtype="u1"))
            assert reader.result().read(10).tolist() == [list(range(10))]
