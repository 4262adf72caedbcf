"""A person who uses a released installer: a project, its environment, and lines to paste."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from variants_proxy._server.landing import INSTALLERS, Address

from .environments import Environment, Environments, clean_environ, uv_command
from .isolation import places, registries
from .tools import tool


@dataclass
class Person:
    """A person with a project and one installer, who pastes lines.

    Attributes:
        folder: of the project, with an environment in ``.venv``.
        programs: folder of the installer's program.
        variables: that were exported.
    """

    folder: Path
    programs: Path
    variables: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        venv = [*uv_command(), "venv", "--quiet", "--seed", "--python", sys.executable]
        subprocess.run([*venv, str(self.folder / ".venv")], check=True, env=clean_environ(seeds()))
        (self.folder / "pyproject.toml").write_text(
            '[project]\nname = "wanting"\nversion = "1"\nrequires-python = ">=3.10,<4"\n'
            "dependencies = []\n[tool.poetry]\npackage-mode = false\n"
            "[tool.pdm]\ndistribution = false\n"
        )

    @property
    def environment(self) -> Environment:
        """The environment of the project."""
        return Environment(self.folder / ".venv")

    @property
    def environ(self) -> dict[str, str]:
        """The environment variables of what is typed."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        found = Path(self.environment.python).parent
        environ = clean_environ()
        del environ["UV_NO_CONFIG"]
        return {
            **environ,
            **places(home),
            "PATH": os.pathsep.join([str(self.programs), str(found), os.environ["PATH"]]),
            "VIRTUAL_ENV": str(self.folder / ".venv"),
            "POETRY_VIRTUALENVS_IN_PROJECT": "1",
            "POETRY_KEYRING_ENABLED": "0",
            "PDM_CHECK_UPDATE": "0",
            "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
            **self.variables,
        }

    def paste(self, installer: str, address: Address) -> None:
        """Do what the page for people says."""
        for lines in INSTALLERS[installer][1](address):
            if lines.place.startswith("shell"):
                for line in lines.text.splitlines():
                    self.type(line)
            elif lines.place == "pip.conf":
                (self.folder / "pip.conf").write_text(lines.text)
            else:
                with (self.folder / lines.place).open("a") as file:
                    file.write(lines.text + "\n")

    def type(self, line: str, *, fails: bool = False) -> str:
        """Run a line of a shell; return its output."""
        program, *arguments = shlex.split(line)
        if program == "export":
            name, _, value = arguments[0].partition("=")
            self.variables[name] = value
            return ""
        if program == "pip-sync":
            arguments += ["--python-executable", self.environment.python]
        done = subprocess.run(
            [self._program(program), *arguments],
            cwd=self.folder, env=self.environ, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert bool(done.returncode) == fails, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def _program(self, name: str) -> str:
        suffix = ".exe" if os.name == "nt" else ""
        own = self.programs / f"{name}{suffix}"
        beside = Path(self.environment.python).parent / f"{name}{suffix}"
        return str(own if own.exists() else beside)


def seeds() -> Mapping[str, str]:
    """Return the variables with which uv finds pip."""
    return registries()


def programs_of(environments: Environments, name: str) -> Path:
    """Return the folder with the installer *name*; skip the test where it cannot be had."""
    try:
        return Path(tool(environments, name).python).parent
    except subprocess.CalledProcessError as error:
        pytest.skip(f"{name} cannot be had, no network? {error}")
