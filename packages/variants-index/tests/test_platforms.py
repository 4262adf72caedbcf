"""Platform tags: whose wheel it is, and which wheel serves all that another serves."""

import pytest

from variants_index.target import covers, environment_of, is_for_platform, platform_of_namespaces

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
        ("cp312-cp312-linux_x86_64", "cp312-cp312-manylinux2014_x86_64", True),
        ("cp312-cp312-linux_x86_64", "cp312-cp312-musllinux_1_2_x86_64", True),
        ("cp312-cp312-linux_x86_64", "cp312-cp312-manylinux_2_28_aarch64", False),
        ("cp312-cp312-manylinux_2_28_x86_64", "cp312-cp312-linux_x86_64", False),
        ("py2.py3-none-any", "py3-none-any", True),
        ("py3-none-any", "py2.py3-none-any", True),
        ("py3-none-any", "py2-none-any", False),
        ("cp312-cp312-macosx_11_0_universal2", "cp312-cp312-macosx_12_0_arm64", True),
        ("cp312-cp312-macosx_11_0_arm64", "cp312-cp312-macosx_12_0_universal2", False),
    ],
)  # fmt: skip
def test_covers(tags, others, expected):
    assert covers(tags, others) is expected


def test_environment_does_not_depend_on_where_the_shim_runs():
    assert environment_of(WINDOWS)["sys_platform"] == "win32"
    assert environment_of(MAC)["platform_machine"] == "arm64"
    assert environment_of("")["platform_system"] == "Linux"
