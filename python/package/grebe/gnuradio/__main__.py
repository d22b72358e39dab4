"""Prints the folder in which GNU Radio Companion finds the blocks: ``GRC_BLOCKS_PATH=$(python3 -m grebe.gnuradio)``."""

from __future__ import annotations

from pathlib import Path

print(Path(__file__).parent / "grc")
