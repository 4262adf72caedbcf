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

from pep_variants._choose.preferences import preferences_from_options
from pep_variants.errors import PlatformFileError
from pep_variants.machines import load_machine
from support.wheels import Release
from variants_proxy.errors import InvalidKey
from variants_proxy.simple_repository import VariantSelected
from variants_proxy.urls import Machine

GPU = "cuda=12.8,sm=9.0"
CPU = "cpu=zen4"
PLAIN, NULL, CU126, CU128 = (
    f"app-1.0-py3-none-any{label}.whl" for label in ("", "-null", "-cu126", "-cu128")
)
DOCUMENT = "app-1.0-variants.json"


class Source(SimpleRepository):
    """A repository over a folder; `asked` has the names of files that were asked for."""

    def __init__(self, folder):
        self.folder = folder / "app"
        self.folder.mkdir()
        self.local = LocalRepository(folder)
        self.asked = []
        self.yanked = set()
        self.down = False

    def release(self, version="1.0", **options):
        release = Release("app", version, document("12.6", "12.8", "13.0"), **options)
        for wheel in release.wheels():
            self.add(wheel.filename, wheel.build())
        self.add(release.metadata_filename, json.dumps(release.metadata).encode())

    def add(self, name, data=None):
        (self.folder / name).write_bytes(name.encode() if data is None else data)

    async def get_project_page(self, project_name, *, request_context=None):
        page = await self.local.get_project_page(project_name)
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
        if self.down:
            raise errors.SourceRepositoryUnavailable
        self.asked.append(resource_name)
        return await self.local.get_resource(project_name, resource_name)

    def digest(self, name):
        return hashlib.sha256((self.folder / name).read_bytes()).hexdigest()


@pytest.fixture
def source(tmp_path):
    return Source(tmp_path)


def listed(source, machine=GPU, repository=None):
    """Return which files of *source* the page has, by the names that they have there."""
    repository = repository or VariantSelected(source, machine)
    page = asyncio.run(repository.get_project_page("app"))
    names = {source.digest(path.name): path.name for path in source.folder.iterdir()}
    return {file.filename: names[file.hashes["sha256"]] for file in page.files}


def fetched(repository, name):
    return asyncio.run(repository.get_resource("app", name)).path.name


@pytest.mark.parametrize(("machine", "chosen"), [(GPU, CU128), (CPU, NULL), (Machine(), NULL)])
def test_the_variant_that_fits_has_the_plain_name(source, machine, chosen):
    """With the bytes, and so the hashes, of the file in the source."""
    source.release()
    others = ("app-0.9-py3-none-any.whl", "app-1.0.tar.gz")
    for name in others:
        source.add(name)
    repository = VariantSelected(source, machine)
    assert listed(source, repository=repository) == {
        PLAIN: chosen,
        **dict(zip(others, others, strict=True)),
    }
    for name, found in ((PLAIN, chosen), *zip(others, others, strict=True)):
        assert fetched(repository, name) == found
    page = asyncio.run(repository.get_project_page("app"))
    labels = [dict(file.private_metadata) for file in page.files]
    assert labels == [{}, {"_variant_label": chosen[21:-4]}, {}]
    source.add(f"{chosen}.metadata", b"Name: app\n")
    assert fetched(repository, f"{PLAIN}.metadata") == f"{chosen}.metadata"
    for name in (DOCUMENT, CU126, f"{CU128}.metadata", "app-1.0-py2-none-any.whl",
                 "app-2.0-py3-none-any.whl", "app-2.0.tar.gz"):  # fmt: skip
        with pytest.raises(errors.ResourceUnavailable):
            fetched(repository, name)


def test_non_variant_wheel_gives_way(source):
    source.release(non_variant=True)
    assert listed(source) == {PLAIN: CU128}
    assert DOCUMENT in source.asked
    source.asked.clear()
    without = Machine(preferences=preferences_from_options({"no-variants": True}))
    assert listed(source, without) == {PLAIN: PLAIN}
    assert not source.asked


def test_yanked_variants_are_used_if_there_is_no_other(source):
    source.release()
    source.yanked.add(CU128)
    assert listed(source) == {PLAIN: CU126}
    source.yanked.update(path.name for path in source.folder.iterdir())
    assert listed(source) == {PLAIN: CU128}


def test_a_build_before_newer_versions(source):
    source.release()
    source.add("app-2.0-py3-none-any.whl")
    first = preferences_from_options({"variant-before-version": ["app"]})
    platform = load_machine(GPU)
    for machine, yanked in (
        (Machine(platform), [False, False]),
        (Machine(platform, preferences=first), [False, True]),
    ):
        page = asyncio.run(VariantSelected(source, machine).get_project_page("app"))
        assert [bool(file.yanked) for file in page.files] == yanked
    assert page.files[1].yanked == (
        "no build for this GPU, but app 1.0 (cu128) has one; require app==2.0 to take this one"
    )


def test_metadata(source):
    """With a hash it is read once; without the file it is read from the wheels."""
    source.release()
    repository = VariantSelected(source, GPU)
    for _ in range(3):
        assert listed(source, repository=repository) == {PLAIN: CU128}
    assert source.asked == [DOCUMENT]
    source.add(DOCUMENT, json.dumps(document("12.6")).encode())
    assert listed(source, repository=repository) == {PLAIN: CU126}
    (source.folder / DOCUMENT).unlink()
    source.asked.clear()
    assert listed(source) == {PLAIN: CU128}
    assert len(source.asked) == 4


@pytest.mark.parametrize("down", [False, True])
def test_metadata_that_cannot_be_used_costs_the_version_its_variants(source, caplog, down):
    source.release(non_variant=True)
    source.down = down
    if not down:
        source.release("2.0")
        source.add(DOCUMENT, b"{")
    if down:  # for now: installers ask again
        with pytest.raises(errors.SourceRepositoryUnavailable, match=f"{DOCUMENT}: cannot be"):
            listed(source)
        return
    with caplog.at_level(logging.WARNING):
        names = list(listed(source).values())
    assert names == [PLAIN, "app-2.0-py3-none-any-cu128.whl"]
    assert "variants ignored: app 1.0: " in caplog.text
    assert DOCUMENT in caplog.text


def test_only_the_newest_versions_are_judged(source, monkeypatch):
    monkeypatch.setattr("variants_proxy.simple_repository.VERSIONS", 1)
    source.release(non_variant=True)
    source.release("2.0")
    assert list(listed(source).values()) == [NULL, "app-2.0-py3-none-any-cu128.whl"]


@pytest.mark.parametrize(
    ("machine", "error"), [("h1000-zen4", PlatformFileError), ("../x", InvalidKey)]
)
def test_machine_has_to_exist(source, machine, error):
    with pytest.raises(error, match=machine):
        VariantSelected(source, machine)
