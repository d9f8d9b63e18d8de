"""The command `mnemon`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the program with the arguments of this process."""
    import signal

    from . import _native  # type: ignore[attr-defined]

    # The program ends at Ctrl-C by itself.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_native.main(["mnemon", *sys.argv[1:]]))  # pyright: ignore
