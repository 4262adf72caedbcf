import pytest

from pep_variants.model.generation import (
    GENERATIONS,
    UnknownSchema,
    generation_of,
    schema_version,
)

BASE = "https://variants-schema.wheelnext.dev/"
PYPA = "https://packaging.python.org/schemas/"


@pytest.mark.parametrize(
    ("schema", "version"),
    [
        (f"{BASE}v0.0.3.json", (0, 0, 3)),
        (f"{BASE}v0.2.0.json\n", (0, 2, 0)),
        (f"{PYPA}variants/v2.json", (2, 0, 0)),
        (f"{PYPA}variant-metadata-v1.0.0.schema.json", (1, 0, 0)),
        (f"{PYPA}v1.0.0rc1.json", (1, 0, 0)),
        (f"{PYPA}v3/variants.json?raw=1.0", (3, 0, 0)),
        (f"{PYPA}v1/variants-2.1.json", (2, 1, 0)),
        ("https://127.0.0.1:8000/variants.json", None),
        ("", None),
    ],
)
def test_schema_version(schema, version):
    assert schema_version(schema) == version


def test_every_generation_is_found_by_its_own_schema():
    assert sorted(GENERATIONS) == [
        (0, 0, 1), (0, 0, 2), (0, 0, 3), (0, 1, 0), (0, 1, 1), (0, 2, 0), (1, 0, 0)
    ]  # fmt: skip
    for version, generation in GENERATIONS.items():
        assert generation.version == version
        if generation.schema:
            assert generation_of(generation.schema) is generation


@pytest.mark.parametrize(
    "schema", [f"{PYPA}variant-metadata-v2.0.0.schema.json", f"{PYPA}v2.json", f"{PYPA}3.1/v"]
)
def test_unknown_major_versions_are_refused(schema):
    with pytest.raises(UnknownSchema, match=r"only 0\.x and 1\.x are"):
        generation_of(schema)


@pytest.mark.parametrize("version", ["9" * 5000 + ".0.0", "\u0660.2.0", "0." + "9" * 10])
def test_a_version_that_cannot_be_read(version):
    with pytest.raises(UnknownSchema, match="cannot be read"):
        schema_version(f"{BASE}v{version}.json")
