"""A machine by path, name or facts: what each form means, in every place that takes one."""

import random
import subprocess
import sys
from dataclasses import replace

import pytest

from pep_variants import load_machine
from pep_variants.choose.preferences import Preferences
from pep_variants.detect.detector import Detector
from pep_variants.detect.known_machines import BY_NAME, KNOWN_MACHINES
from pep_variants.detect.machines import (
    CPU,
    LONGEST,
    WORDS,
    machine_text,
    names_file,
    parse_facts,
    support_of,
    write_facts,
)
from pep_variants.errors import PlatformFileError
from pep_variants.formats.platform_file import read_platform, write_platform
from pep_variants.formats.reader import read_metadata
from pep_variants.providers.amd import ARCHITECTURE_OVERRIDE, VERSION_OVERRIDE, AmdProvider
from pep_variants.providers.intel import DEVICE_OVERRIDE, IntelProvider
from pep_variants.providers.nvidia import (
    CAPABILITY_OVERRIDE,
    DRIVER_OVERRIDE,
    NvidiaProvider,
)
from pep_variants.providers.registry import BUILTIN_NAMESPACES
from pep_variants.settings.loader import load_settings
from pep_variants.settings.places import Place, Role
from pep_variants.settings.trust import Approvals, approval_digest, covered_files


def features(machine, namespace):
    return dict(load_machine(machine).support(namespace).features)


def supported(platform):
    return {
        name: [*support.features.items()]
        for name, support in platform.namespaces.items()
        if support.features
    }


FORMS = [
    ("cuda=12.8,sm=9.0", {"nvidia": {"cuda_version_lower_bound": "12.8", "sm_arch": "90_real"}}),
    ("cuda=12.8.1,sm=12.0", {"nvidia": {"cuda_version_lower_bound": "12.8"}}),
    ("cuda=12.8,sm=9.0+12.0+8.6", {"nvidia": {"sm_arch": "120_real"}}),
    ("rocm=6.4.1,gfx=gfx1100", {"amd": {"gfx_arch": "gfx1100", "rocm_version": "6.4"}}),
    ("rocm=7.0,gfx=gfx908+gfx90a", {"amd": {"gfx_arch": "gfx908 gfx90a"}}),
    ("intel=bmg-g31", {"intel": {"device_ip": "20.2.0 20.1.0"}}),
    ("intel=pvc+12.55.8", {"intel": {"device_ip": "12.60.7 12.55.8"}}),
    ("npu=910b,ascend=24.1.rc1,cann=8.0.rc1",
     {"ascend": {"npu_type": "910b", "driver_version": "24.1.rc1", "cann_version": "8.0.rc1"}}),
    ("cpu=x86-64", {"x86_64": {"level": "v1"}}),
    ("cpu=x86-64-v3", {"x86_64": {"level": "v3 v2 v1", "avx2": "on"}}),
    ("cpu=Skylake_AVX512", {"x86_64": {"level": "v4", "avx512f": "on"}}),
    ("cpu=armv8.2-a", {"aarch64": {"version": "8.2a 8.1a 8a"}}),
    ("cpu=neoverse-v2", {"aarch64": {"version": "9.0a", "sve2": "on"}}),
    (" cuda = 12.8 , sm = 9.0 , cpu = x86-64-v4 ",
     {"nvidia": {"sm_arch": "90_real"}, "x86_64": {"level": "v4"}}),
    ("cuda=12.8,sm=9.0,rocm=6.4,gfx=gfx942,cpu=zen4",
     {"nvidia": {"sm_arch": "90_real"}, "amd": {"rocm_version": "6.4"}, "x86_64": {"level": "v4"}}),
    ("h100-zen4,cuda=13.0",
     {"nvidia": {"cuda_version_lower_bound": "13.0", "sm_arch": "90_real"},
      "x86_64": {"level": "v4"}}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), FORMS)
def test_form(text, expected):
    """What is told of each feature is where its values begin."""
    platform = load_machine(text)
    assert supported(platform).keys() == expected.keys()
    for namespace, told in expected.items():
        found = platform.support(namespace).features
        for feature, values in told.items():
            wanted = tuple(values.split())
            assert found[feature][: len(wanted)] == wanted
    assert platform.source == text
    assert [*platform.namespaces] == sorted(BUILTIN_NAMESPACES)


def test_facts_mean_what_the_overrides_of_providers_do():
    """The variables replace detection on a machine: there the same is found."""
    facts = "cuda=12.6,sm=8.9,rocm=6.3,gfx=gfx1030,intel=12.56.5"
    nvidia = {DRIVER_OVERRIDE: "12.6", CAPABILITY_OVERRIDE: "8.9"}
    amd = {VERSION_OVERRIDE: "6.3", ARCHITECTURE_OVERRIDE: "gfx1030"}
    assert features(facts, "nvidia") == NvidiaProvider(nvidia).supported()
    assert features(facts, "amd") == AmdProvider(amd).supported()
    assert features(facts, "intel") == IntelProvider({DEVICE_OVERRIDE: "12.56.5"}).supported()


@pytest.mark.parametrize("machine", KNOWN_MACHINES, ids=lambda machine: machine.name)
def test_name_and_its_facts_and_its_file_say_the_same(machine, tmp_path):
    named, told = load_machine(machine.name), load_machine(machine.facts)
    assert named == told
    file = tmp_path / "machine.toml"
    file.write_text(machine_text(machine.name, "a test"))
    written = load_machine(str(file))
    assert supported(written) == supported(named)
    for namespace, support in named.namespaces.items():
        assert written.support(namespace) == replace(support, facts=())
        assert support.notice == ""
        known = BUILTIN_NAMESPACES[namespace]
        assert support.resolved == (f"{known.package}=={known.stands_for}",)
    assert write_facts(parse_facts(machine.facts)) == machine.facts
    assert not names_file(machine.name)
    assert machine.title[-1] not in ". "


def test_nothing_of_this_machine_is_looked_at(monkeypatch):
    monkeypatch.setenv(DRIVER_OVERRIDE, "13.0")
    monkeypatch.setenv(CAPABILITY_OVERRIDE, "12.0")
    monkeypatch.setenv("ROCM_PATH", "/opt/rocm")
    assert features("cuda=12.8", "nvidia").keys().isdisjoint({"sm_arch"})
    assert features("cpu=zen4", "nvidia") == {}
    assert features("gfx=gfx942", "amd") == {"gfx_arch": ("gfx942",)}


def test_facts_that_are_not_given_say_so():
    platform = load_machine("cuda=12.8,sm=9.0")
    assert "add one, such as cpu=x86-64-v3" in platform.support("x86_64").notice
    assert load_machine("cpu=zen4").support("nvidia").notice == ""
    text = machine_text("cpu=zen4", "a test")
    assert "\n# no NVIDIA driver\n" in text
    assert "\n# a CPU of another family\n" in text
    assert "\n# no CPU is given" in machine_text("cuda=12.8", "a test")


LONG = "x" * 5000
WRONG = [
    ("h100-zen5", "'h100-zen5' is neither a platform file nor a known machine: did you mean "
                  "h100-zen4, h100-zen3 or b300-zen5? 'variants platforms' lists the machines"),
    ("h100", "known machine: did you mean h100-sapphirerapids, h100-zen4 or h100-zen3?"),
    ("./h100-zen4", "'./h100-zen4' is neither a platform file nor a known machine: did you mean"),
    ("C:\\machines\\h100-zen4", "did you mean h100-zen4"),
    ("none.toml", "none.toml: cannot be read: No such file or directory"),
    ("folder/none.toml", "folder/none.toml: cannot be read: No such file or directory"),
    ("", "'' is neither a platform file nor a known machine"),
    (f"{LONG}=1", "longer than 1,000 characters"),
    ("cuda=13.0,h100-zen4", "'h100-zen4' is not known; there are cuda, sm, rocm, gfx, intel, npu, "
                            "ascend, cann, tpu, cpu"),
    ("cuda=", "machine 'cuda=': cuda has no value: write cuda=12.8"),
    ("cuda=12.8,sm", "sm has no value: write sm=9.0"),
    ("cuda=12.8,,sm=9.0", "'' is not known"),
    ("cuda=12.8,cuda=12.9", "cuda is given twice"),
    ("cuda=12.8,sm=8.6,sm=9.0", "sm is given twice: write sm=8.6+9.0"),
    ("cuda=12.8+13.0", "cuda has one value, not 2"),
    ("sm=9.0", "sm needs cuda as well, the CUDA version of the driver: add cuda=12.8"),
    ("cuda=twelve", "cuda=twelve is not a CUDA version, such as 12.8"),
    ("cuda=9.0", "cuda=9.0 is outside 11.0 to 15.20, for which there are builds"),
    ("cuda=12.8,sm=90", "sm=90 is not a compute capability, such as 9.0"),
    ("cuda=12.8,sm=3.5", "sm=3.5 is below 5.0, the oldest for which there are builds"),
    ("gfx=942", "gfx=942 is not the architecture of an AMD GPU, such as gfx942"),
    ("intel=bmg", "intel=bmg is not an Intel GPU: write its IP version, such as 20.1.0, or "
                  "Intel's name, such as bmg-g31 or bmg-g21"),
    ("npu=910 B", "npu=910 B is not the type of an Ascend NPU, such as 910b"),
    ("cann=8.0.RC1", "cann=8.0.RC1 is not a version of CANN, such as 8.0.rc1"),
    ("cpu=zen44", "cpu=zen44 is not a CPU: write a level such as x86-64-v3 or armv8.2-a, or "
                  "archspec's name of a CPU, such as zen4"),
    ("cuda=12.8\x1b[31m", "is not a CUDA version"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_wrong(text, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PlatformFileError) as raised:
        load_machine(text)
    said = str(raised.value)
    assert message in said
    assert said.isprintable()
    assert len(said) < 600


def test_any_text_is_a_machine_or_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    problems = []
    random_ = random.Random(17)
    parts = [
        *WORDS,
        CPU,
        "=",
        "=",
        ",",
        "+",
        "12.8",
        "9.0",
        "zen4",
        "gfx942",
        "h100-zen4",
        " ",
        "ü",
    ]
    for _ in range(500):
        text = "".join(random_.choices(parts, k=random_.randrange(1, 9)))
        try:
            platform = load_machine(text)
        except PlatformFileError as error:
            problems.append(str(error))
        else:
            written = read_platform(write_platform(platform, "x"), "x")
            assert supported(written) == supported(platform)
    assert all(problem.isprintable() for problem in problems)


def test_a_file_without_suffix_in_the_working_directory(tmp_path, monkeypatch):
    """A name means the same everywhere; any other word is a path."""
    monkeypatch.chdir(tmp_path)
    for name in ("machine", "h100-zen4"):
        (tmp_path / name).write_text(machine_text("cpu-haswell", "a test"))
    haswell = supported(load_machine("cpu-haswell"))
    assert supported(load_machine("machine")) == haswell
    assert supported(load_machine("./h100-zen4")) == haswell
    assert supported(load_machine(tmp_path / "h100-zen4")) == haswell
    assert load_machine("h100-zen4") == load_machine(BY_NAME["h100-zen4"].facts)
    assert names_file("folder/cuda=13.0")
    assert names_file("cuda=13.0.toml")
    assert not names_file("cuda=13.0")


def test_detector():
    platform = load_machine("h100-zen4")
    metadata = read_metadata(
        '{"default-priorities": {"namespace": ["other"]}, "providers": '
        '{"other": {"requires": ["other-provider"]}}, "variants": {}}',
        "x",
    )
    detector = Detector.of(Preferences(platform_file="h100-zen4"))
    assert detector.platform(metadata).support("other").notice == (
        "h100-zen4 does not list this namespace: write a platform file "
        "(variants platforms h100-zen4 -o FILE) and add a [[provider]] table for it"
    )
    known = read_metadata(
        '{"default-priorities": {"namespace": ["nvidia"]}, "providers": '
        '{"nvidia": {"requires": ["nvidia-variant-provider"]}}, "variants": {}}',
        "x",
    )
    assert detector.platform(known).support("nvidia") == platform.support("nvidia")


class TestSettings:
    def load(self, path, role, options=(), environ=()):
        warnings = []
        found = load_settings(
            dict(options), dict(environ), warn=warnings.append, candidates=[Place(path, role)]
        )
        return found.preferences.platform_file, warnings

    @pytest.mark.parametrize("text", ["h100-zen4", "cuda=12.8,sm=9.0", "h100-zen4,cuda=13.0"])
    def test_a_name_is_no_path_beside_the_file(self, tmp_path, text):
        file = tmp_path / "variants.toml"
        file.write_text(f'platform = "{text}"\n')
        file.chmod(0o600)
        assert self.load(file, Role.USER) == (text, [])

    def test_option_and_variable(self, tmp_path):
        file = tmp_path / "variants.toml"
        variable = {"VARIANTS_PLATFORM": "a100-zen3"}
        assert self.load(file, Role.USER, environ=variable)[0] == "a100-zen3"
        option = {"variant-platform": "cuda=12.8,sm=9.0"}
        assert self.load(file, Role.USER, option, variable)[0] == "cuda=12.8,sm=9.0"

    def test_a_project_needs_approval(self, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
        file = tmp_path / "variants.toml"
        file.write_text('platform = "h100-zen4"\n')
        platform, warnings = self.load(file, Role.PROJECT)
        assert platform is None
        assert "platform ignored: a project's file is not trusted" in warnings[0]
        covered = covered_files(file, file.read_bytes(), {"platform": "h100-zen4"})
        assert [item.path for item in covered] == [file]
        Approvals().add(file, approval_digest(covered))
        assert self.load(file, Role.PROJECT) == ("h100-zen4", [])


def test_facts_are_bounded():
    with pytest.raises(PlatformFileError, match="longer than"):
        parse_facts("cpu=" + "x" * LONGEST)
    with pytest.raises(PlatformFileError, match="is not a CPU"):
        support_of({"cpu": ("x" * 900,)})


def test_options_load_nothing_of_it():
    """pip registers options at every start."""
    code = (
        "import sys, pep_variants.choose.options, pep_variants.detect.detector\n"
        "print([name for name in sys.modules if "
        "'pep_variants' in name and 'machine' in name or 'archspec' in name])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "[]\n", result.stderr
