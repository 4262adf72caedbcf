"""Targets: environments and tags of machines that are not this one, and their files."""

import pytest
from packaging.markers import Marker, default_environment
from packaging.tags import Tag

from pep_variants._detect.machines import load_machine
from pep_variants._formats.platform_file import write_platform
from pep_variants._model.platform import Platform
from pep_variants.errors import PlatformFileError
from variants_index._errors import TargetError
from variants_index.target import (
    covers,
    environment_of,
    host_target,
    is_for_platform,
    load_target,
    make_target,
    meets_python,
    platform_of_namespaces,
    read_target,
)

PLATFORM = """
[[provider]]
namespace = "nvidia"
[provider.properties]
cuda_version_lower_bound = ["12.8"]
"""


def test_environment_of_a_platform():
    target = make_target(python_version="3.12", platforms=["windows"])
    assert target.environment["platform_machine"] == "AMD64"
    assert target.environment["python_full_version"] == "3.12.0"
    assert target.environment.keys() == default_environment().keys()
    assert not target.here
    assert Marker(target.marker).evaluate(dict(target.environment))


@pytest.mark.parametrize(
    ("platform", "fits", "does_not"),
    [
        (
            "manylinux_2_28_x86_64",
            ["cp312-cp312-manylinux_2_28_x86_64", "cp312-cp312-manylinux_2_17_x86_64",
             "cp312-cp312-manylinux2014_x86_64", "cp312-cp312-manylinux1_x86_64",
             "cp312-cp312-linux_x86_64", "cp310-abi3-manylinux2010_x86_64", "py3-none-any",
             "cp312-none-any", "py312-none-any"],
            ["cp312-cp312-manylinux_2_31_x86_64", "cp312-cp312-musllinux_1_2_x86_64",
             "cp311-cp311-manylinux_2_28_x86_64", "cp313-abi3-manylinux_2_28_x86_64",
             "cp312-cp312-manylinux_2_28_aarch64"],
        ),
        (
            "manylinux_2_28_aarch64",
            ["cp312-cp312-manylinux_2_17_aarch64", "cp312-cp312-manylinux2014_aarch64"],
            ["cp312-cp312-manylinux_2_12_aarch64", "cp312-cp312-manylinux1_aarch64"],
        ),
        (
            "musllinux_1_2_x86_64",
            ["cp312-cp312-musllinux_1_1_x86_64", "cp312-cp312-linux_x86_64"],
            ["cp312-cp312-musllinux_1_3_x86_64", "cp312-cp312-manylinux_2_17_x86_64"],
        ),
        (
            "macosx_14_0_arm64",
            ["cp312-cp312-macosx_11_0_arm64", "cp312-cp312-macosx_14_0_universal2"],
            ["cp312-cp312-macosx_15_0_arm64", "cp312-cp312-macosx_11_0_x86_64"],
        ),
        ("win_amd64", ["cp312-cp312-win_amd64"], ["cp312-cp312-win32"]),
    ],
)  # fmt: skip
def test_tags_of_a_platform(platform, fits, does_not):
    tags = {str(tag) for tag in make_target(python_version="3.12", platforms=[platform]).tags}
    assert set(fits) <= tags
    assert not set(does_not) & tags


def test_newer_platforms_go_first():
    target = make_target(python_version="3.12", platforms=["manylinux_2_28_x86_64"])
    ordered = [
        target.places[Tag("cp312", "cp312", f"{platform}_x86_64")]
        for platform in ("manylinux_2_28", "manylinux_2_17", "manylinux2014", "linux")
    ]
    assert ordered == sorted(ordered)
    assert target.places[Tag("py3", "none", "any")] > ordered[-1]


def test_another_python_on_this_machine():
    assert make_target() == host_target()
    target = make_target(python_version="3.14.1")
    assert target.here
    assert target.python == "3.14.1"
    assert target.environment["sys_platform"] == default_environment()["sys_platform"]
    assert any(tag.interpreter == "cp314" for tag in target.tags)


def test_another_abi():
    free = make_target(python_version="3.13", platforms=["linux"], abi="cp313t")
    assert Tag("cp313", "cp313t", "manylinux_2_17_x86_64") in free.tags
    assert Tag("cp313", "cp313", "manylinux_2_17_x86_64") not in free.tags


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"python_version": "3"}, "'3' is not a valid python-version: write it like 3.12"),
        ({"python_version": "3.12rc1"}, "'3.12rc1' is not a valid python-version"),
        ({"platforms": ["beos"]}, "platform 'beos' is not known"),
        ({"platforms": ["any"]}, "platform 'any' is not known"),
    ],
)
def test_what_makes_no_sense(options, message):
    with pytest.raises(TargetError, match=message):
        make_target(**options)


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a file into the working directory; return its path."""
    monkeypatch.chdir(tmp_path)

    def write(text, name="h100.toml"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def test_a_target_file(write):
    target = load_target(
        write(
            '[target]\npython-version = "3.12"\nname = "big one"\n'
            f'platform = ["musllinux_1_2_x86_64", "linux_x86_64"]\n{PLATFORM}'
        )
    )
    assert (target.name, target.environment["python_version"]) == ("big one", "3.12")
    assert Tag("cp312", "cp312", "musllinux_1_2_x86_64") in target.tags
    assert target.platform.support("nvidia").features == {"cuda_version_lower_bound": ("12.8",)}


def test_a_platform_file_will_do(write):
    path = write(PLATFORM)
    target = load_target(path)
    assert (target.name, target.platform.source, target.here) == ("h100", str(path), True)
    other = load_target(path, python_version="3.13", platforms=["windows"])
    assert (other.name, other.environment["sys_platform"]) == ("h100", "win32")
    # One of a machine that supports nothing.
    platform = load_target(write(write_platform(Platform({}), "test"))).platform
    assert not any(support.features for support in platform.namespaces.values())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[target", "not valid TOML"),
        ("target = 3", "target: expected a table, found 3"),
        ("[target]\npython = '3.12'", "target.python: unknown key"),
        ("[target]\npython-version = 3.12", "target.python-version: expected text"),
        ("[target]\nplatform = [3]", "target.platform: expected text"),
        ("[target]\nplatform = 'beos'", "target: platform 'beos' is not known"),
        ("[[provider]]\nnamespace = 'No Good'", "not a valid namespace"),
    ],
)
def test_errors_name_file_and_place(write, text, message):
    path = write(text)
    with pytest.raises((TargetError, PlatformFileError), match=message) as caught:
        load_target(path)
    assert str(path) in str(caught.value)
    with pytest.raises(TargetError, match="cannot be read"):
        load_target(path.with_name("none.toml"))


@pytest.fixture(params=["x86_64", "aarch64"])
def here(request, monkeypatch):
    """The family of CPUs of this machine."""
    environment = {**default_environment(), "platform_machine": request.param}
    monkeypatch.setattr("variants_index.target.default_environment", lambda: environment)
    monkeypatch.setattr("sys.platform", "linux")
    return request.param


@pytest.mark.parametrize(
    ("machine", "family"),
    [
        ("h100-zen4", "x86_64"),
        ("gh200-grace", "aarch64"),
        ("cuda=12.8,sm=9.0", ""),
    ],
)
def test_the_system_of_a_machine_is_this_one_if_its_cpu_fits(here, machine, family):
    target = read_target(machine)
    assert (target.name, target.platform) == (machine, load_machine(machine))
    assert target.here == (family in ("", here))
    if not target.here:
        assert Tag("py3", "none", f"manylinux_2_28_{family}") in target.tags
        assert target.environment["platform_machine"] == family
    mac = read_target("apple-m1")
    assert mac.environment["sys_platform"] == "darwin"
    assert Tag("py3", "none", "macosx_14_0_arm64") in mac.tags


def test_a_file_or_a_machine(write):
    for name in ("h100.toml", "h100", "h100-zen4"):
        write(f'[target]\npython-version = "3.12"\n{PLATFORM}', name)
    for machine in ("h100.toml", "h100", "./h100-zen4"):
        assert read_target(machine).environment["python_version"] == "3.12"
    assert read_target("h100-zen4").platform == load_machine("h100-zen4")
    with pytest.raises(PlatformFileError, match="did you mean h100-"):
        read_target("folder/h100")


# Tags alone: whose wheel it is, and which wheel serves all that another serves.

LINUX, WINDOWS, MAC = "linux-x86_64", "win-x86_64", "macosx-aarch64"


@pytest.mark.parametrize(
    ("tag", "targets"),
    [
        ("any", {LINUX, WINDOWS, MAC, "linux-aarch64"}),
        ("manylinux_2_28_x86_64", {LINUX}),
        ("manylinux1_x86_64.manylinux_2_5_x86_64", {LINUX}),
        ("musllinux_1_2_x86_64", {LINUX}),
        ("linux_x86_64", {LINUX}),
        ("manylinux2014_aarch64", {"linux-aarch64"}),
        ("win_amd64", {WINDOWS}),
        ("win_arm64", set()),
        ("macosx_11_0_arm64", {MAC}),
        ("macosx_10_9_universal2", {MAC}),
        ("macosx_10_9_x86_64", set()),
    ],
)
def test_is_for(tag, targets):
    every = {LINUX, WINDOWS, MAC, "linux-aarch64"}
    assert {target for target in every if is_for_platform(tag, target)} == targets
    assert is_for_platform(tag, "")


def test_a_file_tells_its_machine_but_not_its_system():
    target = platform_of_namespaces(("nvidia", "x86_64"))
    assert is_for_platform("manylinux_2_28_x86_64", target)
    assert is_for_platform("win_amd64", target)
    assert not is_for_platform("manylinux_2_28_aarch64", target)
    assert platform_of_namespaces(("nvidia",)) == ""


@pytest.mark.parametrize(
    ("tags", "others", "expected"),
    [
        ("py3-none-any", "cp312-cp312-manylinux_2_17_x86_64", True),
        ("cp312-cp312-manylinux_2_17_x86_64", "py3-none-any", False),
        ("cp312-cp312-manylinux_2_17_x86_64", "cp312-cp312-manylinux_2_28_x86_64", True),
        ("cp312-cp312-manylinux_2_28_x86_64", "cp312-cp312-manylinux_2_17_x86_64", False),
        ("cp312-cp312-manylinux_2_17_x86_64", "cp312-cp312-musllinux_1_2_x86_64", False),
        ("cp312-cp312-manylinux1_x86_64.manylinux_2_5_x86_64",
         "cp312-cp312-manylinux2014_x86_64", True),
        ("cp39-abi3-manylinux_2_17_x86_64", "cp312-cp312-manylinux_2_17_x86_64", True),
        ("cp39-abi3-manylinux_2_17_x86_64", "cp39-cp39-manylinux_2_17_x86_64", True),
        ("cp39-abi3-manylinux_2_17_x86_64", "cp38-cp38-manylinux_2_17_x86_64", False),
        ("cp39-abi3-manylinux_2_17_x86_64", "cp313-cp313t-manylinux_2_17_x86_64", False),
        ("cp310-cp310-linux_x86_64", "cp311-cp311-linux_x86_64", False),
        ("cp312-cp312-linux_x86_64", "cp312-cp312-manylinux_2_28_x86_64", True),
        ("cp312-cp312-linux_x86_64", "cp312-cp312-musllinux_1_2_x86_64", True),
        ("cp312-cp312-linux_x86_64", "cp312-cp312-manylinux_2_28_aarch64", False),
        ("cp312-cp312-manylinux_2_28_x86_64", "cp312-cp312-linux_x86_64", False),
        ("py2.py3-none-any", "py3-none-any", True),
        ("py3-none-any", "py2.py3-none-any", True),
        ("py3-none-any", "py2-none-any", False),
        ("cp312-cp312-macosx_11_0_universal2", "cp312-cp312-macosx_12_0_arm64", True),
        ("cp312-cp312-macosx_11_0_arm64", "cp312-cp312-macosx_12_0_universal2", False),
        ("cp312-cp312-macosx_10_9_x86_64", "cp312-cp312-macosx_10_9_intel", True),
    ],
)  # fmt: skip
def test_covers(tags, others, expected):
    assert covers(tags, others) is expected


def test_environment_does_not_depend_on_where_the_shim_runs():
    assert environment_of(WINDOWS)["sys_platform"] == "win32"
    assert environment_of(MAC)["platform_machine"] == "arm64"
    assert environment_of("")["platform_system"] == "Linux"


@pytest.mark.parametrize(
    ("specifier", "is_met"),
    [
        (None, True),
        (">=3.12", True),
        (">=3.12.0rc1,<3.13", True),
        (">=3.13", False),
        ("three", True),
        (f">={'9' * 5000}", True),
    ],
    ids=["none", "met", "both", "unmet", "invalid", "digits"],
)
def test_meets_python(specifier, is_met):
    """What cannot be read is met, as in pip."""
    assert meets_python(specifier, "3.12.4") is is_met
