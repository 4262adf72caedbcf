"""pip and uv on PATH, whether they know variants, and what pip's configuration files set."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pep_variants.internal import OPTIONS, redacted

from .findings import Part, Problem
from .machine import Drivers
from .origins import IndexSetting, constraints, index_pins, meaning

_SECONDS = 30
_PIP = re.compile(
    r"pip (?P<version>\S+) from (?P<path>.+) \(python [^)]*\)(?P<shim> with pep-variants-shim)?"
)
_SCOPE = re.compile(r"(env_var|env|global|site|user):")
_FILE = re.compile(r"  (\S.*), exists: (?:True|False)")
_SETTING = re.compile(r" {4}((?:global|install)\.[a-z-]+): (.+)")
_BUILT_IN = "+variants."
_PYPI = "https://pypi.org/simple"
_SWITCH = "PEP_VARIANTS_SHIM"
_SHOWN = {"index-url", "extra-index-url", "find-links", "no-index", "constraint"}.union(
    option.name for option in OPTIONS
)


class PipSetting(NamedTuple):
    """One setting of a configuration file.

    Attributes:
        key: ``global.index-url``.
        value: as pip shows it.
        file: path of the file.
        scope: ``global``, ``site`` or ``user``, as the options of ``pip config``; ``env`` for the
            file that ``PIP_CONFIG_FILE`` names.
    """

    key: str
    value: str
    file: str
    scope: str

    @property
    def option(self) -> str:
        """Name of the option that it sets."""
        return self.key.partition(".")[2]

    @property
    def urls(self) -> tuple[str, ...]:
        """The indexes that it names."""
        return tuple(self.value.split()) if self.option.endswith("index-url") else ()

    def undo(self, pip: str) -> str:
        """Return the command that removes it, empty if *pip* cannot."""
        if self.scope not in ("global", "site", "user"):
            return ""
        return f"{pip} config --{self.scope} unset {self.key}"


class Pip(NamedTuple):
    """A pip that was run.

    Attributes:
        command: that starts it.
        location: of its package.
        version: what it says; empty if it does not work.
        patched: it knows variants.
        shim: the shim is installed beside it.
        problem: why it does not work.
        settings: of its configuration files, for installing; of the first pip only.
    """

    command: tuple[str, ...]
    location: str = ""
    version: str = ""
    patched: bool = False
    shim: bool = False
    problem: str = ""
    settings: tuple[PipSetting, ...] = ()

    @property
    def name(self) -> str:
        """What to type for it."""
        return shlex.join(self.command)

    @property
    def described(self) -> str:
        """Its version, and whether it knows variants."""
        if self.problem:
            return f"does not work: {self.problem}"
        knows = "knows variants" if self.patched else "does not know variants"
        return f"pip {self.version}, {knows}"

    def as_tree(self) -> dict[str, Any]:
        """Return it for JSON."""
        indexes = [
            {"url": redacted(url), "file": each.file} for each in self.settings for url in each.urls
        ]
        settings = [{**each._asdict(), "value": redacted(each.value)} for each in self.settings]
        return {
            **self._asdict(), "command": list(self.command), "indexes": indexes,
            "settings": settings,
        }  # fmt: skip


def find_pips(environ: Mapping[str, str], python: Path) -> list[Pip]:
    """Return the pips on ``PATH``, then that of *python* where it is another one.

    Only the first is asked for its settings.
    """
    pips = [_pip((str(path),), environ) for path in programs("pip", environ)]
    own = _pip((str(python), "-m", "pip"), environ)
    if own.version and own.location not in [pip.location for pip in pips]:
        pips.append(own)
    if pips and pips[0].version:
        pips[0] = pips[0]._replace(settings=tuple(_settings(pips[0], environ)))
    return pips


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


def output_of(command: Sequence[str], environ: Mapping[str, str]) -> tuple[str, str]:
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


def _pip(command: tuple[str, ...], environ: Mapping[str, str]) -> Pip:
    output, problem = output_of([*command, "--version"], environ)
    match = _PIP.search(output)
    if match is None:
        return Pip(command, problem=problem or f"prints no version: {output.strip()[:200]}")
    version, location = match["version"], match["path"]
    patched = match["shim"] is not None or _BUILT_IN in version
    # An older pip, or one that is switched off, does not show it.
    try:
        shim = any(Path(location).parent.glob("pep_variants_shim-*.dist-info"))
    except OSError:
        shim = False
    return Pip(command, location, version, patched, shim or patched)


def _settings(pip: Pip, environ: Mapping[str, str]) -> Iterator[PipSetting]:
    """Yield what the files that this pip reads say."""
    output, _ = output_of([*pip.command, "config", "debug"], environ)
    scope = file = ""
    for line in output.splitlines():
        if match := _SCOPE.fullmatch(line):
            scope, file = match[1], ""
        elif match := _FILE.fullmatch(line):
            file = match[1]
        elif file and (match := _SETTING.fullmatch(line)):
            yield PipSetting(match[1], match[2], file, scope)


def installers_part(
    environ: Mapping[str, str],
    python: Path,
    indexes: Collection[str] = (),
    drivers: Drivers = Drivers(),  # noqa: B008
) -> Part:
    """Return the installers that commands would start.

    Args:
        environ: environment variables.
        python: interpreter of the environment that is looked at.
        indexes: URLs of the indexes that installed variants are compared with, none for PyPI.
        drivers: that detection found.
    """
    pips = find_pips(environ, python)
    settings = [each for pip in pips[:1] for each in pip.settings if each.option in _SHOWN]
    uv = uv_part(environ)
    wrappers = uv.tree["uv-variants"]
    rows = [(pip.name, pip.described) for pip in pips] or [("pip", "not on PATH")]
    rows += ((each.file, f"pip's {each.option} {redacted(each.value)}") for each in settings)
    problems = [
        *_pip_problems(pips, environ, other=bool(wrappers)),
        *(problem for each in settings for problem in _setting_problems(each, pips[0], drivers)),
        *_other_indexes(settings, environ, indexes),
        *uv.problems,
    ]
    tree = {"pip": [pip.as_tree() for pip in pips], **uv.tree}
    return Part((*rows, *uv.rows), tuple(problems), tree)


def uv_part(environ: Mapping[str, str]) -> Part:
    """Return the uvs that commands would start, and whether `uv-variants` is beside them."""
    uvs = {path: _version(path, environ) for path in programs("uv", environ)}
    wrappers = list(programs("uv-variants", environ))
    rows = [(str(path), f"{version}: does not know variants") for path, version in uvs.items()]
    rows += ((str(path), "uv with variants") for path in wrappers)
    problems = []
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
        "uv": [{"path": str(path), "version": version} for path, version in uvs.items()],
        "uv-variants": list(map(str, wrappers)),
    }
    return Part(tuple(rows), tuple(problems), tree)


def _pip_problems(pips: list[Pip], environ: Mapping[str, str], *, other: bool) -> Iterator[Problem]:
    if not pips or pips[0].patched:
        return
    first = pips[0]
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
            f"{first.name} install --upgrade pip",
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
            # A new pip as well: environments often come with one that is too old.
            f"{first.name} install --upgrade pip pep-variants-shim",
            fails=not other,
        )


def _setting_problems(setting: PipSetting, pip: Pip, drivers: Drivers) -> Iterator[Problem]:
    """Yield what a setting of pip's files explains."""
    undo = setting.undo(pip.name)
    if means := meaning(setting.option, setting.value):
        shown = "" if setting.option == "no-variants" else f": {setting.value}"
        text = f"{means}, for pip{shown}: {setting.key} in {setting.file}"
        text += "" if undo else ": remove it there"
        yield Problem("setting", text, undo, fails=False)
    place = f"{setting.key} in {setting.file}"
    if setting.option == "constraint":
        yield from constraints(setting.value, place, undo, "pip")
    yield from index_pins([IndexSetting(url, place, undo) for url in setting.urls], drivers)


def _other_indexes(
    settings: Collection[PipSetting], environ: Mapping[str, str], indexes: Collection[str]
) -> Iterator[Problem]:
    """Yield the indexes of pip's configuration files that nothing was compared with."""
    asked = {url.rstrip("/") for url in indexes or (_PYPI,)}
    if "PIP_INDEX_URL" in environ:
        return
    others = [
        (f"--{each.option}", url, each.file)
        for each in settings
        for url in each.urls
        if url.rstrip("/") not in asked
    ]
    if not others:
        return
    files = " and ".join(dict.fromkeys(file for _, _, file in others))
    shown = ", ".join(map(redacted, indexes)) or "PyPI"
    words = [word for option, url, _ in others for word in (option, redacted(url))]
    yield Problem(
        "pip-configuration",
        f"pip takes packages from {', '.join(redacted(url) for _, url, _ in others)}, which "
        f"{files} says; installed variants are compared with {shown}",
        shlex.join(["variants", "doctor", *words]),
        fails=False,
    )


def _version(path: Path, environ: Mapping[str, str]) -> str:
    output, problem = output_of([str(path), "--version"], environ)
    return output.strip() or f"does not work: {problem}"
