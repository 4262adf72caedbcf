"""The arranger: laziness, forced labels, several sources, faults, stability."""

from itertools import islice
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pep_variants.errors import MetadataError, NoSuchVariant, VariantError
from pep_variants.markers import NON_VARIANT, VariantContext
from pep_variants.metadata import Metadata
from pep_variants.platform import Platform, Support
from pep_variants.preferences import Preferences
from resolvelib_variants import Arranger

A = "https://a.example/simple/foo/"
B = "https://b.example/simple/foo/"


class Item(NamedTuple):
    """A candidate."""

    version: str
    filename: str | None
    source: str = A


class Files:
    """`CandidateFiles` over items; what metadata() gives is listed by source."""

    def __init__(self, metadata=None):
        self._metadata = metadata if isinstance(metadata, dict) else {A: metadata, B: metadata}
        self.calls = []

    def version(self, candidate):
        return candidate.version

    def filename(self, candidate):
        return candidate.filename

    def source(self, candidate):
        assert candidate.filename is not None
        return candidate.source

    def metadata(self, project, candidate):
        self.calls.append((project, candidate.version, candidate.source))
        found = self._metadata[candidate.source]
        if isinstance(found, Exception):
            raise found
        return found


class Listener:
    def __init__(self):
        self.heard = []

    def selected(self, project, version, selection):
        chosen = selection.chosen
        self.heard.append((project, version, chosen.filename if chosen else None))

    def failed(self, project, version, error):
        self.heard.append((project, version, error))


def wheel(version, label=None, source=A, platform="any"):
    suffix = f"-{label}" if label else ""
    return Item(version, f"foo-{version}-py3-none-{platform}{suffix}.whl", source)


def sdist(version, source=A):
    return Item(version, f"foo-{version}.tar.gz", source)


def metadata(*levels, source="foo-variants.json"):
    """Return metadata with a variant of each label, which supports the value of that name."""
    variants = {level: {"cpu": {"level": (level,)}} for level in levels}
    return Metadata(namespaces=("cpu",), variants=variants, source=source)


def platform(*levels):
    found = Platform({"cpu": Support({"level": levels})})
    return lambda metadata: found


LEVELS = ("v3", "v2", "v1")


def make(files, *levels, listener=None, **preferences):
    return Arranger(
        files,
        platform=platform(*(levels or LEVELS)),
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


def test_best_variant_first_versions_in_order():
    arranger = make(Files(metadata("v1", "v2", "v3")))
    assert names(arranger.arrange("foo", TWO_VERSIONS)) == [
        "2-py3-none-any-v2.whl",
        "2-py3-none-any-v1.whl",
        "2-py3-none-any.whl",
        "1-py3-none-any-v3.whl",
        "1-py3-none-any-v1.whl",
        "1.tar.gz",
    ]


def test_what_was_arranged_is_not_arranged_again_until_other_files_are_offered():
    class Counting(Files):
        asked = 0

        def filename(self, candidate):
            self.asked += 1
            return super().filename(candidate)

    files = Counting(metadata("v1", "v2", "v3"))
    arranger = make(files)
    first = names(arranger.arrange("foo", TWO_VERSIONS))
    files.asked = 0
    assert names(arranger.arrange("foo", list(TWO_VERSIONS))) == first
    assert files.asked == 0
    # Without what turned out to conflict, all over again, and with a file more.
    assert names(arranger.arrange("foo", TWO_VERSIONS[:1] + TWO_VERSIONS[2:])) == [
        name for name in first if name != "2-py3-none-any-v2.whl"
    ]
    assert names(arranger.arrange("foo", TWO_VERSIONS)) == first
    more = [wheel("2", "v3"), *TWO_VERSIONS]
    assert names(arranger.arrange("foo", more)) == ["2-py3-none-any-v3.whl", *first]
    assert names(arranger.arrange("foo", TWO_VERSIONS)) == first
    # The same project elsewhere is another one.
    assert names(arranger.arrange("bar", TWO_VERSIONS[:3])) == first[:3]


def test_what_does_not_fit_is_left_out():
    arranger = make(Files(metadata("v1", "v2", "v3")), "v1")
    assert names(arranger.arrange("foo", TWO_VERSIONS)) == [
        "2-py3-none-any-v1.whl",
        "2-py3-none-any.whl",
        "1-py3-none-any-v1.whl",
        "1.tar.gz",
    ]


def test_platform_tags_decide_inside_a_label_only():
    items = [
        wheel("1", "v1", platform="manylinux_2_28_x86_64"),
        wheel("1", "v2", platform="manylinux_2_28_x86_64"),
        wheel("1", platform="manylinux_2_28_x86_64"),
        wheel("1", "v1"),
        wheel("1", "v2"),
        wheel("1"),
    ]
    arranger = make(Files(metadata("v1", "v2")))
    assert list(arranger.arrange("foo", items)) == [items[n] for n in (1, 4, 0, 3, 2, 5)]


def test_versions_without_variants_pass_unjudged():
    files, listener = Files(metadata("v1")), Listener()
    items = [wheel("3"), Item("2", None), sdist("2"), wheel("1")]
    arranger = make(files, listener=listener)
    assert list(arranger.arrange("foo", items)) == items
    assert not files.calls
    assert not listener.heard
    assert arranger.selection("foo", items[0]) is None


class TestLaziness:
    def test_metadata_is_asked_when_the_iterator_comes_to_a_version(self):
        files = Files(metadata("v1", "v2", "v3"))
        arranged = make(files).arrange("foo", TWO_VERSIONS)
        assert not files.calls
        next(arranged)
        assert files.calls == [("foo", "2", A)]
        list(islice(arranged, 2))
        assert files.calls == [("foo", "2", A)]
        next(arranged)
        assert files.calls == [("foo", "2", A), ("foo", "1", A)]

    def test_candidates_are_read_up_to_the_next_version(self):
        read = []

        def candidates():
            for item in TWO_VERSIONS:
                read.append(item)
                yield item

        arranged = make(Files(metadata("v1", "v2"))).arrange("foo", candidates())
        assert not read
        next(arranged)
        assert read == TWO_VERSIONS[:4]

    def test_once_per_version_and_source_however_often_it_is_asked(self):
        files, listener = Files(metadata("v1", "v2", "v3")), Listener()
        arranger = make(files, listener=listener)
        for _ in range(3):
            list(arranger.arrange("foo", TWO_VERSIONS))
        # A resolver leaves out what conflicts, and has new requirements.
        list(arranger.arrange("foo", TWO_VERSIONS[1:]))
        list(arranger.arrange("foo", [TWO_VERSIONS[0]]))
        assert files.calls == [("foo", "2", A), ("foo", "1", A)]
        assert [(project, version) for project, version, _ in listener.heard] == [
            ("foo", "2"),
            ("foo", "1"),
        ]

    def test_once_also_when_more_files_turn_up(self):
        files, listener = Files(metadata("v1", "v2")), Listener()
        arranger = make(files, listener=listener)
        assert names(arranger.arrange("foo", [wheel("1", "v1")])) == ["1-py3-none-any-v1.whl"]
        assert names(arranger.arrange("foo", [wheel("1", "v1"), wheel("1", "v2")])) == [
            "1-py3-none-any-v2.whl",
            "1-py3-none-any-v1.whl",
        ]
        assert files.calls == [("foo", "1", A)]
        # The choice changed, so that is said again.
        assert listener.heard == [
            ("foo", "1", "foo-1-py3-none-any-v1.whl"),
            ("foo", "1", "foo-1-py3-none-any-v2.whl"),
        ]

    def test_files_that_come_and_go(self):
        arranger = make(Files(metadata("v1", "v2", "v3")))
        v1, v2, v3 = (wheel("1", label) for label in ("v1", "v2", "v3"))
        assert list(arranger.arrange("foo", [v1, v2])) == [v2, v1]
        assert list(arranger.arrange("foo", [v1, v3])) == [v3, v1]
        assert list(arranger.arrange("foo", [v1, v2, v3])) == [v3, v2, v1]
        assert list(arranger.arrange("foo", [v1])) == [v1]

    @pytest.mark.parametrize("error", [MetadataError("foo.json", "", "bad"), ZeroDivisionError()])
    def test_an_error_is_not_asked_for_again(self, error):
        files = Files(error)
        arranger = make(files)
        list(arranger.arrange("foo", [wheel("1", "v1"), sdist("1")]))
        list(arranger.arrange("foo", [wheel("1", "v1"), wheel("1", "v2")]))
        assert files.calls == [("foo", "1", A)]

    @pytest.mark.parametrize("preferences", [{"use_variants": False}, {"forced": {"foo": ""}}])
    def test_no_metadata_where_variants_are_not_wanted(self, preferences):
        files = Files(metadata("v1"))
        arranged = make(files, **preferences).arrange("foo", TWO_VERSIONS)
        assert names(arranged) == ["2-py3-none-any.whl", "1.tar.gz"]
        assert not files.calls


class TestForcedLabels:
    def test_only_that_label_of_that_project(self):
        arranger = make(Files(metadata("v1", "v2", "v3")), forced={"foo": "v1"})
        assert names(arranger.arrange("foo", TWO_VERSIONS)) == [
            "2-py3-none-any-v1.whl",
            "1-py3-none-any-v1.whl",
        ]
        assert len(list(arranger.arrange("bar", TWO_VERSIONS))) == len(TWO_VERSIONS)
        assert arranger.forces("foo")
        assert not arranger.forces("bar")
        assert not arranger.missing

    def test_versions_without_it_are_passed_over(self):
        arranger = make(Files(metadata("v1", "v2", "v3")), forced={"foo": "v3"})
        assert names(arranger.arrange("foo", TWO_VERSIONS)) == ["1-py3-none-any-v3.whl"]
        assert not arranger.missing

    def test_missing_says_which_labels_there_are(self):
        arranger = make(Files(metadata("v1", "v2", "v3")), forced={"foo": "v4"})
        assert not list(arranger.arrange("foo", TWO_VERSIONS))
        assert isinstance(arranger.missing["foo"], NoSuchVariant)
        assert "foo 2 has no variant 'v4'" in str(arranger.missing["foo"])
        assert "there are: v1, v2" in str(arranger.missing["foo"])

    def test_missing_says_why_it_does_not_fit(self):
        arranger = make(Files(metadata("v1", "v2")), "v1", forced={"foo": "v2"})
        assert not list(arranger.arrange("foo", TWO_VERSIONS))
        assert "does not fit" in str(arranger.missing["foo"])
        assert "Variants that fit: v1" in str(arranger.missing["foo"])

    def test_missing_tells_the_problem_of_the_metadata(self):
        files = Files(MetadataError("foo.json", "variants", "expected an object"))
        arranger = make(files, forced={"foo": "v1"})
        assert not list(arranger.arrange("foo", [wheel("1", "v1")]))
        assert "foo.json: variants: expected an object" in str(arranger.missing["foo"])

    def test_missing_where_there_are_no_variants_at_all(self):
        arranger = make(Files(), forced={"foo": "v1"})
        assert not list(arranger.arrange("foo", [wheel("1"), sdist("1")]))
        assert "there are: none" in str(arranger.missing["foo"])

    def test_missing_only_when_all_versions_were_seen(self):
        arranger = make(Files(metadata("v1", "v2", "v3")), forced={"foo": "v3"})
        arranged = arranger.arrange("foo", [*TWO_VERSIONS, wheel("0", "v1")])
        assert next(arranged).version == "1"
        assert not arranger.missing

    def test_what_conflicts_is_not_missing(self):
        arranger = make(Files(metadata("v1", "v2", "v3")), forced={"foo": "v2"})
        assert names(arranger.arrange("foo", TWO_VERSIONS)) == ["2-py3-none-any-v2.whl"]
        # The resolver found that it conflicts.
        rest = [item for item in TWO_VERSIONS if "v2" not in item.filename]
        assert not list(arranger.arrange("foo", rest, complete=False))
        assert not arranger.missing

    def test_the_first_reason_stays(self):
        arranger = make(Files(metadata("v1", "v2", "v3")), forced={"foo": "v4"})
        list(arranger.arrange("foo", TWO_VERSIONS))
        first = arranger.missing["foo"]
        list(arranger.arrange("foo", TWO_VERSIONS[3:]))
        assert arranger.missing == {"foo": first}

    def test_no_non_variant_file(self):
        arranger = make(Files(metadata("v1")), forced={"foo": ""})
        assert not list(arranger.arrange("foo", [wheel("1", "v1")]))
        assert "no non-variant wheel" in str(arranger.missing["foo"])


class TestSources:
    def test_sources_that_agree_are_ordered_together(self):
        files = Files({A: metadata("v1", "v3"), B: metadata("v1", "v2")})
        items = [wheel("1", "v1"), wheel("1", "v1", B), wheel("1", "v2", B), wheel("1", "v3")]
        arranger = make(files)
        assert list(arranger.arrange("foo", items)) == [items[n] for n in (3, 2, 0, 1)]
        assert files.calls == [("foo", "1", A), ("foo", "1", B)]

    def test_sources_that_contradict_each_other_are_ordered_apart(self):
        other = Metadata(namespaces=("cpu",), variants={"v1": {"cpu": {"level": ("v2",)}}})
        items = [wheel("1", "v1"), wheel("1", "v1", B), wheel("1", "v3")]
        arranger = make(Files({A: metadata("v1", "v3"), B: other}))
        assert list(arranger.arrange("foo", items)) == [items[n] for n in (2, 0, 1)]
        assert arranger.context("foo", items[0]).properties == {"cpu": {"level": ("v1",)}}
        assert arranger.context("foo", items[1]).properties == {"cpu": {"level": ("v2",)}}

    def test_a_label_of_theirs_is_two(self):
        other = Metadata(namespaces=("cpu",), variants={"v3": {"cpu": {"level": ("v2",)}}})
        items = [wheel("1", "v3"), wheel("1", "v3", B), wheel("1", "v1")]
        arranger = make(Files({A: metadata("v1", "v3"), B: other}))
        assert list(arranger.arrange("foo", items)) == [items[n] for n in (0, 2, 1)]

    def test_files_that_are_no_variants_stay_in_order(self):
        items = [sdist("1"), wheel("1", source=B), wheel("1"), wheel("1", "v1")]
        arranger = make(Files(metadata("v1")))
        assert list(arranger.arrange("foo", items)) == [items[n] for n in (3, 0, 1, 2)]

    def test_their_order_does_not_depend_on_what_is_left_out(self):
        other = Metadata(namespaces=("cpu",), variants={"v1": {"cpu": {"level": ("v2",)}}})
        items = [wheel("1", "v1"), wheel("1", "v1", B), wheel("1", "v3")]
        arranger = make(Files({A: metadata("v1", "v3"), B: other}))
        list(arranger.arrange("foo", items))
        # Without its first wheel, source A would now be listed behind B.
        assert list(arranger.arrange("foo", items[1:])) == [items[2], items[1]]

    def test_broken_metadata_costs_one_source_its_variants(self):
        files = Files({A: MetadataError("foo.json", "", "broken"), B: metadata("v1")})
        items = [wheel("1", "v1"), wheel("1", "v1", B), sdist("1")]
        arranger = make(files)
        assert list(arranger.arrange("foo", items)) == items[1:]
        assert set(arranger.selection("foo", items[1]).problems) == {A}


class TestFaults:
    @pytest.fixture
    def faulty(self):
        def platform(metadata):
            raise ZeroDivisionError("fault")

        return platform

    def test_in_the_platform_costs_the_variants(self, faulty):
        listener = Listener()
        arranger = Arranger(
            Files(metadata("v1", "v2", "v3")),
            platform=faulty,
            preferences=Preferences(),
            listener=listener,
        )
        for _ in range(2):
            assert names(arranger.arrange("foo", TWO_VERSIONS)) == [
                "2-py3-none-any.whl",
                "1.tar.gz",
            ]
        assert [(version, str(error)) for _, version, error in listener.heard] == [
            ("2", "fault"),
            ("1", "fault"),
        ]

    def test_in_metadata_costs_the_variants_of_that_version(self):
        class SometimesFaulty(Files):
            def metadata(self, project, candidate):
                if candidate.version == "2":
                    raise KeyError("fault")
                return super().metadata(project, candidate)

        listener = Listener()
        arranger = make(SometimesFaulty(metadata("v1", "v3")), listener=listener)
        assert names(arranger.arrange("foo", TWO_VERSIONS)) == [
            "2-py3-none-any.whl",
            "1-py3-none-any-v3.whl",
            "1-py3-none-any-v1.whl",
            "1.tar.gz",
        ]
        assert isinstance(listener.heard[0][2], KeyError)

    def test_an_error_of_the_engine_in_the_platform_is_one_too(self):
        def platform(metadata):
            raise VariantError("no platform")

        arranger = Arranger(
            Files(metadata("v1")), platform=platform, preferences=Preferences(), listener=None
        )
        assert names(arranger.arrange("foo", TWO_VERSIONS[:3])) == ["2-py3-none-any.whl"]

    def test_is_an_error_for_a_forced_label(self, faulty):
        arranger = Arranger(
            Files(metadata("v1")),
            platform=faulty,
            preferences=Preferences(forced={"foo": "v1"}),
        )
        for _ in range(2):
            with pytest.raises(ZeroDivisionError, match="fault"):
                list(arranger.arrange("foo", TWO_VERSIONS))
        assert names(arranger.arrange("bar", TWO_VERSIONS)) == ["2-py3-none-any.whl", "1.tar.gz"]

    def test_in_metadata_is_an_error_for_a_forced_label(self):
        arranger = make(Files(KeyError("fault")), forced={"foo": "v1"})
        for _ in range(2):
            with pytest.raises(KeyError, match="fault"):
                list(arranger.arrange("foo", TWO_VERSIONS))


class TestContext:
    def test_has_what_the_platform_supports(self):
        variants = {"x": {"cpu": {"level": ("v2", "v9")}}}
        arranger = make(Files(Metadata(namespaces=("cpu",), variants=variants)))
        items = list(arranger.arrange("foo", [wheel("1", "x"), wheel("1")]))
        assert arranger.context("foo", items[0]) == VariantContext("x", {"cpu": {"level": ("v2",)}})
        assert arranger.context("foo", items[1]) == NON_VARIANT

    def test_is_the_same_object_each_time(self):
        arranger = make(Files(metadata("v1")))
        list(arranger.arrange("foo", TWO_VERSIONS))
        first = arranger.context("foo", TWO_VERSIONS[0])
        assert arranger.context("foo", TWO_VERSIONS[0]) is first

    def test_of_null(self):
        arranger = make(Files(metadata("v1")))
        (item,) = arranger.arrange("foo", [wheel("1", "null")])
        assert arranger.context("foo", item) == VariantContext("null", {})

    def test_of_what_was_never_arranged_is_what_the_name_says(self):
        arranger = make(Files())
        assert arranger.context("foo", wheel("1", "x")) == VariantContext("x", {})
        assert arranger.context("foo", wheel("1")) == NON_VARIANT
        assert arranger.context("foo", Item("1", None)) == NON_VARIANT

    def test_selection_explains_all_files_of_the_version(self):
        arranger = make(Files(metadata("v1", "v2")), "v1")
        list(arranger.arrange("foo", TWO_VERSIONS))
        for item in TWO_VERSIONS[:3]:
            selection = arranger.selection("foo", item)
            assert selection.chosen.item == TWO_VERSIONS[0]
            assert selection.rankings[A].rejected_labels == ("v2",)


# Whatever the files, metadata and platform.

features = st.dictionaries(
    st.sampled_from(["level", "amx"]),
    st.sets(st.sampled_from(["v1", "v2", "v3", "on"]), min_size=1).map(lambda s: tuple(sorted(s))),
    min_size=1,
)
properties = st.dictionaries(st.sampled_from(["cpu", "gpu"]), features, min_size=1)
all_metadata = st.builds(
    lambda variants: Metadata(namespaces=("gpu", "cpu"), variants={**variants, "null": {}}),
    st.fixed_dictionaries({"p": properties, "q": properties, "r": properties}),
)
supports = st.builds(
    lambda cpu, gpu: Platform({"cpu": Support(cpu), "gpu": Support(gpu)}), features, features
)
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


def items_of(groups):
    return [
        wheel(str(len(groups) - number), label, source, tag)
        for number, group in enumerate(groups)
        for label, source, tag in group
    ]


def fits(item, found, supported):
    """Say by the letter of the specification whether a candidate is compatible."""
    if item.filename.count("-") == 4:
        return True
    label = item.filename.removesuffix(".whl").rpartition("-")[2]
    if label not in found.variants:
        return False
    return all(
        set(values) & set(supported.support(namespace).features.get(feature, ()))
        for namespace, features in found.variants[label].items()
        for feature, values in features.items()
    )


@settings(max_examples=300, deadline=None)
@given(groups, all_metadata, all_metadata, supports, st.data())
def test_any_input(groups, found_a, found_b, supported, data):
    found = {A: found_a, B: found_b}
    items = items_of(groups)

    def arranger():
        return Arranger(Files(found), platform=lambda _: supported, preferences=Preferences())

    mine = arranger()
    arranged = list(mine.arrange("foo", items))

    # Exactly what is compatible, versions in their order, variants before everything else.
    expected = [item for item in items if fits(item, found[item.source], supported)]
    assert sorted(arranged) == sorted(expected)
    assert [item.version for item in arranged] == [item.version for item in expected]
    for version in {item.version for item in arranged}:
        variant = [item.filename.count("-") > 4 for item in arranged if item.version == version]
        assert variant == sorted(variant, reverse=True)
    # Inside of a label of a source, and among what is no variant, the order stays.
    for version, label, source in {(i.version, i.filename[-8:], i.source) for i in expected}:
        same = (version, label, source)
        assert [i for i in arranged if (i.version, i.filename[-8:], i.source) == same] == [
            i for i in expected if (i.version, i.filename[-8:], i.source) == same
        ]

    # As the engine has it.
    judged = [item for item in items if mine.selection("foo", item) is not None]
    by_version = dict.fromkeys(item.version for item in judged)
    for version in by_version:
        (item, *_) = (item for item in judged if item.version == version)
        files = mine.selection("foo", item).files
        assert [file.item for file in files] == [i for i in arranged if i.version == version]

    # The same again, from a new one, and for every part of it.
    assert list(mine.arrange("foo", items)) == arranged
    assert list(arranger().arrange("foo", items)) == arranged
    part = set(data.draw(st.lists(st.sampled_from(items), unique=True))) if items else set()
    assert list(mine.arrange("foo", [item for item in items if item in part])) == [
        item for item in arranged if item in part
    ]
