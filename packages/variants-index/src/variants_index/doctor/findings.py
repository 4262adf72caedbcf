"""What the doctor finds: data for people and for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Problem:
    """Something that is wrong, or that explains a choice.

    Attributes:
        code: a stable name of the cause, for programs.
        text: what, where and why, on one line.
        command: what to type, empty if there is no command for it.
        fails: something is wrong; else it is a hint.
    """

    code: str
    text: str
    command: str = ""
    fails: bool = True


@dataclass(frozen=True)
class Part:
    """The answer to one question.

    Attributes:
        rows: what was found, subject and text.
        problems: what is wrong with it, and hints.
        tree: the same as the rows, for JSON.
    """

    rows: tuple[tuple[str, str], ...] = ()
    problems: tuple[Problem, ...] = ()
    tree: Any = None


@dataclass(frozen=True)
class Findings:
    """Everything that was found.

    Attributes:
        parts: the answers by question, in the order in which they are shown.
    """

    parts: Mapping[str, Part] = field(default_factory=dict)

    @property
    def problems(self) -> list[Problem]:
        """What fails first, then hints; each once."""
        found = dict.fromkeys(item for part in self.parts.values() for item in part.problems)
        return sorted(found, key=lambda problem: not problem.fails)

    @property
    def is_well(self) -> bool:
        """Whether nothing is wrong; hints do not count."""
        return not any(problem.fails for problem in self.problems)

    def as_tree(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "well": self.is_well,
            "problems": [asdict(problem) for problem in self.problems],
            **{name: part.tree for name, part in self.parts.items()},
        }
