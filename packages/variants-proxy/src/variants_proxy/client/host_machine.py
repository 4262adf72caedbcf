"""The machine that a client describes in its platform key: this one, or that of a platform file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .key import Machine, host_target

if TYPE_CHECKING:
    from pep_variants import Preferences, Support


def described_machine(
    preferences: Preferences,
    target: str | None = None,
    answers: Mapping[str, Support] | None = None,
) -> Machine:
    """Return the machine for *preferences*: its platform file, or what the providers detect here.

    Args:
        preferences: of the user.
        target: operating system and processor, see `Machine.target`; None for those of this
            machine. For another target nothing is detected.
        answers: properties that plugins answered, by `provider_id`.

    Raises:
        PlatformFileError: the platform file cannot be read, or there is no such machine.
    """
    from pep_variants import Platform

    if not preferences.use_variants:
        return Machine(preferences=preferences)
    stated, detected = Platform(), Platform()
    if preferences.platform_file is not None:
        from pep_variants import load_machine

        stated = load_machine(preferences.platform_file)
    elif target is None or target == host_target():
        from pep_variants import Detector

        detected = Detector(enabled=preferences.enable).host()
    return Machine(
        stated,
        target=host_target() if target is None else target,
        preferences=preferences,
        detected=detected,
        answers=answers or {},
    )
