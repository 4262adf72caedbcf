"""pip and uv on PATH, and whether they know variants."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pep_variants.errors import redacted

from .findings import Part, Problem

_SECONDS = 30
_PIP = re.compile(
    r"pip (?P<version>\S+)(?P<shim> with pep-variants-shim \S+)? from (?P<path>.+) \("
)
_CONFIGURATION_FILE = re.compile(r"  (\S.*), exists: (?:True|False)")
_CONFIGURED_INDEX = re.compile(r" {4}(?:global|install)\.(?:extra-)?index-url: (.+)")
_PYPI = "https://pypi.org/simple"
_BUILT_IN = "+variants."
_SWITCH = "PEP_VARIANTS_SHIM"


class _Pip(NamedTuple):
    """A pip that was run.

    Attributes:
        path: of the command.
        version: what it says; empty if it does not work.
        patched: it knows variants.
        shim: the shim is installed beside it.
        problem: why it does not work.
        indexes: URL and configuration file of each index that its files name.
    """

    path: Path
    version: str = ""
    patched: bool = False
    shim: bool = False
    problem: str = ""
    indexes: tuple[tuple[str, str], ...] = ()


def installers_part(
    environ: Mapping[str, str], python: Path, indexes: Collection[str] = ()
) -> Part:
    """Return the installers that commands would start.

    Args:
        environ: environment variables.
        python: interpreter of the environment that is looked at.
        indexes: URLs of the indexes that installed variants are compared with, none for PyPI.
    """
    pips = [_pip(path, environ) for path in _on_path(("pip",), environ)]
    if pips and pips[0].version:
        pips[0] = pips[0]._replace(indexes=tuple(_configured_indexes(pips[0].path, environ)))
    rows = [(str(pip.path), _described(pip)) for pip in pips] or [("pip", "not on PATH")]
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
        yield Problem("broken-pip", f"{first.path} does not work: {first.problem}")
    elif first.shim and _SWITCH in environ:
        yield Problem(
            "shim-off",
            f"{first.path} has pep-variants-shim, which {_SWITCH}={environ[_SWITCH]} switches off",
            f"unset {_SWITCH}",
        )
    elif first.shim:
        yield Problem(
            "old-pip",
            f"{first.path} is pip {first.version}, which pep-variants-shim beside it does not "
            "support",
            f"{_interpreter(first.path) or quoted} -m pip install --upgrade pip",
        )
    elif patched is not None:
        yield Problem(
            "plain-pip-first",
            f"{first.path} is first on PATH and does not know variants; {patched.path} does, and "
            "comes later",
            f'export PATH={shlex.quote(str(patched.path.parent))}:"$PATH"',
        )
    else:
        yield Problem(
            "plain-pip",
            f"{first.path} is pip {first.version} without pep-variants-shim: it takes the wheel "
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


def _configured_indexes(path: Path, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what the files that this pip reads say of indexes, and which file does."""
    output, _ = _output(path, environ, "config", "debug")
    file = ""
    for line in output.splitlines():
        if match := _CONFIGURATION_FILE.fullmatch(line):
            file = match[1]
        elif file and (match := _CONFIGURED_INDEX.fullmatch(line)):
            yield from ((url, file) for url in match[1].split())


def _tree(pip: _Pip) -> dict[str, Any]:
    indexes = [{"url": redacted(url), "file": file} for url, file in pip.indexes]
    return {**pip._asdict(), "path": str(pip.path), "indexes": indexes}


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


def _pip(path: Path, environ: Mapping[str, str]) -> _Pip:
    output, problem = _output(path, environ, "--version")
    match = _PIP.search(output)
    if match is None:
        return _Pip(path, problem=problem or f"prints no version: {output.strip()[:200]}")
    version = match["version"]
    patched = match["shim"] is not None or _BUILT_IN in version
    # An older pip, or one that is switched off, does not show it.
    packages = Path(match["path"]).parent
    try:
        shim = any(packages.glob("pep_variants_shim-*.dist-info"))
    except OSError:
        shim = False
    return _Pip(path, version, patched, shim or patched)


def _version(path: Path, environ: Mapping[str, str]) -> str:
    output, problem = _output(path, environ, "--version")
    return output.strip() or f"does not work: {problem}"


def _output(path: Path, environ: Mapping[str, str], *arguments: str) -> tuple[str, str]:
    """Return what the command prints, and why it fails."""
    try:
        done = subprocess.run(
            [str(path), *arguments],
            capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False,
            stdin=subprocess.DEVNULL, env=dict(environ),
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return "", str(error)
    return done.stdout, done.stderr.strip()[:200] if done.returncode else ""


def _interpreter(script: Path) -> str:
    """Return the interpreter that the script names, empty for a program."""
    try:
        with script.open("rb") as file:
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
