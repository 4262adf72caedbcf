import pytest
from packaging.tags import Tag

from pep_variants.choose.markers import NON_VARIANT, VariantContext
from pep_variants.choose.preferences import Preferences, preferences_from_options
from pep_variants.choose.selection import File, missing_variant, select
from pep_variants.errors import MetadataError, NoSuchVariant, VariantError
from pep_variants.model.metadata import Metadata
from pep_variants.model.platform import Platform, Support

INDEX = "https://index/simple/p/"
OTHER = "https://other/simple/p/"
DIRECTORY = "/wheels"

GPU = {"gpu": {"arch": ("90", "100"), "driver": ("12",)}}
METADATA = Metadata(
    ("gpu", "cpu"),
    {
        "null": {},
        "v2": {"cpu": {"level": ("v2",)}},
        "v3": {"cpu": {"level": ("v3",)}},
        "v4": {"cpu": {"level": ("v4",)}},
        "gpu": GPU,
    },
    source="p-1-variants.json",
)
CPU = Platform({"cpu": Support({"level": ("v3", "v2", "v1")})})
WITH_GPU = Platform(
    {**CPU.namespaces, "gpu": Support({"driver": ("13", "12"), "arch": ("90", "80")})}
)


def wheel(label, source=INDEX, tag="py3-none-any", build=""):
    end = "" if label is None else f"-{label}"
    return File(f"p-1{build}-{tag}{end}.whl", source, object())


SDIST = File("p-1.tar.gz", INDEX, object())


def chosen(files, *, metadata=METADATA, platform=CPU, tags=None, **options):
    """Select with metadata that is the same for all sources, or told by source."""

    def read(source):
        found = metadata[source] if isinstance(metadata, dict) else metadata
        if isinstance(found, VariantError):
            raise found
        return found

    values = {name.replace("_", "-"): value for name, value in options.items()}
    return select(
        files,
        metadata=read,
        platform=platform if callable(platform) else lambda _: platform,
        preferences=preferences_from_options(values),
        project="p",
        tags=tags,
    )


def never(*args):
    raise AssertionError("this is not needed")


def labels(selection):
    return [file.label for file in selection.files]


def test_metadata_is_asked_for_once():
    asked = []

    def read(source):
        asked.append(source)
        return METADATA

    files = [wheel("v3"), wheel(None, OTHER), wheel("v2"), wheel("null", DIRECTORY)]
    select(files, metadata=read, platform=lambda _: CPU, preferences=Preferences(), project="p")
    assert asked == [INDEX, DIRECTORY]


def test_context_and_why():
    files = [wheel("gpu"), wheel("null"), wheel(None), SDIST]
    found = chosen(files, platform=WITH_GPU)
    gpu, null, plain, sdist = found.files
    # Only what this machine supports is true here, the best first.
    assert found.context(gpu) == VariantContext(
        "gpu", {"gpu": {"driver": ("12",), "arch": ("90",)}}
    )
    assert found.why(gpu) == "gpu driver 12, gpu arch 90"
    assert found.context(null) == VariantContext("null", {})
    assert found.why(null) == ""
    assert found.context(plain) == found.context(sdist) == NON_VARIANT
    assert found.why(plain) == found.why(sdist) == ""


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


CONTRARY = Metadata(
    ("cpu", "gpu"),
    {"v3": {"cpu": {"level": ("v1",)}}, "gpu": GPU, "null": {}},
    source="other",
)


def test_sources_that_contradict_each_other_come_one_after_the_other():
    sources = (INDEX, OTHER)
    order = [("gpu", 0), ("v3", 0), ("null", 0), ("v3", 1), ("gpu", 1), ("null", 1)]
    files = [wheel(label, source) for label in ("null", "v3", "gpu") for source in sources]
    files += [wheel(None, sources[1]), wheel(None, sources[0])]
    found = chosen(files, metadata={INDEX: METADATA, OTHER: CONTRARY}, platform=WITH_GPU)
    assert [(file.label, file.source) for file in found.files] == [
        *((label, sources[number]) for label, number in order if label != "null"),
        ("null", sources[0]),
        (None, sources[0]),  # before the null variant of the next source
        ("null", sources[1]),
        (None, sources[1]),
    ]
    assert found.rankings[INDEX] is not found.rankings[OTHER]
    assert found.problems == {}
    # Each is judged by its own words.
    v3 = {file.source: file for file in found.files if file.label == "v3"}
    assert found.why(v3[INDEX]) == "cpu level v3"
    assert found.why(v3[OTHER]) == "cpu level v1"


BROKEN = MetadataError("https://other/p-1-variants.json", "variants", "is broken")


def test_other_errors_are_not_swallowed():
    def fail(source):
        raise ConnectionError(source)

    with pytest.raises(ConnectionError):
        select([wheel("v3")], metadata=fail, platform=never, preferences=Preferences(), project="p")


# Forced labels that cannot be had.


def missing(files, **options):
    return missing_variant("p", [("1", chosen(files, **options), files)])


ALL = [wheel(None), SDIST, *map(wheel, ("null", "v2", "v3", "v4", "gpu"))]


@pytest.mark.parametrize(
    ("forced", "words"),
    [
        (
            "v9",
            "p 1 has no variant 'v9', which --variant p=v9 asks for; "
            "there are: gpu, null, v2, v3, v4",
        ),
        (
            "gpu",
            "variant 'gpu' of p 1, which --variant p=gpu asks for, does not fit: "
            "needs gpu :: arch 90 or 100 and needs gpu :: driver 12; "
            "nothing of gpu is supported here. "
            "Variants that fit: v3, v2, null",
        ),
    ],
)
def test_missing_variant(forced, words):
    error = missing(ALL, variant=[f"p={forced}"])
    assert isinstance(error, NoSuchVariant)
    assert str(error) == words


def test_nothing_is_missing():
    assert missing(ALL) is None
    assert missing(ALL, variant=["p=v3"]) is None
    assert missing(ALL, variant=["q=v9"]) is None
    assert missing([]) is None
    assert missing_variant("p", []) is None


def test_missing_non_variant_wheel():
    assert str(missing([wheel("v3")], variant=["p="])) == (
        "p 1 has no non-variant wheel, which --variant p= asks for"
    )


def test_missing_because_broken():
    error = missing([wheel("v3"), wheel(None)], metadata=BROKEN, variant=["p=v3"])
    assert "does not fit: https://other/p-1-variants.json: variants: is broken. " in str(error)
    assert str(error).endswith("Variants that fit: none")


def test_missing_because_unknown():
    error = missing([wheel("new"), wheel("v3")], variant=["p=new"])
    assert "does not fit: the index does not say what it needs. " in str(error)


def test_missing_because_of_tags():
    files = [wheel("v3", tag="cp39-cp39-x"), wheel("v2")]
    error = missing(files, variant=["p=v3"], tags=TAGS)
    assert "does not fit: none of its wheels is for this platform. " in str(error)


def test_missing_is_about_the_newest_version():
    old = [wheel("v3")]
    new = [wheel("v2")]
    wanted = {"variant": ["p=v3"]}
    versions = [("2", chosen(new, **wanted), new), ("1", chosen(old, **wanted), old)]
    assert missing_variant("p", versions) is None
    wanted = {"variant": ["p=v9"]}
    versions = [("2", chosen(new, **wanted), new), ("1", chosen(old, **wanted), old)]
    assert str(missing_variant("p", versions)) == (
        "p 2 has no variant 'v9', which --variant p=v9 asks for; there are: v2"
    )


# Whatever there is.
