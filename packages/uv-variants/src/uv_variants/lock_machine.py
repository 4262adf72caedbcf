"""The machine that a lock file is for: a platform file beside it, which goes with it to everybody.

A lock has one variant for each platform, chosen for one machine. Whoever changes the lock later, on
whatever machine, chooses for that one, so that the lock does not flip between the machines of a
team. The file only describes a machine: it runs nothing and does not change where code comes from,
so it counts without being trusted.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pep_variants import Platform, Support

if TYPE_CHECKING:
    from pep_variants import Preferences
    from variants_proxy import Machine

_COMMENT = """\
# The machine that {lock} is for; commit both. uv-variants chooses for it, wherever it locks:
# --variant-platform NAME locks for another one, --variant-platform native for the one at hand.
"""


@dataclass(frozen=True)
class LockMachine:
    """What is known of the machine of a lock.

    Attributes:
        path: of the file.
        platform: supported properties.
        target: operating system and processor, see `variants_proxy.key.Machine`.
        name: as it was given, a known name or facts; empty if it was detected or is a file.
        is_detected: the built-in providers found it: it counts where they would be asked.
    """

    path: Path
    platform: Platform
    target: str
    name: str = ""
    is_detected: bool = False

    @classmethod
    def read(cls, lock: Path) -> LockMachine | None:
        """Return the machine of the lock file at *lock*, None if it is not known.

        Raises:
            PlatformFileError: the file cannot be read, or is no platform file.
        """
        path = path_beside(lock)
        if not path.exists():
            return None
        from pep_variants import load_platform
        from pep_variants.internal import SETTINGS_BYTES, PlatformFileError, read_regular, toml
        from variants_proxy.internal import TARGET

        try:
            platform = load_platform(path)
        except PlatformFileError as error:
            raise PlatformFileError(
                f"{error}; it says which machine {lock.name} is for: mend it, or lock with "
                "--variant-platform, which writes it anew"
            ) from None
        about = toml.loads(read_regular(path, SETTINGS_BYTES).data.decode()).get("metadata", {})
        target, name = (
            text if isinstance(text := about.get(key), str) and text.isprintable() else ""
            for key in ("target", "machine")
        )
        return cls(
            path,
            platform,
            target if TARGET.fullmatch(target) else "",
            name[:100],
            about.get("detected") is True,
        )

    @classmethod
    def of(cls, lock: Path, machine: Machine, name: str) -> LockMachine:
        """Return *machine* as that of the lock file at *lock*."""
        namespaces = {**machine.detected.namespaces, **machine.platform.namespaces}
        platform = Platform(
            {
                namespace: Support(support.features)
                for namespace, support in namespaces.items()
                if support.features
            }
        )
        is_detected = not machine.platform.namespaces and not name
        return cls(path_beside(lock), platform, machine.target, name, is_detected)

    def write(self, lock: str) -> None:
        """Write the file, for the lock file of that name."""
        import json

        from pep_variants import write_platform
        from pep_variants.internal import replacing

        more = {"target": self.target, "machine": self.name, "detected": self.is_detected}
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in more.items() if value]
        head, empty, tables = write_platform(self.platform, "uv-variants").partition("\n\n")
        text = _COMMENT.format(lock=lock) + head.rstrip("\n") + "\n" + "".join(lines)
        text += f"\n{tables}" if empty else ""
        with replacing(self.path) as stream:
            stream.write(text.encode())

    def machine(self, preferences: Preferences, target: str | None) -> Machine:
        """Return what the proxy chooses for, with other *preferences*, or for another *target*."""
        from variants_proxy import Machine

        return Machine(
            Platform() if self.is_detected else self.platform,
            target=self.target if target is None else target,
            preferences=preferences,
            detected=self.platform if self.is_detected else Platform(),
        )

    def is_like(self, machine: Machine) -> bool:
        """Return whether *machine* supports the same."""
        other = LockMachine.of(self.path, machine, "")
        return (other.platform, other.target) == (self.platform, self.target)

    def __str__(self) -> str:
        return self.name or f"the machine of {self.path.name}"


def path_beside(lock: Path) -> Path:
    """Return the path of the file about the machine of *lock*: ``uv.variants.toml``."""
    return lock.with_name(f"{lock.name.removesuffix('.lock')}.variants.toml")
