"""Resolution: candidate infos are arranged by the session before pip builds candidates of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from pip._vendor.packaging.utils import canonicalize_name

from pep_variants.label import split_label

from ..hook import replace, require, switch
from ..session import session_of


def patch_factory(module: ModuleType) -> None:
    """Look whether candidates are made where and with what we expect; name them in errors."""
    require(module.Factory, "_iter_found_candidates")
    require(module.Factory, "_make_candidate_from_link", "link", "name")

    @replace(module.Factory, "get_installation_error")
    def get_installation_error(
        original: Callable[..., Any], self: Any, e: Any, *args: Any, **kwargs: Any
    ) -> Any:
        if session_of(self._finder) is not None:
            e.causes = [
                cause if cause.parent is None else cause._replace(parent=_labelled(cause.parent))
                for cause in e.causes
            ]
        return original(self, e, *args, **kwargs)


class _Labelled:
    """A candidate whose version says which variant it is, for messages."""

    def __init__(self, candidate: Any, label: str) -> None:
        self._candidate = candidate
        self.version = f"{candidate.version} (variant {label})"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._candidate, name)


def _labelled(candidate: Any) -> Any:
    link = candidate.source_link
    label = None if link is None else split_label(link.filename)[1]
    return candidate if label is None else _Labelled(candidate, label)


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
    # Nothing may happen before pip asks for the first one: what is installed often has to do, and
    # the index is not even asked. The finder, and with it the session, is only to be had from an
    # info: each holds a partial of the factory's method that makes a candidate of a link.
    first = next(infos, None)
    if first is None:
        return
    infos = itertools.chain((first,), infos)
    build = first[1]
    try:
        session, project = session_of(build.func.__self__._finder), build.keywords["name"]
    except (AttributeError, KeyError) as error:
        switch.off(f"this pip is not as expected, its candidates have no {error}")
        session = None
    yield from infos if session is None else session.arrange(project, infos)


def patch_resolver(module: ModuleType) -> None:
    """Let variants in where this resolver is at work, and see what comes of it."""

    @replace(module.Resolver, "__init__")
    def init(original: Callable[..., None], self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        session = session_of(self.factory._finder)
        if session is not None:
            session.resolving = True

    @replace(module.PipProvider, "__init__")
    def init_provider(original: Callable[..., None], self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        session = session_of(self._factory._finder)
        if session is not None:
            session.note_provider(self)

    @replace(module.Resolver, "resolve")
    def resolve(
        original: Callable[..., Any], self: Any, root_reqs: Any, *args: Any, **kwargs: Any
    ) -> Any:
        session = session_of(self.factory._finder)
        if session is None:
            return original(self, root_reqs, *args, **kwargs)
        with session.explaining():
            requirements = original(self, root_reqs, *args, **kwargs)
        wanted = {
            canonicalize_name(req.name) for req in root_reqs if req.name and req.user_supplied
        }
        session.note_result(self._result.mapping, requirements.requirements, wanted)
        return requirements
