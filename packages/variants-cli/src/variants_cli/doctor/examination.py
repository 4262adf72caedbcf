"""The examination: one part after the other; a part that fails is a problem among others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from packaging.utils import canonicalize_name

from pep_variants.errors import VariantError, redacted
from pep_variants.sources import Sources
from variants_index.doctor.configuration import configuration_part, settings_of
from variants_index.doctor.findings import Findings, Part, Problem
from variants_index.doctor.installers import installers_part
from variants_index.doctor.machine import machine_part
from variants_index.doctor.surroundings import surroundings_part

from .packages import catalog_hints, packages_part

if TYPE_CHECKING:
    from pep_variants.wheelfile.installed import Installed

    from ..comparison import Compared
    from ..environment import Environment

Lookup = Callable[[Iterable["Installed"], Collection[str]], Iterable["Compared"]]
"""Compares what is installed with indexes, also without a variant for the projects named."""


@dataclass(frozen=True)
class Inquiry:
    """What is asked.

    Attributes:
        environment: to look at.
        sources: the indexes.
        options: values by the names of `OPTIONS`.
        projects: to look at even if installed without a variant.
        lookup: asks the indexes, None to ask none.
        switch: gives the command that installs what fits in place of a distribution.
        repeated: options, for commands that look at the same indexes.
    """

    environment: Environment
    sources: Sources = field(default_factory=Sources)
    options: Mapping[str, Any] = field(default_factory=dict)
    projects: tuple[str, ...] = ()
    lookup: Lookup | None = None
    switch: Callable[[Installed], str] = lambda item: f"pip install --variant-switch {item.project}"
    repeated: tuple[str, ...] = ()


def examine(inquiry: Inquiry, environ: Mapping[str, str], root: Path = Path("/")) -> Findings:
    """Return everything that is found.

    Args:
        inquiry: what is asked.
        environ: environment variables.
        root: of the file system in which drivers and device files are looked for.
    """
    settings, problems = settings_of(inquiry.options, environ)
    machine, drivers = machine_part(environ, root)
    sources = inquiry.sources
    parts = {
        "machine": machine,
        "surroundings": surroundings_part(
            environ, root, drivers, is_described=settings.preferences.platform_file is not None
        ),
        "configuration": configuration_part(
            settings, problems, environ, sources, start=Path.cwd(), drivers=drivers
        ),
        "installers": installers_part(
            environ, inquiry.environment.python, sources.indexes, drivers
        ),
    }
    unreadable = any(problem.code == "configuration" for problem in problems)
    if inquiry.lookup is not None and not unreadable:
        catalog = settings.preferences.catalog is not None
        parts["packages"] = _packages(inquiry, inquiry.lookup, catalog=catalog)
    return Findings(parts)


def _packages(inquiry: Inquiry, lookup: Lookup, *, catalog: bool) -> Part:
    from pep_variants.wheelfile.installed import find_installed

    python = inquiry.environment.python
    found = list(find_installed(inquiry.environment.paths))
    named = {str(canonicalize_name(name)) for name in inquiry.projects}
    missing = sorted(named - {item.project for item in found})
    problems = [
        Problem("not-installed", f"{name} is not installed in {python}", fails=False)
        for name in missing
    ]
    compared: list[Compared] = []
    try:
        compared.extend(lookup(found, named))
    except (VariantError, click.ClickException) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        problems.append(Problem("lookup", message))
    if not catalog:
        problems += catalog_hints(found, compared, inquiry.repeated)
    indexes = ", ".join(map(redacted, inquiry.sources.indexes)) or "PyPI"
    part = packages_part(compared, inquiry.switch, inquiry.repeated, indexes)
    rows = part.rows or (("variants", f"none to compare in {python}"),)
    return Part(rows, (*part.problems, *problems), part.tree)
