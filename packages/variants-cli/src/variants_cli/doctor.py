"""``variants doctor``: why a machine gets the builds that it gets, and what to do about it.

One part is examined after the other; a part that fails is a problem among others. What clients
have in common is in `variants_index.doctor`; the packages are compared here.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from packaging.utils import canonicalize_name

from pep_variants.choose.preferences import DEFAULT_CATALOG
from pep_variants.choose.rejections import why_not_better
from pep_variants.errors import VariantError, redacted
from pep_variants.sources import Sources
from pep_variants.wheelfile.installed import find_installed
from variants_catalog.elsewhere import is_in_catalog
from variants_index.doctor import (
    UNKNOWN,
    Findings,
    Part,
    Problem,
    State,
    configuration_part,
    environment_problems,
    installers_part,
    machine_part,
    missed_problem,
    settings_of,
    state_of,
    surroundings_part,
    switch_problem,
)

if TYPE_CHECKING:
    from pep_variants.wheelfile.installed import Installed

    from .installed import Compared, Environment

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
        pip: words that run the pip of the environment.
    """

    environment: Environment
    sources: Sources = field(default_factory=Sources)
    options: Mapping[str, Any] = field(default_factory=dict)
    projects: tuple[str, ...] = ()
    lookup: Lookup | None = None
    switch: Callable[[Installed], str] = lambda item: f"pip install --variant-switch {item.project}"
    repeated: tuple[str, ...] = ()
    pip: tuple[str, ...] = ("pip",)


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
    pip = shlex.join(inquiry.pip)
    damage = tuple(
        environment_problems(inquiry.environment.paths, f"{pip} install", f"{pip} uninstall --yes")
    )
    unreadable = any(problem.code == "configuration" for problem in problems)
    if inquiry.lookup is not None and not unreadable:
        without_catalog = settings.preferences.catalog is None
        part = _packages_part(inquiry, inquiry.lookup, hints=without_catalog)
        parts["packages"] = replace(part, problems=(*damage, *part.problems))
    elif damage:
        parts["packages"] = Part(problems=damage, tree=[])
    return Findings(parts)


def _packages_part(inquiry: Inquiry, lookup: Lookup, *, hints: bool) -> Part:
    """Return the state of every distribution that is compared.

    Args:
        inquiry: what is asked.
        lookup: compares what is installed with indexes.
        hints: name installed projects whose builds the catalogue would know, if it was enabled.
    """
    python = inquiry.environment.python
    found = list(find_installed(inquiry.environment.paths))
    named = {str(canonicalize_name(name)) for name in inquiry.projects}
    compared: list[Compared] = []
    failed = []
    try:
        compared.extend(lookup(found, named))
    except (VariantError, click.ClickException) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        failed.append(Problem("lookup", message))
    sources = inquiry.sources
    asked = sources.links if sources.no_index else sources.indexes
    indexes = ", ".join(map(redacted, asked)) or "PyPI"
    rows: list[tuple[str, str]] = []
    problems: list[Problem] = []
    tree: list[dict[str, Any]] = []
    for each in compared:
        state = _state(each)
        tree.append(state.as_tree())
        rows += state.rows()
        if each.is_installed:
            problems += _problems(each, state, inquiry, indexes)
        else:
            problems += _before_installing(each, state, inquiry)
    problems += failed
    if hints:
        problems += _catalog_hints(found, compared, inquiry.repeated)
    if not rows:
        rows.append(("variants", f"none to compare in {python}"))
    return Part(tuple(rows), tuple(problems), tree)


def _before_installing(each: Compared, state: State, inquiry: Inquiry) -> Iterator[Problem]:
    """Yield what would be installed of a project that is not there, and what keeps it away."""
    name = each.item.project
    text = f"{name} is not installed in {inquiry.environment.python}"
    if each.explanation is None:
        yield Problem("not-installed", f"{text}: {redacted(each.problem)}", fails=False)
        return
    command = shlex.join([*inquiry.pip, "install", *inquiry.repeated, name])
    yield Problem("not-installed", f"{text}: {state.verdict}", command, fails=False)
    yield from map(_remark, each.explanation.warnings)


def _remark(text: str) -> Problem:
    """Return the problem of a warning of `explain`."""
    if " cannot be had: " in text:
        return Problem("catalog-place", text)
    return Problem("choice", text, fails=False)


def _problems(each: Compared, state: State, inquiry: Inquiry, indexes: str) -> Iterator[Problem]:
    name = state.name
    switch = inquiry.switch(each.item)
    if each.item.problem:
        yield Problem("metadata", each.item.problem, switch)
    explanation = each.explanation
    if explanation is None:
        if inquiry.sources.no_index and not inquiry.sources.links:
            return  # there is a hint at that
        yield Problem(
            "wrong-index",
            f"{name} is not on {indexes}, so nothing is known of its variants: "
            f"{redacted(each.problem)}. Name the index that it is from",
            "variants doctor --index-url URL",
            fails=each.item.label is not None,
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
        yield Problem("plugin", f"{name}: {notice}", command)
    for text in explanation.warnings:
        if not any(notice in text for notice in plugins.values()):
            yield _remark(text)
    if not explanation.rankings:
        catalog = explanation.entry is None and is_in_catalog(each.item.project)
        words = [f"--variant-catalog={DEFAULT_CATALOG}"] if catalog else ["--index-url=URL"]
        yield Problem(
            "no-variants",
            (explanation.lack or f"{name} has no variants on {indexes}")
            + ("; a variant is installed" if each.item.label else ""),
            shlex.join(["variants", "doctor", *words, each.item.project]),
            fails=False,
        )
    if problem := switch_problem(state, switch):
        yield problem
        return
    selection = explanation.selection
    if selection is None or selection.chosen is None:
        return
    if missed := why_not_better(selection, selection.chosen):
        wanted = f"{each.item.project}=={explanation.version}"
        command = shlex.join(["variants", "explain", *inquiry.repeated, wanted])
        yield missed_problem(state, missed, command)


def _catalog_hints(
    found: Iterable[Installed], compared: Iterable[Compared], options: Collection[str]
) -> Iterator[Problem]:
    """Yield hints at builds that the catalogue would know, if it was enabled."""
    seen = {each.item.project for each in compared}
    for item in found:
        if item.label is None and item.project not in seen and is_in_catalog(item.project):
            yield Problem(
                "catalog-off",
                f"{item.project} {item.version} is installed without a variant, and the catalogue "
                "describes its builds for GPUs and CPUs as variants, once it is asked",
                shlex.join(
                    ["variants", "doctor", *options, f"--variant-catalog={DEFAULT_CATALOG}",
                     item.project]
                ),
                fails=False,
            )  # fmt: skip


def _state(each: Compared) -> State:
    project, version, explanation = each.item.project, str(each.item.version), each.explanation
    if explanation is None:
        verdict = UNKNOWN if each.is_installed else "not installed"
        return State(project, version, each.item.label, None, verdict, None)
    now = explanation.chosen.label if explanation.chosen else None
    verdicts = {
        redacted(source): [row._asdict() for row in explanation.verdicts(source)]
        for source in explanation.rankings
    }
    if not each.is_installed:
        best = f"variant {now}" if now else "the non-variant file"
        rows = [row for table in verdicts.values() for row in table if row["verdict"] == "chosen"]
        why = f": {rows[0]['why']}" if rows else ""
        text = f"{best} of {version} would be chosen{why}"
        return State(project, version, None, now, text, None, None, verdicts)
    label = each.item.label or explanation.label_of(each.item.version)
    return state_of(project, version, label, each.advice, now, verdicts)
