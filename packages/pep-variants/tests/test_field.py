"""Metadata as it was published for torch and torchvision, and what it means on real machines."""

import json

import jsonschema
import pytest

from pep_variants.choose.explanation import notices, why_not
from pep_variants.choose.ranking import rank
from pep_variants.detect.detector import Detector
from pep_variants.formats.reader import metadata_from_tree, read_metadata, read_pyproject
from pep_variants.formats.writer import write_metadata
from pep_variants.model.generation import V0_2_0
from pep_variants.model.platform import Platform, Support
from pep_variants.providers.nvidia import NvidiaProvider

LINUX = {"platform_system": "Linux", "os_name": "posix", "sys_platform": "linux"}
MAC = {"platform_system": "Darwin", "os_name": "posix", "sys_platform": "darwin"}

FILES = (
    "torch-2.8.0-variants.json",
    "torch-2.10.0-variants.json",
    "torchvision-0.23.0-variants.json",
    "torchvision-0.25.0-variants.json",
)


def machine(driver, capability):
    """A machine with that driver and GPU, and with no other accelerator."""
    # What there really is must not matter. This driver is too old for anything, and this GPU too
    # old for any code: that is the same as none.
    environ = {
        "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION": driver or "10.0",
        "NV_VARIANT_PROVIDER_FORCE_SM_ARCH": capability or "3.0",
    }
    return Platform(
        {
            "nvidia": Support(NvidiaProvider(environ).supported()),
            "amd": Support(),
            "intel": Support(),
        }
    )


def load(folder, name):
    return read_metadata((folder / name).read_bytes(), name)


def ranked(metadata, platform, environment=LINUX):
    return rank(metadata, Detector(environment=environment, platform=platform).platform(metadata))


@pytest.mark.parametrize("name", FILES)
def test_our_own_words_tell_the_same(fixtures, data, name):
    published, ours = load(data / "field", name), load(fixtures, name)
    assert ours == published
    assert ours.schema == published.schema


@pytest.mark.parametrize("name", FILES)
def test_published_files_are_what_their_schema_says(data, name):
    tree = json.loads((data / "field" / name).read_bytes())
    schema = data / "schemas" / tree["$schema"].rpartition("wheelnext.dev/")[2].replace("/", "-")
    if not schema.is_file():
        pytest.skip("its schema was not published")
    jsonschema.validate(tree, json.loads(schema.read_bytes()))


def test_source_tree_tells_the_same(fixtures):
    source = read_pyproject((fixtures / "torch-2.10.0-pyproject.toml").read_bytes(), "")
    index = load(fixtures, "torch-2.10.0-variants.json")
    assert source.namespaces == index.namespaces
    assert source.providers == index.providers
    assert source.variants == {}


def test_published_source_tree(fixtures, data):
    published = read_pyproject((data / "field" / "torch_pyproject.toml").read_bytes(), "")
    ours = read_pyproject((fixtures / "torch-2.10.0-pyproject.toml").read_bytes(), "")
    assert ours == published


@pytest.mark.parametrize("name", ["torch-2.8.0-variants.json", "torchvision-0.23.0-variants.json"])
@pytest.mark.parametrize(
    ("driver", "capability", "winner"),
    [
        (None, None, "null"),  # no driver, no GPU
        (None, "9.0", "null"),
        ("12.9", None, "null"),
        ("11.8", "9.0", "null"),  # cu126 needs driver 12.0
        ("12.0", "9.0", "cu126"),
        ("12.5", "9.0", "cu126"),
        ("12.6", "7.5", "cu126"),
        ("12.7", "9.0", "cu126"),
        ("12.8", "9.0", "cu128"),
        ("12.9", "9.0", "cu129"),
        ("13.0", "9.0", "cu129"),
        ("15.20", "9.0", "cu129"),
        ("15.21", "9.0", "null"),  # outside the range that the provider knows
        # Compute capabilities that only some builds have code for.
        ("12.9", "5.2", "cu126"),
        ("12.9", "6.1", "cu126"),
        ("12.9", "7.0", "cu129"),
        ("12.9", "7.2", "cu129"),  # runs code for 7.0
        ("12.8", "7.5", "cu128"),
        ("12.9", "7.5", "cu129"),
        ("12.9", "8.9", "cu129"),
        ("12.8", "10.0", "cu128"),
        ("12.8", "10.3", "cu128"),
        ("12.7", "10.0", "null"),  # only cu128 and cu129 have code for it
        ("12.9", "11.0", "null"),  # no release has it
        ("12.8", "12.0", "cu128"),
        ("12.9", "12.0", "cu129"),
        ("12.9", "12.1", "cu129"),
        ("12.6", "12.0", "null"),
    ],
)
def test_winner_of_2025(fixtures, name, driver, capability, winner):
    found = ranked(load(fixtures, name), machine(driver, capability))
    assert found.labels[0] == winner
    assert found.labels[-1] == "null"
    assert {*found.labels, *found.rejected_labels} == {"cu126", "cu128", "cu129", "null"}


@pytest.mark.parametrize("name", ["torch-2.10.0-variants.json", "torchvision-0.25.0-variants.json"])
@pytest.mark.parametrize(
    ("driver", "capability", "order"),
    [
        (None, None, "null"),
        ("13.0", None, "null"),
        ("11.8", "9.0", "null"),
        # cuda12.6 and cuda12.8 need the same driver: the publisher's own 'priority' decides.
        ("12.0", "7.0", "cuda12.8 cuda12.6 null"),
        ("12.4", "5.0", "cuda12.6 null"),
        ("12.8", "6.1", "cuda12.6 null"),
        ("12.8", "7.5", "cuda12.8 cuda12.6 null"),
        ("12.8", "8.7", "cuda12.8 cuda12.6 null"),
        ("12.8", "9.0", "cuda12.8 cuda12.6 null"),
        ("12.9", "10.3", "cuda12.8 null"),
        ("12.9", "12.0", "cuda12.8 null"),
        ("13.0", "6.0", "cuda12.6 null"),
        ("13.0", "7.0", "cuda12.8 cuda12.6 null"),
        ("13.0", "7.5", "cuda13.0 cuda12.8 cuda12.6 null"),
        ("13.0", "9.0", "cuda13.0 cuda12.8 cuda12.6 null"),
        ("13.1", "8.9", "cuda13.0 cuda12.8 cuda12.6 null"),
        ("13.0", "10.0", "cuda13.0 cuda12.8 null"),
        ("13.0", "11.0", "null"),
        ("13.0", "12.1", "cuda13.0 cuda12.8 null"),
    ],
)
@pytest.mark.parametrize("priority", ["listed", "not listed"])
def test_order_of_2026(fixtures, name, driver, capability, order, priority):
    tree = json.loads((fixtures / name).read_bytes())
    if priority == "not listed":
        # Then nothing says which values of 'priority' there are, other than the variants.
        del tree["static-properties"]
    found = ranked(metadata_from_tree(tree, name), machine(driver, capability))
    assert " ".join(found.labels) == order


def test_every_other_build_is_explained(fixtures):
    found = ranked(load(fixtures, "torch-2.10.0-variants.json"), machine("12.8", "9.0"))
    assert found.rejected_labels == ("cuda13.0", "rocm7.0", "rocm7.1", "xpu")
    assert why_not(found, "cuda13.0") == (
        "needs CUDA driver 13.0 or newer, this one supports up to 12.8",
    )
    assert [(r.namespace, r.feature, r.supported) for r in found.reasons("rocm7.1")] == [
        ("amd", "gfx_arch", ()),
        ("amd", "rocm_version", ()),
    ]


def test_no_cuda_on_a_mac(fixtures):
    found = ranked(load(fixtures, "torch-2.8.0-variants.json"), Platform(), MAC)
    assert found.labels == ("null",)
    assert found.reasons("cu128")[0].supported == ()
    (notice,) = notices(found)
    assert notice.text == (
        "Namespace 'nvidia' is skipped: its provider is only for environments with "
        "\"platform_system == 'Linux' or platform_system == 'Windows'\""
    )
    assert not notice.actionable


def test_asking_this_machine(fixtures, monkeypatch):
    monkeypatch.setenv("NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION", "12.8")
    monkeypatch.setenv("NV_VARIANT_PROVIDER_FORCE_SM_ARCH", "9.0")
    metadata = load(fixtures, "torch-2.8.0-variants.json")
    platform = Detector(environment=LINUX).platform(metadata)
    assert platform == Platform({"nvidia": platform.namespaces["nvidia"]})
    assert platform.namespaces["nvidia"].resolved == ("nvidia-variant-provider==0.0.2",)
    assert rank(metadata, platform).labels == ("cu128", "cu126", "null")


@pytest.mark.parametrize("name", FILES)
def test_converted_to_the_newest_format(fixtures, name):
    original = load(fixtures, name)
    converted = read_metadata(write_metadata(original, V0_2_0), name)
    assert converted.variants == original.variants
    for driver, capability in (("12.9", "9.0"), ("13.0", "7.0"), ("12.4", "5.0"), (None, None)):
        platform = machine(driver, capability)
        assert ranked(converted, platform).labels == ranked(original, platform).labels


def test_everything_that_the_field_published_is_read(data):
    found = sorted(data.glob("*/**/*-variants.json"))
    assert len(found) > 130
    for path in found:
        metadata = read_metadata(path.read_bytes(), path.name)
        assert metadata.variants
        zeros = metadata.variants.get("00000000")
        assert zeros is None or zeros


def test_torch_2_8_as_its_own_index_has_it(data):
    name = "torch-2.8.0-variants.json"
    path = data / "variants-index" / "torch" / name
    metadata = read_metadata(path.read_bytes(), name)
    assert ranked(metadata, machine("12.8", "9.0")).labels[0] == "cu128"
    places = ranked(metadata, machine(None, None)).positions
    assert places == {"null": 0, "00000000": 0}
