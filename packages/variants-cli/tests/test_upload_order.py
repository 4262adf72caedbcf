"""The order of uploads on an index that shows every file at once."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pep_variants.choose.abi import supporting
from pep_variants.choose.ranking import rank
from pep_variants.formats.reader import read_metadata
from variants_cli.pages.machines import read_machines
from variants_cli.publishing.upload_order import best_first, merged_order

TEXT = """{
    "$schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
    "default-priorities": {"namespace": ["nvidia", "amd", "x86_64"]},
    "variants": {
        "cu126": {"nvidia": {"cuda_version_lower_bound": ["12.6"]}},
        "cu130": {"nvidia": {"cuda_version_lower_bound": ["13.0"]}},
        "cu128_torch2.8": {"nvidia": {"cuda_version_lower_bound": ["12.8"]},
                           "abi_dependency": {"torch": ["2.8"]}},
        "cu128_torch2.9": {"nvidia": {"cuda_version_lower_bound": ["12.8"]},
                           "abi_dependency": {"torch": ["2.9"]}},
        "rocm6.4": {"amd": {"rocm_version": ["6.4"]}},
        "v3": {"x86_64": {"level": ["v3"]}},
        "v4": {"x86_64": {"level": ["v4"]}},
        "null": {}
    }
}"""


def test_best_first():
    assert best_first(read_metadata(TEXT.encode(), "a-1-variants.json")) == (
        "cu130",
        "cu128_torch2.9",
        "cu128_torch2.8",
        "cu126",
        "rocm6.4",
        "v4",
        "v3",
        "null",
    )


def documents():
    """The metadata above, and those of PyTorch where the repository is."""
    folder = Path(__file__).parents[3] / "conformance" / "field" / "documents"
    return [TEXT.encode(), *(path.read_bytes() for path in sorted(folder.glob("torch-*.json")))]


@pytest.mark.parametrize("document", documents())
def test_each_machine_sees_its_best_first(document):
    """However far an upload is, what a machine gets is nothing, or what it gets in the end."""
    metadata = read_metadata(document, "a-1-variants.json")
    order = best_first(metadata)
    assert sorted(order) == sorted(metadata.variants)
    for machine in read_machines():
        labels = rank(metadata, supporting(machine.platform, metadata)).labels
        assert [label for label in order if label in labels] == list(labels), machine.name


@pytest.mark.parametrize(
    ("names", "sequences", "expected"),
    [
        ("abc", [], "abc"),
        ("abc", ["cb"], "acb"),
        ("abc", ["ca", "cb"], "cab"),
        ("abcd", ["dc", "cb", "ba"], "dcba"),
        # A circle.
        ("abc", ["ab", "ba"], "cab"),
        ("ab", ["ab", "ba"], "ab"),
        ("abc", ["abc", "bca", "cab"], "abc"),
    ],
)
def test_merged_order(names, sequences, expected):
    assert "".join(merged_order(tuple(names), sequences)) == expected


@given(st.permutations("abcdefgh"), st.randoms())
def test_sequences_of_one_order_are_kept(order, source: random.Random):
    names = sorted(order)
    sequences = [
        [name for name in order if source.random() < 0.5] for _ in range(source.randint(0, 6))
    ]
    found = merged_order(names, sequences)
    assert sorted(found) == names
    for sequence in sequences:
        assert [name for name in found if name in sequence] == sequence
