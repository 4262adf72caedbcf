"""Commands that uv does not have: serve, config and doctor."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pep_variants.internal import redacted
from variants_proxy.internal import LOOPBACK, PORT, TOKEN_VARIABLE, complete_machines, split_token
from variants_proxy.internal import cli as proxy_cli

from .doctor.command import doctor
from .errors import USER_ERRORS

if TYPE_CHECKING:
    from .own_options import Options


def run_own_command(options: Options, environ: Mapping[str, str]) -> int:
    """Run one of the commands; return the exit code."""
    try:
        code = cli.main(
            list(options.uv_arguments),
            "uv-variants",
            standalone_mode=False,
            obj=(options, environ),
        )
    except click.UsageError as error:
        place = error.ctx.command_path if error.ctx else "uv-variants"
        print(f"uv-variants: {error.format_message()} (see {place} --help)", file=sys.stderr)
        return 2
    except click.ClickException as error:
        print(f"uv-variants: {error.format_message()}", file=sys.stderr)
        return 1
    except click.Abort:
        return 130
    return code if isinstance(code, int) else 0


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def cli() -> None:
    """Commands that uv does not have."""


@cli.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def serve(given: tuple[Options, Mapping[str, str]], arguments: tuple[str, ...]) -> None:
    """Run variants-proxy serve for plain uv or pip, with the indexes of uv and a token."""
    environ = given[1]
    options = list(arguments)
    if not {"-h", "--help"}.intersection(options):
        if "--index" not in " ".join(options):
            options += _indexes(environ)
        if not {"--open", "--token-file"}.intersection(options):
            token = environ.get(TOKEN_VARIABLE) or secrets.token_urlsafe(24)
            os.environ[TOKEN_VARIABLE] = token
            click.echo(
                "A uv.toml for it: uv-variants --variant-proxy "
                f"http://uv:{token}@{LOOPBACK}:{_port(options)} config -o uv.toml",
                err=True,
            )
    proxy_cli.main(["serve", *options], "uv-variants", standalone_mode=False)


@cli.command()
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="File.")
@click.option("--url", "only_url", is_flag=True, help="Print only the URL, for --index-url.")
@click.option(
    "--platform",
    default="",
    metavar="NAME",
    shell_complete=complete_machines,
    help="Machine in place of this one: a name that the proxy knows, such as h100-zen4, or facts "
    "such as cuda=12.8,sm=9.0,cpu=zen4.",
)
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@click.pass_obj
def config(
    given: tuple[Options, Mapping[str, str]],
    output: Path | None,
    only_url: bool,
    platform: str,
    force: bool,
) -> None:
    """Print a uv.toml with which plain uv uses the index proxy of --variant-proxy URL.

    It has the platform key of this machine, and the token of the proxy, as user name and password:
    uv leaves both out of lock files, which so are the same for all machines.
    """
    from variants_proxy.internal import keyed_url

    options, environ = given
    if not options.proxy_url:
        raise click.ClickException(
            "for which index proxy? uv-variants --variant-proxy URL config …, or the variable "
            "VARIANTS_PROXY_URL; uv-variants serve and variants-proxy serve run one"
        )
    key = platform or _platform_key(options, environ)
    base, token = split_token(options.proxy_url)
    url = keyed_url(base, key, token)
    text = f'[[index]]\nurl = "{url}"\ndefault = true\n'
    if only_url:
        click.echo(url)
    elif output is None:
        click.echo(text, nl=False)
    else:
        _write_private(output, text, force=force)


cli.add_command(doctor)


def _indexes(environ: Mapping[str, str]) -> list[str]:
    """Return the options of variants-proxy serve for the indexes of uv's files and variables."""
    from .command_scope import Scope
    from .invocation import parse
    from .place import Place
    from .used_indexes import used_indexes

    here = Path.cwd()
    used = used_indexes(parse(["sync"]), Scope.TOOL, Place(here, here, environ))
    found = []
    for name, index in used.indexes.items():
        option = "--find-links" if index.links else "--index"
        url = index.url
        if index.username or index.password:
            from urllib.parse import quote, urlsplit, urlunsplit

            parts = urlsplit(url)
            user = f"{quote(index.username, safe='')}:{quote(index.password, safe='')}"
            place = parts.netloc.rpartition("@")[2]
            url = urlunsplit(parts._replace(netloc=f"{user}@{place}"))
        found += [option, f"{name}={url}"]
    return found


def _port(options: list[str]) -> str:
    given = (after for option, after in pairwise(options) if option == "--port")
    return next(given, str(PORT))


def _platform_key(options: Options, environ: Mapping[str, str]) -> str:
    from pep_variants import load_preferences
    from pep_variants.internal import cache_directory

    from .platform_key import platform_key
    from .report import warn

    try:
        preferences = load_preferences(options.variants, environ, warn=warn)
        key = platform_key(preferences, cache_directory(environ, "proxy"))
    except USER_ERRORS as error:
        raise click.ClickException(redacted(str(error))) from None
    if key.platforms:
        raise click.ClickException(
            "the description of this machine is too long for a URL: give the proxy its platform "
            "file (serve --platform NAME=FILE) and name it (config --platform NAME)"
        )
    return key.key


def _write_private(path: Path, text: str, *, force: bool) -> None:
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if force else os.O_EXCL)
    try:
        handle = os.open(path, flags, 0o600)  # there may be a token in it
    except FileExistsError:
        raise click.ClickException(f"{path} exists: use --force to replace it") from None
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror}") from None
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
