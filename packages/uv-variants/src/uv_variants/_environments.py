"""Where uv keeps things: its caches, its tools, and the environments that a command installs into.

Environments are found as uv finds them, and what is installed there is read from its metadata.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from pep_variants import preferences as user_preferences
from pep_variants import wheel_files
from pep_variants.wheel_files import Installed

from ._named_projects import name_of, normalized

if TYPE_CHECKING:
    from ._command_line import Invocation
    from ._named_projects import CommandPlace


SHARED = "shared"
"""Cache that all commands use."""


def cache_directory(
    environ: Mapping[str, str], option: str | None, configured: object, cwd: Path
) -> Path:
    """Return uv's cache: from ``--cache-dir``, ``UV_CACHE_DIR``, a file, or its default."""
    given = option or environ.get("UV_CACHE_DIR")
    if given:
        return cwd / given
    if isinstance(configured, str):
        return cwd / os.path.expanduser(configured)  # noqa: PTH111
    if sys.platform == "win32":
        return Path(environ.get("LOCALAPPDATA", Path.home()), "uv", "cache")
    base = environ.get("XDG_CACHE_HOME")
    home = environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111
    return Path(base, "uv") if base else Path(home, ".cache", "uv")


def tool_directory(environ: Mapping[str, str]) -> Path:
    """Return the directory of uv's tools."""
    named = environ.get("UV_TOOL_DIR")
    if named:
        return Path(named)
    if sys.platform == "win32":
        return Path(environ.get("APPDATA", Path.home()), "uv", "tools")
    base = environ.get("XDG_DATA_HOME")
    home = environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111
    return Path(base, "uv", "tools") if base else Path(home, ".local", "share", "uv", "tools")


def variants_caches(plain: Path) -> Path:
    """Return the folder of the caches that uv has for commands of uv-variants, see `SHARED`.

    uv keys pages and wheels by their URLs. The pages that it gets here are others at the same
    URLs, so they must not meet in one cache with those of plain uv, at *plain*. The folder is
    beside that: ``uv cache prune`` removes all folders inside that it does not know. Only if
    *plain* is a volume of its own, as in a container build, or nothing can be written beside it,
    there is no other place.
    """
    beside = plain.with_name(f"{plain.name}-variants")
    if beside.is_dir():
        return beside
    parent = plain.parent
    while not parent.exists() and parent != parent.parent:
        parent = parent.parent
    if os.access(parent, os.W_OK | os.X_OK) and not plain.is_mount():
        return beside
    return plain / "variants"


_PROJECT = (("sync",), ("run",), ("add",), ("remove",))
_PIP = (("pip", "install"), ("pip", "sync"), ("pip", "check"))
_SECONDS = 30.0


class Search(NamedTuple):
    """Search for the environments in which a command installs.

    Attributes:
        uv: path of uv, which is asked for interpreters.
        invocation: uv's command line.
        place: where it runs.
        settings: of uv's files, `Configuration.scalars`.
        cache: uv's cache directory, which has the environments of scripts.
    """

    uv: str
    invocation: Invocation
    place: CommandPlace
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
        found = user_preferences.active_environment(environ, self.place.cwd)
        return None if found is None else found[0]

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
    name = name_of(text)
    return (
        canonicalize_name(name) if name is not None and "/" not in text.partition(" @")[0] else ""
    )


def installed(environments: Iterable[Path]) -> dict[str, Installed]:
    """Return all distributions in *environments*, by project (normalized name)."""
    folders = (str(folder) for each in environments for folder in site_packages(each))
    return {each.project: each for each in wheel_files.find_installed(folders)}


def installed_variants(environments: Iterable[Path]) -> dict[str, Installed]:
    """Return the variants in *environments*, by project (normalized name)."""
    return {name: each for name, each in installed(environments).items() if each.label is not None}


def installed_versions(environments: Iterable[Path]) -> set[tuple[str, str]]:
    """Return normalized name and version of all distributions in *environments*."""
    return {(name, str(each.version)) for name, each in installed(environments).items()}


def installed_requirements(environments: Iterable[Path], name: str) -> Iterator[str]:
    """Yield what distributions in *environments* require of the project *name* (normalized).

    What they require for their extras is left out.
    """
    for each in installed(environments).values():
        for text in each.requires:
            if normalized(name_of(text) or "") == name:
                with suppress(InvalidRequirement):  # variant markers are of the wheel itself
                    marker = Requirement(text).marker
                    if marker is None or marker.evaluate({"extra": ""}):
                        yield text


def listed(items: Iterable[tuple[str, str, str | None]]) -> Iterator[Installed]:
    """Yield what is not installed, but locked or planned: project, version and label of each."""
    for project, text, label in items:
        version = wheel_files.read_version(text)
        if version is not None:
            yield Installed(project, version, label)


def installed_without_variant(environments: Iterable[Path], name: str) -> Installed | None:
    """Return the non-variant distribution of a project in *environments*, None without one."""
    found = installed(environments).get(normalized(name))
    return found if found is not None and found.label is None and not found.problem else None


def site_packages(environment: Path) -> Iterator[Path]:
    """Yield the directories with the distributions of *environment*."""
    if (environment / "pyvenv.cfg").is_file() or (environment / "conda-meta").is_dir():
        if os.name == "nt":
            yield environment / "Lib" / "site-packages"
        else:
            yield from environment.glob("lib/python*/site-packages")
        return
    yield environment  # --target
    yield from environment.glob("lib/python*/site-packages")  # --prefix
    if sys.platform == "win32":
        yield environment / "Lib" / "site-packages"
