import gzip
import io
import tarfile
import zipfile

import pytest

from pep_variants._wheelfile import sdist
from pep_variants._wheelfile.sdist import read_pkg_info
from pep_variants.errors import InvalidSdist
from pep_variants.limits import CORE_METADATA_BYTES
from support.waiting import memory_limit

PKG_INFO = b"Metadata-Version: 2.4\nName: demo\nVersion: 1.0\n"
FORMATS = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]


def tarred(*members, form=tarfile.PAX_FORMAT, **attributes):
    """A gzipped tar archive of (path, contents); contents None make a directory."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=form) as archive:
        for path, data in members:
            info = tarfile.TarInfo(path)
            for name, value in attributes.items():
                setattr(info, name, value)
            if data is None:
                info.type = tarfile.DIRTYPE
            else:
                info.size = len(data)
            archive.addfile(info, io.BytesIO(data or b""))
    return buffer.getvalue()


def zipped(*members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in members:
            archive.writestr(path, data)
    return buffer.getvalue()


def read(data, filename="demo-1.0.tar.gz"):
    return read_pkg_info(io.BytesIO(data), filename, f"https://u:secret@host/{filename}")


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "before",
    [
        [],
        [("demo-1.0", None), ("demo-1.0/README", b"x" * 5000)],
        [("demo-1.0/demo.egg-info/PKG-INFO", b"another")],
        [("PKG-INFO", b"another")],
        [("demo-1.0/" + "long/" * 30 + "PKG-INFO", b"another")],
        [("demo-1.0/größe", b"x")],
        [("demo-1.0/empty", b"")],
    ],
)
def test_pkg_info_of_a_tar_archive(form, before):
    members = [*before, ("demo-1.0/PKG-INFO", PKG_INFO), ("demo-1.0/z", b"z")]
    assert read(tarred(*members, form=form)) == PKG_INFO
    assert read(tarred(*before, form=form)) is None


def test_several_gzip_members_and_padding():
    data = gzip.decompress(tarred(("demo-1.0/PKG-INFO", PKG_INFO)))
    parts = b"".join(gzip.compress(data[at : at + 700]) for at in range(0, len(data), 700))
    assert read(parts + bytes(100)) == PKG_INFO


def test_links_are_not_followed():
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        info = tarfile.TarInfo("demo-1.0/PKG-INFO")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(info)
    assert read(buffer.getvalue()) is None


def test_zip_archives():
    members = [("demo-1.0/src/PKG-INFO", "another"), ("demo-1.0/PKG-INFO", PKG_INFO)]
    assert read(zipped(*members), "demo-1.0.zip") == PKG_INFO
    assert read(zipped(members[0]), "demo-1.0.zip") is None


GOOD = tarred(("demo-1.0/PKG-INFO", PKG_INFO))


@pytest.mark.parametrize(
    ("filename", "data", "problem"),
    [
        ("demo-1.0.tar.gz", b"", "ends early"),
        ("demo-1.0.tar.gz", b"<html>404</html>", "incorrect header check"),
        ("demo-1.0.tar.gz", GOOD[:60], "ends early"),
        ("demo-1.0.tar.gz", gzip.compress(b"no tar archive" * 100), "invalid header"),
        ("demo-1.0.tar.gz", gzip.compress(b"") * 2000, "gzip members"),
        ("demo-1.0.zip", b"no", "not a zip file"),
        ("demo-1.0.zip", zipped(("d/PKG-INFO", bytes(CORE_METADATA_BYTES + 1))), "larger than"),
        ("demo-1.0.tar.gz", tarred(("d/PKG-INFO", bytes(CORE_METADATA_BYTES + 1))), "larger than"),
    ],
    ids=range(8),
)
def test_unusable_archives(filename, data, problem):
    with pytest.raises(InvalidSdist) as raised:
        read(data, filename)
    text = str(raised.value)
    assert text.startswith(f"https://****@host/{filename}: ")
    assert problem in text
    assert text.isprintable()
    assert len(text) < 300


def header(kind, size):
    info = tarfile.TarInfo("demo-1.0/x")
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


def test_members_are_counted_and_not_kept(monkeypatch):
    """One empty member takes 512 bytes, four of the gzip file: tarfile takes 1.3 KB of memory."""
    monkeypatch.setattr(sdist, "SDIST_MEMBERS", 5_000)
    data = gzip.compress(header(tarfile.REGTYPE, 0) * 5_001)
    with memory_limit(2_000_000), pytest.raises(InvalidSdist, match="more than 5000 members"):
        read(data)


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.XHDTYPE])
def test_unpacked_bytes_are_counted_and_not_kept(kind, monkeypatch):
    monkeypatch.setattr(sdist, "SDIST_UNPACKED", 32 * 2**20)
    data = gzip.compress(header(kind, 64 * 2**20) + bytes(64 * 2**20))
    with memory_limit(4_000_000), pytest.raises(InvalidSdist, match="unpacks to more than 32 MiB"):
        read(data)


def test_negative_sizes():
    block = header(tarfile.REGTYPE, -512)
    with pytest.raises(InvalidSdist, match="negative size"):
        read(gzip.compress(block + bytes(1024)))
