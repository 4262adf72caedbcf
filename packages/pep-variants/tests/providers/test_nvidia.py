"""The nvidia provider, over a driver library compiled here and loaded by the real nvidia-ml-py."""

import pytest

from pep_variants.providers.nvidia import NvidiaProvider

DRIVER = "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION"
CAPABILITY = "NV_VARIANT_PROVIDER_FORCE_SM_ARCH"


def versions(newest: str, oldest: str) -> str:
    """Every value between, newest first, the bare major number after its minors."""
    found = []
    for major in range(15, 10, -1):
        minors = [(f"{major}.{minor}", (major, minor)) for minor in range(20, -1, -1)]
        found += [*minors, (str(major), (major, -1))]
    top, end = (tuple(map(int, text.split("."))) for text in (newest, oldest))
    return " ".join(text for text, key in found if end <= key <= top)


# CUDA version of the driver, as NVML numbers it and as people write it: the values of
# cuda_version_lower_bound, then those of cuda_version_upper_bound.
DRIVERS = {
    (11000, "11.0"): ("11.0 11", versions("15.20", "11.1")),
    (11040, "11.4"): ("11.4 11.3 11.2 11.1 11.0 11", versions("15.20", "11.5")),
    (12080, "12.8"): (versions("12.8", "11.-1"), versions("15.20", "12.9")),
    (13000, "13.0"): (versions("13.0", "11.-1"), versions("15.20", "13.1")),
    (15190, "15.19"): (versions("15.19", "11.-1"), "15.20"),
    (15200, "15.20"): (versions("15.20", "11.-1"), ""),
}

# Compute capabilities of the GPUs: all of them as people list them, the values of sm_arch.
GPUS = {
    "": ("", ""),
    "5.0": ("5.0", "50_real 50_virtual"),
    "7.5": ("7.5", "75_real 74_real 73_real 72_real 71_real 70_real 70_virtual"),
    "9.0": ("9.0", "90_real 90_virtual"),
    "8.9": (
        "8.9",
        """89_real 88_real 87_real 86_real 85_real 84_real 83_real 82_real 81_real 80_real
        80_virtual""",
    ),
    "12.1": ("12.1", "121_real 120_real 120_virtual"),
    # Several GPUs: the newest counts, by number and not by text or position.
    "9.0,10.0,8.6": ("10.0, 9.0 and 8.6", "100_real 100_virtual"),
    # Some do not answer: no permission, lost from the bus.
    "!4,^15,7.0": ("7.0", "70_real 70_virtual"),
    "^15,!4": ("", ""),
}


def features(lower: str, upper: str, sm_arch: str = "") -> list[list[object]]:
    """Return the answer as it comes out of JSON, features without values left out."""
    texts = {
        "cuda_version_lower_bound": lower,
        "cuda_version_upper_bound": upper,
        "sm_arch": sm_arch,
    }
    return [[name, text.split()] for name, text in texts.items() if text]


PROVIDER = "pep_variants.providers.nvidia:NvidiaProvider"


def case(overrides: dict[str, str] | None = None, **process: object) -> dict[str, object]:
    variables = {f"FAKE_NVML_{name}": str(text) for name, text in process.items()}
    return {"process": variables, "overrides": overrides or {}}


@pytest.fixture
def nvml(build):
    """Return a function that builds the fake driver library, some functions missing."""
    return lambda *missing: build("fake_nvml.c", "libnvidia-ml.so.1", *missing)


@pytest.fixture
def cuda(build):
    """Return a function that builds the fake CUDA library, some functions missing."""
    return lambda *missing: build("fake_cuda.c", "libcuda.so.1", *missing)


@pytest.fixture
def run(ask):
    """Return a function that asks about cases, with these libraries."""

    def answers(cases, *libraries, python_path=None):
        found = ask(PROVIDER, cases, *libraries, python_path=python_path)
        keys = ("supported", "summary", "warnings")
        return [{key: answer[key] for key in keys} for answer in found]

    return answers


def test_every_driver_with_every_set_of_gpus(run, nvml):
    grid = [(driver, gpus) for driver in DRIVERS for gpus in GPUS]
    answers = run(
        [case(CUDA_V2=number, DEVICES=gpus) for (number, _), gpus in grid],
        nvml(),
    )
    for (driver, gpus), answer in zip(grid, answers, strict=True):
        capability, sm_arch = GPUS[gpus]
        assert answer == {
            "supported": features(*DRIVERS[driver], sm_arch),
            "summary": f"CUDA driver {driver[1]}"
            + (f", compute capability {capability}" if capability else ""),
            "warnings": [],
        }


@pytest.mark.parametrize("number", [10990, 15210])
def test_a_driver_outside_the_range_supports_nothing(run, nvml, number):
    [answer] = run([case(CUDA_V2=number, DEVICES="9.0")], nvml())
    assert answer["supported"] == []
    version = f"{number // 1000}.{number % 1000 // 10}"
    assert answer["summary"] == f"CUDA driver {version}, compute capability 9.0"
    [warning] = answer["warnings"]
    assert f"{number // 1000}.{number % 1000 // 10} " in warning
    assert "11.0 to 15.20" in warning
    assert DRIVER in warning


@pytest.mark.parametrize(
    ("missing", "process"),
    [
        ((), {"CUDA_V2": "!13", "CUDA": 12080}),
        ((), {"CUDA_V2": "0", "CUDA": 12080}),
        (("nvmlSystemGetCudaDriverVersion_v2",), {"CUDA": 12080}),
    ],
)
def test_the_older_function_answers_where_the_newer_does_not(run, nvml, missing, process):
    [answer] = run([case(**process, DEVICES="7.5")], nvml(*missing))
    assert answer["supported"] == features(*DRIVERS[12080, "12.8"], GPUS["7.5"][1])
    assert answer["warnings"] == []


def test_a_driver_without_a_version_supports_nothing(run, nvml):
    [answer] = run([case(CUDA_V2="!13", CUDA="!999", DEVICES="9.0")], nvml())
    assert answer["supported"] == []
    [warning] = answer["warnings"]
    assert DRIVER in warning


@pytest.mark.parametrize(
    ("missing", "process"),
    [
        ((), {"INIT": 18}),  # updated, but the old kernel module is still loaded
        (("nvmlInitWithFlags",), {}),
    ],
)
def test_a_driver_that_does_not_start_is_no_driver(run, nvml, missing, process):
    [answer] = run([case(**process, CUDA_V2=12080, DEVICES="9.0")], nvml(*missing))
    assert answer["supported"] == []
    assert answer["summary"] == ""
    [warning] = answer["warnings"]
    assert "NVML: " in warning
    assert "no NVIDIA variant is considered" in warning
    assert DRIVER in warning
    assert CAPABILITY in warning


@pytest.mark.parametrize(
    ("missing", "process"),
    [
        ((), {"COUNT": "!999"}),
        ((), {"COUNT": "4000000000"}),
        (("nvmlDeviceGetCudaComputeCapability",), {}),
        ((), {"DEVICES": "0.0,-9.0,70000.1"}),
    ],
)
def test_gpus_that_cannot_be_asked_leave_the_driver(run, nvml, missing, process):
    told = {"CUDA_V2": 12080, "DEVICES": "9.0", **process}
    [answer] = run([case(**told)], nvml(*missing))
    assert answer["supported"] == features(*DRIVERS[12080, "12.8"])
    assert answer["summary"] == "CUDA driver 12.8"
    assert answer["warnings"] == []


def test_without_nvidia_ml_py_nothing_is_detected_and_the_user_learns_why(run, nvml, tmp_path):
    (tmp_path / "pynvml.py").write_text("raise ImportError('gone')\n")
    forced = {DRIVER: "12.8", CAPABILITY: "9.0"}
    cases = [case(CUDA_V2=12080), case(forced), case({DRIVER: "12.8"})]
    detected, both, driver = run(cases, nvml(), python_path=tmp_path)
    assert detected["supported"] == []
    [warning] = detected["warnings"]
    assert "nvidia-ml-py" in warning
    assert both["supported"] == features(*DRIVERS[12080, "12.8"], GPUS["9.0"][1])
    assert both["warnings"] == []
    assert driver["supported"] == features(*DRIVERS[12080, "12.8"])
    [warning] = driver["warnings"]
    assert "nvidia-ml-py" in warning
    assert "the GPUs are unknown" in warning


# Facts and their sources.


def test_every_gpu_is_a_fact_and_the_newest_comes_first(ask, nvml):
    cases = [
        case(CUDA_V2=12080, DEVICES="8.6,!15,9.0,8.6"),
        case({DRIVER: "13.0"}, CUDA_V2=12080, DEVICES="8.6"),
    ]
    several, driver = ask(PROVIDER, cases, nvml())
    library = "libnvidia-ml.so.1"
    assert several["facts"] == [
        ["CUDA driver", "12.8", library, False],
        ["compute capability", "9.0", f"{library}, GPU 2", False],
        ["compute capability", "8.6", f"{library}, GPU 0", False],
        ["compute capability", "8.6", f"{library}, GPU 3", False],
    ]
    assert several["summary"] == "CUDA driver 12.8, compute capability 9.0 and 8.6"
    assert driver["facts"] == [
        ["CUDA driver", "13.0", DRIVER, True],
        ["compute capability", "8.6", f"{library}, GPU 0", False],
    ]


# Where NVML is not, or knows less.


def cuda_case(overrides: dict[str, str] | None = None, **process: object) -> dict[str, object]:
    variables = {f"FAKE_{name}": str(text) for name, text in process.items()}
    return {"process": variables, "overrides": overrides or {}}


def test_cuda_answers_on_a_jetson_without_nvml(ask, cuda):
    [answer] = ask(PROVIDER, [cuda_case(CUDA_VERSION=11040, CUDA_DEVICES="8.7")], cuda())
    arch = "87_real 86_real 85_real 84_real 83_real 82_real 81_real 80_real 80_virtual"
    assert answer["supported"] == features(*DRIVERS[11040, "11.4"], arch)
    assert answer["facts"] == [
        ["CUDA driver", "11.4", "libcuda.so.1", False],
        ["compute capability", "8.7", "libcuda.so.1, GPU 0", False],
    ]
    assert answer["warnings"] == []


@pytest.mark.parametrize("folder", ["nvidia", "tegra"])
def test_cuda_is_found_where_a_jetson_keeps_it(ask, build, folder):
    path = f"usr/lib/aarch64-linux-gnu/{folder}/libcuda.so.1"
    root = build("fake_cuda.c", path)
    told = cuda_case(CUDA_VERSION=12060, CUDA_DEVICES="8.7")
    [answer] = ask(PROVIDER, [{**told, "root": str(root)}])
    assert answer["summary"] == "CUDA driver 12.6, compute capability 8.7"


@pytest.mark.parametrize(
    ("process", "summary", "sources"),
    [
        # Later ones have an NVML that does not tell the compute capability.
        (
            {"NVML_CUDA_V2": 12060, "NVML_DEVICES": "!3", "CUDA_DEVICES": "8.7"},
            "CUDA driver 12.6, compute capability 8.7",
            ["libnvidia-ml.so.1", "libcuda.so.1, GPU 0"],
        ),
        # A container with a MIG slice alone: its GPU may not be looked at, or it may.
        (
            {"NVML_CUDA_V2": 12060, "NVML_DEVICES": "^4", "CUDA_DEVICES": "9.0"},
            "CUDA driver 12.6, compute capability 9.0",
            ["libnvidia-ml.so.1", "libcuda.so.1, GPU 0"],
        ),
        (
            {"NVML_INIT": 9, "CUDA_VERSION": 12060, "CUDA_DEVICES": "8.0,!1,9.0"},
            "CUDA driver 12.6, compute capability 9.0 and 8.0",
            ["libcuda.so.1", "libcuda.so.1, GPU 2", "libcuda.so.1, GPU 0"],
        ),
        # No GPU at all.
        (
            {"NVML_INIT": 999, "CUDA_INIT": 100, "CUDA_VERSION": 12060},
            "CUDA driver 12.6",
            ["libcuda.so.1"],
        ),
    ],
)
def test_cuda_tells_what_nvml_does_not(ask, nvml, cuda, process, summary, sources):
    [answer] = ask(PROVIDER, [cuda_case(**process)], nvml(), cuda())
    assert answer["summary"] == summary
    assert [source for _, _, source, _ in answer["facts"]] == sources
    assert answer["warnings"] == []


@pytest.mark.parametrize(
    ("missing", "process", "summary"),
    [
        (("cuInit",), {}, ""),
        ((), {"CUDA_VERSION": "!1"}, "compute capability 8.0"),
        ((), {"CUDA_VERSION": "0"}, "compute capability 8.0"),
        ((), {"CUDA_COUNT": "!1"}, "CUDA driver 12.6"),
        ((), {"CUDA_COUNT": "2000000000"}, "CUDA driver 12.6"),
        ((), {"CUDA_COUNT": "3"}, "CUDA driver 12.6, compute capability 8.0"),
    ],
)
def test_wrong_answers_of_cuda(ask, cuda, missing, process, summary):
    told = {"CUDA_VERSION": 12060, "CUDA_DEVICES": "8.0", **process}
    [answer] = ask(PROVIDER, [cuda_case(**told)], cuda(*missing))
    assert answer["summary"] == summary


def test_cuda_is_not_started_where_nvml_tells_enough(ask, nvml, cuda, tmp_path):
    told = {"NVML_CUDA_V2": 12080, "NVML_DEVICES": "9.0", "CUDA_LOG": tmp_path / "log"}
    cases = [
        cuda_case(**told),
        cuda_case(**{**told, "NVML_DEVICES": ""}),
        cuda_case({DRIVER: "12.8"}, **{**told, "NVML_CUDA_V2": "!13"}),
        cuda_case({CAPABILITY: "9.0"}, **{**told, "NVML_DEVICES": "!13"}),
        cuda_case({DRIVER: "12.8", CAPABILITY: "9.0"}, **told),
    ]
    ask(PROVIDER, cases, nvml(), cuda())
    assert not (tmp_path / "log").exists()


def test_wsl_keeps_the_libraries_elsewhere(ask, build):
    path = "usr/lib/wsl/lib/libnvidia-ml.so.1"
    told = {**case(CUDA_V2=12080, DEVICES="8.9"), "root": str(build("fake_nvml.c", path))}
    [answer] = ask(PROVIDER, [told])
    assert answer["summary"] == "CUDA driver 12.8, compute capability 8.9"
    assert answer["facts"][0][2] == "libnvidia-ml.so.1"


@pytest.mark.parametrize(
    ("variable", "path"),
    [("WINDIR", "System32/nvml.dll"), ("ProgramFiles", "NVIDIA Corporation/NVSMI/nvml.dll")],
)
def test_windows_keeps_nvml_in_two_places(ask, build, tmp_path, variable, path):
    folders = {"WINDIR": str(tmp_path), "ProgramFiles": str(tmp_path)}
    folders[variable] = str(build("fake_nvml.c", path))
    process = {"FAKE_NVML_CUDA_V2": "12080", "FAKE_NVML_DEVICES": "8.9", **folders}
    [answer] = ask(PROVIDER, [{"process": process, "overrides": None, "system": "win32"}])
    assert answer["summary"] == "CUDA driver 12.8, compute capability 8.9"
    assert answer["facts"][0][2] == "nvml.dll"


def test_windows_with_cuda_alone(ask, build, tmp_path):
    process = {
        "FAKE_CUDA_VERSION": "12080",
        "FAKE_CUDA_DEVICES": "8.9",
        "WINDIR": str(build("fake_cuda.c", "System32/nvcuda.dll")),
        "ProgramFiles": str(tmp_path),
    }
    [answer] = ask(PROVIDER, [{"process": process, "overrides": None, "system": "win32"}])
    assert answer["summary"] == "CUDA driver 12.8, compute capability 8.9"
    assert answer["facts"][0][2] == "nvcuda.dll"


def test_other_systems_have_no_nvidia_driver(ask, nvml, cuda):
    told = {**case(CUDA_V2=12080, DEVICES="8.9"), "system": "darwin"}
    [answer] = ask(PROVIDER, [told], nvml(), cuda())
    assert (answer["supported"], answer["facts"], answer["warnings"]) == ([], [], [])


def test_a_driver_that_hangs_is_no_driver(ask, cuda):
    told = cuda_case(CUDA_HANG=50, CUDA_VERSION=12080, CUDA_DEVICES="8.9")
    [answer] = ask(PROVIDER, [{**told, "time_limit": 0.2}], cuda())
    assert (answer["supported"], answer["facts"]) == ([], [])
    [warning] = answer["warnings"]
    assert "no answer within 0.2 s" in warning
    assert DRIVER in warning


# Overrides. Each replaces detection of one fact.


def test_both_facts_forced_ask_no_driver(run, nvml, tmp_path):
    log = tmp_path / "log"
    told = {DRIVER: "13.0", CAPABILITY: "7.5"}
    [answer] = run([case(told, LOG=log)], nvml())
    assert answer == {
        "supported": features(*DRIVERS[13000, "13.0"], GPUS["7.5"][1]),
        "summary": "CUDA driver 13.0 (forced), compute capability 7.5 (forced)",
        "warnings": [],
    }
    assert not log.exists()


def test_the_other_fact_is_detected(run, nvml):
    cases = [
        case({DRIVER: "13.0"}, CUDA_V2=12080, DEVICES="9.0"),
        case({CAPABILITY: "7.5"}, CUDA_V2=12080, DEVICES="9.0"),
        case({DRIVER: "13.0"}, CUDA_V2=12080),
        case({DRIVER: "13.0"}, INIT=9),
        case({CAPABILITY: "7.5"}, INIT=9),
        case({DRIVER: "", CAPABILITY: " "}, CUDA_V2=12080, DEVICES="9.0"),
        case({CAPABILITY: "3.0"}, CUDA_V2=12080, DEVICES="9.0"),
    ]
    driver, capability, no_gpu, no_start, no_driver, empty, old = run(cases, nvml())
    assert driver["supported"] == features(*DRIVERS[13000, "13.0"], GPUS["9.0"][1])
    assert driver["summary"] == "CUDA driver 13.0 (forced), compute capability 9.0"
    assert capability["supported"] == features(*DRIVERS[12080, "12.8"], GPUS["7.5"][1])
    assert capability["summary"] == "CUDA driver 12.8, compute capability 7.5 (forced)"
    assert no_gpu["supported"] == features(*DRIVERS[13000, "13.0"])
    assert no_start["supported"] == features(*DRIVERS[13000, "13.0"])
    assert no_driver["supported"] == []
    assert no_driver["summary"] == "compute capability 7.5 (forced)"
    assert empty["supported"] == features(*DRIVERS[12080, "12.8"], GPUS["9.0"][1])
    assert empty["summary"] == "CUDA driver 12.8, compute capability 9.0"
    assert old["supported"] == features(*DRIVERS[12080, "12.8"])
    assert len(old["warnings"]) == 1


MALFORMED = ["x", "12,8", "-12.8", "12.", ".8", "12.8rc1", "12.99999999", "١٢.٨", "9" * 5000]


@pytest.mark.parametrize(
    ("variable", "text", "way_out"),
    [
        *((DRIVER, text, "12.8") for text in MALFORMED),
        *((CAPABILITY, text, "9.0") for text in ["90", "9", "9.0a", "9.0.0", "9" * 5000]),
    ],
)
def test_a_malformed_override_is_an_error_with_a_way_out(refused, variable, text, way_out):
    overrides = {DRIVER: "12.8", CAPABILITY: "9.0", variable: text}
    refused(NvidiaProvider(overrides), variable, text, way_out)


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
