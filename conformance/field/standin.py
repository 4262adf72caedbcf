"""The field's index on loopback: its recorded pages and documents, with tiny wheels of our own.

The bytes of the real wheels are not here. A wheel is made when its project's page is first asked
for: METADATA with the dependencies of ``dependencies.json``, WHEEL with the tags of the filename,
and for a labelled one the ``variant.json`` that follows from the version's document. Hashes are
those of these bytes; a file that the field listed without a hash is listed without one here too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from support.index import Answer, Index
from support.wheels import PURE, Wheel

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Page:
    """What the field's index listed of one project.

    Attributes:
        project: its normalized name.
        documents: name of each listed ``*-variants.json`` and the recorded file with its content.
        wheels: filenames, in the order of the page.
        unhashed: versions whose wheels were listed without hashes.
    """

    project: str
    documents: dict[str, Path]
    wheels: tuple[str, ...]
    unhashed: frozenset[str]

    @property
    def versions(self) -> tuple[str, ...]:
        """Every version that has a wheel, in the order of the page."""
        return tuple(dict.fromkeys(_version(filename) for filename in self.wheels))


@cache
def pages() -> dict[str, Page]:
    """Return the recorded pages by project."""
    tree = json.loads((FOLDER / "pages.json").read_bytes())["projects"]
    return {
        project: Page(
            project,
            {name: FOLDER / "documents" / at for name, at in entry.get("documents", {}).items()},
            tuple(entry["wheels"]),
            frozenset(entry.get("versions-without-hashes", ())),
        )
        for project, entry in tree.items()
    }


class Standin(Index):
    """An index server with the recorded pages; `support.index.served` serves it.

    Projects that torch's wheels depend on and that the field's index did not have (it had them from
    PyPI) are on it as well, in the one version that is asked for.
    """

    def answer(self, path: str, headers: Mapping[str, str]) -> Answer:
        """Return the answer to a request; the files of a project appear when it is asked for."""
        project = path.strip("/").partition("/")[2].partition("/")[0]
        if project not in self.files:
            self.files.update(_files(project))
            if page := pages().get(project):
                self.unhashed.update(
                    name for name in page.wheels if _version(name) in page.unhashed
                )
        return super().answer(path, headers)


@cache
def _files(project: str) -> dict[str, dict[str, bytes]]:
    """Return contents by project and filename: of *project* alone, of none if it is not known."""
    dependencies = json.loads((FOLDER / "dependencies.json").read_bytes())
    version = dependencies["elsewhere"].get(project)
    if version is not None:
        wheel = Wheel(project, version)
        return {project: {wheel.filename: wheel.build()}}
    page = pages().get(project)
    if page is None:
        return {}
    files = {name: path.read_bytes() for name, path in page.documents.items()}
    documents = {_version(name): json.loads(data) for name, data in files.items()}
    requires = dependencies["requires"].get(project, {})
    for filename in page.wheels:
        name, version, *rest = filename.removesuffix(".whl").split("-")
        build = rest.pop(0) if rest[0][0].isdigit() else ""
        tag, label = "-".join(rest[:3]), rest[3] if len(rest) > 3 else None
        wheel = Wheel(
            name,
            version,
            label,
            tag or PURE,
            tuple(requires.get(version, ())),
            None if label is None else variant_json(documents[version], label),
            build_tag=build,
        )
        files[filename] = wheel.build()
    return {project: files}


def variant_json(document: dict[str, Any], label: str) -> dict[str, Any]:
    """Return the ``variant.json`` of the wheel with *label*, as a build backend would write it."""
    return {**document, "variants": {label: document["variants"][label]}}


def _version(filename: str) -> str:
    return filename.split("-")[1]
