"""The environment that is looked at: the one in which pip or uv would install here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pep_variants import preferences as user_preferences

from .._errors import TargetError

_PROBE = """\
import json, os, site, sys, sysconfig
system = sys.prefix == sys.base_prefix
paths = [sysconfig.get_path(name) for name in ("purelib", "platlib")] + site.getsitepackages()
if system:
    paths.insert(0, site.getusersitepackages())
marked = os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
print(json.dumps([
    sys.version.split()[0], sys.prefix, system and os.path.exists(marked),
    *(path for path in paths if os.path.isdir(path)),
]))
"""


class Environment(NamedTuple):
    """A Python environment.

    Attributes:
        python: its interpreter.
        version: of Python.
        root: its folder.
        paths: its package folders.
        found_by: variable, option or place that names it.
        is_managed: a package manager of the system owns it (PEP 668).
    """

    python: Path
    version: str
    root: Path
    paths: tuple[str, ...]
    found_by: str
    is_managed: bool = False

    @property
    def in_project(self) -> bool:
        """Whether it was found in a folder, where it may have come with a checkout."""
        return self.found_by == user_preferences.FOUND


def find_environment(given: Path | None, environ: Mapping[str, str], cwd: Path) -> Environment:
    """Return the environment that is meant.

    Args:
        given: an interpreter or an environment; None for the active one, the one that this command
            is installed in if that is not a tool's, or the first Python on ``PATH``.
        environ: environment variables.
        cwd: working directory.

    Raises:
        TargetError: it has no working Python.
    """
    found = (
        (given, "--python")
        if given is not None
        else user_preferences.active_environment(environ, cwd)
    )
    if found is None and not user_preferences.is_of_tool(sys.prefix):
        found = Path(sys.executable), "the Python that runs this"
    if found is None:
        path = environ.get("PATH", os.defpath)
        names = (shutil.which(name, path=path) for name in ("python", "python3"))
        first = next(filter(None, names), None)
        if first is None:
            raise TargetError("there is no Python on PATH: name an environment with --python")
        found = Path(first), "the first on PATH"
    python, found_by = found
    if python.is_dir():
        inside = [python / "bin" / "python", python / "Scripts" / "python.exe"]
        inside.append(python / "python.exe")  # conda
        python = next((path for path in inside if path.exists()), python)
    try:
        done = subprocess.run(
            [str(python), "-I", "-c", _PROBE],
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        version, root, is_managed, *paths = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        reason = getattr(error, "stderr", None) or str(error)
        raise TargetError(f"{python} is not a working Python: {reason} ({found_by})") from None
    return Environment(
        python, version, Path(root), tuple(dict.fromkeys(paths)), found_by, is_managed
    )
