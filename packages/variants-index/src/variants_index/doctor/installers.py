"""pip and uv on PATH, and whether they know variants."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from pep_variants.internal import OPTIONS, redacted

from .configuration import constraints, meaning
from .drivers import Drivers
from .findings import Part, Problem
from .index_pins import IndexSetting, index_pins
from .pips import Pip, PipSetting, find_pips, output_of, programs

_PYPI = "https://pypi.org/simple"
_SWITCH = "PEP_VARIANTS_SHIM"
_SHOWN = {"index-url", "extra-index-url", "find-links", "no-index", "constraint"}
_SHOWN |= {option.name for option in OPTIONS}


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
        *_pip_problems(pips, environ, python, other=bool(wrappers)),
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


def _pip_problems(
    pips: list[Pip], environ: Mapping[str, str], python: Path, *, other: bool
) -> Iterator[Problem]:
    if not pips or pips[0].patched:
        return
    first = pips[0]
    quoted = shlex.quote(str(python))
    runner = f"{first.interpreter} -m pip" if first.interpreter else first.name
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
            f"{first.interpreter or quoted} -m pip install --upgrade pip",
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
            f"{runner} install --upgrade pip pep-variants-shim",
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
