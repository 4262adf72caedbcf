"""Several projects, one built against the other: their order, and which variants go together.

torchvision is built against torch, and each of its variants against the one of torch that is for
the same CUDA version, Python and platform: the variants whose axes agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from packaging.utils import InvalidSdistFilename, canonicalize_name, parse_sdist_filename

from pep_variants.errors import InvalidWheelFilename, VariantError
from pep_variants.model.filename import parse_filename
from pep_variants.model.label import NULL_LABEL
from pep_variants.model.property import ABI_DEPENDENCY, Property

from .combination import combine, select
from .model import After, BuildError, Matrix, Value, Variant
from .reading import read_matrix
from .source import build_requires, read_pyproject, table_of
from .targets import is_built_for


@dataclass(frozen=True)
class Project:
    """One project of a command.

    Attributes:
        name: its normalized name; empty if it is the only one and nothing says it.
        matrix: its matrix.
        variants: all variants of the matrix.
        is_target: whether it was named, not only needed by another one.
        needs: for each entry of ``build.after``, the variant that each of `variants` is built
            against, by name.
    """

    name: str
    matrix: Matrix
    variants: tuple[Variant, ...]
    is_target: bool = True
    needs: Mapping[After, Mapping[str, Variant]] = field(default_factory=dict)


def read_projects(files: Sequence[Path]) -> tuple[Project, ...]:
    """Read the matrix *files* and those that they name, and return the projects in build order.

    Raises:
        TableError: one of them is not valid, has no name, needs itself in a circle, or a project
            that no file is of; or a variant agrees with none or several of the other project.
        OSError: a file cannot be read.
    """
    found: dict[str, Project] = {}
    pending = [(path, True) for path in files]
    while pending:
        path, is_target = pending.pop(0)
        matrix = read_matrix(path)
        name = _name(matrix)
        if not name and (len(files) > 1 or not is_target):
            raise matrix.error(
                "project",
                "the name of the project is not known: add it, or name a source that has it in "
                "pyproject.toml",
            )
        if name in found:
            if is_target:
                raise matrix.error(
                    "project",
                    f"{name!r} is that of {found[name].matrix.source}, too: name one file of each "
                    "project",
                )
            continue
        found[name] = Project(name, matrix, combine(matrix), is_target)
        pending += [
            (after.matrix, False) for after in matrix.build.after if after.matrix is not None
        ]
    return tuple(
        replace(
            project,
            needs={
                after: _agreeing(project, after, found[after.project])
                for after in project.matrix.build.after
            },
        )
        for project in map(found.__getitem__, _order(found))
    )


def with_needed(
    projects: Sequence[Project], chosen: Mapping[str, Sequence[Variant]]
) -> dict[str, tuple[Variant, ...]]:
    """Return *chosen* variants by project, and those that they are built against.

    Args:
        projects: in build order.
        chosen: by name of the project.
    """
    wanted = {name: {variant.name for variant in variants} for name, variants in chosen.items()}
    for project in reversed(projects):
        for after, needs in project.needs.items():
            names = (needs[name].name for name in wanted.get(project.name, ()))
            wanted.setdefault(after.project, set()).update(names)
    return {
        project.name: tuple(
            variant for variant in project.variants if variant.name in wanted.get(project.name, ())
        )
        for project in projects
    }


def _name(matrix: Matrix) -> str:
    if matrix.name:
        return matrix.name
    source = matrix.build.source
    try:
        if source.is_file():
            return str(parse_sdist_filename(source.name)[0])
        name = table_of(read_pyproject(source), "project").get("name")
    except (InvalidSdistFilename, BuildError, OSError):
        return ""
    return canonicalize_name(name) if isinstance(name, str) else ""


def _order(projects: Mapping[str, Project]) -> list[str]:
    for project in projects.values():
        for after in project.matrix.build.after:
            if after.project not in projects:
                raise project.matrix.error(
                    "build.after",
                    f"{after.project!r} is the project of none of the files: name its matrix file, "
                    f"too, or set build.after.{after.project}.matrix to it",
                )
    graph = {
        project.name: [after.project for after in project.matrix.build.after]
        for project in projects.values()
    }
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        circle = list(reversed(error.args[1]))
        raise projects[circle[0]].matrix.error(
            "build.after", f"the projects need each other in a circle: {' after '.join(circle)}"
        ) from None


def _agreeing(own: Project, after: After, other: Project) -> dict[str, Variant]:
    """Return the variant of *other* that each variant of *own* is built against, by name.

    The axes that both have agree, or those of *after*; and Python and platform. Of several
    variants, the one is taken that agrees in most axes.
    """
    path = f"build.after.{after.project}"
    common = [axis for axis in own.matrix.axes if axis in other.matrix.axes]
    axes = common if after.axes is None else list(after.axes)
    for axis in axes:
        if axis not in common:
            problem = f"{axis!r} is not an axis of both; those are {', '.join(common) or 'none'}"
            raise own.matrix.error(f"{path}.axes", problem)

    def target_of(variant: Variant, others: Variant) -> tuple[object, object]:
        """Return Python and platform, without what the others do not say."""
        return others.python and variant.python, others.platform and variant.platform

    found = {}
    sample, own_sample = other.variants[0], own.variants[0]
    groups: dict[object, list[Variant]] = {}
    for candidate in other.variants:
        names = tuple(candidate.values[a].name for a in axes if not candidate.values[a].is_target)
        groups.setdefault((names, target_of(candidate, own_sample)), []).append(candidate)
    for variant in own.variants:
        names = tuple(variant.values[a].name for a in axes if not variant.values[a].is_target)
        candidates = groups.get((names, target_of(variant, sample)), [])
        if not candidates:
            raise own.matrix.error(
                path,
                f"no variant of {other.name} agrees with {variant.name} in "
                f"{', '.join(axes) or 'anything'}: exclude it, or let fewer axes agree with "
                f"{path}.axes",
            )
        if len(candidates) > 1 and after.axes is None:
            some = [v.name for v in candidates[:4]] + ["…"] * (len(candidates) > 4)
            raise own.matrix.error(
                path,
                f"{len(candidates)} variants of {other.name} agree with {variant.name} in "
                f"{', '.join(axes) or 'anything'} ({', '.join(some)}): give both files the same "
                f"axes, or set {path}.axes, and the one that agrees most is taken",
            )

        def agreement(candidate: Variant, values: Mapping[str, Value] = variant.values) -> int:
            return sum(values[axis].name == candidate.values[axis].name for axis in common)

        found[variant.name] = max(candidates, key=agreement)
    return found


def select_lenient(
    projects: Sequence[Project], wanted: Sequence[str]
) -> dict[str, tuple[Variant, ...]]:
    """Return what *wanted* selects of the targets among *projects*, by project.

    What matches something in one of them only does not count for the others.

    Raises:
        VariantError: something that matches nothing in all of them, or all together do.
    """
    chosen: dict[str, tuple[Variant, ...]] = {}
    problem: VariantError | None = None
    for project in projects:
        if not project.is_target:
            continue
        try:
            chosen[project.name] = select(project.variants, wanted)
        except VariantError as error:
            problem = problem or error
    if not chosen and problem is not None:
        raise problem
    return chosen


# What is built against.


def check_build_requires(matrix: Matrix, *, isolated: bool) -> None:
    """Check that isolated builds of *matrix* install what they are built against.

    Raises:
        BuildError: the project does not list it in ``build-system.requires``.
    """
    if not isolated or not matrix.build.after:
        return
    requires = build_requires(read_pyproject(matrix.build.source))
    for after in matrix.build.after:
        if after.project not in requires:
            raise BuildError(
                f"{matrix.build.source}: build-system.requires in pyproject.toml does not list "
                f"{after.project}, so that an isolated build does not get it: add it there, or "
                "use --no-isolation"
            )


def find_wheel(folder: Path, project: str, variant: Variant) -> Path | None:
    """Return the wheel of *variant* of *project* in *folder* or its subfolders, None without one.

    Raises:
        BuildError: there are several.
    """
    found = []
    for path in sorted(folder.rglob("*.whl")):
        try:
            name = parse_filename(path.name)
        except InvalidWheelFilename:
            continue
        if (name.name, name.label) == (project, variant.label):
            found += [path] if is_built_for(path.name, variant.python, variant.platform) else []
    if len(found) > 1:
        raise BuildError(
            f"{folder}: there are several wheels of {project} {variant.name}: "
            f"{', '.join(path.name for path in found[:4])}: leave one"
        )
    return found[0] if found else None


def with_abi_dependency(variant: Variant, after: After, wheel: Path) -> Variant:
    """Return *variant* with the ``abi_dependency`` on the release of *wheel*, if it gets one.

    The null variant has no properties.
    """
    if not after.abi or variant.label == NULL_LABEL:
        return variant
    release = parse_filename(wheel.name).version.release
    value = ".".join(map(str, (*release, 0, 0)[: after.abi]))
    feature = after.project.replace("-", "_")
    settings = variant.settings
    own = [p for p in settings.properties if (p.namespace, p.feature) != (ABI_DEPENDENCY, feature)]
    properties = (*own, Property(ABI_DEPENDENCY, feature, value))
    return replace(variant, settings=replace(settings, properties=properties))
