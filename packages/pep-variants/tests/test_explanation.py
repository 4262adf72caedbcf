import pytest

from pep_variants._choose.explanation import verdicts, why_chosen, why_not, why_rejected
from pep_variants._choose.preferences import Preferences
from pep_variants._choose.ranking import Reason, rank
from pep_variants._model.metadata import Metadata
from pep_variants._model.platform import Platform, Support
from pep_variants._model.property import Selector

LOWER = ("nvidia", "cuda_version_lower_bound")
SM = ("nvidia", "sm_arch")


@pytest.mark.parametrize(
    ("supported", "words"),
    [
        (
            {"nvidia": {"cuda_version_lower_bound": ("12.8", "12.0"), "sm_arch": ("90_real",)}},
            "CUDA driver 12.8 or newer, compute capability 9.0",
        ),
        ({"nvidia": {"cuda_version_upper_bound": ("13",)}}, "CUDA driver older than 13"),
        ({"nvidia": {"sm_arch": ("121_real", "120_real")}}, "compute capability 12.1"),
        ({"nvidia": {"sm_arch": ("100f_virtual",)}}, "compute capability 10.0f"),
        ({"nvidia": {"sm_arch": ("new",)}}, "compute capability new"),
        ({"x86_64": {"level": ("v3", "v2")}, "acme": {"f": ("1",)}}, "x86-64-v3, acme f 1"),
        ({"aarch64": {"version": ("8.2a",), "sve": ("on",)}}, "ARMv8.2a, sve"),
        (
            {"amd": {"gfx_arch": ("gfx1100", "gfx1036"), "rocm_version": ("6.4",)}},
            "GPU gfx1100, ROCm 6.4",
        ),
        ({"intel": {"device_ip": ("20.1.0",)}}, "Intel GPU 20.1.0 (bmg-g21)"),
    ],
)
def test_why_chosen(supported, words):
    assert why_chosen(supported) == words


@pytest.mark.parametrize(
    ("feature", "wanted", "supported", "words"),
    [
        # As DESIGN promises it.
        (
            LOWER,
            ("13.0",),
            ("12.8", "12.7"),
            "needs CUDA driver 13.0 or newer, this one supports up to 12.8",
        ),
        (
            SM,
            ("100_real", "75_real", "90_real", "90_virtual"),
            ("61_real", "60_real", "60_virtual"),
            "built for compute capability 7.5, 9.0 or 10.0, this GPU has 6.1",
        ),
        (("aarch64", "version"), ("9.0a",), ("8.2a",), "needs ARMv9.0a, this CPU has ARMv8.2a"),
        (
            ("amd", "gfx_arch"),
            ("gfx1100", "gfx942"),
            ("gfx1036", "gfx906"),
            "built for GPU gfx1100 or gfx942, this machine has gfx1036 and gfx906",
        ),
        (("amd", "rocm_version"), ("6.4",), (), "needs ROCm 6.4, which this machine does not have"),
        (("acme", "f"), ("1",), ("2",), "needs acme :: f 1, this machine has 2"),
        (
            ("acme", "f"),
            tuple("123456"),
            (),
            "needs acme :: f 1, 2, 3, 4, … (6 values), which this machine does not have",
        ),
    ],
)
def test_why_rejected(feature, wanted, supported, words):
    assert why_rejected(Reason(*feature, wanted, supported)) == words


def test_a_namespace_of_which_nothing_is_supported():
    """It is said once, whatever the number of its features; with the notice, or without."""
    metadata = Metadata(
        ("amd", "acme"),
        {"x": {"amd": {"gfx_arch": ("gfx942",), "rocm_version": ("6.4",)}, "acme": {"f": ("1",)}}},
    )
    ranking = rank(metadata, Platform({"acme": Support(notice="its provider is optional")}))
    amd = "built for GPU gfx942 and needs ROCm 6.4; no AMD GPU found"
    acme = "needs acme :: f 1; no support for acme found"
    assert why_not(ranking, "x") == (f"{acme} (its provider is optional)", amd)
    assert why_not(ranking, "x", notices=False) == (acme, amd)
    excluding = Preferences(exclude=(Selector("amd"),))
    ranking = rank(metadata, Platform({"acme": Support({"f": ("1",)})}), excluding)
    assert why_not(ranking, "x") == ("excluded by your preference 'amd'", amd)


METADATA = Metadata(
    ("nvidia", "acme"),
    {
        "null": {},
        "cu13": {"nvidia": {"cuda_version_lower_bound": ("13.0",)}},
        "cu12": {"nvidia": {"cuda_version_lower_bound": ("12.0",)}},
        "fast": {"nvidia": {"cuda_version_lower_bound": ("13.0",)}, "acme": {"f": ("1",)}},
    },
)
PLATFORM = Platform(
    {
        "nvidia": Support({"cuda_version_lower_bound": ("12.1", "12.0")}),
        "acme": Support(notice="not here"),
    }
)
CU13 = "needs CUDA driver 13.0 or newer, this one supports up to 12.1"
ACME = "needs acme :: f 1; no support for acme found (not here)"


@pytest.mark.parametrize("chosen", ["cu12", "null", None])
def test_verdicts(chosen):
    ranking = rank(METADATA, PLATFORM)
    assert verdicts(ranking, chosen) == (
        ("cu12", "chosen" if chosen == "cu12" else "compatible", "CUDA driver 12.0 or newer"),
        ("null", "chosen" if chosen == "null" else "compatible", "always fits"),
        ("cu13", "rejected", CU13),
        ("fast", "rejected", f"{ACME}; {CU13}"),
    )
