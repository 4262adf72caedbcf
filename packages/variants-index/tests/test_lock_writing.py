"""Lock files of resolutions by any resolver, read again."""

from dataclasses import dataclass, field

import pytest
from packaging.version import Version

from pep_variants.errors import LockError
from pep_variants.formats import toml
from pep_variants.formats.platform_file import read_platform
from pep_variants.formats.reader import metadata_from_tree
from variants_index.candidate import Candidate
from variants_index.lock_files import read_lock, select_locked, write_lock
from variants_index.pages import PageFile
from variants_index.target import make_target

PLATFORM = """
[metadata]
version = "0.1"
[[provider]]
namespace = "ns"
[provider.properties]
level = ["2", "1"]
"""
DOCUMENT = {
    "$schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
    "default-priorities": {"namespace": ["ns"]},
    "variants": {"one": {"ns": {"level": ["1"]}}, "two": {"ns": {"level": ["2"]}}},
}
SOURCE = "https://index.example/simple/demo/"


def target(name="gpu", python="3.12"):
    return make_target(
        python_version=python,
        platforms=["manylinux_2_28_x86_64"],
        name=name,
        platform=read_platform(PLATFORM, "platform.toml"),
    )


def candidate(filename, version="1.0", hashes=None):
    url = f"https://files.example/{filename}"
    file = PageFile(filename, url, {"sha256": "00"} if hashes is None else hashes)
    return Candidate("demo", Version(version), filename, SOURCE, file=file)


@dataclass(frozen=True)
class Package:
    candidate: Candidate
    alternatives: tuple[Candidate, ...] = ()
    name: str = "demo"
    extras: tuple[str, ...] = ()
    requires_dist: dict = field(default_factory=dict)
    depends: tuple[str, ...] = ()
    editable: bool = False

    @property
    def version(self):
        return self.candidate.version

    @property
    def metadata(self):
        return metadata_from_tree(DOCUMENT, SOURCE)


@dataclass(frozen=True)
class Resolution:
    target: object
    packages: tuple[Package, ...]
    requested: dict = field(default_factory=lambda: {"demo": frozenset({""})})
    provided: dict = field(default_factory=dict)


def written(*resolutions, folder, digests=None):
    return write_lock(
        resolutions,
        created_by="tests",
        folder=folder,
        documents=lambda package: [DOCUMENT],
        digests=digests or (lambda candidate: pytest.fail("the index has the hashes")),
    )


def a_package(*labels, **options):
    files = tuple(candidate(f"demo-1.0-py3-none-any-{label}.whl", **options) for label in labels)
    return Package(files[0], files)


def test_what_is_written_is_read_again(tmp_path):
    data = written(Resolution(target(), (a_package("one", "two"),)), folder=tmp_path)
    (package,) = toml.loads(data.decode())["packages"]
    assert package["variants-json"] == DOCUMENT
    path = tmp_path / "pylock.toml"
    path.write_bytes(data)
    platform = target().platform
    (item,) = select_locked(read_lock(path), target(), lambda _: platform)
    assert (item.filename, item.label) == ("demo-1.0-py3-none-any-two.whl", "two")
    assert item.url == "https://files.example/demo-1.0-py3-none-any-two.whl"


def test_labels_that_are_not_listed_are_left_out(tmp_path):
    data = written(Resolution(target(), (a_package("one"),)), folder=tmp_path)
    (package,) = toml.loads(data.decode())["packages"]
    assert set(package["variants-json"]["variants"]) == {"one"}


def test_hashes_that_the_index_lacks(tmp_path):
    package = a_package("one", hashes={})
    data = written(
        Resolution(target(), (package,)), folder=tmp_path, digests=lambda _: {"sha256": "ff"}
    )
    assert b'sha256 = "ff"' in data
    with pytest.raises(LockError, match="cannot be written"):
        written(Resolution(target(), (package,)), folder=tmp_path, digests=lambda _: {})


def test_versions_for_equal_environments_are_refused(tmp_path):
    newer = Package(candidate("demo-2.0-py3-none-any.whl", "2.0"))
    older = a_package("one")
    with pytest.raises(LockError, match="no marker distinguishes the two targets"):
        written(
            Resolution(target(), (older,)),
            Resolution(target("other"), (newer,)),
            folder=tmp_path,
        )
    newer = Package(newer.candidate, (newer.candidate,))
    data = written(
        Resolution(target(), (older,)),
        Resolution(target("other", python="3.13"), (newer,)),
        folder=tmp_path,
    )
    assert [item["version"] for item in toml.loads(data.decode())["packages"]] == ["1.0", "2.0"]
