"""Builds of the catalogue in lock files: as their publishers name them."""

import hashlib

import pytest
from packaging.pylock import Pylock
from world import cuda, target

from pep_variants.detect.detector import Detector
from pep_variants.errors import LockError
from pep_variants.formats import toml
from resolvelib_variants.resolution import RequirementSet, parse_requirement
from support.wheels import Wheel
from variants_index.lock_files import read_lock, select_locked, write_lock
from variants_index.target import make_target

ENTRY = """
catalog-version = "1"
[project]
name = "cupy"
documentation = "https://docs.example/cupy"
default-priorities.namespace = ["nvidia"]
[[variant]]
label = "cuda13"
requires = ["cupy-cuda13x[ctk]=={version}"]
properties = ["nvidia :: cuda_version_lower_bound :: 13.0"]
[[variant]]
label = "cuda12"
requires = ["cupy-cuda12x[ctk]=={version}"]
properties = ["nvidia :: cuda_version_lower_bound :: 12.0"]
"""
MAC = "macosx_11_0_arm64"
REQUIRES = ("toolkit; extra == 'ctk'", "torch; extra == 'more'")


def machine(driver, name="", **options):
    text = f"""
    [[provider]]
    namespace = "nvidia"
    [provider.properties]
    cuda_version_lower_bound = ["{driver}"]
    """
    if not options:
        return target(text, name or f"cuda{driver}")
    platform = target(text).platform
    return make_target(python_version="3.12", name=name, platform=platform, **options)


@pytest.fixture
def world(world):
    """The index, and a catalogue of which the preferences know."""
    path = world.folder / "cupy.toml"
    path.write_text(ENTRY)
    resolver = world.resolver
    world.resolver = lambda **more: resolver(options={"variant-catalog": str(path)}, **more)
    for name in ("cupy-cuda12x", "cupy-cuda13x"):
        world.add(Wheel(name, "14.2.0", requires=REQUIRES, extras=("ctk", "more")))
    world.add(("cupy", "cupy-14.2.0.tar.gz", b""))
    world.add(Wheel("spacy", "3.0", requires=("CuPy>=13",)))
    return world.add(Wheel("toolkit", "13.0"), Wheel("torch", "2.9.0"))


def locked(world, *requirements, targets):
    """Resolve and return the contents of the lock file."""
    world.publish()
    requirement_set = RequirementSet(tuple(map(parse_requirement, requirements)))
    with world.resolver() as resolver:
        return write_lock(
            [resolver.resolve(requirement_set, one) for one in targets],
            created_by="tests",
            folder=world.folder,
            documents=resolver.variant_documents,
            digests=lambda candidate: resolver.digests(candidate, ["sha256"]),
        )


def packages(data):
    found = Pylock.from_dict(toml.loads(data.decode())).packages
    return {str(item.name): item for item in found}


def depends(package):
    return [item["name"] for item in package.dependencies or ()]


def test_the_publishers_file(world):
    found = packages(locked(world, "spacy", targets=[machine("12.0")]))
    assert list(found) == ["cupy-cuda12x", "spacy", "toolkit"]
    package = found["cupy-cuda12x"]
    wheel = Wheel("cupy-cuda12x", "14.2.0", requires=REQUIRES, extras=("ctk", "more"))
    (file,) = package.wheels
    assert str(package.version) == "14.2.0"
    assert package.index == world.server.simple
    assert file.url == f"{world.server.url}/files/{wheel.filename}"
    assert file.hashes == {"sha256": hashlib.sha256(wheel.build()).hexdigest()}
    assert depends(package) == ["toolkit"]
    assert depends(found["spacy"]) == ["cupy-cuda12x"]


def test_machines_that_markers_tell_apart(world):
    mac = machine("13.0", "mac", platforms=[MAC])
    found = packages(locked(world, "spacy", targets=[machine("12.0"), mac]))
    systems = {name: str(item.marker or "").rpartition(" ")[2] for name, item in found.items()}
    assert systems == {
        "cupy-cuda12x": '"linux"', "cupy-cuda13x": '"darwin"', "spacy": "", "toolkit": "",
    }  # fmt: skip
    assert depends(found["spacy"]) == ["cupy-cuda12x", "cupy-cuda13x"]


def test_machines_that_none_does(world):
    with pytest.raises(LockError, match=r"variant cuda12 of cupy .* write one lock file for each"):
        locked(world, "cupy", targets=[machine("12.0"), machine("13.0")])


def test_packages_that_chosen_variants_need(world, tmp_path):
    """Names in our own tables are the publishers', as those of the packages."""
    world.add(cuda("demo", "1.0", "12.0", requires=("cupy; 'nvidia' in variant_namespaces",)))
    on = machine("12.0")
    data = locked(world, "demo", "cupy[more]", targets=[on])
    tree = toml.loads(data.decode())
    assert tree["tool"]["pep-variants"]["requirements"] == ["cupy-cuda12x[more]", "demo"]
    path = tmp_path / "pylock.toml"
    path.write_bytes(data)
    chosen = select_locked(
        read_lock(path), on, Detector(environment=on.environment, platform=on.platform).platform
    )
    assert [item.name for item in chosen] == ["cupy-cuda12x", "demo", "toolkit", "torch"]


def test_a_build_that_stands_for_its_project(world):
    """C14."""
    world.add(Wheel("cudf", "25.12", requires=("cupy-cuda12x>=13",)))
    world.add(Wheel("cupy", "14.2.0"))
    found = packages(locked(world, "cudf", "spacy", targets=[machine("13.0")]))
    assert list(found) == ["cudf", "cupy-cuda12x", "spacy"]
    assert depends(found["spacy"]) == ["cupy-cuda12x"]
