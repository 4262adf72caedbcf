"""Wheels of other projects that a variant is built against.

Installers that know nothing of variants install them in the build environment: so they get plain
wheels, named by a constraint with the URL of the file, which no other wheel of the index meets.
Without isolation nothing is installed: there it is unpacked, and first on ``PYTHONPATH``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.utils import canonicalize_name

from pep_variants.errors import InvalidWheelFilename
from pep_variants.model.filename import parse_filename
from pep_variants.model.label import NULL_LABEL
from pep_variants.model.property import ABI_DEPENDENCY, Property

from .build_plan import BuildError
from .build_results import fingerprint
from .model import After, Matrix, Variant
from .plain_wheels import PlainWheels
from .source_project import read_source
from .wheel_targets import is_built_for


@dataclass(frozen=True)
class Against:
    """The wheels that one variant is built against.

    Attributes:
        wheels: variant wheels, or plain ones.
        plain_wheels: their plain wheels.
    """

    wheels: tuple[Path, ...]
    plain_wheels: PlainWheels

    @property
    def digest(self) -> str:
        """Digest of the wheels."""
        return fingerprint([self.plain_wheels.digest(wheel) for wheel in self.wheels])

    def constraints(self, folder: Path) -> Path | None:
        """Write a file with the constraints to *folder* and return it; None without isolation."""
        if not self.plain_wheels.isolated:
            return None
        path = folder / "built-against.txt"
        plain = [self.plain_wheels.plain(wheel).absolute() for wheel in self.wheels]
        lines = [f"{parse_filename(wheel.name).name} @ {wheel.as_uri()}\n" for wheel in plain]
        path.write_text("".join(lines), encoding="utf-8")
        return path

    def environment(self, environ: Mapping[str, str], constraints: Path | None) -> dict[str, str]:
        """Return variables for a build: the constraints for pip, or the unpacked wheels.

        Args:
            environ: the environment without them.
            constraints: the file.
        """
        if constraints is None:
            folders = [str(self.plain_wheels.unpacked(wheel)) for wheel in self.wheels]
            before = filter(None, [environ.get("PYTHONPATH", "")])
            return {"PYTHONPATH": os.pathsep.join([*folders, *before])}
        url = constraints.absolute().as_uri()  # pip splits these variables at spaces
        return {
            name: " ".join(filter(None, [environ.get(name, ""), url]))
            for name in ("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT")
        }


def check_build_requires(matrix: Matrix, *, isolated: bool) -> None:
    """Check that isolated builds of *matrix* install what they are built against.

    Raises:
        BuildError: the project does not list it in ``build-system.requires``.
    """
    if not isolated or not matrix.build.after:
        return
    requires = read_source(matrix.build.source).build_requires
    for after in matrix.build.after:
        if after.project not in requires:
            raise BuildError(
                f"{matrix.build.source}: build-system.requires in pyproject.toml does not list "
                f"{after.project}, so that an isolated build does not get it: add it there, or "
                "use --no-isolation"
            )


def find_wheel(folder: Path, project: str, variant: Variant) -> Path | None:
    """Return the wheel of *variant* of *project* in *folder* or its subfolders, None without one.

    Raises:
        BuildError: there are several.
    """
    found = []
    for path in sorted(folder.rglob("*.whl")):
        try:
            name = parse_filename(path.name)
        except InvalidWheelFilename:
            continue
        if (
            name.name == project
            and name.label == variant.label
            and is_built_for(path.name, variant.python, variant.platform)
        ):
            found.append(path)
    if len(found) > 1:
        raise BuildError(
            f"{folder}: there are several wheels of {project} {variant.name}: "
            f"{', '.join(path.name for path in found[:4])}: leave one"
        )
    return found[0] if found else None


def with_abi_dependency(variant: Variant, after: After, wheel: Path) -> Variant:
    """Return *variant* with the ``abi_dependency`` on the release of *wheel*, if it gets one.

    The null variant has no properties.
    """
    if not after.abi or variant.label == NULL_LABEL:
        return variant
    release = parse_filename(wheel.name).version.release
    value = ".".join(map(str, (*release, 0, 0)[: after.abi]))
    feature = canonicalize_name(after.project).replace("-", "_")
    settings = variant.settings
    own = tuple(
        item
        for item in settings.properties
        if (item.namespace, item.feature) != (ABI_DEPENDENCY, feature)
    )
    properties = (*own, Property(ABI_DEPENDENCY, feature, value))
    return replace(variant, settings=replace(settings, properties=properties))
