"""Cases of the corpus, as they are written and with what follows from it."""

from __future__ import annotations

import fnmatch
import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from . import FOLDER

CASES = FOLDER / "cases"
SCHEMA = FOLDER / "case.schema.json"
DEPENDENCY_VERSION = "1.0"
"""Version of the projects that `requires` of a document case names, unless it pins another."""


@dataclass(frozen=True)
class Case:
    """One case.

    Attributes:
        id: ``AREA/TOPIC/NAME``.
        tree: what the file says, see ``case.schema.json``.
        family: name of the generator for generated cases, otherwise empty.
    """

    id: str
    tree: Mapping[str, Any]
    family: str = ""

    @property
    def area(self) -> str:
        """Folder of the case."""
        return self.id.partition("/")[0]

    @property
    def form(self) -> str:
        """``filename``, ``steps``, ``lock``, ``index`` or ``document``."""
        forms = (form for form in ("filename", "steps", "lock", "index") if form in self.tree)
        return next(forms, "document")

    @property
    def expect(self) -> Mapping[str, Any]:
        """What is expected, as written."""
        expect: Mapping[str, Any] = self.tree["expect"]
        return expect

    @property
    def is_installable(self) -> bool:
        """Whether an installer can be given it."""
        return self.form != "filename" and self.tree.get("install") is not False

    @property
    def project(self) -> str:
        """Project of a document case."""
        return str(self.tree.get("project", "gpu"))

    @property
    def is_one_of_many(self) -> bool:
        """Whether it was generated or recorded, not written by hand."""
        return bool(self.family) or self.area == "field"

    @property
    def version(self) -> str:
        """Version of a document case."""
        return str(self.tree.get("version", "1.0"))

    @property
    def stem(self) -> str:
        """Project and version of a document case, as filenames start with them."""
        return f"{self.project.replace('-', '_')}-{self.version}"

    @property
    def needs(self) -> Sequence[str]:
        """What an installer has to know to run it."""
        return tuple(self.tree.get("needs", ()))

    @functools.cached_property
    def documents(self) -> tuple[bytes, ...]:
        """The documents of a document case."""
        if "document-text" in self.tree:
            return (self.tree["document-text"].encode("utf-8", "surrogateescape"),)
        if "document-ref" in self.tree:
            return ((FOLDER / self.tree["document-ref"]).read_bytes(),)
        documents = self.tree.get("documents") or [self.tree["document"]]
        return tuple(json.dumps(document).encode() for document in documents)

    @property
    def chosen(self) -> str | None:
        """The label that a document case expects, "" for the non-variant wheel, None for nothing.

        Raises:
            KeyError: the case does not say.
        """
        if "chosen" in self.expect:
            return self.expect["chosen"]  # type: ignore[no-any-return]
        order = self.expect["order"]
        if order:
            return str(order[0])
        return "" if self.tree.get("plain") else None

    @property
    def installed(self) -> Mapping[str, str] | None:
        """What is expected to be installed, by project; None if the installation has to fail."""
        if "installed" in self.expect:
            return self.expect["installed"]  # type: ignore[no-any-return]
        if self.form != "document":
            return None
        chosen = self.chosen
        if chosen is None:
            return None
        found = {self.project: f"{self.version}-{chosen}" if chosen else self.version}
        for line in self.expect.get("requires", self.tree.get("requires", ())):
            marker = Requirement(line).marker
            if marker is None or marker.evaluate():
                found[dependency(line)] = pinned(line)
        return found


def dependency(requirement: str) -> str:
    """Return the name of a dependency, as filenames have it."""
    return canonicalize_name(Requirement(requirement.partition(";")[0]).name).replace("-", "_")


def pinned(requirement: str) -> str:
    """Return the version in which a dependency exists on the index of a document case."""
    parsed = Requirement(requirement.partition(";")[0])
    for specifier in parsed.specifier:
        if specifier.operator == "==" and "*" not in specifier.version:
            return specifier.version
    return DEPENDENCY_VERSION


def read_file(path: Path) -> list[Case]:
    """Return the cases in the file *path*."""
    tree = json.loads(path.read_text("utf-8"))
    topic = path.relative_to(CASES).with_suffix("").as_posix()
    family = tree.get("family", {}).get("generator", "")
    return [Case(f"{topic}/{case['name']}", case, family) for case in tree["cases"]]


def case_files() -> list[Path]:
    """Return the files of the corpus, sorted."""
    return sorted(CASES.rglob("*.json"))


def read_cases(patterns: Sequence[str] = ()) -> dict[str, Case]:
    """Return cases by id, in the order of the files: those that match, all without *patterns*."""
    found: dict[str, Case] = {}
    for case in (case for path in case_files() for case in read_file(path)):
        if case.id in found:
            raise ValueError(f"{case.id}: there are two cases of this id")
        found[case.id] = case
    return {name: case for name, case in found.items() if not patterns or matches(name, patterns)}


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a case's id matches one of *patterns*: globs, or what ids begin with."""
    return any(fnmatch.fnmatchcase(name, item) or name.startswith(f"{item}/") for item in patterns)
