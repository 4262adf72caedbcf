"""Limits on untrusted input: applied before work is spent, and linear work within them."""

import json
import sys

import pytest

from pep_variants import limits
from pep_variants._choose.explanation import verdicts
from pep_variants._choose.ranking import rank
from pep_variants._detect.detector import Detector
from pep_variants._formats.reader import metadata_from_tree, read_metadata
from pep_variants.errors import MetadataError

SCHEMA = "https://variants-schema.wheelnext.dev/v0.2.0.json"


def document(namespaces=("a",), providers=None, variants=None):
    return {
        "$schema": SCHEMA,
        "default-priorities": {"namespace": list(namespaces)},
        "providers": providers or {},
        "variants": {"x": {"a": {"b": ["c"]}}} if variants is None else variants,
    }


def provider(**keys):
    return document(providers={"a": {key.replace("_", "-"): keys[key] for key in keys}})


def numbered(prefix, count):
    return [f"{prefix}{number}" for number in range(count)]


def variant(features):
    return document(variants={"x": {"a": features}})


PROPERTIES = {"a": {"b": ["c"]}}
OLD = {"$schema": "https://variants-schema.wheelnext.dev/v0.0.3.json"}


def required(*counts, length=1, **others):
    """Providers with so many requirements of a length each."""
    wanted = {
        name: {"requires": ["p" * length] * count}
        for name, count in zip("ab", counts, strict=False)
    }
    return document(providers={**wanted, **others})


# What: a document just within the limit by its number, the number, and where the error is.
COUNTS = {
    "labels": (
        lambda n: document(variants=dict.fromkeys(numbered("l", n), PROPERTIES)),
        limits.LABELS,
        "variants",
    ),
    "label length": (
        lambda n: document(variants={"l" * n: PROPERTIES}), limits.LABEL_LENGTH, "variants",
    ),
    "namespaces": (
        lambda n: document(["a", *numbered("n", n - 1)]),
        limits.NAMESPACES,
        "default-priorities.namespace",
    ),
    "namespace length": (
        lambda n: document(["a", "n" * n]), limits.NAME_LENGTH, "default-priorities.namespace",
    ),
    "providers": (
        lambda n: document(providers={name: {"requires": ["p"]} for name in numbered("n", n)}),
        limits.NAMESPACES,
        "providers",
    ),
    "features of a variant": (
        lambda n: variant({name: ["1"] for name in numbered("f", n)}),
        limits.FEATURES,
        "variants.x.a",
    ),
    "feature length": (
        lambda n: variant({"f" * n: ["1"]}), limits.NAME_LENGTH, "variants.x.a",
    ),
    "values of a feature": (
        lambda n: variant({"f": numbered("v", n)}), limits.VALUES, "variants.x.a.f",
    ),
    "value length": (
        lambda n: variant({"f": ["v" * n]}), limits.VALUE_LENGTH, "variants.x.a.f",
    ),
    "features of a provider": (
        lambda n: provider(
            static_properties={name: ["1"] for name in numbered("f", n)},
            feature_order=numbered("f", n),
        ),
        limits.FEATURES,
        "providers.a.static-properties",
    ),
    "values of a provider": (
        lambda n: provider(static_properties={"f": numbered("v", n)}),
        limits.VALUES,
        "providers.a.static-properties.f",
    ),
    "requirements of a provider": (
        lambda n: required(n), limits.PROVIDER_REQUIREMENTS, "providers.a.requires",
    ),
    "requirements of several providers": (
        lambda n: required(100, n - 100), limits.PROVIDER_REQUIREMENTS, "providers.b.requires",
    ),
    "characters of requirements of several providers": (
        lambda n: required(9, length=2000, b={"requires": ["p" * 1000, "p" * (n - 19_000)]}),
        limits.PROVIDER_REQUIREMENT_CHARACTERS,
        "providers.b.requires",
    ),
    "characters of markers of several providers": (
        lambda n: {
            **document(
                providers={
                    **{f"p{i}": {"requires": ["p"], "enable-if": "m" * 1999} for i in range(9)},
                    "a": {"requires": ["p" * 1000], "enable-if": "m" * (n - 19_000)},
                }
            ),
            **OLD,
        },
        limits.PROVIDER_REQUIREMENT_CHARACTERS,
        "providers.a.enable-if",
    ),
    "schema length": (
        lambda n: {**document(), "$schema": "x" * n}, limits.SCHEMA_LENGTH, "$schema",
    ),
    "requirement length": (
        lambda n: required(1, length=n), limits.REQUIREMENT_LENGTH, "providers.a.requires",
    ),
    "marker length": (
        lambda n: {**provider(requires=["p"], enable_if="m" * n), **OLD},
        limits.MARKER_LENGTH,
        "providers.a.enable-if",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "most", "place"), COUNTS.values(), ids=COUNTS)
def test_documents_at_a_limit_are_read_and_beyond_it_refused(make, most, place):
    assert metadata_from_tree(make(most), "x.json").namespaces
    with pytest.raises(MetadataError) as raised:
        metadata_from_tree(make(most + 1), "x.json")
    assert raised.value.path == place
    assert str(most) in str(raised.value)
    assert len(str(raised.value)) < 500


def test_documents_with_too_many_values_are_not_parsed(monkeypatch):
    monkeypatch.setattr("json.loads", lambda data: pytest.fail("parsed"))
    data = b"[" + b"0," * limits.DOCUMENT_VALUES + b"0]"
    assert len(data) < limits.DOCUMENT_BYTES
    for text in (data, data.decode()):
        with pytest.raises(MetadataError, match="more than 1000000 JSON values"):
            read_metadata(text, "x.json")


def steps(function):
    """How many lines and calls of Python *function* runs: no clock, so no load changes it.

    What runs in C is not counted; the comparisons here are chosen so that quadratic work shows.
    """
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


def judged(tree):
    data = json.dumps(tree).encode()

    def judge():
        metadata = read_metadata(data, "x.json")
        ranking = rank(metadata, Detector().platform(metadata))
        verdicts(ranking, None)

    return judge


# Documents by size, whose reading, detection, ranking and explanation has to be linear.
GROWING = {
    "labels": lambda n: document(
        providers={"a": {"static-properties": {"f": ["1"]}}},
        variants={name: {"a": {"f": ["1", name]}} for name in numbered("l", n)},
    ),
    "rejected labels": lambda n: document(
        providers={"a": {"static-properties": {"f": numbered("v", 50)}}},
        variants={name: {"a": {"f": [name]}} for name in numbered("l", n)},
    ),
    "features": lambda n: document(
        providers={
            "a": {
                "static-properties": {name: ["1"] for name in numbered("f", n)},
                "feature-order": numbered("f", n)[::-1],
            }
        },
        variants={"x": {"a": {name: ["1"] for name in numbered("f", n)}}},
    ),
    "values": lambda n: document(
        providers={"a": {"static-properties": {"f": numbered("v", n)[::-1]}}},
        variants={"x": {"a": {"f": numbered("v", n)}}},
    ),
}


@pytest.mark.parametrize("what", GROWING)
def test_work_grows_with_the_size_of_a_document(what):
    small, large = (steps(judged(GROWING[what](size))) for size in (200, 800))
    assert large < 5 * small, f"{large / small:.1f} times the work for 4 times the size"


def test_reasons_in_a_table_are_bounded():
    """A notice quotes a requirement of the metadata; every label would repeat it."""
    names = numbered("n", 50)
    tree = document(
        ["a", *names],
        {name: {"requires": ["p" * 400]} for name in names},
        {"x": {name: {"f": ["v"]} for name in names}},
    )
    metadata = metadata_from_tree(tree, "x.json")
    ranking = rank(metadata, Detector().platform(metadata))
    (verdict,) = verdicts(ranking, None)
    assert len(verdict.why) < 12 * 600
    assert verdict.why.endswith("; and 38 more reasons")
