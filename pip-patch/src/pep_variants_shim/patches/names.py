"""Wheel filenames: a name with a label is the wheel of the plain name."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from pep_variants.label import split_label

from ..hook import replace


def patch_wheel(module: ModuleType) -> None:
    """Make ``Wheel`` accept labels. Its ``filename`` stays what it was given."""

    @replace(module.Wheel, "__init__")
    def init(original: Callable[..., None], self: Any, filename: str) -> None:
        original(self, split_label(filename)[0])
        self.filename = filename


def patch_sources(module: ModuleType) -> None:
    """Make ``--find-links`` directories list wheels with labels."""

    @replace(module, "parse_wheel_filename")
    def parse(original: Callable[[str], Any], filename: str) -> Any:
        return original(split_label(filename)[0])
