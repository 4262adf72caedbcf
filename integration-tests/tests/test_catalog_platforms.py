"""One label of a catalogue with other properties on other platforms: the same in every client."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from support.catalog_places import add, entry, place_url
from support.choices import by_pip, by_resolve
from support.environments import PIPS, Environments
from support.index import Index
from support.proxies import running_proxy
from support.published_builds import ARM, LINUX, Builds, Field, standing_in
from support.uvs import Machine
from support.wheels import PURE, Wheel
from variants_proxy._key import Machine as Described
from variants_proxy._key import encode
from variants_proxy.settings import Settings, Upstream

ARCHITECTURES = {"x86_64": ("75", "80"), "aarch64": ("80", "90")}
MEASURED = {cpu: f"app-1.0-py3-none-manylinux_2_17_{cpu}.whl" for cpu in ARCHITECTURES}
T4, A100 = "7.5", "8.0"
CHOSEN = {
    ("x86_64", T4): "1.0+cu130",
    ("aarch64", T4): "1.0+cpu",
    ("aarch64", A100): "1.0+cu130",
}
PROJECTS = ("app", "pure")
"""One has a wheel for each platform, the other a wheel for any platform."""

Versions = dict[str, str]


@pytest.fixture(scope="module")
def field() -> Iterator[Field]:
    found = Field(Index(), Builds())
    for place in ("cu130", "cpu"):
        for tag in (LINUX, ARM):
            add(found.builds, place, Wheel("app", f"1.0+{place}", tag=tag))
        add(found.builds, place, Wheel("pure", f"1.0+{place}", tag=PURE))
    with standing_in(found):
        yield found


@pytest.fixture(scope="module")
def catalog(field: Field, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A directory with entries of both projects."""
    folder = tmp_path_factory.mktemp("catalog")
    tables = []
    for cpu, found in ARCHITECTURES.items():
        archs = [f"nvidia :: sm_arch :: {each}_real" for each in found]
        tables.append(
            '[[variant]]\nlabel = "cuda13.0"\nlocal = "cu130"\n'
            f'index = "{place_url(field.builds, "cu130")}"\n'
            f'platforms = ["manylinux_2_17_{cpu}"]\n'
            f"properties = {['nvidia :: cuda_version_lower_bound :: 13.0', *archs]}\n"
            f'measured = [{{ file = "{MEASURED[cpu]}", sha256 = "{"0" * 64}", '
            'date = "2026-11-29" }]\n'
        )
    index = place_url(field.builds, "cpu")
    tables.append(f'[[variant]]\nlabel = "null"\nindex = "{index}"\nlocal = "cpu"\n')
    for name in PROJECTS:
        (folder / f"{name}.toml").write_text(entry(name, tables))
    return str(folder)


@dataclass(frozen=True)
class Place:
    """A client, and the machine that it chooses for."""

    field: Field
    catalog: str
    cpu: str
    gpu: str
    environments: Environments
    machine: Machine
    proxy: str

    @property
    def facts(self) -> str:
        return f"cuda=13.0,sm={self.gpu}"

    @property
    def options(self) -> tuple[str, str]:
        return f"--variant-catalog={self.catalog}", f"--variant-platform={self.facts}"

    def resolve(self) -> Versions:
        where = ("-i", self.field.index.url, f"--python-platform=linux-{self.cpu}")
        (tree,) = by_resolve(self.machine.work, *PROJECTS, *where, *self.options)
        return {item["name"]: item["version"] for item in tree["packages"]}

    def pip(self, *, shim: bool) -> Versions:
        make = self.environments.patched if shim else self.environments.plain
        environment = make("{}.{}".format(*sys.version_info), PIPS[-1] if shim else PIPS[0])
        target = str(self.machine.work / "there")
        where = [f"--platform=manylinux_2_17_{self.cpu}", "--only-binary=:all:", "--target", target]
        where += ["-i", self.field.index.url, *self.options] if shim else ["-i", self.page("")]
        return by_pip(environment, self.machine.work, *where, *PROJECTS).versions

    def uv(self) -> Versions:
        machine = self.machine.with_environ({"UV_DEFAULT_INDEX": self.field.index.url})
        names = machine.work / "names.in"
        names.write_text("\n".join(PROJECTS))
        where = f"--python-platform={self.cpu}-unknown-linux-gnu"
        done = machine.run(*self.options, "pip", "compile", "-q", where, str(names))
        assert done.code == 0, done
        pins = (line.split("==") for line in done.out.splitlines() if "==" in line)
        return {name: version.split()[0] for name, version in pins}

    def page(self, name: str) -> str:
        described = Described(name=self.facts, target=f"linux-{self.cpu}")
        return f"{self.proxy}/p/{encode(described)}/simple/{name}"


CLIENTS: dict[str, Callable[[Place], Versions]] = {
    "resolve": Place.resolve,
    "pip-shim": lambda place: place.pip(shim=True),
    "uv-variants": Place.uv,
    "pip-at-proxy": lambda place: place.pip(shim=False),
}


@pytest.fixture(scope="module")
def proxy(field: Field, catalog: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    upstreams = (Upstream("main", field.index.url),)
    with running_proxy(
        Settings(upstreams, tmp_path_factory.mktemp("proxy"), catalog=catalog)
    ) as url:
        yield url


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("cpu", "gpu"), CHOSEN)
def test_a_choice(
    client: str,
    cpu: str,
    gpu: str,
    field: Field,
    catalog: str,
    environments: Environments,
    machine: Machine,
    proxy: str,
) -> None:
    place = Place(field, catalog, cpu, gpu, environments, machine, proxy)
    assert CLIENTS[client](place) == dict.fromkeys(PROJECTS, CHOSEN[cpu, gpu])


def test_a_machine_of_a_system_that_is_not_known(proxy: str) -> None:
    """A page for it has for each platform what fits there."""
    accept = {"Accept": "application/vnd.pypi.simple.v1+json"}
    for gpu in (T4, A100):
        page = httpx.get(f"{proxy}/p/cuda=13.0,sm={gpu}/simple/app/", headers=accept).json()
        names = {file["filename"] for file in page["files"]}
        wanted = {
            f"app-{CHOSEN.get((cpu, gpu), '1.0+cu130')}-{tag}.whl"
            for cpu, tag in (("x86_64", LINUX), ("aarch64", ARM))
        }
        assert names == wanted


@pytest.mark.parametrize("project", PROJECTS)
@pytest.mark.parametrize("cpu", ARCHITECTURES)
def test_what_a_label_rests_on(
    project: str, cpu: str, field: Field, catalog: str, tmp_path: Path
) -> None:
    """Explained is the wheel that was read for the platform."""
    words = ["explain", project, "-i", field.index.url, f"--variant-catalog={catalog}"]
    words += [f"--python-platform=linux-{cpu}", "--platform=cuda=13.0,sm=8.0"]
    program = Path(sys.executable).with_name("variants")
    done = subprocess.run([program, *words], capture_output=True, cwd=tmp_path, check=True)
    assert f"GPU code of cuda13.0: read from {MEASURED[cpu]} on" in done.stdout.decode()
