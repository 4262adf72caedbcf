"""Installation: METADATA is written without variant markers, as it was decided.

What a marker depends on may be gone later: a driver, or the platform file of another machine. And
plain pip cannot parse such a marker.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from pep_variants import labels as wheel_labels

from .._guard import Original, replace
from .._markers import reduce_contents


def patch_install(module: ModuleType) -> None:
    """Reduce METADATA before pip makes RECORD, as pip itself changes scripts."""

    @replace(module, "get_csv_rows_for_installed", shows=True)
    def get_csv_rows_for_installed(
        original: Original,
        old_csv_rows: Any,
        installed: Mapping[str, str],
        changed: set[str],
        generated: Any,
        lib_dir: str,
        **kwargs: Any,
    ) -> Any:
        changed.update(path for path in {*installed.values()} if _reduce(lib_dir, path))
        return original(old_csv_rows, installed, changed, generated, lib_dir, **kwargs)


def _reduce(lib_dir: str, path: str) -> bool:
    """Reduce the file at *path*, relative to *lib_dir*, if it is METADATA with variant markers.

    Returns:
        Whether it is.

    Raises:
        OSError: a file cannot be read or written.
        VariantError: the settings are invalid.
    """
    dist_info, _, name = path.rpartition("/")
    if name != "METADATA" or "/" in dist_info or not dist_info.endswith(".dist-info"):
        return False
    folder = os.path.join(lib_dir, dist_info)  # noqa: PTH118 - as pip joins them
    metadata = os.path.join(folder, name)  # noqa: PTH118
    contents = _read(metadata)
    try:
        beside = _read(os.path.join(folder, wheel_labels.VARIANT_FILE))  # noqa: PTH118
    except FileNotFoundError:
        beside = None
    reduced = reduce_contents(contents, beside)
    if reduced is contents:
        return False
    with open(metadata, "wb") as file:  # noqa: PTH123 - the mode that pip gave it stays
        file.write(reduced)
    return True


def _read(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123
        return file.read()
