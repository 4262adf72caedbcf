"""Links of index pages: variant wheels and metadata files that a session knows what to do with."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from .._vendor.pep_variants.label import METADATA_SUFFIX, split_label
from ..session import session_of


def patch_finder(module: ModuleType) -> None:
    """Hand the session the metadata links it needs, and hide labels from finders without one."""
    original = module.PackageFinder.evaluate_links

    @functools.wraps(original)
    def evaluate_links(self: Any, link_evaluator: Any, links: Iterable[Any]) -> Any:  # noqa: ANN401
        links = list(links)
        # The URL of every link of an index passes here: look at the text, parse what matters.
        session = session_of(self)
        if session is None:
            links = [
                link
                for link in links
                if ".whl" not in link.url or split_label(link.filename)[1] is None
            ]
        else:
            for link in links:
                if METADATA_SUFFIX in link.url:
                    session.add_metadata_link(link)
        return original(self, link_evaluator, links)

    module.PackageFinder.evaluate_links = evaluate_links  # type: ignore[attr-defined]
