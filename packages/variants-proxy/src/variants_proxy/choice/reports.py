"""Decisions on a project and their reasons: notices in the engine's words, and JSON data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from packaging.version import Version

from pep_variants import File, Selection, verdicts
from pep_variants.internal import (
    ABI_DEPENDENCY,
    Admitted,
    NewestBuild,
    is_accelerated,
    is_unfit,
    missing_variant,
    newest_build,
    nothing_fits,
    notices,
    passed_over,
    some,
    why_not,
    why_not_better,
    why_this,
)
from variants_catalog.internal import not_admitted

from ..upstream.releases import CatalogPage, FetchedPage, published, published_as, wheel_version
from .offers import Choice, Decision, ProjectView, version_in

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
        or is_as_listed(decision)
        or has_unfit_lock(decision)
        or any(
            notice.actionable
            for each in selection.distinct_rankings.values()
            for notice in notices(each)
        )
    )


def has_unfit_lock(decision: Decision) -> bool:
    """Return whether a lock file has a variant that does not fit the machine."""
    if not decision.kept:
        return False
    fitting = {file.label for file in decision.selection.files}
    return any(label is not None and label not in fitting for label in decision.kept)


def is_as_listed(decision: Decision) -> bool:
    """Return whether a requirement with ``===`` leaves out the builds of the catalogue."""
    chosen = decision.selection.chosen
    return (
        decision.exact
        and chosen is not None
        and chosen.label is None
        and any(map(published, decision.release.wheels))
    )


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
            f"{some(labels, _MAX_LABELS)} of {project} {version}: built against a version of "
            f"{some(names, _MAX_LABELS)} (abi_dependency), which uv cannot compare with what it "
            "installs; pip with the shim and variants resolve can"
            for labels, names in left_out(selection)
        )
        + (
            (
                f"{decision.unhashed} of {project} {version}: it has none of the hashes that the "
                "requirements give",
            )
            if decision.unhashed
            else ()
        )
        + ((not_admitted(project, version),) if is_as_listed(decision) else ()),
    }


def refusal(choice: Choice, project: str, filename: str) -> str:
    """Return why a wheel with `Offer.refused` cannot be installed, empty if it is not one."""
    wanted = version_in(filename)
    decision = next((each for each in choice.decisions if each.release.version == wanted), None)
    own = next((o for o in choice.offers if o.refused and o.filename == filename), None)
    if own is not None and own.context is not None:
        return (
            f"{own.file.filename} cannot be installed with its own hash, which is given: it has "
            "variant markers in METADATA, which uv cannot read, and without them another hash: use "
            f"the hashes of {project} that 'uv-variants pip compile --generate-hashes' or "
            "'uv-variants export' writes, or install with pip and pep-variants-shim"
        )
    if decision is None or own is None:
        return ""
    others = (version_in(offer.filename) for offer in choice.offers if not offer.refused)
    newest = max(version for version in others if version is not None)
    unfit = nothing_fits(project, decision.release.version, decision.selection)
    return f"{unfit}\nThe pre-release fits: to take it, require {project}=={newest}."


def older_builds(choice: Choice, project: str, python: str = "") -> dict[Version, NewestBuild]:
    """Return the versions that have no build for the accelerator here, though an older one has.

    Each with the newest such version, or with none if too many versions would have to be read.
    Among them are versions without variants that are newer than all decisions. Nothing where the
    user forces a label.

    Args:
        choice: of the project's files.
        project: normalized name.
        python: oldest version of Python that is installed for, empty for any.
    """
    decisions = choice.decisions
    if not any(is_accelerated(each.selection, each.selection.chosen) for each in decisions):
        return {}
    if any(project in each.selection.preferences.forced for each in decisions):
        return {}
    admitted = [each.admitted for each in decisions if each.is_for(python)]
    newest = decisions[0].release.version
    plain = [version for version in _plain_versions(choice, newest) if version > newest]
    admitted[:0] = [
        Admitted(version, (), lambda: None) for version in plain if not version.is_prerelease
    ]
    # An installer compiles a version of which no wheel fits, if it has sources.
    sources = {version_in(each.filename) for each in choice.offers if each.label is None}
    unfit = {each.release.version for each in decisions if not each.selection.files} & sources
    admitted = [
        Admitted(each.version, (), lambda: None) if each.version in unfit else each
        for each in admitted
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
    for ranking in selection.distinct_rankings.values():
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


def decisions(shown: ProjectView, python: str = "") -> dict[str, object]:
    """Return the decisions on a project and their reasons, as JSON data.

    ``versions`` is newest first; each has ``version``, ``files`` (label, or null for the
    non-variant wheel, by plain filename), ``variants`` (``label``, ``verdict`` and ``why``, the
    chosen one first), ``why`` the chosen one and nothing better, whether something better is
    ``missed``, why the variant that is asked for by name is ``missing``, ``notices``,
    ``problems``, the ``providers`` that the metadata wants (``requires`` and ``plugin-api``, by
    namespace), ``locked`` (see `_locked`), ``older-build`` (see `_older_tree`) and what `remarks`
    returns. The verdict of variants that a lock file has is ``locked``. A version without variants
    is there only if it has an ``older-build``. Of the catalogue's files there is the ``published``
    name, and of those that their publisher has under another name that name and the version
    (``origin``), by plain filename; ``catalog`` is what `_catalog` returns.

    Args:
        shown: the project.
        python: see `older_builds`.
    """
    choice = shown.choice or Choice(())
    older = older_builds(choice, shown.project, python)
    decided = {each.release.version for each in choice.decisions}
    plain = [
        _plain_tree(choice, version, build)
        for version, build in older.items()
        if version not in decided
    ]
    return {
        "project": shown.project,
        "index": shown.upstream.name,
        "catalog": _catalog(shown.found),
        "versions": plain
        + [
            {
                **_decision_tree(each, shown.project),
                **remarks(each, choice, shown.project),
                "older-build": _older_tree(older.get(each.release.version)),
            }
            for each in choice.decisions
        ],
    }


def _decision_tree(decision: Decision, project: str) -> dict[str, object]:
    selection = decision.selection
    chosen = selection.chosen.label if selection.chosen else None
    why = why_this(selection, selection.chosen, project) if selection.chosen else ""
    if decision.agrees:
        why = f"{why}; as for {decision.agrees}, which it belongs to"
    rankings = selection.distinct_rankings.values()
    return {
        "version": str(decision.release.version),
        "files": {name: offer.label for name, offer in decision.offers.items()},
        "published": {
            name: own.original.filename
            for name, offer in decision.offers.items()
            if (own := published(offer.file)) is not None
        },
        "origin": {
            name: requirement
            for name, offer in decision.offers.items()
            if (requirement := published_as(offer.file))
        },
        "variants": [
            {**row._asdict(), **({"verdict": "locked"} if row.label in decision.kept else {})}
            for ranking in rankings
            for row in verdicts(ranking, None if decision.kept else chosen)
        ],
        "why": why,
        "missed": bool(
            selection.chosen
            and project not in selection.preferences.forced
            and why_not_better(selection, selection.chosen)
        ),
        "missing": _missing(decision, project),
        "notices": [notice.text for ranking in rankings for notice in notices(ranking)],
        "problems": [str(problem) for problem in selection.problems.values()],
        "locked": _locked(decision),
        "providers": {
            namespace: {"requires": list(provider.requires), "plugin-api": provider.plugin_api}
            for ranking in rankings
            for namespace, provider in ranking.metadata.providers.items()
            if provider.requires
        },
    }


def _missing(decision: Decision, project: str) -> str:
    """Return why a version lacks the variant that is asked for by name, empty if it does not."""
    release = decision.release
    if project not in decision.selection.preferences.forced:
        return ""
    files = [File(file.filename, "", file) for file in release.wheels]
    found = missing_variant(project, [(str(release.version), decision.selection, files)])
    return "" if found is None else str(found)


def _plain_tree(choice: Choice, version: Version, build: NewestBuild) -> dict[str, object]:
    """Return what there is to say of a version without variants."""
    names = [offer.filename for offer in choice.offers if version_in(offer.filename) == version]
    return {
        "version": str(version),
        "files": dict.fromkeys(names),
        "variants": [],
        "notices": [],
        "problems": [],
        "older-build": _older_tree(build),
    }


def _older_tree(found: NewestBuild | None) -> dict[str, str | None] | None:
    """Return the ``version`` with a build for the accelerator, null if too many were read.

    And the lines about it: ``text`` for where the order of versions counts, ``preferred`` for where
    that build is taken.
    """
    if found is None:
        return None
    is_found = found.version is not None
    return {
        "version": str(found.version) if is_found else None,
        "text": found.missed().text if is_found else "",
        "preferred": found.preferred().text,
    }


def _catalog(found: FetchedPage) -> dict[str, object] | None:
    """Return what the catalogue says of a project: None if it has no entry that is used.

    ``documentation`` of its publisher, what is ``unavailable`` of the places that it names (see
    `variants_catalog.listings.Unavailable`), whether builds are ``excluded`` because of
    `Settings.hashes`, and the ``problem`` of a catalogue that cannot be read.
    """
    if not isinstance(found, CatalogPage):
        return None
    entry = found.entry
    return {
        "documentation": entry.documentation if entry is not None else "",
        "unavailable": [asdict(item) for item in found.unavailable],
        "excluded": found.excluded,
        "problem": found.problem,
    }


def _locked(decision: Decision) -> list[dict[str, object]]:
    """Return what a lock file has of a version for the machine's platform.

    Each has ``label`` (None for a wheel without one), whether it ``fits`` the machine, ``why`` not,
    and the label that would be chosen ``instead``.
    """
    selection = decision.selection
    fitting = {file.label for file in selection.files}
    rankings = selection.distinct_rankings.values()
    return [
        {
            "label": label,
            "fits": label in fitting or label is None,
            "why": "; ".join(
                dict.fromkeys(
                    reason
                    for ranking in rankings
                    if label is not None and label not in fitting
                    for reason in why_not(ranking, label)
                )
            ),
            "instead": selection.chosen.label if selection.chosen else None,
        }
        for label in decision.kept
    ]
