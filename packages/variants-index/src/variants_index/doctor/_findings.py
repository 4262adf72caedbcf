"""What the doctor finds: data for people, as a page of text, and for JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from pep_variants.errors import printable

CODES = frozenset((
    "driver", "driver-library", "detection", "override", "hidden-gpu", "jetson",
    "container-driver", "container-without-gpu", "driver-missing", "wsl", "permissions",
    "login-node",
    "configuration", "configuration-ignored", "setting", "torch-backend", "index-pin",
    "plain-pip", "plain-pip-first", "old-pip", "new-pip", "shim-off", "plain-uv", "uv-missing",
    "uv-version",
    "gpu-code", "cpu-level", "stale-variant", "idle-gpu", "better-variant", "unfit-variants",
    "wrong-index", "no-variants", "catalog-off", "catalog-place", "shared-files", "missing-files",
    "unrequired", "unmet-requirement",
    "not-installed", "plugin", "choice", "metadata", "lookup", "changed-file", "unlisted-file",
    "lock",
))  # fmt: skip
"""Every `Problem.code`; docs/reference/doctor.md has the cause of each."""

PACKAGE_ADVICE = frozenset(
    ("gpu-code", "stale-variant", "better-variant", "unfit-variants", "catalog-off")
)
"""Codes of problems that hold only if detection sees every accelerator that is here."""


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


class Part(NamedTuple):
    """The answer to one question.

    Attributes:
        rows: what was found, subject and text.
        problems: what is wrong with it, and hints.
        tree: for JSON in place of the rows, None for them.
        is_blind: there may be an accelerator here that detection does not see.
    """

    rows: tuple[tuple[str, str], ...] = ()
    problems: tuple[Problem, ...] = ()
    tree: Any = None
    is_blind: bool = False

    def as_tree(self) -> Any:  # noqa: ANN401
        """Return it for JSON."""
        if self.tree is not None:
            return self.tree
        return [{"subject": subject, "text": text} for subject, text in self.rows]


class Findings(NamedTuple):
    """Everything that was found.

    Attributes:
        parts: the answers by question, in the order in which they are shown.
    """

    parts: Mapping[str, Part]

    @property
    def problems(self) -> list[Problem]:
        """What fails, causes before effects; then hints, the closest to a choice first.

        Advice about packages is left out while there may be an accelerator that is not seen: it
        would take the build for that one away.
        """
        parts = list(self.parts.values())
        left_out = PACKAGE_ADVICE if any(part.is_blind for part in parts) else frozenset()
        failing = [each for part in parts for each in part.problems if each.fails]
        hints = [each for part in parts[::-1] for each in part.problems if not each.fails]
        found = dict.fromkeys(failing + hints)
        return [problem for problem in found if problem.code not in left_out]

    @property
    def is_well(self) -> bool:
        """Whether nothing is wrong; hints do not count."""
        return not any(problem.fails for problem in self.problems)

    def as_tree(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "well": self.is_well,
            "problems": [asdict(problem) for problem in self.problems],
            **{name: part.as_tree() for name, part in self.parts.items()},
        }


def lines(found: Findings) -> Iterator[str]:
    """Yield the lines of the page."""
    failing = sum(problem.fails for problem in found.problems)
    hints = len(found.problems) - failing
    summary = _counted(failing, "problem") if failing else "Nothing is wrong"
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
