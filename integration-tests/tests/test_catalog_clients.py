"""The shipped catalogue on a stand-in of the places it names: the same choice in every client.

The table says what each machine should get, judged by hand; the clients get nothing but the
catalogue, mirrors that lead to the stand-in, and a platform file.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from platform import machine as machine_name
from urllib.parse import unquote

import httpx
import pytest
from packaging.utils import canonicalize_name
from packaging.version import Version

import variants_catalog
from pep_variants._formats import toml
from support.catalog_places import add_cupy
from support.choices import by_pip, by_resolve, by_uv_lock
from support.environments import PIPS, Environments
from support.people import Person, programs_of
from support.proxies import running_proxy
from support.published_builds import LINUX, MAC, Field, page_path, published, standing_in
from support.uvs import Machine
from variants_catalog._catalogs import DirectoryCatalog
from variants_catalog.entries import CatalogProject, CatalogVariant, target
from variants_proxy._server.landing import Address
from variants_proxy.settings import Settings, Upstream

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
    found = published(**{name: [text] for name, text in VERSIONS.items()})
    add_cupy(found.index, LINUX, mac=MAC)
    with standing_in(found):
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

    def resolve(self) -> Installed:
        """Return what ``variants resolve`` takes."""
        index = self.field.index.url
        (tree,) = by_resolve(self.folder, *VERSIONS, "-i", index, *self.options)
        return {item["name"]: (item["version"], item["url"]) for item in tree["packages"]}

    def pip(self, *, shim: bool) -> Installed:
        """Return what pip would install: with the shim, or from the index proxy."""
        make = self.environments.patched if shim else self.environments.plain
        environment = make("{}.{}".format(*sys.version_info), PIPS[-1] if shim else PIPS[0])
        url = self.field.index.url if shim else f"{self.proxy}/p/{self.platform}/simple/"
        options = ("--ignore-installed", "-i", url, *(self.options if shim else ()))
        return by_pip(environment, self.folder, *options, *VERSIONS).packages

    def uv(self) -> Installed:
        """Return what uv locks for this platform."""
        url = self.field.index.url
        return by_uv_lock(self.machine, url, VERSIONS, *self.options).packages

    def locked(self, name: str, lock: str) -> Installed:
        """Return what another tool locks from the index proxy."""
        mine = Person(self.folder / "mine", programs_of(self.environments, name))
        projects = ("\n" if name == "pip-tools" else " ").join(VERSIONS)
        mine.paste(name, Address(self.proxy, self.platform, projects))
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
                    # Those for this platform first: others have builds of their own.
                    [
                        file["hash"].removeprefix("sha256:")
                        for file in sorted(
                            item["files"], key=lambda file: LINUX not in file["file"]
                        )
                    ],
                )
                for item in toml.read_toml(text)["package"]
            }
        pages = map(self.field.builds.entries, self.field.builds.files)
        files = itertools.chain.from_iterable(pages)
        urls = {each["hashes"]["sha256"]: each["url"] for each in files} | self.served()
        return {
            project: (version, next((urls[each] for each in hashes if each in urls), ""))
            for project, (version, hashes) in found.items()
        }

    def served(self) -> dict[str, str]:
        """Return URLs of what the proxy changes for this platform, by SHA-256."""
        found = {}
        for name in VERSIONS:
            url = f"{self.proxy}/p/{self.platform}/simple/{name}/"
            accept = {"Accept": "application/vnd.pypi.simple.v1+json"}
            for file in httpx.get(url, headers=accept).json()["files"]:
                if LINUX in file["filename"] and file["url"].startswith(".variant/"):
                    found |= dict.fromkeys(file["hashes"].values(), file["url"])
        return found


CLIENTS: Mapping[str, Callable[[Place], Installed]] = {
    "resolve": Place.resolve,
    "pip-shim": lambda place: place.pip(shim=True),
    "pip-at-proxy": lambda place: place.pip(shim=False),
    "uv-variants": Place.uv,
    "poetry": lambda place: place.locked("poetry", "poetry.lock"),
    "pip-tools": lambda place: place.locked("pip-tools", "requirements.txt"),
    "pdm": lambda place: place.locked("pdm", "pdm.lock"),
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


@pytest.mark.skipif(
    (sys.platform, machine_name()) != ("linux", "x86_64"),
    reason="the builds are for Linux on x86_64",
)
@pytest.mark.parametrize(
    "client",
    [PIPS[0], pytest.param(PIPS[-1], marks=pytest.mark.nightly), "uv"],
)
def test_a_life_of_another_name(
    client: str, proxy: str, environments: Environments, machine: Machine, tmp_path: Path
) -> None:
    """C1, C2: one distribution owns the files of the build, in plain pip and in plain uv."""
    if client == "uv":
        environment = machine.create_environment(sys.executable)
        pip, yes = partial(machine.plain, "pip"), ()
    else:
        python = "{}.{}".format(*sys.version_info)
        environment = environments.plain(python, client).copied(tmp_path / "pip")
        pip, yes = environment.pip, ("--yes",)
    old, new, force = "14.1.0", "14.2.0", "--force-reinstall"
    gpu_12, gpu_13 = "v100-broadwell", "h100-sapphirerapids"
    for key, arguments, expected in (
        (gpu_12, (f"cupy=={old}",), f"cupy-cuda12x {old}"),
        (gpu_12, ("--upgrade", "cupy"), f"cupy-cuda12x {new}"),
        (gpu_13, (force, "cupy"), f"cupy-cuda13x {new}"),
        (gpu_12, (force, "cupy"), f"cupy-cuda12x {new}"),
    ):
        done = pip("install", "--index-url", f"{proxy}/p/{key}/simple/", *arguments)
        assert done.code == 0, done
        (owner,) = environment.site_packages.glob("cupy*.dist-info")
        assert "cupy/__init__.py," in (owner / "RECORD").read_text()
        assert environment.run("-c", "import cupy; print(cupy.BUILD)").out.strip() == expected
    done = pip("uninstall", *yes, "cupy")
    assert done.code == 0, done
    assert not list(environment.site_packages.glob("cupy*"))
