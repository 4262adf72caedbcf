"""`variants publish` against an index with the upload API: order, merging, faults, resuming."""

import json
import re
import shutil
from functools import partial

import pytest
from rich.filesize import decimal as in_bytes

from support.upload_server import RECEIVED, RECEIVING, STORED, Fault, upload_index
from variants_cli.publishing import transaction, upload_api
from variants_cli.publishing.release_contents import Kind, kind_of

V3 = {"x86_64": {"level": ["v3"]}}
V4 = {"x86_64": {"level": ["v4"]}}
PLAIN = "example_pkg-1.0-py3-none-any.whl"
NULL = "example_pkg-1.0-py3-none-any-null.whl"
WHEEL3 = "example_pkg-1.0-py3-none-any-x86_64_v3.whl"
WHEEL4 = "example_pkg-1.0-py3-none-any-x86_64_v4.whl"
DOCUMENT = "example_pkg-1.0-variants.json"


@pytest.fixture
def dist(tmp_path, build_wheel, variant_json, variants):
    folder = tmp_path / "dist"
    build = partial(build_wheel, folder=folder)
    build(PLAIN)
    build(NULL, variant=variant_json("null"))
    build(WHEEL3, variant=variant_json("x86_64_v3", V3))
    assert variants("index", folder).code == 0
    return folder


@pytest.fixture
def second(tmp_path, build_wheel, variant_json):
    """Another batch of the same version; nobody ran `variants index` there."""
    folder = tmp_path / "second"
    build_wheel(WHEEL4, folder=folder, variant=variant_json("x86_64_v4", V4))
    return folder


@pytest.fixture
def index(tmp_path, monkeypatch):
    monkeypatch.setattr(upload_api, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(upload_api, "LONGEST_PAUSE", 0.01)
    monkeypatch.setattr(transaction, "VERIFY_SECONDS", 2.0)
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


def test_order():
    kinds = {
        "a-1-py3-none-any-x.whl": Kind.VARIANTS,
        "a-1-variants.json": Kind.METADATA,
        "a-1-py3-none-any-null.whl": Kind.NULL,
        "a-1-py3-none-any.whl": Kind.WHEELS,
        "a-1.tar.gz": Kind.SOURCES,
    }
    assert list(kinds.values()) == list(Kind)
    assert {name: kind_of(name) for name in kinds} == kinds
    assert kind_of("a-1-py3-none-any-x.whl.metadata") is kind_of("index.html") is None


class TestOneRelease:
    def test_fallbacks_are_last(self, dist, index, publish):
        result = publish(dist)
        assert result.code == 0, result.err
        # Before the first wheel: whether the index takes metadata at all.
        assert index.sent == [DOCUMENT, WHEEL3, NULL, PLAIN]
        assert result.out.splitlines() == [
            "[1/4] variant wheels: 1 file",
            f"  {WHEEL3}: {in_bytes((dist / WHEEL3).stat().st_size)}, uploaded",
            "[2/4] index-level metadata: 1 file",
            f"  {DOCUMENT}: published",
            "[3/4] null variants: 1 file",
            f"  {NULL}: {in_bytes((dist / NULL).stat().st_size)}, uploaded",
            "[4/4] non-variant wheels: 1 file",
            f"  {PLAIN}: {in_bytes((dist / PLAIN).stat().st_size)}, uploaded",
            f"3 files uploaded, 0 there before, verified: {index.url}",
        ]
        assert {name: index.read(name) for name in index.files} == {
            name: (dist / name).read_bytes() for name in (DOCUMENT, WHEEL3, NULL, PLAIN)
        }

    def test_wheels_first_where_metadata_is_known_to_be_taken(
        self, dist, index, publish, build_wheel, variant_json, tmp_path
    ):
        assert publish(dist).code == 0
        newer = tmp_path / "newer"
        name = "example_pkg-2.0-py3-none-any-x86_64_v3.whl"
        build_wheel(name, folder=newer, variant=variant_json("x86_64_v3", V3))
        build_wheel(name.replace("-x86_64_v3", ""), folder=newer)
        index.uploads.clear()
        assert publish(newer).code == 0
        assert index.sent == [
            name, "example_pkg-2.0-variants.json", name.replace("-x86_64_v3", "")
        ]  # fmt: skip

    def test_fields(self, dist, index, publish):
        assert publish(dist).code == 0
        fields = next(upload.fields for upload in index.uploads if upload.filename == WHEEL3)
        digests = {name: fields.pop(name) for name in list(fields) if name.endswith("_digest")}
        assert fields == {
            ":action": ["file_upload"],
            "protocol_version": ["1"],
            "metadata_version": ["2.1"],
            "name": ["example-pkg"],
            "version": ["1.0"],
            "requires_python": [""],
            "filetype": ["bdist_wheel"],
            "pyversion": ["py3"],
        }
        assert {name: len(value[0]) for name, value in digests.items()} == {
            "sha256_digest": 64, "blake2_256_digest": 64,
        }  # fmt: skip
        (document,) = (one.fields for one in index.uploads if one.filename == DOCUMENT)
        assert document["filetype"] == ["variants_json"]
        assert document["name"] == ["example-pkg"]

    def test_requirements_with_variant_markers(
        self, index, publish, build_wheel, variant_json, tmp_path
    ):
        """As flash-attn (abi_dependency) and vLLM have them; twine and uv refuse these (P1)."""
        folder = tmp_path / "flash"
        abi = {"abi_dependency": {"torch": ["2.9"]}, "x86_64": {"level": ["v3"]}}
        requires = (
            "nvidia-cublas-cu12==12.6; variant_label == 'torch29' and sys_platform == 'linux'",
            "torch==2.9.*; 'abi_dependency :: torch :: 2.9' in variant_properties",
        )
        build_wheel(
            "example_pkg-1.0-py3-none-any-torch29.whl",
            folder=folder, requires=requires, variant=variant_json("torch29", abi),
        )  # fmt: skip
        result = publish(folder)
        assert result.code == 0, result.err
        sent = [one.fields.get("requires_dist") for one in index.uploads if one.filename]
        assert list(requires) in sent

    def test_json(self, dist, index, publish):
        tree = publish(dist, "--json").json
        assert tree["target"] == index.url
        assert [(file["filename"], file["state"]) for file in tree["files"]] == [
            (NULL, "uploaded"), (WHEEL3, "uploaded"), (PLAIN, "uploaded")
        ]  # fmt: skip
        (document,) = tree["metadata"]
        assert (document["filename"], document["merged"]) == (DOCUMENT, False)
        assert (tree["verified"], tree["dry-run"]) == (True, False)

    def test_dry_run(self, dist, index, publish):
        result = publish(dist, "--dry-run")
        assert result.code == 0, result.err
        assert index.sent == []
        sizes = {path.name: in_bytes(path.stat().st_size) for path in dist.glob("*.whl")}
        assert result.out.splitlines() == [
            "[1/4] variant wheels: 1 file", f"  {WHEEL3}: {sizes[WHEEL3]}, to be uploaded",
            "[2/4] index-level metadata: 1 file",
            "[3/4] null variants: 1 file", f"  {NULL}: {sizes[NULL]}, to be uploaded",
            "[4/4] non-variant wheels: 1 file", f"  {PLAIN}: {sizes[PLAIN]}, to be uploaded",
        ]  # fmt: skip
        assert publish(dist).code == 0
        states = {file["state"] for file in publish(dist, "--dry-run", "--json").json["files"]}
        assert states == {"already there"}

    def test_again_uploads_nothing(self, dist, index, publish):
        assert publish(dist).code == 0
        index.uploads.clear()
        result = publish(dist)
        assert result.code == 0, result.err
        assert index.sent == []
        assert "0 files uploaded, 3 there before, verified" in result.out

    def test_without_metadata(self, dist, index, publish):
        index.takes_metadata = False
        result = publish(dist, "--without-metadata")
        assert result.code == 0, result.err
        assert index.accepted == [WHEEL3, NULL, PLAIN]

    def test_html_pages(self, dist, second, index, publish):
        index.pages = "html"
        assert publish(dist).code == 0
        assert publish(second).code == 0
        assert index.labels(DOCUMENT) == {"null", "x86_64_v3", "x86_64_v4"}


class TestRefusedBeforeAnything:
    """One clear line, and the index as it was."""

    @pytest.fixture(autouse=True)
    def nothing_stored(self, index):
        yield
        assert index.files == {}

    def test_metadata(self, dist, index, publish):
        index.takes_metadata = False
        result = publish(dist)
        assert result.code == 1
        assert index.sent == [DOCUMENT]
        assert f"does not accept {DOCUMENT} (status 400: Invalid file extension)" in result.err
        assert "--without-metadata" in result.err

    def test_credentials(self, dist, index, publish):
        index.credentials = ("me", "other")
        result = publish(dist)
        assert result.code == 1
        assert index.sent == []
        assert "refuses uploads (status 403" in result.err
        assert "with the user name 'me'" in result.err

    def test_faults_in_the_directory(self, dist, index, publish):
        (dist / "bad-1-py3-none-any.whl").write_bytes(b"")
        result = publish(dist)
        assert result.code == 1
        assert "nothing was uploaded" in result.err
        assert index.uploads == []

    def test_url_of_the_pages(self, dist, index, variants):
        result = variants("publish", dist, "--repository-url", index.simple)
        assert result.code == 1
        assert "takes no uploads (status 404" in result.err

    def test_no_pages(self, dist, index, publish):
        result = publish(dist, "--index-url", index.url.replace("/legacy/", "/nope/"))
        assert result.code == 1
        assert "nope/: not found" in result.err
        assert "--index-url" in result.err
        assert index.sent == []

    def test_two_files_of_one_name(self, dist, index, publish, build_wheel):
        build_wheel(PLAIN, folder=dist / "other", files={"more.py": "1"})
        result = publish(dist, "--without-metadata")
        assert result.code == 1
        assert index.uploads == []

    def test_no_place(self, dist, variants, monkeypatch):
        result = variants("publish", dist)
        assert result.code == 2
        assert "--repository-url" in result.err


class TestMerging:
    def test_second_batch(self, dist, second, index, publish):
        """P2: what the first batch published is kept."""
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
        assert result.code == 1
        assert index.sent == [DOCUMENT]
        assert WHEEL4 not in index.files
        assert f"has {DOCUMENT} already and does not replace it" in result.err
        assert "new version" in result.err

    def test_contradiction(self, dist, index, publish, build_wheel, variant_json, tmp_path):
        assert publish(dist).code == 0
        before = index.read(DOCUMENT)
        other = tmp_path / "other"
        build_wheel(
            "example_pkg-1.0-py3-none-manylinux_2_28_aarch64-x86_64_v3.whl",
            folder=other, variant=variant_json("x86_64_v3", V4),
        )  # fmt: skip
        index.uploads.clear()
        for more in ((), ("--dry-run",)):
            result = publish(other, *more)
            assert result.code == 1
            assert "variants.x86_64_v3" in result.err
            assert "another label, or a new version" in result.err
        assert index.sent == []
        assert index.read(DOCUMENT) == before

    def test_other_contents(self, dist, index, publish, build_wheel, variants):
        assert publish(dist).code == 0
        old = index.read(PLAIN)
        shutil.rmtree(dist / "simple")
        build_wheel(PLAIN, folder=dist, files={"more.py": "1"})
        index.uploads.clear()
        result = publish(dist)
        assert result.code == 1
        assert "has other contents under this name" in result.err
        assert len(set(re.findall("[0-9a-f]{64}", result.err))) == 2
        assert index.sent == []
        assert index.read(PLAIN) == old

    def test_no_hashes(self, dist, index, publish, build_wheel):
        """What the index has is downloaded and compared."""
        assert publish(dist).code == 0
        index.hashes = False
        index.uploads.clear()
        result = publish(dist)
        assert result.code == 0, result.err
        assert f"{PLAIN}: its page has no hash" in result.err
        assert index.sent == []
        shutil.rmtree(dist / "simple")
        build_wheel(PLAIN, folder=dist, files={"more.py": "1"})
        result = publish(dist)
        assert result.code == 1
        assert f"{PLAIN} (no hash there, sha256 " in result.err
        assert index.sent == []

    def test_overwritten_by_another_publisher(self, dist, second, index, publish):
        """The other one read before, and wrote after: the last one brings both together."""
        assert publish(dist).code == 0
        first = index.read(DOCUMENT)
        raced = []

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
        ("name", "fault"),
        [
            (WHEEL3, Fault(503, reason="Service Unavailable")),
            (DOCUMENT, Fault(429, headers={"Retry-After": "0"})),
            (NULL, Fault(502, stage=STORED)),
            (WHEEL3, Fault(stage=RECEIVING)),
            (DOCUMENT, Fault(stage=RECEIVED)),
            (WHEEL3, Fault(stage=STORED)),
            (DOCUMENT, Fault(stage=STORED)),
            (NULL, Fault(stage=STORED)),
        ],
    )
    def test_passing(self, dist, index, publish, name, fault):
        index.faults[re.escape(name)] = [fault, Fault(503)]
        result = publish(dist)
        assert result.code == 0, result.err
        assert set(index.files) == {DOCUMENT, WHEEL3, NULL, PLAIN}
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
        assert index.sent == [NULL, PLAIN]
        assert (
            f"  {WHEEL3}: {in_bytes((dist / WHEEL3).stat().st_size)}, already there" in result.out
        )

    def test_server_asks_for_too_long(self, dist, index, publish):
        index.faults[WHEEL3] = [Fault(503, headers={"Retry-After": "7200"})]
        result = publish(dist)
        assert result.code == 1
        assert "asks to wait for 7200 seconds" in result.err

    def test_refused_wheel(self, dist, index, publish):
        body = b'{"message": "Metadata is bad: hunter2"}'
        index.faults[WHEEL3] = [Fault(400, headers={"Content-Type": "application/json"}, body=body)]
        result = publish(dist)
        assert result.code == 1
        assert (
            f'refuses {WHEEL3} (status 400: {{"message": "Metadata is bad: ****"}})' in result.err
        )
        assert set(index.files) == {DOCUMENT}

    def test_too_large(self, dist, index, publish):
        index.faults[WHEEL3] = [Fault(413)]
        result = publish(dist)
        assert result.code == 1
        assert "does not take" in result.err
        assert "higher limit" in result.err

    def test_pages_behind_a_cache(self, dist, index, publish):
        def lag(stage, filename):
            if stage == STORED:
                index.stale = 2

        index.hook = lag
        result = publish(dist)
        assert result.code == 0, result.err

    def test_page_that_never_shows_it(self, dist, index, publish):
        def lose(stage, filename):
            if stage == STORED and filename == PLAIN:
                del index.files[PLAIN]

        index.hook = lose
        result = publish(dist)
        assert result.code == 1
        assert f"accepted everything, but its page of example-pkg shows no {PLAIN}" in result.err

    def test_redirect(self, dist, index, variants):
        without_slash = index.url.rstrip("/")
        result = variants("publish", dist, "--repository-url", without_slash)
        assert result.code == 1
        assert "takes no uploads" in result.err
