"""Forty requirements, each for some variants alone, as wheels of the field have them."""

import pytest
from packaging.requirements import Requirement as ParsedRequirement
from resolvelib import BaseReporter, ResolutionImpossible, Resolver
from test_abi import Known, provider_of
from test_provider import Requirement, wheel

from pep_variants.model.metadata import Metadata

CUDA = ("13", "12", "11")
LIBRARIES = [f"lib{number}" for number in range(12)]
LINUX = "platform_system == 'Linux'"
GATED = [
    *(f"{name}=={cuda}; {LINUX} and variant_label == 'cuda{cuda}'"
      for cuda in CUDA for name in LIBRARIES),
    f"bindings==1; {LINUX} and (variant_label == 'cuda11' or variant_label == 'cuda12')",
    f"bindings==2; {LINUX} and 'cuda :: driver :: 13' in variant_properties",
    f"triton==1; {LINUX} and 'cuda' in variant_namespaces",
    f"mkl==1; {LINUX} and ('cuda' not in variant_namespaces or variant_label == 'xpu')",
    "never==1; platform_system == 'Windows' and variant_label == 'cuda13'",
]  # fmt: skip
METADATA = Metadata(("cuda",), {f"cuda{n}": {"cuda": {"driver": (n,)}} for n in CUDA})
CANDIDATES = [
    *(wheel("torch", version, label, GATED)
      for version in "21" for label in (*(f"cuda{n}" for n in CUDA), "null")),
    *(wheel(name, cuda) for name in LIBRARIES for cuda in CUDA),
    *(wheel(name, version) for name in ("bindings", "triton", "mkl") for version in "21"),
]  # fmt: skip


class Gated(Known):
    def dependencies(self, candidate, reduce):
        parsed = map(ParsedRequirement, filter(None, map(reduce, candidate.requires)))
        return [
            Requirement(item.name, (str(item.specifier).removeprefix("=="),))
            for item in parsed
            if item.marker is None or item.marker.evaluate({"platform_system": "Linux"})
        ]


def found(*roots, **preferences):
    files = Gated(torch=METADATA)
    provider = provider_of(CANDIDATES, files, **preferences)
    roots = [root.split("==") for root in ("torch==2,1", *roots)]
    wanted = [Requirement(name, tuple(versions.split(","))) for name, versions in roots]
    result = Resolver(provider, BaseReporter()).resolve(wanted)
    return {name: c.filename.split("-", 1)[1][:-4] for name, c in result.mapping.items()}, files


@pytest.mark.parametrize(
    ("conflict", "label", "bindings"),
    [
        ((), "cuda13", "2"),
        (("lib11==12",), "cuda12", "1"),
        (("lib3==11,12", "bindings==1"), "cuda12", "1"),
        (("lib0==12,11", "lib7==11"), "cuda11", "1"),
        (("lib0==12", "lib7==11"), "null", None),
        (("triton==2",), "null", None),
    ],
)
def test_the_dependencies_are_those_of_the_chosen_variant(conflict, label, bindings):
    """What goes with another variant alone is found if users choose it, and not unless they do."""
    if conflict:
        with pytest.raises(ResolutionImpossible):
            found(*conflict)
    chosen, files = found(*conflict, forced={"torch": label})
    assert chosen["torch"] == f"2-py3-none-any-{label}"
    assert (chosen.get("bindings") or "-").partition("-")[0] == (bindings or "")
    assert ("mkl" in chosen) == (label == "null")
    assert "never" not in chosen
    if label != "null":
        assert {name: chosen[name].partition("-")[0] for name in LIBRARIES} == dict.fromkeys(
            LIBRARIES, label.removeprefix("cuda")
        )
    assert files.read == [("torch", "2")]  # one version was enough


def test_no_variant_goes_with_it():
    with pytest.raises(ResolutionImpossible):
        found("lib0==12", "lib7==11", "mkl==2")
