"""Builds that a command took because the catalogue describes them as variants.

They are publishers' files without variant metadata in them: the proxy knows which label stands for
``torch 2.9.0+cu128``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import unquote

from .locked_variants import Lock
from .site_packages import Installed, installed_versions, installed_without_variant

if TYPE_CHECKING:
    from .installed_state import InstalledState


def builds_taken(state: InstalledState, names: Iterable[str]) -> list[Installed]:
    """Return the builds of projects (normalized names) that the command installed or locked."""
    names = list(names)
    if state.context.preferences.catalog is None or not names:
        return []
    state.choices.ask(names)
    found = _installed(state, names) if state.context.environments else _locked(state, names)
    return list(dict.fromkeys(found))


def remarks(state: InstalledState, names: Iterable[str]) -> list[str]:
    """Return what is not taken of the catalogue for projects, one line for each reason."""
    from variants_proxy.commands.catalog_remarks import excluded, failures

    names = list(names)
    if state.context.preferences.catalog is None or not names:
        return []
    reports = state.choices.reports(names)
    lines = failures(reports)
    if plain := excluded(reports):
        lines.append(
            f"hashes are given for {', '.join(plain)}: no build of the catalogue is taken that has "
            "others, or that would be changed"
        )
    return lines


def _installed(state: InstalledState, names: Iterable[str]) -> Iterator[Installed]:
    new = installed_versions(state.context.environments) - state.versions_before
    for name in names:
        each = installed_without_variant(state.context.environments, name)
        if each is not None and (name, each.version) in new:
            label = state.choices.label_of(each)
            if label is not None:
                yield Installed(name, each.version, label, each.tags)


def _locked(state: InstalledState, names: Iterable[str]) -> Iterator[Installed]:
    before = state.context.lock
    now = Lock.read(before.path)
    for name in names:
        versions = now.names.get(name, {})
        if versions == before.names.get(name):
            continue
        choices = state.choices.of(name).values()
        labels = {
            file: label
            for choice in choices
            for plain, file in choice.published.items()
            if (label := choice.labels.get(plain)) is not None
        }
        for version, items in versions.items():
            for item in items:
                label = labels.get(unquote(item))
                if label is not None:
                    yield Installed(name, version, label)
