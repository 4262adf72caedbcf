import pytest

from pep_variants.generation import GENERATIONS, schema_version, spells_null_in_zeros

BASE = "https://variants-schema.wheelnext.dev/"


@pytest.mark.parametrize(
    ("schema", "version"),
    [
        (BASE, (0, 0, 1)),
        (BASE.rstrip("/"), (0, 0, 1)),
        (f"{BASE}v0.0.2.json", (0, 0, 2)),
        (f"{BASE}v0.0.3.json", (0, 0, 3)),
        (f"{BASE}peps/825/v0.1.0.json", (0, 1, 0)),
        (f"{BASE}peps/825/v0.1.1.json", (0, 1, 1)),
        (f"{BASE}v0.2.0.json", (0, 2, 0)),
        (f"{BASE}peps/850/v0.2.0.json", (0, 2, 0)),
        (f"{BASE}peps/850/v0.2.0.json#", (0, 2, 0)),
        ("https://packaging.python.org/schemas/variants/1.0.0.json", (1, 0, 0)),
        ("https://packaging.python.org/schemas/variants/v1.0.json", (1, 0, 0)),
        ("https://packaging.python.org/schemas/variants/v2.json", (2, 0, 0)),
        ("https://packaging.python.org/schemas/variants-1.0.0/", None),
        ("https://example.org/2026/variants.json", None),
        ("https://example.org/2026", None),
        ("v0.2.0.json", None),
        (f"{BASE}v0.2.0.json\n", None),
        (f"{BASE}v{'9' * 5000}.0.0.json", None),
        (f"{BASE}v\u0660.2.0.json", None),
        ("", None),
        ("/", None),
    ],
)
def test_schema_version(schema, version):
    assert schema_version(schema) == version


def test_every_generation_is_found_by_its_own_schema():
    assert sorted(GENERATIONS) == [
        (0, 0, 1), (0, 0, 2), (0, 0, 3), (0, 1, 0), (0, 1, 1), (0, 2, 0)
    ]  # fmt: skip
    for version, generation in GENERATIONS.items():
        assert generation.version == version
        assert schema_version(generation.schema) == version


@pytest.mark.parametrize(
    ("schema", "zeros"),
    [(None, True), (BASE, True), (f"{BASE}v0.0.2.json", False), ("https://example.org", False)],
)
def test_who_spells_null_in_zeros(schema, zeros):
    assert spells_null_in_zeros(schema) is zeros
