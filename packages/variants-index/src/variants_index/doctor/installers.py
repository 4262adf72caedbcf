"""pip and uv on PATH, and whether they know variants."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pep_variants.errors import redacted

from .findings import Part, Problem

_SECONDS = 30
_PIP = re.compile(
    r"pip (?P<version>\S+) from (?P<path>.+) \(python [^)]*\)(?P<shim> with pep-variants-shim)?"
)
_CONFIGURATION_FILE = re.compile(r"  (\S.*), exists: (?:True|False)")
_CONFIGURED_INDEX = re.compile(r" {4}(?:global|install)\.(?:extra-)?index-url: (.+)")
_PYPI = "https://pypi.org/simple"
_BUILT_IN = "+variants."
_SWITCH = "PEP_VARIANTS_SHIM"


class _Pip(NamedTuple):
    """A pip that was run.

    Attributes:
        command: that starts it.
        location: of its package.
        version: what it says; empty if it does not work.
        patched: it knows variants.
        shim: the shim is installed beside it.
        problem: why it does not work.
        indexes: URL and configuration file of each index that its files name.
    """

    command: tuple[str, ...]
    location: str = ""
    version: str = ""
    patched: bool = False
    shim: bool = False
    problem: str = ""
    indexes: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """What to type for it."""
        return shlex.join(self.command)


def installers_part(
    environ: Mapping[str, str], python: Path, indexes: Collection[str] = ()
) -> Part:
    """Return the installers that commands would start.

    Args:
        environ: environment variables.
        python: interpreter of the environment that is looked at.
        indexes: URLs of the indexes that installed variants are compared with, none for PyPI.
    """
    pips = _pips(environ, python)
    if pips and pips[0].version:
        pips[0] = pips[0]._replace(indexes=tuple(_configured_indexes(pips[0], environ)))
    rows = [(pip.name, _described(pip)) for pip in pips] or [("pip", "not on PATH")]
    rows += ((file, f"pip's index {redacted(url)}") for pip in pips for url, file in pip.indexes)
    uvs = {path: _version(path, environ) for path in _on_path(("uv",), environ)}
    wrappers = list(_on_path(("uv-variants",), environ))
    rows += ((str(path), f"{version}: does not know variants") for path, version in uvs.items())
    rows += ((str(path), "uv with variants") for path in wrappers)
    problems = [
        *_pip_problems(pips, environ, python, other=bool(wrappers)),
        *(_index_problem(*each, indexes) for each in _other_indexes(pips, environ, indexes)),
    ]
    if uvs and not wrappers:
        problems.append(
            Problem(
                "plain-uv",
                f"{next(iter(uvs))} is unmodified uv, which takes no variants by itself, and "
                "uv-variants is not on PATH",
                "python -m pip install uv-variants",
                fails=False,
            )
        )
    tree = {
        "pip": [_tree(pip) for pip in pips],
        "uv": [{"path": str(path), "version": version} for path, version in uvs.items()],
        "uv-variants": list(map(str, wrappers)),
    }
    return Part(tuple(rows), tuple(problems), tree)


def _pip_problems(
    pips: list[_Pip], environ: Mapping[str, str], python: Path, *, other: bool
) -> Iterator[Problem]:
    if not pips or pips[0].patched:
        return
    first = pips[0]
    quoted = shlex.quote(str(python))
    patched = next((pip for pip in pips if pip.patched), None)
    if first.problem:
        yield Problem("broken-pip", f"{first.name} does not work: {first.problem}")
    elif first.shim and _SWITCH in environ:
        yield Problem(
            "shim-off",
            f"{first.name} has pep-variants-shim, which {_SWITCH}={environ[_SWITCH]} switches off",
            f"unset {_SWITCH}",
        )
    elif first.shim:
        yield Problem(
            "old-pip",
            f"{first.name} is pip {first.version}, which pep-variants-shim beside it does not "
            "support",
            f"{_interpreter(first) or quoted} -m pip install --upgrade pip",
        )
    elif patched is not None:
        yield Problem(
            "plain-pip-first",
            f"{first.name} is first on PATH and does not know variants; {patched.name} does"
            + (", and comes later" if len(patched.command) == 1 else ""),
            f'export PATH={shlex.quote(str(Path(patched.command[0]).parent))}:"$PATH"'
            if len(patched.command) == 1
            else f"{patched.name} install …",
        )
    else:
        yield Problem(
            "plain-pip",
            f"{first.name} is pip {first.version} without pep-variants-shim: it takes the wheel "
            "without a variant",
            f"{quoted} -m pip install pep-variants-shim",
            fails=not other,
        )


def _other_indexes(
    pips: list[_Pip], environ: Mapping[str, str], indexes: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield the indexes of pip's configuration files that nothing was compared with."""
    asked = {url.rstrip("/") for url in indexes or (_PYPI,)}
    for url, file in pips[0].indexes if pips and "PIP_INDEX_URL" not in environ else ():
        if url.rstrip("/") not in asked:
            yield url, file


def _index_problem(url: str, file: str, indexes: Collection[str]) -> Problem:
    asked = ", ".join(map(redacted, indexes)) or "PyPI"
    return Problem(
        "pip-configuration",
        f"pip takes packages from {redacted(url)}, which {file} says; installed variants are "
        f"compared with {asked}",
        f"variants doctor --index-url {shlex.quote(redacted(url))}",
        fails=False,
    )


def _configured_indexes(pip: _Pip, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what the files that this pip reads say of indexes, and which file does."""
    output, _ = _output([*pip.command, "config", "debug"], environ)
    file = ""
    for line in output.splitlines():
        if match := _CONFIGURATION_FILE.fullmatch(line):
            file = match[1]
        elif file and (match := _CONFIGURED_INDEX.fullmatch(line)):
            yield from ((url, file) for url in match[1].split())


def _tree(pip: _Pip) -> dict[str, Any]:
    indexes = [{"url": redacted(url), "file": file} for url, file in pip.indexes]
    return {**pip._asdict(), "command": list(pip.command), "indexes": indexes}


def _on_path(names: tuple[str, ...], environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the commands of these names, first those that a shell would start."""
    seen = set()
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        for name in names:
            for suffix in ("", ".exe") if os.name == "nt" else ("",):
                path = Path(folder, name + suffix)
                if not folder or not path.is_file() or not os.access(path, os.X_OK):
                    continue
                real = os.path.realpath(path)
                if real not in seen:
                    seen.add(real)
                    yield path


def _pips(environ: Mapping[str, str], python: Path) -> list[_Pip]:
    """Return the pips on ``PATH``, then that of *python* where it is another one."""
    pips = [_pip((str(path),), environ) for path in _on_path(("pip",), environ)]
    own = _pip((str(python), "-m", "pip"), environ)
    if own.version and own.location not in [pip.location for pip in pips]:
        pips.append(own)
    return pips


def _pip(command: tuple[str, ...], environ: Mapping[str, str]) -> _Pip:
    output, problem = _output([*command, "--version"], environ)
    match = _PIP.search(output)
    if match is None:
        return _Pip(command, problem=problem or f"prints no version: {output.strip()[:200]}")
    version, location = match["version"], match["path"]
    patched = match["shim"] is not None or _BUILT_IN in version
    # An older pip, or one that is switched off, does not show it.
    try:
        shim = any(Path(location).parent.glob("pep_variants_shim-*.dist-info"))
    except OSError:
        shim = False
    return _Pip(command, location, version, patched, shim or patched)


def _version(path: Path, environ: Mapping[str, str]) -> str:
    output, problem = _output([str(path), "--version"], environ)
    return output.strip() or f"does not work: {problem}"


def _output(command: Sequence[str], environ: Mapping[str, str]) -> tuple[str, str]:
    """Return what the command prints, and why it fails."""
    try:
        done = subprocess.run(
            list(command),
            capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False,
            stdin=subprocess.DEVNULL, env=dict(environ),
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return "", str(error)
    return done.stdout, done.stderr.strip()[:200] if done.returncode else ""


def _interpreter(pip: _Pip) -> str:
    """Return the interpreter of *pip*, empty if it is a program that does not tell."""
    if len(pip.command) > 1:
        return shlex.quote(pip.command[0])
    try:
        with Path(pip.command[0]).open("rb") as file:
            line = file.readline(400)
    except OSError:
        return ""
    if not line.startswith(b"#!/"):
        return ""
    words = line[2:].decode(errors="replace").split()
    return shlex.quote(words[0]) if len(words) == 1 else ""


def _described(pip: _Pip) -> str:
    if pip.problem:
        return f"does not work: {pip.problem}"
    knows = "knows variants" if pip.patched else "does not know variants"
    return f"pip {pip.version}, {knows}"
