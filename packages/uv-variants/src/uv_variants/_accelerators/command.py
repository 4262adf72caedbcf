"""`uv-variants accelerators`: writes the group of each accelerator, and has uv lock them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from variants_catalog import catalogs

from .._errors import warn
from .._named_projects import normalized
from .project import AcceleratedProject


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", metavar="[ACCELERATOR|MACHINE]...", nargs=-1)
@click.option("--add", "added", metavar="NAME", multiple=True, help="Another one.")
@click.option("--remove", "removed", metavar="NAME", multiple=True, help="One less.")
@click.option("--check", is_flag=True, help="Write nothing; 1 if tables or lock are out of date.")
@click.option("--explain", is_flag=True, help="Print which machine takes which group.")
@click.option("--dry-run", is_flag=True, help="Print what would change in pyproject.toml.")
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=Path(),
    help="The project there.",
)
@click.pass_context
def accelerators(
    context: click.Context,
    *,
    names: Sequence[str],
    added: Sequence[str],
    removed: Sequence[str],
    check: bool,
    explain: bool,
    dry_run: bool,
    directory: Path,
) -> None:
    """Lock builds for several accelerators in one uv.lock, which each machine takes its own of.

    ACCELERATOR is cpu, or the name of a build: cuda12.6, rocm7.2. MACHINE is a name of 'variants
    platforms', a description, or 'native' for this one. Each gets a dependency group in
    pyproject.toml; 'uv-variants sync' takes the one that fits.
    """
    project = AcceleratedProject.of(directory, *context.obj)
    changes = bool(names or added or removed)
    writes = changes or bool(project.declared.accelerators)
    if writes and not (check or dry_run or explain) and (code := project.lock()):
        context.exit(code)  # the lock tells what is required of others
    wanted = list(dict.fromkeys(map(project.named, names or project.declared.accelerators)))
    wanted += [name for name in map(project.named, added) if name not in wanted]
    wanted = [name for name in wanted if normalized(name) not in set(map(normalized, removed))]
    if not wanted and not changes:
        wanted = list(dict.fromkeys((catalogs.CPU, project.named("native"))))
        warn(f"nothing is written; type: uv-variants accelerators {' '.join(wanted)}")
        dry_run = True
    if explain:
        for line in project.table():
            click.echo(line)
        return
    if check or dry_run:
        context.exit(project.compare(wanted, checked=check))
    context.exit(project.write(wanted))
