"""The same projects with variants, without them, and with broken metadata.

In every place where pip finds wheels: indexes, directories, files, URLs, requirements, lock files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import tomli_w

from .index import Index, served
from .projects import app, cuda
from .wheels import Release, SourceDistribution, Wheel

KINDS = ("variants", "plain", "broken")
DEPENDENCIES = ("always", "for-gpu", "for-cpu", "for-cu128", "for-128", "never", "more")
CREDENTIALS = "user:secret"
VARIANTS = cuda("12.6", "12.8", "13.0")

PLATFORM = """\
[metadata]
version = "0.1"
[[provider]]
namespace = "nvidia"
[provider.properties]
cuda_version_lower_bound = ["12.7", "12.6"]
"""
PYPROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "local"
version = "1.0"
dependencies = ["app"]
"""
BACKEND = """\
import os, zipfile

FILES = {
    "METADATA": "Metadata-Version: 2.1\\nName: local\\nVersion: 1.0\\nRequires-Dist: app\\n",
    "WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    "RECORD": "",
}

def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "local-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as archive:
        for file, text in FILES.items():
            archive.writestr(f"local-1.0.dist-info/{file}", text)
    return name
"""


@contextmanager
def world(kind: str, folder: Path) -> Iterator[dict[str, str]]:
    """Serve a world of `KINDS`, with its files below *folder*.

    Yields what stands for what in command lines: ``INDEX``, ``HTML``, ``SECRET`` and
    ``PAGE`` are URLs of indexes and of a page of links, ``LINKS`` is a directory of all files,
    ``WHEEL`` and ``URL`` are the wheel of version 1.0 (of label ``cu128`` where there are
    variants), ``FOLDER`` is a directory of requirements, constraints, a platform file, a lock file
    and a project.
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
            "platform.toml": PLATFORM,
            "pylock.toml": _locked(index, kind),
            "local/pyproject.toml": PYPROJECT,
            "local/backend.py": BACKEND,
        }.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        yield {
            "INDEX": index.url,
            "HTML": html.url,
            "SECRET": secret.url.replace("://", f"://{CREDENTIALS}@"),
            "PAGE": index.links_url,
            "LINKS": str(links),
            "WHEEL": str(links / wheel),
            "URL": url,
            "FOLDER": str(folder),
        }


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
    for name in DEPENDENCIES:
        index.add_wheel(Wheel(name, "1.0"))
    for name, version in (("early", "2.0rc1"), ("late", "1.0")):
        if kind == "variants":
            index.add_release(Release(name, version, cuda("12.8")))
        index.add_wheel(Wheel(name, version))
    for source in (
        SourceDistribution("app", "0.5"),
        SourceDistribution("late", "2.0"),
        SourceDistribution("built", "1.0", ("app",)),
    ):
        index.add(source.name, source.filename, source.build())
    for files in index.files.values():
        for name in files:
            year = 2030 if name == "late-2.0.tar.gz" else 2020
            index.attributes[name] = {"upload-time": f"{year}-01-01T00:00:00Z"}
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
