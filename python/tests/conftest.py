"""Shared fixtures: a unique stream name."""

from __future__ import annotations

import os
import signal
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
