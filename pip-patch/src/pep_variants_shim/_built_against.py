"""Installed variants that are built against a release of another project, when that one changes.

pip keeps what is installed and satisfies the requirements. A build against one release of a project
(``abi_dependency``) does not go with another one: in the next round it is resolved as if it were
not installed, at its version if that has a build which does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pep_variants import labels as wheel_labels

from ._distributions import metadata_of, read_file

if TYPE_CHECKING:
    from pep_variants.selection import AbiDependency

    from ._switching import InstalledProject, Rounds


def has_variants(result: Any) -> bool:
    """Return whether a variant is installed of what takes part in the *result* of pip's resolver.

    One that the catalogue describes is built against nothing.
    """
    return any(
        read_file(candidate.dist, wheel_labels.VARIANT_FILE) is not None
        for candidate in result.mapping.values()
        if candidate.is_installed and hasattr(candidate, "dist")
    )


def replace_builds(rounds: Rounds) -> None:
    """Replace installed builds that do not go with what is chosen of other projects.

    Raises:
        InstallationError: no build does, and the others have to be as they are.
    """
    lines: list[tuple[InstalledProject, AbiDependency]] = []
    while clashes := list(_clashes(rounds)):
        lines += clashes
        moved = {item.project: item for item, _ in clashes}
        own = {
            name: None if rounds.session.upgrades(name) else item.dist.version
            for name, item in moved.items()
        }
        if rounds.run(moved, own) or rounds.run(moved, dict.fromkeys(moved, None)):
            continue
        # It may be on no index: then what it is built against stays.
        names = {dependency.project for _, dependency in clashes}
        items = {name: item for name in names if (item := rounds.installed(name))}
        if not rounds.run({}, {name: item.dist.version for name, item in items.items()}):
            for item, dependency in clashes:
                _say(rounds, item, dependency, "does not go with")
            rounds.insist(moved)
    for item, dependency in lines:
        is_replaced = item.project in rounds.requirements
        _say(rounds, item, dependency, "replaced, to go with" if is_replaced else "kept with")


def _say(rounds: Rounds, item: InstalledProject, dependency: AbiDependency, how: str) -> None:
    other = rounds.chosen(dependency.project)
    version = f" {other.version}" if other is not None else ""
    rounds.say(f"{item}, built against {dependency}: {how} {dependency.project}{version}")


def _clashes(rounds: Rounds) -> Iterator[tuple[InstalledProject, AbiDependency]]:
    """Yield what is installed with the release that it is built against, where that is not chosen.

    What is replaced in an earlier round is not installed any more.
    """
    from pep_variants import selection as wheel_selection

    chosen = {item.project_name: item for item in rounds.result.mapping.values()}
    for name, candidate in chosen.items():
        item = rounds.installed(name) if candidate.is_installed else None
        metadata = None if item is None else metadata_of(item.dist)
        if item is None or metadata is None:
            continue
        for dependency in wheel_selection.abi_dependencies(
            metadata.properties_of(item.label) or {}
        ):
            other = chosen.get(dependency.project)
            if other is not None and not dependency.allows(other.version):
                yield item, dependency
                break
