"""Arguments and options of several commands, and checks of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from ..light.parameters import JSON, Kind, preference_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ..light.parameters import Parameter

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


jobs_option = click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of processes. Default: one per core.",
)


_PATHS = {
    Kind.FILE: click.Path(exists=True, dir_okay=False, path_type=Path),
    Kind.NEW_FILE: click.Path(dir_okay=False, path_type=Path),
}


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
    """Return a decorator that adds options which all clients have, see `preference_parameters`.

    The command gets them as keyword arguments, which `option_values` converts for
    `load_preferences`.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for each in reversed(preference_parameters(*names, aliases=aliases)):
            command = click_parameter(each)(command)
        return command

    return decorate


def light_command(
    function: Callable[..., None], parameters: Sequence[Parameter], short_help: str
) -> click.Command:
    """Return the command that click makes of a light one, see `variants_cli.light`."""
    callback: Callable[..., Any] = function
    for each in reversed(parameters):
        callback = click_parameter(each)(callback)
    return click.command(function.__name__, short_help=short_help)(callback)


def click_parameter(parameter: Parameter) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the decorator of click that adds *parameter* to a command."""
    kind = parameter.kind
    settings: dict[str, Any] = {"metavar": parameter.metavar or None}
    if kind in _PATHS:
        settings["type"] = _PATHS[kind]
    if kind is Kind.MACHINE:
        settings["shell_complete"] = complete_machines
    if not parameter.spellings:
        return click.argument(parameter.name, nargs=-1 if parameter.several else 1, **settings)
    return click.option(
        parameter.name,
        *parameter.spellings,
        is_flag=kind is Kind.FLAG,
        multiple=parameter.several,
        callback=_as_list if parameter.several else None,
        help=parameter.help,
        **settings,
    )


json_option = click_parameter(JSON)


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
