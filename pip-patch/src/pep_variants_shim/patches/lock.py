"""Lock files: ``pip lock`` writes variant metadata, ``-r pylock.toml`` selects with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from ..guard import guarded, replace, require
from ..session import current_session

_TREE = "_pep_variants_tree"


def patch_lock(module: Any) -> None:
    """Write the metadata of variant wheels into lock files, and publishers' names."""

    def dumps(
        original: Callable[..., Any], tree: Mapping[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        session = current_session()
        if session is not None:
            from ..lock_selection import with_metadata

            tree = with_metadata(tree, session)
        return original(tree, *args, **kwargs)

    module.tomli_w = _with(module.tomli_w, "dumps", dumps)


def patch_pylock(module: Any) -> None:
    """Select among the variant wheels of a lock file, whose names pip's packaging cannot parse."""
    pylock = module.Pylock
    require(pylock, "select")  # pips that only write lock files have none

    @replace(pylock, "from_dict")
    def from_dict(original: Callable[..., Any], cls: Any, *args: Any) -> Any:
        from pep_variants.lock.wheels import lists_variants, without_labels

        (tree,) = args
        session = current_session()
        if not lists_variants(tree) and (session is None or not session.options.forced):
            return original(cls, tree)
        lock = original(cls, without_labels(tree))
        object.__setattr__(lock, _TREE, tree)  # its class is a frozen dataclass
        return lock

    @replace(pylock, "select")
    def select(original: Callable[..., Any], self: Any, **kwargs: Any) -> Any:
        tree = vars(self).get(_TREE)
        if tree is None:
            return original(self, **kwargs)
        from ..lock_selection import select_packages

        options: dict[str, Any] = {
            "extras": kwargs.get("extras") or (),
            "groups": kwargs.get("dependency_groups"),
            "from_source": kwargs.get("prefer_sdist_predicate") or (lambda _: False),
        }
        chosen = select_packages(tree, current_session(), **options)
        return original(type(self).from_dict(chosen), **kwargs)


def _with(module: Any, name: str, ours: Callable[..., Any]) -> SimpleNamespace:
    """Return a namespace of *module* with one function replaced."""
    function = guarded(getattr(module, name), ours)
    return SimpleNamespace(**{**vars(module), name: function})
