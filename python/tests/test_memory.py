"""Arrays in a stream's memory, each test in its own process, because a memory fault may end it."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import memory
import pytest


@pytest.mark.parametrize("scenario", [scenario.__name__ for scenario in memory.ALL])
def test_arrays_stay_as_they_are(scenario: str) -> None:
    program = str(pathlib.Path(memory.__file__))
    done = subprocess.run([sys.executable, "-X", "faulthandler", program, scenario], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
