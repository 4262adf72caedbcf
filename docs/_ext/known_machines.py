"""The directive `known-machines`: what `variants platforms` lists, a table for each kind."""

from __future__ import annotations

import json
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from click.testing import CliRunner
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sphinx.application import Sphinx

COLUMNS = {"name": 3, "facts": 4, "machine": 5}


def table(rows: Iterable[Sequence[str]]) -> nodes.table:
    """Return a table of *rows*: name, facts and title of machines."""
    head = nodes.thead("", row([nodes.Text(name) for name in COLUMNS]))
    body = nodes.tbody()
    for name, facts, title in rows:
        body += row([nodes.literal(name, name), nodes.literal(facts, facts), nodes.Text(title)])
    widths = [nodes.colspec(colwidth=width) for width in COLUMNS.values()]
    return nodes.table("", nodes.tgroup("", *widths, head, body, cols=len(widths)))


def row(cells: Iterable[nodes.Node]) -> nodes.row:
    """Return a row of a table."""
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", cell)) for cell in cells))


class KnownMachines(SphinxDirective):
    """A section with a table for each kind of machine."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        from variants_cli.main import cli

        printed = CliRunner().invoke(cli, ["platforms", "--json"], catch_exceptions=False).stdout
        found: list[nodes.Node] = []
        for kind, members in groupby(json.loads(printed)["platforms"], itemgetter("group")):
            title = kind[0].upper() + kind[1:]
            section = nodes.section("", nodes.title(title, title), ids=[nodes.make_id(title)])
            section += table(
                (
                    each["name"],
                    ",".join(f"{fact}={'+'.join(each['facts'][fact])}" for fact in each["facts"]),
                    each["title"],
                )
                for each in members
            )
            found.append(section)
        return found


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.add_directive("known-machines", KnownMachines)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
