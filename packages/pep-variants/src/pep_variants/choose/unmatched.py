"""Options of the command line that match no project or variant of the command: likely misspelled.

Settings and variables apply to all commands, so they need not match anything in one of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from ..model.property import Selector

if TYPE_CHECKING:
    from ..model.metadata import Metadata
    from .preferences import Preferences


def unmatched(
    preferences: Preferences,
    arguments: Sequence[str],
    projects: Collection[str],
    seen: Iterable[Metadata],
) -> tuple[str, ...]:
    """Return a sentence for each name in an option that matches nothing.

    Args:
        preferences: merged from all settings.
        arguments: the command line; options that are not on it are left out.
        projects: normalized names of the projects of the command.
        seen: metadata that was looked at. Without any, nothing can be said of properties.
    """

    def given(option: str) -> bool:
        return any(text == option or text.startswith(f"{option}=") for text in arguments)

    found: list[str] = []
    if given("--variant"):
        found += (
            f"--variant {project}={label}: this command has no project {project}"
            for project, label in preferences.forced.items()
            if project not in projects
        )
    options = {
        "--variant-prefer": preferences.prefer,
        "--variant-exclude": preferences.exclude,
        "--variant-enable": tuple(map(Selector, sorted(preferences.enable))),
    }
    wanted = {option: names for option, names in options.items() if names and given(option)}
    metadata = list(seen) if wanted else []
    if not metadata:
        return tuple(found)
    namespaces = sorted({namespace for item in metadata for namespace in item.namespaces})
    for option, names in wanted.items():
        for name in names:
            matches = (name.feature is None and name.namespace in namespaces) or any(
                name.matches(properties)
                for item in metadata
                for properties in item.variants.values()
            )
            if not matches:
                found.append(
                    f"{option} '{name}' matches no variant of this command; its variants have the "
                    f"namespaces {', '.join(namespaces)}"
                )
    return tuple(found)
