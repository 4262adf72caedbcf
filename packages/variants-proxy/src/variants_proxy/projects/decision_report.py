"""Decisions on a project and their reasons, as JSON data."""

from __future__ import annotations

from dataclasses import asdict

from packaging.version import Version

from pep_variants import File, verdicts
from pep_variants.internal import (
    NewestBuild,
    missing_variant,
    notices,
    why_not,
    why_not_better,
    why_this,
)

from ..choice.offers import Choice, Decision, version_in
from ..choice.remarks import older_builds, remarks
from ..choice.views import ProjectView
from ..upstream.catalog_files import CatalogPage, published, published_as
from ..upstream.upstream_pages import FetchedPage
from ..upstream.upstreams import Upstreams


class DecisionReport:
    """Describes decisions on projects."""

    def __init__(self, upstreams: Upstreams) -> None:
        self._upstreams = upstreams

    async def decisions(self, shown: ProjectView) -> dict[str, object]:
        """Return the decisions on a project and their reasons, as JSON data.

        ``versions`` is newest first; each has ``version``, ``files`` (label, or null for the
        non-variant wheel, by plain filename), ``variants`` (``label``, ``verdict`` and ``why``, the
        chosen one first), ``why`` the chosen one and nothing better, whether something better is
        ``missed``, why the variant that is asked for by name is ``missing``, ``notices``,
        ``problems``, the ``providers`` that the metadata wants (``requires``
        and ``plugin-api``, by namespace), ``locked`` (see `_locked`), ``older-build`` (see
        `_older_tree`) and what `remarks` returns. The verdict of variants that a lock file has is
        ``locked``. A version without variants is there only if it has an ``older-build``. Of the
        catalogue's files there is the ``published`` name, and of those that their publisher has
        under another name that name and the version (``origin``), by plain filename; ``catalog`` is
        what `_catalog` returns.
        """
        choice = shown.choice or Choice(())

        def trees() -> list[dict[str, object]]:
            older = older_builds(choice, shown.project)
            decided = {each.release.version for each in choice.decisions}
            plain = [
                _plain_tree(choice, version, build)
                for version, build in older.items()
                if version not in decided
            ]
            return plain + [
                {
                    **_decision_tree(each, shown.project),
                    **remarks(each, choice, shown.project),
                    "older-build": _older_tree(older.get(each.release.version)),
                }
                for each in choice.decisions
            ]

        return {
            "project": shown.project,
            "index": shown.upstream.name,
            "catalog": _catalog(shown.found),
            "versions": await self._upstreams.budget(shown.upstream).compute(trees),
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
