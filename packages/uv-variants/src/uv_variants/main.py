"""The entry point of the `uv-variants` command."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NoReturn

from pep_variants.errors import VariantError, redacted

from .errors import UvVariantsError

if TYPE_CHECKING:
    from collections.abc import Sequence

FAILURE = 2
"""Exit code when uv could not be started as it was asked for; uv's own for the like."""

OWN_COMMANDS = ("serve", "config", "status", "stop")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command and exit, with uv's exit code where uv ran."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        code = _run(arguments)
    except (UvVariantsError, VariantError) as error:
        print(f"uv-variants: {redacted(str(error))}", file=sys.stderr)
        code = FAILURE
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def _run(arguments: Sequence[str]) -> int:
    from .wishes import read_wishes

    wishes = read_wishes(arguments, os.environ)
    if wishes.rest[:1] and wishes.rest[0] in OWN_COMMANDS:
        from .service import run_own

        return run_own(wishes, os.environ)
    if wishes.rest[:1] in (("--help",), ("-h",), ()):
        from .help import print_help

        print_help()
    from .commands import Scope, scope_of
    from .invocation import parse
    from .uv import become_uv, find_uv

    uv = find_uv(os.environ)
    invocation = parse(wishes.rest)
    scope = scope_of(invocation)
    if scope is Scope.NOTHING:
        return become_uv([uv, *wishes.rest], os.environ)
    from .session import run

    return run(uv, invocation, scope, wishes, os.environ)
