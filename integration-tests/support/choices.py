"""What clients choose, which is not installed: version and URL by normalized name."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from packaging.utils import canonicalize_name

from pep_variants._formats import toml

from .environments import Environment
from .uvs import Machine

LINUX_ONLY = "environments = [\"sys_platform == 'linux' and platform_machine == 'x86_64'\"]\n"


class Chosen(NamedTuple):
    """What a client chose.

    Attributes:
        packages: version and URL by normalized name.
        text: output of the client.
    """

    packages: Mapping[str, tuple[str, str]]
    text: str

    @property
    def versions(self) -> dict[str, str]:
        """Versions by normalized name."""
        return {name: version for name, (version, _) in self.packages.items()}


def by_resolve(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """Return what ``variants resolve`` prints of each target."""
    variants = Path(sys.executable).with_name("variants")
    command = [variants, "resolve", "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done
    found: list[dict[str, Any]] = json.loads(done.stdout)["resolutions"]
    return found


def by_pip(environment: Environment, folder: Path, *arguments: str) -> Chosen:
    """Return what pip reports."""
    report = folder / "report.json"
    done = environment.pip("install", "--dry-run", f"--report={report}", *arguments)
    assert done.code == 0, done
    items = json.loads(report.read_text("utf-8"))["install"]
    return Chosen(
        {
            canonicalize_name(item["metadata"]["name"]): (
                item["metadata"]["version"],
                item["download_info"]["url"],
            )
            for item in items
        },
        done.text,
    )


def by_uv_lock(machine: Machine, index: str, names: Iterable[str], *options: str) -> Chosen:
    """Return what ``uv-variants lock`` locks for Linux."""
    (machine.work / "pyproject.toml").write_text(
        '[project]\nname = "app"\nversion = "1"\nrequires-python = ">=3.10"\n'
        f"dependencies = {json.dumps([*names])}\n[tool.uv]\n{LINUX_ONLY}"
        f'[[tool.uv.index]]\nurl = "{index}"\ndefault = true\n'
    )
    done = machine.with_environ({"UV_PYTHON": sys.executable}).run(*options, "lock")
    assert done.code == 0, done
    packages = toml.read_toml((machine.work / "uv.lock").read_text("utf-8"))["package"]
    return Chosen(
        {
            item["name"]: (item["version"], item["wheels"][0]["url"])
            for item in packages
            if "wheels" in item
        },
        done.err,
    )
