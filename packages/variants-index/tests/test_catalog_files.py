"""Files of the catalogue among those of a project: pages, credentials, addresses, versions."""

import base64
import threading

import pytest
from packaging.version import Version

from pep_variants._choose.preferences import Preferences
from pep_variants._sources import BEST_MATCH, FIRST_INDEX, Sources
from pep_variants.errors import CatalogError
from support.catalog_places import entry, variant
from support.index import Answer, served
from support.wheels import Wheel
from variants_catalog._catalogs import PreferredCatalog, read_catalog
from variants_index._distribution_metadata import fetch_core_metadata
from variants_index._errors import AccessDenied
from variants_index._evaluator import CandidateEvaluator
from variants_index._http.session import Session
from variants_index._package_finder import PackageFinder
from variants_index._prefetch import Prefetcher
from variants_index.target import make_target


def app(url):
    """Return an entry with builds of all kinds."""
    kinds = {
        "cuda12": f'index = "{url}/whl/cu12"\nlocal = "cu12"',
        "cuda13": f'index = "{url}/whl/cu13"\nlocal = "cu13"',
        "linked": f'links = "{url}/links.html"',
        "other": 'requires = ["app-other=={version}"]',
        "extra": 'requires = ["{name}[fast]=={version}"]',
    }
    drivers = ("12.0", "13.0", "9.0", "11.0", "10.0")
    tables = [
        variant(label, where, cuda=driver)
        for (label, where), driver in zip(kinds.items(), drivers, strict=True)
    ]
    return entry("app", tables)


LABELS = ["cuda12", "cuda13", "extra", "linked", "other"]


def catalog(text, source="/app.toml", **preferences):
    return PreferredCatalog(read_catalog(text.encode(), source), Preferences(**preferences))


class World:
    def __init__(self, own, publisher):
        self.own, self.publisher = own, publisher
        self.entry = app(publisher.root)
        requires = ("base", "speed; extra == 'fast'")
        plain = Wheel("app", "1.0", requires=requires, extras=("fast",))
        own.add_wheel(plain)
        other = Wheel("app-other", "1.0", requires_python=">=3.9")
        own.add_wheel(other, **{"requires-python": ">=3.9", "yanked": "broken"})
        # A page may be elsewhere, and with it its links.
        for place, at in (("cu12", "/whl/cu12"), ("cu13", "/r2")):
            wheel = Wheel("app", f"1.0+{place}")
            name = wheel.filename.replace("+", "%2B")
            publisher.resources[f"{at}/{name}"] = Answer(body=wheel.build(), ranges=True)
            link = f'<a href="../{name}">x</a>'.encode()
            publisher.resources[f"/whl/{place}/app/"] = Answer.redirect(f"{at}/app/")
            publisher.resources[f"{at}/app/"] = Answer(body=link, kind="text/html")
        links = "<a href='app-1.0+pt-py3-none-any.whl'>x</a><a href='b-1.0-py3-none-any.whl'>y</a>"
        publisher.resources["/links.html"] = Answer(body=links.encode(), kind="text/html")

    @property
    def sources(self):
        return Sources(index_url=self.own.url)

    def session(self):
        return Session(self.sources, environ={}, retries=0)


@pytest.fixture
def world():
    with served() as own, served() as publisher:
        yield World(own, publisher)


def labels(project):
    files = project.versions[Version("1.0")]
    return sorted(item.catalog.published.label for item in files if item.catalog is not None)


def test_all_kinds(world):
    with world.session() as session:
        finder = PackageFinder(session, world.sources, catalog=catalog(world.entry))
        project = finder.project("app")
        assert labels(project) == LABELS
        assert project.has_variants
        assert project.warnings == ()
        assert list(project.versions) == [Version("1.0")]
        published = ("1.0+cu12", "1.0+cu13", "1.0+pt")
        assert project.published == {Version("1.0"): tuple(map(Version, published))}
        assert finder.project("app-other").entry is None
        evaluator = CandidateEvaluator(finder, make_target(python_version="3.12"))
        candidates = evaluator.candidates("app", Version("1.0"), pinned=True)
        found = {item.label: item for item in candidates}
        # app-other is yanked; the non-variant wheel comes last.
        assert list(found) == ["cuda12", "cuda13", "linked", "extra", None]
        metadata = evaluator.release_metadata(found["cuda12"])
        assert sorted(metadata.metadata.variants) == LABELS
        assert list(metadata.documents) == [""]
        described = {
            label: (item.published, str(item.version), str(item.release), item.place)
            for label, item in found.items()
        }
        page = f"{world.publisher.root}/whl/cu12/app/"
        assert described["cuda12"] == ("app-1.0+cu12-py3-none-any.whl", "1.0+cu12", "1.0", page)
        own = ("app-1.0-py3-none-any.whl", "1.0", "1.0", f"{world.own.url}app/")
        assert described["extra"] == described[None] == own
        optional = "speed; extra == 'fast'"
        for label, requires in (
            ("extra", ("base", optional, "speed")),
            (None, ("base", optional)),
            ("cuda12", ()),
            ("cuda13", ()),
        ):
            assert fetch_core_metadata(session, found[label]).requires == requires


def test_pages_are_fetched_side_by_side(world):
    together = threading.Barrier(2, timeout=30)

    def wait(page):
        def answer(headers):
            together.wait()
            return page

        return answer

    for place in ("cu12", "cu13"):
        path = f"/whl/{place}/app/"
        world.publisher.resources[path] = wait(world.publisher.resources[path])
    prefetcher = Prefetcher(4)
    with world.session() as session:
        finder = PackageFinder(session, world.sources, prefetcher, catalog(world.entry))
        assert labels(finder.project("app")) == LABELS
        finder.project("app")
    prefetcher.close()
    assert len(world.publisher.requests) == 4


def test_a_mirror_with_credentials(world):
    place = world.publisher.root
    text = app("https://publisher.example")
    mirrors = {"https://publisher.example": place.replace("//", "//me:secret@")}
    with world.session() as session:
        for url in mirrors.values():
            session.add_index(url)
        finder = PackageFinder(
            session, world.sources, catalog=catalog(text, catalog_mirrors=mirrors)
        )
        project = finder.project("app")
        assert labels(project) == LABELS
        shown = [project.places, project.warnings, project.versions.values()]
        assert "secret" not in repr(shown)
    login = base64.b64encode(b"me:secret").decode()
    assert {each.headers["Authorization"] for each in world.publisher.requests} == {
        f"Basic {login}"
    }


def test_a_catalogue_from_a_server_leads_no_nearer_than_itself(world):
    with world.session() as session:
        chosen = catalog(world.entry, "https://catalog.example/app.toml")
        project = PackageFinder(session, world.sources, catalog=chosen).project("app")
    assert labels(project) == ["extra", "other"]
    (item,) = project.unavailable
    assert "which is not a public address" in item.reason
    assert world.publisher.requests == []


RMM = variant("cuda12", 'requires = ["rmm-cu12=={version}"]', cuda="12.0")
TARGET = entry("rmm", [RMM])
WITH_PLACEHOLDER = entry("rmm", [RMM], more='placeholder = "<1"\n')


@pytest.mark.parametrize(
    ("text", "own", "builds", "strategy", "taken"),
    [
        # (position of the index, version) of the project, and of its build.
        (TARGET, [(0, "1.0")], [(0, "1.0")], FIRST_INDEX, ["1.0"]),
        (TARGET, [(0, "3.0")], [(1, "25.0")], FIRST_INDEX, []),
        (TARGET, [(0, "1.0")], [(1, "1.0")], FIRST_INDEX, []),
        (TARGET, [(0, "1.0")], [(1, "1.0")], BEST_MATCH, []),
        (TARGET, [(1, "1.0")], [(0, "1.0")], FIRST_INDEX, []),
        (TARGET, [(1, "1.0")], [(0, "1.0")], BEST_MATCH, []),
        (TARGET, [(0, "1.0"), (1, "1.0")], [(0, "1.0")], FIRST_INDEX, ["1.0"]),
        (TARGET, [(0, "1.0"), (1, "1.0")], [(0, "1.0")], BEST_MATCH, []),
        (TARGET, [(0, "1.0"), (1, "1.0")], [(0, "1.0"), (1, "1.0")], BEST_MATCH, ["1.0"]),
        (TARGET, [(0, "1.0"), (1, "2.0")], [(1, "2.0")], BEST_MATCH, ["2.0"]),
        (TARGET, [(0, "1.0"), (1, "2.0")], [(1, "2.0"), (1, "1.0")], BEST_MATCH, ["2.0"]),
        (TARGET, [(0, "1.0")], [(0, "99.0")], FIRST_INDEX, []),
        (TARGET, [], [(0, "1.0")], FIRST_INDEX, []),
        (WITH_PLACEHOLDER, [], [(0, "1.0")], FIRST_INDEX, ["1.0"]),
        (WITH_PLACEHOLDER, [(0, "0.1")], [(0, "1.0")], FIRST_INDEX, ["1.0"]),
        (WITH_PLACEHOLDER, [(0, "0.1a1")], [(0, "1.0")], FIRST_INDEX, ["1.0"]),
        (WITH_PLACEHOLDER, [(0, "0.1")], [(1, "1.0")], BEST_MATCH, []),
        (WITH_PLACEHOLDER, [(0, "2.0")], [(0, "1.0")], FIRST_INDEX, []),
        (WITH_PLACEHOLDER, [(0, "0.1"), (1, "2.0")], [(0, "1.0")], FIRST_INDEX, []),
        (WITH_PLACEHOLDER, [(0, "0.1"), (1, "2.0")], [(0, "2.0")], FIRST_INDEX, []),
        (WITH_PLACEHOLDER, [(0, "0.1"), (1, "2.0")], [(0, "2.0")], BEST_MATCH, []),
        (WITH_PLACEHOLDER, [(0, "0.1"), (1, "0.2")], [(0, "1.0")], FIRST_INDEX, ["1.0"]),
    ],
)
def test_what_an_index_says_of_versions(text, own, builds, strategy, taken):
    """C15: no build of another name adds a version, or is of another index than that."""
    with served() as one, served() as two:
        for name, files in (("rmm", own), ("rmm-cu12", builds)):
            for position, version in files:
                (one, two)[position].add_wheel(Wheel(name, version))
        sources = Sources(index_url=two.url, extra_index_urls=(one.url,), index_strategy=strategy)
        with Session(sources, environ={}, retries=0) as session:
            finder = PackageFinder(session, sources, catalog=catalog(text))
            project = finder.project("rmm")
    found = [
        str(version)
        for version, files in project.versions.items()
        for item in files
        if item.catalog is not None
    ]
    assert found == taken


def test_an_index_that_does_not_tell_of_another_name(world):
    world.own.resources["/simple/app-other/"] = Answer(500)
    with world.session() as session:
        finder = PackageFinder(session, world.sources, catalog=catalog(world.entry))
        project = finder.project("app")
    assert labels(project) == LABELS[:-1]
    (item,) = project.unavailable
    assert str(item) == (
        f"Cannot read {world.own.url}app-other/: the server cannot answer now (HTTP status 500): "
        "try later; choosing app without its build other"
    )


def test_no_index(world):
    with world.session() as session:
        finder = PackageFinder(session, Sources(no_index=True), catalog=catalog(world.entry))
        assert (finder.entries.entry("app"), finder.has_catalog) == (None, False)


def test_an_entry_that_cannot_be_read(world):
    tree = '{"catalog-version": "1", "projects": {"app": 1}}'
    with world.session() as session:
        finder = PackageFinder(session, world.sources, catalog=catalog(tree))
        with pytest.raises(CatalogError):
            finder.project("app")
        assert finder.project("app-other").versions


def test_a_host_that_cannot_answer_is_named_once(world):
    for place in ("cu12", "cu13"):
        world.publisher.resources[f"/whl/{place}/app/"] = Answer(500)
    with world.session() as session:
        finder = PackageFinder(session, world.sources, catalog=catalog(world.entry))
        (item,) = finder.project("app").unavailable
    assert (item.reason, item.pages, item.labels) == (
        "the server cannot answer now (HTTP status 500): try later", 2, ("cuda12", "cuda13"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("status", "reason"), [(404, "not found"), (403, "not found"), (401, "access denied")]
)
def test_a_place_that_lacks_a_name(world, status, reason):
    """Object storage answers 403 for what it lacks."""
    world.publisher.resources["/whl/cu12/app/"] = Answer(status)
    with world.session() as session:
        finder = PackageFinder(session, world.sources, catalog=catalog(world.entry))
        (item,) = finder.project("app").unavailable
        assert item.reason.startswith(f"{reason} (HTTP status {status})")
        world.own.resources["/simple/app/"] = Answer(403)
        with pytest.raises(AccessDenied):
            PackageFinder(session, world.sources, catalog=catalog(world.entry)).project("app")
