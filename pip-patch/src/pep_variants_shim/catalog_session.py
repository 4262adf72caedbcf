"""The catalogue in one pip command: opened when it is needed, and never the reason for a failure.

Without a catalogue in the settings nothing of it is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pip._vendor.packaging.utils import canonicalize_name
from pip._vendor.packaging.version import Version

from .distributions import label_of
from .errors import Fault, logger
from .guard import switch

if TYPE_CHECKING:
    from pep_variants.choose.preferences import Preferences
    from pep_variants.model.metadata import Metadata
    from variants_catalog.model import CatalogProject, PublishedFile
    from variants_catalog.store import Catalog

    from .catalog_files import CatalogFiles
    from .variant_options import VariantOptions

Found = TypeVar("Found")

_hashed: ContextVar[bool] = ContextVar("hashed", default=False)


@contextmanager
def with_hashes(given: object) -> Iterator[None]:
    """Set whether the user gives hashes of the project that pip's finder is asked for."""
    token = _hashed.set(bool(given))
    try:
        yield
    finally:
        _hashed.reset(token)


class SessionCatalog:
    """What the commands of one finder take from the catalogue."""

    def __init__(
        self, options: VariantOptions, finder: Any, note_metadata: Callable[[Any], None]
    ) -> None:
        """Set up.

        Args:
            options: variant options of the command.
            finder: pip's ``PackageFinder``.
            note_metadata: keeps a link to a file of variant metadata.
        """
        self._options = options
        self._finder = finder
        self._files: CatalogFiles | None = None
        self._opened = False
        self._note_metadata = note_metadata
        self._listing: dict[str, list[tuple[Any, int]]] = {}

    @property
    def wanted(self) -> bool:
        """Whether the settings name a catalogue."""
        preferences = self._options.preferences
        return preferences is not None and preferences.catalog is not None

    def note_listed(self, project: str, links: Iterable[Any], page: str) -> None:
        """Keep the *links* that *page* of one of the user's indexes lists.

        The page is empty for files of ``--find-links``, which are the user's own before any index.
        """
        if self.wanted:
            places = enumerate(self._finder.index_urls, 1)
            position = next(
                (number for number, url in places if page.startswith(f"{url.rstrip('/')}/")), 0
            )
            found = self._listing.setdefault(canonicalize_name(project), [])
            found += ((link, position) for link in links)

    def candidates(
        self, project: str, own: list[Any], listed: Callable[[str], list[Any]]
    ) -> list[Any]:
        """Return *own*, pip's candidates of *project*, with those that the catalogue adds.

        Args:
            project: its name.
            own: what pip found on the user's indexes.
            listed: returns what pip finds there of another project.

        Raises:
            CatalogError: the catalogue cannot be read.
            Fault: an internal error, if the user asked for a specific variant of the project.
        """
        name = canonicalize_name(project)

        def add(files: CatalogFiles) -> list[Any]:
            found = files.candidates(name, own, listed, hashed=_hashed.get())
            if found is not own:
                switch.used = True
            return found

        return self._guarded(add, own, forced=name in self._options.forced)

    def entry(self, project: str) -> CatalogProject | None:
        """Return the entry of the project, None without one."""
        name, none = canonicalize_name(project), cast("CatalogProject | None", None)
        return self._guarded(lambda files: files.entry(name), none)

    def together(self, project: str, other: str) -> bool:
        """Return whether two projects should have the same label, see `agreement.Together`."""
        return self._guarded(lambda files: files.together(project, other), False)

    def recognises(self, project: str) -> bool:
        """Return whether `label_of` knows every installed variant of the project."""
        entry = self.entry(project)
        return entry is not None and all(
            item.place is None or item.local is not None for item in entry.variants
        )

    def label_of(self, dist: Any, others: Any) -> str:
        """Return the label of an installed distribution, empty if it is not known.

        Args:
            dist: pip's distribution.
            others: all that are installed, by normalized name.
        """
        return label_of(dist) or next(
            (file.label for _, file in self._as_published(dist, others)), ""
        )

    def installed(self, dists: Mapping[str, Any]) -> Iterator[tuple[str, Metadata]]:
        """Yield project and metadata of the *dists*, by name, that only the catalogue describes."""
        for name, dist in dists.items():
            for entry, file in () if label_of(dist) else self._as_published(dist, dists):
                yield name, entry.metadata([file])

    def _as_published(
        self, dist: Any, others: Any
    ) -> Iterator[tuple[CatalogProject, PublishedFile]]:
        entry = self.entry(dist.canonical_name)
        if entry is not None:
            none = cast("PublishedFile | None", None)
            file = self._guarded(lambda files: files.installed(entry, dist, others), none)
            if file is not None:
                yield entry, file

    def release(self, project: str, version: Any) -> Any:
        """Return *version* without its local part if the catalogue has an entry of *project*."""
        return version if self.entry(project) is None else Version(version.public)

    def report_unavailable(self) -> None:
        """Print what cannot be had, once: a line for each host."""
        if self._files is None or not self._files.unavailable:
            return
        from variants_catalog.places import by_host

        found, self._files.unavailable = self._files.unavailable, []
        for line in map(str, by_host(found)):
            logger.warning("%s", line)

    def _guarded(
        self, use: Callable[[CatalogFiles], Found], otherwise: Found, *, forced: bool = False
    ) -> Found:
        """Return what *use* returns, *otherwise* without a catalogue or after a fault."""
        if not self.wanted or (self._opened and self._files is None):
            return otherwise
        try:
            if not self._opened:
                self._opened = True
                self._files = self._open()
            return otherwise if self._files is None else use(self._files)
        except Exception as error:
            if _is_for_the_user(error):
                raise
            self._files = None
            if forced:
                raise Fault(error) from error
            logger.debug("Internal error in pep-variants-shim", exc_info=error)
            logger.warning("The catalogue is ignored. %s", Fault(error))
            return otherwise

    def _open(self) -> CatalogFiles | None:
        if self._finder.search_scope.no_index:
            return None
        from pep_variants.gc_pause import paused

        with paused(True):
            from .catalog_files import CatalogFiles

        preferences = self._options.preferences
        assert preferences is not None
        catalog = self._read(preferences)
        if catalog is None:
            return None
        return CatalogFiles(catalog, self._finder, self._listing, self._note_metadata)

    def _read(self, preferences: Preferences) -> Catalog | None:
        """Return the catalogue, None with a warning if its server does not give it."""
        from pip._internal.exceptions import PipError
        from pip._vendor.urllib3.exceptions import HTTPError

        from pep_variants.errors import redacted
        from variants_catalog.opening import preferred_catalog

        from .catalog_pages import fetch_catalog, reason

        network = self._finder._link_collector.session
        try:
            return preferred_catalog(
                preferences, lambda url: fetch_catalog(network, url), _installed_catalog()
            )
        # Errors of requests are OSErrors; those of urllib3, for bodies that break off, are not.
        except (OSError, PipError, HTTPError) as error:
            name = redacted(str(preferences.catalog))
            logger.warning("The catalogue %s is left out: %s", name, reason(error))
            return None


def _installed_catalog() -> Catalog | None:
    """Return the catalogue that is installed beside the shim, to be updated without it."""
    from importlib.util import find_spec
    from pathlib import Path

    from variants_catalog.store import DirectoryCatalog

    spec = find_spec("variants_catalog")
    folders = (spec and spec.submodule_search_locations) or ()
    return next((DirectoryCatalog(Path(folder) / "projects") for folder in folders), None)


def _is_for_the_user(error: Exception) -> bool:
    """Return whether *error* is about input, or one of pip's own."""
    from pip._internal.exceptions import PipError

    from pep_variants.errors import VariantError

    return isinstance(error, (PipError, VariantError))
