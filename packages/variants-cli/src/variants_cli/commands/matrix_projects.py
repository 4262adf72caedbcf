"""Several projects in one run of `variants matrix`, one built against the other."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..console import note, print_table
from ..matrix.build_plan import BuildError
from ..matrix.building import for_this_machine
from ..matrix.built_against import (
    Against,
    Shelf,
    check_build_requires,
    find_wheel,
    with_abi_dependency,
)
from ..matrix.output import github_jobs, gitlab_job, table, tree
from ..matrix.parts import counts
from ..matrix.project_order import with_needed
from .matrix_build import build_variants

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ..matrix.build_plan import Plan
    from ..matrix.model import Matrix, Variant
    from ..matrix.project_order import Project

    Chosen = Mapping[str, Sequence[Variant]]


def build_projects(
    projects: Sequence[Project],
    chosen: Chosen,
    plan_of: Callable[[Matrix, str], Plan],
    against: Path | None,
) -> None:
    """Build *chosen* variants of *projects*, in order, and what they are built against.

    Args:
        projects: in build order.
        chosen: by name of the project.
        plan_of: gives the options for a matrix and the name of its subfolder.
        against: folder with wheels that are not built again.

    Raises:
        click.ClickException: some could not be built.
    """
    for project in projects:
        check_build_requires(project.matrix, isolated=plan_of(project.matrix, "").isolated)
    here = {name: for_this_machine(variants)[0] for name, variants in chosen.items()}
    wanted = with_needed(projects, here)
    wheels: dict[tuple[str, str], Path] = {}
    for project in projects:
        missing = list(wanted[project.name])
        if against is not None and not project.is_target:
            for variant in wanted[project.name]:
                found = find_wheel(against, project.name, variant)
                if found is not None:
                    wheels[project.name, variant.name] = found
                    missing.remove(variant)
        # Those for other machines are named, too.
        missing += [v for v in chosen.get(project.name, ()) if v not in here[project.name]]
        if not missing:
            continue
        plan = plan_of(project.matrix, project.name if len(projects) > 1 else "")
        shelf = Shelf(plan.folder / "against", isolated=plan.isolated)
        variants, prepared = [], {}
        for variant in missing:
            complete, found_against = _prepared(project, variant, wheels, shelf)
            variants.append(complete)
            if found_against is not None:
                prepared[variant.name] = found_against
        plan = replace(plan, against=prepared)
        if len(projects) > 1:
            note(f"{project.name}: {counts(variants)}")
        try:
            for built in build_variants(plan, variants, project.variants):
                wheels[project.name, built.name] = plan.output / built.wheel
        finally:
            shelf.clear()


def _prepared(
    project: Project, variant: Variant, wheels: Mapping[tuple[str, str], Path], shelf: Shelf
) -> tuple[Variant, Against | None]:
    paths = []
    for after, needs in project.needs.items():
        needed = needs[variant.name]
        wheel = wheels.get((after.project, needed.name))
        if wheel is None:
            if variant not in for_this_machine([variant])[0]:
                return variant, None  # it is not built here
            raise BuildError(
                f"{project.name} {variant.name} needs {after.project} {needed.name}, which cannot "
                "be built on this machine: name a folder that has its wheel with --against"
            )
        paths.append(wheel)
        variant = with_abi_dependency(variant, after, wheel)
    return variant, Against(tuple(paths), shelf) if paths else None


def show_table(projects: Sequence[Project], chosen: Chosen, *, complete: bool) -> None:
    """Print what each project's variants need."""
    rows = [
        (project.name, *row)
        for project in projects
        for row in table(chosen.get(project.name, ()), complete=complete)
    ]
    print_table(("project", "label", "for", "needs"), rows)
    for project in projects:
        if project.name in chosen:
            after = [item.project for item in project.matrix.build.after]
            note(
                f"{project.name}: {counts(chosen[project.name])}"
                + (f", built after {', '.join(after)}" if after else "")
            )


def as_text(form: str, projects: Sequence[Project], chosen: Chosen) -> str:
    """Return the output for *form*: ``json``, ``github`` or ``gitlab``."""
    found: Any
    if form == "json":
        found = [
            {"project": project.name, **tree(variant), "after": _after(project, variant)}
            for project in projects
            for variant in chosen.get(project.name, ())
        ]
        return json.dumps(found, indent=2)
    listed = [project for project in projects if project.name in chosen]
    needs = {
        project.name: [after.project for after in project.needs if after.project in chosen]
        for project in listed
    }
    if form == "github":
        found = {}
        for project in listed:
            jobs = github_jobs(chosen[project.name])
            for job, variant in zip(jobs, chosen[project.name], strict=True):
                job.update({"project": project.name, "after": _after(project, variant)})
            found[project.name] = {"needs": needs[project.name], "matrix": {"include": jobs}}
        return json.dumps(found, separators=(",", ":"))
    found = {}
    for project in listed:
        job = gitlab_job(chosen[project.name])
        for entry, variant in zip(job["parallel"]["matrix"], chosen[project.name], strict=True):
            entry["VARIANT_PROJECT"] = project.name
            for other, name in _after(project, variant).items():
                entry[f"VARIANT_AFTER_{other.replace('-', '_').upper()}"] = name
        found[f".{project.name}"] = {"needs": needs[project.name], **job}
    return json.dumps(found, indent=2)


def _after(project: Project, variant: Variant) -> dict[str, str]:
    return {after.project: needs[variant.name].name for after, needs in project.needs.items()}
