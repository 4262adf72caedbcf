"""The parts of the uploader: answers of servers, URLs of pages, metadata, hashes, the order."""

import io
import json
import tarfile
from pathlib import Path

import pytest
import requests

from pep_variants.choose.abi import supporting
from pep_variants.choose.ranking import rank
from pep_variants.detect.known_machines import BY_NAME
from pep_variants.detect.machines import load_machine
from pep_variants.formats.reader import read_metadata
from variants_cli.indexing.wheelhouse import read_distribution
from variants_cli.publishing.errors import PublishError
from variants_cli.publishing.release_contents import (
    ReleaseFile,
    best_first,
    read_releases,
    same_contents,
)
from variants_cli.publishing.upload_api import package_of, simple_url_of, status_of

BOTTLE = b"""<html><head><title>Error: 400 Bad Request</title><style type="text/css">x{}</style>
</head><body><h1>Error: 400 Bad Request</h1><p>Sorry, the requested URL <tt>&#039;http://x/&#039;
</tt> caused an error:</p><pre>Bad filename: a&amp;b</pre></body></html>"""
WHEEL = "example_pkg-1.0-py3-none-any.whl"


def answered(status, body=b"", kind="text/plain", phrase="Bad Request"):
    response = requests.Response()
    response.status_code, response.reason, response._content = status, phrase, body
    response.headers["Content-Type"] = kind
    return status_of(response, "hunter2")


@pytest.mark.parametrize(
    ("body", "kind", "phrase", "reason"),
    [
        (b"", "text/plain", "Bad Request", ""),
        (b"no\nway", "text/plain", "Bad Request", "no way"),
        (b"<b>x</b>", "text/html", "'a' is no archive", "'a' is no archive"),
        (BOTTLE, "text/html", "Bad Request", "Bad filename: a&b"),
        (b"<style" * 5000, "text/html", "", None),
        (b"your password hunter2 \x1b[31m", "text/plain", "", "your password **** ?[31m"),
        (b"see https://me:pw@x.example/?sig=1", "text/plain", "", "see https://****@x.example/?****"),
        (b"x" * 5000, "text/plain", "", "x" * 300),
    ],
)  # fmt: skip
def test_reason(body, kind, phrase, reason):
    answer = answered(400, body, kind, phrase)
    assert reason is None or answer == f"status 400: {reason}".removesuffix(": ")
    assert len(answer) <= 312


@pytest.mark.parametrize(
    ("upload", "is_devpi", "pages", "certain"),
    [
        ("https://upload.pypi.org/legacy/", False, "https://pypi.org/simple/", True),
        ("https://test.pypi.org/legacy/", False, "https://test.pypi.org/simple/", True),
        ("https://x.example/root/dev/", True, "https://x.example/root/dev/+simple/", True),
        ("https://x.example/root/dev", False, "https://x.example/root/dev/simple/", False),
        ("http://localhost:8080", False, "http://localhost:8080/simple/", False),
        (
            "https://d-1.d.codeartifact.eu-west-1.amazonaws.com/pypi/r/", False,
            "https://d-1.d.codeartifact.eu-west-1.amazonaws.com/pypi/r/simple/", True,
        ),
    ],
)  # fmt: skip
def test_simple_url(upload, is_devpi, pages, certain):
    assert simple_url_of(upload, is_devpi=is_devpi) == (pages, certain)


def test_metadata_of_a_form(build_wheel):
    """As twine sends it, without its check, which refuses variant markers."""
    marker = "torch; 'abi_dependency :: torch :: 2.9' in variant_properties"
    file = ReleaseFile(read_distribution(build_wheel(WHEEL, requires=(marker, "einops"))))
    found = package_of(file).metadata_dictionary()
    assert found["requires_dist"] == [marker, "einops"]
    assert (found["requires_python"], found["pyversion"]) == ("", "py3")


def test_a_source_distribution(tmp_path):
    path = tmp_path / "example_pkg-1.0.tar.gz"
    text = b"Metadata-Version: 2.4\nName: example-pkg\nVersion: 1.0\nRequires-Dist: einops\n"
    info = tarfile.TarInfo("example_pkg-1.0/PKG-INFO")
    info.size = len(text)
    with tarfile.open(path, "w:gz") as archive:
        archive.addfile(info, io.BytesIO(text))
    found = package_of(ReleaseFile(read_distribution(path))).metadata_dictionary()
    assert (found["filetype"], found["pyversion"]) == ("sdist", "source")
    assert (found["name"], found["requires_dist"]) == ("example-pkg", ["einops"])


def test_file_that_changes(build_wheel):
    file = ReleaseFile(read_distribution(build_wheel(WHEEL)))
    build_wheel(WHEEL, files={"more.py": "1"})
    with pytest.raises(PublishError, match="was changed while it was published"):
        package_of(file)


@pytest.mark.parametrize(
    ("hashes", "expected"),
    [
        ({}, None),
        ({"crc": "1"}, None),
        ({"md5": "0" * 32}, None),
        ({"sha256": "SHA256"}, True),
        ({"sha256": "cd"}, False),
    ],
)
def test_same_contents(build_wheel, hashes, expected):
    file = ReleaseFile(read_distribution(build_wheel(WHEEL)))
    known = {"SHA256": file.distribution.sha256.upper()}
    hashes = {name: known.get(digest, digest) for name, digest in hashes.items()}
    assert same_contents(file, hashes) is expected


def documents():
    """The metadata of PyTorch's releases, where the repository is."""
    folder = Path(__file__).parents[3] / "conformance" / "field" / "documents"
    return [path.read_bytes() for path in sorted(folder.glob("torch-*.json"))]


@pytest.mark.parametrize("document", documents())
def test_each_machine_sees_its_best_first(document):
    """However far an upload is, what a machine gets is nothing, or what it gets in the end."""
    metadata = read_metadata(document, "a-1-variants.json")
    order = best_first(document)
    assert sorted(order) == sorted(metadata.variants)
    for name in BY_NAME:
        labels = rank(metadata, supporting(load_machine(name), metadata)).labels
        assert [label for label in order if label in labels] == list(labels), name


def test_metadata_is_that_of_the_wheels(tmp_path, build_wheel, variant_json):
    """Labels without wheels, which a document in the directory may have, are not published."""
    levels = {label: {"x86_64": {"level": [label]}} for label in ("v3", "v4")}
    tree = variant_json("v3", levels["v3"])
    build_wheel("example_pkg-1.0-py3-none-any-v3.whl", variant=tree)
    tree["variants"] = levels
    (tmp_path / "example_pkg-1.0-variants.json").write_text(json.dumps(tree))
    (release,) = read_releases(tmp_path)
    assert set(read_metadata(release.document, "").variants) == {"v3"}
    (release,) = read_releases(tmp_path, metadata=False)
    assert release.document is None
