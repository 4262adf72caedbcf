"""Fresh environments of every Python and pip around, with distributions from built wheels.

Environments are made once per Python and pip and copied from there: nothing in a test depends on
what the machine's own pip is configured to do.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .isolation import outside

ROOT = Path(__file__).resolve().parents[2]
DISTRIBUTIONS = (
    "packages/pep-variants",
    "packages/variants-plugins",
    "packages/variants-index",
    "packages/variants-catalog",
    "packages/variants-proxy",
    "packages/variants-cli",
    "packages/uv-variants",
    "resolver-ext",
    "pip-patch",
)
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
PIPS = (
    "24.0",
    "24.3.1",
    "25.0.1",
    "25.1.1",
    "25.3",
    "26.0.1",
    "26.1.2",
    "26.2.1",
    "26.3",
)
BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}
"""For the Python of an environment, whose files are all below the temporary folder."""


@functools.cache
def find_python(version: str) -> str | None:
    """Return an interpreter of ``major.minor`` *version* that works here, None without one."""
    names = [f"python{version}"]
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        names.insert(0, sys.executable)
    candidates = [path for name in names if (path := shutil.which(name))]
    # pyenv's command on PATH only works for the versions that are switched on.
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    candidates += [str(path) for path in sorted(pyenv.glob(f"{version}.*/bin/python"))]
    for candidate in candidates:
        probe = subprocess.run(
            [candidate, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        )
        if probe.returncode == 0 and probe.stdout.strip() == version:
            return candidate
    return None


def once(path: Path, make: Callable[[Path], object]) -> Path:
    """Have *make* fill *path*, unless it was made already; return it.

    Safe in processes that run at the same time: one makes it, the others wait. *make* gets the
    path of something new, which appears at *path* when it is complete.
    """
    from filelock import FileLock  # unit tests of distributions import this module without it

    if not path.exists():
        unfinished = path.with_name(f"{path.name}.new") / path.name  # wheels are told by their name
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(unfinished.parent / "lock"):
            if not path.exists():
                _remove(unfinished)  # of a run that was ended
                make(unfinished)
                unfinished.rename(path)
    return path


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    path.unlink(missing_ok=True)


def built_wheel(distribution: str, folder: Path) -> Path:
    """Build the wheel of *distribution*, a folder of `DISTRIBUTIONS`, into *folder*; return it."""
    subprocess.run(
        [*uv_command(), "build", "--quiet", "--wheel", "--out-dir", str(folder),
         str(ROOT / distribution)],
        check=True, env=outside(),
    )  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    return wheel


def uv_command() -> list[str]:
    """Return the command line that starts the uv of this environment."""
    beside = Path(sys.executable).with_name("uv")
    return [str(beside)] if beside.exists() else [sys.executable, "-m", "uv"]


def clean_environ(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment without pip's, uv's and our own settings.

    Python writes no bytecode, see `support.isolation.isolated`.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PIP_", "UV_", "VARIANTS_", "NV_VARIANT_", "VIRTUAL_ENV", "PYTHON"))
    }
    return {
        **kept,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "UV_NO_CONFIG": "1",
        **(extra or {}),
    }


@dataclass(frozen=True)
class Result:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Both outputs."""
        return self.out + self.err

    def __str__(self) -> str:
        return f"exit code {self.code}\n--- stdout\n{self.out}--- stderr\n{self.err}"


@dataclass(frozen=True)
class Environment:
    """A virtual environment with a pip of its own.

    Attributes:
        path: of it.
        module: that is run as pip.
    """

    path: Path
    module: str = "pip"

    @property
    def python(self) -> str:
        """Path of the interpreter."""
        folder = "Scripts" if os.name == "nt" else "bin"
        return str(self.path / folder / "python")

    @property
    def site_packages(self) -> Path:
        """Where distributions are installed."""
        if os.name == "nt":
            return self.path / "Lib" / "site-packages"
        (folder,) = (self.path / "lib").glob("python*/site-packages")
        return folder

    def run(
        self,
        *args: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout: int = 300,
    ) -> Result:
        """Run this environment's python with *args*; bytecode is kept, in the environment."""
        done = subprocess.run(
            [self.python, *args],
            capture_output=True,
            text=True,
            env=clean_environ({"PIP_NO_CACHE_DIR": "1", **BYTECODE, **(env or {})}),
            timeout=timeout,
            cwd=cwd or self.path,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def pip(
        self, *args: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> Result:
        """Run this environment's pip with *args*."""
        return self.run("-m", self.module, *args, env=env, cwd=cwd)

    def install(self, *args: str) -> None:
        """Install with this environment's own pip, from files alone.

        Raises:
            RuntimeError: pip fails; its output is the message.
        """
        done = self.pip("install", "--no-index", "--no-deps", *args)
        if done.code:
            raise RuntimeError(str(done))

    def files(self, folder: str = "") -> dict[str, bytes]:
        """Return the contents of all files below *folder*, but of byte code and links."""
        root = self.path / folder
        return {
            str(path.relative_to(root)): path.read_bytes()
            for path in root.rglob("*")
            if path.is_file() and not path.is_symlink() and path.suffix != ".pyc"
        }

    def copied(self, path: Path) -> Environment:
        """Return a copy at *path*."""
        shutil.copytree(self.path, path, symlinks=True)
        return Environment(path, self.module)


def downloaded_pip(version: str, wheelhouse: Path) -> Path:
    """Return the wheel of that pip, downloaded once into *wheelhouse*."""

    def download(path: Path) -> None:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest"]
        subprocess.run([*command, str(path.parent), f"pip=={version}"], check=True, env=outside())

    return once(wheelhouse / f"pip-{version}-py3-none-any.whl", download)


def create(path: Path, python: str, pip_wheel: Path | None) -> Environment:
    """Create an environment with the pip of *pip_wheel*, or with none."""
    subprocess.run([python, "-m", "venv", "--without-pip", str(path)], check=True)
    environment = Environment(path)
    if pip_wheel is not None:
        # As an installer would, but ten times as fast: pip is compiled when it is first used.
        with zipfile.ZipFile(pip_wheel) as archive:
            archive.extractall(environment.site_packages)
        done = environment.pip("list")
        if done.code:
            raise RuntimeError(str(done))
    return environment


@dataclass(frozen=True)
class Environments:
    """Environments that are shared by all tests of a run: one per kind, made when first wanted.

    A test that changes one works on a copy.

    Attributes:
        folder: where environments are made; processes of one run share it.
        wheelhouse: where downloads are kept for the next run.
    """

    folder: Path
    wheelhouse: Path

    @property
    def shim_wheel(self) -> Path:
        """The wheel of pep-variants-shim, built from the sources."""
        folder = once(self.folder / "dist", lambda path: built_wheel("pip-patch", path))
        (wheel,) = folder.glob("*.whl")
        return wheel

    @property
    def command_wheel(self) -> Path:
        """The wheel of pip-variants, made of that of the shim."""

        def build(path: Path) -> None:
            command = [sys.executable, "-m", "patched.command", "--shim", str(self.shim_wheel)]
            subprocess.run(
                [*command, "-o", str(path)],
                cwd=ROOT / "pip-patch", env=clean_environ(), check=True, capture_output=True,
            )  # fmt: skip

        (wheel,) = once(self.folder / "command-dist", build).iterdir()
        return wheel

    def pip_wheel(self, version: str) -> Path:
        """Return the wheel of that pip."""
        return downloaded_pip(version, self.wheelhouse)

    def plain(self, python: str, pip: str | None) -> Environment:
        """Return an environment of that Python and pip (None: without any), nothing else in it."""
        interpreter = find_python(python)
        if interpreter is None:
            raise LookupError(f"there is no Python {python} here")
        wheel = None if pip is None else self.pip_wheel(pip)
        # As long as the name of a patched one: pip wraps lines that show it.
        path = self.folder / f"python{python}-pip{pip}-none"
        return Environment(once(path, lambda new: create(new, interpreter, wheel)))

    def patched(self, python: str, pip: str) -> Environment:
        """Return an environment of that Python and pip with the shim, which that pip installed."""
        plain = self.plain(python, pip)
        path = self.folder / f"python{python}-pip{pip}-shim"
        wheel = str(self.shim_wheel)
        return Environment(once(path, lambda new: plain.copied(new).install(wheel)))

    def with_command(self, python: str, pip: str) -> Environment:
        """Return the same with pip-variants: its command is run as pip, and pip is as it was."""
        plain = self.plain(python, pip)
        path = self.folder / f"python{python}-pip{pip}-main"
        wheel = str(self.command_wheel)
        path = once(path, lambda new: plain.copied(new).install(wheel))
        return Environment(path, "pep_variants_shim")

    def programs(self) -> Environment:
        """Return an environment with all commands, from built wheels; do not change it."""
        folder = self.folder / "programs"

        def install(mark: Path) -> None:
            command = [*uv_command(), "venv", "--quiet", "--clear", "--python", sys.executable]
            subprocess.run([*command, str(folder)], check=True)
            wheels = once(self.folder / "programs-dist", _build_all)
            add = [*uv_command(), "pip", "install", "--quiet", "--python", str(folder)]
            add += ["--compile-bytecode"]  # what tests start writes none
            found = [
                f"{wheel}[publish]" if wheel.name.startswith("variants_cli-") else str(wheel)
                for wheel in wheels.rglob("*.whl")
            ]
            subprocess.run([*add, *found], check=True, env=outside())
            mark.touch()

        # Made in its place: scripts have the path of their interpreter in them.
        once(self.folder / "programs.made", install)
        return Environment(folder)


def _build_all(path: Path) -> None:
    for distribution in DISTRIBUTIONS:
        if distribution != "pip-patch":
            built_wheel(distribution, path / distribution)
