"""Arguments and options of several commands, and checks of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from pep_variants.choose.options import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

wheels_argument = click.argument(
    "wheels",
    metavar="WHEEL...",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    nargs=-1,
    required=True,
)

output_option = click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Output directory. Default: that of the wheel.",
)

force_option = click.option("--force", is_flag=True, help="Replace files that exist.")

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")

jobs_option = click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of processes. Default: one per core.",
)


PLUGIN_OPTIONS = (
    "variant-on-plugin-error",
    "variant-plugin-variable",
    "variant-plugin-sandbox",
)
"""Those of the options of every client that say how allowed provider plugins run."""


class PathOrURL(click.Path):
    """Parameter type: an existing path, or a URL."""

    def __init__(self, *, file_okay: bool = True) -> None:
        super().__init__(exists=True, file_okay=file_okay, path_type=Path)

    def convert(
        self,
        value: Any,  # noqa: ANN401 - as click has it
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:  # noqa: ANN401
        """Return a path, or the URL as it is."""
        if str(value).startswith(("http://", "https://", "file://")):
            return value
        return super().convert(value, param, ctx)


def complete_machines(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the known machines whose names begin with *incomplete*, and files where none does."""
    from pep_variants.detect.known_machines import names_beginning

    names = map(CompletionItem, names_beginning(incomplete))
    return [CompletionItem(incomplete, type="file"), *names]


def preference_options(
    *names: str, aliases: Mapping[str, str] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds options which all clients have.

    Args:
        names: which of `OPTIONS`.
        aliases: shorter names by name.

    The command gets them as keyword arguments, which `option_values` converts for
    `load_preferences`.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed([option for option in OPTIONS if option.name in names]):
            spellings = [f"--{option.name}"]
            if aliases and option.name in aliases:
                spellings.insert(0, f"--{aliases[option.name]}")
            command = click.option(
                option.name.replace("-", "_"),
                *spellings,
                is_flag=not option.metavar,
                metavar=option.metavar or None,
                multiple=option.repeatable,
                callback=_as_list if option.repeatable else None,
                shell_complete=complete_machines if option.metavar == "MACHINE" else None,
                help=option.help,
            )(command)
        return command

    return decorate


def option_values(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by the names of `OPTIONS`."""
    return {name.replace("_", "-"): value for name, value in arguments.items()}


def _as_list(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> list[str]:
    return list(values)


def check_targets(targets: Iterable[tuple[Path, Path]], *, force: bool) -> None:
    """Refuse to write two wheels to one path, or, without *force*, over a file.

    Args:
        targets: path to read and path to write, of each.
        force: allow replacing existing files.
    """
    sources: dict[Path, Path] = {}
    for source, target in targets:
        if target in sources:
            raise click.ClickException(
                f"{sources[target]} and {source} would both be written to {target}"
            )
        sources[target] = source
        if target.exists() and not force:
            raise click.ClickException(f"{target} exists: use --force to replace it")
