"""Preparation: pip gets hold of a file; its markers are reduced, its promises are checked."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from pip._internal.exceptions import InstallationError

from pep_variants.label import split_label

from ..hook import replace
from ..session import preparing, session_of


def patch_prepare(module: ModuleType) -> None:
    """Tell the reduction which file is at work, and check wheels against what was promised."""

    @replace(module.RequirementPreparer, "_fetch_metadata_only")
    def fetch_metadata(original: Callable[..., Any], self: Any, req: Any) -> Any:
        with preparing(req.link):
            return original(self, req)

    @replace(module.RequirementPreparer, "_prepare_linked_requirement")
    def prepare_linked(
        original: Callable[..., Any],
        self: Any,
        req: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        link = req.link  # pip may replace it by the one of a cached or downloaded file
        with preparing(link):
            dist = original(self, req, *args, **kwargs)
        label = split_label(link.filename)[1]
        if label is not None:
            session = session_of(self.finder)
            if session is None:
                raise InstallationError(
                    f"{link.filename} is a variant wheel, and variants are switched off"
                )
            session.check(link, label, dist.read_text)
        return dist
