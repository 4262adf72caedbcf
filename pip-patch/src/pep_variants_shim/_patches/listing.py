"""Commands that list versions, ``pip list`` and ``pip index``: those of variant wheels count."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from pep_variants.options import OPTIONS

from .._guard import Original, replace
from .._options import VariantOptions, add_option, dest


def patch_listing(module: ModuleType) -> None:
    """Have commands that list versions include those with only variant wheels."""
    command = getattr(module, "IndexCommand", None) or module.ListCommand

    @replace(command, "_build_package_finder")
    def build_package_finder(
        original: Original, self: Any, options: Any, *args: Any, **kwargs: Any
    ) -> Any:
        from .._session import Session

        finder = original(self, options, *args, **kwargs)
        isolated = bool(getattr(options, "isolated_mode", False))
        values = {"no-variants": bool(getattr(options, dest(OPTIONS[0]), False))}
        Session(VariantOptions(values, isolated=isolated), finder, lists=True)
        return finder

    # pip asks for its options in every run, and for a finder in few.
    @replace(command, "add_options")
    def add_options(original: Original, self: Any) -> None:
        original(self)
        add_option(self.cmd_opts, OPTIONS[0])
