"""Resolution: the session orders candidate infos before pip makes candidates of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import ModuleType
from typing import Any

from pip._internal.exceptions import DistributionNotFound
from pip._vendor.packaging.utils import canonicalize_name

from pep_variants import labels as wheel_labels

from .._errors import VariantsOff, logger
from .._guard import Original, fault, is_ours, iterated, parameters, replace, require, switch
from .._links import CatalogLink, Info, label_of_link
from .._outcome import explained, note_result, resolved
from .._session import session_of


def patch_factory(module: ModuleType) -> None:
    """Check that candidates are made with the expected parameters; name variants in errors."""
    require(module.Factory, "_iter_found_candidates")
    require(module.Factory, "_make_candidate_from_link", "link", "name")
    if "is_satisfied_by" in parameters(module.Factory.find_candidates):  # since 24.1
        _patch_find_candidates(module.Factory)

    @replace(module.Factory, "get_installation_error", shows=True)
    def get_installation_error(
        original: Original, self: Any, e: Any, *args: Any, **kwargs: Any
    ) -> Any:
        session = session_of(self._finder)
        if session is not None and session.attempting:
            return DistributionNotFound("no result")
        if session is None or session.ordering is None:
            return original(self, e, *args, **kwargs)
        by_marker = session.ordering.required_by_marker(e.causes)
        e.causes = [
            cause if cause.parent is None else cause._replace(parent=_labelled(cause.parent))
            for cause in e.causes
            if not getattr(cause.requirement, "refusal", False)
        ]
        error = original(self, e, *args, **kwargs)
        for text in by_marker:
            logger.critical("%s", text)
        return error


def _patch_find_candidates(factory: Any) -> None:
    """Have pip's own provider say which candidates may be offered, none of which is pinned."""

    @replace(factory, "find_candidates")
    def find_candidates(
        original: Original,
        self: Any,
        identifier: Any,
        requirements: Any,
        incompatibilities: Any,
        constraint: Any,
        prefers_installed: Any,
        is_satisfied_by: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        return original(
            self, identifier, requirements, incompatibilities, constraint, prefers_installed,
            getattr(is_satisfied_by, "of_pip", is_satisfied_by), *args, **kwargs,
        )  # fmt: skip


class _Labelled:
    """A candidate whose version names its variant, for messages."""

    def __init__(self, candidate: Any, label: str) -> None:
        self._candidate = candidate
        self.version = f"{candidate.version} (variant {label})"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._candidate, name)


def _labelled(candidate: Any) -> Any:
    link = candidate.source_link
    label = None if link is None else label_of_link(link)
    return candidate if label is None else _Labelled(candidate, label)


def patch_found_candidates(module: ModuleType) -> None:
    """Order the infos of ``FoundCandidates``, lazily as pip itself."""

    # Also when variants were switched off since: there may be variant wheels among the infos.
    @replace(module.FoundCandidates, "__init__", always=True)
    def init(
        original: Original,
        self: Any,
        get_infos: Callable[[], Iterator[Any]],
        installed: Any,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        def infos() -> Iterator[Any]:
            found = iter(get_infos())
            version = None if installed is None else installed.version
            return _ordered(found, version) if switch.on else _plain(found)

        if not callable(get_infos):
            raise TypeError("pip has candidate infos without a function that gets them")
        unchanged = not (switch.on or switch.used)
        original(self, get_infos if unchanged else infos, installed, *args, **kwargs)


def _ordered(infos: Iterator[Info], installed: Any) -> Iterator[Info]:
    # Nothing may happen before pip asks for the first one: often the installed distribution
    # satisfies the requirement, and pip sends no request.
    first = next(infos, None)
    if first is None:
        return
    if switch.on and (switch.used or switch.explicit):
        yield from iterated(_variants_ordered([first, *infos], installed))
    elif switch.used:
        yield from _plain(iter([first, *infos]))
    else:
        yield first
        yield from infos


def _variants_ordered(infos: list[Any], installed: Any) -> Iterator[Info]:
    """Yield *infos* as their session orders them, without variants if there is no session."""
    if any(type(info) is not tuple or [*map(type, info[1:])] != [partial] for info in infos):
        raise TypeError("pip has other candidate infos than pairs of a version and a partial")
    # Only an info leads to the session: it has a partial of the factory's method.
    build: Any = infos[0][1]
    session, project = session_of(build.func.__self__._finder), build.keywords["name"]
    found = iter(infos)
    yield from _plain(found) if session is None else session.ordered(project, found, installed)


def _plain(infos: Iterator[Any]) -> Iterator[Info]:
    """Yield *infos* without variants; also after a fault, so without what may have failed.

    Where that cannot be told from them the command runs again, see `patches.start`.
    """
    for info in infos:
        link = info[1].keywords["link"]
        if not isinstance(link, CatalogLink) and wheel_labels.split_label(link.filename)[1] is None:
            yield info


def patch_resolver(module: ModuleType) -> None:
    """Let variants in where this resolver is at work, and note its result."""

    @replace(module.Resolver, "__init__")
    def init(original: Original, self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        session = session_of(self.factory._finder)
        if session is not None:
            session.start_resolving()

    @replace(module.PipProvider, "__init__")
    def init_provider(original: Original, self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        session = session_of(self._factory._finder)
        if session is not None:
            session.note_provider(self)

    # Also after a fault: what was asked for must not be ignored silently.
    @replace(module.Resolver, "resolve", always=True)
    def resolve(original: Original, self: Any, root_reqs: Any, *args: Any, **kwargs: Any) -> Any:
        if switch.failed and switch.explicit:
            raise VariantsOff(switch.reason)
        session = session_of(self.factory._finder)
        if session is None:
            return original(self, root_reqs, *args, **kwargs)
        named = [req for req in root_reqs if req.name and req.user_supplied]
        wanted = {canonicalize_name(req.name): req.specifier for req in named}
        session.catalog.specifiers = wanted
        try:
            try:
                with explained(session):
                    requirements = resolved(
                        session,
                        self,
                        lambda more=(): original(self, [*root_reqs, *more], *args, **kwargs),
                    )
                if switch.failed:
                    raise VariantsOff(switch.reason)
            finally:
                chosen = self._result.mapping if self._result is not None else {}
                session.catalog.report_unavailable(
                    chosen, wanted, lambda: session.get_ordering().detect
                )
            note_result(session, self._result, requirements.requirements, wanted)
            _tell_of_builds(session, self._result, wanted)
            return requirements
        except VariantsOff:  # nothing is installed yet
            if switch.explicit:
                raise
            switch.tell()
        except Exception as error:
            if not is_ours(error):
                raise
            fault(error, goes_on=True)
        switch.again = True
        return original(self, root_reqs, *args, **kwargs)


def _tell_of_builds(session: Any, result: Any, wanted: Mapping[str, Any]) -> None:
    """Print lines about builds of projects in the catalogue, if there are any in *result*."""
    from variants_catalog import possible_builds, project_names

    names = frozenset() if session.catalog.wanted else project_names() & result.mapping.keys()
    builds = possible_builds(result.mapping)
    if names or builds:
        from .._missed_builds import tell_missed, tell_unfit

        if names:
            named = sorted(names, key=lambda name: (name not in wanted, name))
            tell_missed(session, result, named)
        if builds:
            tell_unfit(session, result, builds)
