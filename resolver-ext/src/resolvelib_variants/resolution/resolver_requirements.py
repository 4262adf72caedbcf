"""What resolvelib gets as requirements, and the identifiers of projects and their extras."""

from __future__ import annotations

from dataclasses import dataclass, field

from variants_index.candidate import Candidate


@dataclass(frozen=True)
class SpecifierRequirement:
    """A project, or one of its extras, in some versions.

    Attributes:
        project: normalized name.
        extra: normalized name, empty for the project itself.
        specifier: of versions, as text; the same text means the same.
        url: the very file that is wanted, None for any.
        order: place among what the user asked for, None for what something else needs.
        text: for messages.
    """

    project: str
    extra: str
    specifier: str
    url: str | None = None
    order: int | None = None
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.text or f"{self.project}{self.specifier}"


@dataclass(frozen=True)
class ExplicitRequirement:
    """The file that an extra belongs to."""

    candidate: Candidate

    def __str__(self) -> str:
        return f"{self.candidate.project}=={self.candidate.version}"


@dataclass(frozen=True)
class UnsatisfiableRequirement:
    """What cannot be met, and why: the way to say that a candidate is unusable."""

    candidate: Candidate
    reason: str

    def __str__(self) -> str:
        return self.reason


def split_identifier(identifier: str) -> tuple[str, str]:
    """Return project and extra of what `IndexProvider.identify` returned."""
    project, _, extra = identifier.partition("!")[0].partition("[")
    return project, extra.rstrip("]")
