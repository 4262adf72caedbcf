"""Installed and locked packages: against what would be chosen now, and their files."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pep_variants.internal import Advice, listed, ownership_problems
from variants_catalog.internal import is_in_catalog

from .findings import Part, Problem

UNKNOWN = "not known, no index has this version"
WITHOUT = "the index has no variants of this version"
BEST = "what would be chosen now"


class State(NamedTuple):
    """The state of one project.

    Attributes:
        project: normalized name.
        version: as it is installed or locked.
        label: of its variant, None for none.
        now: label of what would be chosen now, None for a non-variant file or nothing.
        verdict: on what is there, in words.
        fits: whether it fits this machine, None if that is not known.
        advice: what would be better, None for nothing.
        missed: the reason against the variant that is missed most, empty for none.
    """

    project: str
    version: str
    label: str | None
    now: str | None
    verdict: str
    fits: bool | None = None
    advice: Advice | None = None
    missed: str = ""

    @property
    def name(self) -> str:
        """Project and version."""
        return f"{self.project} {self.version}"

    @property
    def row(self) -> tuple[str, str]:
        """It for people."""
        better = ""
        if self.advice is not None:
            better = f"; now {self.advice.better or 'the non-variant file'}"
        return self.name, f"{self.label or '(no variant)'}: {self.verdict}{better}"

    @classmethod
    def of(
        cls,
        project: str,
        version: str,
        label: str | None,
        advice: Advice | None,
        now: str | None,
        missed: str = "",
    ) -> State:
        """Return the state of a version whose variants an index has; arguments as attributes."""
        if advice is None:
            return cls(project, version, label, now, BEST, True, None, missed)
        verdict = f"another fits better: {advice.why}"
        if advice.unfit:
            verdict = f"does not fit: {'; '.join(advice.unfit)}"
        return cls(project, version, label, advice.better, verdict, not advice.unfit, advice)


def states_tree(states: Iterable[State], what: str = "installed") -> list[dict[str, Any]]:
    """Return *states* for JSON, each label under the key *what*."""
    return [
        {"project": each.project, "version": each.version, what: each.label, "now": each.now,
         "fits": each.fits, "verdict": each.verdict}
        for each in states
    ]  # fmt: skip


def packages_part(states: Iterable[State], problems: Iterable[Problem]) -> Part:
    """Return the part about what is installed."""
    states = tuple(states)
    rows = tuple(state.row for state in states) or (("variants", "none to compare"),)
    return Part(rows, tuple(problems), states_tree(states))


def state_problem(
    state: State, switch: str, explain: str = "", how: str = "installed"
) -> Problem | None:
    """Return that something else fits better, or a hint why nothing does; None for neither.

    Args:
        state: of the project.
        switch: command that installs or locks what fits.
        explain: command that shows all reasons; without one there is no hint.
        how: what was done with what is there.
    """
    if state.advice is None:
        if not (state.missed and explain):
            return None
        best = f"variant {state.now}" if state.now else "the non-variant file"
        text = f"{state.name}: {best} is the best that fits this machine: {state.missed}"
        return Problem("unfit-variants", text, explain, fails=False)
    text = state.advice.text(state.project, state.version, how)
    if state.advice.unfit:
        return Problem("stale-variant", text, switch)
    # What is locked is a decision, of a team perhaps.
    return Problem("better-variant", text, switch, fails=how == "installed")


def environment_problems(
    paths: Iterable[str], install: str = "pip install", uninstall: str = "pip uninstall --yes"
) -> Iterator[Problem]:
    """Yield distributions that own the same files, or lack files.

    Args:
        paths: package folders of the environment.
        install: beginning of the command that installs requirements there.
        uninstall: of the one that removes projects.
    """
    folders = tuple(dict.fromkeys(map(os.path.realpath, paths)))
    shared: dict[tuple[str, ...], list[str]] = {}
    missing: dict[str, list[str]] = {}
    for each in ownership_problems(folders):
        if len(each.owners) > 1:
            shared.setdefault(each.owners, []).append(each.path)
        elif each.path.startswith(tuple(f"{folder}{os.sep}" for folder in folders)):
            # Not scripts, which other tools move or leave out.
            missing.setdefault(each.owners[0], []).append(each.path)
    for owners, files in shared.items():
        names = [owner.partition("==")[0] for owner in owners]
        kept = next(
            (owner for owner, name in zip(owners, names, strict=True) if is_in_catalog(name)),
            owners[0],
        )
        yield Problem(
            "shared-files",
            f"{listed(owners, 'and')} own the same {_counted(files)}: installing or removing one "
            "overwrites or deletes what belongs to the other",
            f"{uninstall} {shlex.join(names)} && {install} {shlex.quote(kept)}",
        )
    for owner, files in missing.items():
        if not any(owner in owners for owners in shared):
            yield Problem(
                "missing-files",
                f"{owner} lacks {_counted(files)}: another project was removed that had them, or "
                "they were deleted",
                f"{install} --force-reinstall --no-deps {shlex.quote(owner)}",
            )


def catalog_hints(
    installed: Iterable[tuple[str, object]], command: Callable[[str], str]
) -> Iterator[Problem]:
    """Yield projects whose builds the catalogue would know, if it was asked.

    Args:
        installed: name and version of projects without a variant.
        command: returns the command that asks it about a project.
    """
    for name, version in installed:
        if is_in_catalog(name):
            text = (
                f"{name} {version} is installed without a variant, and the catalogue describes its "
                "builds for GPUs and CPUs as variants, once it is asked"
            )
            yield Problem("catalog-off", text, command(name), fails=False)


def _counted(files: list[str]) -> str:
    return f"{len(files)} file{'s'[: len(files) != 1]}, {Path(files[0]).name} for example"
