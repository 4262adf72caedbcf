"""Links of index pages: variant wheels and metadata files that a session knows what to do with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from pep_variants.label import METADATA_SUFFIX, split_label

from ..hook import replace
from ..session import session_of


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
        if session is not None and not session.resolving:
            session = None
        kept = []
        for link in links:
            # Every link of every page passes here: look at the text before anything is parsed.
            url = link.url
            if METADATA_SUFFIX in url:
                if session is not None:
                    session.note_metadata(link)
            elif url.count("-") >= 5 and split_label(link.filename)[1] is not None:
                if session is None:
                    continue
                session.note_variants(link_evaluator.project_name)
            kept.append(link)
        return original(self, link_evaluator, kept)
