"""The catalogue beside uv's ``--torch-backend=auto``, on one stand-in of PyTorch's indexes.

uv chooses one index for all of PyTorch's projects, by the driver or by the architecture of an AMD
GPU. The table says what both choose, and so where they differ.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import pytest

import variants_catalog
from pep_variants.detect.known_machines import BY_NAME
from pep_variants.detect.machines import load_machine
from pep_variants.formats.platform_file import write_platform
from pep_variants.model.platform import Platform
from support.certificates import certified
from support.index import Answer, served
from support.proxied_network import http_proxy
from support.published_builds import Builds, Field, field_of, standing_in
from support.uvs import Machine
from variants_catalog.catalogs import DirectoryCatalog

HOST = "download.pytorch.org"
VERSIONS = {
    "torch": ["2.8.0", "2.10.0", "2.11.0", "2.13.0"],
    "torchvision": ["0.23.0", "0.25.0", "0.26.0", "0.28.0"],
}
NO_GPU: Mapping[str, str] = {}
DRIVER_570 = {"UV_CUDA_DRIVER_VERSION": "570.86"}
DRIVER_580 = {"UV_CUDA_DRIVER_VERSION": "580.65.06"}


def amd(architecture: str) -> Mapping[str, str]:
    """Return what tells uv of an AMD GPU."""
    return {"UV_AMD_GPU_ARCHITECTURE": architecture}


CASES = {
    "no GPU": ("cpu-zen4", NO_GPU, "2.13.0+cpu", "2.13.0+cpu"),
    # Both run: the publisher's page has CUDA 13.0 as the usual one.
    "H100, driver 580": ("h100-sapphirerapids", DRIVER_580, "2.13.0+cu130", "2.13.0+cu132"),
    # uv's choice does not run: no build for CUDA 13 has code for these GPUs.
    "GTX 1080 Ti, driver 580": (
        "gtx-1080-ti-haswell+h100-sapphirerapids", DRIVER_580, "2.13.0+cu126", "2.13.0+cu132",
    ),
    "V100, driver 580": (
        "v100-broadwell+h100-sapphirerapids", DRIVER_580, "2.13.0+cu126", "2.13.0+cu132",
    ),
    # No build of 2.13 for CUDA 12 has code for this GPU. Both take the newest release that uses the
    # GPU; uv looks at the one index of its backend.
    "B200, driver 570": ("b200-sapphirerapids", DRIVER_570, "2.11.0+cu128", "2.8.0+cu129"),
    "MI300X": ("mi300x-rocm7.0", amd("gfx942"), "2.13.0+rocm7.2", "2.13.0+rocm7.2"),
    "RX 7900": ("rx-7900-rocm6.4", amd("gfx1100"), "2.13.0+rocm7.2", "2.13.0+rocm7.2"),
    "MI100 and MI210": ("mi100-mi210-rocm7.0", amd("gfx908"), "2.13.0+rocm7.2", "2.13.0+rocm7.2"),
}  # fmt: skip
"""By machine: platform, what uv finds, our choice, uv's choice."""


@dataclass
class Host:
    """The stand-in's pages of one host, at its own paths.

    Attributes:
        builds: all pages.
        host: name.
        requests: paths asked for so far.
        url: root of the server.
    """

    builds: Builds
    host: str
    requests: list[str] = field(default_factory=list)
    url: str = ""

    def answer(self, path: str, headers: Mapping[str, str]) -> Answer:
        """Return the answer to a request."""
        return self.builds.answer(f"/hosts/{self.host}{path}", headers)


@dataclass(frozen=True)
class World:
    """PyTorch's host as clients reach it.

    Attributes:
        field: all there is.
        variables: environment variables that lead uv there.
    """

    field: Field
    variables: Mapping[str, str]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A proxy that leads to PyTorch's host, with a certificate of its own."""
    catalog = DirectoryCatalog(variants_catalog.projects())
    entries = [entry for name in VERSIONS if (entry := catalog.project(name)) is not None]
    tls = certified(tmp_path_factory.mktemp("tls"), HOST)
    with standing_in(field_of(entries, VERSIONS)) as found:
        host = Host(found.builds, HOST)
        with served(host, tls.context):  # type: ignore[arg-type]
            place = host.url.removesuffix("/simple/").partition("://")[2]
            with http_proxy(names={f"{HOST}:443": place}) as proxy:
                variables = {
                    "HTTPS_PROXY": proxy.url,
                    "NO_PROXY": "127.0.0.1",
                    "SSL_CERT_FILE": str(tls.authority),
                }
                yield World(found, variables)


def with_driver(platform: str, other: str) -> Platform:
    """Return *platform* with the driver that the platform *other* has."""
    found, newer = (load_machine(name) for name in (platform, other))
    support = found.support("nvidia")
    features = {
        **newer.support("nvidia").features,
        "sm_arch": support.features["sm_arch"],
    }
    nvidia = replace(support, features=features)
    return replace(found, namespaces={**found.namespaces, "nvidia": nvidia})


def chosen(text: str) -> str:
    """Return the version of torch in a lock; torchvision is the same build of the same release."""
    found = re.findall(r"(?m)^(torch|torchvision)==([0-9.]+)(?:\+(\S+))?", text)
    versions = {name: VERSIONS[name].index(version) for name, version, _ in found}
    assert set(versions) == set(VERSIONS), text
    assert len(set(versions.values())) == 1, text
    assert len({local for *_, local in found}) == 1, text
    return next(f"{version}+{local}" for name, version, local in found if name == "torch")


@pytest.mark.parametrize("name", CASES)
def test_torch(name: str, world: World, machine: Machine) -> None:
    platform, variables, ours, theirs = CASES[name]
    told = platform
    if platform not in BY_NAME:
        file = machine.work / "platform.toml"
        told = str(file)
        file.write_text(write_platform(with_driver(*platform.split("+")), "a test"))
    (machine.work / "in.txt").write_text("\n".join(VERSIONS))
    asking = ["pip", "compile", "in.txt", "--no-annotate", "--no-header"]
    asking += ["--index-url", world.field.index.url, "--python", sys.executable]
    options = ["--variant-catalog=default", *world.field.options, f"--variant-platform={told}"]
    done = machine.run(*options, *asking)
    assert done.code == 0, done
    assert chosen(done.out) == ours
    plain = machine.with_environ({**world.variables, **variables})
    done = plain.plain(*asking, "--torch-backend", "auto")
    assert done.code == 0, done
    assert chosen(done.out) == theirs
