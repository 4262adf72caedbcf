"""Build hook: puts everything that pip imports of us into the wheel.

pip must keep working whatever the user installs, upgrades or removes beside it, so the shim has
no runtime dependency: the engine, the resolver extension and the libraries they use are copied
into ``pep_variants_shim/_vendor``, and imports of them rewritten to that place in all of our own
and their code. The libraries come from the build environment, pinned in pyproject.toml and checked
against ``vendor.toml``: build requirements cannot have hashes. `resolvelib` is the one that pip
resolves with.

What is bundled is listed in ``_vendor/vendor.txt``, and in the dist-info folder as a CycloneDX SBOM
(PEP 770).
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VENDOR = "pep_variants_shim._vendor"

# Place in the wheel to our source, relative to this file. The sdist has copies of what it bundles
# of other distributions, see pyproject.toml.
SOURCES = {
    "pep_variants_shim": ("src/pep_variants_shim",),
    "pep_variants_shim/_vendor/pep_variants": (
        "bundled/pep_variants",
        "../packages/pep-variants/src/pep_variants",
    ),
    "pep_variants_shim/_vendor/variants_plugins": (
        "bundled/variants_plugins",
        "../packages/variants-plugins/src/variants_plugins",
    ),
    "pep_variants_shim/_vendor/resolvelib_variants": (
        "bundled/resolvelib_variants",
        "../resolver-ext/src/resolvelib_variants",
    ),
    "pep_variants_shim/_vendor/variants_catalog": (
        "bundled/variants_catalog",
        "../packages/variants-catalog/src/variants_catalog",
    ),
}
ENTRIES = "pep_variants_shim/_vendor/variants_catalog/projects/"
LIBRARIES: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("vendor.toml").read_text("utf-8")
)
"""What is bundled, by the name of the distribution, see vendor.toml."""
OWN = ("pep-variants", "variants-plugins", "resolvelib-variants", "variants-catalog")
"""Distributions of this project that are bundled as well, of the same version and licence."""
MODULES = {library["module"]: project for project, library in LIBRARIES.items()}
# Import name to where it is found inside pip.
NAMES = {
    **{name: f"{VENDOR}.{name}" for name in (*(name.replace("-", "_") for name in OWN), *MODULES)},
    "resolvelib": "pip._vendor.resolvelib",
}
# Neither code nor data that is read at run time.
SKIPPED = re.compile(
    r"(^|/)(tests?|__pycache__)/|\.(pyc|so|pyd)$|/archspec/(cli|__main__)\.py$|/example\.py$"
    # pip has its own way to indexes, and its own resolver.
    r"|/resolvelib_variants/resolution/"
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
_SBOM = "pep-variants-shim.cdx.json"


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
            elif place.startswith(ENTRIES) and source.suffix == ".toml":
                # Parsed once, not by every pip.
                target, place = target.with_suffix(".json"), f"{place.removesuffix('.toml')}.json"
                tree = tomllib.loads(source.read_text("utf-8"))
                target.write_text(json.dumps(tree, ensure_ascii=False), "utf-8")
            else:
                target.write_bytes(source.read_bytes())
            build_data["force_include"][str(target)] = place
        pins = [f"{project}=={item['version']}" for project, item in LIBRARIES.items()]
        for name, text in {
            "__init__.py": f'"""Bundled libraries."""\n\nVERSION = "{self.metadata.version}"\n',
            "vendor.txt": "\n".join(pins) + "\n",
        }.items():
            path = self._folder / name
            path.write_text(text, "utf-8")
            build_data["force_include"][str(path)] = f"{VENDOR.replace('.', '/')}/{name}"
        bill = self._folder / _SBOM
        bill.write_text(json.dumps(sbom(self.metadata.version), indent=2) + "\n", "utf-8")
        build_data["sbom_files"].append(str(bill))

    def finalize(self, version: str, build_data: dict[str, Any], artifact: str) -> None:  # noqa: ARG002
        """Remove the temporary folder."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _files(self) -> Iterator[tuple[str, Path]]:
        """Yield place in the wheel and source of every file, sorted."""
        root = Path(self.root)
        yield "pep_variants_shim/LICENSE", root / "licenses" / "LICENSE"
        for place, candidates in SOURCES.items():
            folder = next(path.resolve() for name in candidates if (path := root / name).is_dir())
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    yield f"{place}/{path.relative_to(folder).as_posix()}", path
        licenses = root / "licenses"
        for project, library in LIBRARIES.items():
            files = dict(installed_files(project, library["module"]))
            check(project, {place: path.read_bytes() for place, path in files.items()})
            for place, path in files.items():
                yield f"pep_variants_shim/_vendor/{place}", path
            for path in sorted((licenses / project).iterdir()):
                yield f"pep_variants_shim/_vendor/licenses/{project}/{path.name}", path
            check_licenses(project, licenses / project)


def installed_files(project: str, module: str) -> Iterator[tuple[str, Path]]:
    """Yield path and place of the files of *project* in this environment that are bundled."""
    dist = distribution(project)
    for file in sorted(dist.files or ()):
        text = file.as_posix()
        if (text == f"{module}.py" or text.startswith(f"{module}/")) and not SKIPPED.search(
            f"/{text}"
        ):
            yield text, Path(str(dist.locate_file(file)))


def check(project: str, files: Mapping[str, bytes]) -> None:
    """Check that *files* are those of the release of *project* in vendor.toml.

    Raises:
        ValueError: they are not.
    """
    digest = hashlib.sha256()
    for place, data in sorted(files.items()):
        digest.update(f"{place}\0{hashlib.sha256(data).hexdigest()}\n".encode())
    if digest.hexdigest() != LIBRARIES[project]["files"]:
        raise ValueError(
            f"{project} {distribution(project).version} is not what vendor.toml says of "
            f"{project} {LIBRARIES[project]['version']}: its files have the sha256 "
            f"{digest.hexdigest()}. Pin that version, or review the files and change vendor.toml"
        )


def check_licenses(project: str, folder: Path) -> None:
    """Check that *folder* has the licence texts that *project* is distributed with.

    Raises:
        ValueError: one is missing or different.
    """
    dist = distribution(project)
    for file in dist.files or ():
        if _LICENSE.search(file.as_posix()):
            text = folder / file.name
            if not text.is_file() or text.read_bytes() != file.read_binary():
                raise ValueError(f"{text} is not {file} of {project} {dist.version}: copy it")


def sbom(version: str) -> dict[str, Any]:
    """Return a CycloneDX 1.6 bill of materials of the shim's *version* and what it bundles.

    Without date and serial number: the same sources give the same wheel.
    """

    def component(name: str, version: str, licence: str) -> dict[str, Any]:
        purl = f"pkg:pypi/{name}@{version}"
        return {
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": version,
            "licenses": [{"expression": licence}],
            "purl": purl,
        }

    main = component("pep-variants-shim", version, "Apache-2.0")
    parts = [component(name, version, "Apache-2.0") for name in OWN]
    parts += [
        {
            **component(project, library["version"], library["license"]),
            "hashes": [{"alg": "SHA-256", "content": library["wheel"]}],
        }
        for project, library in LIBRARIES.items()
    ]
    refs = [part["bom-ref"] for part in parts]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": main},
        "components": parts,
        "dependencies": [{"ref": main["bom-ref"], "dependsOn": refs}],
    }


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
