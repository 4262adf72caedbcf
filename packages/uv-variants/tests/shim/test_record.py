"""RECORD with other contents of one file, everything else byte for byte."""

import pytest

from uv_variants.shim.record import rewrite_record


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
