"""The command line with all its commands, read by click."""

from __future__ import annotations

import signal
import sys
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

import click
from click.shell_completion import CompletionItem

from pep_variants.errors import VariantError

from .console import fail, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

FAILURE = 1
USAGE = 2
INTERRUPTED = 128 + signal.SIGINT

COMMANDS = {
    "cache": "Show or clear the cache of package indexes.",
    "catalog": "List, show, check and enable builds that exist as variants.",
    "check": "List installed packages that have a better variant.",
    "detect": "Show what this machine supports.",
    "doctor": "Show why a build was chosen here, what is wrong, and what to type.",
    "explain": "Show all variants on an index, and why each is chosen or not.",
    "index": "Turn a directory of wheels into a package index.",
    "inspect": "Show label, properties and providers of a wheel.",
    "make": "Turn plain wheels into variant wheels.",
    "matrix": "Show, plan or build the variants of a build matrix.",
    "platforms": "List known machines, or print the platform file of one.",
    "providers": "Show built-in providers, allowed and installed plugins.",
    "publish": "Upload wheels and metadata.",
    "rank": "Rank the variants of a version.",
    "resolve": "Resolve requirements over indexes, variants included.",
    "storage": "Show and change what is published on storage.",
    "trust": "Approve the variants.toml of a project directory.",
    "unmake": "Turn variant wheels back into plain ones.",
    "validate": "Check wheels, metadata, directories, recipes and live indexes.",
}
"""Short help by command, here as well: ``--help`` and completion need not load all of them."""


class _Commands(click.Group):
    """Imports a command when it is wanted: one that answers at once need not load the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f".commands.{cmd_name}", __package__)
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [
            CompletionItem(name, help=text)
            for name, text in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
)
@click.version_option(package_name="variants-cli", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Wheel variants (PEP 817, PEP 825): make, publish, check and choose them."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def run(arguments: Sequence[str] | None) -> NoReturn:
    """Run the command and exit, see `main.main`.

    Args:
        arguments: without the name of the program; None for those of the process.
    """
    _run(cli, arguments, "variants")


def end(name: str, raised: BaseException) -> NoReturn:
    """Exit as click would have made the light command *name*, which has raised an error."""
    _run(click.Command(name, callback=lambda: _raise(raised)), [], f"variants {name}")


def _run(command: click.Command, arguments: Sequence[str] | None, program: str) -> NoReturn:
    try:
        code = command.main(arguments, prog_name=program, standalone_mode=False)
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "variants"
        fail(f"{error.format_message().rstrip('.')} (see {path} --help)")
        sys.exit(USAGE)
    except click.ClickException as error:
        fail(error.format_message())
        for line in getattr(error, "details", ()):
            click.echo(f"  {printable(line)}", err=True)
        sys.exit(FAILURE)
    except VariantError as error:
        fail(str(error))
        sys.exit(FAILURE)
    except OSError as error:
        place = f"{error.filename}: " if error.filename is not None else ""
        fail(f"{place}{error.strerror or error}")
        sys.exit(FAILURE)
    except (click.Abort, KeyboardInterrupt) as error:
        # Click also turns EOFError into Abort, although it is not an interrupt.
        if isinstance(error.__cause__, EOFError):
            _report(error.__cause__)
        fail("interrupted")
        sys.exit(INTERRUPTED)
    except Exception as error:
        _report(error)
    sys.exit(code or 0)


def _raise(error: BaseException) -> NoReturn:
    raise error


def _report(fault: Exception) -> NoReturn:
    """Print the report of a bug, and exit."""
    from pep_variants.errors import EXIT_CODE, fault_report

    click.echo(fault_report("variants", fault), err=True)
    sys.exit(EXIT_CODE)
