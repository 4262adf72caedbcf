"""Wheel filenames with labels."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from pep_variants import labels as wheel_labels

from .._guard import Original, replace, switch


def patch_wheel(module: ModuleType) -> None:
    """Make ``Wheel`` accept labels; its ``filename`` keeps the label."""

    # Labels stay accepted after a fault: pip parses the collected filenames again.
    @replace(module.Wheel, "__init__", always=True)
    def init(original: Original, self: Any, filename: str) -> None:
        if not (switch.on or switch.used):
            original(self, filename)
            return
        plain, label = wheel_labels.split_label(filename)
        if label is not None:
            switch.used = True
        try:
            original(self, plain)
        except ValueError as error:  # from `int`, for thousands of digits
            raise module.InvalidWheelFilename(f"{filename[:200]}: {error}") from None
        self.filename = filename


def patch_sources(module: ModuleType) -> None:
    """Make ``--find-links`` directories list wheels with labels."""

    @replace(module, "parse_wheel_filename")
    def parse(original: Original, filename: str) -> Any:
        return original(wheel_labels.split_label(filename)[0])
