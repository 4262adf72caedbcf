"""What is installed in an environment, against what would be chosen now for the same version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
from packaging.version import Version

if TYPE_CHECKING:
    from pep_variants.choose.advice import Advice
    from pep_variants.wheelfile.installed import Installed
    from resolvelib_variants.resolution.explanation import Explanation
    from resolvelib_variants.resolution.resolver import IndexResolver
    from variants_index.target import Target


_PROBE = (
    "import json, sys, sysconfig; "
    "print(json.dumps([sys.version.split()[0], sysconfig.get_path('purelib'), "
    "sysconfig.get_path('platlib')]))"
)


class Environment(NamedTuple):
    """A Python environment.

    Attributes:
        python: its interpreter.
        version: of Python.
        paths: its package folders.
    """

    python: Path
    version: str
    paths: tuple[str, ...]


def find_environment(python: Path | None) -> Environment:
    """Return the environment of *python*, an interpreter or a virtual environment.

    None stands for the active one.

    Raises:
        ClickException: it is not a working Python.
    """
    if python is None:
        active = os.environ.get("VIRTUAL_ENV")
        python = Path(active or sys.executable)
    if python.is_dir():
        folders = (python / "bin" / "python", python / "Scripts" / "python.exe")
        python = next((path for path in folders if path.exists()), python)
    try:
        done = subprocess.run(
            [str(python), "-I", "-c", _PROBE],
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        version, *paths = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        reason = getattr(error, "stderr", None) or str(error)
        raise click.ClickException(f"{python} is not a working Python: {reason}") from None
    return Environment(python, version, tuple(dict.fromkeys(paths)))


class Compared(NamedTuple):
    """One installed distribution, and what an index has of its version.

    Attributes:
        item: what is installed.
        explanation: the decision about its version, None where no index has that version.
        advice: what would be better, None for nothing.
        problem: why there is no explanation, empty if there is one.
        is_installed: whether it is there; else what would be installed.
    """

    item: Installed
    explanation: Explanation | None
    advice: Advice | None = None
    problem: str = ""
    is_installed: bool = True


def compare(
    resolver: IndexResolver,
    target: Target,
    found: Iterable[Installed],
    *,
    every: bool = False,
    named: Collection[str] = (),
    progress: Callable[[str], None] | None = None,
) -> Iterator[Compared]:
    """Yield the comparison of every distribution that has or could have variants.

    Args:
        resolver: of the indexes.
        target: the machine.
        found: what is installed.
        every: also look at those without a variant, which takes one page for each.
        named: normalized names of projects to look at in any case, also before they are installed.
        progress: called with what is looked at.

    Raises:
        PackageIndexError: an index does not answer.
    """
    from pep_variants.choose.advice import advise
    from pep_variants.wheelfile.installed import Installed
    from resolvelib_variants.resolution.errors import NoSolution
    from resolvelib_variants.resolution.explanation import explain
    from resolvelib_variants.resolution.requirements import parse_requirement

    missing = set(named)
    for item in found:
        missing.discard(item.project)
        entry = resolver.finder.entry(item.project)
        if item.label is None and entry is None and not every and item.project not in named:
            continue
        # The catalogue knows builds with another local version.
        version = item.version if entry is None else item.version.public
        wanted = parse_requirement(f"{item.project}=={version}")
        try:
            explanation = explain(resolver, wanted, target, pre=True, progress=progress)
        except NoSolution as error:  # from elsewhere, or of one's own
            yield Compared(item, None, problem=str(error))
            continue
        advice = None
        if explanation.selection is not None:
            installed = item.label or explanation.label_of(item.version)
            advice = advise(explanation.selection, installed)
            if advice is not None and explanation.is_extra(advice.better):
                advice = None
        yield Compared(item, explanation, advice)
    for name in sorted(missing):
        try:
            new = explain(resolver, parse_requirement(name), target, progress=progress)
        except NoSolution as error:
            nothing = Installed(name, Version("0"), None)
            yield Compared(nothing, None, problem=str(error), is_installed=False)
        else:
            yield Compared(Installed(name, new.version, None), new, is_installed=False)
