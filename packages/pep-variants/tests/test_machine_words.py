"""A machine by path, name or facts: what each form means, in every place that takes one."""

import re
from dataclasses import replace

import pytest

from pep_variants._choose.preferences import Preferences
from pep_variants._detect.detector import Detector
from pep_variants._detect.known_gpus import KNOWN_GPUS
from pep_variants._detect.known_machines import BY_NAME, KNOWN_MACHINES
from pep_variants._detect.machines import machine_text, names_file, parse_facts, write_facts
from pep_variants._formats import toml
from pep_variants._formats.reader import metadata_from_tree
from pep_variants._places import Place, Role
from pep_variants._providers.nvidia import CAPABILITY_OVERRIDE, DRIVER_OVERRIDE
from pep_variants._providers.registry import BUILTIN_NAMESPACES
from pep_variants._settings.loader import load_settings
from pep_variants._settings.trust import covered_files
from pep_variants.errors import PlatformFileError
from pep_variants.machines import load_machine


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
    ("cuda=12.8,sm=9.0+12.0+8.6", {"nvidia": {"sm_arch": "120_real"}}),
    ("rocm=6.4,gfx=gfx942", {"amd": {"rocm_version": "6.4", "gfx_arch": "gfx942"}}),
    ("intel=bmg-g31", {"intel": {"device_ip": "20.2.0 20.1.0"}}),
    ("npu=910b,ascend=24.1.rc1,cann=8.0.rc1",
     {"ascend": {"npu_type": "910b", "driver_version": "24.1.rc1", "cann_version": "8.0.rc1"}}),
    ("cpu=x86-64-v3", {"x86_64": {"level": "v3 v2 v1", "avx2": "on"}}),
    ("cpu=Skylake_AVX512", {"x86_64": {"level": "v4", "avx512f": "on"}}),
    ("cpu=neoverse-v2", {"aarch64": {"version": "9.0a", "sve2": "on"}}),
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
    text = machine_text(machine.name, "a test")
    for provider in toml.read_toml(text)["provider"]:
        # uv wants every one of these keys, and a version or URL in `resolved`.
        assert [*provider] == ["resolved", "plugin-api", "namespace", "properties"]
        (resolved,) = provider["resolved"]
        assert re.fullmatch(r"[a-z0-9-]+==[0-9.]+", resolved)
        assert re.fullmatch(r"[a-z0-9_]+\.plugin:[A-Za-z0-9]+", provider["plugin-api"])
        assert bool(provider["properties"]) == bool(named.support(provider["namespace"]).features)
    absent = [each for each, support in named.namespaces.items() if not support.features]
    comments = re.findall(r"^# (?:no |neither |a CPU of another family)", text, re.M)
    assert len(comments) == len(absent)
    assert len({"x86_64", "aarch64"} - {*absent}) == 1
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
    ("folder/none.toml", "folder/none.toml: cannot be read: No such file or directory"),
    (f"{LONG}=1", "longer than 1,000 characters"),
    ("cuda=13.0,h100-zen4", "'h100-zen4' is not known; there are cuda, sm, rocm, gfx, intel, npu, "
                            "ascend, cann, tpu, cpu"),
    ("cuda=", "machine 'cuda=': cuda has no value: write cuda=12.8"),
    ("cuda=12.8,sm", "sm has no value: write sm=9.0"),
    ("cuda=12.8,cuda=12.9", "cuda is given twice"),
    ("cuda=12.8,sm=8.6,sm=9.0", "sm is given twice: write sm=8.6+9.0"),
    ("cuda=12.8+13.0", "cuda has one value, not 2"),
    ("sm=9.0", "sm needs cuda as well, the CUDA version of the driver: add cuda=12.8"),
    ("cuda=twelve", "cuda=twelve is not a CUDA version, such as 12.8"),
    ("cuda=9.0", "cuda=9.0 is outside 11.0 to 15.20, for which there are builds"),
    ("cuda=12.8,sm=90", "sm=90 is not a compute capability, such as 9.0"),
    ("cuda=12.8,sm=3.5", "sm=3.5 is below 5.0, the oldest for which there are builds"),
    ("intel=bmg", "intel=bmg is not an Intel GPU: write its IP version, such as 20.1.0, or "
                  "Intel's name, such as bmg-g31 or bmg-g21"),
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
    tree = {"default-priorities": {"namespace": ["other", "nvidia"]}, "variants": {}}
    tree["providers"] = {
        "other": {"requires": ["other-provider"]},
        "nvidia": {"requires": ["nvidia-variant-provider"]},
    }
    metadata = metadata_from_tree(tree, "x")
    found = Detector.of(Preferences(platform_file="h100-zen4")).platform(metadata)
    assert found.support("other").notice == (
        "h100-zen4 does not list this namespace: write a platform file "
        "(variants platforms h100-zen4 -o FILE) and add a [[provider]] table for it"
    )
    assert found.support("nvidia") == load_machine("h100-zen4").support("nvidia")


@pytest.mark.parametrize("text", ["h100-zen4", "cuda=12.8,sm=9.0"])
def test_a_name_is_no_path_beside_the_file_that_sets_it(tmp_path, text):
    file = tmp_path / "variants.toml"
    file.write_text(f'platform = "{text}"\n')
    file.chmod(0o600)
    settings = load_settings({}, {}, warn=pytest.fail, candidates=[Place(file, Role.USER)])
    assert settings.preferences.platform_file == text
    covered = covered_files(file, file.read_bytes(), {"platform": text})
    assert [item.path for item in covered] == [file]


def test_known_gpus_are_read_as_facts():
    for gpu in KNOWN_GPUS:
        drivers = list(gpu.known_drivers())
        assert bool(drivers) == bool(gpu.drivers), gpu
        assert {gpu.first, gpu.last} <= {"", *(driver.name for driver in drivers)}, gpu
    for machine in {
        gpu.machine(driver)
        for gpu in KNOWN_GPUS
        for driver in (*gpu.known_drivers(), *([] if "sm=" in gpu.facts else [None]))
    }:
        held = [each for each in load_machine(machine).namespaces.values() if each.features]
        assert held, machine
        assert not any(each.notice for each in held), machine


def test_names_of_known_gpus_are_of_one_machine_on_each_system():
    named = [(gpu.name, system) for gpu in KNOWN_GPUS for system in gpu.systems]
    assert len(named) == len(set(named))
    assert {"linux-x86_64", "linux-aarch64", "windows-x86_64", "macos-arm64"} == {
        system for _, system in named
    }


def test_the_newest_driver_of_old_gpus_of_nvidia():
    last = {gpu.facts: [*gpu.known_drivers()][-1].name for gpu in KNOWN_GPUS if gpu.drivers}
    assert (last["sm=6.1"], last["sm=7.0"], last["sm=7.5"]) == ("580", "580", "620")
