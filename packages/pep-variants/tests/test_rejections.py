"""Why the variants that are not taken are not, what is missed most, and what helps."""

from functools import partial

import pytest

from pep_variants._choose.preferences import Preferences
from pep_variants._choose.rejections import (
    advise,
    is_unfit,
    nothing_fits,
    passed_over,
    why_not_better,
    why_this,
)
from pep_variants._choose.selection import File, select
from pep_variants._choose.version_order import Admitted, advise_over_releases
from pep_variants._detect.detector import Detector
from pep_variants._model.metadata import Metadata, ProviderInfo
from pep_variants._model.platform import ELSEWHERE, Platform, Support
from pep_variants._model.property import Selector


def cuda(version, **features):
    return {"nvidia": {"cuda_version_lower_bound": (version,), **features}}


def driver(*versions, **features):
    return Platform({"nvidia": Support({"cuda_version_lower_bound": versions, **features})})


def cpu(*levels):
    return Platform({"nvidia": Support(), "amd": Support(), "x86_64": Support({"level": levels})})


GPU = {"cu130": cuda("13.0"), "cu128": cuda("12.8"), "cu126": cuda("12.6"), "null": {}}
LEVELS = {level: {"x86_64": {"level": (level,)}} for level in ("v1", "v2", "v3")}
ROCM = {"rocm": {"amd": {"gfx_arch": ("gfx942",)}}}
ELSEWHERE_DETECTED = Detector(platform=ELSEWHERE).platform
NEEDS_13 = "cu130 needs CUDA driver 13.0 or newer, this one supports up to 12.8"


def chosen_of(variants, platform, *, plain=True, there=None, providers=None, **options):
    """Return the selection among one wheel per label, and a plain one."""
    labels = [f"-{label}" for label in (variants if there is None else there)]
    names = [f"gpu-2.0-py3-none-any{label}.whl" for label in [*labels, *([""] if plain else [])]]
    return select(
        [File(name, "index", name) for name in names],
        metadata=lambda source: Metadata(
            ("nvidia", "amd", "x86_64", "acme"), variants, providers or {}
        ),
        platform=platform if callable(platform) else lambda _metadata: platform,
        preferences=Preferences(**options),
        project="gpu",
    )


# Variants, the machine, options, and what is said of the choice.
WHY = {
    "a newer driver would do better": (
        {**GPU, "cu140": cuda("14.0")},
        driver("12.8", "12.6"),
        {},
        "CUDA driver 12.8 or newer; "
        "cu140 needs CUDA driver 14.0 or newer, this one supports up to 12.8",
    ),
    "a build for another GPU is not better": (
        {"a": cuda("12.8", sm_arch=("90_real",)), "b": cuda("12.8", sm_arch=("100_real",))},
        driver("12.8", sm_arch=("90_real", "90_virtual")),
        {},
        "CUDA driver 12.8 or newer, compute capability 9.0",
    ),
    "one feature more would come first": (
        {"a": cuda("12.8"), "b": cuda("12.8", sm_arch=("90_real",))},
        driver("12.8"),
        {},
        "CUDA driver 12.8 or newer; b built for compute capability 9.0, which this "
        "machine does not have",
    ),
    "an accelerator of another kind is not missed": (
        {"cu128": cuda("12.8"), **ROCM},
        driver("12.8"),
        {},
        "CUDA driver 12.8 or newer",
    ),
    "no GPU": (
        GPU,
        cpu("v1"),
        {},
        "no other variant fits (no NVIDIA driver found)",
    ),
    "no GPU of two kinds": (
        {"cu128": cuda("12.8"), **ROCM, "null": {}},
        cpu("v1"),
        {},
        "no other variant fits (no AMD GPU and no NVIDIA driver found)",
    ),
    "no GPU, and a build for the CPU": (
        {"cu128": cuda("12.8"), **LEVELS},
        cpu("v3"),
        {},
        "x86-64-v3; no NVIDIA driver found",
    ),
    "a ladder of which the machine has one step": (
        LEVELS,
        cpu("v1"),
        {},
        "x86-64-v1; v3 needs x86-64-v3, this CPU has x86-64-v1",
    ),
    "an old driver": (
        GPU,
        driver("11.8", "11.7"),
        {},
        "no other variant fits "
        "(cu130 needs CUDA driver 13.0 or newer, this one supports up to 11.8)",
    ),
    "what the user excluded is not missed": (
        GPU,
        driver("12.8", "12.6"),
        {"exclude": (Selector("nvidia"),)},
        "no other variant fits",
    ),
    "what the user asked for": (
        GPU,
        driver("12.8", "12.6"),
        {"forced": {"gpu": "cu126"}},
        "asked for",
    ),
    "fits, and no wheel of it is admitted": (
        GPU,
        driver("12.8", "12.6"),
        {"there": ("null",)},
        "cu128 and cu126 would fit as well, but no wheel of them is for this platform "
        "and has an allowed hash",
    ),
    "only a resolver can judge": (
        {"torch29": {"abi_dependency": {"torch": ("2.9",)}}},
        driver("12.8"),
        {},
        "no variant fits",
    ),
    "a target of which nothing is known": (
        GPU,
        ELSEWHERE_DETECTED,
        {"providers": {"nvidia": ProviderInfo(("nvidia-variant-provider",))}},
        "no other variant fits (nothing is known of the target's NVIDIA driver: "
        "describe it with --variant-platform FILE)",
    ),
}


@pytest.mark.parametrize(("variants", "platform", "options", "why"), WHY.values(), ids=WHY)
def test_why_this(variants, platform, options, why):
    """The choice names the one variant that is missed most, where something is missed."""
    selection = chosen_of(variants, platform, **options)
    assert why_this(selection, selection.chosen, "gpu") == why


def test_another_file_than_the_best():
    selection = chosen_of(GPU, driver("12.8", "12.6"))
    (second,) = (file for file in selection.files if file.label == "cu126")
    assert why_this(selection, second, "gpu") == "instead of cu128: CUDA driver 12.6 or newer"


@pytest.mark.parametrize(
    ("platform", "words"),
    [
        (
            Platform({"acme": Support(notice="detection failed")}),
            "no support for acme found (detection failed)",
        ),
        (
            Platform({"acme": Support(notice="allow it with …", untrusted="acme")}),
            "namespace acme is skipped",
        ),
        (Platform({"acme": Support()}), "no support for acme found"),
        (
            Platform(source="machine.toml"),
            "no support for acme in machine.toml",
        ),
    ],
)
def test_a_namespace_of_which_nothing_is_supported(platform, words):
    selection = chosen_of({"a": {"acme": {"f": ("1",)}}, "null": {}}, platform)
    assert why_not_better(selection, selection.chosen) == words


def test_nothing_fits():
    variants = {"cu130": cuda("13.0"), "cu128": cuda("12.8"), **ROCM}
    selection = chosen_of(variants, driver("12.7", "12.6"), plain=False)
    assert is_unfit(selection)
    assert str(nothing_fits("gpu", "2.0", selection, plain=("1.0",))).splitlines() == [
        "None of the variants of gpu 2.0 fits this machine:",
        "  cu128  needs CUDA driver 12.8 or newer, this one supports up to 12.7",
        "  cu130  needs CUDA driver 13.0 or newer, this one supports up to 12.7",
        "  rocm   built for GPU gfx942; no AMD GPU found",
        "What helps: update the NVIDIA driver to one that supports CUDA 12.8, or ask for "
        "gpu==1.0, which has a non-variant file, or describe the target machine "
        "with --variant-platform FILE.",
    ]
    # What the user excluded is the first to reconsider.
    del variants["rocm"]
    excluding = chosen_of(variants, driver("12.8"), plain=False, exclude=(Selector("nvidia"),))
    found = nothing_fits("gpu", "2.0", excluding)
    assert found.details == (
        "cu128  excluded by your preference 'nvidia'",
        "cu130  excluded by your preference 'nvidia'; needs CUDA driver 13.0 or newer, "
        "this one supports up to 12.8",
    )
    assert found.advice.startswith("What helps: do not exclude 'nvidia', or describe")
    found = nothing_fits("gpu", "2.0", chosen_of(variants, ELSEWHERE_DETECTED, plain=False))
    assert found.summary == "None of the variants of gpu 2.0 fits the target"
    assert found.advice == "What helps: describe the target with --variant-platform FILE."
    # No machine has another release of a project.
    built = {"t28": {"abi_dependency": {"torch": ("2.8",)}}}
    found = nothing_fits("gpu", "2.0", chosen_of(built, driver("12.8"), plain=False))
    assert (len(found.details), found.advice) == (1, "")
    found = nothing_fits("gpu", "2.0", chosen_of(built, driver("12.8"), plain=False), plain=["1"])
    assert found.advice == "What helps: ask for gpu==1, which has a non-variant file."
    # The ten nearest ones are listed, the rest is counted.
    variants = {f"cu{number}": cuda(f"{number}.0") for number in range(20, 61)}
    found = nothing_fits("gpu", "2.0", chosen_of(variants, driver("12.8"), plain=False))
    assert [line.split()[0] for line in found.details[:10]] == [f"cu{n}" for n in range(20, 30)]
    assert found.details[10:] == ("and 31 more: -v shows all",)


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


# Labels that there are (None is no variant), the installed one, and what is said of it.
NOT_FIT = "as variant v3, which does not fit this machine (needs x86-64-v3, this CPU has x86-64-v2)"
ADVICE = [
    (("null", "v1", "v2", "v3"), "v2", None),
    (("null", "v1", "v2", "v3"), "v1", "as variant v1; variant v2 fits better (x86-64-v2)"),
    (("null", "v2", "v3"), "null", "as variant null; variant v2 fits better (x86-64-v2)"),
    (("null", "v2", "v3"), "v3", f"{NOT_FIT}; variant v2 does"),
    (("null", "v2", "v3"), None, "without variant; variant v2 fits better (x86-64-v2)"),
    (("null", "v3"), None, None),
    ((None,), None, None),
    (("null", "v2"), "other", None),
    (("null", None), "null", None),
    (("v3", None), "null", None),
    (("v3", None), "v3", f"{NOT_FIT}; the non-variant file does"),
    (("v3",), "v3", None),
]


@pytest.mark.parametrize(("labels", "installed", "text"), ADVICE)
def test_advice_about_what_is_installed(labels, installed, text):
    there = [label for label in labels if label]
    variants = {"null": {}, **LEVELS}
    advice = advise(
        chosen_of(variants, cpu("v2", "v1"), plain=None in labels, there=there), installed
    )
    found = None if advice is None else advice.text("gpu", "2.0")
    assert found == (text and f"gpu 2.0 is installed {text}")


BUILDS = {"cu13": cuda("13.0"), "cu12": cuda("12.0"), "null": {}}
NO_GPU = Platform({"nvidia": Support()})
OLD_AND_NEW = {"3.0": ("cu13", "null"), "2.0": ("cu13", "cu12", "null"), "1.0": ("cu12", "null")}


def _admitted(platform):
    return [
        Admitted(version, labels, partial(chosen_of, BUILDS, platform, plain=False, there=labels))
        for version, labels in OLD_AND_NEW.items()
    ]


@pytest.mark.parametrize(
    ("version", "installed", "platform", "better"),
    [
        # The installed release has a build for the accelerator.
        ("2.0", "null", driver("12.0"), "2.0 cu12"),
        ("2.0", "null", driver("13.0", "12.0"), "2.0 cu13"),
        ("2.0", "cu12", driver("13.0", "12.0"), "2.0 cu13"),
        ("2.0", "cu12", driver("12.0"), None),
        ("1.0", None, driver("13.0", "12.0"), "1.0 cu12"),
        # It has none: the newest release that has one, up or down.
        ("3.0", "cu13", driver("12.0"), "2.0 cu12"),
        ("3.0", "null", driver("12.0"), "2.0 cu12"),
        ("0.5", "null", driver("13.0", "12.0"), "3.0 cu13"),
        ("0.5", None, driver("12.0"), "2.0 cu12"),
        ("4.0", None, driver("12.0"), "2.0 cu12"),
        # No accelerator, or none that any release is for.
        ("3.0", "cu13", NO_GPU, "3.0 null"),
        ("3.0", "null", NO_GPU, None),
        ("3.0", None, driver("11.0"), None),
        ("3.0", "cu13", driver("11.0"), "3.0 null"),
        # Builds that nothing is known of.
        ("4.0", "cu14", driver("12.0"), None),
    ],
)
def test_advice_over_releases(version, installed, platform, better):
    admitted = _admitted(platform)
    has = bool(platform.support("nvidia").features)
    advice = advise_over_releases("gpu", version, installed, admitted, lambda: has)
    found = advice and f"{advice.version or version} {advice.better}"
    assert found == better


def test_what_is_said_of_another_release():
    admitted = _admitted(driver("12.0"))
    advice = advise_over_releases("gpu", "3.0", "cu13", admitted, lambda: True)
    assert advice is not None
    assert advice.text("gpu", "3.0") == (
        "gpu 3.0 is installed as variant cu13, which does not fit this machine (needs CUDA driver "
        "13.0 or newer, this one supports up to 12.0); variant cu12 of 2.0 does"
    )
    advice = advise_over_releases("gpu", "3.0", "null", admitted, lambda: True)
    assert advice is not None
    assert advice.text("gpu", "3.0") == (
        "gpu 3.0 is installed as variant null; variant cu12 of 2.0 fits better (CUDA driver 12.0 "
        "or newer)"
    )


def test_levels_of_a_cpu_are_no_reason_for_another_release():
    variants = {**LEVELS, "null": {}}
    admitted = [
        Admitted("2.0", ("null",), lambda: chosen_of(variants, cpu("v2"), there=("null",))),
        Admitted("1.0", ("v2",), lambda: chosen_of(variants, cpu("v2"), there=("v2", "null"))),
    ]
    assert advise_over_releases("gpu", "2.0", "null", admitted, lambda: False) is None


def test_what_was_compiled_of_a_release_that_fits_nowhere():
    """Its variants need another driver, and it has no other wheel."""
    platform = driver("12.0")
    newest = chosen_of(BUILDS, platform, plain=False, there=("cu13",))
    admitted = [Admitted("4.0", ("cu13",), lambda: newest), *_admitted(platform)]
    advice = advise_over_releases("gpu", "4.0", None, admitted, lambda: True)
    assert advice is not None
    assert (advice.version, advice.better) == ("2.0", "cu12")


@pytest.mark.parametrize("version", ["4.0", "0.1"])
def test_a_build_of_a_release_that_fits_nowhere(version):
    """Without an accelerator the newest release of which something fits stands in."""
    lost = chosen_of(BUILDS, NO_GPU, plain=False, there=("cu13",))
    ours = Admitted(version, ("cu13",), lambda: lost)
    admitted = [Admitted("5.0", ("cu13",), lambda: lost), ours, *_admitted(NO_GPU)]
    advice = advise_over_releases("gpu", version, "cu13", admitted, lambda: False)
    assert advice is not None
    assert (advice.version, advice.better) == ("3.0", "null")
    plain = [ours, Admitted("1.0", (), lambda: None)]
    advice = advise_over_releases("gpu", version, "cu13", plain, lambda: False)
    assert advice is not None
    assert advice.build == "the non-variant file of 1.0"
    assert advise_over_releases("gpu", version, "cu13", [ours], lambda: False) is None
