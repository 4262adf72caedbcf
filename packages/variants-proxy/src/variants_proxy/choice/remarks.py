"""Notices about a decision for users, in the engine's words."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from packaging.version import Version

from pep_variants import Ranking, Selection, split_label
from pep_variants.internal import (
    ABI_DEPENDENCY,
    Admitted,
    NewestBuild,
    is_accelerated,
    is_unfit,
    newest_build,
    nothing_fits,
    notices,
    passed_over,
)

from ..upstream.releases import wheel_version
from .offers import Choice, Decision, version_in

TAKEN = "{taken}"
"""Placeholder in `remarks` for the installed version, which the proxy does not know."""

_MAX_LABELS = 3


def is_notable(choice: Choice, project: str) -> bool:
    """Return whether there are notices about *project*, of which *choice* was made."""
    return any(map(_is_notable, choice.decisions)) or bool(older_builds(choice, project))


def _is_notable(decision: Decision) -> bool:
    """Return whether there are notices about *decision* alone."""
    selection = decision.selection
    return bool(
        selection.problems
        or is_unfit(selection)
        or left_out(selection)
        or decision.unhashed
        or has_unfit_lock(decision)
        or any(notice.actionable for each in _rankings(selection) for notice in notices(each))
    )


def has_unfit_lock(decision: Decision) -> bool:
    """Return whether a lock file has a variant that does not fit the machine."""
    if not decision.kept:
        return False
    fitting = {file.label for file in decision.selection.files}
    return any(label is not None and label not in fitting for label in decision.kept)


def remarks(decision: Decision, choice: Choice, project: str) -> dict[str, str | tuple[str, ...]]:
    """Return the notices about *decision* as JSON data.

    ``unfit`` is why no file of the version can be installed, ``passed-over`` that it was skipped
    in favour of `TAKEN`, ``left-out`` the variants that uv cannot evaluate; empty without notice.

    Args:
        decision: one of *choice*.
        choice: of the project's files.
        project: normalized name.
    """
    version, selection = decision.release.version, decision.selection
    unfit = passed = ""
    if is_unfit(selection):
        plain = _plain_versions(choice, version)
        unfit = str(nothing_fits(project, version, selection, plain=plain))
        passed = passed_over(project, [(version, selection)], TAKEN)
    return {
        "unfit": unfit,
        "passed-over": passed,
        "left-out": tuple(
            f"{_listed(labels)} of {project} {version}: built against a version of "
            f"{_listed(names)} (abi_dependency), which uv cannot compare with what it installs; "
            "pip with the shim and variants resolve can"
            for labels, names in left_out(selection)
        )
        + (
            (
                f"{decision.unhashed} of {project} {version}: it has none of the hashes that the "
                "requirements give",
            )
            if decision.unhashed
            else ()
        ),
    }


def refusal(choice: Choice, project: str, filename: str) -> str:
    """Return why a wheel with `Offer.refused` cannot be installed, empty if it is not one."""
    wanted = version_in(filename)
    decision = next((each for each in choice.decisions if each.release.version == wanted), None)
    if decision is None or not any(o.refused and o.filename == filename for o in choice.offers):
        return ""
    others = (version_in(offer.filename) for offer in choice.offers if not offer.refused)
    newest = max(version for version in others if version is not None)
    unfit = nothing_fits(project, decision.release.version, decision.selection)
    return f"{unfit}\nThe pre-release fits: to take it, require {project}=={newest}."


def older_builds(choice: Choice, project: str) -> dict[Version, NewestBuild]:
    """Return the versions that have no build for the accelerator here, though an older one has.

    Each with the newest such version, or with none if too many versions would have to be read.
    Among them are versions without variants that are newer than all decisions. Nothing where the
    user forces a label.

    Args:
        choice: of the project's files.
        project: normalized name.
    """
    decisions = choice.decisions
    if not any(is_accelerated(each.selection, each.selection.chosen) for each in decisions):
        return {}
    if any(project in each.selection.preferences.forced for each in decisions):
        return {}
    admitted = [
        Admitted(
            each.release.version,
            [split_label(file.filename)[1] or "" for file in each.release.wheels],
            partial(getattr, each, "selection"),
        )
        for each in decisions
    ]
    newest = admitted[0].version
    plain = [version for version in _plain_versions(choice, newest) if version > newest]
    admitted[:0] = [
        Admitted(version, (), lambda: None) for version in plain if not version.is_prerelease
    ]
    kept = {each.release.version for each in decisions if each.kept}
    found: dict[Version, NewestBuild] = {}
    for number, each in enumerate(admitted):
        build = newest_build(project, admitted[number:], lambda: True)
        if build is not None and build.newest == each.version and each.version not in kept:
            found[each.version] = build
    return found


def left_out(selection: Selection[Any]) -> list[tuple[list[str], list[str]]]:
    """Return labels rejected because of `abi_dependency` only, and the projects it names."""
    found = []
    for ranking in _rankings(selection):
        names: dict[str, None] = {}
        labels = []
        for label in ranking.rejected_labels:
            reasons = ranking.reasons(label)
            if reasons and all(reason.namespace == ABI_DEPENDENCY for reason in reasons):
                labels.append(label)
                names.update((reason.feature, None) for reason in reasons)
        if labels:
            found.append((labels, list(names)))
    return found


def _plain_versions(choice: Choice, unfit: Version) -> list[Version]:
    plain = (offer for offer in choice.offers if offer.label is None and not offer.refused)
    found = {version for offer in plain if (version := wheel_version(offer.filename)) is not None}
    return sorted(found - {unfit}, reverse=True)


def _rankings(selection: Selection[Any]) -> Iterable[Ranking]:
    return selection.distinct_rankings.values()


def _listed(names: list[str]) -> str:
    more = len(names) - _MAX_LABELS
    return ", ".join(names[:_MAX_LABELS]) + (f" and {more} more" if more > 0 else "")
