"""Commands that uv does not have; ``config`` is ``variants-proxy url``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pep_variants import machines
from variants_index import doctor as machine_doctor
from variants_proxy.commands import cli as proxy_commands

from .._accelerators.command import accelerators
from .._catalog_command import catalog
from .examination import examine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._own_options import Options


def run_own_command(options: Options, environ: Mapping[str, str]) -> int:
    """Run a command that uv does not have; return the exit code."""
    arguments, own = list(options.uv_arguments), (options, environ)
    try:
        code = cli.main(arguments, "uv-variants", standalone_mode=False, obj=own)
    except click.UsageError as error:
        text = f"{error.format_message()} (see uv-variants {arguments[0]} --help)"
        print(f"uv-variants: {text}", file=sys.stderr)
        return 2
    except click.ClickException as error:
        print(f"uv-variants: {error.format_message()}", file=sys.stderr)
        return 1
    except click.Abort:
        return 130
    return code if isinstance(code, int) else 0


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--offline", is_flag=True, help="Ask no index.")
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=Path(),
    help="Examine the project there.",
)
@click.pass_context
def doctor(context: click.Context, *, as_json: bool, offline: bool, directory: Path) -> None:
    """Say whether the variants that are installed and locked fit this machine.

    Nothing is changed. Problems come first, each with the command to type. The exit code is 1 if
    something does not fit or work, else 0.
    """
    options: Options
    environ: Mapping[str, str]
    options, environ = context.obj
    with machines.recorded():  # the report has the warnings of detection
        found = examine(options, environ, directory, offline=offline)
    if as_json:
        click.echo(json.dumps(found.as_tree(), indent=2, ensure_ascii=False))
    else:
        for line in machine_doctor.lines(found):
            click.echo(line)
    context.exit(0 if found.is_well else 1)


cli = click.Group(
    "uv-variants",
    {
        "accelerators": accelerators,
        "doctor": doctor,
        "catalog": catalog,
        "config": proxy_commands.commands["url"],
    },
    context_settings={"max_content_width": 100},
    help="Commands that uv does not have.",
)
