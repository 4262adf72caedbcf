"""Build hook: puts everything that pip imports of us into the wheel.

pip must keep working whatever the user installs, upgrades or removes beside it, so the shim has
no runtime dependency: the engine, the resolver extension and the libraries they use are copied
into ``pep_variants_shim/_vendor``, and imports of them rewritten to that place in all of our own
and their code. The libraries come from the build environment, pinned in pyproject.toml;
`resolvelib` is the one that pip resolves with.
"""

from __future__ import annotations

import ast
import re
import shutil
import tempfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VENDOR = "pep_variants_shim._vendor"

# Place in the wheel to our source, relative to this file.
SOURCES = {
    "pep_variants_shim": "src/pep_variants_shim",
    "pep_variants_shim/_vendor/pep_variants": "../packages/pep-variants/src/pep_variants",
    "pep_variants_shim/_vendor/resolvelib_variants": "../resolver-ext/src/resolvelib_variants",
}
# Import name to distribution.
LIBRARIES = {
    "archspec": "archspec",
    "filelock": "filelock",
    "packaging": "packaging",
    "platformdirs": "platformdirs",
    "pynvml": "nvidia-ml-py",
    "tomli": "tomli",
}
# Import name to where it is found inside pip.
NAMES = {
    **{name: f"{VENDOR}.{name}" for name in ("pep_variants", "resolvelib_variants", *LIBRARIES)},
    "resolvelib": "pip._vendor.resolvelib",
}
# Neither code nor data that is read at run time.
SKIPPED = re.compile(
    r"(^|/)(tests?|__pycache__)/|\.(pyc|so|pyd)$|/archspec/(cli|__main__)\.py$|/example\.py$"
    # pip has its own way to indexes, and its own resolver.
    r"|/resolvelib_variants/(index|resolution|lock)/"
)
# Code of the libraries that reads files of theirs as files: a pip may be run from a zip file.
EDITS = {
    "pep_variants_shim/_vendor/archspec/cpu/schema.py": (
        """    with open(json_file, "r", encoding="utf-8") as file:
        data = json.load(file)
""",
        """    if json_file.exists():
        with open(json_file, "r", encoding="utf-8") as file:
            data = json.load(file)
    else:  # changed by pep-variants: in a zip file
        data = json.loads(__loader__.get_data(os.path.normpath(json_file)))
""",
    ),
}
_LICENSE = re.compile(r"\.dist-info/(licenses/.*|LICEN[CS]E[^/]*|COPYING[^/]*)$")


class BundleHook(BuildHookInterface[Any]):
    """Collects the code of the wheel in a temporary folder."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Copy, rewrite, and hand the paths to the builder."""
        self._folder = Path(tempfile.mkdtemp(prefix="pep-variants-bundle-"))
        for place, source in self._files():
            if SKIPPED.search(place):
                continue
            target = self._folder / place
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.suffix == ".py":
                code = edited(source.read_text("utf-8"), place)
                target.write_text(rewritten(code, place), "utf-8")
            else:
                target.write_bytes(source.read_bytes())
            build_data["force_include"][str(target)] = place
        package = self._folder / "vendor.py"
        package.write_text('"""Bundled libraries."""\n')
        build_data["force_include"][str(package)] = f"{VENDOR.replace('.', '/')}/__init__.py"

    def finalize(self, version: str, build_data: dict[str, Any], artifact: str) -> None:  # noqa: ARG002
        """Remove the temporary folder."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _files(self) -> Iterator[tuple[str, Path]]:
        """Yield place in the wheel and source of every file, sorted."""
        yield "pep_variants_shim/LICENSE", (Path(self.root) / "../LICENSE").resolve()
        for place, relative in SOURCES.items():
            folder = (Path(self.root) / relative).resolve()
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    yield f"{place}/{path.relative_to(folder).as_posix()}", path
        for name, project in LIBRARIES.items():
            dist = distribution(project)
            for file in sorted(dist.files or ()):
                text, path = file.as_posix(), Path(str(dist.locate_file(file)))
                if text == f"{name}.py" or text.startswith(f"{name}/"):
                    yield f"pep_variants_shim/_vendor/{text}", path
                elif _LICENSE.search(text):
                    yield f"pep_variants_shim/_vendor/licenses/{project}/{path.name}", path


def edited(code: str, place: str) -> str:
    """Return *code* with its entry of `EDITS` made.

    Raises:
        ValueError: the library has changed; *place* names the file.
    """
    if place not in EDITS:
        return code
    before, after = EDITS[place]
    if code.count(before) != 1:
        raise ValueError(f"{place}: what EDITS changes is not there")
    return code.replace(before, after)


def rewritten(code: str, place: str) -> str:
    """Return *code* with absolute imports of bundled packages pointing to where they are.

    Raises:
        ValueError: there is an import that cannot be rewritten; *place* names the file.
    """
    lines = code.splitlines(keepends=True)
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            modules = [node.module]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            continue
        names = {module.partition(".")[0] for module in modules} & NAMES.keys()
        if not names:
            continue
        number = node.lineno - 1
        lines[number], changed = _moved(lines[number], names.pop())
        if not changed or len(modules) > 1:
            raise ValueError(f"{place}:{number + 1}: write one import per line")
    return "".join(lines)


def _moved(line: str, name: str) -> tuple[str, int]:
    """Return *line* with its import of *name*, or of a module of it, moved; and if it could be."""
    parent, _, last = NAMES[name].rpartition(".")
    for pattern, replacement in (
        (rf"from {name}((?:\.\w+)*) import ", rf"from {parent}.{last}\1 import "),
        (rf"import {name}( as \w+)?(?=\s|$)", rf"from {parent} import {last}\1"),
        (rf"import {name}((?:\.\w+)+ as \w+)(?=\s|$)", rf"import {parent}.{last}\1"),
        (
            rf"import {name}((?:\.\w+)+)(?=\s|$)",
            rf"import {parent}.{last}\1; from {parent} import {last}",
        ),
    ):
        moved, changed = re.subn(rf"(?<!\S){pattern}", replacement, line, count=1)
        if changed:
            return moved, changed
    return line, 0
