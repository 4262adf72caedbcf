"""The command ``variants-proxy``: run the index proxy, print its URL, export its answers."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from dataclasses import replace
from pathlib import Path

import click
from packaging.requirements import InvalidRequirement, Requirement

from pep_variants import limits, safe_files
from pep_variants import preferences as user_preferences
from pep_variants import selection as wheel_selection
from pep_variants.errors import VariantError, file_problem

from .._index_urls import index_url, keyed_url, proxy_base
from .._key import PLATFORM_NAME, Machine, described_machine, encode
from .._server.listening import LOOPBACK, PORT, is_wildcard, listen
from ..errors import ProxyError
from ..settings import Settings
from .source_options import named_machine, settings_options

TOKEN_VARIABLE = "VARIANTS_PROXY_TOKEN"  # noqa: S105 - a name
TOKEN_CHARACTERS = 16
"""The fewest of a token that is asked of clients."""
_VARIABLES = {"auto_envvar_prefix": "VARIANTS_PROXY", "show_default": True}


def main() -> None:
    """Run the command line, reporting errors in one line."""
    try:
        cli(prog_name="variants-proxy")
    except (ProxyError, VariantError) as error:
        print(f"variants-proxy: {error}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        print(f"variants-proxy: {file_problem(error)}", file=sys.stderr)
        sys.exit(1)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(
    None, "-V", "--version", package_name="variants-proxy", message="%(prog)s %(version)s"
)
@click.option("-v", "--verbose", is_flag=True, help="Log each decision on stderr.")
def cli(verbose: bool) -> None:
    """Index proxy for wheel variants.

    Every installer that reads a simple index gets, for each version, the variant that fits the
    machine as a plain wheel.
    """
    if verbose:
        wheel_selection.log_decisions("variants-proxy")


@cli.command(context_settings=_VARIABLES)
@click.option("--host", default=LOOPBACK, help="Address to listen at.")
@click.option("--port", default=PORT, help="Port to listen at; 0 for a free one.")
@settings_options
@click.option(
    "--platform",
    multiple=True,
    metavar="NAME=MACHINE",
    help="Machine and its name in URLs, beside the known ones: a platform file, or facts such as "
    "cuda=12.8,sm=9.0,cpu=zen4; repeatable.",
)
@click.option(
    "--name",
    multiple=True,
    metavar="HOST",
    help="Host name that clients use, '*' for any; repeatable.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help=f"File with the token that clients have to send.  [default: {TOKEN_VARIABLE}]",
)
@click.option(
    "--open",
    "is_open",
    is_flag=True,
    envvar="VARIANTS_PROXY_OPEN",  # not IS_OPEN
    help="Answer all clients, without a token.",
)
@click.option("--access-log", is_flag=True, help="Write one line per request to stderr.")
def serve(
    host: str,
    port: int,
    settings: Settings,
    platform: tuple[str, ...],
    name: tuple[str, ...],
    token_file: Path | None,
    is_open: bool,
    access_log: bool,
) -> None:
    """Run the proxy until a signal stops it.

    Clients send the token as the password of HTTP Basic or as a bearer token.
    Each option is also a variable: VARIANTS_PROXY_INDEX for --index, with blanks between several
    values. Put URLs with passwords there: other users of the machine can read options.
    """
    token = "" if is_open else _token(token_file)
    settings = replace(
        settings,
        platforms=dict(map(named_machine, platform)),
        hosts=(*name, *([] if is_wildcard(host) else [host])),
    )
    try:
        listening = listen(host, port)
    except OSError as error:
        raise click.ClickException(
            f"{host}:{port}: {error.strerror}; choose another address with --host and --port"
        ) from None
    from .._server import middleware  # 150 ms, for this command alone
    from .._server import server as servers

    server = servers.make_server(
        settings,
        middleware=None if is_open else lambda app: middleware.TokenMiddleware(app, token),
        access_log=access_log,
    )
    place = f"[{host}]" if ":" in host else host
    names = ", ".join(upstream.name for upstream in settings.upstreams)
    click.echo(f"Serving {names} at http://{place}:{listening.getsockname()[1]}", err=True)
    server.run_until_signal(listening)


@cli.command("export", context_settings=_VARIABLES)
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "platform",
    "--platform",
    "--variant-platform",
    "--target",
    required=True,
    metavar="MACHINE",
    allow_from_autoenv=False,
    help="Machine: a platform file, a name such as h100-zen4, or facts such as "
    "cuda=12.8,sm=9.0,cpu=zen4.",
)
@click.option(
    "--project",
    "projects",
    multiple=True,
    required=True,
    metavar="REQUIREMENT",
    allow_from_autoenv=False,
    help="Project, with its versions if not all: 'torch>=2.8'; repeatable.",
)
@click.option(
    "--system",
    default="",
    metavar="SYSTEM-CPU",
    help="Wheels of one system only: linux-x86_64, win-x86_64, macosx-aarch64.  [default: all]",
)
@click.option(
    "--files",
    is_flag=True,
    help="Store all files. Without it those without a variant are links to their index.",
)
@settings_options
def export_command(
    directory: Path,
    platform: str,
    projects: tuple[str, ...],
    system: str,
    files: bool,
    settings: Settings,
) -> None:
    """Write the answers for one machine as static files.

    DIRECTORY becomes an index with what the proxy answers to that machine. Installers read it from
    any file server, or with --index-url file:///…/DIRECTORY/simple.
    Links are relative. An earlier export there is replaced when the new one is complete.
    """
    wanted = []
    for text in projects:
        try:
            wanted.append(Requirement(text))
        except InvalidRequirement as error:
            problem = str(error).splitlines()[0]
            raise click.UsageError(f"--project {text}: not a requirement: {problem}") from None
    name, stem = platform, Path(platform).stem
    _, machine = named_machine(f"={platform}")
    if isinstance(machine, Path):
        name = stem if PLATFORM_NAME.fullmatch(stem) else "machine"
        settings = replace(settings, platforms={name: machine})
    described = Machine(name=name, target=system)
    from .export import export  # as above

    done = asyncio.run(export(settings, described, wanted, directory, every_file=files))
    for each in done:
        click.echo(
            f"{each.project}: {each.stored} files with {each.size / 1e6:.1f} MB, "
            f"{each.linked} links",
            err=True,
        )
        for reason in each.gone:
            click.echo(f"variants-proxy: {each.project}: a file is left out: {reason}", err=True)
    click.echo(f"{directory.absolute().as_uri()}/simple/")


@cli.command()
@click.option(
    "--proxy",
    default=f"http://{LOOPBACK}:{PORT}",
    envvar="VARIANTS_PROXY_URL",
    show_default=True,
    metavar="URL",
    help="Base URL of the proxy.",
)
@click.option("--index", default="", metavar="NAME", help="One upstream index of the proxy only.")
@click.option(
    "platform",
    "--platform",
    "--variant-platform",
    "--target",
    default="",
    metavar="MACHINE",
    help="Machine in place of this one: a name that the proxy knows, such as h100-zen4, facts such "
    "as cuda=12.8,sm=9.0,cpu=zen4, or a platform file, which the proxy need not have.",
)
@click.option(
    "--keyed",
    is_flag=True,
    help="The URL that is the same for all machines, with the key as user name: for uv's locks.",
)
def url(proxy: str, index: str, platform: str, keyed: bool) -> None:
    """Print the index URL of a proxy for this machine.

    It is for the option --index-url of installers. Settings count as in every client: VARIANTS_…
    variables and variants.toml. With --keyed the
    token of VARIANTS_PROXY_TOKEN is in the URL.
    """
    base = proxy_base(proxy)
    key = _key(platform)
    if keyed:
        token = os.environ.get(TOKEN_VARIABLE, "").strip()
        click.echo(keyed_url(base, key, token, index or None))
    else:
        click.echo(base + index_url(key, index or None))


def _key(platform: str) -> str:
    """Return the key of *platform*, or of the machine of the settings where it is empty."""

    def warn(text: str) -> None:
        click.echo(f"variants-proxy: {text}", err=True)

    is_name = bool(PLATFORM_NAME.fullmatch(platform)) and not platform.endswith(".toml")
    options = {"variant-platform": None if is_name or not platform else platform}
    preferences = user_preferences.load_preferences(options, os.environ, warn=warn)
    if is_name:
        return encode(Machine(name=platform, preferences=preferences))
    return encode(described_machine(preferences))


def _token(path: Path | None) -> str:
    token, source = os.environ.get(TOKEN_VARIABLE, ""), TOKEN_VARIABLE
    if path is not None:
        try:
            content = safe_files.read_regular(path, limits.SETTINGS_BYTES)
            token, source = content.data.decode(), str(path)
        except (OSError, UnicodeDecodeError) as error:
            raise click.ClickException(f"{path}: the token cannot be read: {error}") from None
        if os.name == "posix" and content.status.st_mode & stat.S_IROTH:
            raise click.ClickException(
                f"{path}: other users of this machine can read the token: chmod o-rwx {path}"
            )
    token = token.strip()
    if not token:
        raise click.UsageError(
            f"there is no token: set {TOKEN_VARIABLE}, use --token-file, or --open for all clients"
        )
    if len(token) < TOKEN_CHARACTERS:
        raise click.ClickException(
            f"{source}: the token has {len(token)} characters, less than {TOKEN_CHARACTERS}, and "
            "can be guessed: take 32 random ones"
        )
    return token
