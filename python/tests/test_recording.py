"""Any part of a recording, its gaps, its labels."""

from __future__ import annotations

import json
import pathlib

import grebe
import numpy as np
import pytest

ECG = pathlib.Path(__file__).parents[2] / "examples/data/ecg.sigmf-meta"


@pytest.fixture
def gappy(tmp_path: pathlib.Path) -> pathlib.Path:
    """1,000 samples, 500 that are missing, 2,000 samples, at 1 kHz: each is its place in the file."""
    path = tmp_path / "gappy.sigmf-meta"
    with grebe.publish(str(path), rate=1e3, dtype="i16", description={"core:hw": "adc"}) as out:
        out.write(np.arange(1_000, dtype="i2"))
        out.drop(500)
        out.write(np.arange(1_000, 3_000, dtype="i2"))
    return path


def test_slices_and_stretches_of_time(gappy: pathlib.Path) -> None:
    rec = grebe.Recording(gappy)
    assert (rec.shape, len(rec), rec.rate, rec.format, rec.dtype) == ((1, 3_000), 3_000, 1e3, "i16", np.dtype("i2"))
    assert rec.description()["core:hw"] == "adc"
    whole = np.arange(3_000)
    for places in [slice(None), slice(10, 20), slice(-5, None), slice(900, 1_100, 7), slice(2_999, 9_999), slice(5, 5)]:
        assert (rec[places][0] == whole[places]).all()
    assert rec.seconds(0.9, 1.6)[0].tolist() == list(range(900, 1_100)), "the gap counts"
    assert rec.seconds(1.1, 1.2).shape == (1, 0), "there is nothing in the gap"
    assert rec.seconds(3.4)[0].tolist() == list(range(2_900, 3_000))
    with pytest.raises(grebe.UsageError, match="3000 samples"):
        rec.read(2_990, 3_001)
    with pytest.raises(grebe.UsageError, match="forwards"):
        rec[::-1]


def test_gaps_and_times(gappy: pathlib.Path) -> None:
    rec = grebe.Recording(str(gappy))
    assert rec.gaps == [grebe.Missing(position=1_000, index=1_000, samples=500)]
    first, behind = rec.time(), rec.time(1_000)
    assert first is not None and behind is not None
    assert rec.time(10) == first + np.timedelta64(10, "ms")


def test_labels_are_written_and_read(gappy: pathlib.Path) -> None:
    rec = grebe.Recording(gappy)
    assert rec.annotations == []
    rec.annotate(2_000, 10, "later")
    rec.annotate(5, label="point", comment="here", fields={"core:freq_lower_edge": 1.5})
    before = json.loads(gappy.read_text())
    again = grebe.Recording(gappy)
    assert [(it.start, it.length, it.label) for it in again.annotations] == [(5, 0, "point"), (2_000, 10, "later")]
    assert again.annotations[0].comment == "here" and again.annotations[0].fields["core:freq_lower_edge"] == 1.5
    with pytest.raises(grebe.UsageError, match="3000 samples"):
        rec.annotate(2_999, 2, "behind")
    assert json.loads(gappy.read_text()) == before
    assert (again[:] == rec[:]).all() and sorted(path.suffix for path in gappy.parent.iterdir()) == [".sigmf-data", ".sigmf-meta"]


def test_the_envelope_leaves_no_sample_out() -> None:
    rec = grebe.Recording(ECG)
    whole = rec[:]
    envelope = rec.envelope(columns=100)
    assert envelope.shape == (rec.channels, 100, 2) and envelope.dtype == rec.dtype
    assert (envelope[..., 0].min(axis=1) == whole.min(axis=1)).all()
    assert (envelope[..., 1].max(axis=1) == whole.max(axis=1)).all()
    second = rec.envelope(1, 2, columns=36)
    assert (second[0, 0] == [whole[0, 360:370].min(), whole[0, 360:370].max()]).all()
    assert rec.envelope(0, 10 / rec.rate, columns=1_000).shape == (rec.channels, 10, 2), "no more columns than samples"


def test_the_envelope_of_complex_samples_has_their_parts(tmp_path: pathlib.Path) -> None:
    for name in ["ci16", "cf32"]:
        path = tmp_path / f"{name}.sigmf-meta"
        with grebe.publish(str(path), rate=1e3, dtype=name) as out:
            samples = np.zeros((1, 100), out.dtype)
            if name == "cf32":
                samples[0] = np.arange(100) - 1j
            else:
                samples["re"], samples["im"] = np.arange(100), -1
            out.write(samples)
        assert grebe.Recording(path).envelope(columns=2).tolist() == [[[[0, 49], [50, 99]], [[-1, -1], [-1, -1]]]]


def test_what_cannot_be_opened_says_why(tmp_path: pathlib.Path) -> None:
    with pytest.raises(grebe.Error, match="no-such.sigmf-meta"):
        grebe.Recording(tmp_path / "no-such.sigmf-meta")
    (tmp_path / "x.mp3").write_bytes(b"sound")
    with pytest.raises(grebe.Error, match="make a WAV of it: ffmpeg -i"):
        grebe.Recording(tmp_path / "x.mp3")
    wav = grebe.Recording(ECG.with_suffix(".wav"))
    with pytest.raises(grebe.Error, match="cannot be labelled"):
        wav.annotate(0, label="no")


def test_bursts_are_those_of_the_array(tmp_path: pathlib.Path) -> None:
    random = np.random.default_rng(6)
    x = ((random.standard_normal(300_000) + 1j * random.standard_normal(300_000)) * 1e-3).astype(np.complex64)
    for start, frequency in ((100_000, 0.1), (200_000, -0.2)):
        x[start : start + 30_000] += (0.1 * np.exp(2j * np.pi * frequency * np.arange(30_000))).astype(np.complex64)
    path = tmp_path / "x.sigmf-meta"
    with grebe.publish(str(path), rate=1e6, dtype="cf32") as out:
        out.write(x)
    rec = grebe.Recording(path)
    events = rec.find("burst", above=6.0, annotate=True)
    assert [it.burst for it in events] == grebe.find(x, "burst", rate=1e6, above=6.0)[0] and len(events) == 2
    assert all(it.burst is not None and (it.start, it.length) == (it.burst.position, it.burst.samples) for it in events)
    assert rec.find("burst", above=6.0, band=(50e3, 150e3), transform=512, false_alarms=1e-9)[0].start == pytest.approx(100_000, abs=512)
    assert len(grebe.Recording(path).annotations) == 2
    with pytest.raises(grebe.UsageError, match="--above"):
        rec.find("burst", level=1.0)


def test_events_are_those_of_the_command_and_of_the_array(gappy: pathlib.Path) -> None:
    rec = grebe.Recording(ECG)
    scale = rec.description()["grebe:channels"][0]["scale"]
    edges = rec.find("edge", level=1.0, hysteresis=0.2)
    expected = grebe.find(rec[:] * scale, "edge", level=1.0, hysteresis=0.2)[0]
    assert [it.start for it in edges] == np.ceil(expected).astype(int).tolist() and len(edges) > 100
    assert edges[0].channel == "1" and edges[0].length == 0 and edges[0].seconds == pytest.approx(edges[0].index / rec.rate)
    part = rec.find("edge", level=1.0, hysteresis=0.2, t0=10, t1=20, channel=1)
    assert part == [it for it in edges if 3_600 <= it.start < 7_200]
    assert rec.find("edge", level=1.0, hysteresis=0.2, count=3) == edges[:3]
    lasting = rec.find("level", level=-0.5, slope="falling", longer=0.05)
    assert lasting and all(it.length >= 18 for it in lasting)
    assert rec.find("edge", level=1.0, holdoff=30.0)[1].start - edges[0].start >= 30 * 360
    gaps = grebe.Recording(gappy).find("gap")
    assert [(it.kind, it.channel, it.start, it.length) for it in gaps] == [("gap", "", 1_000, 500)]
    found = grebe.Recording(gappy).find("edge", level=2_000, annotate=True, label="here")
    assert [(it.start, it.label) for it in grebe.Recording(gappy).annotations] == [(2_000, "here")] and found[0].start == 2_000
    with pytest.raises(grebe.UsageError, match="needs --level"):
        rec.find("edge")
    with pytest.raises(grebe.UsageError, match="'bump'.*possible values.*silence"):
        rec.find("bump", level=1.0)  # type: ignore[arg-type]
    with pytest.raises(grebe.UsageError, match="channel"):
        rec.find("edge", level=1.0, channel=9)
