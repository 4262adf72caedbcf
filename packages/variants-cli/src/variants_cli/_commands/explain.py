"""`variants explain`: shows all variants of a version on an index, with reasons."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from pep_variants import selection as wheel_selection
from resolvelib_variants import resolution
from resolvelib_variants.resolution import RequirementError
from variants_catalog import entries

from .._console import note, print_json, print_table, warn
from .arguments import Command, json_option, option_values
from .index_options import index_options, places, progress, resolving

if TYPE_CHECKING:
    from resolvelib_variants.resolution import Explanation


@click.command(cls=Command)
@click.argument("requirement")
@index_options
@json_option
def explain(requirement: str, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Show all variants on an index, and why each is chosen or not.

    Shows the newest compatible version for REQUIREMENT. Dependencies are not considered:
    use `variants resolve` for them.

    Example: variants explain 'torch==2.9.*' --platform h100.toml
    """
    try:
        wanted = resolution.parse_requirement(requirement)
    except RequirementError as error:
        raise click.UsageError(str(error)) from None
    where = places(options)
    with resolving(where, option_values(options)) as resolver, progress() as tell:
        explanations = [
            resolution.explain(resolver, wanted, target, pre=where.pre, progress=tell)
            for target in where.targets
        ]
    if as_json:
        trees = [_tree(explanation) for explanation in explanations]
        print_json(trees[0] if len(trees) == 1 else trees)
    else:
        for number, explanation in enumerate(explanations):
            if number:
                click.echo()
            _show(explanation, several=len(explanations) > 1)
    for text in dict.fromkeys(text for found in explanations for text in found.warnings):
        warn(text)


def _show(explanation: Explanation, *, several: bool) -> None:
    name = f"{explanation.project} {explanation.version}"
    place = f" for {explanation.target.name}" if several else ""
    rankings = explanation.rankings
    if not rankings:
        chosen = explanation.chosen
        click.echo(f"{name}{place}: {chosen.published if chosen else 'nothing fits'}")
        if explanation.lack:
            note(explanation.lack)
        return
    entry = explanation.entry
    for source in rankings:
        click.echo(f"{name}{place}" + (f" on {source}" if len(rankings) > 1 else ""))
        rows = explanation.verdicts(source)
        shown = [(row.label or "(none)", row.verdict, row.why) for row in rows]
        if not explanation.builds or entry is None or source != entry.source:
            print_table(("label", "verdict", "why"), shown)
            continue
        builds = [explanation.builds.get(row.label, "-") for row in rows]
        print_table(
            ("label", "verdict", "from", "why"),
            [(*row[:2], build, row[2]) for row, build in zip(shown, builds, strict=True)],
        )
        click.echo(f"Source: {entry.source}; see {entry.documentation}")
        of: dict[str, list[str]] = {}
        for label, measured in explanation.measured.items():
            of.setdefault(entries.basis(measured, explanation.version), []).append(label)
        for basis, labels in of.items():
            click.echo(f"GPU code of {', '.join(sorted(labels))}: {basis}")


def _tree(explanation: Explanation) -> dict[str, Any]:
    chosen, entry = explanation.chosen, explanation.entry
    sources = []
    for source, ranking in explanation.rankings.items():
        label = chosen.label if chosen else None
        selected = None if label is None else ranking.metadata.label_of(label)
        labels = sorted(ranking.metadata.variants)
        files = {label: list(explanation.files(source, label)) for label in labels}
        sources.append(
            {"source": source, **wheel_selection.ranking_tree(ranking, selected), "files": files}
        )
    return {
        "project": explanation.project,
        "version": str(explanation.version),
        "target": explanation.target.name,
        "file": chosen.published if chosen else None,
        "catalog": entry
        and {
            "entry": entry.source,
            "documentation": entry.documentation,
            "builds": dict(explanation.builds),
            "measured": {
                label: [asdict(item) for item in measured]
                for label, measured in explanation.measured.items()
            },
        },
        "plain": explanation.plain,
        "sources": sources,
        "warnings": list(explanation.warnings),
        "version_note": explanation.version_note and explanation.version_note._asdict(),
    }
