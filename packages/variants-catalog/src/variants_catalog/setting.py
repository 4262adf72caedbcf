"""The catalogue that the user's own ``variants.toml`` names, for commands that change it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from pep_variants import limits, safe_files
from pep_variants import preferences as user_preferences
from pep_variants.errors import PreferenceError
from pep_variants.preferences import Preferences, Role

from ._catalogs import Catalog, preferred_catalog
from .entries import CatalogProject

__all__ = [
    "OWN_INDEX", "catalog_rows", "checked_catalog", "disable_catalog", "enable_catalog",
    "local_catalog", "open_local", "open_preferred",
]  # fmt: skip

_KEY = "catalog"
OWN_INDEX = "your own index"
"""Where builds are from that a project's own files are."""


def enable_catalog(
    name: str, fetch: Callable[[str], bytes], warn: Callable[[str], None]
) -> Iterator[str]:
    """Have the user's ``variants.toml`` name a catalogue; yield what was done.

    Args:
        name: `DEFAULT_CATALOG`, a file, a directory, or a URL.
        fetch: returns what is at a URL.
        warn: hears if another setting counts more.

    Raises:
        CatalogError: it cannot be read, and is not named.
        PreferenceError: the file is not TOML.
        NotPrivate: others can change its directory.
        OSError: it cannot be read or written.
    """
    value = (
        str(Path(name).expanduser().absolute()) if user_preferences.is_catalog_path(name) else name
    )
    number = len(list(open_preferred(Preferences(catalog=value), fetch).names()))
    path = _set(value)
    yield f"{path}: {_KEY} = {value!r}, {number} project{'s'[: number != 1]}"
    _say_what_counts(value, warn)


def disable_catalog(warn: Callable[[str], None]) -> Iterator[str]:
    """Have the user's ``variants.toml`` name no catalogue; yield what was done.

    *warn* and errors are as for `enable_catalog`.
    """
    yield f"{_set(None)}: no {_KEY}"
    _say_what_counts(None, warn)


def open_preferred(preferences: Preferences, fetch: Callable[[str], bytes]) -> Catalog:
    """Return the catalogue of *preferences*, or the default one, with all of its projects.

    Raises:
        CatalogError: it cannot be read.
    """
    name = preferences.catalog or user_preferences.DEFAULT_CATALOG
    wanted = replace(preferences, catalog=name, use_variants=True, forced={})
    found = preferred_catalog(wanted, fetch)
    assert found is not None
    return found


def open_local(preferences: Preferences) -> Catalog | None:
    """Return the same as `open_preferred`, None for a catalogue at a URL."""
    name = preferences.catalog or user_preferences.DEFAULT_CATALOG
    is_here = name == user_preferences.DEFAULT_CATALOG or user_preferences.is_catalog_path(name)
    return open_preferred(preferences, lambda _: b"") if is_here else None


def checked_catalog(preferences: Preferences, base: Path) -> str | None:
    """Return the catalogue of *preferences*, a path made absolute; None without one.

    What is on this machine is looked at, so that a mistake in its name ends the command.

    Args:
        preferences: of the user.
        base: directory that a path is relative to.

    Raises:
        CatalogError: it cannot be read.
    """
    name = preferences.catalog
    if name is None or not preferences.use_variants:
        return None
    found = local_catalog(preferences, base)
    return name if found is None else found[0]


def local_catalog(preferences: Preferences, base: Path) -> tuple[str, Catalog] | None:
    """Return the catalogue of *preferences* and its name as `checked_catalog` returns it.

    None without one, and for one at a URL.

    Raises:
        CatalogError: it cannot be read.
    """
    name = preferences.catalog
    if name is not None and user_preferences.is_catalog_path(name):
        name = str((base / Path(name).expanduser()).absolute())
    elif name != user_preferences.DEFAULT_CATALOG:
        return None
    found = preferred_catalog(replace(preferences, catalog=name), lambda _: b"")
    return None if found is None else (name, found)


def catalog_rows(entries: Iterable[CatalogProject]) -> list[tuple[str, str, str]]:
    """Return a table of *entries*: project, where its builds are from, and their labels.

    >>> from variants_catalog.catalogs import shipped_catalog
    >>> from variants_catalog.setting import catalog_rows
    >>> catalog_rows([shipped_catalog().project("mlx")])[0][:2]
    ('mlx', 'extras of mlx')
    """
    return [
        (
            entry.name,
            ", ".join(_hosts(entry)),
            " ".join(dict.fromkeys(item.label for item in entry.variants)),
        )
        for entry in entries
    ]


def _hosts(entry: CatalogProject) -> list[str]:
    """Return the hosts and the other projects that the builds come from."""
    urls = [*entry.places, *([entry.variants_index] if entry.variants_index else [])]
    own = {
        f"extras of {entry.name}" if item.requires else OWN_INDEX
        for item in entry.variants
        if entry.is_own(item) or (item.place is None and not item.requires)
    }
    hosts = (urlsplit(url).hostname or url for url in urls)
    return list(dict.fromkeys((*hosts, *entry.targets, *sorted(own))))


def _set(value: str | None) -> Path:
    """Set the catalogue in the user's own ``variants.toml``, the rest stays; return its path.

    None removes it.
    """
    import tomlkit  # which only this takes

    path = next(place.path for place in user_preferences.places() if place.role is Role.USER)
    try:
        data = safe_files.read_regular(path, limits.SETTINGS_BYTES).data
    except FileNotFoundError:
        data = b""
    user_preferences.configuration_tree(
        data, str(path)
    )  # what this project reads, tomlkit can edit
    try:
        document = tomlkit.parse(data.decode("utf-8"))
    except ValueError as error:
        raise PreferenceError(f"{path}: cannot be edited: {error}") from None
    if value is None:
        document.pop(_KEY, None)
    else:
        document[_KEY] = value
    text = tomlkit.dumps(document).encode()
    if text != data:
        safe_files.make_private(path.parent)
        # Dotfiles are often symbolic links, which stay.
        with safe_files.replacing(path.resolve(), mode=0o600) as stream:
            stream.write(text)
    return path


def _say_what_counts(value: str | None, warn: Callable[[str], None]) -> None:
    """Warn if another setting counts more than the user's file, which was just written."""
    preferences = user_preferences.load_preferences({}, os.environ, warn=warn)
    if preferences.catalog != value:
        warn(
            f"here the catalogue is {preferences.catalog or 'none'!r}: VARIANTS_CATALOG, or "
            "another variants.toml, says so and counts more"
        )
