"""Pictures in a notebook, static and live."""

from __future__ import annotations

import base64
import contextlib
import json
import pathlib
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from typing import Any

import grebe
import numpy as np
import numpy.typing as npt
import pytest

ECG = pathlib.Path(__file__).parents[2] / "examples/data/ecg.sigmf-meta"


def pixels(png: bytes) -> npt.NDArray[np.uint8]:
    """Height x width x 3 or 4 of a PNG with 8 bits and no interlace."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    at, data, width, height, channels = 8, b"", 0, 0, 0
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kind, body = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
            assert depth == 8 and colour in (2, 6)
            channels = 3 if colour == 2 else 4
        data += body if kind == b"IDAT" else b""
        at += 12 + length
    raw = np.frombuffer(zlib.decompress(data), np.uint8).reshape(height, 1 + width * channels)
    out = np.zeros((height, width * channels), np.uint8)
    for row in range(height):
        line = raw[row, 1:].astype(np.int64)
        above = out[row - 1].astype(np.int64) if row else np.zeros_like(line)
        if raw[row, 0] == 2:
            line = line + above
        elif raw[row, 0] in (1, 3, 4):
            for x in range(len(line)):
                left = line[x - channels] if x >= channels else 0
                corner = above[x - channels] if x >= channels else 0
                if raw[row, 0] == 1:
                    guess = left
                elif raw[row, 0] == 3:
                    guess = (left + above[x]) // 2
                else:
                    p = left + above[x] - corner
                    guess = min((left, above[x], corner), key=lambda it: abs(p - it))
                line[x] = (line[x] + guess) % 256
        out[row] = line % 256
    return out.reshape(height, width, channels)


def has_trace(image: npt.NDArray[np.uint8], colour: tuple[int, int, int]) -> int:
    """How many columns have this colour."""
    near = (np.abs(image[..., :3].astype(int) - colour) < 8).all(axis=2)
    return int(near.any(axis=0).sum())


YELLOW, BLUE, GAP = (245, 214, 66), (86, 190, 245), (255, 84, 84)


def test_blocks_streams_and_spectra_have_pictures() -> None:
    with grebe.open("synth:sine?channels=2&rate=1M&samples=10k", policy="block") as stream:
        before = stream._repr_png_()
        assert before is not None and has_trace(pixels(before), YELLOW) > 500
        blocks = list(stream)
        assert sum(len(block) for block in blocks) == 10_000 and blocks[0].index == 0, "the picture took nothing"
        assert stream._repr_png_() is None, "nothing comes any more"
    image = pixels(blocks[0]._repr_png_())
    assert image.shape[1] == 960 and has_trace(image, YELLOW) > 500 and has_trace(image, BLUE) > 500
    complex_block = next(grebe.open("synth:?channels=1&rate=1M&format=ci16"))
    assert has_trace(pixels(complex_block._repr_png_()), BLUE) > 100, "Q has a lane of its own"
    found = grebe.spectrum(np.random.default_rng(1).normal(size=(2, 8192)), 1e6)
    assert has_trace(pixels(found._repr_png_()), BLUE) > 500


def test_a_spectrogram_is_a_waterfall() -> None:
    at = np.arange(1 << 16) / 1e6
    chirp = np.sin(2 * np.pi * (50e3 + 0.5 * 300e3 / at[-1] * at) * at)
    image = pixels(grebe.spectrogram(chirp, 1e6, size=512)._repr_png_())[..., :3].astype(int).sum(axis=2)
    bright = image[40:-30, 90:-20].argmax(axis=0)
    assert (np.diff(bright[::40]) < 0).all() and bright[0] > 200 > 120 > bright[-1], "it climbs"
    holed = np.where(np.arange(len(chirp)) == 999, np.nan, chirp)
    assert grebe.spectrogram(holed, 1e6, size=512)._repr_png_()


def test_recordings_have_pictures_with_their_gaps(tmp_path: pathlib.Path) -> None:
    image = pixels(grebe.Recording(ECG)._repr_png_())
    assert has_trace(image, YELLOW) > 800 and has_trace(image, GAP) == 0
    path = tmp_path / "gap.sigmf-meta"
    with grebe.publish(str(path), rate=1e3, dtype="f32") as out:
        out.write(np.sin(np.arange(1_000) / 10).astype("f4"))
        out.drop(1_000)
        out.write(np.sin(np.arange(2_000) / 10).astype("f4"))
    image = pixels(grebe.Recording(path)._repr_png_())
    assert 150 < has_trace(image, GAP) < 300, "a quarter of the plot"
    assert has_trace(image, YELLOW) > 500


def test_a_scope_draws_a_stream() -> None:
    with grebe.Scope("synth:sine?channels=1&rate=100k&frequency=1k", span=0.005, size=(640, 320)) as scope:
        image = pixels(scope._repr_png_())
        assert image.shape[:2] == (320, 640) and has_trace(image, YELLOW) > 300
        assert not scope.is_ended and scope.uri.startswith("synth:")
        with pytest.raises(grebe.UsageError):
            scope.png(1, 1)
    light = grebe.Scope("synth:sine?channels=1&rate=100k&samples=10k", theme="light", spectrum=True, level=0.0)
    assert pixels(light.png())[0, 0, 0] > 200
    light.close()
    assert light.is_ended and len(light.png()) > 1_000, "what was seen can still be drawn"
    with pytest.raises(grebe.Error, match="not in a notebook"):
        light.show(1)


def test_a_scope_of_nothing_says_so(shm: str) -> None:
    with pytest.raises(grebe.Timeout):
        grebe.Scope(shm, timeout=0.2)
    with grebe.Scope("udp://127.0.0.1:0") as scope, pytest.raises(grebe.Timeout, match="nothing came"):
        scope.png(timeout=0.2)
    for wrong in [dict(span=-1.0), dict(slope="up"), dict(channel=0)]:
        with pytest.raises(grebe.UsageError):
            grebe.Scope("synth:", **wrong)  # type: ignore[arg-type]


def test_a_notebook_shows_a_live_scope(tmp_path: pathlib.Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = [
        "import grebe, warnings",
        "scope = grebe.Scope('synth:sine,square?channels=2&rate=100k&frequency=200', span=0.02, level=0.0)\nscope.show(1)",
        "scope",
        "scope.stop()",
        f"grebe.Recording({str(ECG)!r})",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    nbformat.write(notebook, tmp_path / "done.ipynb")
    for number in [1, 2, 4]:
        pictures = [output.data["image/png"] for output in notebook.cells[number].outputs if "data" in output]
        assert len(pictures) == 1, notebook.cells[number].outputs
        image = pixels(base64.b64decode(pictures[0]))
        assert has_trace(image, YELLOW) > 500


@contextlib.contextmanager
def served(*arguments: str) -> Iterator[Any]:
    """``grebe serve`` and its output."""
    command = [sys.executable, "-m", "grebe", "serve", "--json", *arguments]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert child.stdout is not None
        yield json.loads(child.stdout.readline())
    finally:
        child.kill()
        child.communicate()


def test_what_is_served_elsewhere_is_drawn_here_without_its_samples() -> None:
    one, two = "synth:sine?channels=1&rate=1M&frequency=1k", "synth:square?channels=2&rate=1M&frequency=1k"
    with served(one, two) as printed:
        first, second = (source["link"] for source in printed["sources"])
        token = first.split("token=")[1]
        with grebe.Scope(second, span=5e-3, spectrum=True) as scope:
            image = pixels(scope.png(640, 360))
            assert image.shape[:2] == (360, 640)
            assert has_trace(image, YELLOW) > 300 and has_trace(image, BLUE) > 300
            assert scope.uri.endswith("?source=2") and token not in scope.uri and not scope.is_ended
            frame = scope.frame(900, 400)
            assert frame.page == printed["sources"][1]["page"] + "&span=0.005&show.spectrum=true&light=false"
            assert frame._repr_html_().startswith('<iframe src="http://127.0.0.1:') and "&amp;span=" in frame._repr_html_()
            assert token not in repr(frame)
        with grebe.Scope(first) as scope:
            image = pixels(scope.png(640, 360))
            assert has_trace(image, YELLOW) > 300 and has_trace(image, BLUE) < 20
        with pytest.raises(grebe.Error, match="does not let this viewer in"):
            grebe.Scope(first.replace(token, "wrong"))
    with pytest.raises(grebe.GoneError, match="no connection"):
        grebe.Scope(first)
    with pytest.raises(grebe.UsageError, match="port is missing"):
        grebe.Scope("serve://mast")
    with grebe.Scope("synth:?rate=1k") as scope, pytest.raises(grebe.UsageError, match="grebe serve"):
        scope.frame()
