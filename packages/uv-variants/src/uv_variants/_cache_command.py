"""``uv-variants cache``: uv's commands for its caches, of which there are two here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ._command_line import Scope
from ._environments import cache_directory, variants_caches
from ._indexes import used_indexes
from ._named_projects import CommandPlace
from ._uv_process import end_as, run_uv
from ._uv_program import become_uv

if TYPE_CHECKING:
    from ._command_line import Invocation

_BOTH = (("cache", "prune"), ("cache", "clean"))


def run_cache_command(uv: str, invocation: Invocation, environ: Mapping[str, str]) -> int:
    """Run ``prune`` and ``clean`` on uv's cache and on that of uv-variants; else uv itself.

    Returns:
        uv's exit code, the first that is not 0.
    """
    place = CommandPlace.of(invocation, Path(), environ)
    if invocation.command not in _BOTH or invocation.has("help", "h"):
        return become_uv([uv, *invocation.arguments], environ)
    configured = used_indexes(invocation, Scope.NOTHING, place).configuration.scalars
    plain = cache_directory(
        environ, invocation.last("cache-dir"), configured.get("cache-dir"), place.cwd
    ).absolute()
    for folder in sorted(path for path in variants_caches(plain).glob("*") if path.is_dir()):
        rewritten = {
            item.start: str(folder) for item in invocation.given if item.name == "cache-dir"
        }
        arguments = invocation.rewritten(rewritten)
        code = run_uv([uv, *arguments], {**environ, "UV_CACHE_DIR": str(folder)})
        if code != 0:
            return end_as(code)
    return become_uv([uv, *invocation.arguments], environ)
