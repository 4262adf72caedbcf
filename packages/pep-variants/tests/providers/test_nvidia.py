"""The nvidia provider, over a driver library compiled here."""

import pytest

from pep_variants._providers.nvidia import NvidiaProvider

PROVIDER = "pep_variants._providers.nvidia:NvidiaProvider"
DRIVER = "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION"
CAPABILITY = "NV_VARIANT_PROVIDER_FORCE_SM_ARCH"
NVML, CUDA = "libnvidia-ml.so.1", "libcuda.so.1"


def versions(newest: str, oldest: str) -> str:
    """Every value between, newest first, the bare major number after its minors."""
    found = []
    for major in range(15, 10, -1):
        minors = [(f"{major}.{minor}", (major, minor)) for minor in range(20, -1, -1)]
        found += [*minors, (str(major), (major, -1))]
    top, end = (tuple(map(int, text.split("."))) for text in (newest, oldest))
    return " ".join(text for text, key in found if end <= key <= top)


# CUDA version of the driver: the values of cuda_version_lower_bound, then those of
# cuda_version_upper_bound.
DRIVERS = {
    "11.0": ("11.0 11", versions("15.20", "11.1")),
    "11.4": ("11.4 11.3 11.2 11.1 11.0 11", versions("15.20", "11.5")),
    "12.6": (versions("12.6", "11.-1"), versions("15.20", "12.7")),
    "12.8": (versions("12.8", "11.-1"), versions("15.20", "12.9")),
    "13.0": (versions("13.0", "11.-1"), versions("15.20", "13.1")),
    "15.19": (versions("15.19", "11.-1"), "15.20"),
    "15.20": (versions("15.20", "11.-1"), ""),
}

# Compute capabilities of the GPUs: all of them as people list them, the values of sm_arch.
GPUS = {
    "": ("", ""),
    "5.0": ("5.0", "50_real 50_virtual"),
    "7.5": ("7.5", "75_real 74_real 73_real 72_real 71_real 70_real 70_virtual"),
    "9.0": ("9.0", "90_real 90_virtual"),
    "8.7": (
        "8.7",
        "87_real 86_real 85_real 84_real 83_real 82_real 81_real 80_real 80_virtual",
    ),
    "12.1": ("12.1", "121_real 120_real 120_virtual"),
    # Several GPUs: the newest counts, by number and not by text or position.
    "9.0,10.0,8.6": ("10.0, 9.0 and 8.6", "100_real 100_virtual"),
    # Some do not answer: no permission, lost from the bus.
    "!4,^15,7.0": ("7.0", "70_real 70_virtual"),
    "^15,!4": ("", ""),
}


def number(version: str) -> str:
    major, minor = map(int, version.split("."))
    return str(major * 1000 + minor * 10)


def features(driver: str, gpus: str = "") -> list[list[object]]:
    """Return the answer as it comes out of JSON, features without values left out."""
    names = ("cuda_version_lower_bound", "cuda_version_upper_bound", "sm_arch")
    texts = (*DRIVERS[driver], GPUS[gpus][1])
    return [[name, text.split()] for name, text in zip(names, texts, strict=True) if text]


def case(overrides: dict[str, str] | None = None, **process: object) -> dict[str, object]:
    variables = {f"FAKE_{name}": str(text) for name, text in process.items()}
    return {"process": variables, "overrides": overrides or {}}


@pytest.fixture
def nvml(build):
    """Return a function that builds the fake driver library, some functions missing."""
    return lambda *missing: build("fake_nvml.c", NVML, *missing)


@pytest.fixture
def cuda(build):
    """Return a function that builds the fake CUDA library, some functions missing."""
    return lambda *missing: build("fake_cuda.c", CUDA, *missing)


def test_every_driver_with_every_set_of_gpus(ask, nvml):
    grid = [(driver, gpus) for driver in DRIVERS for gpus in GPUS]
    told = [case(NVML_CUDA_V2=number(driver), NVML_DEVICES=gpus) for driver, gpus in grid]
    for (driver, gpus), answer in zip(grid, ask(PROVIDER, told, nvml()), strict=True):
        assert answer["supported"] == features(driver, gpus)
        capability = GPUS[gpus][0]
        words = f"CUDA driver {driver}" + (f", compute capability {capability}" * bool(capability))
        assert (answer["summary"], answer["warnings"]) == (words, [])


OLD = {"NVML_CUDA": 12080, "NVML_DEVICES": "7.5"}
NEW = {"NVML_CUDA_V2": 12080, "NVML_DEVICES": "9.0"}
JETSON = {"CUDA_VERSION": 12060, "CUDA_DEVICES": "8.7"}


@pytest.mark.parametrize(
    ("missing", "process", "driver", "gpu", "warned"),
    [
        # The older function answers where the newer does not.
        ("", {**OLD, "NVML_CUDA_V2": "!13"}, "12.8", "7.5", ()),
        ("", {**OLD, "NVML_CUDA_V2": "0"}, "12.8", "7.5", ()),
        ("nvmlSystemGetCudaDriverVersion_v2", OLD, "12.8", "7.5", ()),
        ("", {**NEW, "NVML_CUDA_V2": "!13", "NVML_CUDA": "!999"}, "", "9.0", (DRIVER,)),
        # Drivers that do not start: updated, but the old kernel module is still loaded.
        ("", {**NEW, "NVML_INIT": 18}, "", "",
         ("NVML: Driver/library version mismatch", "no NVIDIA variant is considered",
          "Usually fixed by a reboot after a driver update", DRIVER, CAPABILITY)),
        ("nvmlErrorString", {**NEW, "NVML_INIT": 18}, "", "", ("NVML: status 18",)),
        ("nvmlInitWithFlags", NEW, "", "", ("NVML: ", "no NVIDIA variant is considered")),
        # Drivers outside the range.
        ("", {**NEW, "NVML_CUDA_V2": 10990}, "10.99", "9.0", ("10.99 ", "11.0 to 15.20", DRIVER)),
        ("", {**NEW, "NVML_CUDA_V2": 15210}, "15.21", "9.0", ("15.21 ", "11.0 to 15.20", DRIVER)),
        # GPUs that cannot be asked leave the driver.
        ("", {**NEW, "NVML_COUNT": "!999"}, "12.8", "", ()),
        ("", {**NEW, "NVML_COUNT": "4000000000"}, "12.8", "", ()),
        ("nvmlDeviceGetCudaComputeCapability", NEW, "12.8", "", ()),
        ("", {**NEW, "NVML_DEVICES": "0.0,-9.0,70000.1"}, "12.8", "", ()),
    ],
)  # fmt: skip
def test_answers_of_nvml(ask, nvml, missing, process, driver, gpu, warned):
    [answer] = ask(PROVIDER, [case(**process)], nvml(*missing.split()))
    facts = {"CUDA driver": driver, "compute capability": gpu}
    assert answer["summary"] == ", ".join(f"{what} {text}" for what, text in facts.items() if text)
    assert answer["supported"] == (features(driver, gpu) if driver in DRIVERS else [])
    assert len(answer["warnings"]) == bool(warned)
    for words in warned:
        assert words in answer["warnings"][0]


@pytest.mark.parametrize(
    ("missing", "process", "driver", "gpu"),
    [
        ("", JETSON, "12.6", "8.7"),
        ("cuInit", JETSON, "", ""),
        ("", {**JETSON, "CUDA_VERSION": "!1"}, "", "8.7"),
        ("", {**JETSON, "CUDA_VERSION": "0"}, "", "8.7"),
        ("", {**JETSON, "CUDA_COUNT": "!1"}, "12.6", ""),
        ("", {**JETSON, "CUDA_COUNT": "2000000000"}, "12.6", ""),
        ("", {**JETSON, "CUDA_COUNT": "3"}, "12.6", "8.7"),
    ],
)
def test_answers_of_cuda_without_nvml(ask, cuda, missing, process, driver, gpu):
    [answer] = ask(PROVIDER, [case(**process)], cuda(*missing.split()))
    assert answer["supported"] == (features(driver, gpu) if driver else [])
    assert answer["facts"] == [
        *([["CUDA driver", driver, CUDA, False]] if driver else []),
        *([["compute capability", gpu, f"{CUDA}, GPU 0", False]] if gpu else []),
    ]


@pytest.mark.parametrize(
    ("process", "summary", "sources"),
    [
        # Later Jetsons have an NVML that does not tell the compute capability.
        ({"NVML_CUDA_V2": 12060, "NVML_DEVICES": "!3", "CUDA_DEVICES": "8.7"},
         "CUDA driver 12.6, compute capability 8.7", [NVML, f"{CUDA}, GPU 0"]),
        # A container with a MIG slice alone: its GPU may not be looked at, or it may.
        ({"NVML_CUDA_V2": 12060, "NVML_DEVICES": "^4", "CUDA_DEVICES": "9.0"},
         "CUDA driver 12.6, compute capability 9.0", [NVML, f"{CUDA}, GPU 0"]),
        ({"NVML_INIT": 9, "CUDA_VERSION": 12060, "CUDA_DEVICES": "8.0,!1,9.0"},
         "CUDA driver 12.6, compute capability 9.0 and 8.0",
         [CUDA, f"{CUDA}, GPU 2", f"{CUDA}, GPU 0"]),
        # No GPU at all.
        ({"NVML_INIT": 999, "CUDA_INIT": 100, "CUDA_VERSION": 12060}, "CUDA driver 12.6", [CUDA]),
    ],
)  # fmt: skip
def test_cuda_tells_what_nvml_does_not(ask, nvml, cuda, process, summary, sources):
    [answer] = ask(PROVIDER, [case(**process)], nvml(), cuda())
    assert answer["summary"] == summary
    assert [source for _, _, source, _ in answer["facts"]] == sources
    assert answer["warnings"] == []


def test_libraries_are_asked_only_for_what_is_not_known(ask, nvml, cuda, tmp_path):
    nvml_log, cuda_log = tmp_path / "nvml", tmp_path / "cuda"
    both = {DRIVER: "13.0", CAPABILITY: "7.5"}
    [answer] = ask(PROVIDER, [case(both, NVML_LOG=nvml_log, CUDA_LOG=cuda_log)], nvml(), cuda())
    assert answer["supported"] == features("13.0", "7.5")
    assert answer["summary"] == "CUDA driver 13.0 (forced), compute capability 7.5 (forced)"
    assert not nvml_log.exists()
    told = {**NEW, "CUDA_LOG": cuda_log}
    cases = [
        case(**told),
        case(**{**told, "NVML_DEVICES": ""}),
        case({DRIVER: "12.8"}, **{**told, "NVML_CUDA_V2": "!13"}),
        case({CAPABILITY: "9.0"}, **{**told, "NVML_DEVICES": "!13"}),
    ]
    ask(PROVIDER, cases, nvml(), cuda())
    assert not cuda_log.exists()


@pytest.mark.parametrize(
    "module",
    [
        "raise ImportError('gone')",
        "print 'of Python 2'",
        "class NVMLError(Exception): pass\ndef nvmlInit(): pass",
    ],
)
def test_a_package_of_the_name_pynvml_does_not_matter(ask, nvml, tmp_path, module):
    """Three distributions have that module; two of them are too old, one is for Python 2."""
    (tmp_path / "pynvml.py").write_text(f"{module}\n")
    forced = {DRIVER: "12.8", CAPABILITY: "9.0"}
    cases = [case(**NEW), case(forced), case({DRIVER: "12.8"})]
    answers = ask(PROVIDER, cases, nvml(), python_path=tmp_path)
    expected = [features("12.8", "9.0"), features("12.8", "9.0"), features("12.8")]
    assert [answer["supported"] for answer in answers] == expected
    assert [answer["warnings"] for answer in answers] == [[], [], []]


# Where the libraries are.


@pytest.mark.parametrize("folder", ["nvidia", "tegra"])
def test_cuda_is_found_where_a_jetson_keeps_it(ask, build, folder):
    root = build("fake_cuda.c", f"usr/lib/aarch64-linux-gnu/{folder}/{CUDA}")
    [answer] = ask(PROVIDER, [{**case(**JETSON), "root": str(root)}])
    assert answer["summary"] == "CUDA driver 12.6, compute capability 8.7"


def test_wsl_keeps_the_libraries_elsewhere(ask, build):
    root = build("fake_nvml.c", f"usr/lib/wsl/lib/{NVML}")
    [answer] = ask(PROVIDER, [{**case(**NEW), "root": str(root)}])
    assert answer["summary"] == "CUDA driver 12.8, compute capability 9.0"
    assert answer["facts"][0][2] == NVML


@pytest.mark.parametrize(
    ("source", "variable", "path"),
    [
        ("fake_nvml.c", "WINDIR", "System32/nvml.dll"),
        ("fake_nvml.c", "ProgramFiles", "NVIDIA Corporation/NVSMI/nvml.dll"),
        ("fake_cuda.c", "WINDIR", "System32/nvcuda.dll"),
    ],
)
def test_windows(ask, build, tmp_path, source, variable, path):
    folders = {"WINDIR": str(tmp_path), "ProgramFiles": str(tmp_path)}
    told = case(**NEW, CUDA_VERSION=12080, CUDA_DEVICES="9.0")
    told["process"] |= {**folders, variable: str(build(source, path))}
    [answer] = ask(PROVIDER, [{**told, "overrides": None, "system": "win32"}])
    assert answer["summary"] == "CUDA driver 12.8, compute capability 9.0"
    assert answer["facts"][0][2] == path.rpartition("/")[2]


def test_other_systems_have_no_nvidia_driver(ask, nvml, cuda):
    [answer] = ask(PROVIDER, [{**case(**NEW), "system": "darwin"}], nvml(), cuda())
    assert (answer["supported"], answer["facts"], answer["warnings"]) == ([], [], [])


def test_a_driver_that_hangs_is_no_driver(ask, cuda):
    told = case(CUDA_HANG=50, **JETSON)
    [answer] = ask(PROVIDER, [{**told, "time_limit": 0.2}], cuda())
    assert (answer["supported"], answer["facts"]) == ([], [])
    [warning] = answer["warnings"]
    assert "no answer within 0.2 s" in warning
    assert DRIVER in warning


# Overrides. Each replaces detection of one fact.


def test_the_other_fact_is_detected(ask, nvml):
    cases = [
        case({DRIVER: "13.0"}, **{**NEW, "NVML_DEVICES": "8.6,!15,9.0,8.6"}),
        case({CAPABILITY: "7.5"}, **NEW),
        case({DRIVER: "13.0"}, NVML_CUDA_V2=12080),
        case({DRIVER: "13.0"}, NVML_INIT=9),
        case({CAPABILITY: "7.5"}, NVML_INIT=9),
        case({DRIVER: "", CAPABILITY: " "}, **NEW),
        case({CAPABILITY: "3.0"}, **NEW),
    ]
    driver, capability, no_gpu, no_start, no_driver, empty, old = ask(PROVIDER, cases, nvml())
    assert driver["supported"] == features("13.0", "9.0")
    assert driver["facts"] == [
        ["CUDA driver", "13.0", DRIVER, True],
        ["compute capability", "9.0", f"{NVML}, GPU 2", False],
        ["compute capability", "8.6", f"{NVML}, GPU 0", False],
        ["compute capability", "8.6", f"{NVML}, GPU 3", False],
    ]
    assert capability["supported"] == features("12.8", "7.5")
    assert capability["summary"] == "CUDA driver 12.8, compute capability 7.5 (forced)"
    assert no_gpu["supported"] == no_start["supported"] == features("13.0")
    assert no_driver["supported"] == []
    assert no_driver["summary"] == "compute capability 7.5 (forced)"
    assert empty["supported"] == features("12.8", "9.0")
    assert empty["summary"] == "CUDA driver 12.8, compute capability 9.0"
    assert old["supported"] == features("12.8")
    assert len(old["warnings"]) == 1


def test_known_values():
    known = NvidiaProvider({}).known()
    expected = tuple(versions("15.20", "11.-1").split())
    assert list(known) == ["cuda_version_lower_bound", "cuda_version_upper_bound", "sm_arch"]
    assert known["cuda_version_lower_bound"] == expected
    assert known["cuda_version_upper_bound"] == expected
    real, virtual = known["sm_arch"][:80], known["sm_arch"][80:]
    assert real[:11] == (*(f"12{minor}_real" for minor in "9876543210"), "119_real")
    assert (real[-1], virtual[0], virtual[-1]) == ("50_real", "129_virtual", "50_virtual")
    assert [value.replace("_virtual", "_real") for value in virtual] == list(real)
