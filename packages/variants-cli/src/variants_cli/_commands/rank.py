"""`variants rank`: ranks the variants of a version, with reasons for rejections."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pep_variants import preferences as user_preferences
from pep_variants import selection as wheel_selection

from .._console import note, print_json, print_table, warn
from .._detection import detector_for, read_metadata_file
from .arguments import FILE, PLUGIN_OPTIONS, json_option, option_values, preference_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pep_variants.selection import Ranking


@click.command()
@click.argument("file", type=FILE)
@preference_options(
    "variant-platform", "variant-prefer", "variant-exclude", "variant-enable", *PLUGIN_OPTIONS
)
@json_option
def rank(file: Path, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Rank the variants of a version.

    FILE is a *-variants.json. Compatible variants are listed first, in order, then the others with
    reasons. Options, VARIANTS_... variables and variants.toml apply as for installers.
    """
    metadata = read_metadata_file(file)
    preferences = user_preferences.load_preferences(option_values(options), os.environ, warn=warn)
    ranking = wheel_selection.rank(
        metadata, detector_for(preferences).platform(metadata), preferences
    )
    selected = ranking.labels[0] if ranking.labels else None
    if as_json:
        print_json(wheel_selection.ranking_tree(ranking, selected))
        return
    rows = list(_rows(ranking, selected))
    if rows:
        print_table(("label", "verdict", "why"), rows)
    else:
        note(f"{file} lists no variants")
    for notice in wheel_selection.notices(ranking):
        note(notice.text)


def _rows(ranking: Ranking, selected: str | None) -> Iterator[tuple[str, str, str]]:
    """Yield the rows of the table: one for each reason against a variant.

    Notices of whole namespaces follow once, below the table.
    """
    for label, verdict, why in wheel_selection.verdicts(ranking, selected):
        if verdict != "rejected":
            yield label, verdict, why
            continue
        first, *more = wheel_selection.why_not(ranking, label, notices=False)
        yield label, verdict, first
        yield from (("", "", phrase) for phrase in more)
