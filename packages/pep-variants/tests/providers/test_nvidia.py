"""The nvidia provider, over a driver library compiled here and loaded by the real nvidia-ml-py."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pep_variants.errors import ProviderError
from pep_variants.property import NAME, VALUE
from pep_variants.providers.nvidia import NvidiaProvider

HERE = Path(__file__).parent
DRIVER = "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION"
CAPABILITY = "NV_VARIANT_PROVIDER_FORCE_SM_ARCH"

# Every value of a major version, newest first, the bare major number after its minors.
V11 = """11.20 11.19 11.18 11.17 11.16 11.15 11.14 11.13 11.12 11.11 11.10 11.9 11.8 11.7 11.6 11.5
 11.4 11.3 11.2 11.1 11.0 11"""
V12 = """12.20 12.19 12.18 12.17 12.16 12.15 12.14 12.13 12.12 12.11 12.10 12.9 12.8 12.7 12.6 12.5
 12.4 12.3 12.2 12.1 12.0 12"""
V13 = """13.20 13.19 13.18 13.17 13.16 13.15 13.14 13.13 13.12 13.11 13.10 13.9 13.8 13.7 13.6 13.5
 13.4 13.3 13.2 13.1 13.0 13"""
V14 = """14.20 14.19 14.18 14.17 14.16 14.15 14.14 14.13 14.12 14.11 14.10 14.9 14.8 14.7 14.6 14.5
 14.4 14.3 14.2 14.1 14.0 14"""
V15 = """15.20 15.19 15.18 15.17 15.16 15.15 15.14 15.13 15.12 15.11 15.10 15.9 15.8 15.7 15.6 15.5
 15.4 15.3 15.2 15.1 15.0 15"""

# CUDA version of the driver, as NVML numbers it and as people write it: the values of
# cuda_version_lower_bound, then those of cuda_version_upper_bound.
DRIVERS = {
    (11000, "11.0"): (
        "11.0 11",
        f"""{V15} {V14} {V13} {V12} 11.20 11.19 11.18 11.17 11.16 11.15 11.14 11.13 11.12 11.11
        11.10 11.9 11.8 11.7 11.6 11.5 11.4 11.3 11.2 11.1""",
    ),
    (11040, "11.4"): (
        "11.4 11.3 11.2 11.1 11.0 11",
        f"""{V15} {V14} {V13} {V12} 11.20 11.19 11.18 11.17 11.16 11.15 11.14 11.13 11.12 11.11
        11.10 11.9 11.8 11.7 11.6 11.5""",
    ),
    (12000, "12.0"): (
        f"12.0 12 {V11}",
        f"""{V15} {V14} {V13} 12.20 12.19 12.18 12.17 12.16 12.15 12.14 12.13 12.12 12.11 12.10
        12.9 12.8 12.7 12.6 12.5 12.4 12.3 12.2 12.1""",
    ),
    (12070, "12.7"): (
        f"12.7 12.6 12.5 12.4 12.3 12.2 12.1 12.0 12 {V11}",
        f"""{V15} {V14} {V13} 12.20 12.19 12.18 12.17 12.16 12.15 12.14 12.13 12.12 12.11 12.10
        12.9 12.8""",
    ),
    (12080, "12.8"): (
        f"12.8 12.7 12.6 12.5 12.4 12.3 12.2 12.1 12.0 12 {V11}",
        f"""{V15} {V14} {V13} 12.20 12.19 12.18 12.17 12.16 12.15 12.14 12.13 12.12 12.11 12.10
        12.9""",
    ),
    (13000, "13.0"): (
        f"13.0 13 {V12} {V11}",
        f"""{V15} {V14} 13.20 13.19 13.18 13.17 13.16 13.15 13.14 13.13 13.12 13.11 13.10 13.9
        13.8 13.7 13.6 13.5 13.4 13.3 13.2 13.1""",
    ),
    (15190, "15.19"): (V15.removeprefix("15.20 ") + f" {V14} {V13} {V12} {V11}", "15.20"),
    (15200, "15.20"): (f"{V15} {V14} {V13} {V12} {V11}", ""),
}

# Compute capabilities of the GPUs: the highest of them, the values of sm_arch.
GPUS = {
    "": ("", ""),
    "5.0": ("5.0", "50_real 50_virtual"),
    "5.2": ("5.2", "52_real 51_real 50_real 50_virtual"),
    "7.5": ("7.5", "75_real 74_real 73_real 72_real 71_real 70_real 70_virtual"),
    "9.0": ("9.0", "90_real 90_virtual"),
    "8.9": (
        "8.9",
        """89_real 88_real 87_real 86_real 85_real 84_real 83_real 82_real 81_real 80_real
        80_virtual""",
    ),
    "10.0": ("10.0", "100_real 100_virtual"),
    "12.0": ("12.0", "120_real 120_virtual"),
    "12.1": ("12.1", "121_real 120_real 120_virtual"),
    # Several GPUs: the newest counts, by number and not by text or position.
    "9.0,10.0,8.6": ("10.0", "100_real 100_virtual"),
    "8.0,8.0": ("8.0", "80_real 80_virtual"),
    "3.7,7.0": ("7.0", "70_real 70_virtual"),
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


def run(
    cases: list[dict[str, object]], library: Path, python_path: Path | None = None
) -> list[dict[str, object]]:
    environment = {name: text for name, text in os.environ.items() if not name.startswith("NV_")}
    environment["LD_LIBRARY_PATH"] = str(library)
    environment["PYTHONWARNINGS"] = "default"
    if python_path:
        rest = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = os.pathsep.join([str(python_path), *([rest] if rest else [])])
    done = subprocess.run(
        [sys.executable, str(HERE / "ask_nvidia.py")],
        input=json.dumps(cases),
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # nothing of the driver reaches the user's terminal
    return json.loads(done.stdout)


def case(overrides: dict[str, str] | None = None, **process: object) -> dict[str, object]:
    variables = {f"FAKE_NVML_{name}": str(text) for name, text in process.items()}
    return {"process": variables, "overrides": overrides or {}}


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Return a function that builds the fake driver library, some functions missing."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs Linux and a C compiler to build a fake driver library")
    built: dict[tuple[str, ...], Path] = {}

    def make(*missing: str) -> Path:
        if missing not in built:
            folder = tmp_path_factory.mktemp("driver")
            subprocess.run(
                [compiler, "-shared", "-fPIC"]
                + [f"-DWITHOUT_{name}" for name in missing]
                + ["-o", str(folder / "libnvidia-ml.so.1"), str(HERE / "fake_nvml.c")],
                check=True,
            )
            built[missing] = folder
        return built[missing]

    return make


def test_every_driver_with_every_set_of_gpus(build):
    grid = [(driver, gpus) for driver in DRIVERS for gpus in GPUS]
    answers = run(
        [case(CUDA_V2=number, DEVICES=gpus) for (number, _), gpus in grid],
        build(),
    )
    for (driver, gpus), answer in zip(grid, answers, strict=True):
        capability, sm_arch = GPUS[gpus]
        assert answer == {
            "supported": features(*DRIVERS[driver], sm_arch),
            "summary": f"CUDA driver {driver[1]}"
            + (f", compute capability {capability}" if capability else ""),
            "warnings": [],
        }


@pytest.mark.parametrize("number", [10020, 10990, 9000, 15210, 16000])
def test_a_driver_outside_the_range_supports_nothing(build, number):
    [answer] = run([case(CUDA_V2=number, DEVICES="9.0")], build())
    assert answer["supported"] == []
    assert answer["summary"] == ""
    [warning] = answer["warnings"]
    assert f"{number // 1000}.{number % 1000 // 10} " in warning
    assert "11.0 to 15.20" in warning
    assert DRIVER in warning


@pytest.mark.parametrize("gpus", ["3.7", "4.9", "3.5,3.7"])
def test_a_gpu_too_old_has_no_sm_arch(build, gpus):
    [answer] = run([case(CUDA_V2=11040, DEVICES=gpus)], build())
    assert answer["supported"] == features(*DRIVERS[11040, "11.4"])
    assert answer["summary"] == "CUDA driver 11.4"
    [warning] = answer["warnings"]
    assert f"{gpus.rpartition(',')[2]} " in warning
    assert "5.0" in warning


@pytest.mark.parametrize(
    ("missing", "process"),
    [
        ((), {"CUDA_V2": "!13", "CUDA": 12080}),
        ((), {"CUDA_V2": "0", "CUDA": 12080}),
        (("nvmlSystemGetCudaDriverVersion_v2",), {"CUDA": 12080}),
        (("nvmlSystemGetCudaDriverVersion",), {"CUDA_V2": 12080}),
    ],
)
def test_the_older_function_answers_where_the_newer_does_not(build, missing, process):
    [answer] = run([case(**process, DEVICES="7.5")], build(*missing))
    assert answer["supported"] == features(*DRIVERS[12080, "12.8"], GPUS["7.5"][1])
    assert answer["warnings"] == []


@pytest.mark.parametrize(
    ("missing", "process"),
    [
        ((), {"CUDA_V2": "!13", "CUDA": "!999", "DEVICES": "9.0"}),
        (("nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"), {}),
    ],
)
def test_a_driver_without_a_version_supports_nothing(build, missing, process):
    [answer] = run([case(**process)], build(*missing))
    assert answer["supported"] == []
    [warning] = answer["warnings"]
    assert DRIVER in warning


@pytest.mark.parametrize(
    ("missing", "process"),
    [
        ((), {"INIT": 9}),  # the kernel module is not loaded
        ((), {"INIT": 18}),  # library and kernel module do not match
        (("nvmlInitWithFlags",), {}),
    ],
)
def test_a_driver_that_does_not_start_is_no_driver(build, missing, process):
    [answer] = run([case(**process, CUDA_V2=12080, DEVICES="9.0")], build(*missing))
    assert answer == {"supported": [], "summary": "", "warnings": []}


@pytest.mark.parametrize(
    ("missing", "process"),
    [((), {"COUNT": "!999"}), (("nvmlDeviceGetCudaComputeCapability",), {})],
)
def test_gpus_that_cannot_be_asked_leave_the_driver(build, missing, process):
    [answer] = run([case(**process, CUDA_V2=12080, DEVICES="9.0")], build(*missing))
    assert answer["supported"] == features(*DRIVERS[12080, "12.8"])
    assert answer["summary"] == "CUDA driver 12.8"


def test_the_library_is_shut_down_whatever_happens(build, tmp_path):
    cases = {
        "fine": {"CUDA_V2": 12080, "DEVICES": "9.0"},
        "no version": {"CUDA_V2": "!13", "CUDA": "!13", "DEVICES": "9.0"},
        "no count": {"CUDA_V2": 12080, "COUNT": "!999"},
        "bad GPU": {"CUDA_V2": 12080, "DEVICES": "^15"},
        "bad shutdown": {"CUDA_V2": 12080, "DEVICES": "9.0", "SHUTDOWN": "999"},
        "bad start": {"INIT": "9"},
    }
    answers = run([case(**told, LOG=tmp_path / name) for name, told in cases.items()], build())
    for name in cases:
        calls = (tmp_path / name).read_text().split()
        assert calls[0] == "init"
        assert calls.count("init") == 1  # asked once, though both values and summary were wanted
        assert calls.count("shutdown") == (0 if name == "bad start" else 1)
        assert calls[-1] == ("init" if name == "bad start" else "shutdown")
    assert answers[4]["supported"] == features(*DRIVERS[12080, "12.8"], GPUS["9.0"][1])


@pytest.mark.parametrize("content", [b"", b"no library\n"])
def test_a_library_that_cannot_be_loaded_is_no_driver(tmp_path, content):
    (tmp_path / "libnvidia-ml.so.1").write_bytes(content)
    [answer] = run([case()], tmp_path)
    assert answer == {"supported": [], "summary": "", "warnings": []}


def test_without_nvidia_ml_py_nothing_is_detected_and_the_user_learns_why(build, tmp_path):
    (tmp_path / "pynvml.py").write_text("raise ImportError('gone')\n")
    forced = {DRIVER: "12.8", CAPABILITY: "9.0"}
    cases = [case(CUDA_V2=12080), case(forced), case({DRIVER: "12.8"})]
    detected, both, driver = run(cases, build(), tmp_path)
    assert detected["supported"] == []
    [warning] = detected["warnings"]
    assert "nvidia-ml-py" in warning
    assert both["supported"] == features(*DRIVERS[12080, "12.8"], GPUS["9.0"][1])
    assert both["warnings"] == []
    assert driver["supported"] == features(*DRIVERS[12080, "12.8"])
    assert driver["warnings"] == [warning]


def test_warnings_of_the_imported_package_stay_inside(build, tmp_path):
    import pynvml

    (tmp_path / "pynvml.py").write_text(
        "import pathlib, warnings\n"
        "warnings.warn('this package is deprecated', FutureWarning)\n"
        f"exec(compile(pathlib.Path({pynvml.__file__!r}).read_text(), __file__, 'exec'))\n"
    )
    [answer] = run([case(CUDA_V2=12080, DEVICES="9.0")], build(), tmp_path)
    assert answer["supported"] == features(*DRIVERS[12080, "12.8"], GPUS["9.0"][1])


# Overrides. Each replaces detection of one fact.


@pytest.mark.parametrize("driver", DRIVERS)
def test_both_facts_forced_ask_no_driver(build, tmp_path, driver):
    log = tmp_path / "log"
    [answer] = run([case({DRIVER: driver[1], CAPABILITY: "7.5"}, LOG=log)], build())
    assert answer == {
        "supported": features(*DRIVERS[driver], GPUS["7.5"][1]),
        "summary": f"CUDA driver {driver[1]} (forced), compute capability 7.5 (forced)",
        "warnings": [],
    }
    assert not log.exists()


def test_the_other_fact_is_detected(build):
    cases = [
        case({DRIVER: "13.0"}, CUDA_V2=12080, DEVICES="9.0"),
        case({CAPABILITY: "7.5"}, CUDA_V2=12080, DEVICES="9.0"),
        case({DRIVER: "13.0"}, CUDA_V2=12080),
        case({DRIVER: "13.0"}, INIT=9),
        case({CAPABILITY: "7.5"}, INIT=9),
        case({DRIVER: "", CAPABILITY: " "}, CUDA_V2=12080, DEVICES="9.0"),
        case({CAPABILITY: "3.0"}, CUDA_V2=12080, DEVICES="9.0"),
    ]
    driver, capability, no_gpu, no_start, no_driver, empty, old = run(cases, build())
    assert driver["supported"] == features(*DRIVERS[13000, "13.0"], GPUS["9.0"][1])
    assert driver["summary"] == "CUDA driver 13.0 (forced), compute capability 9.0"
    assert capability["supported"] == features(*DRIVERS[12080, "12.8"], GPUS["7.5"][1])
    assert capability["summary"] == "CUDA driver 12.8, compute capability 7.5 (forced)"
    assert no_gpu["supported"] == features(*DRIVERS[13000, "13.0"])
    assert no_start["supported"] == features(*DRIVERS[13000, "13.0"])
    assert no_driver == {"supported": [], "summary": "", "warnings": []}
    assert empty["supported"] == features(*DRIVERS[12080, "12.8"], GPUS["9.0"][1])
    assert empty["summary"] == "CUDA driver 12.8, compute capability 9.0"
    assert old["supported"] == features(*DRIVERS[12080, "12.8"])
    assert len(old["warnings"]) == 1


def test_the_variables_of_the_process_are_the_default(build):
    process = {DRIVER: "12.8", CAPABILITY: "9.0"}
    [answer] = run([{"process": process, "overrides": None}], build())
    assert answer["supported"] == features(*DRIVERS[12080, "12.8"], GPUS["9.0"][1])


@pytest.mark.parametrize(
    ("text", "driver"),
    [("12", "12.0"), ("12.8.1", "12.8"), (" 12.8\n", "12.8"), ("012.08", "12.8")],
)
def test_ways_to_write_a_driver_version(text, driver):
    supported = NvidiaProvider({DRIVER: text, CAPABILITY: "9.0"}).supported()
    expected = next(values for (_, name), values in DRIVERS.items() if name == driver)
    assert supported["cuda_version_lower_bound"] == tuple(expected[0].split())
    assert supported["cuda_version_upper_bound"] == tuple(expected[1].split())


@pytest.mark.parametrize("text", ["10.2", "15.21", "16.0", "0", "999.999"])
def test_a_forced_driver_outside_the_range_supports_nothing(caplog, text):
    provider = NvidiaProvider({DRIVER: text, CAPABILITY: "9.0"})
    assert provider.supported() == {}
    assert provider.summary() == ""
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert (text if "." in text else f"{text}.0") in record.getMessage()


MALFORMED = [
    "x",
    "12,8",
    "-12.8",
    "12.",
    ".8",
    "v12.8",
    "12.8rc1",
    "12.99999999",
    "١٢.٨",
    "9" * 5000,
]


@pytest.mark.parametrize(
    ("variable", "text", "way_out"),
    [
        *((DRIVER, text, "12.8") for text in MALFORMED),
        *((CAPABILITY, text, "9.0") for text in [*MALFORMED, "90", "9", "9.0a", "9.0.0", "sm_90"]),
    ],
)
@pytest.mark.parametrize("ask", ["supported", "summary"])
def test_a_malformed_override_is_an_error_with_a_way_out(variable, text, way_out, ask):
    overrides = {DRIVER: "12.8", CAPABILITY: "9.0", variable: text}
    with pytest.raises(ProviderError) as error:
        getattr(NvidiaProvider(overrides), ask)()
    message = str(error.value)
    assert variable in message
    assert text[:60] in message
    assert message.endswith(f"set it to one like {way_out}, or unset it")
    assert len(message) < 300


# Everything there is.


def test_known_values():
    known = NvidiaProvider({}).known()
    versions = tuple(f"{V15} {V14} {V13} {V12} {V11}".split())
    assert list(known) == ["cuda_version_lower_bound", "cuda_version_upper_bound", "sm_arch"]
    assert known["cuda_version_lower_bound"] == versions
    assert known["cuda_version_upper_bound"] == versions
    real, virtual = known["sm_arch"][:80], known["sm_arch"][80:]
    assert real[:11] == (*(f"12{minor}_real" for minor in "9876543210"), "119_real")
    assert (real[-1], virtual[0], virtual[-1]) == ("50_real", "129_virtual", "50_virtual")
    assert [value.replace("_virtual", "_real") for value in virtual] == list(real)


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("gpu", ["5.2", "7.5", "9.0", "12.1"])
def test_supported_values_are_known_and_in_the_known_order(driver, gpu):
    provider = NvidiaProvider({DRIVER: driver[1], CAPABILITY: gpu})
    known = provider.known()
    for feature, values in provider.supported().items():
        assert NAME.fullmatch(feature)
        assert all(VALUE.fullmatch(value) for value in values)
        assert list(values) == [value for value in known[feature] if value in values]


def test_the_module_imports_no_driver_binding():
    code = "import sys, pep_variants.providers.nvidia; print('pynvml' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
