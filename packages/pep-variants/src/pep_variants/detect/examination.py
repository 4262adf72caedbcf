"""Detection for those who want to know how it came to its answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..model.platform import Support
from ..providers.attempts import Attempt, recorded
from ..providers.base import DriverProvider
from ..providers.registry import BUILTIN_NAMESPACES
from .answers import ask_known


class Examined(NamedTuple):
    """What one built-in provider answers, and what it tried.

    Attributes:
        support: its answer.
        attempts: libraries, tools and files, in order.
        warnings: what users are warned of.
    """

    support: Support
    attempts: tuple[Attempt, ...]
    warnings: tuple[str, ...]


def examine_host(
    environ: Mapping[str, str] | None = None, root: Path = Path("/")
) -> dict[str, Examined]:
    """Ask every built-in provider about this machine; return the answers by namespace.

    Args:
        environ: environment variables, those of the process by default.
        root: of the file system in which drivers are looked for.
    """
    examined = {}
    for namespace, known in sorted(BUILTIN_NAMESPACES.items()):
        factory: Any = known.factory
        looks_at_files = isinstance(factory, type) and issubclass(factory, DriverProvider)
        with recorded() as trail:
            support = ask_known(known, factory(environ, root) if looks_at_files else factory())
        examined[namespace] = Examined(support, tuple(trail.attempts), tuple(trail.warnings))
    return examined
