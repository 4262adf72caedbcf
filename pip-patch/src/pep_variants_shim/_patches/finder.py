"""Links of index pages: variant wheels and metadata files."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable
from contextlib import suppress
from types import ModuleType
from typing import Any

from pep_variants import labels as wheel_labels

from .._catalog import with_hashes
from .._errors import is_no_file
from .._guard import Original, replace
from .._session import session_of

_PAGE = "_pep_variants_page"
"""Attribute of pip's link evaluator: URL of the page of an index that it is for."""


def patch_finder(module: ModuleType) -> None:
    """Note variant wheels and metadata files, and hide the former without a session."""

    @replace(module.PackageFinder, "evaluate_links")
    def evaluate_links(
        original: Original, self: Any, link_evaluator: Any, links: Iterable[Any]
    ) -> Any:
        session = session_of(self)
        resolving = session if session is not None and session.resolving else None
        links = list(links)
        original.after_fault(self, link_evaluator, links)  # iterators are read once
        if resolving is not None:
            resolving.catalog.note_listed(
                link_evaluator.project_name, links, getattr(link_evaluator, _PAGE, "")
            )
        kept = []
        for link in links:
            # Called with every link of every page: test the text before parsing anything.
            url = link.url
            if link.is_file and is_no_file(link.file_path):
                continue
            if wheel_labels.METADATA_SUFFIX in url:
                if resolving is not None:
                    resolving.note_metadata(link)
            elif url.count("-") >= 5 and wheel_labels.split_label(link.filename)[1] is not None:
                if resolving is not None:
                    resolving.note_variants(link_evaluator.project_name)
                elif session is None or not session.lists_variants():
                    continue
            kept.append(link)
        return original(self, link_evaluator, kept)

    with suppress(AttributeError):  # only the catalogue and other programs need it
        _patch_candidates(module.PackageFinder)


def _patch_candidates(finder: Any) -> None:
    """Add the files of the catalogue; after a resolution, only those of the chosen variants."""
    cached = finder.find_all_candidates

    @replace(finder, "find_all_candidates")
    def find_all_candidates(original: Original, self: Any, project_name: str) -> Any:
        found = original(self, project_name)
        session = session_of(self)
        if session is None:
            return found
        found = session.with_catalog(project_name, found, lambda name: original(self, name))
        return session.of_chosen(project_name, found)

    if hasattr(cached, "cache_clear"):  # older pips; pip-tools calls it
        finder.find_all_candidates.cache_clear = cached.cache_clear

    @replace(finder, "find_best_candidate")
    def find_best_candidate(
        original: Original, self: Any, project_name: str, specifier: Any = None, hashes: Any = None
    ) -> Any:
        session = session_of(self)
        if session is not None and (hashes or "===" in str(specifier)):
            session.catalog.note_asked(project_name)
        with with_hashes(hashes):
            return original(self, project_name, specifier, hashes)

    @replace(finder, "process_project_url")
    def process_project_url(
        original: Original, self: Any, project_url: Any, link_evaluator: Any, **kwargs: Any
    ) -> Any:
        if project_url.is_file and is_no_file(_page_path(project_url.file_path)):
            return []
        evaluator = copy.copy(link_evaluator)
        setattr(evaluator, _PAGE, project_url.url)
        return original(self, project_url, evaluator, **kwargs)


def _page_path(path: str) -> str:
    """Return what pip reads of the local page at *path*: of a folder its ``index.html``."""
    return os.path.join(path, "index.html") if os.path.isdir(path) else path  # noqa: PTH112, PTH118
