"""What the indexes of a command have of the versions that it exports.

A publisher may have the files of a project under another name: cupy's are those of cupy-cuda13x.
uv-variants installs them as the project's. Other installers get them under the publisher's name.
Where the lock has files of both names, for different platforms, each name has its own marker.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from packaging.utils import canonicalize_name

from pep_variants.internal import Term, all_of, without_userinfo
from variants_proxy.internal import bare_url, group_markers

from ..errors import ExportFailed, ProxyFailed
from ..site_packages import Installed

if TYPE_CHECKING:
    from ..indexes import UserIndex
    from ..locked_variants import Lock
    from ..proxy_client import Choices

_MOST_LABELS = 6
_STRONG = ("sha256", "sha384", "sha512")

Shown = tuple["str | None", str]
"""Label and plain filename of a wheel."""


class IndexWheel(NamedTuple):
    """A wheel of an index.

    Attributes:
        filename: with the label.
        plain: without it.
        label: None for a wheel without one.
        url: its own URL.
        hashes: hexadecimal digests by algorithm, strong ones only.
        size: in bytes, None if unknown.
        upload_time: as the index spells it, None if unknown.
        requires: digest of its dependencies, None if they could not be read.
        served: SHA-256 of the wheel as uv-variants installs it: with variant markers evaluated,
            or what the catalogue changes.
        marked: whether uv-variants rewrites it, so that `served` is not in `hashes`.
        published: its own name where the catalogue gives it the label, else None.
    """

    filename: str
    plain: str
    label: str | None
    url: str
    hashes: Mapping[str, str]
    size: int | None
    upload_time: str | None
    requires: str | None
    served: str | None
    marked: bool
    published: str | None = None

    @classmethod
    def read(cls, tree: Mapping[str, Any]) -> IndexWheel:
        """Return the wheel in a report of `variants_proxy.pages.deliveries`."""
        hashes = {kind: tree["hashes"][kind] for kind in _STRONG if kind in tree["hashes"]}
        fields = {key.replace("-", "_"): value for key, value in tree.items()}
        return cls(**{**fields, "url": without_userinfo(tree["url"]), "hashes": hashes})

    @property
    def origin(self) -> str:
        """The publisher's normalized name for it, empty if that is the project's."""
        texts = (self.plain, self.published or self.plain)
        own, name = (canonicalize_name(text.split("-", 1)[0]) for text in texts)
        return name if name != own else ""

    @property
    def shown(self) -> Shown:
        """What a lock has of it."""
        return self.label, self.plain

    @property
    def digests(self) -> set[str]:
        """Its hashes, as requirements have them."""
        return {f"{kind}:{value}" for kind, value in self.hashes.items()}


class IndexRelease(NamedTuple):
    """The wheels of one version.

    Attributes:
        documents: variant metadata, see `pep_variants.lock.lock_selection.write_table`.
        wheels: in the order of the index.
    """

    documents: Sequence[Mapping[str, Any]]
    wheels: Sequence[IndexWheel]

    def with_dependencies_of(self, locked: Collection[Shown]) -> tuple[list[IndexWheel], list[str]]:
        """Return the wheels that depend on what locked ones do, and the labels of the others.

        A wheel is compared with the locked wheel for the same tags, which is what a machine that
        takes it would have taken. Dependencies that could not be read count as other ones.

        Args:
            locked: label and plain filename.
        """
        fixed = [each for each in self.wheels if each.shown in locked]
        by_plain: dict[str, set[str | None]] = {}
        for wheel in fixed:
            by_plain.setdefault(wheel.plain, set()).add(wheel.requires)
        every = set().union(*by_plain.values())
        kept = [
            wheel
            for wheel in self.wheels
            if wheel.shown in locked
            or (wheel.requires is not None and wheel.requires in by_plain.get(wheel.plain, every))
        ]
        kept = [wheel for wheel in kept if not wheel.origin]
        known = {wheel.label for wheel in (*kept, *fixed)}
        labels = dict.fromkeys(wheel.label or "" for wheel in self.wheels)
        return kept, [label for label in labels if label and label not in known]


@dataclass(frozen=True)
class Part:
    """The files of a package that have one name.

    Attributes:
        name: normalized, that of the publisher; empty for the package's own files.
        version: as published.
        where: environments that they are for.
        wheels: as the publisher has them; none of the package's own files.
    """

    name: str
    version: str
    where: Term | bool
    wheels: Sequence[IndexWheel] = ()

    def marker(self, given: str) -> str:
        """Return the marker in the export, where the package has the marker *given*."""
        both = all_of((Term(given, loose=" or " in given) if given else True, self.where))
        return both.text if isinstance(both, Term) else ""


def parts_of(
    release: IndexRelease, version: str, shown: Sequence[Shown], *, has_others: bool = False
) -> list[Part]:
    """Return the parts of a package, its own files last; none if they all are its own.

    Args:
        release: its version.
        version: as it is in the export.
        shown: the wheels that the export has.
        has_others: whether it has files besides, such as a source distribution.
    """
    known = {(wheel.label, wheel.plain): wheel for wheel in release.wheels}
    wheels = [known.get(pair) for pair in shown]
    origins = [wheel.origin if wheel is not None else "" for wheel in wheels]
    names = list(dict.fromkeys(filter(None, origins)))
    has_own = has_others or "" in origins
    where: Mapping[str, Term | bool] = {}
    if names and (has_own or len(names) > 1):
        where = group_markers([plain for _, plain in shown], origins, "") or {}
    found = []
    for name in names:
        own = [wheel for wheel in wheels if wheel is not None and wheel.origin == name]
        published = str(own[0].published).split("-", 2)[1].replace("_", "-")
        found.append(Part(name, published, where.get(name, True), own))
    if names and has_own and where.get("") is not False:
        found.append(Part("", version, where.get("", True)))
    return found


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
        index, shown, has_others = "", list[Shown](), self.is_universal
        if lock is not None:
            index = _index_of(name, lock)
            shown, has_others = lock.files(name, version) if index else ([], False)
        else:
            self.choices.ask([name])
            choice = self.choices.of_installed(Installed(name, version, None))
            if choice is not None and choice.origins:
                rows = (row for row in choice.verdicts if row.verdict in ("chosen", "locked"))
                taken = next((row.label for row in rows), "")
                files = choice.labels.items()
                shown = [(label, plain) for plain, label in files
                         if self.is_universal or label == taken]  # fmt: skip
        if not shown:
            return []
        release = self._release(name, version, index)
        found = parts_of(release, version, shown, has_others=has_others)
        if names := " or ".join(part.name for part in found if part.name):
            self.warn(f"{name} {version} is published as {names}, which is exported in its place")
        return found

    def locked(
        self, name: str, version: str, index: str, wheels: Sequence[Shown]
    ) -> tuple[IndexRelease, list[IndexWheel]]:
        """Return the release of a package with variants, and its wheels that are exported.

        Args:
            name, version: of the package.
            index: URL of its index.
            wheels: those that are locked.

        Raises:
            ExportFailed: the index has no such files any more, or cannot be asked.
        """
        tags = {"-".join(plain.removesuffix(".whl").split("-")[-3:-1]) for _, plain in wheels}
        found = self._release(name, version, index, tuple(sorted(tags)))
        if not found.wheels:
            raise self._gone(name, version)
        kept, labels = found.with_dependencies_of(wheels)
        if labels:
            shown = ", ".join(labels[:_MOST_LABELS])
            more = f" and {len(labels) - _MOST_LABELS} more" if len(labels) > _MOST_LABELS else ""
            self.warn(
                f"{name} {version}: without {shown}{more}, which have other dependencies than "
                "those that are exported; export on such a machine, or see variants resolve"
            )
        return found, kept

    def hashes(self, name: str, version: str, lock: Lock | None) -> set[str]:
        """Return the hashes of all labels of a version, empty for one without variants.

        Args:
            name: normalized name.
            version: as it is in the export.
            lock: that is exported, None without one.

        Raises:
            ExportFailed: the index cannot be asked about variants of a lock.
        """
        index = _index_of(name, lock)
        if lock is not None and not index:
            return set()
        found = self._release(name, version, index, served=True)
        if lock is not None and not found.wheels:
            raise self._gone(name, version)
        if lock is None and all(wheel.label is None for wheel in found.wheels):
            return set()
        # Where hashes are given, nothing is renamed.
        wheels = [wheel for wheel in found.wheels if not wheel.origin]
        if any(wheel.marked and wheel.served is None for wheel in wheels):
            self.warn(
                f"{name} {version}: there are hashes for pip, but not of all wheels as uv-variants "
                "installs them on another kind of machine: export there as well"
            )
        if any(not wheel.hashes for wheel in wheels):
            self.warn(f"{name} {version}: the index has no hash of some of its wheels")
        served = {f"sha256:{wheel.served}" for wheel in wheels if wheel.served is not None}
        return served.union(*(wheel.digests for wheel in wheels))

    def _release(
        self,
        name: str,
        version: str,
        url: str,
        tags: tuple[str, ...] = (),
        *,
        served: bool = False,
    ) -> IndexRelease:
        key = name, version, url, tags, served
        if key not in self._known:
            known = self.indexes.items()
            index = next((each for each, at in known if bare_url(at.url) == bare_url(url)), "")
            try:
                tree = self.choices.client.release_files(
                    name, version, index=index, tags=tags, served=served
                )
            except ProxyFailed as error:
                raise ExportFailed(f"{error}; nothing was written") from None
            tree = tree or {"documents": (), "wheels": ()}
            wheels = [IndexWheel.read(item) for item in tree["wheels"]]
            self._known[key] = IndexRelease(tree["documents"], wheels)
        return self._known[key]

    def _gone(self, name: str, version: str) -> ExportFailed:
        which = "" if self.has_catalog else ", or name the catalogue that the lock was made with"
        return ExportFailed(
            f"{name} {version}: the index has no such files any more, or cannot be asked: nothing "
            f"was written; lock again with uv-variants lock{which}"
        )


def _index_of(name: str, lock: Lock | None) -> str:
    """Return the index that the variants of a project are locked from, empty for none."""
    wheels = lock.wheels if lock is not None else ()
    return next((wheel.index for wheel in wheels if wheel.project == name), "")
