"""Files of a page that a client is offered: the result of the selection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from packaging.utils import parse_sdist_filename
from packaging.version import Version

from pep_variants import labels as wheel_labels
from pep_variants.markers import VariantContext
from pep_variants.selection import Admitted, NewestBuild, Selection
from variants_index import target as target_machines
from variants_index.pages import PageFile

from .._upstream.releases import FetchedPage, PageRelease, published, wheel_version
from ..settings import Upstream
from .wheel_environments import pythons_of, runs_on


@dataclass(frozen=True)
class Offer:
    """A file on the proxy's page.

    Attributes:
        file: of the upstream.
        filename: the plain filename on the page.
        label: of the variant, None for a file without label.
        context: for variant markers; None for files without markers, as far as known.
        refused: whether it is listed though it does not fit; requests for it are answered with the
            reason.
    """

    file: PageFile
    filename: str
    label: str | None = None
    context: VariantContext | None = None
    refused: bool = False


@dataclass(frozen=True)
class VersionDecision:
    """The decision on one version, with its reasons.

    Attributes:
        release: the version.
        selection: among the wheels for the machine's platform.
        offers: selected files by plain filename.
        locked: those of them that a lock file has.
        kept: labels of those that are for the machine's platform, None for a wheel without.
        agrees: name of the project whose variant it has in place of the best one; empty for none.
        unhashed: label of the best variant if it is not chosen because of hashes that are given.
        exact: whether requirements name the very builds of it that count; the names of *offers*
            are their publishers' then.
    """

    release: PageRelease
    selection: Selection[PageFile]
    offers: Mapping[str, Offer]
    locked: Mapping[str, Offer] = field(default_factory=dict)
    kept: tuple[str | None, ...] = ()
    agrees: str = ""
    unhashed: str = ""
    exact: bool = False

    @property
    def admitted(self) -> Admitted:
        """The version as one of several, among which a build for an accelerator is looked for."""
        labels = [wheel_labels.split_label(file.filename)[1] or "" for file in self.release.wheels]
        return Admitted(self.release.version, labels, lambda: self.selection)

    @property
    def is_yanked(self) -> bool:
        """Whether what is chosen is yanked."""
        chosen = self.selection.chosen
        return chosen is not None and chosen.item.yanked is not None

    def is_for(self, python: str) -> bool:
        """Return whether what is chosen can be installed for a version of Python, empty for any."""
        chosen = self.selection.chosen
        return chosen is None or any(
            runs_on(offer.filename, offer.file.requires_python, python)
            for offer in self.offers.values()
            if offer.label == chosen.label
        )


@dataclass(frozen=True)
class Choice:
    """The selected files of a project.

    Attributes:
        offers: in the order of the page.
        decisions: newest version first.
        held: versions that an older one with a build for the accelerator goes before, with that.
    """

    offers: tuple[Offer, ...]
    decisions: tuple[VersionDecision, ...] = ()
    held: Mapping[Version, NewestBuild] = field(default_factory=dict)

    def yanked(self, offer: Offer, name: str) -> str | None:
        """Return why *offer* is yanked (PEP 592) under its *name* on a page, None if it is not.

        Installers take the highest version that is not. One that has no build for the accelerator
        is yanked where an older one has, so that only who names it gets it. Not a wheel for a
        Python that the build is not for.
        """
        build = self.held.get(version) if (version := version_in(offer.filename)) else None
        if build is None or offer.file.yanked is not None or not self._is_replaced(offer, build):
            return offer.file.yanked
        return build.why_yanked(version_in(name))

    def _is_replaced(self, offer: Offer, build: NewestBuild) -> bool:
        """Return whether *build* can be installed where *offer* can, as far as Pythons go."""
        if not offer.filename.endswith(".whl"):
            return True
        if build.version not in self._pythons:
            self._pythons[build.version] = {
                minor
                for each in self.offers
                if each.label == build.label and version_in(each.filename) == build.version
                for minor in pythons_of(each.filename, each.file.requires_python)
            }
        own = pythons_of(offer.filename, offer.file.requires_python)
        return not own.isdisjoint(self._pythons[build.version])

    @cached_property
    def _pythons(self) -> dict[Version, set[int]]:
        """Versions of Python 3 that builds of `held` are for, as far as they were asked for."""
        return {}

    @property
    def stood_for(self) -> set[str]:
        """Names of wheels without label that a variant with a name of its own stands for.

        A publisher's build may have the very name of such a wheel, and is no other file.
        """
        return {
            offer.filename
            for offer in self.offers
            if offer.label is not None and published(offer.file) is None
        }


@dataclass(frozen=True)
class Agreed:
    """Labels that a project should have because of another one.

    Attributes:
        labels: any of them will do.
        project: normalized name of the other one.
    """

    labels: tuple[str, ...] = ()
    project: str = ""


NO_AGREEMENT = Agreed()


def version_in(filename: str) -> Version | None:
    """Return the version in the name of a wheel or source distribution, None for another file."""
    if filename.endswith(".whl"):
        return wheel_version(filename)
    try:
        return parse_sdist_filename(filename)[1]
    except ValueError:  # InvalidSdistFilename; `int` of thousands of digits
        return None


def tags_of(plain: str) -> str:
    """Return the three tags in a plain filename, ``py3-none-any``."""
    return "-".join(plain[:-4].rsplit("-", 3)[1:])


def platform_of(plain: str) -> str:
    """Return the platform tags in a plain filename."""
    return plain[plain.rfind("-") + 1 : -4]


def is_for_target(plain: str, target: str) -> bool:
    """Return whether a wheel with a plain filename is for *target*, see `is_for_platform`."""
    return target_machines.is_for_platform(platform_of(plain), target)


@dataclass(frozen=True)
class ProjectView:
    """One project of one upstream, as a client sees it.

    Attributes:
        upstream: of the page.
        project: normalized name.
        found: the upstream's page.
        choice: of its files; None for the whole page, unchanged.
        sure: whether everything that the choice depends on could be read.
    """

    upstream: Upstream
    project: str
    found: FetchedPage
    choice: Choice | None
    sure: bool
