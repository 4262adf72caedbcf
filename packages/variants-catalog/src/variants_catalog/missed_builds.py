"""Builds of the shipped catalogue that are missed where it is off.

An installer then takes a project's own file, which may not run on the GPU that is here, or not use
it. `missed_builds` judges that from entries and names, without any request; clients print the line
of one once a day, see `line_of_day`.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from packaging.version import Version

from pep_variants import machines, safe_files
from pep_variants import metadata as variant_metadata
from pep_variants import selection as wheel_selection
from pep_variants.machines import Platform
from pep_variants.metadata import Metadata, Properties
from pep_variants.preferences import Preferences
from pep_variants.selection import Ranking

from ._catalogs import shipped_catalog
from ._entry_checks import sample_versions
from ._recognition import installed_build
from ._unfit_builds import other_build, unfit_builds
from .entries import PLACEHOLDER, CatalogProject, CatalogVariant, PublishedFile
from .listings import own_place

__all__ = [
    "MissedBuild", "Taken", "line_of_day", "missed_build", "missed_builds", "other_build",
    "platform_tags", "unfit_builds",
]  # fmt: skip

logger = logging.getLogger(__name__)

_DAY = 86_400.0
_OWN = "own"


@dataclass(frozen=True)
class Taken:
    """The file of a project that an installer takes without the catalogue, or has installed.

    Attributes:
        version: of the file.
        platforms: its platform tags; empty for a source distribution.
        requires: its ``Requires-Dist`` values.
        beside: versions of what is installed with it, by normalized name; None for unknown ones.
        admits: whether the requirements admit a version.
        listed: versions that the user's indexes have for this machine, None if that is not known.
        indexes: URLs of the user's indexes and find-links pages.
    """

    version: Version
    platforms: Sequence[str]
    requires: Sequence[str] = ()
    beside: Mapping[str, Version | None] = field(default_factory=dict)
    admits: Callable[[Version], bool] = lambda _: True
    listed: Collection[Version] | None = None
    indexes: Iterable[str] = ()


@dataclass(frozen=True)
class MissedBuild:
    """A build for the accelerator that is here, of a project that does not get it.

    Attributes:
        project: normalized name.
        version: what is taken instead.
        lack: why that does not do, as a clause.
        label: of the build; empty if the name of its file decides.
        is_other: whether it is of another release, as the one that is taken has none.
    """

    project: str
    version: Version
    lack: str
    label: str
    is_other: bool

    def text(self, how: str) -> str:
        """Return it as a line.

        Args:
            how: what to type, such as ``COMMAND, then COMMAND``.
        """
        release = "another release" if self.is_other else ""
        which = " of ".join(filter(None, (self.label, release)))
        more = f" ({which})" if which else ""
        return f"{self.project} {self.version} {self.lack}: {how}, takes a build that does{more}"


def platform_tags(filename: str) -> list[str]:
    """Return the platform tags of a wheel, nothing for a source distribution.

    >>> from variants_catalog.missed_builds import platform_tags
    >>> platform_tags("tool-1.0-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl")
    ['manylinux2014_x86_64', 'manylinux_2_17_x86_64']
    """
    is_wheel = filename.endswith(".whl")
    return filename.removesuffix(".whl").rpartition("-")[2].split(".") if is_wheel else []


def missed_builds(
    taken: Iterable[tuple[str, Taken | None]],
    machine: str,
    platform: Callable[[Metadata], Platform],
    preferences: Preferences,
) -> Iterator[MissedBuild]:
    """Yield the `missed_build` of projects of the shipped catalogue, nothing where one is on.

    Args:
        taken: what is taken, by normalized name; None where that is not known, or named by the
            user. The other arguments are as of `missed_build`.
    """
    if preferences.catalog is not None or not preferences.use_variants:
        return
    catalog = shipped_catalog()
    for project, item in taken:
        entry = catalog.project(project) if item is not None else None
        if item is None or entry is None:
            logger.debug("%s: no file or entry to judge by", project)
            continue
        missed = missed_build(entry, item, machine, platform, preferences)
        if missed is not None:
            yield missed


def missed_build(
    entry: CatalogProject,
    taken: Taken,
    machine: str,
    platform: Callable[[Metadata], Platform],
    preferences: Preferences,
) -> MissedBuild | None:
    """Return the build of *entry* that uses the accelerator which *taken* does not use.

    None if it does, without an accelerator, where the user has chosen a build by an index, a label
    or another name of the project, and where nothing tells what *taken* is: it was built on this
    machine, or the entry does not say what the project's own wheels are.

    Args:
        entry: of the project, in the catalogue that is off.
        taken: what is taken without it.
        machine: platform tag of the target, such as ``linux_x86_64``.
        platform: gives the supported values for metadata, e.g. `Detector.platform`.
        preferences: of the user.
    """
    version, tags = taken.version, taken.platforms
    is_chosen = entry.name in preferences.forced or own_place(entry, taken.indexes) is not None
    if is_chosen or not taken.beside.keys().isdisjoint(entry.targets):
        return None
    own = (
        installed_build(entry, version, tags, taken.requires, taken.beside, machine)
        if tags
        else None
    )
    was_built_here = not version.local and any(tag.startswith("linux_") for tag in tags)
    if was_built_here or (own is None and version.local):
        return None
    builds = [item for item in entry.variants if _is_for(item, machine, taken.beside)]
    files = [_file(str(number), version, _accelerated(item)) for number, item in enumerate(builds)]
    if own is not None and own.properties:
        files.append(_file(_OWN, version, own.properties))

    def ranked(files: Sequence[PublishedFile]) -> Ranking:
        metadata = entry.metadata(files)
        return wheel_selection.rank(metadata, platform(metadata), preferences)

    def works(item: CatalogVariant, version: Version) -> bool:
        """Whether no fault that *version* is known for is one on this machine."""
        if not item.faults(version):
            return True
        return bool(ranked([_file("0", version, _accelerated(item, version))]).labels)

    ranking = ranked(files)
    if _OWN in ranking.labels:
        return None
    fitting = [builds[int(label)] for label in ranking.labels]
    found, is_other = _best(entry, fitting, works, taken)
    if found is None or (tags and own is None and not _tells_own(entry, found, version)):
        return None
    namespace = next(name for name in _accelerated(found) if name in machines.ACCELERATORS)
    device = f"the {machines.BUILTIN_NAMESPACES[namespace].vendor.device} that is here"
    if not tags:
        lack = f"has no wheel that uses {device}"
    elif own is not None and namespace in own.properties:
        lack = f"does not run on {device} ({wheel_selection.why_not(ranking, _OWN)[0]})"
    else:
        lack = f"does not use {device}"
    label = "" if PLACEHOLDER.search(found.label) else found.label
    return MissedBuild(entry.name, version, lack, label, is_other)


def _best(
    entry: CatalogProject,
    fitting: Sequence[CatalogVariant],
    works: Callable[[CatalogVariant, Version], bool],
    taken: Taken,
) -> tuple[CatalogVariant | None, bool]:
    """Return which of the *fitting* builds, best first, is taken; whether of another release.

    It is one that *works* in that release.
    """
    is_placeholder = entry.placeholder is not None and taken.version in entry.placeholder
    if is_placeholder:
        return next(iter(fitting), None), False

    def is_build(item: CatalogVariant, version: Version) -> bool:
        return item.admits(version) and works(item, version)

    own = next((item for item in fitting if is_build(item, taken.version)), None)
    if own is not None or not entry.before_version:
        return own, False
    listed = sample_versions(fitting) if taken.listed is None else taken.listed
    for version in sorted(filter(taken.admits, listed), reverse=True):
        for item in fitting if not version.is_prerelease else ():
            if is_build(item, version):
                return item, True
    return None, False


def _tells_own(entry: CatalogProject, build: CatalogVariant, version: Version) -> bool:
    """Return whether a wheel of the project that is no variant of *entry* is one for CPUs.

    Either the *build* has another name or needs an extra, or the wheels for other platforms are.
    """
    return build.is_redirect or any(
        entry.is_own(item) and item.admits(version) for item in entry.variants
    )


def _is_for(item: CatalogVariant, machine: str, beside: Mapping[str, Version | None]) -> bool:
    """Return whether a variant is for accelerators, for *machine*, and for what is *beside* it."""
    if not _accelerated(item):
        return False
    return item.is_for([machine]) and all(
        needed.allows(beside[needed.project])
        for needed in wheel_selection.abi_dependencies(item.known_properties())
        if beside.get(needed.project) is not None
    )


def _accelerated(item: CatalogVariant, version: Version | None = None) -> Properties:
    """Return the properties of a variant about accelerators, and the order among such builds.

    Those of *version*, without the GPUs on which it has a known fault.
    """
    found = {
        name: each
        for name, each in item.known_properties(version).items()
        if name != variant_metadata.ABI_DEPENDENCY
    }
    return {} if machines.ACCELERATORS.keys().isdisjoint(found) else found


def _file(label: str, version: Version, properties: Properties) -> PublishedFile:
    return PublishedFile("", "", version, label, properties)


def line_of_day(
    missed: Iterable[MissedBuild], enable: str, again: str, environ: Mapping[str, str]
) -> str:
    """Return the line about the first of *missed* that was not among those of another call today.

    Empty if all were. Without a cache that can be written none ever was.

    Args:
        missed: of one command; the others are not told of either for a day.
        enable: command that switches the catalogue on.
        again: what to do then, empty for nothing.
        environ: environment variables.
    """
    folder = safe_files.cache_directory(environ, "said")
    line = ""
    for build in missed:
        said = f"{build.project} {build.version} {build.lack} {enable}"
        path = folder / hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        with contextlib.suppress(OSError):
            if 0 <= time.time() - path.stat().st_mtime < _DAY:
                continue
        line = line or build.text(", ".join(filter(None, (enable, again))))
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.touch(mode=0o600)
            os.utime(path)
    return line
