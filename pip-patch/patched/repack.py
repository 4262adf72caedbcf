"""The patched pip: pip's wheel repacked with the shim inside.

The shim's package becomes ``pip._variants``. Its modules import each other relatively; absolute
imports of what it bundles are rewritten. ``pip/__init__.py`` starts it in place of the ``.pth``
file, so it does not depend on site-packages: it works from a zip file, with ``python -S`` and for
``pip --python``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from .archive import Files, with_record

REVISION = 1
"""Number of the release of the patched pips: ``26.3+variants.1``, ``26.3+variants.2``, …"""

SHIM = "pep_variants_shim"
PLACE = "pip._variants"

_START = f"""

# Wheel variants: patches modules of pip as they are imported.
from {PLACE} import watch as _watch

_watch()
"""
_LICENSE = re.compile(r"/(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE)[^/]*$")


class RepackError(Exception):
    """A wheel cannot be repacked: pip's or the shim's is not as expected."""


def local_version(version: str) -> str:
    """Return the version of the patched pip made from pip *version*."""
    return f"{version}+variants.{REVISION}"


def repack(upstream: Files, shim: Files, version: str) -> dict[str, bytes]:
    """Return the files of the patched pip.

    Args:
        upstream: the wheel of pip *version*.
        shim: the wheel of ``pep-variants-shim``.
        version: pip's version.

    Raises:
        RepackError: one of the wheels is not as expected.
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
    files |= {
        f"{after}/sboms/{name.rpartition('/')[2]}": data
        for name, data in shim.items()
        if ".dist-info/sboms/" in name
    }
    files[f"{after}/METADATA"] = _described(
        files[f"{after}/METADATA"].decode(), version, sorted(licenses), _license(shim)
    ).encode()
    files[f"{after}/WHEEL"] = re.sub(
        rb"(?m)^Generator: .*$", b"Generator: pep-variants patched-pip", files[f"{after}/WHEEL"]
    )
    return with_record(files, after)


def _started(code: str, version: str) -> str:
    """Return ``pip/__init__.py`` with the version of the patched pip, starting the patches."""
    line = f'__version__ = "{version}"\n'
    if code.count(line) != 1:
        raise RepackError(f"pip/__init__.py has no line {line.strip()}")
    changed = code.replace(line, f'__version__ = "{local_version(version)}"\n')
    return changed.rstrip("\n") + "\n" + _START


def _moved(shim: Files) -> Iterator[tuple[str, bytes]]:
    """Yield the files of the shim's package with their new paths."""
    place = PLACE.replace(".", "/")
    for name, data in shim.items():
        if not name.startswith(f"{SHIM}/"):
            continue  # start-up files and dist-info
        new = place + name.removeprefix(SHIM)
        if name.endswith(".py"):
            yield new, _imports_moved(data.decode(), name).encode()
        else:
            yield new, data
    if b"\ndef watch(" not in shim.get(f"{SHIM}/__init__.py", b""):
        raise RepackError(f"{SHIM}/__init__.py in the wheel of the shim has no watch()")


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
    """Return *code* with absolute imports of the shim's package rewritten to `PLACE`."""
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
            raise RepackError(f"{name}:{node.lineno}: this import of {SHIM} cannot be rewritten")
    return moved


def _license(shim: Files) -> str:
    """Return the ``License-Expression`` of the wheel of the *shim*.

    Raises:
        RepackError: it has none.
    """
    metadata = next((shim[name] for name in shim if name.endswith(".dist-info/METADATA")), b"")
    found = re.search(r"(?m)^License-Expression: (.+)$", metadata.partition(b"\n\n")[0].decode())
    if found is None:
        raise RepackError("the METADATA of the wheel of the shim has no License-Expression")
    return found[1]


def _described(metadata: str, version: str, licenses: list[str], added: str) -> str:
    """Return the core *metadata* of the patched pip.

    Args:
        metadata: of the upstream pip.
        version: of that pip.
        licenses: the new licence files, below ``pip/_variants``.
        added: licence expression of the new files.
    """
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
            line = f"{field}: {value} AND {added}"
        lines.append(line)
    lines += [f"License-File: src/pip/_variants/{name}" for name in licenses]
    if f"Version: {local_version(version)}" not in lines:
        raise RepackError(f"the METADATA of pip {version} has no Version")
    return "\n".join(lines) + separator + description
