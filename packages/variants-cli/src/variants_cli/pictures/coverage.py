"""Which variant each machine gets, why, and which variants no machine gets.

Nothing is decided here: every machine is judged as installers do it, by `choose.selection`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from pep_variants.choose.abi import supporting
from pep_variants.choose.comparison import nearest_labels, unsupported_namespaces
from pep_variants.choose.explanation import why_not
from pep_variants.choose.phrases import DEVICES, why_chosen
from pep_variants.choose.preferences import Preferences
from pep_variants.choose.ranking import Ranking
from pep_variants.choose.rejections import why_not_better
from pep_variants.choose.selection import File, Selection, select
from pep_variants.detect.detector import Detector
from pep_variants.model.label import NULL_LABEL
from pep_variants.model.metadata import Metadata

from .machines import Machine

NOTHING, IDLE, OTHER, NULL, FITS = "nothing", "idle", "other", "null", "fits"
"""What a machine gets.

`NOTHING`: no variant fits. `IDLE`: a variant that makes no use of the machine's accelerator, though
others are for its kind. `OTHER`: the same where none is for its kind. `NULL`: the null variant, on
a machine without accelerator. `FITS`: a variant for what the machine has.
"""

OUTCOMES = (NOTHING, IDLE, OTHER, NULL, FITS)

CHOSEN, COMPATIBLE, REJECTED = "chosen", "compatible", "rejected"

_SOURCE = "matrix"


class Judgement(NamedTuple):
    """`CHOSEN`, `COMPATIBLE` or `REJECTED`, and why, in one or more phrases."""

    verdict: str
    phrases: tuple[str, ...]

    @property
    def why(self) -> str:
        """All phrases."""
        return "; ".join(self.phrases)


@dataclass(frozen=True)
class Choice:
    """What one machine gets of a release.

    Attributes:
        machine: the machine.
        ranking: the judgement of every variant for it.
        label: of the variant that is chosen; None if none is compatible.
        why: in a few words why it fits, empty for the null variant.
        better: the reason against the variant that is missed most; empty if none is.
    """

    machine: Machine
    ranking: Ranking
    label: str | None
    why: str
    better: str

    @cached_property
    def idle(self) -> tuple[str, ...]:
        """Namespaces of the machine's accelerators that the chosen variant makes no use of."""
        used = self.ranking.metadata.properties_of(self.label) if self.label is not None else None
        if used is not None and any(namespace in used for namespace in self.machine.accelerators):
            return ()  # one of several is enough
        return self.machine.accelerators

    @property
    def outcome(self) -> str:
        """One of `OUTCOMES`."""
        if self.label is None:
            return NOTHING
        if self.idle:
            variants = self.ranking.metadata.variants.values()
            meant = any(
                namespace in properties for namespace in self.idle for properties in variants
            )
            return IDLE if meant else OTHER
        return NULL if self.label == NULL_LABEL else FITS

    @property
    def remark(self) -> str:
        """Why nothing better, in words; empty if there is nothing better.

        Of a gap, what the variant lacks that comes nearest.
        """
        if self.outcome == OTHER:
            devices = " or ".join(DEVICES[namespace] for namespace in self.idle)
            return f"no variant is for its {devices}"
        if self.outcome not in (NOTHING, IDLE):
            return self.better
        variants = self.ranking.metadata.variants
        meant = [
            label
            for label, properties in variants.items()
            if self.label is None or any(namespace in properties for namespace in self.idle)
        ]
        nearest = nearest_labels(self.ranking, meant)
        return f"{nearest[0]} {'; '.join(why_not(self.ranking, nearest[0]))}" if nearest else ""

    def verdict(self, label: str) -> Judgement:
        """Return the judgement of the variant *label*."""
        if label not in self.ranking.metadata.variants or label not in self.ranking.positions:
            return Judgement(REJECTED, why_not(self.ranking, label))
        why = why_chosen(self.ranking.supported(label)) or "always fits"
        if label == self.label:
            return Judgement(CHOSEN, (why,))
        return Judgement(COMPATIBLE, (why, f"{self.label} comes first"))


@dataclass(frozen=True)
class Coverage:
    """What every machine gets of a release.

    Attributes:
        metadata: of the release.
        enabled: the optional namespaces that are enabled.
        choices: one for each machine, in their order.
    """

    metadata: Metadata
    enabled: tuple[str, ...]
    choices: tuple[Choice, ...]

    @cached_property
    def machines_by_label(self) -> Mapping[str, tuple[str, ...]]:
        """Names of the machines that get a variant, for all variants."""
        found: dict[str, list[str]] = {label: [] for label in self.metadata.variants}
        for choice in self.choices:
            if choice.label is not None:
                found[choice.label].append(choice.machine.name)
        return {label: tuple(names) for label, names in found.items()}

    def with_outcome(self, *outcomes: str) -> tuple[Choice, ...]:
        """Return the choices with one of these outcomes, in order."""
        return tuple(choice for choice in self.choices if choice.outcome in outcomes)

    def ordered(self) -> tuple[Choice, ...]:
        """Return the choices by outcome, gaps first, and in the order of the variants."""
        places = {label: place for place, label in enumerate(self.metadata.variants)}

        def key(choice: Choice) -> tuple[int, int, str]:
            return (
                OUTCOMES.index(choice.outcome),
                places.get(choice.label or "", -1),
                choice.machine.name,
            )

        return tuple(sorted(self.choices, key=key))


def cover(metadata: Metadata, machines: Sequence[Machine], enabled: Sequence[str] = ()) -> Coverage:
    """Choose for every machine among the variants of *metadata*.

    Only variants are compared, not the wheel tags of their files, and no settings of the user
    count. What variants say in ``abi_dependency`` is taken for met: a resolver decides it.

    Args:
        metadata: of the release.
        machines: to choose for.
        enabled: optional namespaces that are enabled, as by ``--variant-enable``.
    """
    preferences = Preferences(enable=frozenset(enabled))
    files = [File(f"release-1-py3-none-any-{label}.whl", _SOURCE, label)
             for label in metadata.variants]  # fmt: skip
    choices = tuple(_choose(metadata, machine, files, preferences) for machine in machines)
    return Coverage(metadata, tuple(enabled), choices)


def _choose(
    metadata: Metadata, machine: Machine, files: Sequence[File[str]], preferences: Preferences
) -> Choice:
    detector = Detector.of(preferences, environment=machine.environment, platform=machine.platform)
    selection: Selection[str] = select(
        files,
        metadata=lambda _: metadata,
        platform=lambda wanted: supporting(detector.platform(wanted), wanted),
        preferences=preferences,
        project="release",
    )
    ranking = selection.rankings[_SOURCE]
    chosen = selection.chosen
    if chosen is None:
        return Choice(machine, ranking, None, "", "")
    better = why_not_better(selection, chosen)
    return Choice(machine, ranking, chosen.item, selection.why(chosen), better)


def optional_namespaces(metadata: Metadata) -> tuple[str, ...]:
    """Return the namespaces that count only where the user enables them, in order."""
    return tuple(
        namespace
        for namespace in metadata.namespaces
        if (provider := metadata.providers.get(namespace)) is not None and provider.optional
    )


@dataclass(frozen=True)
class Unchosen:
    """A variant that no machine gets.

    Attributes:
        label: the variant.
        why: what comes first wherever it fits, or what the nearest machine lacks.
    """

    label: str
    why: str


def unchosen(
    coverages: Sequence[Coverage], ladders: Collection[tuple[str, str]] = ()
) -> Iterator[Unchosen]:
    """Yield the variants that no machine gets in any of *coverages*, in their order.

    Args:
        coverages: of one release, with different namespaces enabled; at least one.
        ladders: namespace and feature of which machines may get a higher value, as with a newer
            driver: machines that lack nothing else are nearest.
    """
    for label in coverages[0].metadata.variants:
        if any(coverage.machines_by_label[label] for coverage in coverages):
            continue
        yield Unchosen(label, _why_unchosen(label, coverages, ladders))


def _why_unchosen(
    label: str, coverages: Sequence[Coverage], ladders: Collection[tuple[str, str]]
) -> str:
    choices = [choice for coverage in coverages for choice in coverage.choices]
    fitting = [choice for choice in choices if label in choice.ranking.positions]
    if fitting:
        before = list(dict.fromkeys(c.label for c in fitting if c.label is not None))
        more = f" and {len(before) - 2} more" if len(before) > 2 else ""
        verb = "comes" if len(before) == 1 else "come"
        named = (", " if more else " and ").join(before[:2])
        return f"where it fits, {named}{more} {verb} first"
    if not choices:
        return ""

    def distance(choice: Choice) -> tuple[int, int, int]:
        reasons = choice.ranking.reasons(label)
        lacking = unsupported_namespaces(choice.ranking, label)
        fixed = [r for r in reasons if (r.namespace, r.feature) not in ladders]
        return len(lacking), len(reasons), len(fixed)

    nearest = min(choices, key=distance)
    return f"fits none; {nearest.machine.name}: {'; '.join(why_not(nearest.ranking, label))}"
