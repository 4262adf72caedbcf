"""Preparation: pip gets hold of a file; its markers are reduced, its promises are checked."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from ..reduction import preparing
from ..session import session_of


def patch_prepare(module: ModuleType) -> None:
    """Tell the reduction which file is at work, and check wheels against what was promised."""
    class_ = module.RequirementPreparer
    fetch = class_._fetch_metadata_using_link_data_attr
    prepare = class_._prepare_linked_requirement

    @functools.wraps(fetch)
    def fetch_metadata(self: Any, req: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        session = session_of(self.finder)
        if session is None:
            return fetch(self, req, *args, **kwargs)
        token = preparing.set(session.context(req.link))
        try:
            return fetch(self, req, *args, **kwargs)
        finally:
            preparing.reset(token)

    @functools.wraps(prepare)
    def prepare_linked(self: Any, req: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        session = session_of(self.finder)
        if session is None:
            return prepare(self, req, *args, **kwargs)
        link = req.link  # pip may replace it by the one of a cached or downloaded file
        token = preparing.set(session.context(link))
        try:
            dist = prepare(self, req, *args, **kwargs)
        finally:
            preparing.reset(token)
        session.check(link, dist.read_text)
        return dist

    class_._fetch_metadata_using_link_data_attr = fetch_metadata
    class_._prepare_linked_requirement = prepare_linked
