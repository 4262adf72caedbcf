"""What the doctor finds: data for people, as a page of text, and for JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pep_variants.internal import printable

CODES = frozenset((
    "driver", "detection", "override", "hidden-gpu",
    "container-driver", "container-without-gpu", "driver-missing", "amd-driver", "wsl",
    "permissions", "login-node", "mig",
    "stub-driver",
    "configuration", "configuration-ignored", "setting", "torch-backend", "index-pin",
    "certificate", "constraint", "no-index",
    "plain-pip", "plain-pip-first", "old-pip", "shim-off", "broken-pip", "pip-configuration",
    "plain-uv", "uv-missing", "uv-version",
    "stale-variant", "better-variant", "unfit-variants", "wrong-index", "no-variants",
    "catalog-off", "catalog-place", "shared-files", "missing-files", "duplicate-distribution",
    "not-installed", "plugin", "choice", "metadata", "lookup", "changed-file", "unlisted-file",
    "lock",
))  # fmt: skip
"""Every `Problem.code`; docs/reference/doctor.md has the cause of each."""

_HINTS = ("packages", "lock", "configuration", "installers", "machine", "surroundings")
"""Parts in the order of their hints: what explains a choice most directly comes first."""


@dataclass(frozen=True)
class Problem:
    """Something that is wrong, or that explains a choice.

    Attributes:
        code: a stable name of the cause, for programs; one of `CODES`.
        text: what, where and why, on one line.
        command: what to type, empty if there is no command for it.
        fails: something is wrong; else it is a hint.
    """

    code: str
    text: str
    command: str = ""
    fails: bool = True

    def __post_init__(self) -> None:
        assert self.code in CODES, self.code


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
        """What fails, causes before effects; then hints, the closest to a choice first."""
        found: dict[Problem, tuple[int, int]] = {}
        for place, (name, part) in enumerate(self.parts.items()):
            for problem in part.problems:
                rank = (0, place) if problem.fails else (1, self._rank(name, place))
                found.setdefault(problem, rank)
        return sorted(found, key=found.__getitem__)

    @staticmethod
    def _rank(name: str, place: int) -> int:
        return _HINTS.index(name) if name in _HINTS else len(_HINTS) + place

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


def lines(found: Findings) -> Iterator[str]:
    """Yield the lines of the page."""
    failing = [problem for problem in found.problems if problem.fails]
    hints = len(found.problems) - len(failing)
    summary = _counted(len(failing), "problem") if failing else "Nothing is wrong"
    yield f"{summary}; {_counted(hints, 'hint')}" if hints else summary
    for problem in found.problems:
        yield f"{'problem' if problem.fails else 'hint'}: {_one_line(problem.text)}"
        if problem.command:
            yield f"    {_one_line(problem.command)}"
    for title, part in found.parts.items():
        if not part.rows:
            continue
        yield ""
        yield title
        width = min(max(len(subject) for subject, _ in part.rows), 40)
        before = None
        for subject, text in part.rows:
            shown = "" if subject == before else _one_line(subject)
            yield f"  {shown:<{width}}  {_one_line(text)}".rstrip()
            before = subject


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
