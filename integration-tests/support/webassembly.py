"""Pythons that are newer than those around: in WebAssembly, from npm's registry, run by Node."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from .environments import Environments, Result, clean_environ, once
from .isolation import outside

RUNNER = Path(__file__).with_suffix(".mjs")
PYTHONS = {"3.14": "314.0.7", "3.15": "315.0.0-alpha.2"}
"""Version of the npm package ``pyodide`` for each Python."""


class Unavailable(Exception):
    """Such a Python cannot be run here; the message says why."""


def node() -> str:
    """Return the path of Node.

    Raises:
        Unavailable: there is none, or it is too old.
    """
    path = shutil.which("node")
    if path is None or shutil.which("npm") is None:
        raise Unavailable("there is no Node with npm here")
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.strip().lstrip("v").partition(".")[0]) < 20:
        raise Unavailable(f"Node {version.strip()} is too old")
    return path


def downloaded_python(version: str, environments: Environments) -> Path:
    """Return the folder of that Python, downloaded once; npm checks what it downloads.

    Raises:
        Unavailable: the registry cannot be reached.
    """

    def download(folder: Path) -> None:
        folder.mkdir()
        npm = shutil.which("npm") or "npm"
        command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]
        try:
            subprocess.run(
                [*command, str(folder), f"pyodide@{PYTHONS[version]}"],
                capture_output=True,
                check=True,
                env=outside(),
                timeout=60,
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"pyodide cannot be had from npm's registry: {error}") from None

    name = f"pyodide-{PYTHONS[version]}"
    return once(environments.wheelhouse / name, download) / "node_modules" / "pyodide"


def run(python: Path, site_packages: Path, folder: Path, code: str) -> Result:
    """Run *code* with what is installed in *site_packages*; *folder* is there as well."""
    script = folder / "script.py"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run(
        [node(), str(RUNNER), *map(str, (python, site_packages, folder, script))],
        capture_output=True,
        text=True,
        env=clean_environ(),
        check=False,
        timeout=300,
    )
    return Result(done.returncode, done.stdout, done.stderr)
