"""The wheels that pip builds and keeps: what was built with variants is kept for these variants.

pip keeps one wheel of a source. A wheel that is compiled against a variant of a build requirement
may not work with another, so it gets a folder of its own within the folder of its source, with a
file that says what it was built with. A pip without the shim does not look into such folders.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pip._internal.metadata import get_default_environment, get_environment

from ._options import noted_options

if TYPE_CHECKING:
    from ._session import Session

BUILT_WITH = "built-with.json"
"""The file in such a folder.

``variants``: version, label, and whether another label would not have been taken, by normalized
project name. ``options``: variant options of the command.
"""

_PREFIX = "variants-"
"""Of the names of such folders."""


def folder_for(session: Session, requirement: Any, place: str) -> str:
    """Return where in *place*, pip's folder of a source, the wheel of *requirement* is kept."""
    environment = requirement.build_env
    # Without isolation there are none: the build sees what is installed, whatever it requires.
    paths = getattr(environment, "lib_dirs", None) or getattr(environment, "_lib_dirs", None)
    found = get_environment(paths) if paths else get_default_environment()
    dists = {dist.canonical_name: dist for dist in found.iter_all_distributions()}
    wanted = session.labels_for_build()
    variants = {}
    for name, dist in sorted(dists.items()):
        label = session.catalog.label_of(dist, dists)
        if label:
            version = str(dist.version)
            fixed = not paths or _label(session, wanted, name, version) is not None
            variants[name] = version, label, fixed
    if not variants:
        return place
    text = json.dumps({"variants": variants, "options": [*noted_options()]})
    folder = Path(place, f"{_PREFIX}{hashlib.sha256(text.encode()).hexdigest()[:32]}")
    with suppress(OSError):  # pip says why it cannot write there
        folder.mkdir(parents=True, exist_ok=True)
        (folder / BUILT_WITH).write_text(text, "utf-8")
    return str(folder)


def usable(session: Session, files: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return which of the kept wheels a build would give now, as names and folders.

    Args:
        session: of the command.
        files: names in pip's folder of a source, each with that folder.
    """
    records = [*_records(files)]
    if not records:
        return files
    wanted = session.labels_for_build()
    fitting, differ = [], False
    for folder, record in records:
        labels = {
            name: _label(session, wanted, name, version)
            for name, (version, _, _) in record["variants"].items()
        }
        # It is known by now what the source is built with.
        differ = differ or any(labels.values())
        if all(
            labels[name] == label if labels[name] is not None else not fixed
            for name, (_, label, fixed) in record["variants"].items()
        ) and (None not in labels.values() or record["options"] == [*noted_options()]):
            fitting += [(path.name, str(folder)) for path in folder.iterdir()]
    return fitting or ([] if differ else files)


def _records(files: list[tuple[str, str]]) -> Iterator[tuple[Path, Any]]:
    """Yield the folders of wheels that were built with variants, and their `BUILT_WITH`."""
    for name, place in files:
        if name.startswith(_PREFIX):
            folder = Path(place, name)
            with suppress(OSError, ValueError):  # another process writes it
                yield folder, json.loads((folder / BUILT_WITH).read_text("utf-8"))


def _label(session: Session, wanted: Any, name: str, version: str) -> str | None:
    """Return which label of a build requirement has to be taken, None if any may be."""
    forced = session.options.forced.get(name)
    installed, label = wanted.get(name, ("", ""))
    return forced if forced is not None else label if installed == version else None
