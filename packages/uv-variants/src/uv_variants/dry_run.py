"""What ``uv pip install --dry-run`` would take: nothing is installed that tells of variants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .forced_variants import admitted_choices
from .site_packages import Installed, installed_without_variant

if TYPE_CHECKING:
    from .installed_state import InstalledState
    from .proxy_client import VersionChoice


def would_take(state: InstalledState, *, verbose: bool) -> Iterator[Installed]:
    """Yield the variants of the projects that the command names.

    Of those that only others require uv alone knows the version.

    Args:
        state: of the environment.
        verbose: also those that are installed already.
    """
    context = state.context
    if context.invocation.command != ("pip", "install"):
        return
    names = list(context.requested)
    state.choices.ask(names)
    for name in names:
        admitted = admitted_choices(context, state.choices, name)
        present = state.before.get(name) or installed_without_variant(context.environments, name)
        version = None if present is None else _kept(state, present, admitted)
        versions = admitted if version is None else {version: admitted[version]}
        for number, choice in versions.items():
            if not choice.labels:
                continue  # nothing of it fits: uv goes on to an older version
            if choice.chosen is not None:
                taken = _installed(name, number, choice)
                if verbose or present is None or not _is_there(state, taken, present):
                    yield taken
            break


def _is_there(state: InstalledState, taken: Installed, present: Installed) -> bool:
    """Return whether what is *present* is the variant that is *taken*."""
    label = state.choices.label_of(present)
    return (taken.version, taken.label) == (present.version, label)


def _kept(
    state: InstalledState, present: Installed, admitted: dict[str, VersionChoice]
) -> str | None:
    """Return which of the *admitted* versions is installed and stays, None if it does not."""
    invocation = state.context.invocation
    if invocation.has("upgrade", "U", "reinstall") or invocation.values(
        "upgrade-package", "P", "reinstall-package"
    ):
        return None
    choice = state.choices.of_installed(present)
    return next((version for version, each in admitted.items() if each is choice), None)


def _installed(name: str, version: str, choice: VersionChoice) -> Installed:
    """Return what would be installed: of a catalogue the publisher's build."""
    label = None if choice.chosen is None else choice.chosen.label
    builds = (
        choice.published[plain].split("-")[1]
        for plain, shown in choice.labels.items()
        if shown == label and plain in choice.published
    )
    return Installed(name, next(builds, version), label)
