"""Releases as flash-attn and vLLM have them, in two batches: real METADATA, stub payloads.

`integration-tests/releases` has the METADATA of their source distributions on PyPI, and the options
with which ``variants make`` turns their builds into variants.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.parser import Parser
from fnmatch import fnmatchcase
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pep_variants._formats import toml

from .environments import ROOT, clean_environ
from .wheels import Wheel

FOLDER = ROOT / "integration-tests" / "releases"
COMMAND = [sys.executable, "-c", "from variants_cli.main import main; main()"]
X86_64, AARCH64 = "x86_64", "aarch64"


@dataclass(frozen=True)
class FieldRelease:
    """A release and its batches.

    Attributes:
        name: as its publisher writes it.
        version: without a local version.
        tags: of every wheel but for the machine.
        batches: by machine, the local versions that tell its builds apart.
    """

    name: str
    version: str
    tags: str
    batches: Mapping[str, tuple[str, ...]]

    @property
    def folder(self) -> Path:
        """Where its METADATA and its builds are."""
        return FOLDER / self.name

    @property
    def requires(self) -> tuple[str, ...]:
        """``Requires-Dist`` of its METADATA."""
        found = Parser().parsestr((self.folder / "METADATA").read_text()).get_all("Requires-Dist")
        return tuple(found or ())

    def make(self, machine: str, folder: Path) -> Path:
        """Build the batch of *machine* below *folder* as its publisher would; return its dist."""
        plain, dist = folder / f"plain-{machine}", folder / f"dist-{machine}"
        plain.mkdir(parents=True)
        headers = Parser().parsestr((self.folder / "METADATA").read_text())
        for local in self.batches[machine]:
            wheel = Wheel(
                self.name,
                f"{self.version}+{local}",
                tag=self.tags.format(machine=machine),
                requires=self.requires,
                extras=tuple(headers.get_all("Provides-Extra") or ()),
                requires_python=headers["Requires-Python"],
                files={f"{self.name.replace('-', '_')}/kernels.so": f"{local} {machine}\n" * 200},
            )
            (plain / wheel.filename).write_bytes(wheel.build())
        builds = toml.read_toml((self.folder / "builds.toml").read_text())
        edits = [*_options("remove-dependency", builds["dependencies"]["remove"])]
        edits += _options("add-dependency", builds["dependencies"]["add"])
        edits += _options("namespace", builds["variant"]["default-priorities"]["namespace"])
        # The file has the builds of all batches; those that are not in this one are left out.
        for build in builds["wheel"]:
            (pattern,) = build["files"]
            if wheels := [path for path in plain.iterdir() if fnmatchcase(path.name, pattern)]:
                properties = _options("property", build.get("properties", []))
                options = (*properties, *edits, "--drop-local-version", "-o", dist)
                run("make", *wheels, "--label", build["label"], *options)
        return dist


def _options(name: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (f"--{name}", value)]


FLASH_ATTN = FieldRelease(
    "flash-attn",
    "2.8.3.post2",
    "cp312-cp312-manylinux_2_24_{machine}.manylinux_2_28_{machine}",
    {
        X86_64: (
            "cu12torch2.8cxx11abiTRUE",
            "cu12torch2.9cxx11abiTRUE",
            "cu13torch2.9cxx11abiTRUE",
            "rocm6.4torch2.9cxx11abiTRUE",
        ),
        AARCH64: (
            "cu12torch2.9cxx11abiTRUE",
            "cu13torch2.8cxx11abiTRUE",
            "cu13torch2.9cxx11abiTRUE",
        ),
    },
)
VLLM = FieldRelease(
    "vllm",
    "0.33.0",
    "cp38-abi3-manylinux_2_28_{machine}",
    {X86_64: ("cu130", "cu129", "rocm700", "cpu"), AARCH64: ("cu130", "cu129", "cpu")},
)


def run(*arguments: str | Path, **variables: str) -> str:
    """Run ``variants``, which has to succeed; return what it prints."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True, text=True, check=False, env=clean_environ(variables), timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def dependencies(requirements: Iterable[str]) -> list[Wheel]:
    """Return a stub wheel for each release that *requirements* name, with all extras."""
    found: dict[tuple[str, str], Wheel] = {}
    for text in requirements:
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        exact = sorted(
            (item.version for item in requirement.specifier if item.operator in ("==", ">=")),
            key=len,
        )
        version = (exact[-1] if exact else "1.0").replace(".*", ".0")
        extras = tuple(sorted(requirement.extras))
        key = name, version
        if key not in found or extras:
            found[key] = Wheel(name, version, extras=extras)
    return list(found.values())
