"""The command ``variants-proxy export``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import ExportError
from .source_options import catalog_options, catalog_settings, complete_machines, index_options

if TYPE_CHECKING:
    from packaging.requirements import Requirement

    from ..settings import Settings
    from .export import Exported, Wanted

_ENVVARS = {"auto_envvar_prefix": "VARIANTS_PROXY", "show_default": True}


@click.command("export", context_settings=_ENVVARS)
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "platform",
    "--platform",
    "--variant-platform",
    "--target",
    required=True,
    metavar="MACHINE",
    allow_from_autoenv=False,
    shell_complete=complete_machines,
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
@index_options
@catalog_options
@click.option("--cache", type=click.Path(path_type=Path, file_okay=False), help="Cache directory.")
def export_command(
    directory: Path,
    platform: str,
    projects: tuple[str, ...],
    system: str,
    files: bool,
    index: tuple[str, ...],
    find_links: tuple[str, ...],
    catalog: str | None,
    catalog_mirror: tuple[str, ...],
    cache: Path | None,
) -> None:
    """Write what the proxy answers to one machine into DIRECTORY, as an index of static files.

    Installers read it from any file server, or with --index-url file:///…/DIRECTORY/simple.
    Links are relative. An earlier export there is replaced when the new one is complete.
    """
    import asyncio

    from packaging.requirements import InvalidRequirement, Requirement

    from pep_variants.cache_directory import cache_directory

    from ..settings import Settings
    from ..upstream.upstream_options import read_upstreams
    from .export_folder import replaced_folder

    wanted = []
    for text in projects:
        try:
            wanted.append(Requirement(text))
        except InvalidRequirement as error:
            problem = str(error).splitlines()[0]
            raise click.UsageError(f"--project {text}: not a requirement: {problem}") from None
    here = Path.cwd()
    name, files_by_name = _platform(platform)
    settings = Settings(
        read_upstreams(index, find_links, here),
        cache or cache_directory(os.environ, "proxy"),
        files_by_name,
        **catalog_settings(catalog, catalog_mirror, here),
    )
    record: dict[str, object] = {
        "platform": name,
        "system": system,
        "projects": [str(each) for each in wanted],
        "files": files,
    }
    with replaced_folder(directory, record) as folder:
        done = asyncio.run(_export(settings, name, system, wanted, folder, every_file=files))
    for each in done:
        click.echo(
            f"{each.project}: {each.stored} files with {each.size / 1e6:.1f} MB, "
            f"{each.linked} links",
            err=True,
        )
    click.echo(f"{directory.absolute().as_uri()}/simple/")


async def _export(
    settings: Settings,
    name: str,
    system: str,
    requirements: list[Requirement],
    folder: Path,
    *,
    every_file: bool,
) -> list[Exported]:
    from variants_index.errors import PackageIndexError

    from ..client.key import Machine, encode
    from ..service import Service
    from .export import Wanted, export

    service = Service(settings)
    try:
        client = service.clients.client(encode(Machine(name=name, target=system)))
        wanted: Wanted = Wanted(client, requirements, every_file)
        return await export(service, wanted, folder)
    except PackageIndexError as error:
        raise ExportError(str(error)) from None
    finally:
        service.upstreams.close()


def _platform(text: str) -> tuple[str, Mapping[str, Path]]:
    """Return the name of the machine that is meant by *text*, and its file by that name.

    Raises:
        PlatformFileError: there is no such file or machine.
    """
    from pep_variants.detect.machines import load_machine, names_file

    from ..client.key import PLATFORM_NAME

    load_machine(text)
    if not names_file(text):
        return text, {}
    path = Path(text)
    name = path.stem if PLATFORM_NAME.fullmatch(path.stem) else "machine"
    return name, {name: path.absolute()}
