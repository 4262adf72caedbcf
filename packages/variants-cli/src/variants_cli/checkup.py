"""What is installed, against what would be chosen now for the same versions, and why.

What clients have in common is in `variants_index.doctor`; the packages are compared here. A part
that fails is a problem among others.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from packaging.utils import canonicalize_name

from pep_variants import VariantError
from pep_variants.internal import DEFAULT_CATALOG, Sources, find_installed, redacted, why_not_better
from variants_catalog.internal import is_in_catalog
from variants_index.internal import (
    UNKNOWN,
    WITHOUT,
    Findings,
    Problem,
    State,
    catalog_hints,
    common_parts,
    environment_problems,
    installers_part,
    packages_part,
    settings_of,
    state_problem,
)

if TYPE_CHECKING:
    from pep_variants.internal import Advice, Installed
    from resolvelib_variants.resolution import Explanation, IndexResolver
    from variants_index import Target

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
        pip: the command of its pip.
        options: of commands that look at the same indexes, and choose the same.
    """

    python: Path
    version: str
    paths: tuple[str, ...]
    pip: tuple[str, ...] = ("pip",)
    options: tuple[str, ...] = ()

    def switch_command(self, *projects: str) -> str:
        """Return the command that installs what fits in place of what is there of *projects*."""
        words = (*self.pip, "install", "--variant-switch", *self.options, *projects)
        return shlex.join(words)


def find_environment(given: Path | None) -> Environment:
    """Return the environment of *given*, an interpreter or a virtual environment.

    None stands for the active one.

    Raises:
        ClickException: it is not a working Python.
    """
    python = given or Path(os.environ.get("VIRTUAL_ENV") or sys.executable)
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
    pip = ("pip", "--python", str(given)) if given else ("pip",)
    return Environment(python, version, tuple(dict.fromkeys(paths)), pip)


class Compared(NamedTuple):
    """One installed distribution, and what an index has of its version.

    Attributes:
        item: what is installed.
        explanation: the decision about its version, None where no index has that version.
        advice: what would be better, None for nothing.
        problem: why there is no explanation, empty if there is one.
    """

    item: Installed
    explanation: Explanation | None
    advice: Advice | None = None
    problem: str = ""

    @property
    def state(self) -> State:
        """What doctor shows of it."""
        item, explanation = self.item, self.explanation
        name, version = item.project, str(item.version)
        if explanation is None:
            return State(name, version, item.label, None, UNKNOWN)
        now = explanation.chosen.label if explanation.chosen else None
        if not explanation.rankings and not explanation.unavailable:
            return State(name, version, item.label, now, WITHOUT)
        label = item.label or explanation.label_of(item.version)
        selection = explanation.selection
        chosen = selection.chosen if selection is not None else None
        missed = why_not_better(selection, chosen) if selection is not None and chosen else ""
        return State.of(name, version, label, self.advice, now, missed)


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
        named: normalized names of projects to look at in any case.
        progress: called with what is looked at.

    Raises:
        PackageIndexError: an index does not answer.
    """
    from pep_variants.internal import advise
    from resolvelib_variants.resolution import NoSolution, explain, parse_requirement

    for item in found:
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


Lookup = Callable[[Iterable["Installed"], Collection[str]], Iterable[Compared]]
"""Compares what is installed with indexes, also without a variant for the projects named."""


def examine(
    environment: Environment,
    environ: Mapping[str, str],
    *,
    sources: Sources | None = None,
    options: Mapping[str, Any] | None = None,
    projects: Collection[str] = (),
    lookup: Lookup | None = None,
    root: Path = Path("/"),
) -> Findings:
    """Return everything that is found.

    Args:
        environment: to look at.
        environ: environment variables.
        sources: the indexes.
        options: values by the names of `OPTIONS`.
        projects: to look at even if installed without a variant.
        lookup: asks the indexes, None to ask none.
        root: of the file system in which drivers and device files are looked for.
    """
    sources = sources or Sources()
    settings, problems = settings_of(options or {}, environ)
    parts = common_parts(
        settings, problems, environ, sources,
        lambda drivers: installers_part(environ, environment.python, drivers),
        root=root, start=Path.cwd(),
    )  # fmt: skip
    pip = shlex.join(environment.pip)
    found = list(
        environment_problems(environment.paths, f"{pip} install", f"{pip} uninstall --yes")
    )
    states: list[State] = []
    if lookup is not None and all(problem.code != "configuration" for problem in problems):
        installed = list(find_installed(environment.paths))
        named = {str(canonicalize_name(name)) for name in projects}
        try:
            for each in lookup(installed, named):
                states.append(each.state)
                found += _problems(each, states[-1], environment, sources)
        except VariantError as error:
            found.append(Problem("lookup", str(error)))
        except click.ClickException as error:
            found.append(Problem("lookup", error.format_message()))
        found += _not_compared(installed, named, states, environment, settings.preferences.catalog)
    if found or lookup is not None:
        parts["packages"] = packages_part(states, found)
    return Findings(parts)


def _not_compared(
    installed: Iterable[Installed],
    named: Collection[str],
    states: Iterable[State],
    environment: Environment,
    catalog: str | None,
) -> Iterator[Problem]:
    """Yield the projects of *named* that are not installed, and those that a catalogue knows."""
    for name in sorted(set(named) - {item.project for item in installed}):
        text = f"{name} is not installed in {environment.python}"
        command = shlex.join(("variants", "explain", *environment.options, name))
        yield Problem("not-installed", text, command, fails=False)
    if catalog is None:
        seen = {state.project for state in states}
        others = ((item.project, item.version) for item in installed
                  if item.label is None and item.project not in seen)  # fmt: skip
        option = f"--variant-catalog={DEFAULT_CATALOG}"
        words = ("variants", "doctor", *environment.options, option)
        yield from catalog_hints(others, lambda name: shlex.join((*words, name)))


def _problems(
    each: Compared, state: State, environment: Environment, sources: Sources
) -> Iterator[Problem]:
    item, explanation = each.item, each.explanation
    switch = environment.switch_command(item.project)
    if item.problem:
        yield Problem("metadata", item.problem, switch)
    asked = sources.links if sources.no_index else sources.indexes
    indexes = ", ".join(map(redacted, asked)) or ("no index" if sources.no_index else "PyPI")
    if explanation is None:
        yield Problem(
            "wrong-index",
            f"{state.name} is not on {indexes}, so nothing is known of its variants: "
            f"{redacted(each.problem)}. Name the index that it is from",
            "variants doctor --index-url URL",
            fails=item.label is not None,
        )
        return
    plugins = {
        support.untrusted: support.notice
        for ranking in explanation.rankings.values()
        for support in ranking.platform.namespaces.values()
        if support.untrusted
    }
    for requirement, notice in plugins.items():
        command = f"export VARIANTS_ALLOW_PROVIDER={shlex.quote(requirement)}"
        yield Problem("plugin", f"{state.name}: {notice}", command)
    for text in explanation.warnings:
        if text in explanation.unavailable:
            yield Problem("catalog-place", text)
        elif not any(notice in text for notice in plugins.values()):
            yield Problem("choice", text, fails=False)
    if not explanation.rankings and not explanation.unavailable:
        catalog = explanation.entry is None and is_in_catalog(item.project)
        option = f"--variant-catalog={DEFAULT_CATALOG}" if catalog else "--index-url=URL"
        yield Problem(
            "no-variants",
            (explanation.lack or f"{state.name} has no variants on {indexes}")
            + ("; a variant is installed" if item.label else ""),
            shlex.join(("variants", "doctor", option, item.project)),
            fails=False,
        )
    wanted = f"{item.project}=={explanation.version}"
    command = shlex.join(("variants", "explain", *environment.options, wanted))
    if problem := state_problem(state, switch, command):
        yield problem
