"""Variant wheels in ``pylock.toml`` (PEP 751; PEP 825, "Integration with pylock.toml").

The engine selects the wheels of this machine; pip gets these, with plain filenames that it can
parse.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from pep_variants.lock.wheels import KEY, labels_of

if TYPE_CHECKING:
    from .session import Session


def select_packages(
    tree: Mapping[str, Any],
    session: Session | None,
    *,
    extras: Collection[str],
    groups: Collection[str] | None,
    from_source: Callable[[str], bool],
) -> Mapping[str, Any]:
    """Return what this machine installs from a lock file, see `pep_variants.lock.selection`.

    Args:
        tree: the file, as parsed from TOML.
        session: of the command, None if variants are switched off.
        extras: of the lock file, that the user asks for.
        groups: likewise; None for the default groups of the file.
        from_source: whether a project is built from its source distribution.

    Raises:
        VariantError: no file of a package fits this machine, or the options.
    """
    from packaging.markers import default_environment
    from packaging.tags import sys_tags

    from pep_variants.choose.preferences import Preferences
    from pep_variants.lock.selection import Machine
    from pep_variants.lock.selection import select_packages as select
    from pep_variants.model.platform import Platform

    machine = Machine(dict(default_environment()), [*sys_tags()])  # type: ignore[arg-type]
    ordering = None if session is None else session.get_ordering()
    if ordering is None:
        detect, preferences = lambda _: Platform(), Preferences(use_variants=False)
    else:
        detect, preferences = ordering.detect, ordering.preferences
    selection = select(
        tree,
        "",  # pip's error names the file
        machine,
        detect,
        preferences,
        extras=extras,
        groups=groups,
        from_source=from_source,
    )
    if ordering is not None:
        for choice in selection.choices.values():
            ordering.note_locked(choice)
    return selection.tree


def with_metadata(tree: Mapping[str, Any], session: Session) -> dict[str, Any]:
    """Return the lock file that pip writes with the metadata of its variant wheels.

    A build that is installed under another name than its publisher's gets the latter: any
    installer can install it.

    Args:
        tree: the file; pip locks one wheel of each package.
        session: of the command.
    """
    packages = [_with_metadata(_as_published(item, session), session) for item in tree["packages"]]
    return {**tree, "packages": sorted(packages, key=lambda package: str(package["name"]))}


def _as_published(package: Mapping[str, Any], session: Session) -> Mapping[str, Any]:
    origin = session.origins.get(str(package["name"]))
    return package if origin is None else {**package, **origin}


def _with_metadata(package: Mapping[str, Any], session: Session) -> Mapping[str, Any]:
    labels = [label for label in labels_of(package) if label is not None]
    if not labels:
        return package
    document = session.get_ordering().document(str(package["wheels"][0].get("url")))
    if document is None:  # it was not chosen among variants
        return package
    from pep_variants.lock.table import write_table

    return {**package, KEY: write_table([document], labels)}
