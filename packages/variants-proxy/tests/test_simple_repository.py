"""`VariantSelected`, a component for servers made with simple-repository."""

import asyncio
import hashlib
import json
import logging
from dataclasses import replace

import pytest
from simple_repository import errors
from simple_repository.components.core import SimpleRepository
from simple_repository.components.local import LocalRepository
from upstream_server import document

from pep_variants.choose.preferences import preferences_from_options
from pep_variants.errors import PlatformFileError
from support.wheels import Release
from variants_proxy import Machine
from variants_proxy.errors import InvalidKey
from variants_proxy.simple_repository import VariantSelected

GPU = "cuda=12.8,sm=9.0"
CPU = "cpu=zen4"
LINUX, WINDOWS = "cp312-cp312-manylinux_2_28_x86_64", "cp312-cp312-win_amd64"


class Source(SimpleRepository):
    """Files in memory, as a repository; `asked` has the names of those that were asked for."""

    def __init__(self, *releases, folder):
        self.folder = folder / "app"
        self.folder.mkdir()
        self.pages = 0
        self.asked = []
        self.yanked = set()
        for release in releases:
            for wheel in release.wheels():
                self.add(wheel.filename, wheel.build())
            self.add(release.metadata_filename, json.dumps(release.metadata).encode())

    def add(self, name, data=None):
        (self.folder / name).write_bytes(name.encode() if data is None else data)

    async def get_project_page(self, project_name, *, request_context=None):
        self.pages += 1
        page = await LocalRepository(self.folder.parent).get_project_page(project_name)
        files = [
            replace(
                file,
                hashes={"sha256": self.digest(file.filename)},
                yanked=file.filename in self.yanked,
            )
            for file in page.files
        ]
        return replace(page, files=tuple(files))

    async def get_resource(self, project_name, resource_name, *, request_context=None):
        self.asked.append(resource_name)
        return await LocalRepository(self.folder.parent).get_resource(project_name, resource_name)

    def digest(self, name):
        return hashlib.sha256((self.folder / name).read_bytes()).hexdigest()


@pytest.fixture
def source(tmp_path):
    return Source(release(), folder=tmp_path)


def release(version="1.0", **options):
    return Release("app", version, document("12.6", "12.8", "13.0"), **options)


def listed(repository):
    """Return what of the source the page lists, by filename."""
    page = asyncio.run(repository.get_project_page("app"))
    names = {
        repository.source.digest(path.name): path.name
        for path in repository.source.folder.iterdir()
    }
    return {file.filename: names[file.hashes["sha256"]] for file in page.files}


def fetched(repository, name):
    return asyncio.run(repository.get_resource("app", name)).path.name


@pytest.mark.parametrize(("machine", "label"), [(GPU, "cu128"), (CPU, "null"), (Machine(), "null")])
def test_the_variant_that_fits_has_the_plain_name(source, machine, label):
    """With the bytes, and so the hashes, of the file in the source."""
    source.add("app-1.0.tar.gz")
    source.add("app-0.9-py3-none-any.whl")
    repository = VariantSelected(source, machine)
    chosen = f"app-1.0-py3-none-any-{label}.whl"
    assert listed(repository) == {
        "app-0.9-py3-none-any.whl": "app-0.9-py3-none-any.whl",
        "app-1.0-py3-none-any.whl": chosen,
        "app-1.0.tar.gz": "app-1.0.tar.gz",
    }
    assert fetched(repository, "app-1.0-py3-none-any.whl") == chosen
    assert fetched(repository, "app-1.0.tar.gz") == "app-1.0.tar.gz"
    assert fetched(repository, "app-0.9-py3-none-any.whl") == "app-0.9-py3-none-any.whl"
    page = asyncio.run(repository.get_project_page("app"))
    labels = [dict(file.private_metadata) for file in page.files]
    assert labels == [{}, {"_variant_label": label}, {}]
    source.add(f"{chosen}.metadata", b"Name: app\n")
    assert fetched(repository, "app-1.0-py3-none-any.whl.metadata") == f"{chosen}.metadata"


@pytest.mark.parametrize(
    "name",
    ["app-1.0-variants.json", "app-1.0-py3-none-any-cu126.whl", "app-1.0-py2-none-any.whl",
     "app-1.0-py3-none-any-cu128.whl.metadata", "app-2.0-py3-none-any.whl", "app-2.0.tar.gz"],
)  # fmt: skip
def test_what_is_not_listed_is_not_served(source, name):
    with pytest.raises(errors.ResourceUnavailable):
        fetched(VariantSelected(source, GPU), name)


def test_non_variant_wheel_gives_way(tmp_path):
    source = Source(release(non_variant=True), folder=tmp_path)
    assert listed(VariantSelected(source, GPU)) == {
        "app-1.0-py3-none-any.whl": "app-1.0-py3-none-any-cu128.whl"
    }
    without = Machine(preferences=preferences_from_options({"no-variants": True}))
    assert listed(VariantSelected(source, without)) == {
        "app-1.0-py3-none-any.whl": "app-1.0-py3-none-any.whl"
    }
    assert "app-1.0-variants.json" in source.asked
    source.asked.clear()
    listed(VariantSelected(source, without))
    assert not source.asked


def test_yanked_variants_are_used_if_there_is_no_other(source):
    source.yanked.add("app-1.0-py3-none-any-cu128.whl")
    repository = VariantSelected(source, GPU)
    assert list(listed(repository).values()) == ["app-1.0-py3-none-any-cu126.whl"]
    source.yanked.update(path.name for path in source.folder.iterdir())
    assert list(listed(repository).values()) == ["app-1.0-py3-none-any-cu128.whl"]


def test_metadata_is_read_from_wheels_without_the_file(source):
    (source.folder / "app-1.0-variants.json").unlink()
    repository = VariantSelected(source, GPU)
    assert list(listed(repository).values()) == ["app-1.0-py3-none-any-cu128.whl"]
    assert len(source.asked) == 4


def test_metadata_with_a_hash_is_read_once(source):
    repository = VariantSelected(source, GPU)
    for _ in range(3):
        listed(repository)
    assert source.asked == ["app-1.0-variants.json"]
    source.add("app-1.0-variants.json", json.dumps(document("12.6")).encode())
    assert list(listed(repository).values()) == ["app-1.0-py3-none-any-cu126.whl"]


def test_broken_metadata_costs_the_version_its_variants(tmp_path, caplog):
    source = Source(release(non_variant=True), release("2.0"), folder=tmp_path)
    source.add("app-1.0-variants.json", b"{")
    with caplog.at_level(logging.WARNING):
        names = listed(VariantSelected(source, GPU))
    assert list(names.values()) == [
        "app-1.0-py3-none-any.whl",
        "app-2.0-py3-none-any-cu128.whl",
    ]
    assert "variants ignored: app 1.0: " in caplog.text
    assert "app-1.0-variants.json" in caplog.text


def test_a_source_that_is_down_for_a_file_costs_the_version_its_variants(tmp_path, caplog):
    class Down(Source):
        async def get_resource(self, project_name, resource_name, *, request_context=None):
            raise errors.SourceRepositoryUnavailable

    source = Down(release(non_variant=True), folder=tmp_path)
    assert list(listed(VariantSelected(source, GPU)).values()) == ["app-1.0-py3-none-any.whl"]
    assert "cannot be fetched: SourceRepositoryUnavailable" in caplog.text


def test_only_the_newest_versions_are_judged(tmp_path, monkeypatch):
    monkeypatch.setattr("variants_proxy.simple_repository.VERSIONS", 1)
    source = Source(release(non_variant=True), release("2.0"), folder=tmp_path)
    assert list(listed(VariantSelected(source, GPU)).values()) == [
        "app-1.0-py3-none-any-null.whl",
        "app-2.0-py3-none-any-cu128.whl",
    ]


def test_machine_has_to_exist(source):
    with pytest.raises(PlatformFileError, match="h1000"):
        VariantSelected(source, "h1000-zen4")
    with pytest.raises(InvalidKey):
        VariantSelected(source, "../x")
