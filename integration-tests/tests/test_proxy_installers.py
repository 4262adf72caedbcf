"""Released installers and the index proxy: the lines that its page for people shows, as they are.

Each locks and installs the variant for a machine with a GPU, from one URL, with hashes, and knows
nothing of variants.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from pep_variants._formats import toml
from pep_variants._model.platform import Platform, Support
from support.environments import clean_environ, uv_command
from support.index import served
from support.people import Person, programs_of, seeds
from support.projects import app_index
from support.proxies import running_proxy
from variants_proxy._server.landing import Address
from variants_proxy.settings import Settings, Upstream
from variants_proxy.urls import Machine, encode

NVIDIA = Platform({"nvidia": Support({"cuda_version_lower_bound": ("12.8", "12.6")})})
GPU = encode(Machine(NVIDIA))
CPU = encode(Machine())
ON_GPU = {"app", "always", "for_gpu", "for_cu128", "for_128"}
ON_CPU = {"app", "always", "for_cpu"}


nightly = pytest.mark.nightly
LOCKS = {
    "poetry": ("poetry.lock", "poetry install --no-cache"),
    "pip-tools": ("requirements.txt", "pip-sync requirements.txt"),
    "pdm": ("pdm.lock", "pdm install --frozen-lockfile"),
}
"""The lock file, and the command that installs from it."""


@pytest.fixture(scope="module")
def proxy(tmp_path_factory) -> Iterator[str]:
    """The URL of a proxy."""
    with served(app_index()) as index:
        settings = Settings((Upstream("main", index.url),), tmp_path_factory.mktemp("cache"))
        with running_proxy(settings) as url:
            yield url


class Mine(Person):
    """A person whose project wants ``app``."""

    @property
    def installed(self) -> set[str]:
        names = {"app", "always", "never", "for_gpu", "for_cpu", "for_cu128", "for_128"}
        return {name for name in names if (self.environment.site_packages / name).is_dir()}

    @property
    def label(self) -> str:
        text = (self.environment.site_packages / "app" / "__init__.py").read_text()
        return text.partition("=")[2].strip().strip("'")

    def empty(self) -> None:
        """Uninstall everything."""
        names = [name.replace("_", "-") for name in self.installed]
        self.environment.pip("uninstall", "--yes", "--quiet", *names)
        assert not self.installed


def served_digest(proxy: str) -> str:
    """Return the SHA-256 of app's wheel for the GPU, which has its markers evaluated."""
    page = httpx.get(f"{proxy}/simple/app/", auth=(GPU, "v"), trust_env=False)
    (link,) = re.findall(r'href="([^"#]*cu128[^"#]*)', page.text)
    wheel = httpx.get(f"{proxy}/simple/app/{link}", auth=(GPU, "v"), trust_env=False)
    return hashlib.sha256(wheel.content).hexdigest()


def hashes_of_app(text: str) -> set[str]:
    """Return the hashes of ``app`` in a lock file."""
    if text.startswith("#") and "--hash=" in text:
        part = re.search(r"(?ms)^app==1\.0(.*?)# via", text)
        assert part is not None, text
        return set(re.findall(r"--hash=(\S+)", part[1]))
    packages = toml.read_toml(text)["package"]
    (app,) = (package for package in packages if package["name"] == "app")
    return {file["hash"] for file in app["files"]}


@pytest.mark.parametrize("name", LOCKS)
def test_locks_and_installs(environments, proxy, tmp_path, name):
    mine = Mine(tmp_path / "mine", programs_of(environments, name))
    mine.paste(name, Address(proxy, GPU, "app"))
    assert (mine.label, mine.installed) == ("cu128", ON_GPU)
    lock, again = LOCKS[name]
    path = mine.folder / lock
    text = path.read_text()
    digest = served_digest(proxy)
    assert hashes_of_app(text) == {f"sha256:{digest}"}
    assert GPU not in text  # it is the same for every machine
    # What is locked is installed, and nothing else that has the same name.
    mine.empty()
    mine.type(again)
    assert (mine.label, mine.installed) == ("cu128", ON_GPU)
    mine.empty()
    path.write_text(text.replace(digest, "0" * 64))
    mine.type(again, fails=True)
    assert "app" not in mine.installed


@pytest.mark.parametrize(
    "name", ["pdm", *(pytest.param(n, marks=nightly) for n in ("poetry", "pip-tools"))]
)
def test_a_machine_without_a_gpu(environments, proxy, tmp_path, name):
    mine = Mine(tmp_path / "mine", programs_of(environments, name))
    mine.paste(name, Address(proxy, CPU, "app"))
    assert (mine.label, mine.installed) == ("null", ON_CPU)


@pytest.mark.parametrize(
    ("key", "installed"),
    [(GPU, ("cu128", ON_GPU)), pytest.param(CPU, ("null", ON_CPU), marks=nightly)],
    ids=["gpu", "cpu"],
)
def test_old_pip(environments, proxy, tmp_path, key, installed):
    """It knows neither variants nor JSON pages, as a command line or in pip.conf."""
    mine = Mine(tmp_path / "mine", programs_of(environments, "old-pip"))
    command = [*uv_command(), "pip", "install", "--quiet", "--python", mine.environment.python]
    subprocess.run([*command, "pip==23.0.1"], check=True, env=clean_environ(seeds()))
    mine.programs = Path(mine.environment.python).parent
    mine.paste("pip", Address(proxy, key, "app"))
    assert (mine.label, mine.installed) == installed
    mine.empty()
    mine.variables["PIP_CONFIG_FILE"] = str(mine.folder / "pip.conf")
    mine.type("pip install --no-cache-dir app")
    assert (mine.label, mine.installed) == installed


def test_uv(proxy, tmp_path):
    mine = Mine(tmp_path / "mine", Path(uv_command()[0]).parent)
    mine.paste("uv", Address(proxy, GPU, "app"))
    assert (mine.label, mine.installed) == ("cu128", ON_GPU)
    text = (mine.folder / "uv.lock").read_text()
    assert served_digest(proxy) in text
    assert GPU not in text
