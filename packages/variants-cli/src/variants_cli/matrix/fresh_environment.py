"""Fresh environments with a built wheel, for its tests and benchmarks."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pep_variants.model.filename import parse_filename
from pep_variants.model.label import NULL_LABEL, split_label

from .build_process import CommandRunner
from .frontends import find_uv
from .plain_wheels import write_plain

_HIDDEN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX", "PIP_USER")


@dataclass(frozen=True)
class Environment:
    """A virtual environment.

    Attributes:
        folder: where it is.
        label: of the variant that is installed in it.
    """

    folder: Path
    label: str

    @property
    def programs(self) -> Path:
        """The folder with its Python."""
        return self.folder / ("Scripts" if sys.platform == "win32" else "bin")

    def variables(self) -> dict[str, str]:
        """Return the environment variables of a command that runs in it."""
        kept = {name: text for name, text in os.environ.items() if name not in _HIDDEN}
        path = os.pathsep.join([str(self.programs), kept.get("PATH", os.defpath)])
        return {**kept, "PATH": path, "VIRTUAL_ENV": str(self.folder), "VARIANT": self.label}

    def command(self, words: Sequence[str]) -> list[str]:
        """Return *words* with the program as it is found in the environment."""
        program = shutil.which(words[0], path=self.variables()["PATH"])
        return [program or words[0], *words[1:]]


def make_environment(
    folder: Path,
    wheel: Path,
    requires: Sequence[str],
    python: str,
    runner: CommandRunner,
    log: Path,
    what: str,
    constraints: Path | None = None,
) -> Environment:
    """Make an environment, and install *wheel* with its dependencies and *requires*.

    The wheel is installed as a plain one, as installers without variants can do: of its
    dependencies those of the variant.

    Args:
        folder: where to make it; what is there is replaced.
        wheel: a variant wheel.
        requires: requirements of the command that will run in it.
        python: the interpreter.
        runner: runs the commands.
        log: file for their output.
        what: what it is for, for messages.
        constraints: file with constraints, such as the wheels that it was built against.

    Raises:
        BuildError: something cannot be installed.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    label = parse_filename(wheel.name).label or NULL_LABEL
    environment = Environment(folder / "environment", label)
    plain = folder / split_label(wheel.name)[0]
    with plain.open("wb") as stream:
        write_plain(wheel, stream)
    uv = find_uv()
    target = str(environment.folder)
    program = str(environment.programs / ("python.exe" if sys.platform == "win32" else "python"))
    if uv is not None:
        lines = [[uv, "venv", "--quiet", "--python", python, target]]
        install = [uv, "pip", "install", "--quiet", "--python", program]
    else:
        lines = [[python, "-m", "venv", target]]
        install = [program, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    options = ["--constraint", str(constraints)] if constraints is not None else []
    lines.append([*install, *options, str(plain), *requires])
    hidden: Mapping[str, str] = {k: v for k, v in os.environ.items() if k not in _HIDDEN}
    for line in lines:
        runner.run(line, log, hidden, what, "install uv or pip")
    return environment
