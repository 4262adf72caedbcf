"""Arguments and options of several commands, and checks of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from pep_variants.options import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, path_type=Path)

wheels_argument = click.argument("wheels", metavar="WHEEL...", type=FILE, nargs=-1, required=True)

output_option = click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Output directory. Default: that of the wheel.",
)

force_option = click.option("--force", is_flag=True, help="Replace files that exist.")

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")

PLUGIN_OPTIONS = (
    "variant-allow-provider",
    "variant-on-plugin-error",
    "variant-plugin-variable",
    "variant-plugin-sandbox",
)
"""Names of the options of every client that allow provider plugins and say how they run."""


class SharedOption(click.Option):
    """An option that several commands have.

    Attributes:
        section: heading of the options that it is among, in the help of a `Command`.
    """

    def __init__(self, *arguments: Any, section: str, **options: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **options)
        self.section = section


class Command(click.Command):
    """Has its own options first in ``--help``, then a section for those of several commands."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                name = parameter.section if isinstance(parameter, SharedOption) else "Options"
                sections.setdefault(name, []).append(record)
        for name, rows in sections.items():
            with formatter.section(name):
                formatter.write_dl(rows)


def path_or_url(text: str) -> object:
    """Return the path of something that exists, or a URL as it is; the type of an argument.

    Raises:
        click.BadParameter: it is neither.
    """
    if text.startswith(("http://", "https://", "file://")):
        try:
            urlsplit(text)
        except ValueError as error:
            raise click.BadParameter(f"{text!r} is not a valid URL: {error}") from None
        return text
    return click.Path(exists=True, path_type=Path).convert(text, None, None)


def platform_option(
    name: str = "variant_platform",
    *,
    several: bool = False,
    help: str = "Use this machine instead of this one: a name such as h100-zen4, facts such as "  # noqa: A002
    "cuda=12.8,sm=9.0,cpu=zen4, or a platform file",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the decorator for the option that takes a machine, the same in every command.

    Args:
        name: of the keyword argument: text that `load_machine` takes, None without the option.
        several: repeatable; the command gets a tuple.
        help: one sentence, without its full stop.
    """
    return click.option(
        name,
        "--platform",
        "--variant-platform",
        "--target",
        metavar="MACHINE",
        multiple=several,
        help=f"{help}{'; repeatable' if several else ''}.",
    )


def preference_options(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds options *names* of `OPTIONS`, which all clients have.

    The command gets them as keyword arguments, which `option_values` converts for
    `load_preferences`.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(OPTIONS):
            if option.name == "variant-platform" and option.name in names:
                command = platform_option()(command)
            elif option.name in names:
                command = click.option(
                    f"--{option.name}",
                    cls=SharedOption,
                    section="Variant options",
                    is_flag=not option.metavar,
                    metavar=option.metavar or None,
                    multiple=option.repeatable,
                    help=option.help,
                )(command)
        return command

    return decorate


def option_values(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return keyword arguments of a command by the names of `OPTIONS`."""
    return {name.replace("_", "-"): value for name, value in arguments.items()}
