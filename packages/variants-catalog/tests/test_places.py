"""What the places of an entry have, in the same way for every client."""

from __future__ import annotations

from urllib.parse import urljoin

import pytest
from packaging.version import Version

from support.catalog_places import entry, variant
from variants_catalog._entry_reader import read_entry
from variants_catalog.listings import (
    Listed,
    PlaceReader,
    Unavailable,
    by_host,
    own_place,
    pages_of,
)

TEXT = entry(
    "app",
    [
        variant("cu128", 'index = "https://example.org/cu128"\nlocal = ["cu128", ""]', cuda="12.8"),
        variant("cu126", 'index = "https://example.org/cu126"\nlocal = "cu126"', cuda="12.6"),
        variant("linked", 'links = "https://other.example/links.html"', cuda="12.4"),
        variant("renamed", 'requires = ["app-cu12=={version}"]', cuda="12.0"),
        variant("null", 'index = "https://example.org/cpu"\nlocal = ["cpu", ""]'),
    ],
    more='variants-index = "https://variants.example/simple"\n',
)
ENTRY = read_entry(TEXT, "app.toml")


def wheel(version: str, label: str = "", name: str = "app", **more) -> Listed:
    filename = f"{name}-{version}-py3-none-any{label and '-'}{label}.whl"
    return Listed(filename, object(), **more)


def sdist(version: str, **more) -> Listed:
    return Listed(f"app-{version}.tar.gz", object(), **more)


def read(own=(), targets=(), project=ENTRY, **pages) -> list[tuple[str, object]]:
    """Return labelled name, or that of a variant wheel, and the file of what is added."""
    reader = PlaceReader(project)
    for page in reader.pages:
        key = page.url.split("/")[2].partition(".")[0] if not page.place else ""
        key = key or page.place.rpartition("/")[2].partition(".")[0]
        reader.answer(page, pages.get(key, [wheel("0.1", name="other")]))
    found = reader.files(own, {"app-cu12": targets})
    assert not reader.unavailable
    return [
        (each.published.filename if each.published else each.listed.filename, each.listed.file)
        for each in found
    ]


def test_pages():
    pages = pages_of(ENTRY)
    assert [(page.url, page.place, page.is_links) for page in pages] == [
        ("https://example.org/cu128/app/", "https://example.org/cu128", False),
        ("https://example.org/cu126/app/", "https://example.org/cu126", False),
        ("https://other.example/links.html", "https://other.example/links.html", True),
        ("https://example.org/cpu/app/", "https://example.org/cpu", False),
        ("https://variants.example/simple/app/", "", False),
    ]


def test_places_for_other_accelerators():
    """They are not asked where there are builds for everyone; why not they is known still."""
    for present, places, labels in (
        ((), ["https://example.org/cpu"], ["cu128", "cu126", "linked"]),
        (("amd",), ["https://example.org/cpu"], ["cu128", "cu126", "linked"]),
        (("nvidia", "amd"), list(ENTRY.places), []),
    ):
        found = ENTRY.for_accelerators(present)
        assert list(found.places) == places
        assert [item.label for item in found.unread_builds(Version("1.0"))] == labels
        assert found.targets == ("app-cu12",)
    # Without builds for everyone the others are what there is to say.
    cuda = 'index = "https://example.org/cu128"\nlocal = "cu128"'
    for tables, places in (
        ([variant("cu128", cuda, cuda="12.8")], ["https://example.org/cu128"]),
        ([variant("cu128", cuda, cuda="12.8"), variant("null", "")], ["https://example.org/cu128"]),
        (
            [variant("cu128", cuda, cuda="12.8"), variant("null", cuda)],
            ["https://example.org/cu128"],
        ),
    ):
        assert list(read_entry(entry("app", tables), "").for_accelerators(()).places) == places


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://me:secret@Example.org/cu126/", "https://example.org/cu126"),
        ("https://example.org/cu126/app", "https://example.org/cu126"),
        ("https://example.org/", None),
    ],
)
def test_a_place_of_the_user(url, expected):
    assert own_place(ENTRY, ["https://pypi.org/simple", url]) == expected


def test_own_wheels_that_are_builds():
    """Not those for other platforms, nor of versions without a table, nor sources."""
    linux = 'platforms = ["manylinux_2_17_x86_64"]\nlocal = ""\nversions = ">=2"'
    place = 'index = "https://example.org/cu128"\nlocal = "cu128"'
    tables = [variant("cu128", place, cuda="12.8"), variant("cu128", linux, cuda="12.8")]

    def tagged(version: str, tag: str) -> Listed:
        return Listed(f"app-{version}-py3-none-{tag}.whl", object())

    x86, mac = "manylinux_2_28_x86_64", "macosx_14_0_arm64"
    own = [tagged("2.0", x86), tagged("2.0", mac), tagged("1.0", x86), sdist("2.0")]
    for more, at_place, real, expected in (
        ([], [], [], {own[0].filename}),
        ([], [tagged("2.0+cu128", x86)], [], {own[0].filename}),  # the same build
        ([], [], [wheel("2.0", "x")], set()),
        ([variant("null", "")], [], [], set()),
    ):
        reader: PlaceReader = PlaceReader(read_entry(entry("app", [*tables, *more]), "app.toml"))
        for page in reader.pages:
            reader.answer(page, at_place)
        reader.files([*own, *real], {})
        assert reader.builds == expected


def test_the_first_place_and_the_newer_local_version_count():
    plain, local, later = wheel("1.0"), wheel("1.0+cu128"), wheel("1.0+cu126")
    found = read(cu128=[plain, local], cu126=[later], cpu=[wheel("1.0+cpu")])
    assert [name for name, _ in found] == [
        "app-1.0-py3-none-any-cu128.whl",
        "app-1.0-py3-none-any-cu126.whl",
        "app-1.0-py3-none-any-null.whl",
    ]
    assert found[0][1] is local.file


def test_a_build_is_yanked_with_its_release():
    """If all files of the release are that the user's indexes have, or if the build itself is."""
    own = [wheel("1.0", yanked="bad"), sdist("1.0", yanked="bad"), wheel("2.0", yanked="bad")]
    builds = [wheel(f"{version}+cu128") for version in ("1.0", "2.0", "3.0")]
    reader: PlaceReader[object] = PlaceReader(ENTRY)
    for page in reader.pages:
        reader.answer(page, [*builds, wheel("4.0+cu128", yanked="")] if "cu128" in page.url else [])
    yanked = [each.yanked for each in reader.files([*own, sdist("2.0"), wheel("4.0")], {})]
    assert yanked == ["bad", None, None, ""]


def test_variant_wheels_come_first():
    own = [wheel("1.0", "x")]
    real = [wheel("1.0", "x"), wheel("2.0", "y"), Listed("app-2.0-variants.json", 1)]
    found = read(own, variants=real, cu126=[wheel(f"{n}.0+cu126") for n in (1, 2, 3)])
    assert [name for name, _ in found] == [
        "app-2.0-py3-none-any-y.whl",
        "app-2.0-variants.json",
        "app-3.0-py3-none-any-cu126.whl",
    ]


def test_the_same_file_on_the_index_of_the_user_stays():
    own = [wheel("1.0", sha256="a" * 64)]
    assert not read(own, cpu=[wheel("1.0", sha256="a" * 64)])
    assert read(own, cpu=[wheel("1.0", sha256="b" * 64)])
    assert read([wheel("1.0")], cpu=[wheel("1.0")])  # without hashes


class TestElsewhere:
    """A project of the publisher's index alone, which other builds require."""

    def added(self, *own, placeholder="", listed=()):
        more = f'placeholder = "{placeholder}"\n' if placeholder else ""
        text = entry("app", [variant("null", 'index = "https://example.org/rocm"')], more=more)
        found = read(own, project=read_entry(text, ""), rocm=[*listed, wheel("10.0"), wheel("9.0")])
        return [name for name, _ in found]

    def test_wheels_and_sources(self):
        """ROCm's own distribution is a source distribution, the others are wheels."""
        wheels = [f"app-{version}-py3-none-any-null.whl" for version in ("10.0", "9.0")]
        assert self.added() == wheels
        assert self.added(listed=[sdist("10.0"), sdist("9.1", yanked="broken")]) == [
            "app-10.0.tar.gz", "app-9.1.tar.gz", *wheels,
        ]  # fmt: skip
        other = Listed("application-10.0.tar.gz", object())
        assert self.added(listed=[other]) == wheels
        text = entry("app", [variant("null", 'index = "https://example.org/rocm"')])
        alone = read(project=read_entry(text, ""), rocm=[sdist("10.0")])
        assert [name for name, _ in alone] == ["app-10.0.tar.gz"]

    @pytest.mark.parametrize("own", [wheel("9.0"), sdist("9.0")])
    def test_what_an_index_of_the_user_has(self, own):
        """Its versions are never replaced; with a placeholder, nor is a project of that name."""
        assert self.added(own, listed=[sdist("9.0")]) == ["app-10.0-py3-none-any-null.whl"]
        assert self.added(own, placeholder="<=0.1", listed=[sdist("11.0")]) == []
        assert len(self.added(sdist("0.1"), wheel("0.0.1.dev0"), placeholder="<=0.1")) == 2


class TestOtherNames:
    """C15: an index says which versions of its projects there are."""

    def names(self, own, targets, text=TEXT):
        found = read(own, targets, read_entry(text, ""))
        return [name for name, _ in found]

    def target(self, version, **more):
        return wheel(version, name="app_cu12", **more)

    @pytest.mark.parametrize("own", [wheel("1.0", position=1), sdist("1.0", position=1)])
    def test_versions_of_the_index(self, own):
        expected = ["app-1.0-py3-none-any-renamed.whl"]
        there = [self.target(version, position=1) for version in ("1.0", "99.0")]
        assert self.names([own], there) == expected
        assert self.names([own], [self.target("1.0", position=0)]) == []
        assert self.names([own], [self.target("1.0", position=2)]) == []
        # Another index has the version without the build.
        other = wheel("1.0", position=2)
        assert self.names([own, other], there) == []
        assert self.names([own, other], [*there, self.target("1.0", position=2)]) == expected
        assert self.names([], [self.target("1.0")]) == []

    def test_an_internal_project_of_that_name(self):
        """The private index comes first and has the project, the public one has the build."""
        assert self.names([wheel("3.0")], [self.target("25.12", position=1)]) == []

    def test_a_placeholder(self):
        text = TEXT.replace("documentation", 'placeholder = "<=0.1"\ndocumentation')
        expected = ["app-25.12-py3-none-any-renamed.whl"]
        assert self.names([sdist("0.1")], [self.target("25.12")], text) == expected
        assert self.names([], [self.target("25.12")], text) == expected
        assert self.names([sdist("0.1")], [self.target("25.12", position=1)], text) == []
        own = [wheel("3.0"), sdist("0.1", position=1)]
        assert self.names(own, [self.target("25.12", position=1)], text) == []
        assert self.names(own, [self.target("3.0", position=1)], text) == []
        # Places for find-links, of which pip says that they are before all indexes.
        assert self.names(own, [self.target("25.12", position=-1)], text) == []
        assert self.names(own, [self.target("3.0", position=0)], text) == [
            "app-3.0-py3-none-any-renamed.whl"
        ]

    def test_other_places_of_the_user(self):
        """They add nothing to what an index has, and keep their own versions."""
        text = TEXT.replace("documentation", 'placeholder = "<=0.1"\ndocumentation')
        reader: PlaceReader = PlaceReader(read_entry(text, ""))
        found = [self.target(version) for version in ("3.0", "25.12")]
        for others, count in (([], 2), ([wheel("3.0", position=1)], 0), ([sdist("0.0.1")], 2)):
            assert len(reader.files([sdist("0.1")], {"app-cu12": found}, others)) == count

    @pytest.mark.parametrize(
        ("own", "first"),
        [
            ([wheel("2.0"), wheel("3.0")], True),
            ([wheel("2.0"), wheel("3.0", position=1)], False),
            ([wheel("2.0"), wheel("3.0"), wheel("3.0", position=1)], False),
            ([wheel("2.0"), wheel("2.0", position=1), wheel("3.0", position=1)], True),
            ([wheel("2.0"), wheel("3.0rc1", position=1)], True),
            ([wheel("2.0"), wheel("1.0", position=1)], True),
            ([wheel("2.0", position=1), wheel("3.0")], False),
        ],
    )
    def test_a_build_before_newer_versions(self, own, first):
        """Not before that of an index that has nothing to do with the builds."""
        text = TEXT.replace("documentation", "before-version = true\ndocumentation")
        reader: PlaceReader = PlaceReader(read_entry(text, ""))
        reader.files(own, {"app-cu12": [self.target("2.0", position=i) for i in (0, 1)]})
        assert reader.puts_build_first is first


def test_platforms():
    platforms = 'platforms = ["manylinux_2_28_x86_64", "macosx_11_0_arm64"]\nlabel = "cu126"'
    project = read_entry(TEXT.replace('label = "cu126"', platforms), "")
    (found,) = project.files("https://example.org/cu126", "app-1.0+cu126-py3-none-any.whl")
    assert found.filename == "app-1.0-py3-none-manylinux_2_28_x86_64.macosx_11_0_arm64-cu126.whl"
    for tags, kept in {
        "manylinux2014_x86_64.manylinux_2_17_x86_64": "manylinux2014_x86_64.manylinux_2_17_x86_64",
        "linux_x86_64": "linux_x86_64",
        "musllinux_1_1_x86_64.musllinux_1_1_aarch64": "musllinux_1_1_x86_64",
        "macosx_10_9_arm64": "macosx_10_9_arm64",
        "macosx_10_9_x86_64": None,
        "win_amd64": None,
        "manylinux_2_17_aarch64": None,
    }.items():
        files = project.files("https://example.org/cu126", f"app-1.0+cu126-cp312-abi3-{tags}.whl")
        expected = [] if kept is None else [f"app-1.0-cp312-abi3-{kept}-cu126.whl"]
        assert [file.filename for file in files] == expected


def test_what_cannot_be_had_is_said_once_for_a_host():
    reader: PlaceReader[object] = PlaceReader(ENTRY)
    for page in reader.pages:
        if page.is_links:
            reader.answer(page, [Listed("app-1.0.tar.gz", 1)])
        elif "variants" in page.url:
            reader.answer(page, [wheel("1.0", "x")])
        else:
            reader.fail(page, "connection refused")
    lines = [str(item).partition(" (for a mirror: ")[0] for item in reader.unavailable]
    assert lines == [
        "Cannot reach example.org: connection refused; choosing app without its builds cu128, "
        "cu126, null",
        "other.example lists no wheels; choosing app without its build linked",
    ]
    assert str(reader.unavailable[0]).endswith("--variant-catalog-mirror https://example.org=URL)")
    assert [item.pages for item in reader.unavailable] == [3, 1]
    assert len(reader.files([], {})) == 1


def test_an_index_of_the_user_that_does_not_answer():
    reader: PlaceReader[object] = PlaceReader(ENTRY)
    reader.fail_target("app-cu12", "https://index.example/simple/app-cu12/: HTTP status 500")
    (item,) = reader.unavailable
    assert str(item) == (
        "Cannot read https://index.example/simple/app-cu12/: HTTP status 500; choosing app "
        "without its build renamed"
    )


def test_a_host_is_named_once_for_all_projects():
    """C7."""
    host = "https://example.org"
    items = by_host(
        [
            Unavailable("a", host, "no answer", ("cu1", "null"), 2),
            Unavailable("b", host, "no answer", ("cu2", "null")),
            Unavailable("b", host, "another reason"),
        ]
    )
    assert [str(item).partition(" (")[0] for item in items] == [
        "Cannot reach example.org: no answer; choosing a, b without its builds cu1, null, cu2",
        "Cannot reach example.org: another reason; choosing b without its variant wheels",
    ]
    assert items[0].pages == 3


PUBLISHER, COMPANY = "https://example.org", "https://company.example"


@pytest.mark.parametrize(
    ("start", "mirror", "link", "file"),
    [
        # Pages as their publisher has them, below a path: their own links lead to the mirror.
        ("", "/raw", "/cu128/app.whl", "/raw/cu128/app.whl"),
        ("/cu128", "/raw/cu128", "/cu128/app.whl", "/raw/cu128/app.whl"),
        ("", "/raw", f"{PUBLISHER}/cu128/app.whl", "/raw/cu128/app.whl"),
        ("", "/raw", "../app.whl", "/raw/cu128/app.whl"),
        # Pages that a mirror made, whatever is in them.
        ("", "/raw", "/raw/cu128/app.whl", "/raw/cu128/app.whl"),
        ("/cu128", "/api/cu128/simple", "../../packages/app.whl", "/api/cu128/packages/app.whl"),
        ("", "/raw", "/files/app%252B1.whl", "/files/app%252B1.whl"),
        ("", "/cu128", "/cu128/cu128/app.whl", "/cu128/cu128/app.whl"),
        ("", "/cu128", "/cu128/app.whl", "/cu128/cu128/app.whl"),
        ("", "", "/cu128/app.whl", "/cu128/app.whl"),
        ("", "/raw", "https://files.example/cu128/app.whl", "https://files.example/cu128/app.whl"),
    ],
)
def test_links_of_a_mirror(start, mirror, link, file):
    project = ENTRY.mirrored({PUBLISHER + start: f"https://me:secret@company.example{mirror}"})
    page = pages_of(project)[0]
    assert page.is_mirror
    address = page.url.replace("me:secret@", "")
    assert page.file_at(urljoin(address, f"{link}#sha256=0")) == (
        urljoin(COMPANY, file) + "#sha256=0"
    )
    (other,) = (each for each in pages_of(project) if each.is_links)
    assert not other.is_mirror
    assert other.file_at("https://example.org/cu128/a.whl") == "https://example.org/cu128/a.whl"


def test_a_mirror_that_lacks_builds():
    """No mirror is advised in place of a mirror, and one need not have all builds."""
    reader: PlaceReader[object] = PlaceReader(ENTRY.mirrored({PUBLISHER: f"{COMPANY}/raw"}))
    first, second = reader.pages[:2]
    reader.fail(first, "HTTP status 404", missing=True)
    reader.fail(second, "HTTP status 404", missing=True)
    (item,) = reader.unavailable
    assert str(item) == (
        "Cannot reach company.example: HTTP status 404; choosing app without its builds cu128, "
        "cu126"
    )
    reader = PlaceReader(reader.entry)
    reader.fail(first, "HTTP status 404", missing=True)
    reader.answer(second, [wheel("1.0+cu126")])
    assert not reader.unavailable


def test_builds_of_the_versions_asked_for():
    items = [
        Unavailable(
            "a", PUBLISHER, "no answer", ("cu1", "cu2", "null"), 3, ("<2", ">=2|==1.0", "")
        ),
        Unavailable("b", PUBLISHER, "no answer", ("cu1",), 1, ("<2",)),
        Unavailable("c", PUBLISHER, "no answer", (), 1),
    ]
    for asked, projects, labels in (
        ({}, "a, b, c", ("cu1", "cu2", "null")),
        ({"a": ["1.0"], "b": ["2.0"]}, "a, c", ("cu1", "cu2", "null")),
        ({"a": ["1.5"], "b": ["2.0"]}, "a, c", ("cu1", "null")),
        ({"a": ["3.0rc1"], "b": ["1.0"]}, "a, b, c", ("cu2", "null", "cu1")),
    ):
        (item,) = by_host(items, {name: map(Version, each) for name, each in asked.items()})
        assert (item.project, item.labels) == (projects, labels)


def test_placeholders_of_local_versions_are_found_in_linear_time():
    """C17: a value ends at the letter that follows it, so that nothing is tried twice."""
    text = TEXT.replace('local = "cu126"', 'local = "a{b}c{d}e{f}g{h}"')
    (variant,) = (item for item in read_entry(text, "").variants if item.label == "cu126")
    number = "1.1" * 20_000
    assert variant.placeholders(Version(f"1.0+a{number}")) is None
    found = variant.placeholders(Version("1.0+a1.2c3e4g5"))
    assert found == {"b": "1.2", "d": "3", "f": "4", "h": "5"}


def test_an_own_file_stands_in_for_a_place_that_lacks_its_build():
    project = read_entry(
        entry(
            "app",
            [
                variant("cu128", 'index = "https://example.org/cu128"\nlocal = "cu128"', cuda="1"),
                variant("cu128", 'local = ""\nplatforms = ["linux_x86_64"]', cuda="1"),
            ],
        ),
        "app.toml",
    )

    def at(version: str, tag: str) -> Listed:
        return Listed(f"app-{version}-py3-none-{tag}.whl", object())

    own = [at("2.0", tag) for tag in ("manylinux_2_28_x86_64", "win_amd64")]
    again = at("2.0-3", "manylinux_2_28_x86_64")
    name = "app-2.0-py3-none-manylinux_2_28_x86_64-cu128.whl"
    assert read(own, project=project) == [(name, own[0].file)]
    place = at("2.0+cu128", "manylinux_2_17_x86_64")
    labelled = "app-2.0-py3-none-manylinux_2_17_x86_64-cu128.whl"
    assert read([*own, again], project=project, cu128=[place]) == [(labelled, place.file)]


@pytest.mark.parametrize("version", ["7.5", "7.5.0", "7.5.0.0"])
def test_a_version_is_spelled_as_its_file_has_it(version):
    """Equal versions may have other texts: what one file has does not count for another."""
    project = read_entry(
        entry(
            "app",
            [variant("cu128", 'index = "https://example.org/cu128"\nlocal = "cu128"', cuda="1")],
        ),
        "app.toml",
    )
    (build,) = project.files(project.places[0], f"app-{version}+cu128-py3-none-any.whl")
    assert (str(build.version), build.filename) == (
        version,
        f"app-{version}-py3-none-any-cu128.whl",
    )
