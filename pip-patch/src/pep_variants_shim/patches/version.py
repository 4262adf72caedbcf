"""``pip --version`` with the version of the shim."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType

from .. import BUILT_IN
from ..guard import replace


def patch_version(module: ModuleType) -> None:
    """Add the version of the shim to that of pip."""
    if BUILT_IN:
        return  # the local version of this pip has it

    @replace(module, "get_pip_version", shows=True)
    def get_pip_version(original: Callable[[], str]) -> str:
        return f"{original()} with pep-variants-shim {own_version()}"


def own_version() -> str:
    """Return the version of the installed shim.

    pip calls it at every start: `importlib.metadata` would take as long as all the patches.
    """
    package = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 - faster
    for entry in os.listdir(os.path.dirname(package)):  # noqa: PTH120, PTH208
        if entry.startswith("pep_variants_shim-") and entry.endswith(".dist-info"):
            return entry[len("pep_variants_shim-") : -len(".dist-info")]
    return "(version unknown)"
