"""The ``variant_config.toml`` of variant-repack as a matrix of one axis."""

from __future__ import annotations

from pathlib import Path

from ..variant_config import project_of, read_variant_config
from .model import Build, Matrix, Settings, Value

AXIS = "variant"
"""Name of the axis: its values are those of ``variant_configs``."""


def read_repack_matrix(path: Path) -> Matrix:
    """Return the variants of the file *path*; nothing in it says how to build them.

    Raises:
        RecipeError: it breaks the format, or there is no pyproject.toml beside it.
        MetadataError: that breaks the format.
        OSError: one of them cannot be read.
    """
    config = read_variant_config(path)
    values = tuple(
        Value(name, item.label or "", settings=Settings(item.properties))
        for name, item in config.variants.items()
    )
    return Matrix(
        source=config.source,
        project=project_of(path),
        axes={AXIS: values},
        label=(AXIS,),
        exclude=(),
        override=(),
        build=Build(path.parent),
    )
