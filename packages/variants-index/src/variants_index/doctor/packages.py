"""Installed and locked packages: against what would be chosen now, and their files."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from pep_variants.internal import Advice, listed, metadata_field, ownership_problems, read_version
from variants_catalog.internal import is_in_catalog

from .findings import Problem

_MAX_VERDICTS = 12

UNKNOWN = "not known, no index has this version"
WITHOUT = "the index has no variants of this version"
BEST = "what would be chosen now"


@dataclass(frozen=True)
class State:
    """The state of one project.

    Attributes:
        project: normalized name.
        version: as it is installed or locked.
        label: of its variant, None for none.
        now: label of what would be chosen now, None for a non-variant file or nothing.
        verdict: on what is there, in words.
        fits: whether it fits this machine, None if that is not known.
        advice: what would be better, None for nothing.
        verdicts: on every variant, by source: ``label``, ``verdict`` and ``why``.
        missed: the reason against the variant that is missed most, empty for none.
    """

    project: str
    version: str
    label: str | None
    now: str | None
    verdict: str
    fits: bool | None
    advice: Advice | None = None
    verdicts: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)
    missed: str = ""

    @property
    def name(self) -> str:
        """Project and version."""
        return f"{self.project} {self.version}"

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield it for people, the verdict on every variant after it."""
        text = f"{self.label or '(no variant)'}: {self.verdict}"
        if self.advice is not None:
            text += f"; now {self.advice.better or 'the non-variant file'}"
        yield self.name, text
        for source, rows in self.verdicts.items():
            place = f" on {source}" if len(self.verdicts) > 1 else ""
            for row in rows[:_MAX_VERDICTS]:
                label = row["label"] or "(no variant)"
                yield self.name, f"{label} {row['verdict']}{place}: {row['why']}"
            if len(rows) > _MAX_VERDICTS:
                yield self.name, f"… and {len(rows) - _MAX_VERDICTS} more"

    def as_tree(self, what: str = "installed") -> dict[str, Any]:
        """Return it for JSON, the label under the key *what*."""
        return {
            "project": self.project,
            "version": self.version,
            what: self.label,
            "now": self.now,
            "fits": self.fits,
            "verdict": self.verdict,
            "verdicts": {
                source: [dict(row) for row in rows] for source, rows in self.verdicts.items()
            },
        }


def state_of(
    project: str,
    version: str,
    label: str | None,
    advice: Advice | None,
    now: str | None,
    verdicts: Mapping[str, Sequence[Mapping[str, str]]],
    missed: str = "",
) -> State:
    """Return the state of a version that an index has.

    Args:
        project: normalized name.
        version: of the project.
        label: of what is there, None without a variant.
        advice: what would be better, None for nothing.
        now: label of what would be chosen now.
        verdicts, missed: see `State`; no verdicts if the index has no variants of the version.
    """
    if not verdicts:
        return State(project, version, label, now, WITHOUT, None)
    if advice is None:
        return State(project, version, label, now, BEST, True, None, verdicts, missed)
    verdict = f"another fits better: {advice.why}"
    if advice.unfit:
        verdict = f"does not fit: {'; '.join(advice.unfit)}"
    return State(
        project, version, label, advice.better, verdict, not advice.unfit, advice, verdicts
    )


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
    """Yield distributions that own the same files, lack files or are there twice.

    Args:
        paths: package folders of the environment.
        install: beginning of the command that installs requirements there.
        uninstall: of the one that removes projects.
    """
    folders = tuple(dict.fromkeys(map(os.path.realpath, paths)))
    twice = set()
    for folder in folders:
        for name, versions in _twice(folder):
            twice.add(name)
            yield Problem(
                "duplicate-distribution",
                f"{folder} has {name} twice, as {' and as '.join(versions)}: what is removed or "
                "compared is only one of them",
                f"{uninstall} {name} && {uninstall} {name} && {install} {name}=={versions[-1]}",
            )
    shared: dict[tuple[str, ...], list[str]] = {}
    missing: dict[str, list[str]] = {}
    for each in ownership_problems(folders):
        if twice.intersection(map(_name, each.owners)):
            continue
        if len(each.owners) > 1:
            shared.setdefault(each.owners, []).append(each.path)
        elif each.path.startswith(tuple(f"{folder}{os.sep}" for folder in folders)):
            # Not scripts, which other tools move or leave out.
            missing.setdefault(each.owners[0], []).append(each.path)
    for owners, files in shared.items():
        names = [_name(owner) for owner in owners]
        kept = next((owner for owner in owners if is_in_catalog(_name(owner))), owners[0])
        yield Problem(
            "shared-files",
            f"{listed(owners, 'and')} own the same {_counted(files)}: installing or removing one "
            "overwrites or deletes what belongs to the other",
            f"{uninstall} {shlex.join(names)} && {install} {shlex.quote(kept)}",
        )
    for owner, files in missing.items():
        if owner not in {each for owners in shared for each in owners}:
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


def _twice(folder: str) -> Iterator[tuple[str, list[str]]]:
    """Yield projects that *folder* has several times, with their versions, ascending."""
    found: dict[str, list[str]] = {}
    for distribution in distributions(path=[folder]):
        name, version = (metadata_field(distribution, key) for key in ("Name", "Version"))
        if name is not None and version is not None and read_version(version) is not None:
            found.setdefault(canonicalize_name(name), []).append(version)
    for project, versions in sorted(found.items()):
        if len(versions) > 1:
            yield project, sorted(versions, key=lambda text: read_version(text) or 0)


def _name(owner: str) -> str:
    return owner.partition("==")[0]


def _counted(files: list[str]) -> str:
    return f"{len(files)} file{'s'[: len(files) != 1]}, {Path(files[0]).name} for example"
