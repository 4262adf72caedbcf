"""The caches of uv and of uv-variants, with their sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pep_variants.cache_directory import cache_directory
from variants_index.doctor.findings import Part

from .. import uv_directories

if TYPE_CHECKING:
    from ..place import Place


def caches_part(place: Place, configured: object) -> Part:
    """Return the caches of uv and of this program with their sizes.

    Args:
        place: of the command.
        configured: ``cache-dir`` of uv's files.
    """
    uv = uv_directories.cache_directory(place.environ, None, configured, place.cwd).absolute()
    ours = cache_directory(place.environ, "")
    rows, tree = [], []
    for what, path in (
        ("uv", uv),
        ("uv with variants", uv_directories.variants_caches(uv)),
        ("uv-variants", ours),
    ):
        if path.is_dir():
            size, complete = uv_directories.size_of(path)
            rows.append((what, f"{path}, {uv_directories.in_words(size, complete=complete)}"))
            tree.append({"what": what, "path": str(path), "bytes": size, "complete": complete})
    return Part(tuple(rows), tree=tree)
