"""Variant metadata of wheels to make, and looking into wheels that were made."""

import zipfile

from pep_variants._wheelfile.record import digest_of, read_record

SCHEMA = "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json"


def make_variant_json(label, properties=None, namespaces=("x86_64",), **keys):
    return {
        "$schema": SCHEMA,
        "default-priorities": {"namespace": list(namespaces)},
        "variants": {label: properties or {}},
        **keys,
    }


def contents(path):
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def check_record(path):
    """Check that RECORD lists exactly what is in the wheel, with the right digests."""
    files = contents(path)
    (record,) = (name for name in files if name.endswith(".dist-info/RECORD"))
    rows = read_record(files[record], str(path))
    unsigned = {name for name in files if not name.endswith((".jws", ".p7s"))}
    assert {row.path for row in rows} == unsigned
    assert len(rows) == len(unsigned)
    for row in rows:
        expected = ("", "") if row.path == record else (digest_of(files[row.path]), row.size)
        assert (row.digest, row.size) == expected
        assert row.path == record or int(row.size) == len(files[row.path])
