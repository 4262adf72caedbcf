"""The same projects with variants, without them, and with broken metadata.

In every place where pip finds wheels: indexes, directories, files, URLs, requirements, lock files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import tomli_w

from .index import Index, served
from .projects import app, cuda
from .wheels import Release, SourceDistribution, Wheel

KINDS = ("variants", "plain", "broken")
DEPENDENCIES = ("always", "for-gpu", "for-cpu", "for-cu128", "for-128", "never", "more")
CREDENTIALS = "user:secret"
VARIANTS = cuda("12.6", "12.8", "13.0")

PROJECTS = (
    Wheel("root", "1.0", requires=("left>=1", "right[more]>=1; python_version >= '3'")),
    Wheel("left", "1.0", requires=("shared<2",)),
    Wheel("left", "2.0", requires=("shared>=2",)),
    Wheel("right", "1.0", requires=("shared<2", "extra; extra == 'more'"), extras=("more",)),
    Wheel("shared", "1.0"),
    Wheel("shared", "1.5", build_tag="1local"),
    Wheel("shared", "1.5", build_tag="2local"),
    Wheel("shared", "2.0"),
    Wheel("extra", "1.0"),
    Wheel("conflicting", "1.0", requires=("left>=2", "right")),
    Wheel("early", "1.0.dev1"),
    Wheel("pulled", "1.0"),
    Wheel("pulled", "2.0"),
    Wheel("modern", "1.0"),
    Wheel("modern", "2.0"),
    Wheel("damaged", "1.0"),
    Wheel("elsewhere", "1.0", tag="cp30-cp30-win32"),
    Wheel("malformed", "1.0"),
    Wheel("malformed", "2.0", requires=("this is nothing",)),
)
"""Without variants: conflicts, and everything else that pip has an opinion on."""

LOCAL = Wheel("local", "1.0", requires=("app",))
BACKEND = f"""
import shutil

def build_editable(folder, config_settings=None, metadata_directory=None):
    shutil.copy("{LOCAL.filename}", folder)
    return "{LOCAL.filename}"
"""
PYPROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


@dataclass(frozen=True)
class World:
    """Indexes and files.

    Attributes:
        places: what stands for what in command lines.
        index: that at ``INDEX``.
    """

    places: dict[str, str]
    index: Index


@contextmanager
def world(kind: str, folder: Path) -> Iterator[World]:
    """Serve a world of `KINDS`, with its files below *folder*.

    Its places: ``INDEX``, ``HTML``, ``SECRET`` and
    ``PAGE`` are URLs of indexes and of a page of links, ``LINKS`` is a directory of all files,
    ``WHEEL`` and ``URL`` are the wheel of version 1.0 (of label ``cu128`` where there are
    variants), ``FOLDER`` is a directory of requirements, constraints, a lock file and a project.
    """
    with ExitStack() as stack:
        index = stack.enter_context(served(_index(kind)))
        html = stack.enter_context(served(replace(index, api="html")))
        secret = stack.enter_context(served(replace(index, credentials=CREDENTIALS)))
        links = folder / "links"
        links.mkdir()
        for files in index.files.values():
            for name, data in files.items():
                (links / name).write_bytes(data)
        label = "-cu128" if kind == "variants" else ""
        wheel = f"app-1.0-py3-none-any{label}.whl"
        url = f"{_files(index)}/app/{wheel}"
        for name, text in {
            "requirements.txt": "app==1.0\n",
            "constraints.txt": "app<=1.0\nalways==1.0\n",
            "url.txt": f"app @ {url}\n",
            "hashes.txt": "".join(_hashed(index, name) for name in ("app", *DEPENDENCIES)),
            "pylock.toml": _locked(index, kind),
            "local/pyproject.toml": PYPROJECT,
            "local/backend.py": BACKEND,
        }.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        (folder / "local" / LOCAL.filename).write_bytes(LOCAL.build())
        places = {
            "INDEX": index.url,
            "HTML": html.url,
            "SECRET": secret.url.replace("://", f"://{CREDENTIALS}@"),
            "PAGE": index.links_url,
            "LINKS": str(links),
            "WHEEL": str(links / wheel),
            "URL": url,
            "FOLDER": str(folder),
        }
        yield World(places, index)


def _index(kind: str) -> Index:
    index = Index(ranges=True)
    requires = app().requires if kind != "plain" else ("always", "for-cpu")
    plain = Wheel("app", "1.0", requires=(*requires, "more; extra == 'more'"), extras=("more",))
    wheels = [plain]
    if kind != "plain":
        for label, properties in VARIANTS["variants"].items():
            inside = {**VARIANTS, "variants": {label: properties}}
            wheels.append(replace(plain, label=label, variant_json=inside))
        data = b"{" if kind == "broken" else json.dumps(VARIANTS).encode()
        index.add("app", "app-1.0-variants.json", data)
    for wheel in wheels:
        index.add_wheel(wheel, metadata_file=True)
    for wheel in (*(Wheel(name, "1.0") for name in DEPENDENCIES), *PROJECTS):
        index.add_wheel(wheel)
    for name, version in (("early", "2.0rc1"), ("late", "1.0")):
        if kind == "variants":
            index.add_release(Release(name, version, cuda("12.8")))
        index.add_wheel(Wheel(name, version))
    for source in (
        SourceDistribution("app", "0.5"),
        SourceDistribution("late", "2.0"),
        SourceDistribution("built", "1.0", ("app",)),
        SourceDistribution("root", "0.9"),
    ):
        index.add(source.name, source.filename, source.build())
    for files in index.files.values():
        for name in files:
            year = 2030 if name == "late-2.0.tar.gz" else 2020
            index.attributes[name] = {"upload-time": f"{year}-01-01T00:00:00Z"}
    index.attributes["pulled-2.0-py3-none-any.whl"] = {"yanked": "it is <broken>"}
    index.attributes["modern-2.0-py3-none-any.whl"] = {"requires-python": ">=9"}
    index.wrong_hashes.add("damaged-1.0-py3-none-any.whl")
    for name in ("root-not-a-version.whl", "root-1.0-py3-none-any-BadLabel.whl"):
        index.add("root", name, b"")
    index.add("root", "root-1.0-variants.json", b"{}")
    return index


def _files(index: Index) -> str:
    return index.url.replace("/simple/", "/files")


def _hashed(index: Index, name: str) -> str:
    """Return a requirement with the hashes of all its wheels."""
    digests = [
        f"--hash=sha256:{hashlib.sha256(data).hexdigest()}"
        for filename, data in index.files[name].items()
        if filename.endswith(".whl")
    ]
    return f"{name}==1.0 {' '.join(digests)}\n"


def _locked(index: Index, kind: str) -> str:
    """Return a lock file with every wheel of the project, and its metadata."""
    wheels = [
        {
            "name": name,
            "url": f"{_files(index)}/app/{name}",
            "hashes": {"sha256": hashlib.sha256(data).hexdigest()},
        }
        for name, data in index.files["app"].items()
        if name.endswith(".whl")
    ]
    package: dict[str, object] = {"name": "app", "version": "1.0", "wheels": wheels}
    if kind != "plain":
        package["variants-json"] = VARIANTS if kind == "variants" else 7
    return tomli_w.dumps({"lock-version": "1.0", "created-by": "tests", "packages": [package]})
