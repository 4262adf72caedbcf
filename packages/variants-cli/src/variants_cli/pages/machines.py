"""The machines on a page: the known ones, and others by facts and platform files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from pep_variants.choose.phrases import DEVICES
from pep_variants.detect.known_machines import BY_NAME
from pep_variants.detect.machines import load_machine, machine_title, names_file
from pep_variants.errors import VariantError
from pep_variants.model.platform import Platform
from variants_index.platforms import environment_of


@dataclass(frozen=True)
class Machine:
    """A machine that variants are chosen for.

    Attributes:
        name: its name or facts, or the name of its platform file without ``.toml``.
        title: what it is, see `machine_title`; may be empty.
        platform: everything it supports.
    """

    name: str
    title: str
    platform: Platform

    @cached_property
    def system(self) -> str:
        """What it most likely runs, as in `variants_index.platforms`: ``linux-x86_64``."""
        if self.name.startswith("apple-"):
            return "macosx-aarch64"
        has_arm = self.platform.support("aarch64").features
        return "linux-aarch64" if has_arm else "linux-x86_64"

    @cached_property
    def environment(self) -> dict[str, str]:
        """Its marker environment (PEP 508)."""
        return environment_of(self.system)

    @cached_property
    def accelerators(self) -> tuple[str, ...]:
        """Namespaces of GPUs and the like of which it supports something, ascending."""
        return tuple(
            namespace
            for namespace, support in sorted(self.platform.namespaces.items())
            if support.features and namespace in DEVICES
        )


def read_machines(wanted: Sequence[str] = ()) -> tuple[Machine, ...]:
    """Return machines.

    Args:
        wanted: machines as in `load_machine`, and patterns of names (``h100-*``). All known
            machines if there are none.

    Raises:
        VariantError: two files with one name.
        PlatformFileError: a platform file that cannot be read, or no such machine.
    """
    found: dict[str, str] = {}
    for text in wanted or ("*",):
        for name, machine in _matching(text).items():
            if found.setdefault(name, machine) != machine:
                raise VariantError(
                    f"{found[name]} and {machine} have one name, {name!r}: rename one of the files"
                )
    # Without a source: messages are to name what the machine lacks, not the file.
    platforms = {name: replace(load_machine(found[name]), source="") for name in found}
    return tuple(
        Machine(name, machine_title(machine), platforms[name]) for name, machine in found.items()
    )


def _matching(text: str) -> dict[str, str]:
    """Return the machines that *text* means, by name."""
    known = {name: name for name in BY_NAME if fnmatchcase(name, text)}
    return known or {Path(text).stem if names_file(text) else text: text}
