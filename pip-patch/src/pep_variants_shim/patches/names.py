"""Wheel filenames: a name with a label is the wheel of the plain name."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from .._vendor.pep_variants.label import split_label
from ..hook import switch


def patch_wheel(module: ModuleType) -> None:
    """Make ``Wheel`` accept labels. Its ``filename`` stays what it was given."""
    original = module.Wheel.__init__

    @functools.wraps(original)
    def init(self: Any, filename: str) -> None:  # noqa: ANN401
        plain, label = split_label(filename)
        if label is None or not switch.on:
            original(self, filename)
            return
        original(self, plain)
        self.filename = filename

    module.Wheel.__init__ = init  # type: ignore[attr-defined]


def patch_sources(module: ModuleType) -> None:
    """Make ``--find-links`` directories list wheels with labels."""
    original = module.parse_wheel_filename

    @functools.wraps(original)
    def parse(filename: str) -> Any:  # noqa: ANN401
        return original(split_label(filename)[0] if switch.on else filename)

    module.parse_wheel_filename = parse  # type: ignore[attr-defined]
