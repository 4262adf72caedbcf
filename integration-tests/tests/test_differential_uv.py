"""The engine beside native uv 0.13.8, which has variants as a preview, on one and the same index.

Both choose a variant of every release, on machines with drivers and GPUs of all kinds, and have to
choose the same one: uv has a provider of its own for NVIDIA. What uv makes of everything else that
metadata may say is in the corpus, see `conformance.runners.uv`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pep_variants._choose.ranking import rank
from pep_variants._detect.detector import Detector
from pep_variants._formats.reader import read_metadata
from pep_variants._formats.writer import metadata_to_tree
from pep_variants._model.generation import V0_2_0
from pep_variants.labels import split_label
from support.environments import clean_environ, uv_command
from support.index import Index, served
from support.projects import DRIVER
from support.projects import GPU as CAPABILITY
from support.wheels import NVIDIA, Release, metadata

UV = "0.13.8"
FIXTURES = Path(__file__).parents[2] / "packages" / "pep-variants" / "tests" / "fixtures"
# The one name of the format that uv knows without a debug line.
SCHEMA = "https://variants-schema.wheelnext.dev/peps/850/v0.2.0.json"
VALUES = {
    "cuda_version_lower_bound": "11 11.0 11.8 12 12.0 12.4 12.6 12.8 12.9 13 13.0".split(),
    "cuda_version_upper_bound": "11.8 12 12.5 12.9 12.20 13 13.0 13.1 14 15.20".split(),
    "sm_arch": [
        f"{number}_{kind}"
        for number in (50, 60, 61, 70, 75, 80, 86, 89, 90, 100, 103, 110, 120, 121)
        for kind in ("real", "virtual")
    ],
}
MACHINES = [("12.4", "5.0"), ("12.10", "11.0"), ("13.0", "9.0"), ("15.20", "10.0")]
"""Driver and capability of the GPU."""


@pytest.fixture(scope="module", autouse=True)
def _uv() -> None:
    done = subprocess.run([*uv_command(), "--version"], capture_output=True, text=True, check=True)
    if done.stdout.split()[1] != UV:
        pytest.skip(f"uv {UV} is needed, here is {done.stdout.strip()}")


def torch(name: str) -> Mapping[str, Any]:
    """The field's metadata in the format that uv reads, with what uv knows of it."""
    found = read_metadata((FIXTURES / name).read_bytes(), name)
    gone = {"amd", "intel"}
    # uv stands in for 0.0.1 of the provider and evaluates no markers, see below.
    provider = replace(
        found.providers["nvidia"], requires=tuple(NVIDIA["requires"]), enable_if=None
    )
    found = replace(
        found,
        namespaces=tuple(name for name in found.namespaces if name not in gone),
        variants={
            label: properties
            for label, properties in found.variants.items()
            if not gone & set(properties)
        },
        providers={**found.providers, "nvidia": provider},
    )
    return {**metadata_to_tree(found, V0_2_0), "$schema": SCHEMA}


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    """The wheels of PyTorch, and a release for every value, which has one variant that needs it."""
    trees = {
        "torch28": torch("torch-2.8.0-variants.json"),
        "torch210": torch("torch-2.10.0-variants.json"),
    }
    values = [(feature, value) for feature, values in VALUES.items() for value in values]
    for number, (feature, value) in enumerate(values):
        trees[f"value{number}"] = metadata(
            {"fits": {"nvidia": {feature: [value]}}},
            namespaces=["nvidia"], providers={"nvidia": NVIDIA}, schema=SCHEMA,
        )  # fmt: skip
    found = Index()
    for name, tree in trees.items():
        # With the metadata of wheels beside them, uv does not have to look into the wheels.
        found.add_release(Release(name, "1.0", tree, non_variant=True), metadata_file=True)
    with served(found):
        yield found


@pytest.mark.parametrize(("driver", "capability"), MACHINES)
def test_nvidia(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver: str, capability: str
) -> None:
    environ = {DRIVER: driver, CAPABILITY: capability}
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    ours = {}
    for name, files in index.files.items():
        read = read_metadata(files[f"{name}-1.0-variants.json"], name)
        ours[name] = next(iter(rank(read, Detector().platform(read)).labels), None)
    done = subprocess.run(
        [
            *uv_command(), "pip", "install", "--preview-features", "wheel-variants", "--dry-run",
            "--verbose", "--no-cache", "--python", sys.executable, "--index-url", index.url,
            "--target", str(tmp_path / "target"), *index.files,
        ],
        capture_output=True, text=True, env=clean_environ(environ), cwd=tmp_path, timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    theirs = re.findall(r"Selecting: (\S+)==\S+ \[\w+\] \((\S+)\)", done.stderr)
    assert {name: split_label(filename)[1] for name, filename in theirs} == ours
    if (driver, capability) == ("13.0", "9.0"):
        # What we compare is worth comparing.
        assert (ours["torch28"], ours["torch210"]) == ("cu129", "cuda13.0")
        assert len({label for name, label in ours.items() if name.startswith("value")}) == 2
