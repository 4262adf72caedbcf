"""Installed and locked packages: against what would be chosen now, and their files."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pep_variants import labels as wheel_labels
from pep_variants import selection as wheel_selection
from pep_variants import wheel_files
from pep_variants.errors import PluginFailed, listed
from pep_variants.selection import Advice
from variants_catalog import catalogs, listings
from variants_catalog.listings import Unavailable

from ._commands import Commands
from ._findings import Part, Problem
from ._machine import idle_gpus

if TYPE_CHECKING:
    from pep_variants.wheel_files import OwnershipProblem

    from ._comparison import Compared
    from ._requirements import Requirers

UNKNOWN = "version not found on {}"
WITHOUT = "the index has no variants of this version"
UNREACHABLE = "not known, a place of the catalogue cannot be reached"
BEST = "up to date"


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
    """

    project: str
    version: str
    label: str | None
    now: str | None
    verdict: str
    fits: bool | None = None
    advice: Advice | None = None

    @property
    def release(self) -> str | None:
        """The version of `now`, None for the one that is there."""
        found = None if self.advice is None else self.advice.version
        return None if found is None else str(found)

    @property
    def row(self) -> tuple[str, str]:
        """It for people."""
        better = ""
        if self.advice is not None:
            better = f"; now {self.advice.better or 'the non-variant file'}"
            better += f" of {self.release}" if self.release else ""
        return (
            f"{self.project} {self.version}",
            f"{self.label or '(no variant)'}: {self.verdict}{better}",
        )

    @classmethod
    def of(cls, found: Compared, asked: str) -> State:
        """Return the state of what was compared.

        Args:
            found: what is there, and what the indexes have of it.
            asked: names of the indexes.
        """
        label, advice, now = found.label, found.advice, found.now
        known = found.item.project, str(found.item.version), label
        if advice is not None:
            verdict = f"another fits better: {advice.why}"
            if advice.unfit:
                verdict = f"does not fit: {'; '.join(advice.unfit)}"
            return cls(*known, advice.better, verdict, not advice.unfit, advice)
        if found.error is not None:
            return cls(*known, None, f"not compared: {found.error}")
        if not found.is_listed:
            return cls(*known, None, UNKNOWN.format(asked))
        if found.selection is None or not found.selection.rankings:
            return cls(*known, now, UNREACHABLE if found.unavailable else WITHOUT)
        if found.kept:
            return cls(*known, now, f"kept, as {found.kept}")
        if found.unfit:
            return cls(*known, now, f"does not fit: {'; '.join(found.unfit)}", False)
        if label is not None and label not in found.labels:
            return cls(*known, now, f"the index has no variant {label} of it any more")
        return cls(*known, now, BEST, True)


def states_tree(states: Iterable[State], what: str = "installed") -> list[dict[str, Any]]:
    """Return *states* for JSON, each label under the key *what*."""
    return [
        {"project": each.project, "version": each.version, what: each.label, "now": each.now,
         "release": each.release, "fits": each.fits, "verdict": each.verdict}
        for each in states
    ]  # fmt: skip


def shown_states(found: Iterable[Compared], asked: str, named: Collection[str] = ()) -> list[State]:
    """Return the states of what has or could have variants, and of the projects in *named*."""
    return [
        State.of(each, asked)
        for each in sorted(found, key=lambda each: each.item.project)
        if each.label is not None
        or each.advice is not None
        or each.now not in (None, wheel_labels.NULL_LABEL)
        or each.item.project in named
    ]


def packages_part(states: Iterable[State], problems: Iterable[Problem]) -> Part:
    """Return the part about what is installed."""
    states = tuple(states)
    rows = tuple(state.row for state in states) or (("variants", "none to compare"),)
    return Part(rows, tuple(problems), states_tree(states))


class Asked(NamedTuple):
    """How what is there was compared.

    Attributes:
        indexes: names of the indexes.
        has_catalog: whether the catalogue was asked as well.
        named: normalized names of projects that the user named.
        read: those of which the GPU code was read.
        lacking: those that are installed without code for the GPUs here, which is told elsewhere.
    """

    indexes: str
    has_catalog: bool = False
    named: Collection[str] = ()
    read: Collection[str] = ()
    lacking: Collection[str] = ()


def package_problems(
    groups: Iterable[Sequence[Compared]],
    commands: Commands,
    asked: Asked,
    switch: Callable[[Sequence[Compared]], str] | None = None,
    how: str = "installed",
) -> Iterator[Problem]:
    """Yield what is wrong with packages, why nothing better fits, and what could not be known.

    Args:
        groups: of projects that belong together, from `agreed`.
        commands: what to type.
        asked: how they were compared.
        switch: returns the command that installs or locks what fits of a group; None for that of
            *commands*.
        how: what was done with what is there, ``installed`` or ``locked``.
    """
    errors: list[Exception] = []
    lost: list[Unavailable] = []
    unknown = False
    for group in groups:
        for each in group:
            if isinstance(each.error, PluginFailed):
                yield Problem("plugin", str(each.error))
            elif each.error is not None:
                errors.append(each.error)
                unknown |= how == "installed" and (each.label is not None or each.has_entry)
            elif how == "installed":
                lost += each.unavailable
                yield from _remarks(each, commands, asked)
        told = asked.lacking if how == "installed" else ()
        left = [each for each in group if each.item.project not in told]
        if left:
            is_advised = any(each.advice is not None for each in left)
            yield from _advice(group if is_advised else left, commands, switch, how)
    for item in listings.by_host(lost):
        yield Problem("catalog-place", str(item))
    if errors:
        text = f"the indexes could not be asked, so not all is known: {errors[0]}"
        yield Problem("lookup", text, f"{commands.doctor} --offline", fails=unknown)


def _advice(
    group: Sequence[Compared],
    commands: Commands,
    switch: Callable[[Sequence[Compared]], str] | None,
    how: str,
) -> Iterator[Problem]:
    advised = [(each, each.advice) for each in group if each.advice is not None]
    if advised:
        first, advice = advised[0]
        text = advice.text(first.item.project, str(first.item.version), how)
        if rest := [f"{each.item.project} {each.item.version}" for each, _ in advised[1:]]:
            text += f"; the same goes for {listed(rest, 'and')}"
        if switch is not None:
            command = switch(group)
        elif commands.knows_variants:
            command = commands.switched(each.item.project for each in group)
        else:
            return  # that is a problem of its own
        unfit = any(each.unfit for _, each in advised)
        # What is locked is a decision, of a team perhaps.
        fails = unfit or how == "installed"
        yield Problem("stale-variant" if unfit else "better-variant", text, command, fails=fails)
    for each in group if how == "installed" else ():
        explain = f"{commands.explain} {shlex.quote(f'{each.item.project}=={each.release}')}"
        if each.unfit:
            yield Problem(
                "stale-variant",
                f"{each.name} is installed as variant {each.label}, which does not fit this "
                f"machine ({'; '.join(each.unfit)}), and nothing that does is known",
                explain,
            )
        elif each.advice is None and each.missed:
            best = f"variant {each.now}" if each.now else "the non-variant file"
            yield Problem(
                "unfit-variants",
                f"{each.name}: {best} is the best that fits this machine: {each.missed}",
                explain,
                fails=False,
            )


def _remarks(each: Compared, commands: Commands, asked: Asked) -> Iterator[Problem]:
    """Yield what the user should know of one project that was asked for."""
    project = each.item.project
    has_variant = each.item.label is not None
    for requirement, notice in each.untrusted.items():
        command = f"export VARIANTS_ALLOW_PROVIDER={shlex.quote(requirement)}"
        yield Problem("plugin", f"{each.name}: {notice}", command)
    for text in each.warnings:
        yield Problem("choice", text, fails=False)
    selection = None if project in asked.read else each.selection
    rankings = [] if selection is None else selection.distinct_rankings.values()
    for gpu in {gpu: None for ranking in rankings for gpu in idle_gpus(ranking, each.label or "")}:
        yield Problem(
            "idle-gpu",
            f"{each.name} has no code for one of the GPUs that are here, {gpu}, which stands idle",
            f"{commands.explain} {shlex.quote(f'{project}=={each.release}')} "
            f"--variant-platform {gpu}",
            fails=False,
        )
    if not (has_variant or each.has_entry or project in asked.named):
        return
    if not each.is_listed:
        if each.advice is None:
            text = f"{each.name} is not on {asked.indexes}, so nothing is known of its variants"
            yield Problem("wrong-index", text, fails=has_variant)
    elif each.lack and not each.unavailable:  # there may be some
        text = each.lack + ("; a variant is installed" if has_variant else "")
        command = ""
        if not asked.has_catalog and catalogs.is_in_catalog(project):
            command = f"{commands.catalog} && {commands.doctor} {project}"
        yield Problem("no-variants", text, command, fails=False)


def environment_problems(
    paths: Iterable[str],
    commands: Commands | None = None,
    requirers: Requirers | None = None,
    build: Callable[[Sequence[str]], str] | None = None,
) -> Iterator[Problem]:
    """Yield distributions that own the same files, lack files, or are required by nobody.

    Args:
        paths: package folders of the environment.
        commands: what to type there.
        requirers: what requires them.
        build: returns which of *owners* to install where none is required, such as two builds of
            one project; empty for the one that the catalogue knows.
    """
    commands = commands or Commands()
    folders = tuple(dict.fromkeys(map(os.path.realpath, paths)))
    shared: dict[tuple[str, ...], list[OwnershipProblem]] = {}
    missing: dict[str, list[str]] = {}
    for each in wheel_files.ownership_problems(folders):
        if len(each.owners) > 1:
            shared.setdefault(each.owners, []).append(each)
        elif each.path.startswith(tuple(f"{folder}{os.sep}" for folder in folders)):
            # Not scripts, which other tools move or leave out.
            missing.setdefault(each.owners[0], []).append(each.path)
    required = requirers.required() if requirers is not None else set()
    for owners, files in shared.items():
        names = {owner: owner.partition("==")[0] for owner in owners}
        needed = [owner for owner in owners if names[owner] in required]
        text = f"{listed(owners, 'and')} own the same {_counted([each.path for each in files])}: "
        if len(needed) > 1:
            if all(len(set(each.digests)) == 1 for each in files):
                continue  # with the same contents
            text += f"{listed(needed, 'and')} are required, and cannot share an environment"
            yield Problem("shared-files", text)
            continue
        text += "installing or removing one overwrites or deletes what belongs to the other"
        if needed:
            text += f"; {needed[0]} is required"
            gone = [names[owner] for owner in owners if owner not in needed]
            command = f"{commands.removed(gone)} && {commands.reinstalled(needed[0])}"
        else:
            known = next(
                (owner for owner in owners if catalogs.is_in_catalog(names[owner])), owners[0]
            )
            kept = (build and build(owners)) or known
            command = (
                f"{commands.removed(names.values())} && {commands.install} {shlex.quote(kept)}"
            )
        yield Problem("shared-files", text, command)
    for owner, lacking in missing.items():
        if not any(owner in owners for owners in shared):
            yield Problem(
                "missing-files",
                f"{owner} lacks {_counted(lacking)}: another project was removed that had them, or "
                "they were deleted",
                commands.reinstalled(owner),
            )
    shown = {owner.partition("==")[0] for owners in shared for owner in owners}
    orphans = [name for name in requirers.orphans() if name not in shown] if requirers else []
    if orphans:
        more = len(orphans) - 2
        named = listed(orphans if more < 2 else [*orphans[:2], f"{more} more"], "and")
        text = f"nothing requires {named} any more: libraries of a build that was replaced"
        yield Problem("unrequired", text, commands.removed(orphans), fails=False)


def requirement_problems(
    requirers: Requirers, names: Collection[str], commands: Commands
) -> Iterator[Problem]:
    """Yield requirements of what is installed that projects in *names* do not meet."""
    for item, requirement, found in requirers.unmet(names):
        yield Problem(
            "unmet-requirement",
            f"{item.project} {item.version} requires {requirement.name}{requirement.specifier}, "
            f"and {found.project} {found.version} is installed",
            commands.switched((found.project, item.project)),
        )
    for mismatch in wheel_selection.abi_mismatches(requirers.items):
        own, other = mismatch.installed.project, mismatch.other.project
        if own in names:
            command = commands.switched((other, own))
            yield Problem("unmet-requirement", str(mismatch), command)


def _counted(files: list[str]) -> str:
    return f"{len(files)} file{'s'[: len(files) != 1]}, {Path(files[0]).name} for example"
