"""Which variant each machine gets, why, and which variants no machine gets.

Nothing is decided here: every machine is judged as installers do it, by `choose.selection`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from pep_variants.choose.abi import supporting
from pep_variants.choose.comparison import joined_labels, nearest_labels, unsupported_namespaces
from pep_variants.choose.explanation import why_not
from pep_variants.choose.phrases import DEVICES, why_chosen
from pep_variants.choose.preferences import Preferences
from pep_variants.choose.ranking import Ranking
from pep_variants.choose.rejections import why_not_better
from pep_variants.choose.selection import File, select
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

    @cached_property
    def outcome(self) -> str:
        """One of the above."""
        if self.label is None:
            return NOTHING
        if self.idle:
            return IDLE if any(map(self._uses_idle, self.ranking.metadata.variants)) else OTHER
        return NULL if self.label == NULL_LABEL else FITS

    @property
    def remark(self) -> str:
        """Why nothing better, in words; empty if there is nothing better.

        For a gap, what the machine lacks for the variant that comes nearest.
        """
        if self.outcome == OTHER:
            devices = " or ".join(DEVICES[namespace] for namespace in self.idle)
            return f"no variant is for its {devices}"
        if self.outcome not in (NOTHING, IDLE):
            return self.better
        meant = [v for v in self.ranking.metadata.variants if not self.label or self._uses_idle(v)]
        nearest = nearest_labels(self.ranking, meant)
        return f"{nearest[0]} {'; '.join(why_not(self.ranking, nearest[0]))}" if nearest else ""

    def _uses_idle(self, label: str) -> bool:
        return not self.ranking.metadata.variants[label].keys().isdisjoint(self.idle)

    def why_fits(self, label: str) -> str:
        """Return why the machine could take *label*; empty if it cannot."""
        if label not in self.ranking.labels:
            return ""
        return why_chosen(self.ranking.supported(label)) or "always fits"


def cover(
    metadata: Metadata, machines: Sequence[Machine], enabled: Sequence[str] = ()
) -> tuple[Choice, ...]:
    """Choose for every machine among the variants of *metadata*.

    Only variants are compared, not the wheel tags of their files, and no settings of the user
    count. What variants say in ``abi_dependency`` is taken for met: a resolver decides it.

    Args:
        metadata: of the release.
        machines: to choose for.
        enabled: optional namespaces that are enabled, as by ``--variant-enable``.
    """
    preferences = Preferences(enable=frozenset(enabled))
    files = [File(f"release-1-py3-none-any-{label}.whl", "", label) for label in metadata.variants]
    choices = []
    for machine in machines:
        detector = Detector.of(
            preferences, environment=machine.environment, platform=machine.platform
        )
        platform = supporting(detector.platform(metadata), metadata)
        selection = select(
            files,
            metadata=lambda _: metadata,
            platform=lambda _, platform=platform: platform,  # type: ignore[misc]
            preferences=preferences,
            project="release",
        )
        chosen = selection.chosen
        label, why, better = None, "", ""
        if chosen is not None:
            label, why = chosen.item, selection.why(chosen)
            better = why_not_better(selection, chosen)
        choices.append(Choice(machine, selection.rankings[""], label, why, better))
    return tuple(choices)


def optional_namespaces(metadata: Metadata) -> tuple[str, ...]:
    """Return the namespaces that count only where the user enables them, in order."""
    return tuple(
        namespace
        for namespace in metadata.namespaces
        if namespace in metadata.providers and metadata.providers[namespace].optional
    )


def why_unchosen(
    label: str, choices: Sequence[Choice], ladders: Collection[tuple[str, str]]
) -> str:
    """Return why no machine gets *label*: what they get where it fits, or what is missing.

    Args:
        label: a variant that is chosen for none.
        choices: of one release, at least one.
        ladders: namespace and feature of which machines may get a higher value, as with a newer
            driver: machines that lack nothing else are nearest.
    """
    instead = {c.label: None for c in choices if c.label and label in c.ranking.labels}
    if instead:
        return f"where it fits, machines get {joined_labels([*instead])}"

    def distance(choice: Choice) -> tuple[int, int, int]:
        reasons = choice.ranking.reasons(label)
        lacking = unsupported_namespaces(choice.ranking, label)
        fixed = [r for r in reasons if (r.namespace, r.feature) not in ladders]
        return len(lacking), len(reasons), len(fixed)

    nearest = min(choices, key=distance)
    return f"fits none; {nearest.machine.name}: {'; '.join(why_not(nearest.ranking, label))}"
