import sys

import pytest
from packaging.markers import default_environment

from pep_variants._model.environment import system_markers, target_environment


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        ("manylinux_2_28_x86_64", ("posix", "linux", "Linux", "x86_64")),
        ("manylinux2014_aarch64", ("posix", "linux", "Linux", "aarch64")),
        ("linux_ppc64le", ("posix", "linux", "Linux", "ppc64le")),
        ("macosx_14_0_arm64", ("posix", "darwin", "Darwin", "arm64")),
        ("win_amd64", ("nt", "win32", "Windows", "AMD64")),
    ],
)
def test_systems_of_tags(platform, expected):
    markers = system_markers(platform)
    assert markers is not None
    keys = ("os_name", "sys_platform", "platform_system", "platform_machine")
    assert tuple(markers[key] for key in keys) == expected


def test_unknown_tags():
    assert system_markers("plan9_mips") is None
    here = target_environment(["plan9_mips"], sys.version_info[:3])
    assert here == default_environment()


HERE = sys.version_info[:2]


@pytest.mark.parametrize(
    ("python", "version", "full"),
    [
        ((3, 99), (3, 99), (3, 99, 0)),
        ((*HERE, 99), HERE, (*HERE, 99)),
    ],
)
def test_another_python(python, version, full):
    environment = target_environment([], python)
    assert environment["python_version"] == ".".join(map(str, version))
    assert environment["python_full_version"] == ".".join(map(str, full))
    if environment["implementation_name"] == "cpython":
        assert environment["implementation_version"] == environment["python_full_version"]
    assert environment["platform_system"] == default_environment()["platform_system"]


def test_the_first_known_tag_decides():
    environment = target_environment(["unknown", "win_amd64", "win32"], sys.version_info[:3])
    assert environment["platform_machine"] == "AMD64"
