"""Which variants of a matrix wheels are that something else built, cibuildwheel for example."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pep_variants.errors import VariantError
from pep_variants.model.filename import parse_filename

from .combination import distinct
from .model import Variant
from .wheel_targets import is_built_for


def label_wheels(
    variants: Sequence[Variant], selected: Sequence[Variant], wheels: Iterable[Path]
) -> list[tuple[Path, Variant]]:
    """Return each of *wheels* with the variant that it is.

    That is the one selected label, or, where several are, the one that the wheel's folder is
    named by, as artifacts of CI jobs are: ``cu129_sm90/`` or ``cu129_sm90-cp312-win_amd64/``.

    Args:
        variants: all of the matrix.
        selected: those that are meant.
        wheels: plain wheels.

    Raises:
        VariantError: it is not certain which variant a wheel is, or the matrix has no build for
            its Python and platform.
    """
    labels = [variant.label for variant in distinct(selected)]
    found = []
    for wheel in wheels:
        if parse_filename(wheel.name).label is not None:
            raise VariantError(f"{wheel} is a variant wheel: unmake it first")
        if len(labels) == 1:
            builds = [variant for variant in selected if variant.label == labels[0]]
        else:
            folder = wheel.absolute().parent.name
            builds = [variant for variant in selected if folder in (variant.label, variant.name)]
            if not builds:
                raise VariantError(
                    f"{wheel}: its folder {folder!r} is not the name of a selected variant: name "
                    f"the variant with --only, such as --only {distinct(variants)[0].label}"
                )
        fitting = [
            variant
            for variant in builds
            if is_built_for(wheel.name, variant.python, variant.platform)
        ]
        if not fitting:
            targets = ", ".join(
                " on ".join(str(part) for part in (build.python, build.platform) if part)
                for build in builds[:8]
            )
            raise VariantError(
                f"{wheel.name}: {builds[0].label} is not built for the Python or the platform of "
                f"this wheel, but for {targets}{', …' * (len(builds) > 8)}: correct the axes, or "
                "leave the wheel out"
            )
        found.append((wheel, fitting[0]))
    return found
