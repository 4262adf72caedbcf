"""`variants publish` against an index with the upload API: order, merging, faults, resuming."""

import io
import json
import re
import shutil
import tarfile
from pathlib import Path

import pytest
import requests
from rich.filesize import decimal as in_bytes

from pep_variants import load_machine, rank, read_metadata
from pep_variants.internal import BY_NAME, supporting
from support.upload_server import RECEIVED, RECEIVING, STORED, Fault, upload_index
from variants_cli.indexing.wheelhouse import read_distribution
from variants_cli.publishing import transaction, upload_api
from variants_cli.publishing.errors import PublishError
from variants_cli.publishing.release_contents import (
    ReleaseFile,
    best_first,
    read_releases,
    same_contents,
)
from variants_cli.publishing.upload_api import package_of, simple_url_of, status_of

V3 = {"x86_64": {"level": ["v3"]}}
V4 = {"x86_64": {"level": ["v4"]}}
PLAIN = "example_pkg-1.0-py3-none-any.whl"
NULL = "example_pkg-1.0-py3-none-any-null.whl"
WHEEL3 = "example_pkg-1.0-py3-none-any-x86_64_v3.whl"
WHEEL4 = "example_pkg-1.0-py3-none-any-x86_64_v4.whl"
SDIST = "example_pkg-1.0.tar.gz"
DOCUMENT = "example_pkg-1.0-variants.json"
# twine and uv refuse such markers, which flash-attn and vLLM have (P1).
REQUIRES = ("cublas==12.6; variant_label == 'x86_64_v3' and sys_platform == 'linux'", "einops")


@pytest.fixture
def dist(tmp_path, build_wheel, variant_json, variants):
    folder = tmp_path / "dist"
    build_wheel(PLAIN, folder=folder)
    build_wheel(NULL, folder=folder, variant=variant_json("null"))
    variant = variant_json("x86_64_v3", V3)
    build_wheel(WHEEL3, folder=folder, variant=variant, requires=REQUIRES)
    text = b"Metadata-Version: 2.4\nName: example-pkg\nVersion: 1.0\n"
    info = tarfile.TarInfo("example_pkg-1.0/PKG-INFO")
    info.size = len(text)
    with tarfile.open(folder / SDIST, "w:gz") as archive:
        archive.addfile(info, io.BytesIO(text))
    assert variants("index", folder).code == 0
    return folder


@pytest.fixture
def second(tmp_path, build_wheel, variant_json):
    """Another batch of the same version, without an index."""
    folder = tmp_path / "second"
    build_wheel(WHEEL4, folder=folder, variant=variant_json("x86_64_v4", V4))
    return folder


@pytest.fixture
def index(tmp_path, monkeypatch):
    monkeypatch.setattr(upload_api, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(upload_api, "LONGEST_PAUSE", 0.01)
    monkeypatch.setenv("TWINE_USERNAME", "me")
    monkeypatch.setenv("TWINE_PASSWORD", "hunter2")
    with upload_index(tmp_path / "index") as running:
        running.credentials = ("me", "hunter2")
        yield running


@pytest.fixture
def publish(variants, index):
    def run(folder, *more):
        result = variants("publish", folder, "--repository-url", index.url, *more)
        assert "hunter2" not in result.out + result.err
        return result

    return run


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
    assert all(index.read(name) == (dist / name).read_bytes() for name in index.sent)

    fields = {upload.filename: upload.fields for upload in index.uploads}
    digests = {key: fields[WHEEL3].pop(key) for key in list(fields[WHEEL3]) if "_digest" in key}
    assert fields[WHEEL3] == {
        ":action": ["file_upload"],
        "protocol_version": ["1"],
        "metadata_version": ["2.1"],
        "name": ["example-pkg"],
        "version": ["1.0"],
        "requires_python": [""],
        "requires_dist": list(REQUIRES),
        "filetype": ["bdist_wheel"],
        "pyversion": ["py3"],
    }
    assert {key: len(value[0]) for key, value in digests.items()} == {
        "sha256_digest": 64, "blake2_256_digest": 64,
    }  # fmt: skip
    assert (fields[SDIST]["filetype"], fields[SDIST]["pyversion"]) == (["sdist"], ["source"])
    assert (fields[DOCUMENT]["filetype"], fields[DOCUMENT]["name"]) == (
        ["variants_json"], ["example-pkg"],
    )  # fmt: skip


def test_again_uploads_nothing(dist, index, publish):
    tree = publish(dist, "--json").json
    assert (tree["target"], tree["verified"], tree["dry-run"]) == (index.url, True, False)
    assert [(file["filename"], file["state"]) for file in tree["files"]] == [
        (name, "uploaded") for name in (NULL, WHEEL3, PLAIN, SDIST)
    ]
    (document,) = tree["metadata"]
    assert (document["filename"], document["merged"]) == (DOCUMENT, False)
    index.uploads.clear()
    result = publish(dist)
    assert result.code == 0, result.err
    assert "0 files uploaded, 4 there before, verified" in result.out
    states = {file["state"] for file in publish(dist, "--dry-run", "--json").json["files"]}
    assert (states, index.sent) == ({"already there"}, [])


def test_wheels_first_where_metadata_is_known_to_be_taken(
    dist, index, publish, build_wheel, variant_json, tmp_path
):
    assert publish(dist).code == 0
    plain, name = (each.replace("1.0", "2.0") for each in (PLAIN, WHEEL3))
    build_wheel(name, folder=tmp_path / "newer", variant=variant_json("x86_64_v3", V3))
    build_wheel(plain, folder=tmp_path / "newer")
    index.uploads.clear()
    assert publish(tmp_path / "newer").code == 0
    assert index.sent == [name, "example_pkg-2.0-variants.json", plain]


def test_without_metadata(dist, index, publish):
    index.takes_metadata = False
    result = publish(dist, "--without-metadata")
    assert result.code == 0, result.err
    assert index.accepted == [WHEEL3, NULL, PLAIN, SDIST]


def refuse_metadata(index, dist, build_wheel):
    index.takes_metadata = False


def break_a_wheel(index, dist, build_wheel):
    (dist / "bad-1-py3-none-any.whl").write_bytes(b"")


def same_name(index, dist, build_wheel):
    shutil.rmtree(dist / "simple")
    build_wheel(PLAIN, folder=dist / "other", files={"more.py": "1"})


@pytest.mark.parametrize(
    ("prepare", "options", "sent", "messages"),
    [
        (refuse_metadata, [], [DOCUMENT],
         [f"does not accept {DOCUMENT} (status 400: Invalid file extension)",
          "--without-metadata"]),
        (break_a_wheel, [], [], ["nothing was uploaded"]),
        (None, ["--repository-url", "{simple}"], [], ["takes no uploads (status 404"]),
        (None, ["--index-url", "{root}nope/"], [], ["nope/: not found", "--index-url"]),
        (same_name, ["--without-metadata"], [], ["have one name and different contents"]),
    ],
)  # fmt: skip
def test_refused_before_anything(
    dist, index, publish, build_wheel, prepare, options, sent, messages
):
    if prepare:
        prepare(index, dist, build_wheel)
    root = index.url.removesuffix("legacy/")
    result = publish(dist, *(text.format(simple=index.simple, root=root) for text in options))
    assert (result.code, index.files, index.sent) == (1, {}, sent)
    assert all(message in result.err for message in messages), result.err


class TestMerging:
    @pytest.mark.parametrize("pages", ["json", "html"])
    def test_second_batch(self, dist, second, index, publish, pages):
        """P2: what the first batch published is kept."""
        index.pages = pages
        assert publish(dist).code == 0
        index.uploads.clear()
        result = publish(second)
        assert result.code == 0, result.err
        assert index.sent == [DOCUMENT, WHEEL4]  # before the wheels: it could be refused
        assert index.labels(DOCUMENT) == {"null", "x86_64_v3", "x86_64_v4"}
        assert f"  {DOCUMENT}: published, with what others published" in result.out
        (document,) = publish(second, "--json").json["metadata"]
        assert document["merged"]

    def test_index_that_does_not_replace(self, dist, second, index, publish):
        index.replaces = "^$"
        assert publish(dist).code == 0
        index.uploads.clear()
        result = publish(second)
        assert (result.code, index.sent) == (1, [DOCUMENT])
        assert WHEEL4 not in index.files
        assert f"has {DOCUMENT} already and does not replace it" in result.err
        assert "new version" in result.err

    def test_contradiction(self, dist, index, publish, build_wheel, variant_json, tmp_path):
        assert publish(dist).code == 0
        before = index.read(DOCUMENT)
        name = "example_pkg-1.0-py3-none-manylinux_2_28_aarch64-x86_64_v3.whl"
        build_wheel(name, folder=tmp_path / "other", variant=variant_json("x86_64_v3", V4))
        index.uploads.clear()
        for more in ((), ("--dry-run",)):
            result = publish(tmp_path / "other", *more)
            assert result.code == 1
            assert "variants.x86_64_v3" in result.err
            assert "another label, or a new version" in result.err
        assert (index.sent, index.read(DOCUMENT)) == ([], before)

    @pytest.mark.parametrize("hashes", [True, False])
    def test_other_contents(self, dist, index, publish, build_wheel, hashes):
        """Without a hash, what the index has is downloaded and compared."""
        assert publish(dist).code == 0
        old = index.read(PLAIN)
        index.hashes = hashes
        index.uploads.clear()
        result = publish(dist)
        assert result.code == 0, result.err
        assert (f"{PLAIN}: its page has no hash" in result.err) == (not hashes)
        shutil.rmtree(dist / "simple")
        build_wheel(PLAIN, folder=dist, files={"more.py": "1"})
        result = publish(dist)
        assert result.code == 1
        assert "has other contents under this name" in result.err
        assert len(set(re.findall("[0-9a-f]{64}", result.err))) == (2 if hashes else 1)
        assert (f"{PLAIN} (no hash there, sha256 " in result.err) == (not hashes)
        assert (index.sent, index.read(PLAIN)) == ([], old)

    def test_overwritten_by_another_publisher(self, dist, second, index, publish):
        """The other one read before, and wrote after: the last one brings both together."""
        assert publish(dist).code == 0
        first, raced = index.read(DOCUMENT), []

        def overwrite(stage, filename):
            if stage == STORED and filename == DOCUMENT and not raced:
                raced.append(stage)
                index.files[DOCUMENT].write_bytes(first)

        index.hook = overwrite
        result = publish(second)
        assert result.code == 0, result.err
        assert raced
        assert index.labels(DOCUMENT) == {"null", "x86_64_v3", "x86_64_v4"}

    def test_labels_lost_before(self, dist, second, index, publish):
        """The page lists a wheel whose label the document lost: it comes back from the wheel."""
        assert publish(dist).code == 0
        tree = json.loads(index.read(DOCUMENT))
        del tree["variants"]["x86_64_v3"]
        index.files[DOCUMENT].write_text(json.dumps(tree))
        assert publish(second).code == 0
        assert index.labels(DOCUMENT) == {"null", "x86_64_v3", "x86_64_v4"}


class TestFaults:
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
    def test_passing(self, dist, index, publish, faults):
        index.faults = {re.escape(name): [fault, Fault(503)] for name, fault in faults.items()}
        result = publish(dist)
        assert result.code == 0, result.err
        assert set(index.files) == {DOCUMENT, WHEEL3, NULL, PLAIN, SDIST}
        assert "again in" in result.err

    def test_no_retries(self, dist, index, publish, monkeypatch):
        """P5: and the same command finishes it."""
        monkeypatch.setattr(upload_api, "RETRIES", 0)
        index.faults[NULL] = [Fault(503)]
        result = publish(dist)
        assert result.code == 1
        assert f"{NULL}: status 503: run the command again later" in result.err
        assert set(index.files) == {DOCUMENT, WHEEL3}
        index.uploads.clear()
        result = publish(dist)
        assert result.code == 0, result.err
        assert index.sent == [NULL, PLAIN, SDIST]

    @pytest.mark.parametrize(
        ("fault", "messages"),
        [
            (Fault(503, headers={"Retry-After": "7200"}), ["asks to wait for 7200 seconds"]),
            (Fault(413), ["does not take", "higher limit"]),
            (Fault(400, body=b'{"message": "Metadata is bad: hunter2"}'),
             [f'refuses {WHEEL3} (status 400: {{"message": "Metadata is bad: ****"}})']),
        ],
    )  # fmt: skip
    def test_refused_wheel(self, dist, index, publish, fault, messages):
        index.faults[WHEEL3] = [fault]
        result = publish(dist)
        assert (result.code, set(index.files)) == (1, {DOCUMENT})
        assert all(message in result.err for message in messages), result.err

    def test_pages_behind_a_cache(self, dist, index, publish):
        def lag(stage, filename):
            if stage == STORED:
                index.stale = 1

        index.hook = lag
        result = publish(dist)
        assert result.code == 0, result.err

    def test_page_that_never_shows_it(self, dist, index, publish, monkeypatch):
        def lose(stage, filename):
            if stage == STORED and filename == PLAIN:
                del index.files[PLAIN]

        monkeypatch.setattr(transaction, "VERIFY_SECONDS", 0)
        index.hook = lose
        result = publish(dist)
        assert result.code == 1
        assert f"accepted everything, but its page of example-pkg shows no {PLAIN}" in result.err


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
    file = ReleaseFile(read_distribution(build_wheel(PLAIN)))
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
    tree["variants"]["x86_64_v4"] = V4
    (dist / DOCUMENT).write_text(json.dumps(tree))
    (release,) = read_releases(dist)
    assert set(read_metadata(release.document, "").variants) == {"null", "x86_64_v3"}
