"""Each project of the shipped catalogue, as an export, the running proxy and a client have it.

All three read the same stand-in of the places that the catalogue names. File by file an export is
what the proxy serves to the machine, and of its files an installer takes the one that
``variants resolve`` takes; or all three say that nothing fits.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin

import httpx
import pytest
from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename
from packaging.version import Version

import variants_catalog
from support.environments import Environments, clean_environ, uv_command
from support.index import JSON
from support.proxies import running_proxy
from support.published_builds import LINUX, Field, published, standing_in
from variants_catalog._catalogs import DirectoryCatalog
from variants_catalog._entry_checks import sample_versions
from variants_proxy._choice.in_place_names import wheel_at
from variants_proxy._commands.export import export
from variants_proxy.errors import ExportError
from variants_proxy.settings import Settings, Upstream
from variants_proxy.urls import Machine

CATALOG = DirectoryCatalog(variants_catalog.projects())
PROJECTS = tuple(
    sorted(path.name.removesuffix(".toml") for path in variants_catalog.projects().iterdir())
)
MACHINES = (
    "cpu-zen4", "v100-broadwell", "h100-sapphirerapids", "b200-sapphirerapids", "mi300x-rocm7.0",
    "arc-b580-zen3",
)  # fmt: skip
SYSTEM = "linux-x86_64"
SAMPLE = ("cupy", "jax", "onnxruntime", "torch", "vllm", "xgboost")
"""Builds at a place, of another name, with an extra, and under the project's own name."""


class Listed(NamedTuple):
    """A wheel.

    Attributes:
        sha256: of its contents.
        label: that its URL has, None if it is the publisher's own.
        yanked: why no range takes it, None if they do.
    """

    sha256: str
    label: str | None
    yanked: str | None = None


Files = Mapping[str, Listed]
"""Wheels by plain filename."""


def versions(project: str) -> list[str]:
    """Return the newest of the versions that each variant of a project admits."""
    entry = CATALOG.project(project)
    assert entry is not None
    samples = [each for each in sample_versions(entry.variants) if not each.is_prerelease]
    admitted = ([each for each in samples if item.admits(each)] for item in entry.variants)
    return sorted({str(each[-1]) for each in admitted if each})


@dataclass(frozen=True)
class Place:
    """A stand-in, and a proxy before it."""

    field: Field
    settings: Settings
    proxy: str
    projects: Sequence[str]

    def of_proxy(self, machine: str, project: str) -> Files:
        """Return the wheels for Linux that the proxy serves, of equal names the variant."""
        url = f"{self.proxy}/p/{machine}/simple/{project}/"
        answer = httpx.get(url, headers={"Accept": JSON}, trust_env=False, timeout=30)
        found: dict[str, Listed] = {}
        for file in answer.json()["files"]:
            label, plain = wheel_at(file["url"]) or (None, file["filename"])
            if not _is_wheel_here(plain) or (label is None and plain in found):
                continue
            at = urljoin(url, file["url"])
            digest = file["hashes"].get("sha256")
            if at.startswith(self.proxy):
                digest = _sha256(httpx.get(at, trust_env=False, timeout=30).content)
            found[plain] = Listed(digest, label, file.get("yanked"))
        return found

    def of_export(self, machine: str, project: str, folder: Path) -> Files:
        """Return the wheels of an export; none if it says that there are none."""
        described = replace(Machine(name=machine), target=SYSTEM)
        wanted = [Requirement(project)]
        project = wanted[0].name
        try:
            asyncio.run(export(self.settings, described, wanted, folder, every_file=False))
        except ExportError as error:
            if "for this machine" not in str(error):
                raise
            return {}
        page = folder / "simple" / project
        found = {}
        for file in json.loads((page / "index.v1_json").read_text("utf-8"))["files"]:
            path, label = unquote(file["url"]), None
            if path.startswith("../../"):
                assert file["hashes"]["sha256"] == _sha256((page / path).read_bytes())
                label = path.split("/")[-2].replace("-", "") or None
            if _is_wheel_here(file["filename"]):
                digest = file["hashes"]["sha256"]
                found[file["filename"]] = Listed(digest, label, file.get("yanked"))
        return found

    def resolved(self, machine: str, project: str) -> Any:
        """Return the package that ``variants resolve`` takes, None for none."""
        variants = Path(sys.executable).with_name("variants")
        options = ("--variant-catalog=default", *self.field.options, f"--platform={machine}")
        where = ("-i", self.field.index.url, f"--python-platform={SYSTEM}", "--json")
        done = subprocess.run(
            [variants, "resolve", *where, *options, project],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            assert "fits" in done.stderr, done
            return None
        packages = json.loads(done.stdout)["resolutions"][0]["packages"]
        return next(each for each in packages if each["name"] == project)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _is_wheel_here(name: str) -> bool:
    return name.endswith((f"{LINUX}.whl", "-any.whl"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Place]:
    wanted = PROJECTS if pytestconfig.getoption("full_matrix") else SAMPLE
    described = {name: found for name in wanted if (found := versions(name))}
    found = published(**described)
    with standing_in(found):
        mirrors = dict(each.split("=", 1) for each in found.mirrors)
        settings = Settings(
            (Upstream("main", found.index.url),),
            tmp_path_factory.mktemp("cache"),
            catalog="default",
            catalog_mirrors=mirrors,
        )
        with running_proxy(settings) as url:
            yield Place(found, settings, url, tuple(described))


def _is_against_others(project: str) -> bool:
    entry = CATALOG.project(project)
    assert entry is not None
    return any("abi_dependency" in text for item in entry.variants for text in item.properties)


def newest(files: Files) -> Listed | None:
    """Return the wheel that an installer on Linux takes."""

    def rank(name: str) -> tuple[bool, Version, bool]:
        return files[name].yanked is None, parse_wheel_filename(name)[1], LINUX in name

    return files[max(files, key=rank)] if files else None


@pytest.mark.parametrize("machine", MACHINES)
def test_every_project(
    machine: str, place: Place, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    full = pytestconfig.getoption("full_matrix")
    turn = MACHINES.index(machine)
    for number, project in enumerate(place.projects):
        if not full and (number - turn) % 3:
            continue
        served = place.of_proxy(machine, project)
        exported = place.of_export(machine, project, tmp_path / project)
        assert exported == served, (machine, project)
        # Only clients know what is installed, which builds of some projects are against.
        if (not full and number != turn) or _is_against_others(project):
            continue
        package, taken = place.resolved(machine, project), newest(exported)
        assert (package is None) is (taken is None), (machine, project, package)
        if taken is None:
            continue
        same = taken.label == package["label"] if taken.label else False
        assert same or taken.sha256 == package["hashes"]["sha256"], (project, package, exported)


@pytest.mark.parametrize(
    ("wanted", "held"),
    [("torch>=2.14", 0), ("torch==2.14.*", 0), ("torch>=2.13", 2), ("torch<2.14", 0)],
)
def test_an_export_of_some_versions(wanted: str, held: int, place: Place, tmp_path: Path) -> None:
    """The order is that of the versions that are there: without a build, the newest goes first."""
    files = place.of_export("b200-sapphirerapids", wanted, tmp_path / "torch")
    assert files
    assert sum(each.yanked is not None for each in files.values()) == held


@pytest.mark.parametrize("where", ["proxy", "export"])
def test_installers_take_the_build(
    where: str, environments: Environments, combination: Any, place: Place, tmp_path: Path
) -> None:
    """Before newer releases without one, unless the requirement names such a release."""
    machine, url = "b200-sapphirerapids", f"{place.proxy}/p/b200-sapphirerapids/simple/"
    if where == "export":
        assert place.of_export(machine, "torch", tmp_path / "torch")
        url = (tmp_path / "torch" / "simple").as_uri()
    plain = environments.plain(combination.python, combination.pip)
    options = ("--dry-run", "--no-deps", "--no-cache-dir", "--python-platform=linux")
    for wanted, version in (("torch", "2.13.999999+cu129"), ("torch==999999+cpu", "999999+cpu")):
        done = plain.pip("install", *options[:3], "--index-url", url, wanted)
        assert f"Would install torch-{version}" in done.text
        uv = [*uv_command(), "pip", "install", "--python", plain.python, *options, wanted]
        environ = clean_environ({"UV_DEFAULT_INDEX": url})
        beside = subprocess.run(uv, capture_output=True, text=True, env=environ, check=True)
        assert f" + torch=={version}" in beside.stderr
        for text in (done.text, beside.stderr):
            is_told = "no build for this GPU, but torch 2.13.999999" in text
            assert is_told is (version != "2.13.999999+cu129"), text
