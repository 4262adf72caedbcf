"""The shipped catalogue on a stand-in of the places it names: the same choice in every client.

The table says what each machine should get, judged by hand; the clients get nothing but the
catalogue, mirrors that lead to the stand-in, and a platform file.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import httpx
import pytest
from packaging.pylock import Pylock
from packaging.utils import canonicalize_name
from packaging.version import Version

import variants_catalog
from pep_variants.formats import toml
from support.environments import PIPS, Environment, Environments
from support.people import Person, programs_of
from support.proxies import running_proxy
from support.published_builds import LINUX, Field, field_of, page_path, standing_in
from support.uvs import Machine
from variants_catalog.catalogs import DirectoryCatalog
from variants_catalog.entries import CatalogProject, CatalogVariant, target
from variants_proxy import Settings, Upstream
from variants_proxy.server.landing import Address

VERSIONS = {
    "torch": "2.11.0",
    "torchvision": "0.26.0",
    "torchaudio": "2.11.0",
    "cupy": "14.2.0",
    "onnxruntime": "1.31.1",
    "jax": "0.10.2",
    "tensorflow": "2.21.0",
    "cudf": "26.10.0",
    "xgboost": "3.4.0",
    "llama-cpp-python": "0.3.20",
    "vllm": "0.20.0",
    "flash-attn": "2.8.3",
}
TABLE = {
    "cpu-zen4": "null null null null null null null null null null null null",
    # Driver for CUDA 12.8, compute capability 6.1: no CUDA 13, and nothing built for 7.0 or newer.
    "gtx-1080-ti-haswell": (
        "cuda12.6 cuda12.6 cuda12.6 cuda12 null cuda12 cuda12 null null cuda12.5 null null"
    ),
    # Driver for CUDA 12.4, compute capability 7.0: RAPIDS starts here, flash-attn at 8.0.
    "v100-broadwell": (
        "cuda12.6 cuda12.6 cuda12.6 cuda12 null cuda12 cuda12 cuda12 null cuda12.5 null null"
    ),
    "h100-sapphirerapids": (  # driver for CUDA 13.0; tensorflow has one build, for CUDA 12
        "cuda13.0 cuda13.0 cuda13.0 cuda13 cuda13 cuda13 cuda12 cuda13 cuda13 cuda13.0 cuda13.0 "
        "cuda13.0_torch2.11"
    ),
    # Driver for CUDA 12.8, compute capability 10.0: the build for 12.6 has no code for it.
    "b200-sapphirerapids": (
        "cuda12.8 cuda12.8 cuda12.8 cuda12 null cuda12 cuda12 cuda12 null cuda12.5 cuda12.9 "
        "cuda12.8_torch2.11"
    ),
    "mi300x-rocm7.0": ("rocm7.2 rocm7.2 rocm7.2 rocm7.0 null null null null null null null null"),
    "rx-7900-rocm6.4": "rocm7.2 rocm7.2 rocm7.2 null null null null null null null null null",
    "arc-b580-zen3": "xpu xpu xpu null null null null null null null null null",
}
"""Labels by platform, in the order of `VERSIONS`."""

_PINNED = re.compile(r"(?ms)^([a-z0-9-]+)(?:\[[a-z0-9,-]*\])?==(\S+)(.*?)(?=^\S|\Z)")

CATALOG = DirectoryCatalog(variants_catalog.projects())

Installed = Mapping[str, tuple[str, str]]
"""Version and URL by normalized name."""


@pytest.fixture(scope="module")
def field() -> Iterator[Field]:
    """All there is, on loopback."""
    entries = [entry for name in VERSIONS if (entry := CATALOG.project(name)) is not None]
    with standing_in(field_of(entries, {name: [text] for name, text in VERSIONS.items()})) as found:
        yield found


def label(entry: CatalogProject, installed: Installed) -> str:
    """Return the label of what is *installed* of a project, ``null`` for none."""
    plain = "null"
    for item in entry.variants:
        if not item.admits(Version(VERSIONS[entry.name])):
            continue
        if item.place is not None:
            version, url = installed.get(entry.name, ("", ""))
            name = unquote(url).rpartition("/")[2]
            if name.endswith(".whl"):  # PDM leaves the local part out of its lock files
                version = name.split("-")[1]
            values = item.placeholders(Version(version)) if version else None
            if values is None:
                continue
            if page_path(entry.page(item.place)) in unquote(url):
                return re.sub(r"\{(\w+)\}", lambda match: values[match[1]], item.label)
        elif item.requires and target(item) == entry.name:
            extra = item.requires[0].partition("[")[2].partition("]")[0]
            if f"{entry.name}-{extra}-plugin" in installed:
                return item.label
        elif item.requires and (target(item) in installed or _is_of(item, installed, entry.name)):
            return item.label
        elif entry.is_own(item):
            plain = item.label
    return plain if entry.name in installed else "missing"


def _is_of(item: CatalogVariant, installed: Installed, name: str) -> bool:
    """Return whether the build of another name *item* is installed as the project *name*."""
    url = unquote(installed.get(name, ("", ""))[1])
    published = canonicalize_name(url.rpartition("/")[2].partition("-")[0])
    return published == target(item) or f"/{item.label}/" in url


@dataclass(frozen=True)
class Place:
    """Where a client runs.

    Attributes:
        field: all there is.
        platform: name of the platform.
        environments: with and without the shim.
        machine: with uv.
        proxy: URL of an index proxy.
    """

    field: Field
    platform: str
    environments: Environments
    machine: Machine
    proxy: str

    @property
    def folder(self) -> Path:
        """Working directory."""
        return self.machine.work

    @property
    def options(self) -> list[str]:
        """Options of variants, for this platform."""
        platform = f"--variant-platform={self.platform}"
        return ["--variant-catalog=default", *self.field.options, platform]


def resolve(place: Place) -> Installed:
    """Return what ``variants resolve`` puts into a lock file."""
    lock = place.folder / "pylock.toml"
    variants = Path(sys.executable).with_name("variants")
    options = ["--index-url", place.field.index.url, *place.options, "-o", str(lock)]
    subprocess.run([variants, "resolve", *VERSIONS, *options], check=True, cwd=place.folder)
    found = {}
    for package in Pylock.from_dict(toml.loads(lock.read_text("utf-8"))).packages:
        (wheel,) = package.wheels or ()
        found[str(package.name)] = (str(package.version), wheel.url or "")
    return found


def pip_shim(place: Place) -> Installed:
    """Return what pip with the shim would install."""
    environment = place.environments.patched("{}.{}".format(*sys.version_info), PIPS[-1])
    return _pip(environment, place, "-i", place.field.index.url, *place.options)


def pip_at_proxy(place: Place) -> Installed:
    """Return what pip without the shim would install from the index proxy."""
    environment = place.environments.plain("{}.{}".format(*sys.version_info), PIPS[0])
    return _pip(environment, place, "-i", f"{place.proxy}/p/{place.platform}/simple/")


def _pip(environment: Environment, place: Place, *options: str) -> Installed:
    report = place.folder / "report.json"
    done = environment.pip(
        "install", "--dry-run", "--ignore-installed", f"--report={report}", *options, *VERSIONS
    )
    assert done.code == 0, done
    return {
        canonicalize_name(item["metadata"]["name"]): (
            item["metadata"]["version"],
            item["download_info"]["url"],
        )
        for item in json.loads(report.read_text("utf-8"))["install"]
    }


def uv_variants(place: Place) -> Installed:
    """Return what uv locks for this platform."""
    (place.folder / "pyproject.toml").write_text(
        '[project]\nname = "app"\nversion = "1"\nrequires-python = ">=3.10"\n'
        f"dependencies = {json.dumps([*VERSIONS])}\n[tool.uv]\n"
        "environments = [\"sys_platform == 'linux' and platform_machine == 'x86_64'\"]\n"
        f'[[tool.uv.index]]\nurl = "{place.field.index.url}"\ndefault = true\n'
    )
    machine = place.machine.with_environ({"UV_PYTHON": sys.executable})
    done = machine.run(*place.options, "lock")
    assert done.code == 0, done
    packages = toml.loads((place.folder / "uv.lock").read_text("utf-8"))["package"]
    return {
        item["name"]: (item["version"], item["wheels"][0]["url"])
        for item in packages
        if "wheels" in item
    }


def poetry(place: Place) -> Installed:
    """Return what Poetry locks from the index proxy."""
    return _locked(place, "poetry", "poetry.lock")


def pip_tools(place: Place) -> Installed:
    """Return what pip-tools locks from the index proxy."""
    return _locked(place, "pip-tools", "requirements.txt")


def pdm(place: Place) -> Installed:
    """Return what PDM locks from the index proxy."""
    return _locked(place, "pdm", "pdm.lock")


def _locked(place: Place, name: str, lock: str) -> Installed:
    mine = Person(place.folder / "mine", programs_of(place.environments, name))
    projects = ("\n" if name == "pip-tools" else " ").join(VERSIONS)
    mine.paste(name, Address(place.proxy, place.platform, projects))
    text = (mine.folder / lock).read_text("utf-8")
    if lock.endswith(".txt"):
        found = {
            match[1]: (match[2], re.findall(r"--hash=sha256:(\w+)", match[3]))
            for match in _PINNED.finditer(text)
        }
    else:
        found = {
            item["name"]: (
                item["version"],
                [file["hash"].removeprefix("sha256:") for file in item["files"]],
            )
            for item in toml.loads(text)["package"]
        }
    urls = place.field.builds.urls | _served(place)
    return {
        project: (version, next((urls[each] for each in hashes if each in urls), ""))
        for project, (version, hashes) in found.items()
    }


def _served(place: Place) -> dict[str, str]:
    """Return the URLs at which the proxy has what it changes for this platform, by SHA-256."""
    found = {}
    for name in VERSIONS:
        url = f"{place.proxy}/p/{place.platform}/simple/{name}/"
        page = httpx.get(url, headers={"Accept": "application/vnd.pypi.simple.v1+json"}).json()
        for file in page["files"]:
            if LINUX in file["filename"] and file["url"].startswith(".variant/"):
                found |= dict.fromkeys(file["hashes"].values(), file["url"])
    return found


CLIENTS = {
    "resolve": resolve,
    "pip-shim": pip_shim,
    "pip-at-proxy": pip_at_proxy,
    "uv-variants": uv_variants,
    "poetry": poetry,
    "pip-tools": pip_tools,
    "pdm": pdm,
}
NO_COMPARISON = tuple(name for name in CLIENTS if name not in ("resolve", "pip-shim"))
"""Clients that cannot compare what a build is against with what is installed of it."""


@pytest.fixture(scope="module")
def proxy(field: Field, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an index proxy with the catalogue."""
    mirrors = dict(each.split("=", 1) for each in field.mirrors)
    settings = Settings(
        (Upstream("main", field.index.url),),
        tmp_path_factory.mktemp("proxy"),
        catalog="default",
        catalog_mirrors=mirrors,
    )
    with running_proxy(settings) as url:
        yield url


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run every client on every platform in ``make test-matrix``, else each on some of them."""
    if metafunc.function is not test_a_choice:
        return
    full = metafunc.config.getoption("full_matrix")
    cases = [
        (client, platform)
        for number, client in enumerate(CLIENTS)
        for place, platform in enumerate(TABLE)
        if full or client == "resolve" or (place - number) % len(CLIENTS) == 0
    ]
    metafunc.parametrize(("client", "platform"), cases, ids=["-".join(case) for case in cases])


def test_a_choice(
    client: str,
    platform: str,
    field: Field,
    environments: Environments,
    machine: Machine,
    proxy: str,
) -> None:
    installed = CLIENTS[client](Place(field, platform, environments, machine, proxy))
    found = {
        name: label(entry, installed)
        for name in VERSIONS
        if (entry := CATALOG.project(name)) is not None
    }
    expected = dict(zip(VERSIONS, TABLE[platform].split(), strict=True))
    if client in NO_COMPARISON:
        expected["flash-attn"] = "null"
    assert found == expected
