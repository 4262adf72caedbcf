"""The wheels that pip builds and keeps: what was built with variants is kept for these variants.

pip keeps one wheel of a source. A wheel that is compiled against a variant of a build requirement
may not work with another, so it gets a folder of its own within the folder of its source, with a
file that says what it was built with. A pip without the shim does not look into such folders.

One that is built without variants is kept where pip keeps it, with the same file beside it. Of one
without that file nobody knows: it is taken once its build requirements are installed for a build,
and none of them is a variant.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pip._internal.metadata import get_default_environment, get_environment
from pip._internal.models.wheel import Wheel
from pip._internal.utils.compatibility_tags import get_supported
from pip._vendor.packaging.utils import canonicalize_name

from ._options import noted_options

if TYPE_CHECKING:
    from ._session import Session

BUILT_WITH = "built-with.json"
"""The file in such a folder.

``variants``: version, label, and whether another label would not have been taken, by normalized
project name. ``options``: variant options of the command. Beside wheels without variants, for each
by its filename: its ``size`` and ``time``, ``names`` of what it was built with, ``options``.
"""

_PREFIX = "variants-"
"""Of the names of such folders."""


def folder_for(session: Session, requirement: Any, place: str) -> str:
    """Return where in *place*, pip's folder of a source, the wheel of *requirement* is kept."""
    dists, is_isolated = _built_with(requirement)
    wanted = session.labels_for_build()
    variants = {}
    for name, dist in sorted(dists.items()):
        label = session.catalog.label_of(dist, dists)
        if label:
            version = str(dist.version)
            fixed = not is_isolated or _label(session, wanted, name, version) is not None
            variants[name] = version, label, fixed
    if not variants:
        return place
    text = json.dumps({"variants": variants, "options": [*noted_options()]})
    folder = Path(place, f"{_PREFIX}{hashlib.sha256(text.encode()).hexdigest()[:32]}")
    with suppress(OSError):  # pip says why it cannot write there
        folder.mkdir(parents=True, exist_ok=True)
        (folder / BUILT_WITH).write_text(text, "utf-8")
    return str(folder)


def _built_with(requirement: Any) -> tuple[dict[str, Any], bool]:
    """Return the distributions that a build sees, by name, and if those are for the build only."""
    environment = requirement.build_env
    # Without isolation there are none: the build sees what is installed, whatever it requires.
    paths = getattr(environment, "lib_dirs", None) or getattr(environment, "_lib_dirs", None)
    found = get_environment(paths) if paths else get_default_environment()
    return {dist.canonical_name: dist for dist in found.iter_all_distributions()}, bool(paths)


def kept_or_built(requirement: Any, place: str, build: Callable[[], Any]) -> Any:
    """Return the path of the wheel of *requirement*, which *build* makes in *place* if need be.

    Args:
        requirement: pip's, whose build requirements are installed.
        place: from `folder_for`.
        build: returns the path; None if the build fails.
    """
    if Path(place).name.startswith(_PREFIX):
        return build()
    path = next(_kept(requirement, place), None) or build()
    if path is None:
        return None
    path = Path(path)
    with suppress(OSError):
        record = {**_identity(path), "names": sorted(_built_with(requirement)[0])}
        known = {**_beside(place), path.name: {**record, "options": [*noted_options()]}}
        Path(place, BUILT_WITH).write_text(json.dumps(known), "utf-8")
    return str(path)


def _kept(requirement: Any, place: str) -> Iterator[Path]:
    """Yield the wheels of *requirement* in *place* that this interpreter can use."""
    tags = get_supported()
    for path in sorted(Path(place).glob("*.whl")):
        wheel, name = Wheel(path.name), canonicalize_name(requirement.name)
        # Opened as a wheel that was just built: pip 26 refuses imports while it installs.
        with suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(path):
            if canonicalize_name(wheel.name) == name and wheel.supported(tags):
                yield path


def _identity(wheel: Path) -> dict[str, int]:
    found = wheel.stat()
    return {"size": found.st_size, "time": found.st_mtime_ns}


def _beside(place: str) -> dict[str, Any]:
    """Return what `kept_or_built` has written about the wheels in *place*."""
    try:
        return dict(json.loads(Path(place, BUILT_WITH).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def _without_variants(session: Session, files: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return which *files* are wheels that were built without variants, and would be so now."""
    found = []
    for name, place in files:
        record = _beside(place).get(name, {})
        with suppress(OSError, KeyError, TypeError):
            if (
                record["options"] == [*noted_options()]
                and record.items() >= _identity(Path(place, name)).items()
                and not any(map(session.may_have_variants, record["names"]))
            ):
                found.append((name, place))
    return found


def usable(session: Session, files: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return which of the kept wheels a build would give now, as names and folders.

    Args:
        session: of the command.
        files: names in pip's folder of a source, each with that folder.
    """
    records = [*_records(files)]
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
    return fitting or ([] if differ else _without_variants(session, files))


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
