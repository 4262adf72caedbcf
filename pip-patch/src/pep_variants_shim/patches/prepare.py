"""Preparation of files: variant markers are reduced, variant metadata is checked."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from pip._internal.exceptions import InstallationError

from pep_variants.model.label import split_label

from ..errors import VariantsOff
from ..guard import replace, switch
from ..preparation import preparing
from ..session import session_of


def patch_prepare(module: ModuleType) -> None:
    """Set which file is prepared, and check wheels against the metadata of the index."""

    @replace(module.RequirementPreparer, "_fetch_metadata_only")
    def fetch_metadata(original: Callable[..., Any], self: Any, req: Any) -> Any:
        with preparing(req.link):
            return original(self, req)

    @replace(module.RequirementPreparer, "_prepare_linked_requirement", always=True, checks=True)
    def prepare_linked(
        original: Callable[..., Any],
        self: Any,
        req: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if not (switch.on or switch.used):
            return original(self, req, *args, **kwargs)
        link = req.link  # pip may replace it by the one of a cached or downloaded file
        with preparing(link):
            dist = original(self, req, *args, **kwargs)
        label = split_label(link.filename)[1]
        if label is not None:
            session = session_of(self.finder)
            if not switch.on:
                raise VariantsOff(switch.reason)
            if session is None:
                raise InstallationError(
                    f"{link.filename} is a variant wheel, and variants are switched off: "
                    "use a non-variant wheel, or run pip without --no-variants"
                )
            session.get_ordering().check(link, label, dist.read_text)
        return dist
