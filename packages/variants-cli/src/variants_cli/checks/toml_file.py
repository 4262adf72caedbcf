"""Checks of a TOML file: a build matrix, a recipe of `variants make`, or a pyproject.toml."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from pep_variants.errors import MetadataError, VariantError
from pep_variants.formats.toml import loads

from ..build_providers import with_build_providers
from ..matrix.flags import warnings_of_lost_flags
from ..matrix.output import metadata
from ..matrix.projects import read_projects
from ..recipe import plan, read_recipe
from .document import check_document, check_pyproject
from .finding import ERROR, Finding, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from variants_plugins import PluginRunner

    from ..matrix.model import Matrix, Variant


def check_toml(path: Path, runner_of: Callable[[], PluginRunner]) -> list[Finding]:
    """Check the TOML file *path*: a matrix and those that it is built after, or a recipe.

    Any other file is taken for a pyproject.toml.

    Args:
        path: of the file.
        runner_of: gives the runner of provider plugins, if a matrix needs one.
    """
    try:
        tree = loads(path.read_text("utf-8"))
    except (ValueError, OSError):
        tree = {}
    if isinstance(tree.get("wheel"), list):
        invalid, remedy = "invalid-recipe", "correct it: no wheel can be made from it"
    elif isinstance(tree.get("axes"), dict) or isinstance(tree.get("extends"), str):
        invalid, remedy = "invalid-matrix", "correct it: nothing can be built from it"
    else:
        return check_pyproject(path)
    try:
        if invalid == "invalid-recipe":
            plan(read_recipe(path), [])  # whatever wheels it will be used for
            return []
        *_, project = read_projects([path])
        asked = with_build_providers(project.matrix.project, runner_of)
        return check_matrix(replace(project.matrix, project=asked), project.variants)
    except MetadataError as problem:
        code, place, message = "invalid-metadata", problem.path, problem.problem
    except (VariantError, OSError) as problem:
        code, place, message = invalid, "", str(problem).removeprefix(f"{path}: ")
    return [Finding(ERROR, code, str(path), place, message, remedy)]


def check_matrix(matrix: Matrix, variants: Sequence[Variant]) -> list[Finding]:
    """Check the *variants* of *matrix*.

    Args:
        matrix: the matrix, its providers of the build asked.
        variants: all of its variants.

    Raises:
        VariantError: its metadata cannot be written.
    """
    report = Report(matrix.source)
    report.findings += check_document(metadata(matrix, variants).encode(), matrix.source)[1]
    for message in warnings_of_lost_flags(matrix, variants, os.environ):
        report.add("lost-flags", "environment", message)
    return report.findings
