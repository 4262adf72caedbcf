"""The next state of a project on an index: tables of cases, and properties over batches."""

import hashlib
import itertools
import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wheel_files import make_variant_json

from pep_variants import limits
from pep_variants._formats.reader import read_metadata
from pep_variants.errors import InconsistentMetadata, MetadataError
from variants_cli._indexing.update import UpdateError, updated, write_merged
from variants_cli._indexing.wheelhouse import Distribution, VariantFile, identified
from variants_index.pages import Page, PageFile

OLD = "https://variants-schema.wheelnext.dev/"
T0 = datetime(2026, 3, 1, 12, 0, 0, 250_000, timezone.utc)
DOCUMENT = "demo-1.0-variants.json"


def level(value):
    return {"x86_64": {"level": [value]}}


def wheel(tag="linux", label=None, *, version="1.0", content="", tree=None):
    """A wheel of ``demo`` as it is read from a directory; of other *content*, another file."""
    name = f"demo-{version}-py3-none-{tag}{f'-{label}' if label else ''}.whl"
    if tree is None and label:
        tree = make_variant_json(label, {} if label == "null" else level(label))
    variant = tree and VariantFile(json.dumps(tree).encode(), f"dist/{name}: variant.json")
    digest = hashlib.sha256(f"{name}{content}".encode()).hexdigest()
    project, parsed, _ = identified(name)
    metadata = "ab" * 32
    path = Path("dist") / name
    return Distribution(path, project, parsed, label, 1000, digest, ">=3.9", metadata, variant)


def sdist(version="1.0"):
    name = f"demo-{version}.tar.gz"
    project, parsed, _ = identified(name)
    digest = hashlib.sha256(name.encode()).hexdigest()
    return Distribution(Path(name), project, parsed, None, 500, digest, None, None, None)


def url_of(filename, sha256):
    return f"https://files.example/{sha256[:8]}/{filename}"


class Index:
    """The state of one project, updated step by step, a day after each other."""

    def __init__(self, page=None, documents=None):
        self.page, self.documents, self.day = page, documents or {}, 0
        self.changed = frozenset()

    def update(self, *new, **options):
        now = T0 + timedelta(days=self.day)
        result = updated(self.page, self.documents, new, url_of=url_of, now=now, **options)
        self.day += 1
        self.page, self.documents, self.changed = result.page, result.documents, result.changed
        return self

    @property
    def files(self):
        return {file.filename: file for file in self.page.files}

    def labels(self, name=DOCUMENT):
        return set(json.loads(self.documents[name])["variants"])


def check_documents(index):
    """The page lists exactly the documents that there are, with their hashes and sizes."""
    listed = {name: file for name, file in index.files.items() if name.endswith("-variants.json")}
    assert listed.keys() == index.documents.keys()
    for name, data in index.documents.items():
        digest = hashlib.sha256(data).hexdigest()
        assert listed[name].hashes == {"sha256": digest}
        assert listed[name].size == len(data)
        assert listed[name].url == url_of(name, digest)


def test_another_version_leaves_documents_alone():
    index = Index().update(wheel(label="v3"))
    index.documents = {DOCUMENT: b'{"unread": 1}', "demo-3.0-variants.json": b"not listed"}
    index.update(wheel(label="v4", version="2.0"))
    assert index.documents.keys() == {DOCUMENT, "demo-2.0-variants.json"}
    assert index.documents[DOCUMENT] == b'{"unread": 1}'
    assert index.page.versions == ("1.0", "2.0")


def test_other_contents_under_a_listed_name_are_refused():
    index = Index().update(wheel(label="v3"))
    with pytest.raises(UpdateError, match="a published file cannot change") as caught:
        index.update(wheel(label="v3", content="other"))
    assert str(caught.value).startswith("https://files.example/")
    assert "dist/demo-1.0-py3-none-linux-v3.whl has" in str(caught.value).replace("\\", "/")
    with pytest.raises(UpdateError):
        Index().update(wheel(), wheel(content="other"))
    unhashed = replace(index.page, files=(PageFile(wheel().path.name, "https://u:p@x.example/w"),))
    with pytest.raises(UpdateError, match="no SHA-256") as caught:
        Index(unhashed).update(wheel())
    assert "u:p" not in str(caught.value)


def test_contradictions_name_both_sources():
    index = Index().update(wheel(label="v3"))
    other = wheel("mac", "v3", tree=make_variant_json("v3", level("v2")))
    with pytest.raises(InconsistentMetadata) as caught:
        index.update(other)
    assert "https://files.example/" in str(caught.value)
    assert "demo-1.0-py3-none-mac-v3.whl" in str(caught.value)
    with pytest.raises(InconsistentMetadata) as caught:
        Index().update(wheel("any", "null"), wheel(label="v3"), other)
    for tag, is_named in (("any", False), ("linux", True), ("mac", True)):
        assert (f"none-{tag}-" in str(caught.value)) == is_named


def test_what_was_said_of_a_file_is_kept():
    index = Index().update(wheel(label="v3"), wheel())
    name = wheel(label="v3").path.name
    attested = replace(index.files[name], provenance="https://files.example/p")
    yanked = replace(attested, yanked="broken")
    yanked = replace(yanked, hashes={"md5": "00", **yanked.hashes})
    files = (yanked, index.files[wheel().path.name], index.files[DOCUMENT])
    index.page = Page("demo", files, ("1.0",), "archived", "done")
    index.update(wheel(label="v3"), wheel(label="null"))
    assert index.files[name] == yanked
    assert (index.page.status, index.page.status_reason) == ("archived", "done")


def test_files_of_others_stay():
    egg = PageFile("demo-0.5-py2.7.egg", "https://x.example/e")
    odd = PageFile("demo-1.0-a-b-c-d-e-f-g.whl", "https://x.example/o")
    time = PageFile("demo-0.9.tar.gz", "https://x.example/s", {"sha256": "0" * 64})
    index = Index(Page("demo", (time, egg, odd))).update(wheel())
    assert list(index.files) == [egg.filename, odd.filename, time.filename, wheel().path.name]
    assert index.files[time.filename] == time
    assert index.page.versions == ("0.9", "1.0")


def test_removed_wheels_take_their_labels_with_them():
    first, second = wheel("linux", "v3"), wheel("mac", "v3")
    index = Index().update(first, second, wheel(label="v4"), wheel(label="null"), wheel())
    index.update(removed=[first.path.name])
    assert index.labels() == {"v3", "v4", "null"}
    assert index.changed == {first.path.name}
    index.update(removed=[second.path.name])
    assert index.labels() == {"v4", "null"}
    check_documents(index)
    assert index.changed == {second.path.name, DOCUMENT}
    index.update(removed=[name for name in index.files if name.count("-") == 5])
    assert not index.documents
    assert list(index.files) == [wheel().path.name]
    index.update(removed=[wheel().path.name, "unknown.whl"])
    assert (index.page.files, index.page.versions) == ((), ())


def test_labels_without_a_wheel_on_the_page_stay():
    index = Index().update(wheel(label="v3"))
    tree = json.loads(index.documents[DOCUMENT])
    tree["variants"]["elsewhere"] = level("v4")
    index.documents = {DOCUMENT: json.dumps(tree).encode()}
    index.update(wheel("mac", "v3"))
    assert index.labels() == {"v3", "elsewhere"}
    assert json.loads(index.documents[DOCUMENT]) == tree  # the bytes too, as they say the same


def test_a_document_that_is_missing():
    index = Index().update(wheel(label="v3"))
    index.documents = {}
    complete = updated(
        index.page, {}, [wheel(label="v3"), wheel(label="v4")], url_of=url_of, now=T0
    )
    assert complete.documents.keys() == {DOCUMENT}
    with pytest.raises(UpdateError, match=f"{DOCUMENT}: is needed"):
        index.update(wheel(label="v4"))


@pytest.mark.parametrize(("limit", "most"), [("PAGE_FILES", 3), ("PAGE_BYTES", 2_000)])
def test_a_page_larger_than_clients_read(monkeypatch, limit, most):
    monkeypatch.setattr(limits, limit, most)
    index = Index()
    index.update(wheel())
    old = index.page.files[0]
    many = tuple(replace(old, filename=f"demo-1.{n}.tar.gz", url="x" * 900) for n in range(3))
    with pytest.raises(UpdateError, match=r"its page would list \d files, more than"):
        updated(replace(index.page, files=(old, *many)), {}, [wheel("any")], url_of=url_of, now=T0)


def old_wheels():
    """Wheels of format 0.0.3, which is kept: no later one has its priorities and static values."""
    acme = {"requires": ["acme"]}
    all_three = {"a": acme, "c": {"requires": ["c"], "install-time": False}}
    for label, namespaces, providers, static in (
        ("x", "a", {"a": acme}, {}),
        ("00000000", "ab", {"a": {**acme, "optional": False}}, {}),
        ("y", "abc", all_three, {"c": {"z": ["1"], "b": ["2"]}}),
    ):
        properties = {} if label == "00000000" else {"a": {"f": [label]}}
        tree = make_variant_json(label, properties, namespaces, providers=providers)
        tree |= {"$schema": f"{OLD}v0.0.3.json", "static-properties": static}
        tree["default-priorities"]["feature"] = {"a": ["f", "g"]}
        tree["default-priorities"]["property"] = {"a": {"g": ["2"], "f": ["y", "x"]}}
        yield wheel(label=label, version="0.9", tree=tree)


def acme_wheels():
    """Wheels whose providers and namespaces grow: metadata of format 0.2.0."""
    one = {"a": {"requires": ["acme"]}}
    two = {**one, "b": {"static-properties": {"f": ["1"]}}}
    for label, namespace, providers in (("one", "a", one), ("two", "b", two), ("null", "", one)):
        properties = {namespace: {"f": ["1"]}} if namespace else {}
        tree = make_variant_json(label, properties, providers, providers=providers)
        yield wheel(label=label, version="3.0", tree={**tree, "$schema": f"{OLD}v0.2.0.json"})


ALL = [
    *(wheel(tag, label) for tag in ("linux", "mac") for label in ("v2", "v3", "null")),
    wheel(), wheel("mac"), sdist(), wheel(label="v4", version="2.0"), *old_wheels(), *acme_wheels(),
]  # fmt: skip
AT_ONCE = Index().update(*ALL)


def test_format_of_merged_metadata():
    """The newest one that can say it: the current ones have no priorities of features."""
    found = {name: json.loads(data)["$schema"] for name, data in AT_ONCE.documents.items()}
    assert found == {
        "demo-0.9-variants.json": f"{OLD}v0.0.3.json",
        DOCUMENT: f"{OLD}peps/825/v0.1.1.json",
        "demo-2.0-variants.json": f"{OLD}peps/825/v0.1.1.json",
        "demo-3.0-variants.json": f"{OLD}v0.2.0.json",
    }


@pytest.mark.parametrize(
    ("label", "tree", "problem"),
    [
        ("x", {"feature": {"x86_64": ["level"]}}, "default-priorities.feature: wheels of several"),
        ("00000000", {}, "variants.00000000: wheels of several format versions.*label null"),
    ],
)
def test_formats_that_cannot_be_merged(label, tree, problem):
    old = make_variant_json(label, level("v2") if label == "x" else {})
    old["$schema"] = f"{OLD}v0.0.3.json"
    old["default-priorities"] |= tree
    new = make_variant_json("y", level("v3"))
    files = [VariantFile(json.dumps(each).encode(), "w") for each in (old, new)]
    with pytest.raises(MetadataError, match=problem):
        write_merged(files)


def timeless(page):
    return replace(page, files=tuple(replace(file, upload_time=None) for file in page.files))


@given(
    order=st.permutations(ALL),
    cuts=st.lists(st.integers(0, len(ALL)), max_size=6),
    again=st.lists(st.sampled_from(ALL), max_size=5),
)
def test_batches_in_any_order_give_the_same(order, cuts, again):
    index = Index()
    bounds = [0, *sorted(cuts), len(order)]
    seen = {}
    for start, end in itertools.pairwise(bounds):
        batch = order[start:end]
        if not batch and index.page is None:
            continue
        index.update(*batch, *(item for item in again if item in order[:end]))
        check_documents(index)
        for name, file in index.files.items():
            assert file.upload_time == seen.setdefault(name, file.upload_time)
        assert seen.keys() == index.files.keys()
        assert {item.path.name for item in order[:end]} <= seen.keys()
    assert timeless(index.page) == timeless(AT_ONCE.page)
    assert index.documents == AT_ONCE.documents
    for item in ALL:
        if item.variant is not None:
            document = index.documents[f"demo-{item.version}-variants.json"]
            label, read = item.variant.metadata.label_of(item.label), read_metadata(document, "")
            expected = item.variant.metadata.properties_of(label)
            assert read.properties_of(read.label_of(item.label)) == expected
