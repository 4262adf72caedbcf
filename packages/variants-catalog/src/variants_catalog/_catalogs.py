"""Catalogues: a directory of entries, one entry, or several in one file, as the user prefers them.

Nothing is fetched here: a client passes in what fetches a URL.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from packaging.utils import canonicalize_name

from pep_variants import limits, safe_files
from pep_variants import preferences as user_preferences
from pep_variants.errors import CatalogError, VariantError, shortened
from pep_variants.preferences import Preferences

from ._entry_reader import FORMAT_VERSION, entry_from_tree, read_entry
from .entries import CatalogProject
from .listings import own_place

if TYPE_CHECKING:
    from importlib.abc import Traversable

logger = logging.getLogger(__name__)

_SUFFIX = ".toml"
_PARSED = ".json"
"""What a bundle has instead, the same entry parsed: of pip's time the parser of TOML took much."""
_MAX_PLACES = 3


class Catalog(Protocol):
    """Entries by project; an entry is read when it is asked for."""

    def names(self) -> Iterable[str]:
        """Return the normalized names of the projects, ascending."""
        ...

    def project(self, name: str) -> CatalogProject | None:
        """Return the entry of the project *name* (normalized), None without one.

        Raises:
            CatalogError: it cannot be read.
        """
        ...


@dataclass(frozen=True)
class DirectoryCatalog:
    """A directory with the entry of each project in ``NAME.toml``.

    Attributes:
        path: of the directory, which may lie in a zip file, as that of a pip may.
        place: what is put before the name of a file in messages; None for the directory.
    """

    path: Traversable
    place: str | None = None

    def names(self) -> Iterable[str]:
        """Return the normalized names of the projects, ascending."""
        try:
            listed = [item.name for item in self.path.iterdir()]
        except OSError as error:
            raise CatalogError(str(self.path), "", f"cannot be read: {error.strerror}") from None
        suffixes = (_SUFFIX,) if self.place is None else (_SUFFIX, _PARSED)
        names = (name.rpartition(".")[0] for name in listed if name.endswith(suffixes))
        return sorted(name for name in names if canonicalize_name(name) == name)

    def project(self, name: str) -> CatalogProject | None:
        """Return the entry of the project *name* (normalized), None without one."""
        path = self.path / f"{name}{_SUFFIX}"
        source = str(path) if self.place is None else f"{self.place}{path.name}"
        parsed = self.path / f"{name}{_PARSED}"
        if self.place is not None and parsed.is_file():
            return entry_from_tree(json.loads(parsed.read_bytes()), source)
        try:
            if isinstance(path, Path):
                data = safe_files.read_regular(path, limits.CATALOG_ENTRY_BYTES).data
            else:
                data = path.read_bytes()
        except (FileNotFoundError, KeyError):  # KeyError: not in the zip file
            return None
        except OSError as error:
            raise CatalogError(source, "", f"cannot be read: {error.strerror}") from None
        entry = read_entry(data, source)
        if entry.name != name:
            problem = f"is {entry.name!r}, but the file is named {path.name}: rename one of them"
            raise CatalogError(source, "project.name", problem)
        return entry


@dataclass(frozen=True)
class FileCatalog:
    """Entries of one file.

    Attributes:
        source: file or URL.
        trees: parsed entries by normalized name.
    """

    source: str
    trees: Mapping[str, Any]
    _read: dict[str, CatalogProject] = field(default_factory=dict, compare=False, repr=False)

    def names(self) -> Iterable[str]:
        """Return the normalized names of the projects, ascending."""
        return sorted({*self.trees, *self._read})

    def project(self, name: str) -> CatalogProject | None:
        """Return the entry of the project *name* (normalized), None without one."""
        if name not in self._read and name in self.trees:
            entry = entry_from_tree(self.trees[name], f"{self.source}: {name}")
            if entry.name != name:
                raise CatalogError(self.source, name, f"is the entry of {entry.name!r}")
            self._read[name] = entry
        return self._read.get(name)


def read_catalog(data: bytes, source: str) -> FileCatalog:
    """Read a file with the entry of one project (TOML), or with several (JSON).

    The latter is an object of ``catalog-version`` and ``projects``, what the TOML files hold by
    normalized name.

    Raises:
        CatalogError: it is neither, or larger than `CATALOG_BYTES`.
    """
    if data.lstrip()[:1] != b"{":
        entry = read_entry(data, source)
        return FileCatalog(source, {}, {entry.name: entry})
    if len(data) > limits.CATALOG_BYTES or limits.json_values(data) > limits.CATALOG_BYTES // 4:
        raise CatalogError(
            source, "", f"larger than {limits.CATALOG_BYTES} bytes, which are read at most"
        )
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CatalogError(source, "", f"not valid JSON: {error}") from None
    version, trees = tree.get("catalog-version"), tree.get("projects")
    if version != FORMAT_VERSION:
        problem = f"{shortened(version)} is not supported, only {FORMAT_VERSION!r}"
        raise CatalogError(source, "catalog-version", problem)
    if not isinstance(trees, dict) or len(trees) > limits.CATALOG_PROJECTS:
        problem = f"expected an object of at most {limits.CATALOG_PROJECTS} entries"
        raise CatalogError(source, "projects", problem)
    return FileCatalog(source, trees)


def open_catalog(path: Path) -> Catalog:
    """Return the catalogue in the directory or file *path*.

    Raises:
        CatalogError: it cannot be read.
    """
    if path.is_dir():
        return DirectoryCatalog(path)
    try:
        data = safe_files.read_regular(path, limits.CATALOG_BYTES).data
    except OSError as error:
        raise CatalogError(str(path), "", f"cannot be read: {error.strerror}") from None
    return read_catalog(data, str(path))


def write_catalog(catalog: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the file of several entries, from their parsed TOML files by normalized name."""
    tree = {"catalog-version": FORMAT_VERSION, "projects": dict(sorted(catalog.items()))}
    return json.dumps(tree, ensure_ascii=False, sort_keys=True) + "\n"


@dataclass(frozen=True)
class PreferredCatalog:
    """A catalogue with the user's mirrors, without projects that take non-variant wheels.

    Attributes:
        catalog: the catalogue itself.
        preferences: of the user.
    """

    catalog: Catalog
    preferences: Preferences
    _read: dict[str, CatalogProject | None] = field(default_factory=dict, compare=False, repr=False)

    def names(self) -> Iterable[str]:
        """Return the normalized names of the projects, ascending."""
        return [name for name in self.catalog.names() if not self._is_left_out(name)]

    def project(self, name: str) -> CatalogProject | None:
        """Return the entry of the project *name* (normalized), None without one.

        Raises:
            CatalogError: it cannot be read.
        """
        if self._is_left_out(name):
            return None
        if name not in self._read:
            entry = self.catalog.project(name)
            mirrors = self.preferences.catalog_mirrors
            self._read[name] = None if entry is None else entry.mirrored(mirrors)
        return self._read[name]

    def _is_left_out(self, name: str) -> bool:
        return self.preferences.forced.get(name) == user_preferences.NON_VARIANT_LABEL


def preferred_catalog(
    preferences: Preferences,
    fetch: Callable[[str], bytes],
    shipped: Catalog | None = None,
) -> Catalog | None:
    """Return the catalogue that *preferences* name, None for none.

    Args:
        preferences: of the user.
        fetch: returns what is at a URL, at most `CATALOG_BYTES`; its errors pass.
        shipped: the catalogue that is called `DEFAULT_CATALOG`; None for that of this package.

    Raises:
        CatalogError: it cannot be read.
    """
    name = preferences.catalog
    if name is None or not preferences.use_variants:
        return None
    if name == user_preferences.DEFAULT_CATALOG:
        catalog = shipped or shipped_catalog()
    elif user_preferences.is_catalog_path(name):
        catalog = _named_by_user(Path(name).expanduser(), preferences.catalog_origin)
    else:
        catalog = read_catalog(fetch(name), name)
    return PreferredCatalog(catalog, preferences)


def without_catalog(preferences: Preferences, error: CatalogError) -> str:
    """Return the line that the catalogue of *preferences* is left out because of *error*.

    Raises:
        CatalogError: the catalogue is on this machine, or the user does not allow it.
    """
    name = str(preferences.catalog)
    if name == user_preferences.DEFAULT_CATALOG or user_preferences.is_catalog_path(name):
        raise error
    if not preferences.allow_missing_sources:
        problem = f"{error.problem}; --allow-missing-sources goes on without it"
        raise CatalogError(error.source, error.path, problem) from None
    return f"The catalogue is left out: {error}"


class UserEntries:
    """The entries of a catalogue that count for a user.

    One does not where the user names one of its places as an index: that build is chosen then.

    Attributes:
        catalog: has the entries, None for none.
    """

    def __init__(
        self,
        catalog: Catalog | None,
        own: Iterable[str] = (),
        left_out: Callable[[str, str], object] = lambda *_: None,
    ) -> None:
        """Set up.

        Args:
            catalog: see above.
            own: URLs of the user's indexes and find-links pages.
            left_out: hears the project and the place of an entry that does not count, once.
        """
        self.catalog = catalog
        self._own = tuple(own)
        self._left_out = left_out
        self._entries: dict[str, CatalogProject | None] = {}

    def entry(self, name: str) -> CatalogProject | None:
        """Return the entry of the project *name* (normalized), None without one that counts.

        Raises:
            CatalogError: it cannot be read.
        """
        if self.catalog is None:
            return None
        if name not in self._entries:
            entry = self.catalog.project(name)
            place = None if entry is None else own_place(entry, self._own)
            if place is not None:
                logger.debug("Skipping the catalogue for %s: the user has one of its places", name)
                self._left_out(name, place)
            self._entries[name] = entry if place is None else None
        return self._entries[name]

    def together(self, name: str, other: str) -> bool:
        """Return whether two projects should have the same variant, as the catalogue says.

        Of one project: whether it has an entry.

        Raises:
            CatalogError: an entry cannot be read.
        """
        if name == other:
            return self.entry(name) is not None
        return any(
            (entry := self.entry(one)) is not None and two in entry.coherent
            for one, two in ((name, other), (other, name))
        )


def shipped_catalog() -> Catalog:
    """Return the catalogue that is called `DEFAULT_CATALOG`, of this package.

    >>> from variants_catalog.catalogs import shipped_catalog
    >>> torch = shipped_catalog().project("torch")
    >>> "cuda12.8" in {variant.label for variant in torch.variants}
    True
    """
    return DirectoryCatalog(resources.files(__package__) / "projects", "variants-catalog: ")


def _named_by_user(path: Path, origin: str) -> Catalog:
    """Return the catalogue at *path*; one that does not exist may be a name that is mistyped."""
    if not path.exists() and get_close_matches(path.name[:80], [user_preferences.DEFAULT_CATALOG]):
        where = f"{origin}={shortened(path.name)}"
        raise CatalogError(
            where, "", f"no such catalogue; did you mean {user_preferences.DEFAULT_CATALOG!r}?"
        )
    return open_catalog(path)


def no_variants(
    project: str,
    version: object,
    places: Sequence[str],
    *,
    older: object = None,
    other_platforms: bool = False,
    asked_catalog: bool = False,
) -> str:
    """Say that a version has no variants to choose among, and where some are.

    Args:
        project: normalized project name.
        version: that was looked at.
        places: URLs of the sources that have it.
        older: the newest version there with variants, None without one.
        other_platforms: this version has variants, but no wheel for the target.
        asked_catalog: the user's catalogue was asked already.
    """
    where = f" on {', '.join(places[:_MAX_PLACES])}" if places else ""
    if other_platforms:
        lack = f"{project} {version} has variants{where}, but no wheel of them is for the target"
    else:
        lack = f"{project} {version} has no variants{where}"
    ways = []
    if older is not None:
        ways.append(f"{project}=={older} there has some")
    if not asked_catalog and is_in_catalog(project):
        option = f"--variant-catalog {user_preferences.DEFAULT_CATALOG}"
        ways.append(f"the catalogue describes builds of it: add {option}")
    return f"{lack}; {'; '.join(ways)}" if ways else f"{lack}, and none are known elsewhere"


def not_admitted(project: str, version: object) -> str:
    """Say which builds a requirement with ``===`` leaves out, as it admits no local version."""
    return (
        f"the builds of {project} {version} with a local version, which === does not admit: "
        f"{project}=={version} takes the one that fits"
    )


def is_in_catalog(project: str) -> bool:
    """Return whether the catalogue that is called `DEFAULT_CATALOG` describes *project*.

    >>> from variants_catalog.catalogs import is_in_catalog
    >>> is_in_catalog("torch"), is_in_catalog("requests")
    (True, False)
    """
    try:
        return shipped_catalog().project(project) is not None
    except VariantError:  # it is damaged
        return False
