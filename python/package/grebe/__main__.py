"""The command ``grebe``, run by Python: the same code as the program of this name."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Runs the command with the arguments of this process; its exit status."""
    from ._grebe import run_command

    # The command catches what it wants to; what it does not, ends it, as it ends any other.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run_command(["grebe", *sys.argv[1:]], [sys.executable, "-m", "grebe"])


if __name__ == "__main__":
    sys.exit(main())
