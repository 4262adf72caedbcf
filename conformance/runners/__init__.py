"""Clients that play cases: one module each, listed in `RUNNERS`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Protocol

from support.environments import Environments

from ..case import Case
from ..outcome import Outcome
from ..place import Place


class Runner(Protocol):
    """A client.

    Attributes:
        name: short name, as in ``differences.json`` and ``clients`` of a case.
        title: what it is, with its version.
        is_ours: it is of this project: it has to agree everywhere.
    """

    name: str
    title: str
    is_ours: bool

    def refuses(self, case: Case) -> str:
        """Return why *case* cannot be given to this client, empty if it can."""

    def play(self, case: Case, place: Place) -> Outcome:
        """Let the client do what *case* asks for, at *place*."""

    def close(self) -> None:
        """End what is still running."""


RUNNERS: Mapping[str, str] = {
    "engine": "engine:Engine",
    "resolve": "resolve:Resolve",
    "pip-oldest": "pip:oldest",
    "pip-newest": "pip:newest",
    "resolve-lock": "locks:ResolveLock",
    "pip-lock": "locks:PipLock",
    "uv-variants-oldest": "uv_variants:oldest",
    "uv-variants-newest": "uv_variants:newest",
    "index-shim-pip": "index_shim_pip:IndexShimPip",
    "native-uv": "native_uv:NativeUv",
    "variantlib": "variantlib:Variantlib",
}
"""Module and class (or function) by name of the runner, in the order of the table."""


OLDEST = frozenset({"pip-oldest", "uv-variants-oldest"})
"""Runners whose results differ from those of the newest releases in few cases: run nightly."""


def make(name: str, environments: Environments) -> Runner:
    """Return the runner of that name, of `RUNNERS`.

    Args:
        name: of the runner.
        environments: makes environments of Pythons and pips, and downloads pips and uvs.
    """
    module, _, attribute = RUNNERS[name].partition(":")
    found = importlib.import_module(f"{__name__}.{module}")
    create: Callable[[Environments], Runner] = getattr(found, attribute)
    return create(environments)


def not_for_installers(case: Case) -> str:
    """Return why *case* is not for an installer that resolves requirements over an index."""
    if not case.is_installable:
        return "about a library"
    if case.form == "lock":
        return "needs a lock file"
    return ""


def not_for_others(case: Case) -> str:
    """Return why *case* is not for a client of another project."""
    if "options" in case.tree or "settings" in case.tree:
        return "options of this project"
    if case.tree.get("machine") == "detected":
        return "detects the machine in a way of its own"
    return ""
