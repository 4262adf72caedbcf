"""Which variant each machine gets, why, and which variants no machine gets.

Nothing is decided here: every machine is judged as installers do it, by `choose.ranking`. No
settings of the user count, and only variants are compared, not the wheel tags of their files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from pep_variants import Detector, Metadata, Platform, Preferences, Ranking, load_machine, rank
from pep_variants.internal import (
    ACCELERATORS,
    BY_NAME,
    NULL_LABEL,
    joined_labels,
    missed_clause,
    names_file,
    nearest_labels,
    supporting,
    unsupported_namespaces,
    why_chosen,
    why_not,
)
from variants_index.internal import environment_of

NO_VARIANT = "no variant"

NOTHING, IDLE, OTHER, NULL, FITS = "nothing", "idle", "other", "null", "fits"
"""What a machine gets.

`NOTHING`: no variant fits. `IDLE`: a variant that makes no use of the machine's accelerator, though
others are for its kind. `OTHER`: the same where none is for its kind. `NULL`: the null variant, on
a machine without accelerator. `FITS`: a variant for what the machine has.
"""

OUTCOMES = {
    NOTHING: "that get no variant",
    IDLE: "whose accelerator is left idle",
    NULL: "that get only the null variant",
    OTHER: "with accelerators that this release is not for",
    FITS: "with a variant for what they have",
}
"""Which machines they are, the worst gap first."""


@dataclass(frozen=True)
class Machine:
    """A machine that variants are chosen for.

    Attributes:
        name: its name or facts, or the name of its platform file without ``.toml``.
        title: what it is; empty for other than known machines.
        platform: everything it supports.
    """

    name: str
    title: str
    platform: Platform

    @property
    def system(self) -> str:
        """What it most likely runs, as in `variants_index.target`: ``linux-x86_64``."""
        if self.name.startswith("apple-"):
            return "macosx-aarch64"
        has_arm = self.platform.support("aarch64").features
        return "linux-aarch64" if has_arm else "linux-x86_64"

    @cached_property
    def accelerators(self) -> tuple[str, ...]:
        """Namespaces of GPUs and the like of which it supports something, ascending."""
        return tuple(
            namespace
            for namespace, support in sorted(self.platform.namespaces.items())
            if support.features and namespace in ACCELERATORS
        )

    def rank(self, metadata: Metadata, enabled: Sequence[str] = ()) -> Ranking:
        """Judge the variants of *metadata* for this machine.

        What variants say in ``abi_dependency`` is taken for met: a resolver decides it.

        Args:
            metadata: of the release.
            enabled: optional namespaces that are enabled, as by ``--variant-enable``.
        """
        preferences = Preferences(enable=frozenset(enabled))
        detector = Detector.of(
            preferences, environment=environment_of(self.system), platform=self.platform
        )
        return rank(metadata, supporting(detector.platform(metadata), metadata), preferences)


def read_machines(wanted: Sequence[str] = ()) -> tuple[Machine, ...]:
    """Return machines.

    Args:
        wanted: machines as in `load_machine`, and patterns of names (``h100-*``). All known
            machines if there are none.

    Raises:
        PlatformFileError: a platform file that cannot be read, or no such machine.
    """
    found: dict[str, None] = {}
    for text in wanted or ("*",):
        found |= dict.fromkeys([name for name in BY_NAME if fnmatchcase(name, text)] or [text])
    return tuple(
        Machine(
            Path(text).stem if names_file(text) else text,
            BY_NAME[text].title if text in BY_NAME else "",
            # Without a source: messages are to name what the machine lacks, not the file.
            replace(load_machine(text), source=""),
        )
        for text in found
    )


@dataclass(frozen=True)
class Choice:
    """What one machine gets of a release.

    Attributes:
        machine: the machine.
        ranking: the judgement of every variant for it.
    """

    machine: Machine
    ranking: Ranking

    @cached_property
    def label(self) -> str | None:
        """The label of the variant that is chosen; None if none is compatible."""
        return next(iter(self.ranking.labels), None)

    @property
    def why(self) -> str:
        """In a few words why the chosen variant fits, empty for the null variant."""
        return why_chosen(self.ranking.supported(self.label)) if self.label else ""

    @cached_property
    def idle(self) -> tuple[str, ...]:
        """Namespaces of the machine's accelerators that the chosen variant makes no use of."""
        accelerators = self.machine.accelerators
        used = self.ranking.metadata.variants[self.label] if self.label else {}
        return () if used.keys() & accelerators else accelerators  # one of several is enough

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
        variants = self.ranking.metadata.variants
        if self.outcome == OTHER:
            devices = " or ".join(ACCELERATORS[namespace] for namespace in self.idle)
            return f"no variant is for its {devices}"
        if self.outcome not in (NOTHING, IDLE):
            return missed_clause(self.ranking, self.label, variants)
        meant = [label for label in variants if not self.label or self._uses_idle(label)]
        nearest = nearest_labels(self.ranking, meant)
        return f"{nearest[0]} {'; '.join(why_not(self.ranking, nearest[0]))}" if nearest else ""

    def _uses_idle(self, label: str) -> bool:
        return not self.ranking.metadata.variants[label].keys().isdisjoint(self.idle)


def why_unchosen(label: str, choices: Sequence[Choice]) -> str:
    """Return why no machine gets *label*: what they get where it fits, or what is missing.

    Args:
        label: a variant that is chosen for none.
        choices: of one release, at least one.
    """
    if instead := dict.fromkeys(c.label for c in choices if label in c.ranking.labels):
        return f"where it fits, machines get {joined_labels([*filter(None, instead)])}"

    def distance(choice: Choice) -> tuple[int, int]:
        reasons = choice.ranking.reasons(label)
        return len(unsupported_namespaces(choice.ranking, label)), len(reasons)

    nearest = min(choices, key=distance)
    return f"fits none; {nearest.machine.name}: {'; '.join(why_not(nearest.ranking, label))}"
