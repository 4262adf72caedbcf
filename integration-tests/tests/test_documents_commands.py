"""Pages whose console blocks are run, in order, as their readers type them.

The programs are real. What they would fetch from the network is a stand-in on loopback: tiny wheels
on pages laid out as those of the catalogue's places. Most pages are run nightly.
"""

from __future__ import annotations

import base64
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

import variants_catalog
from conformance.field.standin import Standin
from support.certificates import certified
from support.documents import Page, Reader
from support.environments import PIPS, ROOT
from support.index import Answer, Index, served
from support.nvidia_drivers import NVML, build_library, nvml
from support.patched_pip import patched_pip
from support.plugins import PLUGIN, acme_index
from support.projects import cuda
from support.proxied_network import http_proxy
from support.published_builds import TORCH, Field, field_of, published, standing_in
from support.servers import free_port
from support.tools import tool
from support.wheels import Release, Wheel
from variants_catalog.catalogs import DirectoryCatalog

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64" or shutil.which("curl") is None,
    reason="the machines of the pages have Linux on x86-64, and curl",
)
OLD_PIP = "23.2.1"
"""The one that ensurepip installs with Python 3.11."""
RECORDED = "https://variants-index.wheelnext.dev/"
Prepared = Iterator[Mapping[str, Any]]
"""Yields the arguments of `Reader.follow`, with everything that the page needs in place."""


@contextmanager
def with_builds(reader: Reader, field: Field | None = None) -> Iterator[Field]:
    """Have an index and the catalogue's places; by default with torch alone."""
    with standing_in(field or published(torch=TORCH)) as found:
        mirrors = " ".join(found.mirrors)
        reader.environ |= {
            "PIP_INDEX_URL": found.index.url,
            "UV_DEFAULT_INDEX": found.index.url,
            "VARIANTS_CATALOG_MIRROR": mirrors,
            "VARIANTS_PROXY_CATALOG_MIRROR": mirrors,
            "VARIANTS_PROXY_INDEX": found.index.url,
        }
        yield found


def first_page(reader: Reader, pip: str = PIPS[-1]) -> Prepared:
    reader.activate(reader.environments.plain("3.11", pip).copied(reader.home / "env"))
    reader.use_pip(PIPS[-1])
    (reader.work / "dist").symlink_to(reader.environments.shim_wheel.parent)
    entry = DirectoryCatalog(variants_catalog.projects()).project("jax")
    assert entry is not None
    # On PyPI when the picture was made.
    with with_builds(reader, field_of([entry], {"jax": ("0.10.2",)})):
        reader.environ["VARIANTS_PLATFORM"] = "h100-zen4"
        yield {}


def use_programs(reader: Reader, *more: Callable[[], None]) -> None:
    """Have Python, a pip for its environments, and *more*."""
    reader.use_python()
    reader.use_pip(PIPS[-1])
    for use in more:
        use()


def tutorial_torch(reader: Reader) -> Prepared:
    use_programs(reader)
    (reader.work / "dist").symlink_to(reader.environments.shim_wheel.parent)
    with with_builds(reader):
        reader.environ["VARIANTS_PLATFORM"] = "h100-sapphirerapids"  # whatever this machine has
        yield {}


def tutorial_publish(reader: Reader) -> Prepared:
    reader.environ["VARIANTS_PLATFORM"] = "cpu-x86-64-v3"
    yield from tutorial_plugin(reader)


def tutorial_plugin(reader: Reader) -> Prepared:
    use_programs(reader, reader.use_shim, reader.use_uv, reader.use_variants)
    port = str(free_port())
    reader.environ["PIP_INDEX_URL"] = f"http://127.0.0.1:{port}/simple/"  # has no other pip
    yield {
        "replaced": {"8000": port},
        "failing": ["pip install --force-reinstall", "uv-env --reinstall"],
    }


def tutorial_team(reader: Reader) -> Prepared:
    use_programs(reader, reader.use_uv, reader.use_variants)
    with with_builds(reader) as field:
        files = f"{field.builds.files_url}/files/hosts/download.pytorch.org"
        yield {
            "replaced": {"https://download.pytorch.org": files},
            "failing": ["check --python laptop", "git diff --exit-code --stat"],
        }


def explanation(reader: Reader) -> Prepared:
    reader.use_variants()
    with served(Standin(api="html", ranges=True)) as index:
        failing = [
            "variants resolve torch==2.10.0 -i $INDEX -o pylock.toml "
            "--platform cuda=12.8,sm=9.0,cpu=zen4 --platform cuda=13.0,sm=9.0,cpu=zen4"
        ]
        yield {"replaced": {RECORDED: index.url}, "failing": failing}


def trust(reader: Reader) -> Prepared:
    reader.use_variants()
    checkout = reader.work / "demo"
    checkout.mkdir()
    with served(acme_index(PLUGIN)) as index:
        reader.environ["PIP_INDEX_URL"] = index.url
        yield {"replaced": {"https://index.example/simple/": index.url, "/src/demo": str(checkout)}}


@contextmanager
def torch_index(reader: Reader) -> Iterator[Index]:
    """Have an H100, a driver for CUDA 12.8, and an index with two versions of torch."""
    library = build_library(reader.home / "driver", NVML, nvml("12.8", "9.0"))
    reader.environ["LD_LIBRARY_PATH"] = str(library.parent)
    index = Index()
    requires = (
        "filelock",
        "nvidia-cublas-cu12==12.8.4.1; variant_label == 'cu128'",
        "nvidia-cublas-cu12==12.6.4.1; variant_label == 'cu126'",
    )
    for version in ("2.8.0", "2.9.0"):
        index.add_release(Release("torch", version, cuda("12.6", "12.8", "13.0"), requires))
    for version in ("12.6.4.1", "12.8.4.1"):
        index.add_wheel(Wheel("nvidia-cublas-cu12", version))
    index.add_wheel(Wheel("filelock", "3.20.0"))
    with served(index):
        reader.environ |= {"PIP_INDEX_URL": index.url, "UV_DEFAULT_INDEX": index.url}
        yield index


def with_pip(reader: Reader, *, shim: bool) -> None:
    """Activate an environment with a pip."""
    made = reader.environments.patched if shim else reader.environments.plain
    environment = made("3.12", PIPS[-1]).copied(reader.home / "env")
    reader.environ["VIRTUAL_ENV"] = str(environment.path)
    reader.tool("python", f'exec {environment.python} "$@"')
    reader.tool("pip", f'exec {environment.python} -m pip "$@"')


def pip(reader: Reader) -> Prepared:
    with_pip(reader, shim=True)
    with torch_index(reader):
        yield {"failing": ["pip install --variant torch=cu126 torch"]}


def first_page_of_pip(reader: Reader) -> Prepared:
    """With an index that has the shim, as PyPI will."""
    with_pip(reader, shim=False)
    wheel = reader.environments.shim_wheel
    with torch_index(reader) as index:
        index.add("pep-variants-shim", wheel.name, wheel.read_bytes())
        yield {}


def pip_shim(reader: Reader) -> Prepared:
    """What ``make patched-pip`` builds, installed, run, and given to virtualenv."""
    with_pip(reader, shim=False)
    (reader.work / "dist").mkdir()
    shutil.copy(patched_pip(reader.environments, PIPS[-1]), reader.work / "dist")
    python = tool(reader.environments, "virtualenv").python
    reader.tool("virtualenv", f'exec {python} -m virtualenv "$@"')
    with torch_index(reader):
        yield {}


def uv(reader: Reader) -> Prepared:
    use_programs(reader, reader.use_uv, reader.use_variants)
    with torch_index(reader):
        yield {
            "failing": [
                "uv-variants --variant torch=cu130 pip install torch",
                "uv sync --frozen --reinstall",
            ]
        }


def first_page_of_uv(reader: Reader) -> Prepared:
    environment = [sys.executable, "-m", "venv", "--without-pip", reader.work / ".venv"]
    subprocess.run(environment, check=True)
    yield from uv(reader)


def with_shim(reader: Reader) -> None:
    """Put uv and the commands on ``PATH``, and activate an environment with the shim."""
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    environment = reader.environments.patched(python, PIPS[-1])
    reader.activate(environment.copied(reader.home / "env"))
    reader.use_uv()
    reader.use_variants()


def air_gap(reader: Reader) -> Prepared:
    with_shim(reader)
    with with_builds(reader):
        missing = "python -m pip install --no-index --find-links carry/wheels torch torchvision"
        yield {"failing": ["(cd carry && sha256sum --check SHA256SUMS)", missing]}


class Repository:
    """The company's own server: everything at one host, for those who have a password."""

    wanted = f"Basic {base64.b64encode(b'me:secret').decode()}"
    url = ""

    def __init__(self, field: Field) -> None:
        self._field = field

    def answer(self, path: str, headers: Mapping[str, str]) -> Answer:
        if headers.get("Authorization") != self.wanted:
            return Answer(401, headers={"WWW-Authenticate": 'Basic realm="packages"'})
        hosts = path.removeprefix("/files").startswith("/hosts/")
        return (self._field.builds if hosts else self._field.index).answer(path, headers)


def company_proxy(reader: Reader) -> Prepared:
    with_shim(reader)
    certificates = certified(reader.home / "certificates", "packages.example")
    repository = Repository(published(torch=TORCH))
    with served(repository, certificates.context) as server:  # type: ignore[type-var]
        port = server.url.split(":")[2].split("/")[0]
        names = {"packages.example:443": f"127.0.0.1:{port}"}
        with http_proxy("me:pass", names=names) as proxy:
            reader.environ["VARIANTS_PLATFORM"] = "h100-zen4"
            page = Page(ROOT / "docs/how-to/company-proxy.md")
            yield {
                "failing": [
                    command.text
                    for command in page.commands
                    if any("error: " in line for line in command.lines)
                ],
                "replaced": {
                    "proxy.example:8080": proxy.place.rpartition("@")[2],
                    "/etc/ssl/company.pem": str(certificates.authority),
                    "packages.example/pytorch": "packages.example/hosts/download.pytorch.org",
                },
            }


def commands_alone(*failing: str) -> Callable[[Reader], Prepared]:
    """Return what prepares a page that needs nothing but our commands."""

    def prepare(reader: Reader) -> Prepared:
        reader.use_variants()
        yield {"failing": failing}

    return prepare


EVERY_DAY: dict[str, Callable[[Reader], Prepared]] = {
    "README.md": first_page,
    "docs/tutorials/torch.md": tutorial_torch,
    "docs/tutorials/provider-plugin.md": tutorial_plugin,
}
NIGHTLY: dict[str, Callable[[Reader], Prepared]] = {
    "docs/explanation/choice.md": explanation,
    "docs/explanation/locks.md": explanation,
    "docs/explanation/pip-shim.md": pip_shim,
    "docs/explanation/trust.md": trust,
    "docs/how-to/air-gap.md": air_gap,
    "docs/how-to/company-proxy.md": company_proxy,
    "docs/how-to/pip.md": pip,
    "docs/how-to/uv.md": uv,
    "docs/reference/configuration.md": commands_alone("variants doctor"),
    "docs/reference/platforms.md": commands_alone(
        "variants platforms h200", "variants platforms cuda=9.0,sm=6.1"
    ),
    "docs/tutorials/publish.md": tutorial_publish,
    "docs/tutorials/team.md": tutorial_team,
    "packages/uv-variants/README.md": first_page_of_uv,
    "pip-patch/README.md": first_page_of_pip,
}


def follow(reader: Reader, name: str, prepare: Callable[[Reader], Prepared]) -> None:
    page = Page(ROOT / name)
    with contextmanager(prepare)(reader) as arguments:
        failing: Sequence[str] = arguments.get("failing", ())
        texts = [command.text for command in page.commands]
        fails = [text for text in texts if any(part in text for part in failing)]
        reader.follow(page, replaced=arguments.get("replaced"), failing=fails)


@pytest.mark.parametrize("name", EVERY_DAY)
def test_commands(reader: Reader, name: str) -> None:
    follow(reader, name, EVERY_DAY[name])


@pytest.mark.nightly
@pytest.mark.parametrize("name", NIGHTLY)
def test_commands_of_other_pages(reader: Reader, name: str) -> None:
    follow(reader, name, NIGHTLY[name])


@pytest.mark.nightly
def test_the_first_page_with_the_pip_of_python(reader: Reader) -> None:
    follow(reader, "README.md", lambda reader: first_page(reader, OLD_PIP))
