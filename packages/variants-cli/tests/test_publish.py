"""`variants publish` against an index with the upload API: order, merging, faults, resuming."""

import io
import json
import re
import shutil
import sys
import tarfile
import time
from pathlib import Path

import pytest
import requests
from rich.filesize import decimal as in_bytes

from pep_variants.machines import BY_NAME, load_machine
from pep_variants.metadata import read_metadata
from pep_variants.selection import rank, supporting
from support.index import Answer
from support.upload_server import RECEIVED, RECEIVING, STORED, Fault
from variants_cli._indexing.wheelhouse import read_distribution
from variants_cli._publishing import transaction, upload_api
from variants_cli._publishing.errors import PublishError, install_command
from variants_cli._publishing.release_contents import (
    PublishedDistribution,
    best_first,
    read_releases,
    same_contents,
)
from variants_cli._publishing.upload_api import package_of, simple_url_of, status_of

PLAIN = "demo-1.0-py3-none-any.whl"
NULL = "demo-1.0-py3-none-any-null.whl"
WHEEL3 = "demo-1.0-py3-none-any-v3.whl"
WHEEL4 = "demo-1.0-py3-none-any-v4.whl"
SDIST = "demo-1.0.tar.gz"
DOCUMENT = "demo-1.0-variants.json"
# twine and uv refuse such markers, which flash-attn and vLLM have.
REQUIRES = ("cublas==12.6; variant_label == 'v3' and sys_platform == 'linux'", "einops")


@pytest.fixture
def dist(batch, variants):
    batch("dist", None, "null")
    folder = batch("dist", "v3", requires=REQUIRES)
    text = b"Metadata-Version: 2.4\nName: demo\nVersion: 1.0\n"
    info = tarfile.TarInfo("demo-1.0/PKG-INFO")
    info.size = len(text)
    with tarfile.open(folder / SDIST, "w:gz") as archive:
        archive.addfile(info, io.BytesIO(text))
    assert variants("index", folder).code == 0
    return folder


@pytest.fixture
def second(batch):
    """Another batch of the same version, without an index."""
    return batch("second", "v4")


@pytest.fixture
def publish(variants, index, monkeypatch):
    """Publish a directory; return the result. The list of what was sent starts anew."""
    monkeypatch.setenv("TWINE_USERNAME", "me")
    monkeypatch.setenv("TWINE_PASSWORD", "hunter2hunter2")

    def run(folder, *more):
        index.uploads.clear()
        result = variants("publish", folder, "--repository-url", index.url, *more)
        assert "hunter2" not in result.out + result.err
        return result

    return run


@pytest.fixture
def published(publish, dist):
    assert publish(dist).code == 0
    return dist


def test_fallbacks_are_last(dist, index, publish):
    sizes = {path.name: in_bytes(path.stat().st_size) for path in dist.iterdir() if path.is_file()}
    steps = (
        ("variant wheels", WHEEL3), ("index-level metadata", DOCUMENT), ("null variants", NULL),
        ("non-variant wheels", PLAIN), ("source distributions", SDIST),
    )  # fmt: skip

    def shown(state):
        lines = []
        for number, (kind, name) in enumerate(steps, 1):
            lines.append(f"[{number}/5] {kind}: 1 file")
            if name != DOCUMENT:
                lines.append(f"  {name}: {sizes[name]}, {state}")
            elif state == "uploaded":
                lines.append(f"  {DOCUMENT}: published")
        return lines

    result = publish(dist, "--dry-run")
    assert (result.code, index.sent) == (0, [])
    assert result.out.splitlines() == shown("to be uploaded")
    result = publish(dist)
    assert result.code == 0, result.err
    # Before the first wheel: whether the index takes metadata at all.
    assert index.sent == [DOCUMENT, WHEEL3, NULL, PLAIN, SDIST]
    summary = f"4 files uploaded, 0 there before, verified: {index.url}"
    assert result.out.splitlines() == [*shown("uploaded"), summary]
    assert all(index.files[name] == (dist / name).read_bytes() for name in index.sent)

    fields = {upload.filename: upload.fields for upload in index.uploads}
    digests = {key: fields[WHEEL3].pop(key) for key in list(fields[WHEEL3]) if "_digest" in key}
    assert fields[WHEEL3] == {
        ":action": ["file_upload"],
        "protocol_version": ["1"],
        "metadata_version": ["2.1"],
        "name": ["demo"],
        "version": ["1.0"],
        "requires_python": [""],
        "requires_dist": list(REQUIRES),
        "filetype": ["bdist_wheel"],
        "pyversion": ["py3"],
    }
    lengths = {key: len(value[0]) for key, value in digests.items()}
    assert lengths == {"sha256_digest": 64, "blake2_256_digest": 64}
    assert (fields[SDIST]["filetype"], fields[SDIST]["pyversion"]) == (["sdist"], ["source"])
    document = fields[DOCUMENT]
    assert (document["filetype"], document["name"]) == (["variants_json"], ["demo"])


def test_again_uploads_nothing(dist, index, publish):
    tree = publish(dist, "--json").json
    assert (tree["target"], tree["verified"], tree["dry-run"]) == (index.url, True, False)
    assert [(file["filename"], file["state"]) for file in tree["files"]] == [
        (name, "uploaded") for name in (NULL, WHEEL3, PLAIN, SDIST)
    ]
    (document,) = tree["metadata"]
    assert (document["filename"], document["merged"]) == (DOCUMENT, False)
    result = publish(dist)
    assert (result.code, index.sent) == (0, []), result.err
    assert "0 files uploaded, 4 there before, verified" in result.out
    states = {file["state"] for file in publish(dist, "--dry-run", "--json").json["files"]}
    assert (states, index.sent) == ({"already there"}, [])


def test_wheels_first_where_metadata_is_known_to_be_taken(published, index, publish, batch):
    assert publish(batch("newer", "v3", None, version="2.0")).code == 0
    names = (WHEEL3, DOCUMENT, PLAIN)
    assert index.sent == [name.replace("1.0", "2.0") for name in names]


def test_without_metadata(dist, index, publish):
    index.takes_metadata = False
    result = publish(dist, "--without-metadata")
    assert result.code == 0, result.err
    assert index.accepted == [WHEEL3, NULL, PLAIN, SDIST]


@pytest.mark.parametrize(
    ("options", "sent", "messages"),
    [
        ([], [DOCUMENT],
         [f"does not accept {DOCUMENT} (status 400: Invalid file extension)",
          "--without-metadata"]),
        (["--repository-url", "{root}simple/"], [], ["takes no uploads (status 404"]),
        (["--index-url", "{root}nope/"], [], ["nope/: not found", "--index-url"]),
    ],
)  # fmt: skip
def test_refused_before_anything(dist, index, publish, options, sent, messages):
    index.takes_metadata = False
    root = index.url.removesuffix("legacy/")
    result = publish(dist, *(text.format(root=root) for text in options))
    assert (result.code, index.files, index.sent) == (1, {}, sent)
    assert all(message in result.err for message in messages), result.err


def test_directories_that_are_refused(dist, index, publish, build_wheel):
    build_wheel(PLAIN, folder=dist / "other", files={"more.py": "1"})
    shutil.rmtree(dist / "simple")
    result = publish(dist, "--without-metadata")
    assert (result.code, index.sent) == (1, [])
    assert "have one name and different contents" in result.err
    (dist / "other" / PLAIN).write_bytes(b"")
    result = publish(dist)
    assert (result.code, index.sent) == (1, [])
    assert "nothing was uploaded" in result.err


# Merging with what is there.


@pytest.mark.parametrize("pages", ["json", "html"])
def test_second_batch(published, second, index, publish, pages):
    """What the first batch published is kept."""
    index.pages.api = pages
    result = publish(second)
    assert result.code == 0, result.err
    assert index.sent == [DOCUMENT, WHEEL4]  # before the wheels: it could be refused
    assert index.labels(DOCUMENT) == {"null", "v3", "v4"}
    assert f"  {DOCUMENT}: published, with what others published" in result.out
    (document,) = publish(second, "--json").json["metadata"]
    assert document["merged"]


def test_index_that_does_not_replace(published, second, index, publish):
    index.replaces = "^$"
    result = publish(second)
    assert (result.code, index.sent) == (1, [DOCUMENT])
    assert WHEEL4 not in index.files
    assert f"has {DOCUMENT} already and does not replace it" in result.err
    assert "new version" in result.err


def test_contradiction(published, index, publish, build_wheel, variant_json, tmp_path):
    before = index.files[DOCUMENT]
    tree = variant_json("v3", {"x86_64": {"level": ["v4"]}})
    build_wheel("demo-1.0-py3-none-win32-v3.whl", folder=tmp_path / "other", variant=tree)
    for more in ((), ("--dry-run",)):
        result = publish(tmp_path / "other", *more)
        assert result.code == 1
        assert "variants.v3" in result.err
        assert "another label, or a new version" in result.err
        assert (index.sent, index.files[DOCUMENT]) == ([], before)


@pytest.mark.parametrize("hashes", [True, False])
def test_other_contents(published, index, publish, build_wheel, hashes):
    """Without a hash, what the index has is downloaded and compared."""
    old = index.files[PLAIN]
    index.pages.hashes = hashes
    result = publish(published)
    assert result.code == 0, result.err
    assert (f"{PLAIN}: its page has no hash" in result.err) == (not hashes)
    shutil.rmtree(published / "simple")
    build_wheel(PLAIN, folder=published, files={"more.py": "1"})
    result = publish(published)
    assert result.code == 1
    assert "has other contents under this name" in result.err
    assert len(set(re.findall("[0-9a-f]{64}", result.err))) == (2 if hashes else 1)
    assert (f"{PLAIN} (no hash there, sha256 " in result.err) == (not hashes)
    assert (index.sent, index.files[PLAIN]) == ([], old)


@pytest.mark.parametrize("others", [{}, {"v2": {"x86_64": {"level": ["v2"]}}}])
def test_overwritten_by_another_publisher(published, second, index, publish, others):
    """The other one read before, and wrote after: the last one brings both together."""
    before, raced = index.files[DOCUMENT], []
    tree = json.loads(before)
    tree["variants"] |= others

    def overwrite(*now):
        if now == (STORED, DOCUMENT) and not raced:
            raced.append(now)
            index.files[DOCUMENT] = json.dumps(tree).encode() if others else before

    index.hook = overwrite
    result = publish(second)
    assert raced
    assert index.labels(DOCUMENT) == {"null", "v3", "v4", *others}
    merged_again = "another publisher replaced the metadata: merged again" in result.err
    assert merged_again == bool(others)
    assert result.code == 0, result.err


def test_overwritten_while_it_is_read(published, second, index, publish):
    """The page that was read lists the old metadata, the server has the new one already."""
    index.before = dict(index.files)
    tree = json.loads(index.files[DOCUMENT])
    tree["variants"] |= {"v2": {"x86_64": {"level": ["v2"]}}}
    index.files[DOCUMENT] = json.dumps(tree).encode()
    index.stale = 2  # one for the comparison of files
    result = publish(second)
    assert result.code == 0, result.err
    assert index.labels(DOCUMENT) == {"null", "v2", "v3", "v4"}


def test_overwritten_while_it_is_verified(published, second, index, publish):
    """What is fetched is newer than the page that was read before it."""

    def overwrite(*now):
        if now == (STORED, DOCUMENT):
            merged = Answer(body=index.files[DOCUMENT])
            index.pages.faults[DOCUMENT] = [merged, merged, Answer(body=b"{}")]

    index.hook = overwrite
    result = publish(second)
    assert result.code == 0, result.err
    assert index.pages.faults[DOCUMENT] == []


def test_labels_lost_before(published, second, index, publish):
    """The page lists a wheel whose label the document lost: it comes back from the wheel."""
    tree = json.loads(index.files[DOCUMENT])
    del tree["variants"]["v3"]
    index.files[DOCUMENT] = json.dumps(tree).encode()
    assert publish(second).code == 0
    assert index.labels(DOCUMENT) == {"null", "v3", "v4"}


# Faults.


@pytest.mark.parametrize(
    "faults",
    [
        {WHEEL3: Fault(503, reason="Service Unavailable"), NULL: Fault(502, stage=STORED),
         DOCUMENT: Fault(429, headers={"Retry-After": "0"})},
        {WHEEL3: Fault(stage=RECEIVING), DOCUMENT: Fault(stage=RECEIVED),
         NULL: Fault(stage=STORED)},
        {WHEEL3: Fault(stage=STORED), DOCUMENT: Fault(stage=STORED)},
    ],
)  # fmt: skip
def test_failures_that_pass(dist, index, publish, faults):
    index.faults = {re.escape(name): [fault, Fault(503)] for name, fault in faults.items()}
    result = publish(dist)
    assert result.code == 0, result.err
    assert set(index.files) == {DOCUMENT, WHEEL3, NULL, PLAIN, SDIST}
    assert "again in" in result.err


@pytest.mark.parametrize(
    ("fault", "messages"),
    [
        (Fault(503, headers={"Retry-After": "7200"}), ["asks to wait for 7200 seconds"]),
        (Fault(503), [f"{WHEEL3}: status 503: run the command again later"]),
        (Fault(413), ["does not take", "higher limit"]),
        (Fault(501), ["takes no uploads (status 501)"]),
        (Fault(407), ["the proxy wants another user name or password"]),
        (Fault(507), [f"refuses {WHEEL3} (status 507)"]),
        (Fault(400, body=b'{"message": "Metadata is bad: hunter2hunter2"}'),
         [f'refuses {WHEEL3} (status 400: {{"message": "Metadata is bad: ****"}})']),
    ],
)  # fmt: skip
def test_refused_wheel(dist, index, publish, fault, messages):
    index.faults[WHEEL3] = [fault] * (upload_api.RETRIES + 1)
    result = publish(dist)
    assert (result.code, set(index.files)) == (1, {DOCUMENT})
    assert all(message in result.err for message in messages), result.err


def test_a_server_that_takes_its_time(dist, index, publish, monkeypatch):
    monkeypatch.setattr(upload_api, "SILENCE", 0.02)
    index.hook = lambda stage, _: time.sleep(0.2) if stage == STORED else None
    result = publish(dist)
    assert result.code == 0, result.err
    assert re.search(rf"{re.escape(WHEEL3)}: no answer yet after \d+ s", result.err)


@pytest.mark.parametrize(
    ("file", "command"),
    [("", "pip install"), ("uv-receipt.toml", "uv tool install"),
     ("pipx_metadata.json", "pipx install --force")],
)  # fmt: skip
def test_an_extra_is_added_as_it_was_installed(tmp_path, monkeypatch, file, command):
    if file:
        (tmp_path / file).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert install_command("publish") == f"{command} 'variants-cli[publish]'"


def test_pages_behind_a_cache(dist, index, publish, monkeypatch):
    monkeypatch.setattr(transaction, "FIRST_PAUSE", 0.01)

    def lag(stage, filename):
        if stage == STORED:
            index.stale = 1

    index.hook = lag
    result = publish(dist)
    assert result.code == 0, result.err
    assert f"waiting for the page of demo to show {SDIST}" in result.err


def test_page_that_never_shows_it(dist, index, publish, monkeypatch):
    def lose(*now):
        if now == (STORED, PLAIN):
            del index.files[PLAIN]

    monkeypatch.setattr(transaction, "VERIFY_SECONDS", 0)
    index.hook = lose
    result = publish(dist)
    assert result.code == 1
    assert f"accepted everything, but its page of demo shows no {PLAIN}" in result.err


BOTTLE = b"""<html><head><title>Error: 400 Bad Request</title><style type="text/css">x{}</style>
</head><body><h1>Error: 400 Bad Request</h1><p>Sorry, the requested URL <tt>&#039;http://x/&#039;
</tt> caused an error:</p><pre>Bad filename: a&amp;b</pre></body></html>"""


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
    response = requests.Response()
    response.status_code, response.reason, response._content = 400, phrase, body
    response.headers["Content-Type"] = kind
    answer = status_of(response, "hunter2")
    assert reason is None or answer == f"status 400: {reason}".removesuffix(": ")
    assert len(answer) <= 312


AWS = "https://d-1.d.codeartifact.eu-west-1.amazonaws.com/pypi/r/"


@pytest.mark.parametrize(
    ("upload", "is_devpi", "pages", "certain"),
    [
        ("https://upload.pypi.org/legacy/", False, "https://pypi.org/simple/", True),
        ("https://test.pypi.org/legacy/", False, "https://test.pypi.org/simple/", True),
        ("https://x.example/root/dev/", True, "https://x.example/root/dev/+simple/", True),
        ("https://x.example/root/dev", False, "https://x.example/root/dev/simple/", False),
        (AWS, False, f"{AWS}simple/", True),
    ],
)
def test_simple_url(upload, is_devpi, pages, certain):
    assert simple_url_of(upload, is_devpi=is_devpi) == (pages, certain)


def test_contents_of_a_file(build_wheel):
    file = PublishedDistribution(read_distribution(build_wheel(PLAIN)))
    assert same_contents(file, {"md5": "0" * 32}) is None
    assert same_contents(file, {"sha256": file.distribution.sha256.upper()}) is True
    build_wheel(PLAIN, files={"more.py": "1"})
    with pytest.raises(PublishError, match="was changed while it was published"):
        package_of(file)


def test_each_machine_sees_its_best_first():
    """However far an upload is, what a machine gets is nothing, or what it gets in the end."""
    folder = Path(__file__).parents[3] / "conformance" / "field" / "documents"
    for path in folder.glob("torch-*.json"):
        document = path.read_bytes()
        metadata = read_metadata(document, "a-1-variants.json")
        order = best_first(document)
        assert sorted(order) == sorted(metadata.variants)
        for name in BY_NAME:
            labels = rank(metadata, supporting(load_machine(name), metadata)).labels
            assert [label for label in order if label in labels] == list(labels), (path.name, name)


def test_metadata_is_that_of_the_wheels(dist):
    """Labels without wheels, which a document in the directory may have, are not published."""
    tree = json.loads((dist / DOCUMENT).read_text())
    tree["variants"]["v4"] = {"x86_64": {"level": ["v4"]}}
    (dist / DOCUMENT).write_text(json.dumps(tree))
    (release,) = read_releases(dist)
    assert set(read_metadata(release.document, "").variants) == {"null", "v3"}
