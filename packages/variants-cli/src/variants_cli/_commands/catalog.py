"""`variants catalog`: lists, shows, checks and enables catalogues of existing builds."""

from __future__ import annotations

import os
import textwrap
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from pep_variants import limits, safe_files
from pep_variants import preferences as user_preferences
from pep_variants.errors import redacted
from pep_variants.preferences import Sources
from variants_catalog import catalogs, entries, setting
from variants_index import finder as package_finder
from variants_index.finder import Session, WheelCheck
from variants_index.http import PackageIndexError

from .._checks.finding import report
from .._console import counted, print_json, print_table, warn
from .arguments import NEW_FILE, json_option, option_values, preference_options
from .index_options import progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from variants_catalog.catalogs import Catalog
    from variants_catalog.entries import CatalogProject, CatalogVariant, Measured
    from variants_index.finder import ReadWheel

_OPTIONS = ("variant-catalog", "variant-catalog-mirror")
_RETRIES = 2
"""A source that does not answer is reported; the check can be run again."""


@click.group(short_help="List, show, check and enable builds that exist as variants.")
def catalog() -> None:
    """Existing builds as variants: of other indexes, under other names, or as extras.

    A catalogue says which build of a project is for which machine. None is used before you enable
    one: it changes where packages come from.
    """


@catalog.command("list")
@preference_options(*_OPTIONS)
@json_option
def list_projects(as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """List the projects of the catalogue that is enabled, else of the default one."""
    found = _opened(options)
    projects = [entry for name in found.names() if (entry := found.project(name)) is not None]
    if as_json:
        print_json([_tree(entry) for entry in projects])
        return
    print_table(("project", "from", "variants"), setting.catalog_rows(projects))


@catalog.command()
@click.argument("name", metavar="PROJECT")
@preference_options(*_OPTIONS)
def show(name: str, **options: Any) -> None:  # noqa: ANN401
    """Show which builds of PROJECT there are, where, what each needs, and who says so."""
    found = _opened(options)
    entry = found.project(_known(found, name))
    assert entry is not None
    click.echo(f"{entry.name}: {entry.source}")
    click.echo(f"documentation: {entry.documentation}")
    for url in entry.sources:
        click.echo(f"source: {url}")
    click.echo(f"compared with these pages: {entry.checked or 'not known when'}")
    if entry.coherent:
        click.echo(f"of the same variant as: {', '.join(entry.coherent)}")
    if entry.variants_index:
        click.echo(f"variant wheels: {entry.variants_index}")
    rows = [
        (item.label, str(item.versions) or "all", _source(item), _basis(item), _needs(item))
        for item in entry.variants
    ]
    print_table(("variant", "versions", "from", "GPU code", "needs"), rows)
    for item in entry.variants:
        for fault in item.broken:
            click.echo(f"{item.label} {fault.versions} {fault}")


@catalog.command()
@click.argument("names", metavar="[PROJECT[==VERSION]|FILE|DIR]...", nargs=-1)
@click.option("--live", is_flag=True, help="Visit every source.")
@click.option("--wheels", is_flag=True, help="Read the GPU code in wheels of every source.")
@click.option(
    "--max-size",
    metavar="MIB",
    type=click.IntRange(min=1),
    default=2048,
    show_default=True,
    help="Leave out larger wheels.",
)
@preference_options(*_OPTIONS)
@json_option
@click.pass_context
def check(
    context: click.Context,
    /,
    names: tuple[str, ...],
    live: bool,
    wheels: bool,
    max_size: int,
    as_json: bool,
    **options: Any,  # noqa: ANN401
) -> None:
    """Check entries: of PROJECT, in FILE or DIR, by default of the whole catalogue.

    With --live, every source is visited: what is missing there is an error, what is new a
    warning. Projects that an entry names are looked up on your own indexes.

    With --wheels, wheels are downloaded and thrown away: those that an entry was measured by, and
    of each variant and platform those of the oldest and the newest release; of PROJECT==VERSION,
    those of that version. GPU code that an entry promises and a wheel lacks is an error, code that
    it leaves out a warning. What the wheels have is printed as lines for the entry.

    Exits with 1 if there are errors.
    """
    paths = [Path(name) for name in names if _is_path(name)]
    asked = dict(_asked(name) for name in names if not _is_path(name))
    if not wheels and any(map(str, asked.values())):
        raise click.UsageError("a version is for --wheels")
    checks = [catalogs.check_file(path) for path in paths]
    if asked or not paths:
        found = _opened(options)
        known = [_known(found, name) for name in asked]
        checks.append(catalogs.check_entries(found, known or list(found.names())))
    findings = [finding for check in checks for finding in check.findings]
    visited = [entry for check in checks for entry in check.entries]
    more: dict[str, object] = {}
    if live or wheels:
        with _session() as (session, user), progress() as show:
            if live:
                findings += package_finder.check_live(session, user, visited, show)
            if wheels:
                reader = WheelCheck(session, user, max_size * limits.MIB, show or (lambda _: None))
                for entry in visited:
                    reader.check(entry, asked.get(entry.name, SpecifierSet()))
                findings += reader.findings
                more["wheels"] = [asdict(wheel) for wheel in reader.wheels]
                if not as_json:
                    click.echo(_lines(reader.wheels), nl=False)
    checked = sum(check.number for check in checks)
    context.exit(report(findings, checked, noun="project", as_json=as_json, **more))


@catalog.command()
@click.argument(
    "folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option(
    "-o", "--output", metavar="FILE", type=NEW_FILE, required=True, help="JSON file to write."
)
def bundle(folder: Path, output: Path) -> None:
    """Write the entries in DIR into one file, for a server: enable takes its URL."""
    found = catalogs.open_catalog(folder)
    trees = {}
    for name in found.names():
        found.project(name)  # a malformed entry is an error
        trees[name] = safe_files.read_toml((folder / f"{name}.toml").read_text("utf-8"))
    if not trees:
        raise click.ClickException(f"{folder}: has no entries, NAME.toml")
    safe_files.write_if_changed(output, catalogs.write_catalog(trees).encode())
    click.echo(f"{output}: {counted(len(trees), 'project')}", err=True)


@catalog.command()
@click.argument("name", metavar="[FILE|DIR|URL]", default=user_preferences.DEFAULT_CATALOG)
def enable(name: str) -> None:
    """Use a catalogue from now on, by default that of the distribution variants-catalog.

    Writes your own variants.toml. pip, uv and the other clients then take the builds that the
    catalogue describes; versions that your indexes have as real variant wheels are not affected.
    """
    for line in setting.enable_catalog(name, _fetch, warn):
        click.echo(line, err=True)


@catalog.command()
def disable() -> None:
    """Use no catalogue from now on: removes the setting from your own variants.toml."""
    for line in setting.disable_catalog(warn):
        click.echo(line, err=True)


def _opened(options: dict[str, Any]) -> Catalog:
    """Return the catalogue of the user's preferences, or the default one."""
    return setting.open_preferred(
        user_preferences.load_preferences(option_values(options), os.environ, warn=warn), _fetch
    )


@contextmanager
def _session() -> Iterator[tuple[Session, Sources]]:
    """Yield a session of HTTP, and where the user's packages are from."""
    user = Sources.from_environ(os.environ)
    with Session(user, retries=_RETRIES) as session:
        yield session, user


def _fetch(url: str) -> bytes:
    try:
        with _session() as (session, _):
            return session.fetch(session.add_index(url), limit=limits.CATALOG_BYTES).body
    except PackageIndexError as problem:
        raise click.ClickException(str(problem)) from None


def _known(found: Catalog, name: str) -> str:
    project = canonicalize_name(name)
    if project not in found.names():
        raise click.ClickException(
            f"{name}: the catalogue has no such project (variants catalog list shows them)"
        )
    return project


def _asked(text: str) -> tuple[str, SpecifierSet]:
    """Return the project and the versions that an argument names."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        raise click.UsageError(f"{text}: neither a project nor a file") from None
    return canonicalize_name(requirement.name), requirement.specifier


def _lines(wheels: Iterable[ReadWheel]) -> str:
    """Return what *wheels* have as lines of entries; those that have the same stand together."""
    groups: dict[tuple[str, str, str, tuple[str, ...]], list[Measured]] = {}
    for wheel in wheels:
        key = wheel.project, wheel.place, wheel.label, wheel.properties
        groups.setdefault(key, []).append(wheel.measured)
    lines = []
    for (project, place, label, properties), rows in groups.items():
        items = ", ".join(f'"{text}"' for text in properties).replace(" :: ", "\0::\0")
        listed = textwrap.wrap(f"{items},", 96, break_on_hyphens=False, break_long_words=False)
        lines += [f"# {project}, {place}, {label}", "properties = ["]
        lines += [f"    {line}".replace("\0", " ") for line in listed]
        lines += ["]", "measured = ["]
        lines += [
            f'    {{ file = "{row.file}", sha256 = "{row.sha256}", date = "{row.date}" }},'
            for row in rows
        ]
        lines += ["]", ""]
    return "".join(f"{line}\n" for line in lines)


def _is_path(name: str) -> bool:
    path = Path(name)
    return path.is_dir() or (path.suffix in (".toml", ".json") and path.exists())


_OF_FILE = ("number", "family")
"""What tells of the file of an entry alone."""


def _tree(entry: CatalogProject) -> dict[str, Any]:
    return {
        "name": entry.name,
        "documentation": entry.documentation,
        "sources": list(entry.sources),
        "coherent": list(entry.coherent),
        "variants-index": entry.variants_index,
        "placeholder": None if entry.placeholder is None else str(entry.placeholder),
        "checked": entry.checked or None,
        "file": entry.source,
        "variants": [
            {
                **{key: held for key, held in asdict(item).items() if key not in _OF_FILE},
                "versions": str(item.versions),
                "broken": [
                    {**asdict(fault), "versions": str(fault.versions)} for fault in item.broken
                ],
            }
            for item in entry.variants
        ],
    }


def _source(item: CatalogVariant) -> str:
    on = f" on {' '.join(item.platforms)}" if item.platforms else ""
    if item.is_redirect:
        return ", ".join(item.requires) + on
    on = f" with {item.requires[0]}{on}" if item.requires else on
    place = setting.OWN_INDEX if item.place is None else redacted(item.place)
    if item.local is None:
        return place + on
    marks = (f"+{text}" if text else "no local version" for text in item.local)
    return f"{place} ({' or '.join(marks)}){on}"


def _basis(item: CatalogVariant) -> str:
    return entries.basis(item.measured) if item.properties else "-"


def _needs(item: CatalogVariant) -> str:
    """Return each feature with its values."""
    features: dict[str, list[str]] = {}
    for text in item.properties:
        name, _, value = text.rpartition("::")
        features.setdefault(name.strip(), []).append(value.strip())
    return "; ".join(f"{name} :: {' '.join(values)}" for name, values in features.items())
