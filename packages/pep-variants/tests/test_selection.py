import pytest
from packaging.tags import Tag

from pep_variants._choose.preferences import Preferences, preferences_from_options
from pep_variants._choose.selection import File, missing_variant, select
from pep_variants._model.metadata import Metadata
from pep_variants._model.platform import Platform, Support
from pep_variants.errors import MetadataError, NoSuchVariant
from pep_variants.selection import is_built_only, nothing_fits

INDEX = "https://index/simple/p/"
OTHER = "https://other/simple/p/"
DIRECTORY = "/wheels"

GPU = {"gpu": {"arch": ("90", "100"), "driver": ("12",)}}
METADATA = Metadata(
    ("gpu", "cpu"),
    {
        "null": {},
        **{level: {"cpu": {"level": (level,)}} for level in ("v2", "v3", "v4")},
        "gpu": GPU,
    },
    source="p-1-variants.json",
)
CPU = Platform({"cpu": Support({"level": ("v3", "v2", "v1")})})
WITH_GPU = Platform(
    {**CPU.namespaces, "gpu": Support({"driver": ("13", "12"), "arch": ("90", "80")})}
)


def wheel(label, source=INDEX, tag="py3-none-any"):
    end = "" if label is None else f"-{label}"
    return File(f"p-1-{tag}{end}.whl", source, object())


SDIST = File("p-1.tar.gz", INDEX, object())


def chosen(files, *, metadata=METADATA, platform=CPU, tags=None, builds=(), **options):
    """Select with metadata that is the same for all sources, or told by source."""

    def read(source):
        found = metadata[source] if isinstance(metadata, dict) else metadata
        if isinstance(found, Exception):
            raise found
        return found

    return select(
        files,
        metadata=read,
        platform=lambda _: platform,
        preferences=preferences_from_options(options),
        project="p",
        tags=tags,
        builds=builds,
    )


def test_a_build_without_label_is_not_for_everyone():
    """Nor are sources beside it; where it is all there is, or asked for, it is taken."""
    gpu, build, other = wheel("gpu"), wheel(None), wheel(None, OTHER)
    files = [gpu, build, SDIST]
    found = chosen(files, builds={INDEX})
    assert (found.files, found.rejected) == ((), (gpu, build, SDIST))
    assert is_built_only(found)
    assert "with --variant p=" in nothing_fits("p", "1", found, plain=["0"]).advice
    assert chosen(files, builds={INDEX}, platform=WITH_GPU).files == (gpu,)
    assert chosen([*files, other], builds={INDEX}).files == (other,)
    assert chosen([*files, wheel("v2")], builds={INDEX}).chosen.label == "v2"
    assert chosen([build, SDIST], builds={INDEX}).files == (build, SDIST)
    for options in ({"variant": ["p="]}, {"no-variants": True}):
        assert chosen(files, builds={INDEX}, **options).files == (build, SDIST)


def test_metadata_is_asked_for_once():
    asked = []

    def read(source):
        asked.append(source)
        return METADATA

    files = [wheel("v3"), wheel(None, OTHER), wheel("v2"), wheel("null", DIRECTORY)]
    select(files, metadata=read, platform=lambda _: CPU, preferences=Preferences(), project="p")
    assert asked == [INDEX, DIRECTORY]


def test_other_errors_are_not_swallowed():
    with pytest.raises(ConnectionError):
        chosen([wheel("v3")], metadata=ConnectionError(INDEX))


# Tags: inside a label they decide, between labels they do not.

TAGS = [Tag("cp312", "cp312", "new"), Tag("cp312", "abi3", "old"), Tag("py3", "none", "any")]


def test_tags():
    files = [
        SDIST,
        wheel(None),
        wheel("v3", tag="py3-none-any"),
        wheel("v2", tag="cp312-cp312-new"),
        wheel("v3", tag="cp312-abi3-old"),
        wheel("v3", tag="cp312-cp312-other"),
        wheel(None, tag="cp312-cp312-new"),
        wheel("v2", tag="py2.py3-none-any"),
        wheel("null", tag="cp39-cp39-new"),
        File("p-1-py3-none-any-NO.whl", INDEX, None),
    ]
    found = chosen(files, tags=TAGS)
    assert [file.filename for file in found.files] == [
        # The better variant wins over the better tag.
        "p-1-cp312-abi3-old-v3.whl",
        "p-1-py3-none-any-v3.whl",
        "p-1-cp312-cp312-new-v2.whl",
        "p-1-py2.py3-none-any-v2.whl",
        "p-1-cp312-cp312-new.whl",
        "p-1-py3-none-any.whl",
        "p-1.tar.gz",
    ]


def test_sources_that_contradict_each_other_come_one_after_the_other():
    contrary = Metadata(
        ("cpu", "gpu"), {"v3": {"cpu": {"level": ("v1",)}}, "gpu": GPU, "null": {}}, source="other"
    )
    files = [wheel(label, source) for label in ("null", "v3", "gpu") for source in (INDEX, OTHER)]
    files += [wheel(None, OTHER), wheel(None, INDEX)]
    found = chosen(files, metadata={INDEX: METADATA, OTHER: contrary}, platform=WITH_GPU)
    assert [(file.label, file.source) for file in found.files] == [
        ("gpu", INDEX),
        ("v3", INDEX),
        ("v3", OTHER),
        ("gpu", OTHER),
        ("null", INDEX),
        (None, INDEX),  # before the null variant of the next source
        ("null", OTHER),
        (None, OTHER),
    ]
    assert found.rankings[INDEX] is not found.rankings[OTHER]
    assert found.problems == {}
    # Each is judged by its own words.
    assert [found.why(file) for file in found.files if file.label == "v3"] == [
        "cpu level v3",
        "cpu level v1",
    ]


# Forced labels that cannot be had.

ALL = [wheel(None), SDIST, *map(wheel, ("null", "v2", "v3", "v4", "gpu"))]
BROKEN = MetadataError("https://other/p-1-variants.json", "variants", "is broken")


def missing(files, forced, **more):
    found = chosen(files, variant=[forced] if forced else [], **more)
    return missing_variant("p", [("1", found, files)])


@pytest.mark.parametrize(
    ("forced", "files", "more", "words"),
    [
        (
            "p=v9",
            ALL,
            {},
            "p 1 has no variant 'v9', which --variant p=v9 asks for; "
            "there are: gpu, null, v2, v3, v4",
        ),
        (
            "p=gpu",
            ALL,
            {},
            "variant 'gpu' of p 1, which --variant p=gpu asks for, does not fit: "
            "needs gpu :: arch 90 or 100 and needs gpu :: driver 12; "
            "no support for gpu found. "
            "Variants that fit: v3, v2, null",
        ),
        ("p=", [wheel("v3")], {}, "p 1 has no non-variant wheel, which --variant p= asks for"),
        (
            "p=v3",
            [wheel("v3"), wheel(None)],
            {"metadata": BROKEN},
            f"variant 'v3' of p 1, which --variant p=v3 asks for, does not fit: {BROKEN}. "
            "Variants that fit: none",
        ),
        (
            "p=new",
            [wheel("new"), wheel("v3")],
            {},
            "variant 'new' of p 1, which --variant p=new asks for, does not fit: "
            "the index does not say what it needs. Variants that fit: v3",
        ),
        (
            "p=v3",
            [wheel("v3", tag="cp39-cp39-x"), wheel("v2")],
            {"tags": TAGS},
            "variant 'v3' of p 1, which --variant p=v3 asks for, does not fit: "
            "none of its wheels is for this platform. Variants that fit: v2",
        ),
    ],
)
def test_missing_variant(forced, files, more, words):
    error = missing(files, forced, **more)
    assert isinstance(error, NoSuchVariant)
    assert str(error) == words


def test_nothing_is_missing():
    for forced in ("", "p=v3", "q=v9"):
        assert missing(ALL, forced) is None
    assert missing([], "") is missing_variant("p", []) is None


def test_missing_is_about_the_newest_version():
    new, old = [wheel("v2")], [wheel("v3")]
    for label, there in (("v3", True), ("v9", False)):
        versions = [
            (version, chosen(files, variant=[f"p={label}"]), files)
            for version, files in (("2", new), ("1", old))
        ]
        error = missing_variant("p", versions)
        assert (error is None) is there
    assert str(error) == "p 2 has no variant 'v9', which --variant p=v9 asks for; there are: v2"
