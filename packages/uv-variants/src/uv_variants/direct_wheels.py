"""Variant wheels that a command names by path or URL, whose filenames uv cannot read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pep_variants.model.label import split_label

from .errors import VariantMissing

if TYPE_CHECKING:
    from .invocation import Invocation

_COMMANDS = (
    *(("pip", "install"), ("pip", "download"), ("pip", "wheel"), ("add",), ("run",)),
    *(("tool", "install"), ("tool", "run")),
)


def check_direct_wheels(invocation: Invocation) -> None:
    """Check that no variant wheel is named directly.

    Raises:
        VariantMissing: one is; the message has the command that installs it.
    """
    if invocation.command not in _COMMANDS or invocation.has("preview"):
        return
    if invocation.values("preview-features", "preview-feature"):
        return  # newer uvs read them then
    for text in _named(invocation):
        place = text.partition(" @ ")[2] or text
        folder, _, name = place.partition("#")[0].replace("\\", "/").rpartition("/")
        name = unquote(urlsplit(name).path)
        if not name.endswith(".whl"):
            continue
        plain, label = split_label(name)
        parts = plain.split("-")
        if label and len(parts) >= 5:
            project, version = parts[0].replace("_", "-").lower(), parts[1]
            command = " ".join(invocation.command)
            raise VariantMissing(
                f"{place}: uv cannot read the names of variant wheels: name the project and where "
                f"its files are: uv-variants --variant {project}={label} {command} "
                f"--find-links {folder or '.'} {project}=={version}"
            )


def _named(invocation: Invocation) -> Iterator[str]:
    if invocation.command != ("run",):
        yield from invocation.operands
    yield from invocation.values("with", "from")
