"""Command lines of `uv-variants` and `uvx-variants`, and their errors."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from pep_variants.errors import (
    EXIT_CODE,
    CatalogError,
    PluginFailed,
    fault_report,
    file_problem,
    redacted,
)

from ._command_line import Scope, is_frozen_sync, parse, scope_of
from ._errors import USER_ERRORS
from ._own_options import OWN_COMMANDS, meant_command, print_help, read_options
from ._uv_process import Check
from ._uv_program import become_uv, find_uv
from ._uv_version import print_version

FAILURE = 2
"""Exit code if uv was not started; uv's own for the same errors."""

UNUSABLE = (CatalogError, PluginFailed)
"""What ends with 1 in every client."""


def run_command(arguments: Sequence[str], *, is_uvx: bool) -> int:
    """Run a command; return its exit code, uv's where uv ran."""
    program = "uvx-variants" if is_uvx else "uv-variants"
    options = read_options(arguments, ("tool", "run") if is_uvx else ())
    rest = options.uv_arguments
    if rest[:1] in (("--version",), ("-V",)):
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
        from ._doctor.command import run_own_command  # 150 ms, as `run` below

        return run_own_command(options, os.environ)
    uv = find_uv(os.environ)
    invocation = parse(rest)
    scope = scope_of(invocation)
    if meant := meant_command("".join(invocation.command[:1])):
        print(f"uv-variants: did you mean '{meant}'?", file=sys.stderr)  # before uv's own error
    if invocation.command[:1] == ("cache",):
        from ._cache_command import run_cache_command

        return run_cache_command(uv, invocation, os.environ)
    if invocation.command == ("pip", "check") and not invocation.has("help", "h"):
        from ._pip_check import run_pip_check

        return run_pip_check(uv, invocation, os.environ)
    if scope is Scope.NOTHING:
        return become_uv([uv, *rest], os.environ)
    gc.disable()  # 35 ms: nearly all that is made before uv starts lives until the end
    check = Check()
    if is_frozen_sync(invocation, os.environ) and not options.variants:
        checking = invocation.rewritten({}, ("--check", "--offline"))
        check = Check.start([uv, *checking], os.environ)
    from ._run import run

    code = run(uv, invocation, scope, options, os.environ, check)
    gc.freeze()  # nor does the interpreter have to look at it when it ends
    return code


def report_error(error: Exception) -> int:
    """Print *error*; return the exit code."""
    if isinstance(error, USER_ERRORS):
        print(f"uv-variants: {redacted(str(error))}", file=sys.stderr)
        ends = 1 if isinstance(error, UNUSABLE) else FAILURE
        return getattr(error, "exit_code", ends)
    if isinstance(error, OSError):
        print(f"uv-variants: {file_problem(error)}", file=sys.stderr)
        return FAILURE
    print(fault_report("uv-variants", error), file=sys.stderr)
    return EXIT_CODE
