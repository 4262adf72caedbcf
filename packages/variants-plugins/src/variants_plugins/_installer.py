"""Installing provider plugins into a virtual environment, from wheels only."""

from __future__ import annotations

import contextlib
import logging
import os
import pkgutil
import shutil
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name

from pep_variants import machines, wheel_files
from pep_variants import preferences as user_preferences
from pep_variants.errors import ProviderError
from pep_variants.preferences import Sources

from ._answer import one_line
from ._variables import installer_variables

if TYPE_CHECKING:
    from pep_variants.machines import Wanted

logger = logging.getLogger(__name__)

INSTALL_TIME_LIMIT = 600.0
"""Seconds for one command of an installer."""


class Installer:
    """Installs wheels into one virtual environment, with uv or else with `venv` and pip."""

    def __init__(
        self, target: Path, work: Path, sources: Sources, environ: Mapping[str, str]
    ) -> None:
        """Set up; nothing is installed yet.

        Args:
            target: directory of the environment.
            work: directory of temporary files.
            sources: where packages come from.
            environ: environment variables of the caller.

        Raises:
            ProviderError: pip cannot use *sources* and there is no uv.
        """
        self._target = target
        self._work = work
        self._sources = sources
        self._environ = installer_variables(environ)
        self._uv = _find_uv(environ)
        if (
            not self._uv
            and len(sources.indexes) > 1
            and sources.index_strategy == user_preferences.FIRST_INDEX
        ):
            raise ProviderError(
                f"the index strategy {user_preferences.FIRST_INDEX!r} with several indexes needs "
                "uv: install uv, or configure one index"
            )

    def create(self) -> None:
        """Make the environment, empty, in place of the one that is there."""
        remove_tree(self._target)
        if not sys.executable:
            raise ProviderError(
                "sys.executable of the running Python is not set, so it cannot make an environment"
            )
        target = str(self._target)
        if self._uv:
            command = [self._uv, "venv", "--quiet", "--no-project", "--no-python-downloads"]
            self._run("uv", [*command, "--python", sys.executable, target], "make an environment")
            return
        own_pip = _find_pip()
        options = ["--without-pip"] if own_pip else []
        command = [sys.executable, "-I", "-m", "venv", *options, target]
        self._run("venv", command, "make an environment")

    def install(self, wanted: Iterable[Wanted], *, hash_mode: bool) -> None:
        """Install *wanted*, with what it depends on unless in *hash_mode*."""
        wanted = list(wanted)
        lines = "\n".join(each.line for each in wanted) + "\n"
        requirements = self._work / "requirements.txt"
        # Only the user may read it: a URL may carry credentials.
        requirements.touch(mode=0o600)
        requirements.write_text(lines, "utf-8")
        options = ["--quiet", "--only-binary", ":all:", "-r", str(requirements)]
        if not self._uv:
            options.append("--no-compile")
        if hash_mode:
            options += ["--require-hashes", "--no-deps"]
        if self._sources.no_index or (not self._uv and self._environ.get("UV_OFFLINE") == "1"):
            options.append("--no-index")
        python = str(python_of(self._target))
        command: list[str]
        if self._uv:
            # Copies: writing to a link would change the file in uv's cache, too.
            command = [self._uv, "pip", "install", "--python", python, "--link-mode", "copy"]
            # uv does not look whether a local wheel is still the one that it knows.
            for each in wanted:
                if any(
                    user_preferences.local_files(url, {each.name})
                    for url in (*self._sources.links, each.url)
                ):
                    command += ["--refresh-package", each.name]
        else:
            command = [python, "-I", str(self._wheels_only()), _find_pip() or "-", "install"]
        names = ", ".join(map(str, wanted))
        logger.info("installing the provider plugin %s into a separate environment", names)
        self._run("uv" if self._uv else "pip", [*command, *options], f"install {names}")

    def _wheels_only(self) -> Path:
        """Return the path of the script `wheels_only`."""
        path = self._work / "_wheels_only.py"
        path.write_bytes(pkgutil.get_data(__package__, path.name) or b"")  # also of a zip file
        return path

    def compile(self) -> None:
        """Write bytecode, as the environment is not changed later; what has errors has none.

        The installers' own ways would start the environment's Python with its `.pth` files.
        """
        python = str(python_of(self._target))
        machines.run(
            [python, "-I", "-S", "-m", "compileall", "-qq", "-j", "0", *self._folders()],
            environ=self._environ,
            cwd=self._work,
            time_limit=INSTALL_TIME_LIMIT,
        )

    def installed(self) -> dict[str, str]:
        """Return the version of every installed project by normalized name."""
        return {
            str(canonicalize_name(dist.metadata["Name"])): dist.version
            for dist in self.distributions()
        }

    def distributions(self) -> list[Any]:
        """Return the metadata of everything that is installed."""
        found = distributions(path=self._folders())
        return [each for each in found if wheel_files.metadata_field(each, "Name")]

    def _folders(self) -> list[str]:
        """Return where modules are installed."""
        schemes = sysconfig.get_scheme_names()
        scheme = next(each for each in ("venv", os.name, "posix_prefix") if each in schemes)
        base = str(self._target)
        variables = {"base": base, "platbase": base, "installed_base": base}
        folders = {sysconfig.get_path(name, scheme, variables) for name in ("purelib", "platlib")}
        return sorted(folders)

    def _run(self, tool: str, command: list[str], purpose: str) -> None:
        sources = self._sources
        if self._uv:
            settings = sources.for_uv()
        else:
            settings = {
                **sources.for_pip(),
                "PIP_DISABLE_PIP_VERSION_CHECK": "1",
                "PIP_NO_INPUT": "1",
                "PIP_NO_COLOR": "1",
            }
        outcome = machines.run(
            command,
            environ={**self._environ, **settings},
            cwd=self._work,
            time_limit=INSTALL_TIME_LIMIT,
        )
        text = sources.redact(outcome.errors or outcome.output.decode("utf-8", "replace"))
        if outcome.status == 0:
            return
        logger.debug("%s says:\n%s", tool, text)
        reason = outcome.exceeded or one_line(text, 400) or f"it ended with status {outcome.status}"
        raise ProviderError(f"{tool} cannot {purpose}: {reason}")


def _find_uv(environ: Mapping[str, str]) -> str | None:
    """Return the path of uv: VARIANTS_UV, else beside the running Python, else on PATH."""
    named = environ.get("VARIANTS_UV")
    if named and (program := shutil.which(named, path=environ.get("PATH"))):
        return str(Path(program).absolute())
    own = sysconfig.get_path("scripts")
    for folders in (own, environ.get("PATH", "")):
        found = shutil.which("uv", path=folders) if folders else None
        if found and Path(found).is_absolute():
            return found
    return None


def _find_pip() -> str | None:
    """Return the script that runs the running Python's pip in another one.

    None without pip, and for one older than 22.3, which has no such script.
    """
    spec = find_spec("pip")
    script = Path(spec.origin).with_name("__pip-runner__.py") if spec and spec.origin else None
    return str(script) if script and script.is_file() else None


def python_of(environment: Path) -> Path:
    """Return the path of the interpreter of a virtual environment."""
    windows = environment / "Scripts" / "python.exe"
    return windows if sys.platform == "win32" else environment / "bin" / "python"


def remove_tree(root: Path) -> None:
    """Remove the directory *root* with all that is in it; what cannot be removed stays.

    Links are neither followed nor is the mode of what they lead to changed, as `tempfile` did up to
    Python 3.12.1. Any depth is removed: `shutil.rmtree` recurses and paths are limited, so each
    directory is moved up to *root* before it is emptied.
    """
    if sys.platform == "win32":
        shutil.rmtree(root, ignore_errors=True)  # knows junctions
        return
    pending = [root]
    while pending:
        folder = pending.pop()
        try:
            # It may have been made without any rights.
            folder.chmod(0o700)
            with os.scandir(folder) as entries:
                found = [
                    (Path(entry.path), entry.is_dir(follow_symlinks=False)) for entry in entries
                ]
        except OSError:
            continue
        for path, is_folder in found:
            with contextlib.suppress(OSError):
                if not is_folder:
                    path.unlink()
                    continue
                path.chmod(0o700)  # moving it changes the directory itself
                moved = root / os.urandom(16).hex()
                path.rename(moved)
                pending.append(moved)
        if folder != root:
            with contextlib.suppress(OSError):
                folder.rmdir()
    with contextlib.suppress(OSError):
        root.rmdir()
