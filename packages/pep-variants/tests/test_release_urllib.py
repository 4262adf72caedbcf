"""Another installer: `ReleaseReader` with nothing but `urllib`, from a real server."""

import re
from pathlib import Path

import pytest
from release_files import NAME, a_wheel, document, wheel

from pep_variants._release import ReleaseFile
from pep_variants.errors import MetadataError
from support.index import Answer, served

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "use-the-engine.md"
WHEELS = {a_wheel(label): wheel(document(label), label, padding=300_000) for label in "ab"}


@pytest.fixture(scope="module")
def variant_metadata():
    """Return the function that the page shows."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (text,) = (block for block in blocks if "def variant_metadata" in block)
    names = {}
    exec(compile(text, str(PAGE), "exec"), names)
    return names["variant_metadata"]


def test_by_ranges(variant_metadata):
    with served() as server:
        server.resources = {
            f"/{name}": Answer(body=data, ranges=True) for name, data in WHEELS.items()
        }
        wheels = [ReleaseFile(name, f"{server.root}/{name}") for name in WHEELS]
        listed = ReleaseFile(NAME, f"{server.root}/{NAME}")
        found = variant_metadata(wheels, listed, f"{server.root}/")
    assert set(found.variants) == {"a", "b"}
    ranges = [each.headers.get("Range") for each in server.requests]
    assert ranges == [None, *["bytes=-65536", "bytes=0-16383"] * 2]


def test_a_server_that_does_not_answer(variant_metadata):
    url = "http://127.0.0.1:1/"
    with pytest.raises(MetadataError, match=f"{NAME}: cannot be fetched: .*refused"):
        variant_metadata([], ReleaseFile(NAME, url + NAME), url)
