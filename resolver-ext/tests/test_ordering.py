"""The ordering: laziness, forced labels, several sources, faults, stability."""

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_provider import METADATA, Candidate, Files
from test_provider import wheel as provider_wheel

from pep_variants._choose.preferences import Preferences
from pep_variants._model.metadata import Metadata
from pep_variants._model.platform import Platform, Support
from pep_variants.errors import MetadataError, NoSuchVariant, VariantError
from pep_variants.markers import NON_VARIANT, VariantContext
from resolvelib_variants.interfaces import VersionOrder
from resolvelib_variants.ordering import VariantOrdering

A = "https://a.example/simple/"
B = "https://b.example/simple/"


class Listener:
    def __init__(self):
        self.heard = []

    def selected(self, project, version, selection):
        chosen = selection.chosen
        self.heard.append((project, version, chosen.filename if chosen else None))

    def failed(self, project, version, error):
        self.heard.append((project, version, error))


wheel = partial(provider_wheel, "foo")


def sdist(version):
    return Candidate("foo", version, f"foo-{version}.tar.gz")


def make(files=None, *, listener=None, **preferences):
    found = Platform({"cpu": Support({"level": ("v3", "v2", "v1")})})
    return VariantOrdering(
        files or Files(),
        platform=lambda metadata: found,
        preferences=Preferences(**preferences),
        listener=listener,
    )


def names(items):
    return [item.filename.removeprefix("foo-") for item in items]


TWO_VERSIONS = [
    wheel("2", "v1"),
    wheel("2", "v2"),
    wheel("2"),
    wheel("1", "v1"),
    wheel("1", "v3"),
    sdist("1"),
]


def test_what_was_arranged_is_not_arranged_again_until_other_files_are_offered():
    class Counting(Files):
        asked = 0

        def filename(self, candidate):
            self.asked += 1
            return super().filename(candidate)

    files = Counting()
    ordering = make(files)
    first = names(ordering.arrange("foo", TWO_VERSIONS))
    files.asked = 0
    assert names(ordering.arrange("foo", list(TWO_VERSIONS))) == first
    assert files.asked == 0
    more = [wheel("2", "v3"), *TWO_VERSIONS]
    assert names(ordering.arrange("foo", more)) == ["2-py3-none-any-v3.whl", *first[1:]]
    assert names(ordering.arrange("foo", TWO_VERSIONS)) == first


class TestLaziness:
    def test_once_per_version_and_source_also_when_more_files_turn_up(self):
        files, listener = Files(), Listener()
        ordering = make(files, listener=listener)
        v1, v2 = wheel("1", "v1"), wheel("1", "v2")
        for items, chosen in (([v1], v1), ([v1, v2], v2), ([v2, v1], v2), ([v1], v1)):
            assert list(ordering.arrange("foo", items)) == [chosen]
        assert files.read == [("foo", "1")]
        # The choice changed, so that is said again.
        assert listener.heard == [("foo", "1", v1.filename), ("foo", "1", v2.filename)]

    @pytest.mark.parametrize("error", [MetadataError("foo.json", "", "bad"), ZeroDivisionError()])
    def test_an_error_is_not_asked_for_again(self, error):
        files = Files(error)
        ordering = make(files)
        list(ordering.arrange("foo", [wheel("1", "v1"), sdist("1")]))
        list(ordering.arrange("foo", [wheel("1", "v1"), wheel("1", "v2")]))
        assert files.read == [("foo", "1")]

    @pytest.mark.parametrize("preferences", [{"use_variants": False}, {"forced": {"foo": ""}}])
    def test_no_metadata_where_variants_are_not_wanted(self, preferences):
        files = Files()
        arranged = make(files, **preferences).arrange("foo", TWO_VERSIONS)
        assert names(arranged) == ["2-py3-none-any.whl", "1.tar.gz"]
        assert not files.read


class TestForcedLabels:
    def test_missing_says_which_labels_there_are_when_all_versions_were_seen(self):
        ordering = make(forced={"foo": "v4"})
        arranged = ordering.arrange("foo", TWO_VERSIONS)
        assert not ordering.missing
        assert not list(arranged)
        found = ordering.missing["foo"]
        assert isinstance(found, NoSuchVariant)
        assert "foo 2 has no variant 'v4'" in str(found)
        assert "there are: v1, v2" in str(found)
        list(ordering.arrange("foo", TWO_VERSIONS[3:]))
        assert ordering.missing == {"foo": found}  # the first reason stays

    def test_what_conflicts_is_not_missing(self):
        ordering = make(forced={"foo": "v2"})
        rest = [item for item in TWO_VERSIONS if "v2" not in item.filename]
        assert not list(ordering.arrange("foo", rest, refused=TWO_VERSIONS[1:2]))
        assert not list(ordering.arrange("foo", rest, complete=False))
        assert not ordering.missing


def test_the_order_of_sources_does_not_depend_on_what_is_left_out():
    other = Metadata(namespaces=("cpu",), variants={"v1": {"cpu": {"level": ("v2",)}}})
    items = [wheel("1", "v1"), wheel("1", "v1", source=B), wheel("1", "v3")]
    ordering = make(Files({A: METADATA, B: other}))
    list(ordering.arrange("foo", items))
    # Without its first wheel, source A would now be listed behind B.
    assert list(ordering.arrange("foo", items[1:])) == [items[2]]
    assert list(ordering.arrange("foo", items[1:2])) == [items[1]]


@pytest.mark.parametrize("label", ["v2", None])
def test_files_that_only_the_order_of_the_client_tells_apart(label):
    same = [wheel("1", label), wheel("1", label, source=B)]
    for items in (same, same[::-1]):
        ordering = make(Files({A: METADATA, B: METADATA}))
        assert list(ordering.arrange("foo", [wheel("1", "unknown"), *items])) == items


@pytest.mark.parametrize(
    ("error", "place"),
    [(ZeroDivisionError("fault"), "platform"), (VariantError("fault"), "platform"),
     (KeyError("fault"), "metadata")],
)  # fmt: skip
def test_a_fault_costs_the_variants_unless_a_label_is_forced(error, place):
    def failing(_):
        raise error

    listener = Listener()
    ordering = VariantOrdering(
        Files(METADATA if place == "platform" else error),
        platform=failing if place == "platform" else lambda _: Platform({}),
        preferences=Preferences(forced={"bar": "v1"}),
        listener=listener,
    )
    for _ in range(2):
        assert names(ordering.arrange("foo", TWO_VERSIONS)) == ["2-py3-none-any.whl", "1.tar.gz"]
        with pytest.raises(type(error), match="fault"):
            list(ordering.arrange("bar", TWO_VERSIONS))
    assert listener.heard == [("foo", "2", error), ("foo", "1", error)]


def test_context():
    variants = {"x": {"cpu": {"level": ("v2", "v9")}}}
    ordering = make(Files(Metadata(namespaces=("cpu",), variants=variants)))
    items = [wheel("1", "x"), wheel("1")]
    # Of what was never arranged, it is what the name says.
    assert ordering.context("foo", items[0]) == VariantContext("x", {})
    list(ordering.arrange("foo", items))
    assert ordering.context("foo", items[0]) == VariantContext("x", {"cpu": {"level": ("v2",)}})
    assert ordering.context("foo", items[1]) == NON_VARIANT
    assert ordering.context("foo", Candidate("foo", "1", None)) == NON_VARIANT


# Whatever the files, metadata and platform.

levels = st.sets(st.sampled_from(["v1", "v2", "v3"]), min_size=1).map(lambda s: tuple(sorted(s)))
all_metadata = st.fixed_dictionaries({"p": levels, "q": levels, "r": levels}).map(
    lambda found: Metadata(
        namespaces=("cpu",),
        variants={label: {"cpu": {"level": values}} for label, values in found.items()}
        | {"null": {}},
    )
)
supports = levels.map(lambda found: Platform({"cpu": Support({"level": found})}))
groups = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from([None, "p", "q", "r", "null", "unknown"]),
            st.sampled_from([A, B]),
            st.sampled_from(["any", "linux_x86_64"]),
        ),
        min_size=1,
        max_size=8,
        unique=True,
    ),
    max_size=3,
)


@settings(max_examples=100, deadline=None)
@given(groups, all_metadata, all_metadata, supports, st.data())
def test_any_input(groups, found_a, found_b, supported, data):
    found = {A: found_a, B: found_b}
    items = [
        wheel(str(len(groups) - number), label, source=source, platform=tag)
        for number, group in enumerate(groups)
        for label, source, tag in group
    ]

    def ordering():
        return VariantOrdering(
            Files(found), platform=lambda _: supported, preferences=Preferences()
        )

    mine = ordering()
    chosen = list(mine.arrange("foo", items))
    arranged = []
    for version in dict.fromkeys(item.version for item in items):
        own = [item for item in items if item.version == version]
        selection = mine.selection("foo", own[0])
        arranged += own if selection is None else [file.item for file in selection.files]

    # Of these, each version offers the first one, and what has its label.
    first = {item.version: item for item in reversed(arranged)}
    assert [item for item in arranged if item in chosen] == chosen
    assert {item.version: item for item in reversed(chosen)} == first
    for version, best in first.items():
        own = [item for item in chosen if item.version == version]
        assert {label_of(item) for item in own} == {label_of(best)}
        same = [i for i in arranged if (i.version, i.source) == (version, best.source)]
        assert {item for item in same if label_of(item) == label_of(best)} <= set(own)

    # The same again, from a new one, and for every part of which the rest was refused: no other
    # variant in place of one that was refused.
    assert list(mine.arrange("foo", items)) == chosen
    assert list(ordering().arrange("foo", items)) == chosen
    part = set(data.draw(st.lists(st.sampled_from(items), unique=True))) if items else set()
    offered = [item for item in items if item in part]
    refused = [item for item in items if item not in part]
    judged = {item.version for item in items if mine.selection("foo", item) is not None}
    assert list(mine.arrange("foo", offered, refused=refused)) == [
        item for item in chosen if item in part
    ]
    assert all(item.version in judged for item in items if item.filename.count("-") > 4)


def label_of(item):
    return tuple(item.filename.removesuffix(".whl").split("-")[5:])


GPU = Metadata(
    namespaces=("nvidia",),
    variants={"new": {"nvidia": {"sm": ("9",)}}, "old": {"nvidia": {"sm": ("7",)}}, "null": {}},
    source="foo-variants.json",
)
THREE_BUILDS = [
    *(wheel("4", "new"), wheel("4", "null"), wheel("3", "new"), wheel("3")),
    *(wheel("2", "old"), wheel("2", "null"), wheel("1", "old")),
]


class TestBuildFirst:
    """Versions of a project of which only older ones have a build for the GPU."""

    def make(self, *, floor=None, by_default=False, names=("foo",), sm=("7",), **options):
        supported = Platform({"nvidia": Support({"sm": sm})} if sm else {})
        return VariantOrdering(
            Files(GPU),
            platform=lambda _: supported,
            preferences=Preferences(before_version=frozenset(names)),
            version_order=VersionOrder(lambda _: by_default, lambda _: floor),
            **options,
        )

    def versions(self, ordering, items=THREE_BUILDS, **options):
        found = ordering.arrange("foo", items, **options)
        return "".join(dict.fromkeys(item.version for item in found))

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ({}, "2431"),
            ({"names": ()}, "4321"),
            ({"names": (), "by_default": True}, "2431"),
            ({"names": (":none:",), "by_default": True}, "4321"),
            ({"names": (":all:",)}, "2431"),
            ({"sm": ("9",)}, "432"),
            ({"sm": ()}, "432"),
            ({"floor": "2"}, "2431"),
            ({"floor": "3"}, "4321"),  # never below what is installed
        ],
    )
    def test_first(self, given, expected):
        ordering = self.make(**given)
        assert self.versions(ordering) == expected
        assert bool(ordering.displaced) == expected.startswith("2")

    def test_nothing_else_is_put_first_after_a_conflict(self):
        """What is left keeps its order, whether the resolver goes on or asks again."""
        ordering = self.make()
        assert self.versions(ordering) == "2431"
        left = [item for item in THREE_BUILDS if item.version != "2"]
        refused = [item for item in THREE_BUILDS if item.version == "2"]
        assert self.versions(ordering, left, refused=refused) == "431"
        assert not ordering.displaced

    @pytest.mark.parametrize(("label", "expected"), [("null", "4321"), ("old", "2431")])
    def test_not_where_another_variant_of_it_agrees_with_what_is_installed(self, label, expected):
        class WithBar:
            def version(self, project):
                return None

            def variants(self):
                yield "bar", Metadata(("nvidia",), {label: {}})

        ordering = self.make(installed=WithBar(), together=lambda *_: True)
        assert self.versions(ordering) == expected
