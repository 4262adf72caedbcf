"""Installation: METADATA is written without variant markers, as it was decided.

What a marker depends on may be gone later: a driver, or the platform file of another machine. And
plain pip cannot parse such a marker.

Some files of a dist-info folder record how it was installed. What a wheel brings under their names
is dropped: it would write its own line in ``pip freeze``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from pip._vendor.packaging.utils import canonicalize_name

from pep_variants import labels as wheel_labels

from .._distributions import FORCED_FILE, RECORDED, noted_origins
from .._guard import Original, replace, switch
from .._markers import reduce_contents
from .._session import last_session

_RECORDS = {wheel_labels.ORIGIN_FILE, FORCED_FILE, "direct_url.json", "requested"}
"""Files that an installer writes, in lower case as on systems that do not tell cases apart."""


def patch_install(module: ModuleType) -> None:
    """Reduce METADATA before pip makes RECORD, as pip itself changes scripts."""

    # Also after a fault while pip installs: what is decided stays decided.
    @replace(module, "get_csv_rows_for_installed", always=True, shows=True)
    def get_csv_rows_for_installed(
        original: Original,
        old_csv_rows: Any,
        installed: Mapping[str, str],
        changed: set[str],
        generated: Any,
        lib_dir: str,
        **kwargs: Any,
    ) -> Any:
        if not (switch.on or switch.failed):
            return original(old_csv_rows, installed, changed, generated, lib_dir, **kwargs)
        changed.update(path for path in {*installed.values()} if _reduce(lib_dir, path))
        own = {*map(Path, generated)}
        dropped = {name for name, path in installed.items() if _drop(Path(lib_dir, path), own)}
        rows = [row for row in old_csv_rows if not row or row[0] not in dropped]
        kept = {name: path for name, path in installed.items() if name not in dropped}
        generated = [*generated, *_noted_label(Path(lib_dir), kept.values())]
        return original(rows, kept, changed, generated, lib_dir, **kwargs)


def _noted_label(lib_dir: Path, installed: Iterable[str]) -> Iterator[str]:
    """Write which label the user asked for, if any; yield the path of that file."""
    session = last_session()
    metadata = next((path for path in installed if path.endswith(".dist-info/METADATA")), None)
    if session is None or metadata is None:
        return
    folder = (lib_dir / metadata).parent
    label = session.options.forced.get(canonicalize_name(folder.name.partition("-")[0]))
    if label is not None:
        (folder / FORCED_FILE).write_text(label, "utf-8")
        (folder / "INSTALLER").write_bytes(RECORDED)
        yield str(folder / FORCED_FILE)


def _drop(path: Path, own: set[Path]) -> bool:
    """Remove the file at *path* if it is a record that the wheel has brought.

    Args:
        path: of an installed file.
        own: paths of the files that pip has written itself.

    Returns:
        Whether it is.

    Raises:
        OSError: a file cannot be read or written.
    """
    folder = path.parent
    if folder.suffix != ".dist-info" or path.name.lower() not in _RECORDS or path in own:
        return False
    project = canonicalize_name(folder.name.partition("-")[0])
    if (project, path.read_bytes()) in noted_origins:
        (folder / "INSTALLER").write_bytes(RECORDED)
        return False
    path.unlink()
    return True


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
