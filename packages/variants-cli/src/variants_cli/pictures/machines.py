"""The machines of a picture: the named ones of `variants_index`, and platform files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from pep_variants.choose.phrases import DEVICES
from pep_variants.errors import VariantError, shortened
from pep_variants.formats.platform_file import load_platform
from pep_variants.model.platform import Platform
from variants_index.named_platforms import named_platforms, platform_title
from variants_index.platforms import environment_of, platform_of_namespaces


@dataclass(frozen=True)
class Machine:
    """A machine that variants are chosen for.

    Attributes:
        name: the name of its platform file, without ``.toml``.
        title: what the first lines of the file say of it; may be empty.
        platform: everything it supports.
    """

    name: str
    title: str
    platform: Platform

    @cached_property
    def environment(self) -> dict[str, str]:
        """Its marker environment (PEP 508): Linux on its family of CPUs."""
        supported = (ns for ns, support in self.platform.namespaces.items() if support.features)
        return environment_of(platform_of_namespaces(tuple(sorted(supported))))

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
        wanted: names of named machines, patterns of such names (``h100-*``), and paths of platform
            files. All named machines if there are none.

    Raises:
        VariantError: something that is neither a name, a pattern that matches, nor a file.
        PlatformFileError: a platform file that cannot be read.
    """
    named = named_platforms()
    found: dict[str, Path] = {}
    for text in wanted or ("*",):
        matching = {name: path for name, path in named.items() if fnmatchcase(name, text)}
        if not matching:
            path = Path(text)
            if not path.is_file():
                raise VariantError(
                    f"{shortened(text)} is neither a platform file nor the name of a machine: "
                    f"write a path, or a name such as {', '.join(list(named)[:3])}"
                )
            matching = {path.stem: path}
        for name, path in matching.items():
            if found.setdefault(name, path) != path:
                raise VariantError(
                    f"{found[name]} and {path} have one name, {name!r}: rename one of the files"
                )
    return tuple(
        # Without a source: messages are to name what the machine lacks, not the file.
        Machine(name, platform_title(path), replace(load_platform(path), source=""))
        for name, path in found.items()
    )
