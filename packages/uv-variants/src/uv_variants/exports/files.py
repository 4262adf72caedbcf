"""What the indexes of a command have of the versions that it exports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import ExportFailed, ProxyFailed
from ..site_packages import Installed
from .origins import Part, parts
from .release import IndexRelease, python_tags

if TYPE_CHECKING:
    from ..indexes import UserIndex
    from ..locked_variants import Lock
    from ..proxy_client import Choices
    from .pylock import LockedVariants

_MOST_LABELS = 6


@dataclass(frozen=True)
class ExportedFiles:
    """The releases of one export, each asked for once.

    Attributes:
        choices: of the proxy.
        indexes: of the command, by their names in the proxy.
        warn: prints a line.
        has_catalog: whether there may be builds of a catalogue.
        is_universal: whether a command that has no lock resolves for all platforms.
    """

    choices: Choices
    indexes: Mapping[str, UserIndex]
    warn: Callable[[str], None]
    has_catalog: bool = False
    is_universal: bool = False
    _known: dict[tuple[object, ...], IndexRelease] = field(default_factory=dict)
    _said: set[str] = field(default_factory=set)

    def prepare(self, names: Iterable[str]) -> None:
        """Ask for the choices for projects (normalized names) at once, not one by one."""
        if self.has_catalog:
            self.choices.ask(names)

    def parts(self, name: str, version: str, lock: Lock | None) -> list[Part]:
        """Return under which names plain installers get a version; nothing for its own alone.

        Args:
            name: normalized name.
            version: as it is in the export.
            lock: that is exported, None without one.

        Raises:
            ExportFailed: the index cannot be asked.
        """
        if not self.has_catalog:
            return []
        if lock is not None:
            shown, has_others = lock.files(name, version)
            locked = [wheel for wheel in lock.wheels if wheel.project == name]
            if not locked:
                return []
            release = self._release(name, version, locked[0].index, ())
            return self._noted(name, version, parts(release, shown, has_others=has_others))
        self.choices.ask([name])
        choice = self.choices.of_installed(Installed(name, version, None))
        if choice is None or not choice.origins:
            return []
        taken = (row.label for row in choice.verdicts if row.verdict in ("chosen", "locked"))
        found = parts(
            self._release(name, version, "", ()),
            [(label, plain) for plain, label in choice.labels.items()],
            has_others=self.is_universal,
            label=None if self.is_universal else next(taken, ""),
        )
        return self._noted(name, version, found)

    def _noted(self, name: str, version: str, found: list[Part]) -> list[Part]:
        """Return *found* after a line about it."""
        names = " or ".join(part.name for part in found if part.name)
        if names:
            self._say(f"{name} {version} is published as {names}, which is exported in its place")
        return found

    def of_locked(self, locked: LockedVariants) -> IndexRelease:
        """Return the release of a package with variants.

        Raises:
            ExportFailed: the index has no such files any more, or cannot be asked.
        """
        tags = sorted({python_tags(plain) for _, plain in locked.wheels})
        found = self._release(locked.name, locked.version, locked.index, tuple(tags))
        if not found.wheels:
            raise self._gone(locked.name, locked.version)
        return found

    def hashes(self, name: str, version: str, lock: Lock | None) -> set[str]:
        """Return the hashes of all labels of a version, empty for one without variants.

        Args:
            name: normalized name.
            version: as it is in the export.
            lock: that is exported, None without one.

        Raises:
            ExportFailed: the index cannot be asked about variants of a lock.
        """
        index = ""
        if lock is not None:
            known = [wheel for wheel in lock.wheels if wheel.project == name]
            if not known:
                return set()
            index = known[0].index
        found = self._release(name, version, index, (), served=True)
        if lock is not None and not found.wheels:
            raise self._gone(name, version)
        if lock is None and not found.has_variants:
            return set()
        # Where hashes are given, nothing is renamed.
        wheels = [wheel for wheel in found.wheels if not wheel.origin]
        unknown = [wheel for wheel in wheels if wheel.marked and wheel.served is None]
        if unknown:
            self._say(
                f"{name} {version}: there are hashes for pip, but not of all wheels as uv-variants "
                "installs them on another kind of machine: export there as well"
            )
        if any(not wheel.hashes for wheel in wheels):
            self._say(f"{name} {version}: the index has no hash of some of its wheels")
        return {
            *(f"{kind}:{value}" for wheel in wheels for kind, value in wheel.hashes.items()),
            *(f"sha256:{wheel.served}" for wheel in wheels if wheel.served is not None),
        }

    def note_left_out(self, locked: LockedVariants, labels: list[str]) -> None:
        """Print which labels of a package the export does not list."""
        shown = ", ".join(labels[:_MOST_LABELS])
        more = f" and {len(labels) - _MOST_LABELS} more" if len(labels) > _MOST_LABELS else ""
        self._say(
            f"{locked.name} {locked.version}: without {shown}{more}, which have other dependencies "
            "than those that are exported; export on such a machine, or see variants resolve"
        )

    def _release(
        self, name: str, version: str, index: str, tags: tuple[str, ...], *, served: bool = False
    ) -> IndexRelease:
        key = name, version, index, tags, served
        if key not in self._known:
            try:
                tree = self.choices.client.release_files(
                    name, version, index=self._name_of(index), tags=tags, served=served
                )
            except ProxyFailed as error:
                raise ExportFailed(f"{error}; nothing was written") from None
            empty = {"documents": (), "wheels": ()}
            self._known[key] = IndexRelease.read(name, version, tree or empty)
        return self._known[key]

    def _gone(self, name: str, version: str) -> ExportFailed:
        which = "" if self.has_catalog else ", or name the catalogue that the lock was made with"
        return ExportFailed(
            f"{name} {version}: the index has no such files any more, or cannot be asked: nothing "
            f"was written; lock again with uv-variants lock{which}"
        )

    def _name_of(self, url: str) -> str:
        """Return the name of the index at *url*, empty if it is not one of the command's."""
        for name, index in self.indexes.items():
            if _place(index.url) == _place(url):
                return name
        return ""

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self.warn(text)


def _place(url: str) -> str:
    """Return a URL without credentials, fragment and last slash, for comparisons."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}".lower()
