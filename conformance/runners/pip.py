"""pip with the shim."""

from __future__ import annotations

from support.environments import PIPS, Environment, Environments

from ..case import Case
from ..outcome import Outcome
from ..place import Place
from ..program import PythonProgram
from .arguments import index_options, pip_target, variant_options
from .installer import Installer

ALONE = ("--no-input", "--no-cache-dir", "--disable-pip-version-check")
"""Options that keep pip from all but the indexes that it is given."""


_REMEMBERED = (
    "pip._internal.network.session:user_agent",
    "pip._internal.cli.index_command:_create_truststore_ssl_context",
)
"""Functions of pip that return the same in each run, and start programs or read many files."""


def pip_program(environment: Environment) -> PythonProgram:
    """Return the pip of *environment*."""
    return PythonProgram(environment.python, "pip._internal.cli.main:main", *_REMEMBERED)


class Pip(Installer):
    """``pip install --target`` of a pip with the shim."""

    command = "pip"

    def __init__(self, environments: Environments, name: str, version: str, python: str) -> None:
        """Use pip *version* on *python*."""
        self.name = name
        self.title = f"pip {version} with the shim"
        super().__init__(pip_program(environments.patched(python, version)))

    def play(self, case: Case, place: Place) -> Outcome:
        """Install."""
        served = place.served
        arguments = ["install", *ALONE, "--no-compile", "--target", str(place.target)]
        arguments += index_options(served)
        arguments += [*variant_options(case, place), *pip_target(case), *place.install]
        return self.run(place, arguments)


def oldest(environments: Environments) -> Pip:
    """Return the oldest supported pip."""
    return Pip(environments, "pip-oldest", PIPS[0], "3.10")


def newest(environments: Environments) -> Pip:
    """Return the newest supported pip."""
    return Pip(environments, "pip-newest", PIPS[-1], "3.13")
