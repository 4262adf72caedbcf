"""What `abi_dependency` values mean, and which of them come first."""

import pytest
from packaging.version import Version

from pep_variants._choose.abi import (
    AbiDependency,
    abi_dependencies,
    abi_mismatches,
    abi_projects,
    covers,
    supporting,
)
from pep_variants._choose.explanation import verdicts, why_not
from pep_variants._choose.ranking import rank
from pep_variants._model.metadata import Metadata
from pep_variants._model.platform import Platform, Support
from pep_variants._wheelfile.installed import Installed


@pytest.mark.parametrize(
    ("release", "version", "expected"),
    [
        ("2.9", "2.9", True),
        ("2.9", "2.9.1", True),
        ("2.9", "2.9.1+cu128", True),
        ("2.9", "2.9.1.post2", True),
        ("2.9", "2.10", False),
        ("2.9", "2.90", False),
        ("2.9", "2", False),
        ("2.9", "1!2.9", False),
        ("2", "3.0", False),
        ("2.9.1", "2.9.1.4", True),
        ("2.0", "2", True),
        ("2.9", "unknown", False),
    ],
)
def test_allows(release, version, expected):
    assert AbiDependency("torch", (release,)).allows(version) is expected
    several = AbiDependency("torch", ("4.7", release))
    assert several.allows(version) is expected
    assert several.allows("4.7.1")
    assert str(several) == f"torch 4.7.* or {release}.*"


def test_of_a_variant():
    properties = {
        "nvidia": {"sm_arch": ("90_real",)},
        "abi_dependency": {"torch_vision": ("0.9", "0.10"), "numpy": ("2",)},
    }
    assert abi_dependencies(properties) == (
        AbiDependency("numpy", ("2",)),
        AbiDependency("torch-vision", ("0.10", "0.9")),
    )
    assert abi_dependencies({}) == ()


def metadata(**variants):
    return Metadata((), {label: {"abi_dependency": found} for label, found in variants.items()})


def test_a_platform_that_knows_is_left_alone():
    platform = Platform({"abi_dependency": Support({"torch": ("2.8",)})})
    assert supporting(platform, metadata(a={"torch": ("2.9",)})) is platform


def test_in_words():
    found = metadata(a={"torch": ("2.8", "2.9")})
    taken = rank(found, supporting(Platform(), found))
    assert verdicts(taken, "a") == (("a", "chosen", "built against torch 2.9 or 2.8"),)
    # Without a resolution it is not known.
    assert why_not(rank(found, Platform()), "a") == (
        "is built against torch 2.8 or 2.9: only a resolver can tell whether that release is taken",
    )


def test_projects():
    found = metadata(a={"Torch_Vision".lower(): ("0.9",)}, b={"torch": ("x",)})
    assert abi_projects(supporting(Platform(), found)) == {"torch-vision"}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"torch": ("2.9",)}, {}, False),
        ({"torch": ("2.9",)}, {"torch": ("2.9",)}, True),
        ({"torch": ("2.9",)}, {"torch": ("2.9",), "other": ("1",)}, True),
        ({"torch": ("2",)}, {"torch": ("2.9", "2.8.1")}, True),
        ({"torch": ("2.9",)}, {"torch": ("2.90",)}, False),
        ({"torch": ("2.9",)}, {"torch": ("2.9", "2.8")}, False),
    ],
)
def test_what_goes_with_everything_that_another_goes_with(one, other, expected):
    built = [
        [AbiDependency(project, releases) for project, releases in item.items()]
        for item in (one, other)
    ]
    assert covers(*built) is expected


def test_mismatches_of_what_is_installed():
    """Neither what is not installed counts, nor what goes together, nor what has no variant."""

    def ext(label, **releases):
        metadata = Metadata(("abi_dependency",), {label: {"abi_dependency": releases}})
        return Installed("ext", Version("1.0"), label, metadata=metadata)

    torch = Installed("torch", Version("2.9.1+cu128"), None)
    for installed, said in (
        (ext("t28", torch=("2.8",), numpy=("1",)), "torch 2.8.*"),
        (ext("t28", torch=("2.8", "2.7")), "torch 2.8.* or 2.7.*"),
        (ext("t29", torch=("2.9",), numpy=("1",)), ""),
        (Installed("ext", Version("1.0"), None), ""),
    ):
        found = [str(item) for item in abi_mismatches({"ext": installed, "torch": torch})]
        text = f"ext 1.0 (variant t28) is built against {said}, and torch 2.9.1+cu128 is installed"
        assert found == ([text] if said else [])
