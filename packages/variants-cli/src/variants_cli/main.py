"""The entry point of the `variants` command."""

from __future__ import annotations

import gc
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

TERMINATED = 128 + signal.SIGTERM


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command and exit.

    Exit codes are 0 for success, 1 for failure, 2 for wrong usage, 70 for a bug in this
    command, 130 and 143 after an interrupt and SIGTERM. An error in the user's input is one line
    on stderr; a bug also shows its traceback, for a report.
    """
    if arguments is None:  # called as the command, not from Python code
        import atexit

        # Most objects of a command, such as its modules, live until the end. Collecting garbage
        # among them takes longer than many commands, and runs once more at exit.
        gc.set_threshold(100_000, 50, 100)
        atexit.register(gc.freeze)
    # Raises SystemExit, so that partly written files are removed.
    signal.signal(signal.SIGTERM, _terminate)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    from .light.command_line import light_call  # after what was said about garbage

    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        call = light_call(words)
        if call is not None:
            call()
            sys.exit(0)
    except (Exception, KeyboardInterrupt) as error:
        from .group import end

        end(words[0], error)
    from .group import run

    run(arguments)


def _terminate(_number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(TERMINATED)
