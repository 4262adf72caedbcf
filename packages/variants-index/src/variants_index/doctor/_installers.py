"""pip and uv on PATH, whether they know variants, and what pip's configuration files set."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pep_variants import preferences as user_preferences
from pep_variants.errors import redacted
from pep_variants.options import OPTIONS

from ._findings import Part, Problem
from ._machine import Drivers
from ._origins import MEANINGS, catalog_problems, index_pins, is_meant

_SECONDS = 30
_PIP = re.compile(
    r"pip (?P<version>\S+) from (?P<path>.+) \(python [^)]*\)(?P<shim> with pep-variants-shim)?"
)
_SCOPE = re.compile(r"(env_var|env|global|site|user):")
_FILE = re.compile(r"  (\S.*), exists: (?:True|False)")
_SETTING = re.compile(r" {4}((?:global|install)\.[a-z-]+): (.+)")
_BUILT_IN = "+variants."
_SWITCH = "PEP_VARIANTS_SHIM"
_WHEELS = "--find-links dist"
"""Where the wheels of this project are: README.md, "The first minute"."""
_MANAGED = (
    "import sys, sysconfig; print(sys.prefix == sys.base_prefix and sysconfig.get_path('stdlib'))"
)
_SHOWN = {"index-url", "extra-index-url", "find-links", "no-index"}.union(
    option.name for option in OPTIONS
)


class Pip(NamedTuple):
    """A pip that was run.

    Attributes:
        command: that starts it.
        location: of its package.
        version: what it says; empty if it does not work.
        patched: it knows variants.
        shim: the shim is installed beside it.
        is_own: it installs into the environment that is looked at.
    """

    command: tuple[str, ...]
    location: str
    version: str
    patched: bool
    shim: bool
    is_own: bool = False

    @property
    def name(self) -> str:
        """What to type for it."""
        return shlex.join(self.command)

    @property
    def described(self) -> str:
        """Its version, and whether it knows variants."""
        knows = "knows variants" if self.patched else "does not know variants"
        return f"pip {self.version}, {knows}" if self.version else "does not work"


def find_pips(environ: Mapping[str, str], python: Path) -> list[Pip]:
    """Return the pips on ``PATH``, and that of the interpreter *python* if it is none of them."""
    pips = [_pip((str(path),), environ) for path in programs("pip", environ)]
    own = _pip((str(python), "-m", "pip"), environ)
    if own.version and own.location not in [pip.location for pip in pips]:
        pips.append(own)
    return [pip._replace(is_own=_is_own(pip, own, python)) for pip in pips]


def _is_own(pip: Pip, own: Pip, python: Path) -> bool:
    if own.version:
        return pip.location == own.location
    return Path(pip.command[0]).parent == python.parent


def installers_part(
    environ: Mapping[str, str], python: Path, drivers: Drivers, pips: Sequence[Pip] | None = None
) -> Part:
    """Return the installers that commands would start.

    Args:
        environ: environment variables.
        python: interpreter of the environment that is looked at.
        drivers: that detection found.
        pips: from `find_pips`, None to look for them.
    """
    pips = find_pips(environ, python) if pips is None else pips
    uv = uv_part(environ)
    rows = [(pip.name, pip.described) for pip in pips] or [("pip", "not on PATH")]
    problems = list(_pip_problems(pips, python, environ))
    for key, value, file, undo in _settings(pips[0], environ) if pips else ():
        option = key.partition(".")[2]
        if option not in _SHOWN:
            continue
        rows.append((file, f"pip's {option} {redacted(value)}"))
        if is_meant(option, value):
            text = f"{MEANINGS[option]}, for pip: {key} = {value} in {file}"
            problems.append(Problem("setting", text, undo, fails=False))
        if option == "variant-catalog":
            change = (
                f"{undo.replace(' unset ', ' set ')} {user_preferences.DEFAULT_CATALOG}"
                if undo
                else ""
            )
            problems += catalog_problems(value, f"{key} in {file}", change)
        if option.endswith("index-url"):
            problems += index_pins(value.split(), f"{key} in {file}", undo, drivers)
    return Part((*rows, *uv.rows), (*problems, *uv.problems))


def uv_part(environ: Mapping[str, str]) -> Part:
    """Return the uvs that commands would start, and whether `uv-variants` is beside them."""
    uvs = list(map(str, programs("uv", environ)))
    wrappers = list(programs("uv-variants", environ))
    rows = []
    for path in uvs:
        version = output_of([path, "--version"], environ).strip() or "does not work"
        rows.append((path, f"{version}: does not know variants"))
    rows += ((str(path), "uv with variants") for path in wrappers)
    if not uvs or wrappers:
        return Part(tuple(rows))
    text = f"{uvs[0]} needs uv-variants for variants, which is not on PATH"
    hint = Problem("plain-uv", text, f"uv tool install {_WHEELS} uv-variants", fails=False)
    return Part(tuple(rows), (hint,))


def programs(name: str, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the programs of this name on ``PATH``, first the one that a shell would start."""
    seen = set()
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        for suffix in ("", ".exe") if os.name == "nt" else ("",):
            path = Path(folder, name + suffix)
            if not folder or not path.is_file() or not os.access(path, os.X_OK):
                continue
            real = os.path.realpath(path)
            if real not in seen:
                seen.add(real)
                yield path


def output_of(command: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return what the command prints, nothing if it cannot be started."""
    try:
        return subprocess.run(
            list(command),
            capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False,
            stdin=subprocess.DEVNULL, env=dict(environ),
        ).stdout  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""


def _pip(command: tuple[str, ...], environ: Mapping[str, str]) -> Pip:
    match = _PIP.search(output_of([*command, "--version"], environ))
    if match is None:
        return Pip(command, "", "", patched=False, shim=False)
    version, location = match["version"], match["path"]
    patched = match["shim"] is not None or _BUILT_IN in version
    # An older pip, or one that is switched off, does not show it.
    shim = any(Path(location).parent.glob("pep_variants_shim-*.dist-info"))
    return Pip(command, location, version, patched, shim)


def _settings(pip: Pip, environ: Mapping[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield key, value, file, and the command that removes it, of what pip's files say.

    The command is empty where `pip config` does not write the file.
    """
    scope = file = ""
    for line in output_of([*pip.command, "config", "debug"], environ).splitlines():
        if match := _SCOPE.fullmatch(line):
            scope, file = match[1], ""
        elif match := _FILE.fullmatch(line):
            file = match[1]
        elif file and (match := _SETTING.fullmatch(line)):
            undo = f"{pip.name} config --{scope} unset {match[1]}"
            yield match[1], match[2], file, undo if scope in ("global", "site", "user") else ""


def _pip_problems(
    pips: Sequence[Pip], python: Path, environ: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield what is wrong with the pip of the environment, and with the one that `pip` starts."""
    has_uv = any(programs("uv-variants", environ))
    first = next((pip for pip in pips if pip.version), None)
    pip = next((pip for pip in pips if pip.version and pip.is_own), None)
    if pip is None:
        if first is not None and not has_uv:
            text = (
                f"{python} has no pip, and {first.name}, first on PATH, is of another environment"
            )
            yield Problem("plain-pip", text, f"{shlex.quote(str(python))} -m ensurepip --upgrade")
    elif pip.patched:
        module = "pip._variants" if _BUILT_IN in pip.version else "pep_variants_shim"
        said = output_of([str(python), "-m", f"{module}.trial", "--newer"], environ).strip()
        if said:
            install = f"install --upgrade {_WHEELS} pep-variants-shim"
            yield Problem("new-pip", f"{pip.name}: {said}", f"{pip.name} {install}")
        if first is not None and not first.is_own and not first.patched:
            text = f"{first.name} is first on PATH and does not know variants; {pip.name} does"
            folder = shlex.quote(str(python.parent))
            # Without its folder on PATH the environment is not active, which may be meant.
            active = str(python.parent) in environ.get("PATH", "").split(os.pathsep)
            yield Problem("plain-pip-first", text, f"export PATH={folder}:$PATH", fails=active)
    elif pip.shim and _SWITCH in environ:
        yield Problem(
            "shim-off",
            f"{pip.name} has pep-variants-shim, which {_SWITCH}={environ[_SWITCH]} switches off",
            f"unset {_SWITCH}",
        )
    elif pip.shim:
        yield Problem(
            "old-pip",
            f"{pip.name} is pip {pip.version}, which pep-variants-shim beside it does not support",
            f"{pip.name} install --upgrade pip",
        )
    else:
        text = f"{pip.name} is pip {pip.version} without pep-variants-shim: it ignores variants"
        # A new pip as well: environments often come with one that is too old.
        install = f"install --upgrade {_WHEELS} pip pep-variants-shim"
        command = f"{pip.name} {install}"
        managed = output_of([str(python), "-c", _MANAGED], environ).strip()
        if managed and Path(managed, "EXTERNALLY-MANAGED").exists():
            text += ", and the system refuses to install into its Python: make an environment"
            command = f"python3 -m venv .venv && . .venv/bin/activate && python -m pip {install}"
        yield Problem("plain-pip", text, command, fails=not has_uv)
