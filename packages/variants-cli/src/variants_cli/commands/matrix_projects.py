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
    check_build_requires,
    find_wheel,
    with_abi_dependency,
)
from ..matrix.output import github_jobs, gitlab_job, table, tree
from ..matrix.parts import counts
from ..matrix.plain_wheels import PlainWheels
from ..matrix.planned_flags import planned_source
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
        plain_wheels = PlainWheels(plan.folder / "against", isolated=plan.isolated)
        variants, prepared = [], {}
        for variant in missing:
            complete, found_against = _prepared(project, variant, wheels, plain_wheels)
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
            plain_wheels.clear()


def _prepared(
    project: Project,
    variant: Variant,
    wheels: Mapping[tuple[str, str], Path],
    plain_wheels: PlainWheels,
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
    return variant, Against(tuple(paths), plain_wheels) if paths else None


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
    listed = [project for project in projects if project.name in chosen]
    if form == "json":
        rows = [row for project in listed for row in _rows(project, chosen[project.name])]
        return json.dumps(rows, indent=2)
    found: dict[str, Any] = {}
    for project in listed:
        needs = [after.project for after in project.needs if after.project in chosen]
        if form == "github":
            jobs = _github_jobs(project, chosen[project.name])
            found[project.name] = {"needs": needs, "matrix": {"include": jobs}}
        else:
            found[f".{project.name}"] = {
                "needs": needs,
                **_gitlab_job(project, chosen[project.name]),
            }
    return json.dumps(found, separators=(",", ":")) if form == "github" else _indented(found)


def as_text_of_one(form: str, project: Project, chosen: Sequence[Variant]) -> str:
    """Return the output for *form* of a project that is built against others."""
    if form == "json":
        return json.dumps(_rows(project, chosen), indent=2)
    if form == "github":
        return json.dumps({"include": _github_jobs(project, chosen)}, separators=(",", ":"))
    return _indented({".variants": _gitlab_job(project, chosen)})


def _indented(found: object) -> str:
    return json.dumps(found, indent=2)


def _rows(project: Project, variants: Sequence[Variant]) -> list[dict[str, Any]]:
    return [
        {"project": project.name, **tree(variant), "after": _after(project, variant)}
        for variant in variants
    ]


def _github_jobs(project: Project, variants: Sequence[Variant]) -> list[dict[str, Any]]:
    jobs = github_jobs(variants, planned_source(project.matrix.build, variants))
    for job, variant in zip(jobs, variants, strict=True):
        job.update({"project": project.name, "after": _after(project, variant)})
    return jobs


def _gitlab_job(project: Project, variants: Sequence[Variant]) -> dict[str, Any]:
    job = gitlab_job(variants, planned_source(project.matrix.build, variants))
    for entry, variant in zip(job["parallel"]["matrix"], variants, strict=True):
        entry["VARIANT_PROJECT"] = project.name
        for other, name in _after(project, variant).items():
            entry[f"VARIANT_AFTER_{other.replace('-', '_').upper()}"] = name
    return job


def _after(project: Project, variant: Variant) -> dict[str, str]:
    return {after.project: needs[variant.name].name for after, needs in project.needs.items()}
