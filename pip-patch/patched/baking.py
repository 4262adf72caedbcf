"""Putting the shim into a pip: same code, at another place, started by pip itself.

The shim's package becomes ``pip._variants``. Its modules import each other relatively, and what
it bundles by absolute names, which are rewritten. ``pip/__init__.py`` starts it as the ``.pth``
file of the shim would, so nothing of it depends on site-packages: it works from a zip file, with
``-S`` and for ``pip --python`` alike.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from .archive import Files, with_record

REVISION = 1
"""Counts the releases of the patched pips: ``26.3+variants.1``, ``26.3+variants.2``, …"""

SHIM = "pep_variants_shim"
PLACE = "pip._variants"

_START = f"""

# Wheel variants: patches modules of pip as they are imported.
from {PLACE} import watch as _watch

_watch()
"""
_LICENSE = re.compile(r"/(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE)[^/]*$")


class BakingError(Exception):
    """A wheel is not as expected."""


def local_version(version: str) -> str:
    """Return the version of the patched pip made from pip *version*."""
    return f"{version}+variants.{REVISION}"


def bake(upstream: Files, shim: Files, version: str) -> dict[str, bytes]:
    """Return the files of the patched pip.

    Args:
        upstream: the wheel of pip *version*.
        shim: the wheel of ``pep-variants-shim``.
        version: pip's version.

    Raises:
        BakingError: one of the wheels is not as expected.
    """
    patched = local_version(version)
    before, after = f"pip-{version}.dist-info", f"pip-{patched}.dist-info"
    files = {
        re.sub(f"^{re.escape(before)}/", f"{after}/", name): data for name, data in upstream.items()
    }
    files["pip/__init__.py"] = _started(upstream["pip/__init__.py"].decode(), version).encode()
    bundle = _packaged(dict(_moved(shim)))
    licenses = {
        name.removeprefix("pip/_variants/"): data
        for name, data in bundle.items()
        if _LICENSE.search(name)
    }
    folder = f"{after}/licenses/src/pip/_variants"
    files |= bundle
    files |= {f"{folder}/{name}": data for name, data in licenses.items()}
    files[f"{after}/METADATA"] = _described(
        files[f"{after}/METADATA"].decode(), version, sorted(licenses)
    ).encode()
    files[f"{after}/WHEEL"] = re.sub(
        rb"(?m)^Generator: .*$", b"Generator: pep-variants patched-pip", files[f"{after}/WHEEL"]
    )
    return with_record(files, after)


def _started(code: str, version: str) -> str:
    """Return ``pip/__init__.py`` with the version of the patched pip, starting the patches."""
    line = f'__version__ = "{version}"\n'
    if code.count(line) != 1:
        raise BakingError(f"pip/__init__.py has no line {line.strip()}")
    changed = code.replace(line, f'__version__ = "{local_version(version)}"\n')
    return changed.rstrip("\n") + "\n" + _START


def _moved(shim: Files) -> Iterator[tuple[str, bytes]]:
    """Yield the files of the package *shim* at their new places."""
    place = PLACE.replace(".", "/")
    for name, data in shim.items():
        if not name.startswith(f"{SHIM}/"):
            continue  # how it starts beside a pip, and its dist-info
        new = place + name.removeprefix(SHIM)
        if name.endswith(".py"):
            yield new, _imports_moved(data.decode(), name).encode()
        else:
            yield new, data
    if b"\ndef watch(" not in shim.get(f"{SHIM}/__init__.py", b""):
        raise BakingError(f"there is no watch() in {SHIM}/__init__.py of the wheel of the shim")


def _packaged(files: Files) -> dict[str, bytes]:
    """Return *files* with an ``__init__.py`` in every folder of modules.

    Packages without one are not found in zip files that do not list folders.
    """
    folders = {
        str(folder)
        for name in files
        if name.endswith(".py")
        for folder in PurePosixPath(name).parents
        if folder.is_relative_to(PLACE.replace(".", "/"))
    }
    return {**{f"{folder}/__init__.py": b"" for folder in folders}, **files}


def _imports_moved(code: str, name: str) -> str:
    """Return *code* with its absolute imports of the shim's modules pointing to their place."""
    if SHIM not in code:
        return code
    moved = re.sub(rf"\b(from|import) {SHIM}(?=[.\s])", rf"\1 {PLACE}", code)
    for node in ast.walk(ast.parse(moved)):
        if isinstance(node, ast.ImportFrom) and not node.level:
            modules = [node.module or ""]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            continue
        if any(module.partition(".")[0] == SHIM for module in modules):
            raise BakingError(f"{name}:{node.lineno}: an import that cannot be moved")
    return moved


def _described(metadata: str, version: str, licenses: list[str]) -> str:
    """Return core *metadata* that says what this is."""
    head, separator, description = metadata.partition("\n\n")
    lines = []
    for line in head.splitlines():
        field, _, value = line.partition(": ")
        if field == "Version":
            line = f"Version: {local_version(version)}"
        elif field == "Summary":
            line = (
                f"Summary: pip {version} with wheel variants built in, by the pep-variants project"
            )
        elif field in ("License", "License-Expression"):
            line = f"{field}: {value} AND Apache-2.0"
        lines.append(line)
    lines += [f"License-File: src/pip/_variants/{name}" for name in licenses]
    if f"Version: {local_version(version)}" not in lines:
        raise BakingError(f"the METADATA of pip {version} has no Version")
    return "\n".join(lines) + separator + description
