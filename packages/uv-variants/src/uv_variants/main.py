"""The entry points of the commands `uv-variants` and `uvx-variants`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main", "main_uvx"]

FAILURE = 2
"""Exit code if uv was not started; uv's own for the same errors."""


def main(arguments: Sequence[str] | None = None, *, is_uvx: bool = False) -> NoReturn:
    """Run the command and exit, with uv's exit code where uv ran.

    Args:
        arguments: of the command, those of this process by default.
        is_uvx: the command is ``uvx-variants``, the twin of ``uvx``.

    Other codes: 2 for errors in the user's input or files, 130 after an interrupt, 70 for a bug in
    this program, with its traceback and how to report it.
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
    # Imported here: commands that become uv at once need none of it.
    from pep_variants.errors import redacted

    from ._errors import USER_ERRORS

    if isinstance(error, USER_ERRORS):
        print(f"uv-variants: {redacted(str(error))}", file=sys.stderr)
        return getattr(error, "exit_code", FAILURE)
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename is not None else ""
        print(f"uv-variants: {redacted(place)}{error.strerror or error}", file=sys.stderr)
        return FAILURE
    from pep_variants.errors import EXIT_CODE, fault_report

    print(fault_report("uv-variants", error), file=sys.stderr)
    return EXIT_CODE


def _run(arguments: Sequence[str], *, is_uvx: bool) -> int:
    if not is_uvx:
        from ._uv_program import is_direct

        if is_direct(arguments):
            from ._uv_program import become_uv, find_uv

            return become_uv([find_uv(os.environ), *arguments], os.environ)
    from ._own_options import OWN_COMMANDS, print_help, read_options

    program = "uvx-variants" if is_uvx else "uv-variants"
    options = read_options(arguments, ("tool", "run") if is_uvx else ())
    rest = options.uv_arguments
    if rest[:1] in (("--version",), ("-V",)):
        from ._uv_program import print_version

        return print_version(program, os.environ)
    asks_help = rest[:1] in (("--help",), ("-h",))
    if asks_help or not (rest or is_uvx):
        print_help(program)
    if is_uvx:
        # What uv prints under this name has the name of uvx in it.
        of_uvx = not rest or rest[0] in ("--help", "-h", "--generate-shell-completion")
        rest = ("tool", "uvx" if of_uvx else "run", *rest)
        options = options._replace(uv_arguments=rest)
    elif rest and rest[0] in OWN_COMMANDS:
        from ._doctor.command import run_own_command

        return run_own_command(options, os.environ)
    from ._command_line import Scope, is_frozen_sync, parse, scope_of
    from ._uv_program import become_uv, find_uv

    uv = find_uv(os.environ)
    invocation = parse(rest)
    scope = scope_of(invocation)
    if invocation.command[:1] == ("cache",):
        from ._cache_command import run_cache_command

        return run_cache_command(uv, invocation, os.environ)
    if scope is Scope.NOTHING:
        return become_uv([uv, *rest], os.environ)
    import gc

    gc.disable()  # nearly all that is made before uv starts lives until the end
    from ._uv_process import Check

    check = Check()
    if is_frozen_sync(invocation, os.environ) and not options.variants:
        checking = invocation.rewritten({}, ("--check", "--offline"))
        check = Check.start([uv, *checking], os.environ)
    from ._run import run

    code = run(uv, invocation, scope, options, os.environ, check)
    gc.freeze()  # nor does the interpreter have to look at it when it ends
    return code
