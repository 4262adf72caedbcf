"""Looking into wheels that stay where they are."""

import hashlib
import io
import random
import zipfile

import pytest

from pep_variants.errors import InvalidWheel
from pep_variants.sources import Sources
from pep_variants.wheelfile.wheel import open_wheel
from support.index_server import Resource, served
from variants_index import downloads
from variants_index.errors import BadResponse, PackageIndexError
from variants_index.http.session import Session

METADATA = b"Metadata-Version: 2.1\nName: big\nVersion: 1.0\n"


def wheel(members=50, size=20_000):
    noise = random.Random(1)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(members):
            archive.writestr(f"big/data{number}", noise.randbytes(size))
        archive.writestr("big-1.0.dist-info/METADATA", METADATA)
    return buffer.getvalue()


@pytest.fixture
def server():
    with served() as running:
        yield running


@pytest.fixture
def session(server):
    with_it = Session(Sources(index_url=server.simple), environ={}, retries=0)
    yield with_it
    with_it.close()


def look(session, url, hashes=None):
    with downloads.opened(session, url, hashes) as stream, open_wheel(stream, url) as contents:
        return contents.read("METADATA")


def test_a_large_wheel_takes_a_few_small_requests(server, session):
    data = wheel()
    server.resources["/big.whl"] = Resource(data, ranges=True)
    assert look(session, f"{server.url}/big.whl") == METADATA
    assert len(server.requests) <= 3
    assert all("Range" in headers for _, headers in server.requests)


def test_without_parts_it_is_downloaded_and_verified(server, session):
    data = wheel()
    server.resources["/big.whl"] = Resource(data)
    hashes = {"sha256": hashlib.sha256(data).hexdigest()}
    assert look(session, f"{server.url}/big.whl", hashes) == METADATA
    with pytest.raises(BadResponse, match="sha256"):
        look(session, f"{server.url}/big.whl", {"sha256": "0" * 64})


def test_local(tmp_path, session):
    path = tmp_path / "big-1.0-py3-none-any.whl"
    path.write_bytes(wheel())
    assert look(session, path.as_uri()) == METADATA


def test_reads_like_a_file(server, session):
    data = wheel(members=8)
    server.resources["/big.whl"] = Resource(data, ranges=True)
    places = random.Random(2)
    with downloads.opened(session, f"{server.url}/big.whl") as stream:
        for _ in range(20):
            start = places.randrange(len(data) + 100)
            length = places.randrange(60_000)
            stream.seek(start)
            assert stream.read(length) == data[start : start + length]
            assert stream.tell() == max(start, min(start + length, len(data)))
        stream.seek(0)
        assert stream.read() == data


class TestHostile:
    def answers(self, server, *changes):
        """Have the server answer ranges with other headers than it should."""
        data = wheel()
        state = {"number": 0}

        def answer(headers):
            change = changes[min(state["number"], len(changes) - 1)]
            state["number"] += 1
            return change(data, headers)

        server.resources["/big.whl"] = answer
        return f"{server.url}/big.whl"

    @pytest.mark.parametrize(
        "span",
        [
            "bytes 0-10/100", "bytes 5-3/100", "bytes a-b/c", "bytes 0-32767/*", "", "lines 1-2/3",
            f"bytes 0-{10**30}/{10**31}", "bytes 0-99999999/100000000",
        ],
    )  # fmt: skip
    def test_content_range(self, server, session, span):
        url = self.answers(
            server,
            lambda data, headers: Resource(
                data[-32768:], 206, headers={"Content-Range": span} if span else {}
            ),
        )
        with pytest.raises((PackageIndexError, InvalidWheel)):
            look(session, url)

    def test_more_than_asked_for(self, server, session):
        url = self.answers(
            server,
            lambda data, headers: Resource(
                (b"x" * 65536 for _ in iter(int, 1)),
                206,
                headers={"Content-Range": f"bytes {len(data) - 32768}-{len(data) - 1}/{len(data)}"},
            ),
        )
        with pytest.raises(BadResponse, match="another range"):
            look(session, url)

    def test_a_file_that_changes(self, server, session):
        parts = []

        def changing(data, headers):
            parts.append(headers["Range"])
            return Resource(data, ranges=True, headers={"ETag": f'"{len(parts)}"'})

        url = self.answers(server, changing)
        with downloads.opened(session, url) as stream:
            stream.seek(0)
            with pytest.raises(BadResponse, match="changes while it is read"):
                stream.read(10)

    def test_one_that_stops_giving_parts(self, server, session):
        url = self.answers(
            server,
            lambda data, headers: Resource(data, ranges=True),
            lambda data, headers: Resource(data),
        )
        with downloads.opened(session, url) as stream:
            stream.seek(0)
            with pytest.raises(BadResponse, match="stopped answering range requests"):
                stream.read(10)

    def test_a_download_is_bounded(self, server, session, tmp_path):
        server.resources["/big.whl"] = Resource.endless()
        with (tmp_path / "copy").open("wb") as copy:
            with pytest.raises(BadResponse, match="larger than the 100000 bytes expected"):
                downloads.download(session, f"{server.url}/big.whl", copy, {}, size=100_000)
        assert (tmp_path / "copy").stat().st_size <= 100_000
        server.resources["/big.whl"] = Resource(b"few")
        with (tmp_path / "copy").open("wb") as copy:
            with pytest.raises(BadResponse, match="has 3 bytes, expected 100000"):
                downloads.download(session, f"{server.url}/big.whl", copy, {}, size=100_000)
