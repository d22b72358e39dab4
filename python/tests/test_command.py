"""The command in the wheel."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys

import grebe
import pytest

ECG = pathlib.Path(__file__).parents[2] / "examples/data/ecg.sigmf-meta"
GREBE = [sys.executable, "-m", "grebe"]


def run(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*GREBE, *words], capture_output=True, text=True, timeout=120, **options)  # type: ignore[call-overload, no-any-return]


def test_it_is_the_same_command() -> None:
    assert run("-V").stdout == f"grebe {grebe.__version__}\n"
    usage = run("sg", "--rate", "fast")
    assert usage.returncode == 2 and "--rate" in usage.stderr
    failed = run("play", "no-such.sigmf-meta")
    assert failed.returncode == 1 and failed.stderr.startswith("grebe: ") and "Traceback" not in failed.stderr


def test_doctor_runs() -> None:
    report = json.loads(run("doctor", "--json").stdout)
    assert report


def test_what_it_writes_python_reads(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "ecg.wav"
    assert run("convert", str(ECG), str(path)).returncode == 0
    assert (grebe.open(str(path)).read(1 << 20) == grebe.open(str(ECG)).read(1 << 20)).all()


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_ends_it_well(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "cut.sigmf-meta"
    process = subprocess.Popen([*GREBE, "record", "synth:?channels=1&rate=48k", str(path)], stderr=subprocess.PIPE, text=True)
    while not path.exists():
        os.stat(tmp_path)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in said, said
    assert grebe.open(str(path)).read(1 << 20, gaps="skip").shape[0] == 1, "what came until then"


def test_it_starts_itself_again(tmp_path: pathlib.Path) -> None:
    picture = tmp_path / "seen.png"
    seen = run("view", "--spawn", "sg --channels 1 --rate 48k", "--png", str(picture), "--after", "100ms")
    assert seen.returncode == 0, seen.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_stream_of_another_process_is_found_by_its_name() -> None:
    """As far as this machine: no scouting, no router."""
    name = f"test-{os.getpid()}/python/adc"
    words = ["sg", "--name", name, "--to", f"shm://lab-python-{os.getpid()}", "--channels", "2", "--rate", "1M"]
    with subprocess.Popen([*GREBE, *words], stderr=subprocess.PIPE, text=True) as producer:
        assert producer.stderr is not None
        try:
            while "announced as" not in (line := producer.stderr.readline()):
                assert line, "it ended"
            assert grebe.open(name, timeout=60).read(100_000, gaps="skip").shape == (2, 100_000)
        finally:
            producer.terminate()
            producer.communicate(timeout=60)
