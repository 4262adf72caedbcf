"""``uv-variants pip check``: uv's, and what installed variants are built against.

uv compares requirements only. As pip with the shim does, the command ends with 1 where a variant
does not go with the installed release of another project (``abi_dependency``).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pep_variants import selection as wheel_selection

from ._command_line import Scope
from ._environments import Search, cache_directory, installed
from ._errors import warn
from ._indexes import used_indexes
from ._named_projects import CommandPlace
from ._uv_process import end_as, run_uv

if TYPE_CHECKING:
    from ._command_line import Invocation


def run_pip_check(uv: str, invocation: Invocation, environ: Mapping[str, str]) -> int:
    """Run uv, then print where a variant does not go with what it is built against.

    Returns:
        uv's exit code; 1 if that is 0 and there is such a variant.
    """
    place = CommandPlace.of(invocation, Path(), environ)
    code = run_uv([uv, *invocation.arguments], environ)
    if code not in (0, 1):
        return end_as(code)
    settings = used_indexes(invocation, Scope.NOTHING, place).configuration.scalars
    given = invocation.last("cache-dir"), settings.get("cache-dir")
    cache = cache_directory(environ, *given, place.cwd)
    found = installed(Search(uv, invocation, place, settings, cache).environments())
    for mismatch in wheel_selection.abi_mismatches(found):
        code = 1
        if not invocation.has("quiet", "q"):
            warn(str(mismatch))
    return code
