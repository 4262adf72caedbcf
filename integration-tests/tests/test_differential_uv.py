"""The engine beside native uv 0.13.8, which has variants as a preview, on one and the same index.

Both choose a wheel of every release, on machines with drivers and GPUs of all kinds, and have to
choose the same one: uv has a provider of its own for NVIDIA. What uv makes of everything else that
metadata may say is in the corpus, see `conformance.runners.uv`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pep_variants.choose.preferences import Preferences
from pep_variants.choose.selection import File, select
from pep_variants.detect.detector import Detector
from pep_variants.formats.reader import read_metadata
from pep_variants.formats.writer import metadata_to_tree
from pep_variants.model.filename import metadata_filename
from pep_variants.model.generation import V0_2_0
from pep_variants.model.metadata import Metadata
from support.environments import clean_environ, uv_command
from support.index import Index, served
from support.random_releases import World
from support.wheels import NVIDIA, Release, metadata

UV = "0.13.8"
FIXTURES = Path(__file__).parents[2] / "packages" / "pep-variants" / "tests" / "fixtures"
# The one name of the format that uv knows without a debug line.
SCHEMA = "https://variants-schema.wheelnext.dev/peps/850/v0.2.0.json"

DRIVER = "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION"
CAPABILITY = "NV_VARIANT_PROVIDER_FORCE_SM_ARCH"

Choices = dict[str, str]


def chosen_by_uv(
    releases: Iterable[Release], index: Index, folder: Path, environ: Mapping[str, str]
) -> Choices:
    """Return the filename that uv takes of each release."""
    done = subprocess.run(
        [
            *uv_command(), "pip", "install", "--preview-features", "wheel-variants", "--dry-run",
            "--verbose", "--no-cache", "--python", sys.executable, "--index-url", index.url,
            "--target", str(folder / "target"), *(release.name for release in releases),
        ],
        capture_output=True,
        text=True,
        env=clean_environ(environ),
        cwd=folder,
        timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(re.findall(r"Selecting: (\S+)==\S+ \[\w+\] \((\S+)\)", done.stderr))


def chosen_by_us(releases: Iterable[Release], index: Index) -> Choices:
    """Return the filename that the engine takes of each release, out of the same files."""
    detector = Detector()

    def choose(release: Release) -> str:
        files = index.files[release.name]

        def read(source: str) -> Metadata:
            name = metadata_filename(release.name, release.version)
            return read_metadata(files[name], f"{source}{name}")

        selection = select(
            [File(name, index.url, None) for name in files if name.endswith(".whl")],
            metadata=read,
            platform=detector.platform,
            preferences=Preferences(),
            project=release.name,
        )
        assert selection.chosen is not None
        return selection.chosen.filename

    return {release.name: choose(release) for release in releases}


@pytest.fixture(scope="module", autouse=True)
def _uv() -> None:
    done = subprocess.run([*uv_command(), "--version"], capture_output=True, text=True, check=True)
    if done.stdout.split()[1] != UV:
        pytest.skip(f"uv {UV} is needed, here is {done.stdout.strip()}")


@pytest.fixture
def compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Choices]:
    """Compare the choices on a machine, and return them."""

    def run(
        releases: list[Release], index: Index, driver: str = "", capability: str = ""
    ) -> Choices:
        environ = {}
        for name, value in ((DRIVER, driver), (CAPABILITY, capability)):
            monkeypatch.delenv(name, raising=False)
            if value:
                monkeypatch.setenv(name, value)
                environ[name] = value
        ours = chosen_by_us(releases, index)
        assert ours == chosen_by_uv(releases, index, tmp_path, environ)
        return {name: label_of(filename) for name, filename in ours.items()}

    return run


def label_of(filename: str) -> str:
    parts = filename[: -len(".whl")].split("-")
    return parts[5] if len(parts) == 6 else ""


def release(name: str, tree: Mapping[str, Any]) -> Release:
    """A release with all its variants and a non-variant wheel."""
    return Release(name, "1.0", tree, non_variant=True)


def index_with(releases: list[Release]) -> Index:
    index = Index()
    for item in releases:
        # With the metadata of wheels beside them, uv does not have to look into the wheels.
        index.add_release(item, metadata_file=True)
    return index


# NVIDIA drivers and GPUs.

MACHINES = [
    ("12.4", "5.0"),
    ("12.10", "11.0"),
    ("13.0", "9.0"),
    ("15.20", "10.0"),
]


def torch(name: str) -> dict[str, Any]:
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


def cuda_release(seed: int) -> Release:
    """A release with builds for random drivers and GPUs."""
    world = World(seed)
    choices = {
        "cuda_version_lower_bound": "11 11.0 11.8 12 12.0 12.4 12.6 12.8 12.9 13 13.0".split(),
        "cuda_version_upper_bound": "11.8 12 12.5 12.9 12.20 13 13.0 13.1 14 15.20".split(),
        "sm_arch": [
            f"{number}_{kind}"
            for number in (50, 60, 61, 70, 75, 80, 86, 89, 90, 100, 103, 110, 120, 121)
            for kind in ("real", "virtual")
        ],
    }
    variants: dict[str, Any] = {"null": {}} if world.chance.random() < 0.5 else {}
    for number in range(6):
        variants[f"{world.chance.choice('abc')}{number}"] = {
            "nvidia": {
                feature: sorted(world.pick(choices[feature][:], 1)[:8])
                for feature in world.pick(list(choices), 1)
            }
        }
    return release(
        f"n{seed}",
        metadata(variants, namespaces=["nvidia"], providers={"nvidia": NVIDIA}, schema=SCHEMA),
    )


@pytest.fixture(scope="module")
def cuda() -> Iterable[tuple[list[Release], Index]]:
    releases = [
        release("torch28", torch("torch-2.8.0-variants.json")),
        release("torch210", torch("torch-2.10.0-variants.json")),
        *(cuda_release(seed) for seed in range(8)),
    ]
    with served(index_with(releases)) as index:
        yield releases, index


@pytest.mark.parametrize(("driver", "capability"), MACHINES)
def test_nvidia(
    compare: Callable[..., Choices],
    cuda: tuple[list[Release], Index],
    driver: str,
    capability: str,
) -> None:
    choices = compare(*cuda, driver, capability)
    if (driver, capability) == ("13.0", "9.0"):
        # What we compare is worth comparing.
        assert (choices["torch28"], choices["torch210"]) == ("cu129", "cuda13.0")
        assert len(set(choices.values())) > 5
