"""The commands of our own: serve, config, status, stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pep_variants.errors import VariantError, redacted

from .errors import InvalidSetting, ShimFailed, UvVariantsError
from .indexes import PYPI, UserIndex, bare_url, distinct, index_at, named_index_at
from .process import LOOPBACK, listen
from .state import Running, read_state, remove_state, state_path, write_state

if TYPE_CHECKING:
    from .machine import Subject
    from .wishes import Wishes

PORT = 4825
"""Default port of a shim that was started to stay."""

_WAIT = 15.0


def run_own(wishes: Wishes, environ: Mapping[str, str]) -> int:
    """Run one of our own commands; return the exit code."""
    try:
        cli.main(list(wishes.rest), "uv-variants", standalone_mode=False, obj=(wishes, environ))
    except click.UsageError as error:
        place = error.ctx.command_path if error.ctx else "uv-variants"
        print(f"uv-variants: {error.format_message()} (see {place} --help)", file=sys.stderr)
        return 2
    except click.ClickException as error:
        print(f"uv-variants: {error.format_message()}", file=sys.stderr)
        return 1
    except click.Abort:
        return 130
    return 0


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def cli() -> None:
    """Index shims that outlive one command."""


@cli.command()
@click.option("--host", default=LOOPBACK, show_default=True, help="Address to listen at.")
@click.option("--port", default=PORT, show_default=True, help="Port; 0 takes a free one.")
@click.option(
    "--index",
    "indexes",
    multiple=True,
    metavar="[NAME=]URL",
    help="Index to stand before, first one first; repeatable. Default: what uv is configured for.",
)
@click.option(
    "--find-links", "links", multiple=True, metavar="URL", help="Page or directory with links."
)
@click.option(
    "--platform",
    "platforms",
    multiple=True,
    metavar="NAME=FILE",
    help="Platform file and its name in URLs; repeatable.",
)
@click.option(
    "--name", "names", multiple=True, metavar="HOST", help="Host name it is called by; '*' for any."
)
@click.option("--open", "is_open", is_flag=True, help="Let everybody in who can reach it.")
@click.option("--access-log", is_flag=True, help="Write one line of JSON per request to stderr.")
@click.option(
    "--cache", type=click.Path(path_type=Path, file_okay=False), help="Directory for its cache."
)
@click.option("--background", is_flag=True, help="Return when it runs.")
@click.pass_obj
def serve(
    told: tuple[Wishes, Mapping[str, str]],
    host: str,
    port: int,
    indexes: tuple[str, ...],
    links: tuple[str, ...],
    platforms: tuple[str, ...],
    names: tuple[str, ...],
    is_open: bool,
    access_log: bool,
    cache: Path | None,
    background: bool,
) -> None:
    """Run an index shim until it is stopped.

    Only this machine can reach it, and only who knows its token may use it, unless other is said:
    `--host` and `--open` make a shim that is shared.
    """
    _, environ = told
    if background:
        _serve_in_background(environ)
        return
    found = _indexes(indexes, links, environ)
    described = [_split_platform(text) for text in platforms]
    path = state_path(environ)
    before = read_state(path)
    if before is not None and before.answers():
        raise click.ClickException(
            f"a shim of yours runs already, at {before.url}: uv-variants stop ends it"
        )
    try:
        listening = listen(host, port)
    except OSError as error:
        raise click.ClickException(
            f"{host}:{port}: {error.strerror}; choose another with --port"
        ) from None
    import secrets

    token = "" if is_open else secrets.token_urlsafe(24)
    running = Running(
        os.getpid(),
        host,
        listening.getsockname()[1],
        token,
        {name: redacted(bare_url(index.url)) for name, index in found.items()},
        {name: index.digest for name, index in found.items()},
        tuple(name for name, _ in described),
    )
    from .server import serve as serve_now
    from .session import shim_cache_directory
    from .told import told_index

    setting: dict[str, Any] = {
        "upstreams": [told_index(index) for index in found.values()],
        "only": {},
        "cache": str(cache or shim_cache_directory(environ)),
        "platforms": dict(described),
        "floating": {},
        "hosts": [*names, *([host] if host not in ("0.0.0.0", "::") else [])],  # noqa: S104
        "insecure_hosts": [],
        "keyring": environ.get("UV_KEYRING_PROVIDER") == "subprocess",
        "compress": is_open or not host.startswith("127."),
        "access_log": access_log,
        "forward": not is_open,
        "token": token,
        "socket": listening.detach(),
        "tied": False,
    }

    def ready() -> None:
        write_state(path, running)
        click.echo(f"Serving {', '.join(found)} at {running.url}", err=True)

    # The server raises the signal that ended it once more, when it is through.
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.signal(signal.SIGINT, lambda *_: None)
    try:
        serve_now(setting, ready)
    except InvalidSetting as error:
        raise click.ClickException(str(error)) from None
    finally:
        remove_state(path, os.getpid())


@cli.command()
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="File.")
@click.option("--url", "only_url", is_flag=True, help="Print only the URL, for --index-url.")
@click.option("--platform", default="", metavar="NAME", help="Name of a platform the shim knows.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@click.pass_obj
def config(
    told: tuple[Wishes, Mapping[str, str]],
    output: Path | None,
    only_url: bool,
    platform: str,
    force: bool,
) -> None:
    """Print a uv.toml with which plain uv uses the running shim, or the one of --variant-shim.

    It holds the platform key of this machine, and the token of a shim that wants one.
    """
    from .shim.urls import index_url

    wishes, environ = told
    key = platform or _subject(wishes, environ).key
    if wishes.shim:
        text = f"[[index]]\nurl = {_quoted(wishes.shim + index_url(key))}\ndefault = true\n"
        url = wishes.shim + index_url(key)
    else:
        running = _running(environ)
        url = running.url_with_token + index_url(key)
        tables = []
        for number, name in enumerate(running.upstreams, 1):
            last = number == len(running.upstreams)
            place = running.url_with_token + index_url(key, name)
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
def status(told: tuple[Wishes, Mapping[str, str]]) -> None:
    """Say which shim runs for this user, and what it stands before."""
    running = _running(told[1])
    rows = [
        ("shim", running.url),
        ("process", str(running.pid)),
        ("open to", "everybody who can reach it" if not running.token else "who knows its token"),
        *((f"index {name}", url) for name, url in running.upstreams.items()),
        *(("platform", name) for name in running.platforms),
    ]
    width = max(len(left) for left, _ in rows)
    for left, right in rows:
        click.echo(f"{left:<{width}}  {right}")


@cli.command()
@click.pass_obj
def stop(told: tuple[Wishes, Mapping[str, str]]) -> None:
    """Stop the shim that runs for this user."""
    running = _running(told[1])
    try:
        os.kill(running.pid, signal.SIGTERM)
    except OSError as error:
        raise click.ClickException(f"process {running.pid}: {error.strerror}") from None
    end = time.monotonic() + _WAIT
    while running.answers():
        if time.monotonic() > end:
            raise click.ClickException(f"process {running.pid} does not end")
        time.sleep(0.05)
    remove_state(state_path(told[1]), running.pid)
    click.echo(f"Stopped {running.url}", err=True)


def _running(environ: Mapping[str, str]) -> Running:
    running = read_state(state_path(environ))
    if running is None or not running.answers():
        raise click.ClickException("no shim runs for you: uv-variants serve starts one")
    return running


def _indexes(
    indexes: tuple[str, ...], links: tuple[str, ...], environ: Mapping[str, str]
) -> dict[str, UserIndex]:
    here = Path.cwd()
    found = [named_index_at(text, here, environ) for text in indexes]
    found += [index_at(text, here, environ, links=True) for text in links]
    if not found:
        from .commands import Scope
        from .invocation import parse
        from .plan import Place, make_plan

        invocation = parse(["sync"])
        found = list(make_plan(invocation, Scope.TOOL, Place(here, here, environ)).indexes.values())
        found.sort(key=lambda index: index.default)
    return distinct(found or [UserIndex(PYPI)])


def _split_platform(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not equals:
        raise click.UsageError(f"--platform {text}: write NAME=FILE")
    from pep_variants.platform import load_platform

    try:
        load_platform(path)
    except VariantError as error:
        raise click.ClickException(str(error)) from None
    return name, str(Path(path).absolute())


def _subject(wishes: Wishes, environ: Mapping[str, str]) -> Subject:
    from pep_variants.preferences import load_preferences

    from .machine import subject_of
    from .session import shim_cache_directory

    try:
        subject = subject_of(
            load_preferences(wishes.options, environ), shim_cache_directory(environ)
        )
    except (UvVariantsError, VariantError) as error:
        raise click.ClickException(str(error)) from None
    if subject.platforms:
        raise click.ClickException(
            "this machine supports more than fits into a URL: give the shim its platform file "
            "(serve --platform NAME=FILE) and name it (config --platform NAME)"
        )
    return subject


def _serve_in_background(environ: Mapping[str, str]) -> None:
    arguments = [argument for argument in sys.argv[1:] if argument != "--background"]
    options: dict[str, Any] = {"start_new_session": True}
    if os.name == "nt":
        options = {"creationflags": 0x00000008 | 0x00000200}  # detached, a group of its own
    from .process import ENTRY

    process = subprocess.Popen(
        [sys.executable, "-c", ENTRY.format("main"), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=dict(environ),
        **options,
    )
    path = state_path(environ)
    end = time.monotonic() + _WAIT
    while time.monotonic() < end:
        running = read_state(path)
        if running is not None and running.pid == process.pid and running.answers():
            click.echo(f"Serving {', '.join(running.upstreams)} at {running.url}", err=True)
            return
        if process.poll() is not None:
            assert process.stderr is not None
            said = process.stderr.read().decode("utf-8", "replace").strip().splitlines()
            raise click.ClickException(
                said[-1].removeprefix("uv-variants: ") if said else "it ended at once"
            )
        time.sleep(0.02)
    process.terminate()
    raise click.ClickException(str(ShimFailed("the shim did not start in time")))


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
