"""Resolution: candidate infos are arranged by the session before pip builds candidates of them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from ..session import session_of


def patch_factory(module: ModuleType) -> None:
    """Arrange what ``FoundCandidates`` gets, lazily, as pip itself does it."""
    original = module.FoundCandidates

    @functools.wraps(original, updated=())
    def found_candidates(get_infos: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        return original(lambda: _arranged(get_infos()), *args, **kwargs)

    module.FoundCandidates = found_candidates  # type: ignore[attr-defined]


def _arranged(infos: Iterator[Any]) -> Iterator[Any]:
    # The finder, and with it the session, is only to be had from an info: each holds a partial
    # of the factory's method that makes a candidate of a link.
    first = next(infos, None)
    if first is None:
        return
    infos = itertools.chain((first,), infos)
    build = first[1]
    session = session_of(build.func.__self__._finder)
    yield from infos if session is None else session.arrange(build.keywords["name"], infos)


def patch_resolver(module: ModuleType) -> None:
    """Remember the labels of a resolution for the summary; explain a failed forced label."""
    original = module.Resolver.resolve

    @functools.wraps(original)
    def resolve(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        from pip._internal.exceptions import InstallationError

        session = session_of(self.factory._finder)
        if session is None:
            return original(self, *args, **kwargs)
        try:
            requirements = original(self, *args, **kwargs)
        except InstallationError as error:
            missing = session.missing_variant()
            if missing is None:
                raise
            raise InstallationError(missing) from error
        session.note_chosen(requirements)
        return requirements

    module.Resolver.resolve = resolve  # type: ignore[attr-defined]
