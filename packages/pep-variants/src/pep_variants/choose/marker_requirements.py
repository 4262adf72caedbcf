"""Which marker of a variant requires a project that cannot be had, in words."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name

from ..errors import InvalidMarker, printable, redacted
from ..patterns import pattern
from .markers import VariantContext, reduce_requirement, split_requirement

if TYPE_CHECKING:
    from .selection import File, Selection


def required_by_marker(
    project: str,
    version: Hashable,
    selection: Selection[Any],
    file: File[Any],
    requires: Iterable[str],
    wanted: str,
) -> Iterator[str]:
    """Yield which markers make a variant require a project that cannot be had, and the way out.

    Markers take no part in choosing a variant (PEP 825, "Evaluating variant markers"), so a
    dependency that they add is an error like any other, and users decide what to do about it.

    Args:
        project: normalized name of what the variant is of.
        version: of it.
        selection: the decision about that version.
        file: the variant wheel.
        requires: its ``Requires-Dist`` values with variant markers.
        wanted: normalized name of the dependency.
    """
    for text in requires:
        name = _NAME.match(text)
        if name is None or canonicalize_name(name[0]) != wanted:
            continue
        if not _applies(text, selection.context(file)):
            continue
        dependency, marker = split_requirement(text)
        label = file.label or "without a label"
        others = [
            item.label or ""
            for item in selection.files
            if item.label != file.label and not _applies(text, selection.context(item))
        ]
        ways = [f"choose another variant with --variant {project}={other}" for other in others[:1]]
        if any(item.label is None for item in selection.files):
            ways.append("give --no-variants")
        yield printable(
            f"{project} {version} (variant {label}) requires {redacted(dependency)} because of the "
            f"marker {marker}. Markers take no part in choosing a variant"
            + (f": {', or '.join(ways)}" if ways else ", and the others that fit require it, too")
        )


_NAME = pattern(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def _applies(requirement: str, context: VariantContext) -> bool:
    try:
        return reduce_requirement(requirement, context) is not None
    except InvalidMarker:
        return False
