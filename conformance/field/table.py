"""What each machine gets from the field's index, as a page of the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from packaging.requirements import Requirement

from ..case import CASES, Case, read_file, topic_of
from ..place import MACHINES
from ..table import markdown_table
from .standin import pages

EIGHT = (
    "h100-cuda12.8",
    "rtx5090-cuda13.0",
    "v100-cuda12.2",
    "mi300x-rocm6.4",
    "arc-b580",
    "cpu-haswell",
    "gh200-cuda13.0",
    "apple-m1",
)
"""The machines for which every project has a case; some have cases for more machines."""

NOTHING = "-"


@dataclass(frozen=True)
class Judged:
    """The cases of one project.

    Attributes:
        project: its name.
        why: what the machines ought to get, and why, in one sentence.
        cases: one for each requirement and machine.
    """

    project: str
    why: str
    cases: tuple[Case, ...]

    @cached_property
    def rows(self) -> Mapping[str, Mapping[str, str]]:
        """What is installed of the project, by requirement and machine; `NOTHING` for an error."""
        found: dict[str, dict[str, str]] = {}
        for case in self.cases:
            (requirement,) = case.tree["install"]
            got = (case.installed or {}).get(self.project, NOTHING)
            found.setdefault(requirement, {})[case.tree["machine"]] = got
        return found


def judged() -> Iterator[Judged]:
    """Yield the cases of every project on the field's index."""
    for project in pages():
        path = CASES / "field" / f"{project}.json"
        yield Judged(project, topic_of(path), tuple(read_file(path)))


def rows(projects: Iterable[Judged], *, pinned: bool) -> list[list[str]]:
    """Return rows of a table, the first of which is the header: requirements by machines.

    Args:
        projects: what is in it.
        pinned: whether the rows are those of one version each, or those of the newest release.
    """
    found = [["requirement", *EIGHT]]
    for item in projects:
        for requirement, cells in item.rows.items():
            if bool(Requirement(requirement).specifier) == pinned:
                found.append([requirement, *(cells.get(name, "") for name in EIGHT)])
    return found


def title_of(machine: str) -> str:
    """Return what the first line of a platform file in ``machines/`` says of the machine."""
    first = Path(MACHINES, f"{machine}.toml").read_text("utf-8").partition("\n")[0]
    return first.removeprefix("# ").removesuffix(".")


def page() -> str:
    """Return the page."""
    projects = list(judged())
    others = [
        [case.tree["install"][0], title_of(case.tree["machine"]), cell]
        for item in projects
        for case in item.cases
        if (machine := case.tree["machine"]) not in EIGHT
        and (cell := item.rows[case.tree["install"][0]][machine])
    ]
    cases = sum(len(item.cases) for item in projects)
    pythons = {
        case.tree["machine"]: case.tree["target"]["python"]
        for item in projects
        for case in item.cases
    }
    lines = [
        "# Published projects",
        "",
        "What is installed on several machines from the public index of wheel variants, recorded",
        f"in January 2026: {len(projects)} projects, {_number_of_documents()} metadata files. Each",
        "cell was determined by hand from the recorded pages and documents, and is a case of the",
        f"[conformance corpus](../../conformance/README.md) ({cases} cases), run with pip, uv",
        "and `variants resolve`. [conformance/field](../../conformance/field/README.md) says what",
        "is recorded and what is synthetic. Written by `python -m conformance.field page`.",
        "",
        "A cell has the version and the label, or the version alone for a wheel without variants;",
        f"`{NOTHING}` means that nothing fits, which is an error; an empty cell has no case.",
        "",
        *(f"- `{name}`: {title_of(name)}, Python {pythons[name]}" for name in EIGHT),
        "",
        "## The newest release that fits",
        "",
        markdown_table(rows(projects, pinned=False)),
        "",
        "## Releases with variants that are not the newest",
        "",
        "A newer release takes precedence over a better variant, so these need a specifier.",
        "",
        markdown_table(rows(projects, pinned=True)),
        "",
        "## Further machines",
        "",
        markdown_table([["requirement", "machine", "installed"], *others]),
        "",
        "## Why",
        "",
        *(f"- **{item.project}**: {item.why}" for item in projects),
    ]
    return "\n".join(lines) + "\n"


def _number_of_documents() -> int:
    return sum(len(page.documents) for page in pages().values())
