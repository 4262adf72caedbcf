"""METADATA and RECORD made plain, everything else byte for byte."""

import pytest

from pep_variants.markers import NON_VARIANT, VariantContext
from uv_variants.shim.reduction import has_variant_markers, reduce_metadata, rewrite_record

CU128 = VariantContext("cu128", {"nvidia": {"cuda_version_lower_bound": ("12.8",)}})


@pytest.mark.parametrize(
    ("requirement", "cu128", "plain"),
    [
        ("a", "a", "a"),
        ("a; 'nvidia' in variant_namespaces", "a", None),
        ("a; variant_label == ''", None, "a"),
        ("a; variant_label == 'cu128' and os_name == 'nt'", "a; os_name == 'nt'", None),
        ("a; variant_label ~= 'x'", "a; variant_label ~= 'x'", "a; variant_label ~= 'x'"),
        ("a; python_version > '3'", "a; python_version > '3'", "a; python_version > '3'"),
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_reduce(requirement, cu128, plain, ending):
    def metadata(value):
        lines = ["Name: x"]
        lines += [f"Requires-Dist: {value}"] if value is not None else []
        return ending.join([*lines, "Home-page: http://variant_label", "",
                            "Requires-Dist: d; variant_label == ''", ""]).encode()  # fmt: skip

    assert reduce_metadata(metadata(requirement), CU128) == metadata(cu128)
    assert reduce_metadata(metadata(requirement), NON_VARIANT) == metadata(plain)
    assert has_variant_markers(metadata(requirement)) is ("variant_" in requirement)


def test_folded_fields():
    folded = b"Requires-Dist: a;\n  variant_label ==\n\t'cu128'\nName: x\n"
    assert reduce_metadata(folded, CU128) == b"Requires-Dist: a\nName: x\n"


def test_bytes_that_are_no_text():
    data = b"Author: \xff\xfe\nRequires-Dist: a; variant_label == 'cu128'\n"
    assert reduce_metadata(data, CU128) == b"Author: \xff\xfe\nRequires-Dist: a\n"


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_record(ending):
    record = b"x.py,sha256=abc,1" + ending + b"x-1.dist-info/METADATA,sha256=old,99" + ending
    record += b"x-1.dist-info/RECORD,," + ending
    found = rewrite_record(record, "x-1.dist-info/METADATA", b"new")
    line = b"x-1.dist-info/METADATA,sha256=EVBrA3-RNSm8KOaRCnGU35DjcLlq52JnqhkEySbs7IA,3"
    assert found.split(ending)[1][:31] == line[:31]
    assert found.split(ending)[1].endswith(b",3")
    assert found.replace(found.split(ending)[1], b"") == record.replace(
        record.split(ending)[1], b""
    )


def test_record_without_it():
    assert rewrite_record(b"x.py,,", "a,b/METADATA", b"").startswith(
        b'x.py,,\n"a,b/METADATA",sha256='
    )
