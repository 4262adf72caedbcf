"""Checks of a recipe of `variants make`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pep_variants.errors import MetadataError, VariantError
from pep_variants.formats.toml import loads

from ..recipe import plan, read_recipe
from .finding import Finding, error

if TYPE_CHECKING:
    from pathlib import Path


def is_recipe(path: Path) -> bool:
    """Return whether the TOML file *path* is a recipe rather than a pyproject.toml."""
    try:
        return isinstance(loads(path.read_text("utf-8")).get("wheel"), list)
    except (ValueError, OSError):
        return False


def check_recipe(path: Path) -> list[Finding]:
    """Check the recipe *path*: whatever wheels it will be used for."""
    try:
        plan(read_recipe(path), [], None)
    except MetadataError as problem:
        code, place, message = "invalid-metadata", problem.path, problem.problem
    except (VariantError, OSError) as problem:
        code, place, message = "invalid-recipe", "", str(problem).removeprefix(f"{path}: ")
    else:
        return []
    return [error(code, str(path), place, message, "correct it: no wheel can be made from it")]
