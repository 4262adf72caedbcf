"""Why the variants that are not taken are not, what is missed most, and what helps."""

import pytest

from pep_variants.choose.preferences import Preferences
from pep_variants.choose.rejections import (
    is_unfit,
    nothing_fits,
    passed_over,
    why_not_better,
    why_this,
)
from pep_variants.choose.selection import File, select
from pep_variants.detect.detector import Detector
from pep_variants.model.metadata import Metadata, ProviderInfo
from pep_variants.model.platform import ELSEWHERE, Platform, Support
from pep_variants.model.property import Selector

LOWER = "cuda_version_lower_bound"


def cuda(version, **features):
    return {"nvidia": {LOWER: (version,), **features}}


def driver(*versions, **features):
    return Platform({"nvidia": Support({LOWER: versions, **features})})


def level(version):
    return {"x86_64": {"level": (version,)}}


GPU = {"cu130": cuda("13.0"), "cu128": cuda("12.8"), "cu126": cuda("12.6"), "null": {}}


def chosen_of(
    variants,
    platform,
    *,
    namespaces=("nvidia", "amd", "x86_64"),
    plain=True,
    there=None,
    providers=None,
    **wanted,
):
    """Return the selection among one wheel per label, and a plain one."""
    names = [
        f"gpu-2.0-py3-none-any-{label}.whl" for label in (variants if there is None else there)
    ]
    if plain:
        names.append("gpu-2.0-py3-none-any.whl")
    return select(
        [File(name, "index", name) for name in names],
        metadata=lambda source: Metadata(namespaces, variants, providers or {}),
        platform=platform if callable(platform) else lambda _metadata: platform,
        preferences=Preferences(**wanted),
        project="gpu",
    )


NEEDS_13 = "cu130 needs CUDA driver 13.0 or newer, this one supports up to 12.8"
NOTHING = Platform({"nvidia": Support(), "amd": Support(), "x86_64": Support({"level": ("v1",)})})


@pytest.mark.parametrize(
    ("variants", "platform", "why"),
    [
        pytest.param(
            GPU,
            driver("12.8", "12.7", "12.6"),
            f"CUDA driver 12.8 or newer; {NEEDS_13}",
            id="a newer driver would do better",
        ),
        pytest.param(
            {**GPU, "cu140": cuda("14.0")},
            driver("12.8", "12.6"),
            "CUDA driver 12.8 or newer; "
            "cu140 needs CUDA driver 14.0 or newer, this one supports up to 12.8",
            id="one of them, the best",
        ),
        pytest.param(
            {"a": cuda("12.8", sm_arch=("90_real",)), "b": cuda("12.8", sm_arch=("100_real",))},
            driver("12.8", sm_arch=("90_real", "90_virtual")),
            "CUDA driver 12.8 or newer, compute capability 9.0",
            id="a build for another GPU is not better",
        ),
        pytest.param(
            {"a": cuda("12.8"), "b": cuda("12.8", sm_arch=("90_real",))},
            driver("12.8"),
            "CUDA driver 12.8 or newer; b built for compute capability 9.0, no GPU is found here",
            id="one feature more would come first",
        ),
        pytest.param(
            {"cu128": cuda("12.8"), "rocm": {"amd": {"gfx_arch": ("gfx942",)}}},
            driver("12.8"),
            "CUDA driver 12.8 or newer",
            id="an accelerator of another kind is not missed",
        ),
        pytest.param(
            GPU,
            NOTHING,
            "no other variant fits (no NVIDIA GPU or driver found, which 3 variants need)",
            id="no GPU",
        ),
        pytest.param(
            {"cu128": cuda("12.8"), "rocm": {"amd": {"gfx_arch": ("gfx942",)}}, "null": {}},
            NOTHING,
            "no other variant fits "
            "(no AMD GPU and no NVIDIA GPU or driver found, which 2 variants need)",
            id="no GPU of two kinds",
        ),
        pytest.param(
            {"cu128": cuda("12.8"), "v1": level("v1")},
            NOTHING,
            "x86-64-v1; no NVIDIA GPU or driver found, which cu128 needs",
            id="no GPU, and a build for the CPU",
        ),
        pytest.param(
            {"v3": level("v3"), "v1": level("v1")},
            NOTHING,
            "x86-64-v1; v3 needs x86-64-v3, this CPU has x86-64-v1",
            id="a ladder of which the machine has one step",
        ),
        pytest.param(
            GPU,
            driver("11.8", "11.7"),
            "no other variant fits "
            "(cu130 needs CUDA driver 13.0 or newer, this one supports up to 11.8)",
            id="an old driver",
        ),
    ],
)
def test_why_this(variants, platform, why):
    """The choice names the one variant that is missed most, where something is missed."""
    selection = chosen_of(variants, platform, namespaces=("nvidia", "amd", "x86_64", "aarch64"))
    assert why_this(selection, selection.chosen, "gpu") == why


def test_nothing_is_missed_that_the_user_did_not_want():
    selection = chosen_of(GPU, driver("12.8", "12.6"), exclude=(Selector.parse("nvidia"),))
    assert why_this(selection, selection.chosen, "gpu") == "no other variant fits"
    selection = chosen_of(GPU, driver("12.8", "12.6"), forced={"gpu": "cu126"})
    assert why_this(selection, selection.chosen, "gpu") == "asked for"


def test_a_variant_that_fits_and_whose_wheels_are_not_admitted():
    selection = chosen_of(GPU, driver("12.8", "12.6"), there=("null",))
    assert why_this(selection, selection.chosen, "gpu") == (
        "cu128 and cu126 would fit as well, but no wheel of them is for this platform "
        "and has an allowed hash"
    )


def test_variants_that_only_a_resolver_can_judge_are_not_missed():
    selection = chosen_of({"torch29": {"abi_dependency": {"torch": ("2.9",)}}}, driver("12.8"))
    assert why_this(selection, selection.chosen, "gpu") == "no variant fits"


def test_another_file_than_the_best():
    selection = chosen_of(GPU, driver("12.8", "12.6"))
    (second,) = (file for file in selection.files if file.label == "cu126")
    assert why_this(selection, second, "gpu") == "instead of cu128: CUDA driver 12.6 or newer"


def test_a_target_that_nothing_is_known_of():
    providers = {"nvidia": ProviderInfo(("nvidia-variant-provider",))}
    selection = chosen_of(GPU, Detector(platform=ELSEWHERE).platform, providers=providers)
    assert why_this(selection, selection.chosen, "gpu") == (
        "no other variant fits (the target is not this machine, so nothing is known of its "
        "nvidia, which 3 variants need: describe it with --variant-platform FILE)"
    )


def test_namespaces_with_a_notice():
    variants = {"a": {"acme": {"f": ("1",)}}, "null": {}}
    for support, words in (
        (
            Support(notice="detection failed"),
            "nothing of acme is supported, which a needs: detection failed",
        ),
        (
            Support(notice="allow it with …", untrusted="acme"),
            "namespace acme is skipped, which a needs",
        ),
        (Support(), "no support for acme found, which a needs"),
    ):
        selection = chosen_of(variants, Platform({"acme": support}), namespaces=("acme",))
        assert why_not_better(selection, selection.chosen) == words
    selection = chosen_of(variants, Platform(source="machine.toml"), namespaces=("acme",))
    assert why_not_better(selection, selection.chosen) == (
        "the platform file lists nothing of acme, which a needs"
    )


def test_nothing_fits():
    selection = chosen_of(
        {"cu130": cuda("13.0"), "cu128": cuda("12.8"), "rocm": {"amd": {"gfx_arch": ("gfx942",)}}},
        driver("12.7", "12.6"),
        plain=False,
    )
    assert is_unfit(selection)
    assert str(nothing_fits("gpu", "2.0", selection, plain=("1.0",))).splitlines() == [
        "None of the variants of gpu 2.0 fits this machine:",
        "  cu128  needs CUDA driver 12.8 or newer, this one supports up to 12.7",
        "  cu130  needs CUDA driver 13.0 or newer, this one supports up to 12.7",
        "  rocm   built for GPU gfx942; nothing of amd is supported here",
        "What helps: update the NVIDIA driver to one that supports CUDA 12.8, or ask for "
        "gpu==1.0, which has a non-variant file, or describe the machine that counts "
        "with --variant-platform FILE.",
    ]


def test_what_the_user_excluded_is_the_first_to_reconsider():
    selection = chosen_of(
        {"cu130": cuda("13.0"), "cu128": cuda("12.8")},
        driver("12.8"),
        plain=False,
        exclude=(Selector.parse("nvidia"),),
    )
    found = nothing_fits("gpu", "2.0", selection)
    assert found.details == (
        "cu128  excluded by your preference 'nvidia'",
        "cu130  excluded by your preference 'nvidia'; needs CUDA driver 13.0 or newer, "
        "this one supports up to 12.8",
    )
    assert found.advice.startswith("What helps: do not exclude 'nvidia', or describe")


def test_nothing_fits_a_target_that_nothing_is_known_of():
    variants = {"cu128": cuda("12.8")}
    providers = {"nvidia": ProviderInfo(("nvidia-variant-provider",))}
    platform = Detector(platform=ELSEWHERE).platform
    found = nothing_fits(
        "gpu", "2.0", chosen_of(variants, platform, plain=False, providers=providers)
    )
    assert found.summary == "None of the variants of gpu 2.0 fits the target"
    assert found.advice == "What helps: describe the target with --variant-platform FILE."


def test_passed_over():
    newer = chosen_of({"cu130": cuda("13.0")}, driver("12.8"), plain=False)
    fitting = chosen_of(GPU, driver("12.8"), plain=False)
    line = (
        f"was passed over: none of its variants fits this machine ({NEEDS_13}); gpu 1.0 was chosen"
    )
    assert passed_over("gpu", [("2.0", newer)], "1.0") == f"gpu 2.0 {line}"
    assert passed_over("gpu", [("3.0", newer), ("2.0", newer)], "1.0") == (
        f"gpu 3.0 (and 1 more release) {line}"
    )
    assert passed_over("gpu", [("2.0", fitting)], "1.0") == ""
    assert passed_over("gpu", [], "1.0") == ""


def test_nothing_of_many_fits():
    """The ten nearest ones are listed, the rest is counted."""
    variants = {f"cu{number}": cuda(f"{number}.0") for number in range(20, 61)}
    found = nothing_fits("gpu", "2.0", chosen_of(variants, driver("12.8"), plain=False))
    assert [line.split()[0] for line in found.details[:10]] == [f"cu{n}" for n in range(20, 30)]
    assert found.details[10:] == ("and 31 more: -v shows all",)
