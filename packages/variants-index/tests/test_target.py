"""Targets: environments and tags of machines that are not this one, and their files."""

import pytest
from packaging.markers import Marker, default_environment
from packaging.tags import Tag

from pep_variants.detect.machines import load_machine
from pep_variants.errors import PlatformFileError
from pep_variants.formats.platform_file import write_platform
from pep_variants.model.platform import Platform
from variants_index.errors import TargetError
from variants_index.target import host_target, load_target, make_target, read_target

PLATFORM = """
[[provider]]
namespace = "nvidia"
[provider.properties]
cuda_version_lower_bound = ["12.8"]
"""


@pytest.mark.parametrize(
    ("platform", "environment"),
    [
        ("manylinux_2_28_x86_64", ("posix", "linux", "Linux", "x86_64")),
        ("manylinux2014_aarch64", ("posix", "linux", "Linux", "aarch64")),
        ("musllinux_1_2_x86_64", ("posix", "linux", "Linux", "x86_64")),
        ("linux_ppc64le", ("posix", "linux", "Linux", "ppc64le")),
        ("macosx_14_0_arm64", ("posix", "darwin", "Darwin", "arm64")),
        ("win_amd64", ("nt", "win32", "Windows", "AMD64")),
        ("win_arm64", ("nt", "win32", "Windows", "ARM64")),
        ("linux", ("posix", "linux", "Linux", "x86_64")),
        ("macos", ("posix", "darwin", "Darwin", "arm64")),
        ("windows", ("nt", "win32", "Windows", "AMD64")),
    ],
)
def test_environment_of_a_platform(platform, environment):
    target = make_target(python_version="3.12", platforms=[platform])
    keys = ("os_name", "sys_platform", "platform_system", "platform_machine")
    assert tuple(target.environment[key] for key in keys) == environment
    assert target.environment["python_version"] == "3.12"
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
        ({"python_version": "3"}, "'3' is not a valid python-version"),
        ({"python_version": "three"}, "write it like 3.12"),
        ({"python_version": "3.12rc1"}, "'3.12rc1' is not a valid python-version"),
        ({"platforms": ["beos"]}, "platform 'beos' is not known"),
        ({"platforms": ["any"]}, "platform 'any' is not known"),
    ],
)
def test_what_makes_no_sense(options, message):
    with pytest.raises(TargetError, match=message):
        make_target(**options)


class TestFiles:
    def write(self, tmp_path, text):
        path = tmp_path / "h100.toml"
        path.write_text(text)
        return path

    def test_all_of_it(self, tmp_path):
        path = self.write(
            tmp_path,
            '[target]\npython-version = "3.12"\nplatform = ["musllinux_1_2_x86_64", "linux_x86_64"]'
            f'\nname = "big one"\n{PLATFORM}',
        )
        target = load_target(path)
        assert target.name == "big one"
        assert target.environment["python_version"] == "3.12"
        assert Tag("cp312", "cp312", "musllinux_1_2_x86_64") in target.tags
        assert target.platform.support("nvidia").features == {"cuda_version_lower_bound": ("12.8",)}

    def test_a_platform_file_will_do(self, tmp_path):
        path = self.write(tmp_path, PLATFORM)
        target = load_target(path)
        assert (target.name, target.platform.source) == ("h100", str(path))
        assert target.here
        other = load_target(path, python_version="3.13", platforms=["windows"])
        assert other.name == "h100"
        assert other.environment["sys_platform"] == "win32"

    def test_a_platform_file_of_a_machine_that_supports_nothing(self, tmp_path):
        path = tmp_path / "bare.toml"
        path.write_text(write_platform(Platform({}), "test"))
        platform = load_target(path).platform
        assert platform is not None
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
        ],
    )
    def test_errors_name_file_and_place(self, tmp_path, text, message):
        path = self.write(tmp_path, text)
        with pytest.raises(TargetError, match=message) as caught:
            load_target(path)
        assert str(path) in str(caught.value)

    def test_other_errors(self, tmp_path):
        with pytest.raises(TargetError, match="cannot be read"):
            load_target(tmp_path / "none.toml")
        path = self.write(tmp_path, "[[provider]]\nnamespace = 'No Good'")
        with pytest.raises(PlatformFileError, match="not a valid namespace"):
            load_target(path)


class TestMachines:
    """A machine in place of a file."""

    @pytest.fixture(params=["x86_64", "aarch64"])
    def here(self, request, monkeypatch):
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
            ("cuda=12.8,sm=9.0,cpu=zen4", "x86_64"),
            ("cpu=armv8.2-a", "aarch64"),
            ("cuda=12.8,sm=9.0", ""),
        ],
    )
    def test_its_system_is_this_one_if_its_cpu_fits(self, here, machine, family):
        target = read_target(machine)
        assert target.name == machine
        assert target.platform == load_machine(machine)
        assert target.here == (family in ("", here))
        if not target.here:
            assert Tag("py3", "none", f"manylinux_2_28_{family}") in target.tags
            assert target.environment["platform_machine"] == family

    def test_a_mac(self, here):
        target = read_target("apple-m1")
        assert target.environment["sys_platform"] == "darwin"
        assert Tag("py3", "none", "macosx_14_0_arm64") in target.tags

    def test_files(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        for name in ("h100.toml", "h100", "h100-zen4"):
            (tmp_path / name).write_text(f'[target]\npython-version = "3.12"\n{PLATFORM}')
        for machine in ("h100.toml", "h100", "./h100-zen4"):
            assert read_target(machine).environment["python_version"] == "3.12"
        assert read_target("h100-zen4").platform == load_machine("h100-zen4")

    @pytest.mark.parametrize(
        ("machine", "message"),
        [
            ("h100-zen5", "did you mean h100-zen4"),
            ("folder/h100", "did you mean h100-"),
            ("cuda=9.0", "cuda=9.0 is outside"),
        ],
    )
    def test_no_machine(self, tmp_path, monkeypatch, machine, message):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(PlatformFileError, match=message):
            read_target(machine)
