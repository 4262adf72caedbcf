"""Conditions between variants, coherence and explanations, case by case."""

import pytest
from resolvelib import BaseReporter, ResolutionImpossible, Resolver
from test_provider import Files, Provider, Requirement, wheel

from pep_variants._choose.preferences import Preferences
from pep_variants._model.metadata import Metadata
from pep_variants._model.platform import Platform, Support
from resolvelib_variants.abi_requirements import AbiRequirement
from resolvelib_variants.provider import VariantProvider


def against(**releases):
    """Metadata: a variant of each label, built against the releases given as text."""
    variants = {
        label: {"abi_dependency": {name: tuple(values) for name, values in built.items()}}
        for label, built in releases.items()
    }
    return Metadata(namespaces=(), variants=variants)


class Installed:
    def __init__(self, version=None, variants=(), *, is_upgraded=False):
        self._version, self._variants, self._is_upgraded = version, variants, is_upgraded

    def version(self, project):
        return None if self._is_upgraded else self.present(project)

    def present(self, project):
        return self._version if project == "torch" else None

    def variants(self):
        return self._variants


def provider_of(candidates, files, installed=None, listener=None, **preferences):
    platform = Platform({"cuda": Support({"driver": ("13", "12", "11")})})
    return VariantProvider(
        Provider(*candidates),
        files,
        platform=lambda metadata: platform,
        preferences=Preferences(**preferences),
        installed=installed,
        listener=listener,
    )


def resolve(provider, *roots):
    requirements = [Requirement(*root.split("==")) for root in roots]
    result = Resolver(provider, BaseReporter()).resolve(requirements)
    names = {name: c.filename.split("-", 1)[1][:-4] for name, c in result.mapping.items()}
    return {name: text.replace("-py3-none-any", "") for name, text in names.items()}


TORCH = [wheel("torch", version) for version in "987"]
EXT = [wheel("ext", "1", f"t{version}") for version in "789"]
EXT_FILES = {"ext": against(t7={"torch": "7"}, t8={"torch": "8"}, t9={"torch": "9"})}


def test_what_is_installed_is_preferred():
    provider = provider_of([*TORCH, *EXT], Files(EXT_FILES), Installed(version="8"))
    assert resolve(provider, "ext==1") == {"ext": "1-t8"}
    provider = provider_of([*TORCH, *EXT], Files(EXT_FILES), Installed(version="8"))
    assert resolve(provider, "ext==1", "torch==9") == {"ext": "1-t9", "torch": "9"}


# The better build is for torch 9.
RANKED = Metadata(
    ("cuda",),
    {
        "t9": {"cuda": {"driver": ("13",)}, "abi_dependency": {"torch": ("9",)}},
        "t8": {"cuda": {"driver": ("12",)}, "abi_dependency": {"torch": ("8",)}},
        "any": {"cuda": {"driver": ("11",)}},
    },
)


@pytest.mark.parametrize(
    ("labels", "roots", "expected"),
    [
        ({"t9": [], "t8": [], "any": []}, "ext==1", "t8"),
        ({"t9": [], "any": []}, "ext==1", "any"),
        ({"t9": [], None: []}, "ext==1", None),
        # Nothing else fits, so the version counts, and the installer tells.
        ({"t9": []}, "ext==1", "t9"),
        # The one that fits is not to be had.
        ({"t9": [], "any": ["absent==1"]}, "ext==1", "t9"),
        # What is part of the resolution is upgraded.
        ({"t9": ["torch==987"], "any": []}, "ext==1", "t9"),
        ({"t9": [], "any": []}, "ext==1 torch==987", "t9"),
        ({"t9": [], "any": []}, "torch==987 ext==1", "t9"),
        # Required only after the variant was chosen: it stays where it fits.
        ({"t9": [], "t8": [], "any": []}, "ext==1 late==1", "t8"),
        ({"t9": [], "t8": []}, "ext==1 late==2", "t9"),
    ],
)
@pytest.mark.parametrize("is_upgraded", [False, True])
def test_what_stays_installed_counts(labels, roots, expected, is_upgraded):
    files = [wheel("ext", "1", label, requires) for label, requires in labels.items()]
    older = wheel("ext", "0", "any")
    late = [wheel("late", "1", None, ["torch==98"]), wheel("late", "2", None, ["torch==9"])]
    installed = Installed("8", is_upgraded=is_upgraded)
    provider = provider_of([*TORCH, *files, older, *late], Files({"ext": RANKED}), installed)
    found = resolve(provider, *roots.split())
    assert found["ext"] == ("1" if expected is None else f"1-{expected}")


def test_what_a_build_needs_is_taken_back():
    """Though what was chosen first, base, has nothing to do with it."""
    files = [wheel("base", "1"), *TORCH, wheel("zext", "1", "t8")]
    provider = provider_of(files, Files({"zext": EXT_FILES["ext"]}))
    found = resolve(provider, "base==1", "torch==987", "zext==1")
    assert found == {"base": "1", "torch": "8", "zext": "1-t8"}


@pytest.mark.parametrize("name", ["ext", "zext"])
def test_none_fits(name):
    builds = [wheel(name, "1", f"t{version}") for version in "78"]
    provider = provider_of([*TORCH, *builds], Files({name: EXT_FILES["ext"]}))
    with pytest.raises(ResolutionImpossible) as caught:
        resolve(provider, f"{name}==1", "torch==9")
    said = provider.explain(caught.value.causes)
    if name == "ext":  # chosen first: it is torch that does not fit
        assert "torch 9 needs ext built against torch 9" in said
    else:
        assert "zext 1 (variant t8) needs torch 8.*" in said
        assert "zext 1 (variant t7) needs torch 7.*" in said
    assert f"variants of {name} 1:" in said
    assert "  t9  compatible  built against torch 9" in said
    assert "you asked for Requirement(" in said
    assert any(isinstance(cause.requirement, AbiRequirement) for cause in caught.value.causes)


def test_requirements_in_the_words_of_the_provider():
    class Worded(Files):
        def abi_requirement(self, condition):
            return Requirement(condition.identifier, f"none, but {condition}")

    provider = provider_of([*TORCH, *EXT[:1]], Worded(EXT_FILES))
    with pytest.raises(ResolutionImpossible) as caught:
        resolve(provider, "ext==1", "torch==9")
    assert Requirement("ext", "none, but ext built against torch 9") in [
        cause.requirement for cause in caught.value.causes
    ]


def test_explained_by_what_each_variant_needs():
    metadata = Metadata(("cuda",), {"c14": {"cuda": {"driver": ("14",)}}})
    provider = provider_of([wheel("ext", "1", "c14")], Files({"ext": metadata}))
    with pytest.raises(ResolutionImpossible) as caught:
        resolve(provider, "ext==1")
    assert provider.explain(caught.value.causes).splitlines()[1:] == [
        "variants of ext 1:",
        "  c14  rejected    needs cuda :: driver 14, this machine has 13, 12 and 11",
    ]


CUDA = Metadata(
    ("cuda", "cpu"),
    {f"c{n}": {"cuda": {"driver": (str(n),)}} for n in (11, 12, 13)},
)
CUDA_11 = Metadata(("cuda",), {"c11": {"cuda": {"driver": ("11",)}}})
# Its labels say more than those of torch, or something else.
NARROWER = Metadata(
    ("cuda",),
    {f"c{n}": {"cuda": {"driver": ("11",), "more": ("x",)}} for n in (12, 13)}
    | {f"d{n}": {"cuda": {"driver": (str(n),)}} for n in (11, 12)},
)
CPU = Metadata(("cpu",), {"c12": {"cpu": {"level": ("v1",)}}})
LABELS = ("c13", "c12", "c11", "null", None)


def vision_with_torch(*roots, metadata=CUDA, labels=LABELS, coherent=("cuda",), **options):
    """Return what is chosen of vision where it should agree with torch."""
    candidates = [wheel("torch", "1", label) for label in LABELS]
    candidates += [wheel("vision", "1", label) for label in labels]
    files = Files({"torch": CUDA, "vision": metadata})
    provider = provider_of(candidates, files, coherent=coherent, **options)
    return resolve(provider, *(roots or ("torch==1", "vision==1")))["vision"]


class TestCoherence:
    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"forced": {"torch": "c12"}}, "1-c12"),
            # Without CUDA is without CUDA, with a label or not.
            ({"forced": {"torch": "null"}}, "1-null"),
            ({"forced": {"torch": ""}}, "1-null"),
            ({"forced": {"torch": "c12"}, "coherent": ()}, "1-c13"),
            # What the resolution decides about goes before what is there.
            (
                {"forced": {"torch": "c12"}, "installed": Installed(variants=[("torch", CUDA_11)])},
                "1-c12",
            ),
            # The same properties.
            (
                {"forced": {"torch": "c11"}, "metadata": NARROWER, "labels": ("d11", "c12", None)},
                "1-d11",
            ),
            # Nothing agrees, so its own order.
            ({"forced": {"torch": "c12"}, "metadata": NARROWER, "labels": ("d11", None)}, "1-d11"),
            # A project that has no part in it: c12 does not fit here, and is not put in front.
            ({"forced": {"torch": "c12"}, "metadata": CPU, "labels": ("c12", None)}, "1"),
        ],
    )
    def test_with_what_is_resolved(self, options, expected):
        assert vision_with_torch(**options) == expected

    @pytest.mark.parametrize(
        ("project", "expected"),
        [("torch", "1-c11"), ("vision", "1-c13")],  # its own build is no reason
    )
    def test_with_what_is_installed(self, project, expected):
        installed = Installed(variants=[(project, CUDA_11)])
        assert vision_with_torch("vision==1", installed=installed) == expected

    def test_with_what_is_forced_and_not_required_yet(self):
        candidates = [wheel("torch", "1", label) for label in LABELS]
        candidates += [wheel("atop", "1", label, ["torch==1"]) for label in ("c13", "c12")]
        files = Files({"torch": CUDA, "atop": CUDA})
        provider = provider_of(candidates, files, coherent=("cuda",), forced={"torch": "c12"})
        assert resolve(provider, "atop==1") == {"atop": "1-c12", "torch": "1-c12"}

    def test_what_cannot_be_had_is_said(self):
        said = []

        class Listener:
            def selected(self, project, version, selection):
                pass

            def disagreed(self, project, version, namespace, other):
                said.append((project, version, namespace, str(other)))

        options = {"labels": ("c13", "c11"), "forced": {"torch": "c12"}, "listener": Listener()}
        assert vision_with_torch(**options) == "1-c13"
        assert said == [("vision", "1", "cuda", "torch (c12)")]
