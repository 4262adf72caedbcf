"""The directives `command-help` and `uv-options`: what `--help` prints, as sections of a page.

    ```{command-help} variants_cli.main:cli variants
    ```

makes a section for the command and one for each of its subcommands.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import TYPE_CHECKING

import click
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx


def paragraphs(text: str) -> Iterator[nodes.Element]:
    r"""Yield the paragraphs of a help text; those that begin with ``\b`` keep their lines."""
    for part in inspect.cleandoc(text).partition("\f")[0].split("\n\n"):
        if part.startswith("\b"):
            lines = part.removeprefix("\b").strip("\n")
            yield nodes.literal_block(lines, lines, language="text")
        elif part.strip():
            yield nodes.paragraph("", " ".join(part.split()))


def described(rows: list[tuple[str, str]], place: str) -> nodes.definition_list:
    """Return a list of names, each an anchor of the page, with what they mean."""
    found = nodes.definition_list()
    for name, meaning in rows:
        term = nodes.term("", "", nodes.literal(name, name))
        longest = max(name.replace(",", " ").split("/")[0].split(), key=_dashes)
        term["ids"].append(nodes.make_id(f"{place} {longest}"))
        item = nodes.definition("", nodes.paragraph("", meaning))
        found += nodes.definition_list_item("", term, item)
    return found


def _dashes(word: str) -> int:
    return len(word) - len(word.lstrip("-"))


def command_section(command: click.Command, context: click.Context) -> nodes.section:
    """Return the section of *command*, with those of its subcommands."""
    path = context.command_path
    section = nodes.section("", nodes.title(path, path), ids=[nodes.make_id(path)], names=[path])
    usage = command.get_usage(context)
    section += nodes.literal_block(usage, usage, language="text")
    section += list(paragraphs(command.help or ""))
    records = (parameter.get_help_record(context) for parameter in command.get_params(context))
    if rows := [record for record in records if record is not None]:
        section += described(rows, path)
    section += list(paragraphs(command.epilog or ""))
    section += subcommand_sections(command, context)
    return section


def subcommand_sections(command: click.Command, context: click.Context) -> list[nodes.section]:
    """Return the sections of the subcommands that ``--help`` lists."""
    if not isinstance(command, click.Group):
        return []
    found = []
    for name in command.list_commands(context):
        subcommand = command.get_command(context, name)
        if subcommand is not None and not subcommand.hidden:
            settings = subcommand.context_settings
            below = click.Context(subcommand, parent=context, info_name=name, **settings)
            found.append(command_section(subcommand, below))
    return found


class CommandHelp(SphinxDirective):
    """Sections of a click command, given as ``module:name``, under the name of its program.

    With ``below`` as the third argument: of its subcommands alone.
    """

    required_arguments = 2
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        module, _, name = self.arguments[0].partition(":")
        command = getattr(import_module(module), name)
        context = click.Context(command, info_name=self.arguments[1], **command.context_settings)
        if self.arguments[2:] == ["below"]:
            return [*subcommand_sections(command, context)]
        return [command_section(command, context)]


class UvOptions(SphinxDirective):
    """The options of uv-variants, which are no click options: what it does not know is uv's."""

    def run(self) -> list[nodes.Node]:
        """Return the list."""
        from uv_variants._own_options import option_rows

        return [described(option_rows("uv-variants"), "uv-variants")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.add_directive("command-help", CommandHelp)
    app.add_directive("uv-options", UvOptions)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
