"""Checks of a build matrix: what `variants matrix` and `variants validate` say of it."""

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
from .document import check_document
from .finding import Finding, error, warning

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from variants_plugins import PluginRunner

    from ..matrix.model import Matrix, Variant


def is_matrix(path: Path) -> bool:
    """Return whether the TOML file *path* has variants to build, rather than a pyproject.toml."""
    try:
        tree = loads(path.read_text("utf-8"))
    except (ValueError, OSError):
        return False
    kinds = {"axes": dict, "extends": str}
    return any(isinstance(tree.get(key), kind) for key, kind in kinds.items())


def check_matrix_file(path: Path, runner_of: Callable[[], PluginRunner]) -> list[Finding]:
    """Check the matrix file *path*, and those that it is built after."""
    try:
        *_, project = read_projects([path])
        asked = with_build_providers(project.matrix.project, runner_of)
        return check_matrix(replace(project.matrix, project=asked), project.variants)
    except MetadataError as problem:
        code, place, message = "invalid-metadata", problem.path, problem.problem
    except (VariantError, OSError) as problem:
        code, place, message = "invalid-matrix", "", str(problem).removeprefix(f"{path}: ")
    return [error(code, str(path), place, message, "correct it: nothing can be built from it")]


def check_matrix(matrix: Matrix, variants: Sequence[Variant]) -> list[Finding]:
    """Check the *variants* of *matrix*.

    Args:
        matrix: the matrix, its providers of the build asked.
        variants: all of its variants.

    Raises:
        VariantError: its metadata cannot be written.
    """
    _, findings = check_document(metadata(matrix, variants).encode(), matrix.source)
    findings += [
        warning(
            "lost-flags", matrix.source, "environment", message, "use 'flags', which adds to them"
        )
        for message in warnings_of_lost_flags(matrix, variants, os.environ)
    ]
    return findings
