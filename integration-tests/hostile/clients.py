"""Installers that the corpus is run against: classes that have a `name` and `install`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Protocol

from .cases import Command
from .measure import Place, Run, run


class Client(Protocol):
    """An installer.

    Attributes:
        name: as in ``clients`` and ``exceptions`` of a case.
    """

    name: str

    def install(self, command: Command, place: Place, seconds: float) -> Run:
        """Run *command* at *place*: install into ``place.target``, or download wheels to it."""


class Pip:
    """``python -m pip install --target``: stock, with the shim, or patched."""

    def __init__(self, python: str, name: str = "pip") -> None:
        """Use the pip of the interpreter *python*; ``plain-pip`` knows no variant options."""
        self.name = name
        self._python = python

    def install(self, command: Command, place: Place, seconds: float) -> Run:
        """Install with pip."""
        arguments = [self._python, "-m", "pip", "install", "--no-cache-dir", "--no-compile"]
        arguments += ["--target", str(place.target), "--timeout", "3", "--retries", "0"]
        arguments += ["--disable-pip-version-check", "--no-input", "--index-url", command.index]
        arguments += _each("--extra-index-url", command.extra_indexes)
        arguments += _each("--trusted-host", command.trusted_hosts)
        if self.name != "plain-pip":
            arguments += _options(command)
        arguments += [*command.arguments.get("pip", []), *command.install]
        variables = {"PIP_CONFIG_FILE": "/dev/null", **command.variables}
        return run(arguments, place, variables, seconds)


class Resolve:
    """``variants resolve --download``: resolves and downloads, builds and installs nothing."""

    name = "resolve"

    def __init__(self, program: str) -> None:
        """Use *program* as ``variants``."""
        self._program = program

    def install(self, command: Command, place: Place, seconds: float) -> Run:
        """Resolve and download."""
        arguments = [self._program, "resolve", "--no-cache"]
        # The indexes of most rank first; the one of least rank is the "main" one here, as in uv.
        *first, last = [command.index, *command.extra_indexes]
        arguments += [*_each("--extra-index-url", first), "--index-url", last]
        arguments += [*_options(command), *command.arguments.get("resolve", [])]
        arguments += ["--download", str(place.target), *command.install]
        return run(arguments, place, {"PIP_TIMEOUT": "3", **command.variables}, seconds)


class Uv:
    """``uv pip install`` into an environment of its own: stock, or through ``uv-variants``."""

    def __init__(self, uv: str, variants: str | None = None) -> None:
        """Use the program *uv*, started by the program *variants* (``uv-variants``) if given."""
        self.name = "uv-variants" if variants else "uv"
        self._uv = uv
        self._program = variants or uv

    def install(self, command: Command, place: Place, seconds: float) -> Run:
        """Install with uv."""
        variables = {
            "UV_CACHE_DIR": str(place.root / "uv-cache"),
            "UV_HTTP_TIMEOUT": "20",
            "UV_HTTP_RETRIES": "0",
            "UV_PYTHON_DOWNLOADS": "never",
            "VARIANTS_UV": self._uv,
            "XDG_CONFIG_HOME": str(place.home / ".config"),
        }
        create = [self._uv, "venv", "--quiet", "--no-config", "--clear", "--python"]
        create += [sys.executable, str(place.target)]
        subprocess.run(create, check=True, env=place.variables(variables), cwd=place.root)
        arguments = [self._program, *(_options(command) if self.name == "uv-variants" else [])]
        arguments += ["pip", "install", "--python", str(place.target / "bin" / "python")]
        # The default index is the one of least rank.
        *first, last = [command.index, *command.extra_indexes]
        arguments += [*_each("--index", first), "--default-index", last]
        arguments += [*command.arguments.get("uv", []), *command.install]
        return run(arguments, place, {**variables, **command.variables}, seconds)


def found(target: Path) -> dict[str, str]:
    """Return the projects installed below *target*, or whose wheels are in it.

    Returns:
        ``VERSION`` for a non-variant wheel, ``VERSION-LABEL`` for a variant, by project.
    """
    projects = {}
    for info in sorted(target.rglob("*.dist-info")):
        name, _, version = info.name.removesuffix(".dist-info").partition("-")
        label = ""
        if (info / "variant.json").exists():
            try:
                (label,) = json.loads((info / "variant.json").read_bytes())["variants"]
            except (KeyError, TypeError, ValueError):
                label = "?"
        projects[name] = f"{version}-{label}" if label else version
    for wheel in sorted(target.glob("*.whl")):
        parts = wheel.stem.split("-")
        labelled = len(parts) == 7 or (len(parts) == 6 and not parts[2][:1].isdigit())
        projects[parts[0]] = f"{parts[1]}-{parts[-1]}" if labelled else parts[1]
    for sdist in sorted(target.glob("*.tar.gz")):
        name, _, version = sdist.name.removesuffix(".tar.gz").rpartition("-")
        projects[name] = f"{version} (source)"
    return projects


def _each(option: str, values: list[str]) -> list[str]:
    return [part for value in values for part in (option, value)]


def _options(command: Command) -> list[str]:
    """Return the variant options of *command*."""
    return [
        part
        for name, values in command.options.items()
        for value in values or [""]
        for part in ([f"--{name}", value] if value else [f"--{name}"])
    ]
