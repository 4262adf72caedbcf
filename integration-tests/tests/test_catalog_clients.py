"""The shipped catalogue on a stand-in of the places it names: the same choice in every client.

The table says what each machine should get, judged by hand; the clients get nothing but the
catalogue, mirrors that lead to the stand-in, and a platform file.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

import pytest
from packaging.pylock import Pylock
from packaging.version import Version

import variants_catalog
from pep_variants.catalog.model import CatalogProject, target
from pep_variants.catalog.store import DirectoryCatalog
from pep_variants.formats import toml
from support.published_builds import Field, field_of, page_path, standing_in
from variants_index.named_platforms import named_platforms

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
            values = item.placeholders(Version(version)) if version else None
            if values is None:
                continue
            if page_path(entry.page(item.place)) in unquote(url):
                return re.sub(r"\{(\w+)\}", lambda match: values[match[1]], item.label)
        elif item.requires and target(item) == entry.name:
            extra = item.requires[0].partition("[")[2].partition("]")[0]
            if f"{entry.name}-{extra}-plugin" in installed:
                return item.label
        elif item.requires and target(item) in installed:
            return item.label
        elif entry.is_own(item):
            plain = item.label
    return plain if entry.name in installed else "missing"


def resolve(field: Field, platform: Path, folder: Path) -> Installed:
    """Return what ``variants resolve`` puts into a lock file."""
    lock = folder / "pylock.toml"
    variants = Path(sys.executable).with_name("variants")
    options = ["--index-url", field.index.url, "--variant-catalog", "default", *field.options]
    options += ["--variant-platform", str(platform), "-o", str(lock)]
    subprocess.run([variants, "resolve", *VERSIONS, *options], check=True, cwd=folder)
    found = {}
    for package in Pylock.from_dict(toml.loads(lock.read_text("utf-8"))).packages:
        (wheel,) = package.wheels or ()
        found[str(package.name)] = (str(package.version), wheel.url or "")
    return found


CLIENTS: dict[str, Callable[[Field, Path, Path], Installed]] = {"resolve": resolve}


@pytest.mark.parametrize("machine", TABLE)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_choice(client: str, machine: str, field: Field, tmp_path: Path) -> None:
    installed = CLIENTS[client](field, named_platforms()[machine], tmp_path)
    found = {
        name: label(entry, installed)
        for name in VERSIONS
        if (entry := CATALOG.project(name)) is not None
    }
    expected = dict(zip(VERSIONS, TABLE[machine].split(), strict=True))
    assert found == expected
