"""The command ``grebe``, run by Python: the same code as the program of this name."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Runs the command with the arguments of this process; its exit status."""
    from ._grebe import run_command

    # The command handles the signals that it needs; any other ends it, as usual.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run_command(["grebe", *sys.argv[1:]], [sys.executable, "-m", "grebe"])


if __name__ == "__main__":
    sys.exit(main())
