"""Releases with wheels for several platforms, whose dependencies differ: the table of layouts.

Each layout is a project of its own. Names of dependencies begin with its name, so that one project
can depend on all layouts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pep_variants.model.environment import target_environment
from pep_variants.model.platform import Platform as Namespaces
from pep_variants.model.platform import Support
from variants_proxy import Machine

from .index import Index
from .projects import cuda
from .wheels import SourceDistribution, Wheel

METADATA = cuda("12.6", "12.8")
_GPU = Namespaces({"nvidia": Support({"cuda_version_lower_bound": ("12.8", "12.7", "12.6")})})


class Platform(NamedTuple):
    """A platform that projects are locked for.

    Attributes:
        tag: of wheels for it.
        triple: value of uv's ``--python-platform``.
    """

    tag: str
    triple: str

    def environment(self, minor: int) -> dict[str, str]:
        """Return its marker environment with CPython 3.*minor*."""
        return {"extra": "", **target_environment([self.tag], (3, minor, 1))}


PLATFORMS: Mapping[str, Platform] = {
    "linux": Platform("manylinux_2_17_x86_64", "x86_64-unknown-linux-gnu"),
    "linux-arm": Platform("manylinux_2_17_aarch64", "aarch64-unknown-linux-gnu"),
    "mac": Platform("macosx_11_0_arm64", "aarch64-apple-darwin"),
    "mac-intel": Platform("macosx_10_13_x86_64", "x86_64-apple-darwin"),
    "windows": Platform("win_amd64", "x86_64-pc-windows-msvc"),
    "windows-arm": Platform("win_arm64", "aarch64-pc-windows-msvc"),
}

MACHINES: Mapping[str, Machine] = {
    "Linux GPU": Machine(_GPU, target="linux-x86_64"),
    "Windows GPU": Machine(_GPU, target="win-x86_64"),
    "Mac": Machine(Namespaces({}), target="macosx-aarch64"),
    "laptop": Machine(Namespaces({}), target="linux-x86_64"),
}
"""Machines that lock."""


@dataclass(frozen=True)
class Build:
    """A wheel of a layout.

    Attributes:
        platform: name of the platform; ``any`` for a pure wheel.
        label: of the variant, empty for none.
        requires: ``Requires-Dist`` values.
        needs: what has to be installed with it on this platform; None for all of *requires*.
        python: python and ABI tag.
    """

    platform: str
    label: str
    requires: tuple[str, ...] = ()
    needs: tuple[str, ...] | None = None
    python: str = "py3-none"

    def tag(self) -> str:
        """Return the tag in its filename."""
        known = PLATFORMS.get(self.platform)
        return f"{self.python}-{known.tag if known else self.platform}"


@dataclass(frozen=True)
class Layout:
    """A release, and the platforms that count.

    Attributes:
        words: what is special.
        builds: wheels; of two for one platform and label the one before is taken.
        extra: name of an extra that is installed, empty for none.
        minors: versions of Python that are looked at.
        source: whether there is a source distribution.
        platforms: that count; empty for those of the wheels.
    """

    words: str
    builds: tuple[Build, ...]
    extra: str = ""
    minors: tuple[int, ...] = (11,)
    source: bool = False
    platforms: tuple[str, ...] = ()

    def cells(self) -> Iterable[tuple[str, int]]:
        """Yield the platforms and Pythons that count."""
        listed = self.platforms or dict.fromkeys(build.platform for build in self.builds)
        return ((platform, minor) for platform in listed for minor in self.minors)

    def build_for(self, platform: str, minor: int, locked: Mapping[str, str]) -> Build | None:
        """Return the wheel that is installed, of those in a lock file: labels by tag."""
        for build in self.builds:
            number = build.python.partition("-")[0][3:]
            fits = not number or int(number) == minor or "abi3" in build.python
            here = fits and build.platform in (platform, "any")
            if here and locked.get(build.tag()) == build.label:
                return build
        return None


def _each(platforms: Sequence[str], label: str, *requires: str) -> tuple[Build, ...]:
    return tuple(Build(platform, label, requires) for platform in platforms)


_BOTH = (
    "always",
    "gpu; 'nvidia' in variant_namespaces and sys_platform == 'linux'",
    "dll; 'nvidia' in variant_namespaces and sys_platform == 'win32'",
    "cpu; 'nvidia' not in variant_namespaces and (sys_platform == 'darwin' or extra == 'x')",
)
LAYOUTS: Mapping[str, Layout] = {
    "l1": Layout(
        "one variant, a plain wheel elsewhere",
        (
            Build("linux", "cu128", ("always", "cuda==12.8")),
            Build("linux", "", ("always",)),
            Build("mac", "", ("always",)),
        ),
    ),
    "l6": Layout(
        "variant and environment markers in one, with an extra",
        (
            Build("linux", "cu128", _BOTH, ("always", "gpu")),
            Build("windows", "cu128", _BOTH, ("always", "dll")),
            Build("linux", "", _BOTH, ("always", "cpu")),
            Build("windows", "", _BOTH, ("always", "cpu")),
            Build("mac", "", _BOTH, ("always", "cpu")),
        ),
        extra="x",
    ),
    "l8": Layout(
        "six platforms",
        (
            *_each(("linux",), "cu128", "always", "cuda==12.8"),
            *_each(("windows",), "cu128", "always", "cuda==12.8", "dll"),
            *_each(("linux", "linux-arm", "windows"), "", "always", "cpu"),
            *_each(("mac", "mac-intel"), "", "always", "metal"),
            *_each(("windows-arm",), "", "always", "dll"),
        ),
    ),
    "l9": Layout(
        "a pure wheel for all others",
        (
            *_each(("linux", "windows"), "cu126", "cuda==12.6"),
            *_each(("any",), "", "cpu"),
        ),
        platforms=("linux", "mac", "windows"),
    ),
    "l10": Layout(
        "Pythons that differ",
        (
            Build("linux", "cu128", ("cuda==12.8", "old"), python="cp311-cp311"),
            Build("linux", "cu128", ("cuda==12.8",), python="cp312-abi3"),
            *_each(("linux", "mac"), "null", "cpu"),
        ),
        minors=(11, 12),
        source=True,
    ),
}
"""By name of the project."""


class _AbsoluteIndex(Index):
    """An index whose pages are right at other addresses as well."""

    def _entries(self, project: str) -> Iterator[tuple[str, str, str]]:
        for filename, url, sha256 in super()._entries(project):
            yield filename, f"{self.url.removesuffix('/simple/')}{url}", sha256


def layouts_index(**options: Any) -> Index:
    """Return an index with all layouts, and everything that they may depend on."""
    index = _AbsoluteIndex(**options)
    names: dict[str, None] = {}
    for name, layout in LAYOUTS.items():
        for build in layout.builds:
            label = build.label or None
            wheel = Wheel(
                name,
                "1.0",
                label,
                build.tag(),
                tuple(f"{name}-{text}" for text in build.requires),
                {**METADATA, "variants": {label: METADATA["variants"][label]}} if label else None,
                extras=(layout.extra,) if layout.extra else (),
            )
            index.add_wheel(wheel, metadata_file=True)
            names.update(dict.fromkeys(re.split(r"[\[;= ]", text)[0] for text in wheel.requires))
        labels = {build.label for build in layout.builds if build.label}
        document = {
            **METADATA,
            "variants": {k: v for k, v in METADATA["variants"].items() if k in labels},
        }
        index.add(name, f"{name}-1.0-variants.json", json.dumps(document).encode())
        if layout.source:
            source = SourceDistribution(name, "1.0")
            index.add(name, source.filename, source.build())
    for name in names:
        versions = ("12.6", "12.8") if name.endswith("-cuda") else ("1.0",)
        for version in versions:
            index.add_wheel(Wheel(name, version, extras=("x",)), metadata_file=True)
    return index


def needs_of(name: str, build: Build) -> frozenset[str]:
    """Return what has to be installed with *build* of the layout *name*, as ``name==version``."""
    wanted = build.requires if build.needs is None else build.needs
    return frozenset(f"{name}-{text}" if "==" in text else f"{name}-{text}==1.0" for text in wanted)
