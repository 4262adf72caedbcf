"""The engine beside native uv 0.13.8, which has variants as a preview, on one and the same index.

Both choose a wheel of every release, on machines with drivers and GPUs of all kinds, and have to
choose the same one. uv 0.13.8 knows less than we do, so the releases keep to what it knows; a table
at the end says where the two differ, and how.
"""

from __future__ import annotations

import json
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
from pep_variants.errors import MetadataError
from pep_variants.formats.reader import read_metadata
from pep_variants.formats.writer import metadata_to_tree
from pep_variants.model.filename import metadata_filename
from pep_variants.model.generation import V0_2_0
from pep_variants.model.metadata import Metadata
from support.environments import clean_environ, uv_command
from support.index import Index, index_of, served
from support.random_releases import World
from support.wheels import NVIDIA, Release, metadata

UV = "0.13.8"
FIXTURES = Path(__file__).parents[2] / "packages" / "pep-variants" / "tests" / "fixtures"
# The one name of the format that uv knows without a debug line.
SCHEMA = "https://variants-schema.wheelnext.dev/peps/850/v0.2.0.json"

DRIVER = "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION"
CAPABILITY = "NV_VARIANT_PROVIDER_FORCE_SM_ARCH"
X86_64 = {"requires": ["x86-64-variant-provider>=0.0.1"]}

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


# Static providers: nothing to detect.


def test_static_properties(compare: Callable[..., Choices]) -> None:
    worlds = {f"s{seed}": World(seed, static_only=True, schema=SCHEMA) for seed in range(60)}
    releases = [release(name, world.tree) for name, world in worlds.items()]
    releases = [item for item in releases if item.metadata["variants"]]
    with served(index_with(releases)) as index:
        choices = compare(releases, index)
    labels = set(choices.values())
    assert len(labels) > 30
    assert {"null", ""} & labels


# NVIDIA drivers and GPUs.

MACHINES = [
    ("11.8", "8.0"),
    ("12.0", "7.0"),
    ("12.4", "5.0"),
    ("12.6", "9.0"),
    ("12.6", "12.0"),
    ("12.8", "6.1"),
    ("12.8", "8.9"),
    ("12.9", "7.5"),
    ("12.9", "10.3"),
    ("12.10", "11.0"),
    ("13.0", "7.0"),
    ("13.0", "9.0"),
    ("13.1", "12.1"),
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


def test_nvidia_as_it_is_here(
    compare: Callable[..., Choices], cuda: tuple[list[Release], Index]
) -> None:
    """With or without a GPU: both have to look for themselves."""
    compare(*cuda)


# CPU levels, as they are here.


def test_x86_64(compare: Callable[..., Choices]) -> None:
    releases = []
    for seed in range(12):
        world = World(seed)
        variants: dict[str, Any] = {
            f"{world.chance.choice('abc')}{number}": {
                "x86_64": {"level": sorted(world.pick(("v1", "v2", "v3", "v4"), 1))}
            }
            for number in range(world.chance.randint(1, 5))
        }
        tree = metadata(
            variants, namespaces=["x86_64"], providers={"x86_64": X86_64}, schema=SCHEMA
        )
        releases.append(release(f"x{seed}", tree))
    with served(index_with(releases)) as index:
        compare(releases, index)


# All of them at once.


@pytest.mark.parametrize(("driver", "capability"), [("12.8", "9.0"), ("11.4", "8.6")])
def test_mixed_namespaces(compare: Callable[..., Choices], driver: str, capability: str) -> None:
    releases = []
    for seed in range(100, 120):
        world = World(seed)
        wanted = {
            "nvidia": [
                {"cuda_version_lower_bound": ["11.4"]},
                {"cuda_version_lower_bound": ["12.0", "12.8"], "sm_arch": ["86_real", "90_real"]},
                {"sm_arch": ["80_real"]},
            ],
            "x86_64": [{"level": ["v1"]}, {"level": ["v2"]}, {"level": ["v3", "v4"]}],
            "blas": [{"library": ["mkl"]}, {"library": ["openblas"], "threads": ["openmp"]}],
        }
        namespaces = world.chance.sample(list(wanted), 3)
        variants = {
            f"{world.chance.choice('abc')}{number}": {
                name: world.chance.choice(wanted[name]) for name in world.pick(namespaces, 1)
            }
            for number in range(8)
        }
        blas = {
            "static-properties": {"library": ["openblas", "mkl"], "threads": ["openmp"]},
            "feature-order": world.chance.sample(["library", "threads"], 2),
        }
        tree = metadata(
            variants,
            namespaces=namespaces,
            providers={"nvidia": NVIDIA, "x86_64": X86_64, "blas": blas},
            schema=SCHEMA,
        )
        releases.append(release(f"m{seed}", tree))
    with served(index_with(releases)) as index:
        choices = compare(releases, index, driver, capability)
    assert len(set(choices.values())) > 5


# What both make of metadata that is not the usual.

CU = {"null": {}, "cu": {"nvidia": {"cuda_version_lower_bound": ["12.0"]}}}
STATIC = {"null": {}, "s": {"blas": {"library": ["mkl"]}}}


def nvidia(variants: Mapping[str, Any] = CU, **provider: Any) -> dict[str, Any]:
    return metadata(
        variants,
        namespaces=["nvidia"],
        providers={"nvidia": {**NVIDIA, **provider}},
        schema=SCHEMA,
    )


def blas(schema: str = SCHEMA, **provider: Any) -> dict[str, Any]:
    static = {"static-properties": {"library": ["mkl"]}}
    return metadata(
        STATIC, namespaces=["blas"], providers={"blas": {**static, **provider}}, schema=schema
    )


ALIKE: dict[str, tuple[Mapping[str, Any], str]] = {
    "plain": (nvidia(), "cu"),
    "optional": (nvidia(optional=True), "null"),
    "static-optional": (blas(optional=True), "null"),
    "too-new": (nvidia(requires=["nvidia-variant-provider>=7"]), "null"),
    "too-old": (nvidia(requires=["nvidia-variant-provider<0.0.1"]), "null"),
    "extras": (nvidia(requires=["nvidia-variant-provider[x]"]), "null"),
    "any-version": (nvidia(requires=["nvidia-variant-provider"]), "cu"),
    "other-package": (nvidia(requires=["acme-provider"]), "null"),
    "other-endpoint": (nvidia(**{"plugin-api": "acme.plugin:Plugin"}), "null"),
    "marker-of-windows": (
        nvidia(requires=["nvidia-variant-provider; platform_system == 'nowhere'"]),
        "null",
    ),
    "equal-builds": (nvidia({"b": CU["cu"], "a": CU["cu"], "c": CU["cu"]}), "a"),
    "unknown-minor": (blas("https://variants-schema.wheelnext.dev/v0.9.0.json"), "s"),
    "field-name-of-the-format": (blas(V0_2_0.schema), "s"),
}


def test_alike(compare: Callable[..., Choices]) -> None:
    releases = [release(name, tree) for name, (tree, _) in ALIKE.items()]
    with served(index_with(releases)) as index:
        choices = compare(releases, index, "12.8", "9.0")
    assert choices == {name: label for name, (_, label) in ALIKE.items()}


# Where the two are known to differ: the metadata, what uv takes (None: it gives up), what we take
# (None: the metadata is refused, which costs the version its variants).
DIFFERENT: dict[str, tuple[Mapping[str, Any], str | None, str | None]] = {
    # FORMATS: without `plugin-api` the endpoint follows from the first requirement. uv wants it
    # spelled out for this one provider.
    "no-plugin-api": (
        metadata(
            CU,
            namespaces=["nvidia"],
            providers={"nvidia": {"requires": NVIDIA["requires"]}},
            schema=SCHEMA,
        ),
        "null",
        "cu",
    ),
    # uv stands in for 0.0.1 of the provider, we for 0.0.2, whose values are the same. The metadata
    # of torch 2.10 wants 0.0.2: uv takes no CUDA build of it.
    "nvidia-newer": (nvidia(requires=["nvidia-variant-provider>=0.0.2"]), "null", "cu"),
    "nvidia-older": (nvidia(requires=["nvidia-variant-provider<0.0.2"]), "cu", "null"),
    # What a plugin needs beside itself is nothing to us, who run none.
    "two-requirements": (
        nvidia(requires=["nvidia-variant-provider", "packaging"]),
        "null",
        "cu",
    ),
    # FORMATS: requirements may have markers. uv knows none.
    "marker": (
        nvidia(requires=["nvidia-variant-provider; python_version >= '3'"]),
        "null",
        "cu",
    ),
    # FORMATS: a built-in provider of 0.2.0 is known by its namespace. uv has none.
    "builtin": (
        metadata(CU, namespaces=["nvidia"], providers={"nvidia": {"builtin": "nvidia"}}),
        "null",
        "cu",
    ),
    # PEP 825 leaves it to installers where supported values come from; uv knows nothing then.
    "pep-825": (
        {
            "$schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
            "default-priorities": {"namespace": ["nvidia"]},
            "variants": CU,
        },
        "null",
        "cu",
    ),
    # FORMATS: a major version that is not known is an error. uv reads on.
    "major": (blas("https://variants-schema.wheelnext.dev/v2.0.0.json"), "s", None),
    # FORMATS: without a schema, or of an old generation, the file is read by its shape. uv fails.
    "no-schema": (
        {key: value for key, value in nvidia().items() if key != "$schema"},
        None,
        "cu",
    ),
    "old": (json.loads((FIXTURES / "torch-2.8.0-variants.json").read_bytes()), None, "cu128"),
    # FORMATS: `abi_dependency` needs no priority. uv fails. This project has not decided about it.
    "abi-dependency": (
        nvidia({**CU, "abi": {"abi_dependency": {"torch": ["2.9"]}}}),
        None,
        "cu",
    ),
    # FORMATS: only namespaces in use need a priority, and a provider is not needed. uv fails.
    "no-provider": (
        {**blas(), "default-priorities": {"namespace": ["blas", "other"]}},
        None,
        "s",
    ),
}


# FORMATS: nothing is supported outside the range of drivers that the provider knows, as it is in
# the provider itself. uv leaves out only the feature that it has no values for.
@pytest.mark.parametrize(
    ("driver", "uv", "us"), [("10.2", "arch", "null"), ("15.21", "lower", "null")]
)
def test_drivers_out_of_range_are_different(
    driver: str, uv: str, us: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {DRIVER: driver, CAPABILITY: "9.0"}
    for variable, value in environ.items():
        monkeypatch.setenv(variable, value)
    builds = {
        "null": {},
        "lower": {"nvidia": {"cuda_version_lower_bound": ["12.0"]}},
        "arch": {"nvidia": {"sm_arch": ["90_real"]}},
    }
    releases = [release("builds", nvidia(builds))]
    with served(index_with(releases)) as index:
        assert label_of(chosen_by_us(releases, index)["builds"]) == us
        assert label_of(chosen_by_uv(releases, index, tmp_path, environ)["builds"]) == uv


@pytest.mark.parametrize("name", DIFFERENT)
def test_different(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree, expected_of_uv, expected_of_us = DIFFERENT[name]
    environ = {DRIVER: "12.8", CAPABILITY: "9.0"}
    for variable, value in environ.items():
        monkeypatch.setenv(variable, value)
    releases = [Release(name, "1.0", tree)]
    with served(index_of(releases)) as index:
        if expected_of_us is None:
            with pytest.raises(MetadataError):
                read_metadata(json.dumps(tree), name)
        else:
            (ours,) = chosen_by_us(releases, index).values()
            assert label_of(ours) == expected_of_us
        if expected_of_uv is None:
            with pytest.raises(AssertionError, match="Failed to parse variant metadata"):
                chosen_by_uv(releases, index, tmp_path, environ)
        else:
            (theirs,) = chosen_by_uv(releases, index, tmp_path, environ).values()
            assert label_of(theirs) == expected_of_uv
