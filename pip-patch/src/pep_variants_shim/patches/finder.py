"""Links of index pages: variant wheels and metadata files that a session knows what to do with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from pep_variants.label import METADATA_SUFFIX, split_label

from ..hook import replace
from ..session import Session, Use, session_of


def patch_finder(module: ModuleType) -> None:
    """Tell the session what there is, and hide variant wheels where there is none."""

    @replace(module.PackageFinder, "evaluate_links")
    def evaluate_links(
        original: Callable[..., Any],
        self: Any,
        link_evaluator: Any,
        links: Iterable[Any],
    ) -> Any:
        session = session_of(self)
        resolving = session if session is not None and session.resolving else None
        kept = []
        for link in links:
            # Every link of every page passes here: look at the text before anything is parsed.
            url = link.url
            if METADATA_SUFFIX in url:
                if resolving is not None:
                    resolving.note_metadata(link)
            elif url.count("-") >= 5 and split_label(link.filename)[1] is not None:
                if resolving is not None:
                    resolving.note_variants(link_evaluator.project_name)
                elif session is None or not session.lists_variants():
                    continue
            kept.append(link)
        return original(self, link_evaluator, kept)


def patch_listing(module: ModuleType) -> None:
    """Let commands that only list versions see those that there are variant wheels of."""
    command = getattr(module, "IndexCommand", None) or module.ListCommand

    @replace(command, "_build_package_finder")
    def build_package_finder(
        original: Callable[..., Any],
        self: Any,
        options: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        finder = original(self, options, *args, **kwargs)
        Session({}, finder, use=Use.LIST)
        return finder
