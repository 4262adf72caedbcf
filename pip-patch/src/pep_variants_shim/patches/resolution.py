"""Resolution: candidate infos are arranged by the session before pip builds candidates of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from ..hook import replace
from ..session import session_of


def patch_found_candidates(module: ModuleType) -> None:
    """Arrange what ``FoundCandidates`` gets, lazily, as pip itself does it."""

    @replace(module.FoundCandidates, "__init__")
    def init(
        original: Callable[..., None],
        self: Any,
        get_infos: Callable[[], Iterator[Any]],
        *args: Any,
        **kwargs: Any,
    ) -> None:
        original(self, lambda: _arranged(get_infos()), *args, **kwargs)


def _arranged(infos: Iterator[Any]) -> Iterator[Any]:
    # The finder, and with it the session, is only to be had from an info: each holds a partial
    # of the factory's method that makes a candidate of a link.
    first = next(infos, None)
    if first is None:
        return infos
    infos = itertools.chain((first,), infos)
    build = first[1]
    session = session_of(build.func.__self__._finder)
    return infos if session is None else session.arrange(build.keywords["name"], infos)


def patch_resolver(module: ModuleType) -> None:
    """Let variants in where this resolver is at work, and see what comes of it."""

    @replace(module.Resolver, "__init__")
    def init(original: Callable[..., None], self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        session = session_of(self.factory._finder)
        if session is not None:
            session.resolving = True

    @replace(module.Resolver, "resolve")
    def resolve(original: Callable[..., Any], self: Any, *args: Any, **kwargs: Any) -> Any:
        session = session_of(self.factory._finder)
        if session is None:
            return original(self, *args, **kwargs)
        with session.explaining():
            requirements = original(self, *args, **kwargs)
        session.note_result(self._result.mapping, requirements.requirements)
        return requirements
