"""Looking into wheels that stay where they are."""

import hashlib
import io
import random
import zipfile

import pytest

from pep_variants._wheelfile.wheel import open_wheel
from pep_variants.errors import InvalidWheel
from support.index import Answer
from variants_index import _downloads as downloads
from variants_index._errors import BadResponse, PackageIndexError

METADATA = b"Metadata-Version: 2.1\nName: big\nVersion: 1.0\n"


def _wheel():
    noise = random.Random(1)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(50):
            archive.writestr(f"big/data{number}", noise.randbytes(20_000))
        archive.writestr("big-1.0.dist-info/METADATA", METADATA)
    return buffer.getvalue()


WHEEL = _wheel()
HASHES = {"sha256": hashlib.sha256(WHEEL).hexdigest()}
SIZE = len(WHEEL)


@pytest.fixture
def opened(server, session):
    """Open the wheel of the server."""

    def opened(hashes=None):
        asking = session(server.url, retries=0)
        return downloads.opened(asking, f"{server.root}/big.whl", hashes)

    return opened


def metadata(stream):
    with open_wheel(stream, "big.whl") as contents:
        return contents.read("METADATA")


def test_a_large_wheel_takes_a_few_small_requests(server, opened):
    server.resources["/big.whl"] = Answer(body=WHEEL, ranges=True)
    with opened() as stream:
        assert metadata(stream) == METADATA
    assert len(server.requests) <= 3
    assert all("Range" in each.headers for each in server.requests)


def test_a_server_that_sends_all_for_the_last_bytes(server, session):
    """It serves other ranges, and is not asked for these again."""
    server.resources["/big.whl"] = Answer(body=WHEEL, ranges=True)
    server.suffixes = False
    asking = session(server.url, retries=0)
    for _ in range(2):
        with downloads.opened(asking, f"{server.root}/big.whl") as stream:
            assert metadata(stream) == METADATA
    asked = [each.headers["Range"].partition("=")[2] for each in server.requests]
    assert [each[:3] for each in asked].count("-65") == 1
    assert asked.count("0-0") == 2


def test_a_long_download_for_the_metadata_is_said(server, session, caplog):
    large = bytes(10 * 2**20)
    server.resources["/large.whl"] = Answer(body=large)
    with downloads.opened(session(server.url), f"{server.root}/large.whl") as stream:
        assert stream.read() == large
    assert caplog.messages == [
        f"{server.root}/large.whl: downloading all of it for its metadata: its server has no ranges"
    ]


def test_without_parts_it_is_downloaded_and_verified(server, opened):
    server.resources["/big.whl"] = Answer(body=WHEEL)
    with opened(HASHES) as stream:
        assert metadata(stream) == METADATA
    with pytest.raises(BadResponse, match="sha256"), opened({"sha256": "0" * 64}):
        pass


def test_local(tmp_path, session):
    path = tmp_path / "big-1.0-py3-none-any.whl"
    path.write_bytes(WHEEL)
    with downloads.opened(session(), path.as_uri()) as stream:
        assert metadata(stream) == METADATA


@pytest.mark.parametrize(
    ("size", "span"),
    [
        (32768, "bytes 0-10/100"),
        (32768, ""),
        (32768, "bytes 0-99999999/100000000"),
        (2 * SIZE, f"bytes {SIZE - 32768}-{SIZE - 1}/{SIZE}"),  # more than was asked for
    ],
)
def test_wrong_ranges(server, opened, size, span):
    headers = {"Content-Range": span} if span else {}
    server.resources["/big.whl"] = Answer(206, [(WHEEL * 2)[-size:]], headers=headers)
    with pytest.raises((PackageIndexError, InvalidWheel)), opened() as stream:
        metadata(stream)


def test_a_file_that_changes(server, opened):
    first, second = (
        Answer(body=WHEEL, ranges=True, headers={"ETag": f'"{number}"'}) for number in (1, 2)
    )
    server.faults["/big.whl"] = [first, second]
    with opened() as stream:
        stream.seek(0)
        with pytest.raises(BadResponse, match="changes while it is read"):
            stream.read(10)


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        (Answer.endless(), "larger than the 100000 bytes expected"),
        (Answer(body=b"few"), "has 3 bytes, expected 100000"),
    ],
)
def test_a_download_is_bounded(server, session, tmp_path, resource, message):
    server.resources["/big.whl"] = resource
    asking, url = session(server.url), f"{server.root}/big.whl"
    with (tmp_path / "copy").open("wb") as copy, pytest.raises(BadResponse, match=message):
        downloads.download(asking, url, copy, {}, size=100_000)
    assert (tmp_path / "copy").stat().st_size <= 100_000
