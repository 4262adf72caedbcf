"""The entry points of the commands `uv-variants` and `uvx-variants`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from ._uv_program import become_uv, find_uv, is_direct

__all__ = ["main", "main_uvx"]


def main(arguments: Sequence[str] | None = None, *, is_uvx: bool = False) -> NoReturn:
    """Run the command and exit, with uv's exit code where uv ran.

    Args:
        arguments: of the command, those of this process by default.
        is_uvx: the command is ``uvx-variants``, the twin of ``uvx``.

    Other codes: 2 for errors in the user's input or files, 1 where a catalogue or a place of its
    builds cannot be used, 130 after an interrupt, 70 for a bug in this program, with its traceback
    and how to report it.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    _leave_out(os.environ.get("PYTHONPATH", ""))
    try:
        code = _run(arguments, is_uvx=is_uvx)
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        code = _report(error)
    sys.exit(code)


def main_uvx(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``uvx-variants`` and exit as `main` does."""
    main(arguments, is_uvx=True)


def _leave_out(python_path: str) -> None:
    """Import nothing from the folders of *python_path*, which are for what uv runs, as uv does.

    An older release of what is needed here may be there: environment modules and ROS do that. The
    folder of this package itself stays.
    """
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    folders = {os.path.abspath(each) for each in python_path.split(os.pathsep) if each}  # noqa: PTH100
    sys.path[:] = [each for each in sys.path if each not in folders - {own}]


def _report(error: Exception) -> int:
    """Print *error*; return the exit code."""
    from ._commands import report_error

    return report_error(error)


def _run(arguments: Sequence[str], *, is_uvx: bool) -> int:
    if not is_uvx and is_direct(arguments):
        return become_uv([find_uv(os.environ), *arguments], os.environ)
    from ._commands import run_command  # 100 ms, which commands that need no index do without

    return run_command(arguments, is_uvx=is_uvx)
