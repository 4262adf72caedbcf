"""Variant wheels that a command names by path or URL, whose filenames uv cannot read."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pep_variants.model.label import split_label

from .errors import VariantMissing
from .project_names import normalized

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
    given = invocation.values("preview-features", "preview-feature")
    if invocation.command not in _COMMANDS or invocation.has("preview") or given:
        return  # newer uvs read them with these options
    named = invocation.operands if invocation.command != ("run",) else ()
    for text in (*named, *invocation.values("with", "from")):
        place = text.partition(" @ ")[2] or text
        folder, _, name = place.partition("#")[0].replace("\\", "/").rpartition("/")
        plain, label = split_label(unquote(urlsplit(name).path))
        parts = plain.split("-")
        if plain.endswith(".whl") and label and len(parts) >= 5:
            project, version = normalized(parts[0]), parts[1]
            command = " ".join(invocation.command)
            raise VariantMissing(
                f"{place}: uv cannot read the names of variant wheels: name the project and where "
                f"its files are: uv-variants --variant {project}={label} {command} "
                f"--find-links {folder or '.'} {project}=={version}"
            )
