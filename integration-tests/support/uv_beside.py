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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .certificates import certified
from .environments import Environment, Environments, Result
from .index import Answer, Index, served
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


@dataclass(frozen=True)
class Place:
    """Indexes, and a folder for machines of three kinds: plain uv, with variants and without."""

    folder: Path
    environments: Environments
    index: Index
    urls: Mapping[str, str]
    copies: Mapping[str, Index]

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
        if kind == "with":
            environ |= CUDA_12_8
        places = {"bin": program.parent, "ours": ours.parent, "PATH": os.environ["PATH"]}
        environ = {name: self.filled(text, **places) for name, text in environ.items()}
        return Machine(program, ours, home, work, environ)

    def filled(self, text: str, **more: object) -> str:
        """Return *text* with what stands in braces replaced."""
        for name, value in {**self.urls, **more}.items():
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
    more = {name: Index() for name in ("url", "other", "links", "newer", "dated", "denied")}
    more["guarded"] = Index(credentials="user:pass word")
    secure = Index()
    for index, name, version in (
        (more["other"], "extra", "1.0"),
        (more["links"], "linked", "1.0"),
        (more["newer"], "plain", "9.0"),
        (more["newer"], "always", "1.0"),
        (more["guarded"], "guarded", "1.0"),
        (secure, "secured", "1.0"),
        (more["dated"], "old", "1.0"),
        (more["dated"], "old", "2.0"),
    ):
        index.add_wheel(Wheel(name, version), metadata_file=True)
    for version, year in (("1.0", 2024), ("2.0", 2026)):
        more["dated"].attributes[f"old-{version}-py3-none-any.whl"] = {
            "upload-time": f"{year}-01-01T00:00:00Z"
        }
    more["denied"].faults[""] = lambda: Answer(403, b"no")
    keyring = folder / "keyring-bin" / "keyring"
    keyring.parent.mkdir()
    keyring.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "if '--mode' in sys.argv: print('user')\nif 'get' in sys.argv: print('pass word')\n"
    )
    keyring.chmod(0o755)
    with ExitStack() as stack:
        for index in more.values():
            stack.enter_context(served(index))
        stack.enter_context(served(secure, certified(folder / "certificates").context))
        urls = {name: index.url.rstrip("/") for name, index in more.items()}
        urls |= {
            "links": more["links"].links_url,
            "userless": urls["guarded"].replace("://", "://user@"),
            "secure": secure.url.rstrip("/"),
            "secure_host": secure.url.split("/")[2],
            "keyring": str(keyring.parent),
        }
        copies = {"plain": without, "without": without, "with": with_variants}
        yield Place(folder, environments, more["url"], urls, copies)


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
    place.index.files = place.copies[kind].files
    place.index.metadata_files = place.copies[kind].metadata_files
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
    run = machine.plain if kind == "plain" else machine.run
    arguments = form.plain if kind == "plain" and form.plain else form.arguments
    for before in form.before:
        done = run(*map(place.filled, before), cwd=work / form.cwd)
        assert done.code == 0, done
    done = run(*map(place.filled, arguments), cwd=work / form.cwd)
    return Outcome(done, files_of(work), installed_in(work))


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the contents of every text file that is in no environment, and whether it has a cache.

    The cache is `kept`, beside which ours is.
    """
    found = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".venv" not in path.parts and path.suffix != ".whl"
    }
    kept = {"kept": b""} if any(name.startswith("kept") for name in found) else {}
    return {name: data for name, data in found.items() if not name.startswith("kept")} | kept


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
