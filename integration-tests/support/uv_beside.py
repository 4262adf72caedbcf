"""uv-variants beside plain uv: the same command in equal folders, against the same URLs.

The index has two copies: one without variants, and one where `app` has some instead of a plain
wheel. Which of them is served is switched between commands.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .environments import Environment, Environments, Result
from .index import Index, served
from .projects import CUDA_12_8, app_index
from .uv_forms import Form
from .uvs import Machine, downloaded_uv, uv_variants
from .wheels import Wheel

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

OF_VARIANTS = {"for-gpu", "for-cpu", "for-cu128", "for-128", "never"}
"""What `app` requires because of a variant only."""


@dataclass
class Place:
    """Indexes at two URLs, which have variants or not, and what was found for every form."""

    folder: Path
    environments: Environments
    index: Index
    other: Index
    links: Index
    copies: Mapping[str, Mapping[str, dict[str, bytes]]]
    metadata: Mapping[str, Mapping[str, bytes]]
    more: dict[str, str] = field(default_factory=dict)
    rows: list[str] = field(default_factory=list)

    def machine(self, kind: str, uv: str, work: Path, form: Form) -> Machine:
        """Return a machine of that kind: what it keeps is its own."""
        home = self.folder / kind
        home.mkdir(exist_ok=True)
        program = downloaded_uv(uv, self.environments.wheelhouse)
        ours = uv_variants(self.environments.folder)
        environ = {"UV_PYTHON": sys.executable, "XDG_CONFIG_HOME": str(work.parent / "config")}
        if form.default_index:
            environ["UV_DEFAULT_INDEX"] = "{url}"
        environ |= form.environ
        places = {"bin": program.parent, "ours": ours.parent, "PATH": os.environ["PATH"]}
        environ = {name: self.filled(text, **places) for name, text in environ.items()}
        return Machine(program, ours, home, work, environ)

    def filled(self, text: str, **more: object) -> str:
        """Return *text* with what stands in braces replaced."""
        places = {"url": self.index.url.rstrip("/"), "other": self.other.url.rstrip("/"),
                  "links": self.links.links_url, **self.more, **more}  # fmt: skip
        for name, value in places.items():
            text = text.replace("{" + name + "}", str(value))
        return text


@contextmanager
def places(environments: Environments, folder: Path) -> Iterator[Place]:
    """Serve the indexes; yield where the commands run."""
    with_variants, without = app_index(metadata_file=True), app_index(metadata_file=True)
    del without.files["app"]
    without.add_wheel(Wheel("app", "1.0", requires=("always",)), metadata_file=True)
    for copy in (with_variants, without):
        copy.add_wheel(Wheel("plain", "1.0", requires=("always",)), metadata_file=True)
    other, links = Index(), Index()
    other.add_wheel(Wheel("extra", "1.0"))
    links.add_wheel(Wheel("linked", "1.0"))
    index = Index()
    with ExitStack() as stack:
        for server in (index, other, links):
            stack.enter_context(served(server))
        found = Place(
            folder, environments, index, other, links,
            {"without": without.files, "with": with_variants.files},
            {"without": without.metadata_files, "with": with_variants.metadata_files},
        )  # fmt: skip
        yield found


@dataclass(frozen=True)
class Outcome:
    """What a form did: how it ended, and what is in the folder."""

    result: Result
    files: Mapping[str, bytes]
    installed: frozenset[str]

    @property
    def remarks(self) -> str:
        """What is on stderr, without times, and without what depends on caches."""
        text = re.sub(r"\b[\d.]+(ms|s|µs)\b", "TIME", self.result.err)
        return re.sub(r"(?m)^Prepared .*\n", "", text)


def outcome(place: Place, form: Form, uv: str, kind: str) -> Outcome:
    """Run *form* in a fresh folder: with plain uv, or with uv-variants and a copy of the index."""
    copy = "with" if kind == "with" else "without"
    place.index.files = dict(place.copies[copy])
    place.index.metadata_files = dict(place.metadata[copy])
    folder = place.folder / "now"  # the same one for all: its name is in what uv prints
    shutil.rmtree(folder, ignore_errors=True)
    work = folder / "work"
    (work / form.cwd).mkdir(parents=True)
    for name, text in form.files.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir()
            wheel = Wheel("linked", "1.0")
            (path / wheel.filename).write_bytes(wheel.build())
        else:
            path.write_bytes(place.filled(text).removeprefix("\r").encode())
    if form.config:
        (folder / "config" / "uv").mkdir(parents=True)
        (folder / "config" / "uv" / "uv.toml").write_text(place.filled(form.config))
    machine = place.machine(kind, uv, work, form)
    if kind == "with":
        machine = machine.with_environ(CUDA_12_8)
    run = machine.plain if kind == "plain" else machine.run
    arguments = form.plain if kind == "plain" and form.plain else form.arguments
    for before in form.before:
        done = run(*map(place.filled, before), cwd=work / form.cwd)
        assert done.code == 0, done
    done = run(*map(place.filled, arguments), cwd=work / form.cwd)
    return Outcome(done, files_of(work), installed_in(work))


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the contents of every text file that is not in an environment."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".venv" not in path.parts and path.suffix != ".whl"
    }


def installed_in(folder: Path) -> frozenset[str]:
    """Return names and versions in the environment of the project, but for `OF_VARIANTS`."""
    if not (folder / ".venv").is_dir():
        return frozenset()
    found = Environment(folder / ".venv").site_packages.glob("*.dist-info")
    names = (path.name.removesuffix(".dist-info").rpartition("-") for path in found)
    return frozenset(
        f"{name}=={version}"
        for name, _, version in names
        if name.replace("_", "-") not in OF_VARIANTS
    )


def without_variants(lock: bytes) -> tuple[Any, list[str]]:
    """Return what a lock says but for variants of `app`, and the URLs of its wheels of `app`."""
    tree = tomllib.loads(lock.decode())
    urls = []
    packages = []
    for package in tree.get("package", []):
        if package["name"] == "app":
            urls = [wheel["url"] for wheel in package.pop("wheels")]
            package["dependencies"] = [
                item for item in package["dependencies"] if item["name"] not in OF_VARIANTS
            ]
        if package["name"] not in OF_VARIANTS:
            packages.append(package)
    tree["package"] = packages
    return tree, urls
