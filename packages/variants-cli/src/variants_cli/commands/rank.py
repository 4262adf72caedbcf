"""`variants rank`: which variants of a version fit, in which order, and why the others do not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pep_variants.explanation import notices, why_chosen, why_not
from pep_variants.preferences import load_preferences
from pep_variants.ranking import rank as rank_variants

from ..console import note, print_json, print_table
from ..detection import detector_for, read_metadata_file
from .arguments import json_option, option_values, preference_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pep_variants.property import Properties
    from pep_variants.ranking import Ranking


@click.command(short_help="Judge and order the variants of a version.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@preference_options(
    "variant-platform",
    "variant-prefer",
    "variant-exclude",
    "variant-enable",
    "variant-allow-provider",
    aliases={"variant-platform": "platform"},
)
@json_option
def rank(file: Path, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Judge and order the variants of a version.

    FILE is a *-variants.json. Variants that fit come first, in order, the rest with what they
    need. Options, VARIANTS_... variables and variants.toml count as for the installers.
    """
    metadata = read_metadata_file(file)
    preferences = load_preferences(option_values(options), os.environ)
    detector = detector_for(preferences)
    ranking = rank_variants(metadata, detector.platform(metadata), preferences)
    selected = ranking.labels[0] if ranking.labels else None
    if as_json:
        print_json(ranking_tree(ranking, selected))
        return
    rows = list(_rows(ranking, selected))
    if rows:
        print_table(("label", "verdict", "why"), rows)
    else:
        note(f"{file} lists no variants")
    for notice in notices(ranking):
        note(notice.text)


def _rows(ranking: Ranking, selected: str | None) -> Iterator[tuple[str, str, str]]:
    for variant in ranking.ranked:
        verdict = "chosen" if variant.label == selected else "compatible"
        yield variant.label, verdict, why_chosen(variant.supported) or "always fits"
    for rejected in ranking.rejected_labels:
        label, verdict = rejected, "rejected"
        # Notices of whole namespaces follow once, below the table.
        for phrase in why_not(ranking, rejected, notices=False):
            yield label, verdict, phrase
            label = verdict = ""


def ranking_tree(ranking: Ranking, selected: str | None) -> dict[str, Any]:
    """Return the judgement as JSON data, with the *selected* label."""
    return {
        "selected": selected,
        "ranked": [
            {
                "label": variant.label,
                "properties": _plain(variant.properties),
                "supported": _plain(variant.supported),
            }
            for variant in ranking.ranked
        ],
        "rejected": [
            {
                "label": variant.label,
                "reasons": [
                    {
                        "namespace": reason.namespace,
                        "feature": reason.feature,
                        "wanted": list(reason.wanted),
                        "supported": list(reason.supported),
                    }
                    for reason in variant.reasons
                ],
            }
            for variant in ranking.rejected
        ],
    }


def _plain(properties: Properties) -> dict[str, dict[str, list[str]]]:
    return {
        namespace: {feature: list(values) for feature, values in features.items()}
        for namespace, features in properties.items()
    }
