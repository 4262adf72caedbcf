"""``gpu==2.0 --variant=cu128``: the variant of one requirement, in requirements and constraints.

It has the meaning of ``--variant gpu=cu128`` on the command line. ``pip freeze --variants`` writes
such lines. An empty label (``--variant=``) stands for the non-variant wheel.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from pip._internal.exceptions import InstallationError
from pip._vendor.packaging.requirements import InvalidRequirement, Requirement
from pip._vendor.packaging.utils import canonicalize_name

from pep_variants.errors import InvalidLabel, redacted
from pep_variants.model.label import check_label

DEST = "pep_variants_label"
"""``dest`` of the option in pip's parser of requirement lines."""


class LabelLine(NamedTuple):
    """The label in a requirement line.

    Attributes:
        project: normalized name.
        label: its label, empty for the non-variant wheel.
        where: the number of the line, and its file.
    """

    project: str
    label: str
    where: str


def read_line(line: Any, build_constraints: Collection[str]) -> LabelLine | None:
    """Return the label in a requirement line; None without one, or if its marker does not hold.

    Args:
        line: parsed by pip.
        build_constraints: files of ``--build-constraint``.

    Raises:
        InstallationError: the option is not allowed in that line, or its label is invalid.
    """
    label = getattr(line.opts, DEST, None)
    if label is None:
        return None
    where = f"line {line.lineno} of {redacted(str(line.filename))}"
    if line.constraint and line.filename in build_constraints:
        raise InstallationError(
            f"{where}: --variant={label} has no effect in a build constraint; "
            "--variant NAME=LABEL on the command line counts for builds, too"
        )
    try:
        requirement = None if line.is_editable else Requirement(line.requirement)
    except InvalidRequirement:
        requirement = None
    if requirement is None or requirement.url is not None:
        raise InstallationError(
            f"{where}: --variant={label} needs a requirement such as 'name==1.0'; "
            "a path or URL names one file already"
        )
    try:
        check_label(label or "null")
    except InvalidLabel as error:
        raise InstallationError(f"{where}: --variant: {error}") from None
    if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
        return None
    return LabelLine(canonicalize_name(requirement.name), label, where)


def check_option_line(options: Any, filename: str, number: int) -> None:
    """Check that a line without a requirement does not have the option, which pip would ignore.

    Raises:
        InstallationError: it has.
    """
    label = getattr(options, DEST, None)
    if label is not None:
        raise InstallationError(
            f"line {number} of {redacted(filename)}: --variant={label} has no requirement; "
            "write it after one: name==1.0 --variant=LABEL"
        )
