"""``pip --version`` names the shim."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType

from .. import BUILT_IN
from ..hook import replace


def patch_version(module: ModuleType) -> None:
    """Patch ``utils.misc``."""
    if BUILT_IN:
        return  # pip's own version says it

    @replace(module, "get_pip_version")
    def get_pip_version(original: Callable[[], str]) -> str:
        return f"{original()} with pep-variants-shim {own_version()}"


def own_version() -> str:
    """Return the version of the installed shim.

    pip asks at every start: `importlib.metadata` would cost as much as all the patches.
    """
    package = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 - as cheap as it gets
    for entry in os.listdir(os.path.dirname(package)):  # noqa: PTH120, PTH208
        if entry.startswith("pep_variants_shim-") and entry.endswith(".dist-info"):
            return entry[len("pep_variants_shim-") : -len(".dist-info")]
    return "(version unknown)"
