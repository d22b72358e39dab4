"""Shared fixtures: a unique stream name, and a time limit per test."""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Iterator
from itertools import count

import pytest

_NUMBERS = count()


def pytest_configure() -> None:
    """Restores Ctrl-C: background jobs of a shell ignore it, and so do their children."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def shm() -> str:
    """The name of a stream in shared memory."""
    return f"shm://test-{os.getpid()}-{next(_NUMBERS)}"


@pytest.fixture(autouse=True)
def _no_test_hangs() -> Iterator[None]:
    """Far longer than any test takes on a machine under load."""
    faulthandler.dump_traceback_later(180, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
