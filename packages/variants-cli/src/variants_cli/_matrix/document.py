"""A matrix as a document: its tables, what is known of each value, and a decision tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jinja2 import Environment, PackageLoader

from .model import Matrix, Value, Variant
from .output import needs


def document(matrix: Matrix, variants: Sequence[Variant]) -> str:
    """Return *variants* as Markdown, with a decision tree for Mermaid."""
    return _rendered("document.md", matrix, variants)


def reference(matrix: Matrix, variants: Sequence[Variant]) -> str:
    """Return as Markdown what *matrix* says of the values of *variants*, for people."""
    return _rendered("reference.md", matrix, variants)


def _rendered(name: str, matrix: Matrix, variants: Sequence[Variant]) -> str:
    # What comes out is Markdown, in which HTML's characters need no escape.
    environment = Environment(
        loader=PackageLoader("variants_cli", "_matrix"),
        autoescape=False,  # noqa: S701
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(cell=_cell, needs=needs)
    axes = {
        axis: [value for value in values if any(value is v.values[axis] for v in variants)]
        for axis, values in matrix.axes.items()
    }
    template = environment.get_template(name)
    text = template.render(
        matrix=matrix, variants=variants, axes=axes, tree=_branches(variants, list(axes))
    )
    return f"{text.strip()}\n"


def _cell(text: str) -> str:
    """Return *text* as a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def _branches(
    variants: Sequence[Variant], axes: Sequence[str], node: str = "start"
) -> Iterator[str]:
    """Yield the lines of a Mermaid flowchart: a question for each axis that still decides.

    Args:
        variants: those that remain.
        axes: axes that have not been asked for.
        node: where the branches start.
    """
    if not axes:
        yield f'{node}(["{variants[0].label}"])'
        return
    axis, *later = axes
    names = list(dict.fromkeys(variant.values[axis].name for variant in variants))
    if len(names) == 1:
        yield from _branches(variants, later, node)
        return
    yield f'{node}{{"{axis}?"}}'
    for number, name in enumerate(names):
        some = [variant for variant in variants if variant.values[axis].name == name]
        answer = _answer(some[0].values[axis]).replace('"', "#quot;")
        yield f'{node} -->|"{answer}"| {node}_{number}'
        yield from _branches(some, later, f"{node}_{number}")


def _answer(value: Value) -> str:
    """Return in a few words which machine *value* is for."""
    needed = needs(value.settings.properties)
    return ": ".join(filter(None, (value.title, needed))) or value.name
