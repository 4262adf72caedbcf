"""`packaging`, of which pip has a copy as well: its own is used where it is the same release.

pip has imported most of it by then. The bundled copy costs 24 million instructions (5 ms) once
more, and versions of one copy are not those of the other. Any other release is left alone: what
the engine does with untrusted input is tested with the bundled one.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

NAME = "packaging"
_OURS = f"{__package__}._vendor."
_THEIRS = "pip._vendor."


def shared_spec(fullname: str) -> ModuleSpec | None:
    """Return how a module of the bundled copy is imported; None if it is the bundled one.

    Args:
        fullname: of the module, in the bundled copy.
    """
    try:
        bundled = importlib.import_module(_OURS.rstrip(".")).RELEASES[NAME]
        same: bool = importlib.import_module(_THEIRS + NAME).__version__ == bundled
    except (ImportError, AttributeError, KeyError):
        same = False
    if not same:
        return None
    return ModuleSpec(fullname, _PipsOwn())  # type: ignore[arg-type] # has all methods used


class _PipsOwn:
    """Loads pip's module in place of the bundled one."""

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python make an empty one, which is dropped."""

    def exec_module(self, module: ModuleType) -> None:
        """Replace *module*; Python goes on with what it finds in its place."""
        theirs = _THEIRS + module.__name__.removeprefix(_OURS)
        sys.modules[module.__name__] = importlib.import_module(theirs)
