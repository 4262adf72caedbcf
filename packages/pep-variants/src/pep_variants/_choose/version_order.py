"""Which version of a project goes first: the newest, or the newest that uses the accelerator.

Newer builds need newer drivers or leave out GPUs, and sometimes a release has no builds for
accelerators at all, or not yet. `newest_build` looks through the versions that the requirements
admit for the newest one whose chosen file is a build for an accelerator that is there. Where the
rule ``--variant-before-version`` is in force, installers put that version first and leave the
others in their order; elsewhere they take the newest one. `NewestBuild` has the line for both.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from .._model.metadata import Metadata
from .._providers.registry import ACCELERATORS, BUILTIN_NAMESPACES
from ..labels import NULL_LABEL, ZERO_LABEL
from .rejections import Advice, advise, why_not_better, why_unfit

if TYPE_CHECKING:
    from .._model.platform import Platform
    from .selection import File, Selection

_logger = logging.getLogger(__name__)

MAX_VERSIONS = 16
"""Versions whose metadata is read to find the newest build for an accelerator."""

_ACCELERATORS = Metadata(tuple(ACCELERATORS))


class Admitted(NamedTuple):
    """One version that the requirements admit.

    Attributes:
        version: itself; a final release unless it has a true ``is_prerelease``.
        labels: of its wheels, without None.
        judge: returns the decision about it, None if it has no variants or cannot be judged;
            called at most once, and only where its metadata is needed.
    """

    version: Any
    labels: Collection[str]
    judge: Callable[[], Selection[Any] | None]


class NewestBuild(NamedTuple):
    """The newest version with a build for the accelerator, behind a newer one without.

    Attributes:
        project: normalized name.
        newest: the version that comes first in the order of versions.
        decision: about it, None without variants.
        version: the version with the build; None if `MAX_VERSIONS` were read and none has one.
        build: the decision about that version.
    """

    project: str
    newest: Any
    decision: Selection[Any] | None
    version: Any = None
    build: Selection[Any] | None = None

    @property
    def label(self) -> str:
        """Label of the build, empty without one."""
        best = None if self.build is None else self.build.chosen
        return (best.label or "") if best is not None else ""

    @property
    def lack(self) -> str:
        """Why no build of the newest version fits, in a clause; empty if it has none."""
        if self.decision is None:
            return ""
        assert self.decision.chosen is not None  # see `newest_build`
        return why_not_better(self.decision, self.decision.chosen)

    def preferred(self) -> VersionNote:
        """Return the note for where the build is taken, or where too many versions were read."""
        if self.version is None:
            return self._note(
                f"{self.project}: none of the {MAX_VERSIONS} newest versions with variants has one "
                f"for the accelerator here; taking {self.newest}"
            )
        lack = f": {self.lack}" if self.lack else ", which has none"
        return self._note(
            f"Using {self.project} {self.version} ({self.label}), the newest release with a build "
            f"for this {self._device}, not {self.newest}{lack} "
            f"(--variant-before-version :none: takes {self.newest})"
        )

    @property
    def _device(self) -> str:
        """What the build is for, in a word: ``GPU``."""
        assert self.build is not None
        (namespace, *_) = _accelerators(self.build, self.build.chosen)
        return BUILTIN_NAMESPACES[namespace].vendor.device.rpartition(" ")[2]

    def why_yanked(self, version: Any) -> str:  # noqa: ANN401 - as clients have it
        """Return why an index yanks a newer *version* without such a build (PEP 592)."""
        return (
            f"no build for this {self._device}, but {self.project} {self.version} ({self.label}) "
            f"has one; require {self.project}=={version} to take this one"
        )

    def missed(self, *, may_be_excluded: bool = False) -> VersionNote:
        """Return the note for where the newest version is taken, by the order of versions.

        Args:
            may_be_excluded: whether something may require another version, which is not known.
        """
        unless = ", unless another project excludes it" if may_be_excluded else ""
        return self._missed(f": to take it, require {self.project}=={self.version}{unless}")

    def excluded(self) -> VersionNote:
        """Return the note for where something excludes the build, which would be preferred."""
        return self._missed(", which other requirements exclude")

    def _missed(self, what_now: str) -> VersionNote:
        build = self.build
        assert build is not None
        assert build.chosen is not None
        lack = f"{self.project} {self.newest} has no variant for an accelerator"
        if self.decision is not None and self.decision.rejected:
            fits = f"only {_named(self.decision.chosen)} fits this machine"
            lack = f"{self.project} {self.newest}: {fits}"
        why = build.why(build.chosen)
        has = f"{self.version} has variant {self.label}{f' ({why})' if why else ''}"
        return self._note(f"{lack}; {has}{what_now}")

    def _note(self, text: str) -> VersionNote:
        version = None if self.version is None else str(self.version)
        return VersionNote(text, str(self.newest), version, self.label or None, self.lack)


class VersionNote(NamedTuple):
    """Message about the order of versions; `_asdict` returns it as JSON data.

    Attributes:
        text: one line.
        newest: the version that comes first in the order of versions.
        version: the newest one with a build for the accelerator; None if none was found.
        label: of that build.
        why: why no build of the newest version fits; empty if it has none for accelerators.
    """

    text: str
    newest: str
    version: str | None
    label: str | None
    why: str


def newest_build(
    project: str, admitted: Iterable[Admitted], has_accelerator: Callable[[], bool]
) -> NewestBuild | None:
    """Return the newest version with a build for the accelerator, if that is not the newest of all.

    Pre-releases are never that version. Versions of which nothing fits do not count. Metadata is
    read from the newest version down until the first such build, of `MAX_VERSIONS` versions at
    most, and only of those whose labels promise something.

    Args:
        project: normalized name.
        admitted: versions that the requirements admit, in the order of preference, without those
            that are yanked. Read no further than needed.
        has_accelerator: whether the target has one; asked before an older version is judged.

    Returns:
        None if the first version is such a build itself, or if nothing is promising.
    """
    newest: tuple[Any, Selection[Any] | None] | None = None
    known: set[str] = set()
    read = 0
    for each in admitted:
        promising = bool(set(each.labels) - known - {NULL_LABEL, ZERO_LABEL})
        if newest is None:
            decision = each.judge() if each.labels else None
            if decision is not None and not decision.files:
                continue
            if decision is not None and is_accelerated(decision, decision.chosen):
                return None
            newest = each.version, decision
        elif not promising or getattr(each.version, "is_prerelease", False):
            continue
        else:
            if read == MAX_VERSIONS:
                return NewestBuild(project, *newest)
            if not has_accelerator():
                return None
            decision = each.judge()
            if decision is not None and is_accelerated(decision, decision.chosen):
                _logger.debug(
                    "Newest version of %s with a build for the accelerator: %s, before %s",
                    project,
                    each.version,
                    newest[0],
                )
                return NewestBuild(project, *newest, each.version, decision)
        read += promising
        known |= _labels_elsewhere(decision)
    return None


def advise_over_releases(
    project: str,
    version: Any,  # noqa: ANN401 - as clients have it
    installed: str | None,
    admitted: Iterable[Admitted],
    has_accelerator: Callable[[], bool],
) -> Advice | None:
    """Return what is better than the installed build of any release, None for nothing.

    That is the best build of the installed release if it is one for the accelerator that is here;
    or else the best build of the newest release that has one, older or newer; or else, where no
    release has one, the best build of the installed release; or else, where nothing of that fits,
    the best file of the newest release that has one.

    Args:
        project: normalized name.
        version: that is installed.
        installed: label of what is installed, None if it is not known as a variant.
        admitted: versions to choose among, newest first, each judged for this machine. Without
            those that are yanked, but for the installed one.
        has_accelerator: whether there is one; asked before other releases are judged.
    """
    admitted = list(admitted)
    own = next((each for each in admitted if each.version == version), None)
    decision = own.judge() if own is not None and own.labels else None
    advice = None if decision is None else advise(decision, installed)
    if decision is not None and is_accelerated(decision, decision.chosen):
        return advice
    if decision is None and installed not in (None, NULL_LABEL, ZERO_LABEL):
        return None  # a build that nothing is known of any more
    # It stands for what is installed: nothing of it uses the accelerator.
    judged = decision if decision is not None and decision.files else None
    first = Admitted(version, () if judged is None else ("",), lambda: judged)
    others = [each for each in admitted if each.version != version]
    found = newest_build(project, [first, *others], has_accelerator)
    unfit = () if decision is None else why_unfit(decision, installed)
    if found is None or found.build is None or found.build.chosen is None:
        is_lost = unfit and decision is not None and not decision.files
        return next(_fitting(others, installed, unfit), None) if is_lost else advice
    why = found.build.why(found.build.chosen)
    return Advice(installed, found.label, unfit, why, found.version)


def _fitting(
    admitted: Iterable[Admitted], installed: str | None, unfit: tuple[str, ...]
) -> Iterator[Advice]:
    """Yield the advice to take each of the first versions, where something of it fits."""
    finals = (item for item in admitted if not getattr(item.version, "is_prerelease", False))
    for each in islice(finals, MAX_VERSIONS):
        decision = each.judge() if each.labels else None
        chosen = None if decision is None else decision.chosen
        if decision is not None and chosen is not None:
            yield Advice(installed, chosen.label, unfit, decision.why(chosen), each.version)
        elif not each.labels:
            yield Advice(installed, None, unfit, "", each.version)


def _labels_elsewhere(decision: Selection[Any] | None) -> set[str]:
    """Return the labels that are of no accelerator, which they mean in other versions as well.

    None of a version that has builds for accelerators: newer builds of one label leave out GPUs.
    """
    rankings = [] if decision is None else list(decision.distinct_rankings.values())
    found = [properties for each in rankings for properties in each.metadata.variants.items()]
    if any(not ACCELERATORS.keys().isdisjoint(properties) for _, properties in found):
        return set()
    return {label for label, _ in found}


def is_accelerated(selection: Selection[Any] | None, file: File[Any] | None) -> bool:
    """Return whether *file* is a build for an accelerator, as its version's *selection* has it."""
    return bool(_accelerators(selection, file))


def _accelerators(selection: Selection[Any] | None, file: File[Any] | None) -> list[str]:
    if selection is None or file is None or file.label is None:
        return []
    ranking = selection.rankings.get(file.source)
    supported = () if ranking is None else ranking.supported(file.label)
    return [namespace for namespace in supported if namespace in ACCELERATORS]


def has_accelerator(platform: Callable[[Metadata], Platform]) -> bool:
    """Return whether the target has an accelerator; *platform* asks the built-in providers."""
    return any(support.features for support in platform(_ACCELERATORS).namespaces.values())


def _named(file: File[Any] | None) -> str:
    if file is None or file.label is None:
        return "the non-variant file"
    if file.label in (NULL_LABEL, ZERO_LABEL):
        return "the null variant"
    return f"variant {file.label}"
