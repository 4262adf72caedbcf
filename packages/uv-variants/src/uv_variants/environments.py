"""The environments that a command of uv installs into, found as uv finds them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .uv_directories import tool_directory

if TYPE_CHECKING:
    from .invocation import Invocation
    from .place import Place

_PROJECT = (("sync",), ("run",), ("add",), ("remove",))
_PIP = (("pip", "install"), ("pip", "sync"))
_SECONDS = 30.0


class Search(NamedTuple):
    """What decides where a command installs.

    Attributes:
        uv: path of uv, which is asked for interpreters.
        invocation: uv's command line.
        place: where it runs.
        settings: of uv's files, `Configuration.scalars`.
        cache: uv's cache directory, which has the environments of scripts.
    """

    uv: str
    invocation: Invocation
    place: Place
    settings: Mapping[str, Any]
    cache: Path

    def environments(self) -> tuple[Path, ...]:
        """Return where the command installs: environments, or directories with distributions.

        Empty if it installs nothing that lasts, or if only uv can find out. Environments that the
        command is going to make do not exist yet.
        """
        command = self.invocation.command
        without = ("UV_NO_SYNC", "UV_ISOLATED")
        if self.invocation.has("no-sync", "isolated") or any(map(self.place.is_on, without)):
            return ()
        if command[:1] == ("tool",):
            return self._of_tool()
        found = None
        if command in _PIP:
            found = self._of_pip()
        elif command in _PROJECT and self.place.script is not None:
            # uv keeps an environment for a script; releases before 0.6 keep none.
            script = ["--script", str(self.place.script), *self._common()]
            found = self._of_interpreter(script)
        elif command in _PROJECT:
            found = self._of_project()
        return () if found is None else (found,)

    def _of_pip(self) -> Path | None:
        invocation, environ = self.invocation, self.place.environ
        for option in ("target", "prefix"):
            value = invocation.last(option) or self.settings.get(option)
            if isinstance(value, str):
                return self.place.cwd / value
        python = (
            invocation.last("python") or environ.get("UV_PYTHON") or self.settings.get("python")
        )
        python = python if isinstance(python, str) else None
        system = not invocation.has("no-system") and (
            invocation.has("system")
            or self.place.is_on("UV_SYSTEM_PYTHON")
            or self.settings.get("system") is True
        )
        if python or system:
            # uv pip does not look at the project, whose files may ask for another version.
            flags = ["--no-project", "--no-config", *(["--system"] if system else [])]
            return self._of_interpreter([*flags, *([python] if python else [])])
        for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
            if environ.get(name):
                return Path(environ[name])
        start = self.place.cwd.absolute()
        for folder in (start, *start.parents):
            if (folder / ".venv" / "pyvenv.cfg").is_file():
                return folder / ".venv"
        return None

    def _of_project(self) -> Path | None:
        root = self.place.root
        if root is None:
            return None
        active = self.place.environ.get("VIRTUAL_ENV")
        if self.invocation.has("active") and active:
            return Path(active)
        return root / (self.place.environ.get("UV_PROJECT_ENVIRONMENT") or ".venv")

    def _of_tool(self) -> tuple[Path, ...]:
        """Return the environments of tools that exist, or are installed by this command."""
        folder, invocation = tool_directory(self.place.environ), self.invocation
        if invocation.command == ("tool", "upgrade"):
            if invocation.has("all"):
                return tuple(path.parent for path in sorted(folder.glob("*/uv-receipt.toml")))
            return tuple(folder / _tool_name(text) for text in invocation.operands)
        named = invocation.last("from") or next(iter(invocation.operands), None)
        name = _tool_name(named) if named else ""
        return (folder / name,) if name else ()

    def _of_interpreter(self, arguments: list[str]) -> Path | None:
        named = Path(arguments[-1])
        if named.is_absolute() and named.is_file() and arguments[0] != "--script":
            root = named.parent.parent
            if (root / "pyvenv.cfg").is_file():
                return root  # an interpreter of an environment: uv would say the same, in 20 ms
        found = self._output([self.uv, "python", "find", *arguments])
        if not found:
            return None
        interpreter = Path(found)
        root = interpreter.parent.parent
        if (root / "pyvenv.cfg").is_file():
            return root
        if arguments[:1] == ["--script"]:
            return None  # not made yet: this is the interpreter that it will be made with
        code = "import sysconfig; print(sysconfig.get_path('purelib'))"
        packages = self._output([found, "-I", "-c", code])
        return Path(packages) if packages else None

    def _common(self) -> list[str]:
        """Return the options that decide which interpreters uv finds."""
        invocation = self.invocation
        flags = ("no-config", "managed-python", "no-managed-python", "offline")
        found = [f"--{name}" for name in flags if invocation.has(name)]
        for name in ("config-file", "python-preference", "project"):
            for value in invocation.values(name)[-1:]:
                found.append(f"--{name}={value}")
        return found

    def _output(self, command: list[str]) -> str:
        environ = {
            **self.place.environ,
            "UV_CACHE_DIR": str(self.cache),
            "UV_PYTHON_DOWNLOADS": "never",
        }
        if self.invocation.has("no-cache", "no-cache-dir", "n"):
            environ["UV_NO_CACHE"] = "1"  # the home directory may be read-only
        try:
            done = subprocess.run(
                command,
                cwd=self.place.cwd,
                env=environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            return ""
        return os.fsdecode(done.stdout).strip() if done.returncode == 0 else ""


def python_version(environment: Path) -> str:
    """Return the version of the Python of *environment*, empty if it does not say."""
    try:
        lines = (environment / "pyvenv.cfg").read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    values = {
        name.strip(): value.strip() for name, _, value in (line.partition("=") for line in lines)
    }
    # uv and the standard library use different names.
    return values.get("version_info") or values.get("version", "")


def _tool_name(text: str) -> str:
    """Return the name in a requirement or ``name@version`` of a tool, empty for URLs and paths."""
    from packaging.utils import canonicalize_name

    from .named_projects import name_of

    name = name_of(text)
    return (
        canonicalize_name(name) if name is not None and "/" not in text.partition(" @")[0] else ""
    )
