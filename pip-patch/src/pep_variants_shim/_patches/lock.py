"""Variant wheels in ``pylock.toml`` (PEP 751; PEP 825, "Integration with pylock.toml").

``pip lock`` writes their metadata. For ``-r pylock.toml`` the engine selects the wheels of this
machine, and pip gets these, with plain filenames that it can parse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from .._guard import Original, guarded, replace, require
from .._session import Session, current_session

if TYPE_CHECKING:
    from pep_variants.lock_entries import LockSelection

_TREE = "_pep_variants_tree"


def patch_lock(module: Any) -> None:
    """Write the metadata of variant wheels into lock files, and publishers' names."""

    def dumps(original: Original, tree: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        session = current_session()
        if session is not None:
            session.check_sources()
            packages = [
                _with_metadata(_as_published(item, session), session) for item in tree["packages"]
            ]
            packages.sort(key=lambda package: str(package["name"]))
            tree = {**tree, "packages": packages}
        return original(tree, *args, **kwargs)

    module.tomli_w = _with(module.tomli_w, "dumps", dumps)


def patch_pylock(module: Any) -> None:
    """Select among the variant wheels of a lock file, whose names pip's packaging cannot parse."""
    pylock = module.Pylock
    require(pylock, "select")  # pips that only write lock files have none

    @replace(pylock, "from_dict")
    def from_dict(original: Original, cls: Any, *args: Any) -> Any:
        from pep_variants import lock_entries

        (tree,) = args
        session = current_session()
        if not (lock_entries.lists_variants(tree) or lock_entries.has_groups(tree)) and (
            session is None or not session.options.forced
        ):
            return original(cls, tree)
        lock = original(cls, lock_entries.without_labels(tree))
        object.__setattr__(lock, _TREE, tree)  # its class is a frozen dataclass
        return lock

    @replace(pylock, "select")
    def select(original: Original, self: Any, **kwargs: Any) -> Any:
        tree = vars(self).get(_TREE)
        if tree is None:
            return original(self, **kwargs)
        chosen = _selected(
            tree,
            current_session(),
            extras=kwargs.get("extras") or (),
            groups=kwargs.get("dependency_groups"),
            from_source=kwargs.get("prefer_sdist_predicate") or (lambda _: False),
        )
        kwargs["dependency_groups"] = chosen.groups
        return original(type(self).from_dict(chosen.tree), **kwargs)


def _with(module: Any, name: str, ours: Callable[..., Any]) -> SimpleNamespace:
    """Return a namespace of *module* with one function replaced."""
    function = guarded(getattr(module, name), ours)
    return SimpleNamespace(**{**vars(module), name: function})


def _selected(tree: Mapping[str, Any], session: Session | None, **asked: Any) -> LockSelection:
    """Return what this machine installs from a lock file, as parsed from TOML.

    *asked* are arguments of the engine's `select_packages`.

    Raises:
        VariantError: no file of a package fits this machine, or the options.
    """
    from packaging.markers import default_environment
    from packaging.tags import sys_tags

    from pep_variants import lock_entries
    from pep_variants.lock_entries import Machine
    from pep_variants.machines import Platform
    from pep_variants.preferences import Preferences

    machine = Machine(dict(default_environment()), [*sys_tags()])  # type: ignore[arg-type]
    ordering = None if session is None else session.get_ordering()
    if ordering is None:
        detect, preferences = lambda _: Platform(), Preferences(use_variants=False)
    else:
        detect, preferences = ordering.detect, ordering.preferences
    # pip's error names the file.
    selection = lock_entries.select_packages(tree, "", machine, detect, preferences, **asked)
    if ordering is not None:
        if selection.group is not None:
            ordering.note_group(selection.group)
        for choice in selection.choices.values():
            ordering.note_locked(choice)
    return selection


def _as_published(package: Mapping[str, Any], session: Session) -> Mapping[str, Any]:
    """Return *package* under its publisher's name: any installer can install it."""
    origin = session.origins.get(str(package["name"]))
    return package if origin is None else {**package, **origin}


def _with_metadata(package: Mapping[str, Any], session: Session) -> Mapping[str, Any]:
    from pep_variants import lock_entries

    labels = [label for label in lock_entries.labels_of(package) if label is not None]
    if not labels:
        return package
    document = session.get_ordering().document(str(package["wheels"][0].get("url")))
    if document is None:  # it was not chosen among variants
        return package
    return {**package, lock_entries.KEY: lock_entries.write_table([document], labels)}
