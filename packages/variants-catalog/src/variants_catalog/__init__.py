"""Existing builds of projects, described as wheel variants.

``projects`` has a TOML file for each project. They are read only if the user asks for it with
``catalog = "default"`` in `variants.toml`, ``--variant-catalog default`` or
``VARIANTS_CATALOG=default``. `entries` are what they say of one project, `catalogs` are for many,
`listings` for what their pages list, `installed_builds` for the wheels that are installed,
`missed_builds` for users who have not asked for it, `setting` for those who do.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

__version__ = "0.1.0"

__all__ = ["__version__", "possible_builds", "project_names", "projects"]


def projects() -> Path:
    """Return the directory of the entries: `NAME.toml`, the name normalized (PEP 503).

    A bundle has `NAME.json` instead.
    """
    return Path(__file__).parent / "projects"


@cache
def project_names() -> frozenset[str]:
    """Return the normalized names of the projects; fast, as installers ask it in every run."""
    try:
        listed = os.listdir(projects())  # noqa: PTH208 - faster
    except OSError:  # in a zip file, as that of a pip may be
        from importlib import resources

        listed = [item.name for item in (resources.files(__name__) / "projects").iterdir()]
    return frozenset(name.rpartition(".")[0] for name in listed)


def possible_builds(names: Iterable[str]) -> frozenset[str]:
    """Return those of *names* that begin as the name of a project and a dash, as its builds do.

    As fast as `project_names`.
    """
    known = project_names()
    return frozenset(
        name
        for name in names
        for place in range(len(name))
        if name[place] == "-" and name[:place] in known
    )
