"""Commands that uv does not have: serve, config, status and stop."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pep_variants.errors import VariantError, redacted
from variants_proxy.commands.source_options import complete_machines, named_machine
from variants_proxy.errors import InvalidSetting
from variants_proxy.server.listening import LOOPBACK, PORT, is_wildcard, listen
from variants_proxy.upstream.upstream_options import PYPI, bare_url, split_token

from .daemon.background import start_in_background, stop_running
from .daemon.state_file import (
    RunningProxy,
    read_state,
    remove_state,
    state_path,
    write_state,
)
from .doctor.command import doctor
from .errors import USER_ERRORS, ProxyFailed
from .indexes import UserIndex, distinct, index_at, named_index_at

if TYPE_CHECKING:
    from .own_options import Options
    from .platform_key import PlatformKey


_NOTHING = "no index proxy is running: start one with uv-variants serve"


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
    """Index proxies that keep running after one command."""


@cli.command()
@click.option("--host", default=LOOPBACK, show_default=True, help="Address to listen at.")
@click.option("--port", default=PORT, show_default=True, help="Port; 0 for a free one.")
@click.option(
    "--index",
    "indexes",
    multiple=True,
    metavar="[NAME=]URL",
    help="Upstream index, in order of priority; repeatable. Default: the indexes of uv.",
)
@click.option(
    "--find-links",
    "links",
    multiple=True,
    metavar="URL",
    help="Upstream page or directory with links to files; repeatable.",
)
@click.option(
    "--platform",
    "platforms",
    multiple=True,
    metavar="NAME=MACHINE",
    help="Machine and its name in URLs, beside the known ones: a platform file, or facts such as "
    "cuda=12.8,sm=9.0,cpu=zen4; repeatable.",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOST",
    help="Host name that clients use, '*' for any; repeatable.",
)
@click.option("--open", "is_open", is_flag=True, help="Answer all clients, without a token.")
@click.option(
    "--anonymous",
    is_flag=True,
    help="Serve clients without platform key non-variant wheels, in place of 401.",
)
@click.option("--access-log", is_flag=True, help="Write one line of JSON per request to stderr.")
@click.option("--cache", type=click.Path(path_type=Path, file_okay=False), help="Cache directory.")
@click.option("--background", is_flag=True, help="Run in the background; return when it is ready.")
@click.pass_obj
def serve(
    given: tuple[Options, Mapping[str, str]],
    host: str,
    port: int,
    indexes: tuple[str, ...],
    links: tuple[str, ...],
    platforms: tuple[str, ...],
    names: tuple[str, ...],
    is_open: bool,
    anonymous: bool,
    access_log: bool,
    cache: Path | None,
    background: bool,
) -> None:
    """Run an index proxy for plain uv or pip until it is stopped; uv-variants needs none.

    By default it listens on loopback and answers clients with its token only, which stays when it
    is started again; the uv.toml of 'config' has it. For a team see also 'variants-proxy'.
    """
    options, environ = given
    if background:
        _serve_in_background(environ)
        return
    found = _indexes(indexes, links, environ)
    try:
        described = [named_machine(text) for text in platforms]
    except VariantError as error:
        raise click.ClickException(str(error)) from None
    path = state_path(environ)
    before = read_state(path)
    if before is not None and before.responds():
        raise click.ClickException(
            f"an index proxy is already running at {before.url}: stop it with uv-variants stop"
        )
    try:
        listening = listen(host, port)
    except OSError as error:
        raise click.ClickException(
            f"{host}:{port}: {error.strerror}; choose another with --port"
        ) from None
    from .daemon.serve_token import serve_token

    token = "" if is_open else serve_token(environ)
    running = RunningProxy(
        os.getpid(),
        host,
        listening.getsockname()[1],
        token,
        {name: redacted(bare_url(index.url)) for name, index in found.items()},
        {name: index.digest for name, index in found.items()},
        tuple(name for name, _ in described),
    )
    from pep_variants.cache_directory import cache_directory
    from pep_variants.settings.loader import load_preferences
    from variants_proxy import Settings
    from variants_proxy.commands.source_options import checked_catalog
    from variants_proxy.server.authentication import TokenMiddleware
    from variants_proxy.server.server import make_server

    from .report import warn

    def ended() -> None:
        remove_state(path, os.getpid())

    try:
        preferences = load_preferences(options.variants, environ, warn=warn)
        settings = Settings(
            tuple(index.upstream() for index in found.values()),
            cache or cache_directory(environ, "proxy"),
            dict(described),
            hosts=(*names, *([] if is_wildcard(host) else [host])),
            keyring=environ.get("UV_KEYRING_PROVIDER") == "subprocess",
            compress=is_open or not host.startswith("127."),
            access_log=access_log,
            anonymous=anonymous,
            catalog=checked_catalog(preferences, Path.cwd()),
            catalog_mirrors=preferences.catalog_mirrors,
        )
    except (InvalidSetting, VariantError) as error:
        raise click.ClickException(str(error)) from None
    server = make_server(
        settings,
        middleware=None if is_open else lambda app: TokenMiddleware(app, token),
        ended=ended,
    )
    write_state(path, running)
    click.echo(f"Serving {', '.join(found)} at {running.url}", err=True)
    try:
        server.run_until_signal(listening)
    finally:
        ended()


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
    """Print a uv.toml with which plain uv uses the running proxy, or the one of --variant-proxy.

    It has the platform key of this machine, and the token of the proxy, as user name and password:
    uv leaves both out of lock files, which so are the same for all machines.
    """
    from variants_proxy.urls import keyed_url

    options, environ = given
    key = platform or _platform_key(options, environ).key
    if options.proxy_url:
        base, token = split_token(options.proxy_url)
        url = keyed_url(base, key, token)
        text = f"[[index]]\nurl = {_quoted(url)}\ndefault = true\n"
    else:
        running = _running(environ)
        url = keyed_url(running.url, key, running.token)
        tables = []
        for number, name in enumerate(running.upstreams, 1):
            last = number == len(running.upstreams)
            place = keyed_url(running.url, key, running.token, name)
            tables.append(
                f"[[index]]\nname = {_quoted(name)}\nurl = {_quoted(place)}\n"
                + ("default = true\n" if last else "")
            )
        text = "\n".join(tables)
    if only_url:
        click.echo(url)
    elif output is None:
        click.echo(text, nl=False)
    else:
        _write_private(output, text, force=force)


@cli.command()
@click.pass_obj
def status(given: tuple[Options, Mapping[str, str]]) -> None:
    """Print which daemon and which proxy of 'serve' run for this user."""
    from .daemon.overview import daemon_rows

    environ = given[1]
    rows = daemon_rows(environ)
    running = read_state(state_path(environ))
    if running is not None and running.responds():
        rows += [
            ("proxy", running.url),
            ("process", str(running.pid)),
            ("open to", "clients with its token" if running.token else "all clients"),
            *((f"index {name}", url) for name, url in running.upstreams.items()),
            *(("platform", name) for name in running.platforms),
        ]
    if not rows:
        raise click.ClickException(_NOTHING)
    width = max(len(left) for left, _ in rows)
    for left, right in rows:
        click.echo(f"{left:<{width}}  {right}")


@cli.command()
@click.pass_obj
def stop(given: tuple[Options, Mapping[str, str]]) -> None:
    """End the daemon, and the proxy of 'serve', that run for this user."""
    from .daemon.overview import stop_daemons

    environ = given[1]
    lines = stop_daemons(environ)
    running = read_state(state_path(environ))
    if running is not None and running.responds():
        try:
            stop_running(running, environ)
        except ProxyFailed as error:
            raise click.ClickException(str(error)) from None
        lines.append(f"Stopped {running.url}")
    if not lines:
        raise click.ClickException(_NOTHING)
    for line in lines:
        click.echo(line, err=True)


cli.add_command(doctor)


def _running(environ: Mapping[str, str]) -> RunningProxy:
    running = read_state(state_path(environ))
    if running is None or not running.responds():
        raise click.ClickException(_NOTHING)
    return running


def _indexes(
    indexes: tuple[str, ...], links: tuple[str, ...], environ: Mapping[str, str]
) -> dict[str, UserIndex]:
    here = Path.cwd()
    found = [named_index_at(text, here, environ) for text in indexes]
    found += [index_at(text, here, environ, links=True) for text in links]
    if not found:
        from .command_scope import Scope
        from .invocation import parse
        from .place import Place
        from .used_indexes import used_indexes

        used = used_indexes(parse(["sync"]), Scope.TOOL, Place(here, here, environ))
        found = list(used.indexes.values())
    return distinct(found or [UserIndex(PYPI)])


def _platform_key(options: Options, environ: Mapping[str, str]) -> PlatformKey:
    from pep_variants.cache_directory import cache_directory
    from pep_variants.settings.loader import load_preferences

    from .platform_key import platform_key
    from .report import warn

    try:
        preferences = load_preferences(options.variants, environ, warn=warn)
        key = platform_key(preferences, cache_directory(environ, "proxy"))
    except USER_ERRORS as error:
        raise click.ClickException(str(error)) from None
    if key.platforms:
        raise click.ClickException(
            "the description of this machine is too long for a URL: give the proxy its platform "
            "file (serve --platform NAME=FILE) and name it (config --platform NAME)"
        )
    return key


def _serve_in_background(environ: Mapping[str, str]) -> None:
    arguments = [argument for argument in sys.argv[1:] if argument != "--background"]
    try:
        running = start_in_background(arguments, environ)
    except ProxyFailed as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"Serving {', '.join(running.upstreams)} at {running.url}", err=True)


def _quoted(text: str) -> str:
    import json

    return json.dumps(text)


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
