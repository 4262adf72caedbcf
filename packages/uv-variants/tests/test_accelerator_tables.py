"""The tables in pyproject.toml for groups of accelerators: what a person wrote stays."""

from __future__ import annotations

from itertools import permutations

import pytest
from packaging.requirements import Requirement

from uv_variants._accelerators.declared import Declared
from uv_variants._accelerators.plan import Member, Plan, check_members, planned
from uv_variants._accelerators.tables import conflicts_of, rewritten
from uv_variants._errors import AcceleratorsUnknown
from variants_catalog.catalogs import shipped_catalog

HOST = "https://download.pytorch.org/whl/"
PYPROJECT = """\
# A project
[project]
name = "team"    # ours
dependencies = [
    "torch >=2",  # fast
    "idna",
]

[dependency-groups]
dev = ["pytest"]   # for tests
docs = [
    "sphinx",
]

[tool.uv]
conflicts = [[{ extra = "a" }, { extra = "b" }]]
default-groups = ["dev", "docs"]

[tool.uv.sources]
idna = { git = "https://example.org/idna" }

[[tool.uv.index]]
name = "mine"
url = "https://example.org/simple"

[tool.ruff]
line-length = 99
"""


def plan(*names: str, moved: tuple[str, ...] = ()) -> Plan:
    return Plan(
        {
            name: [
                Member("torch", "torch", HOST + name.replace("cuda", "cu").replace(".", "")),
                *([Member("cupy", "cupy-cuda12x")] if name != "cpu" else []),
            ]
            for name in names
        },
        moved,
        frozenset({"torch", "torchvision", "cupy", "cupy-cuda12x"}),
    )


def lines(before: str, after: str) -> tuple[list[str], list[str]]:
    """Return the lines that are gone, and those that are new."""
    one, two = before.splitlines(), after.splitlines()
    return [line for line in one if line not in two], [line for line in two if line not in one]


def test_the_rest_stays() -> None:
    text = rewritten(PYPROJECT, plan("cpu", "cuda12.6"))
    gone, new = lines(PYPROJECT, text)
    assert len(gone) == 2
    assert 'default-groups = ["dev", "docs", "cpu", "cuda12.6"]' in new
    pairs = '[[{ extra = "a" }, { extra = "b" }], [{group = "cpu"}, {group = "cuda12.6"}]]'
    assert f"conflicts = {pairs}" in new
    assert '"cuda12.6" = ["torch", "cupy-cuda12x"]' in new
    assert '    {index = "pytorch-cu126", group = "cuda12.6"},' in new
    assert f'url = "{HOST}cu126"' in new
    assert 'indexes = ["pytorch-cpu", "pytorch-cu126"]' in new
    assert rewritten(text, plan("cpu", "cuda12.6")) == text


def test_one_more_one_less_and_none() -> None:
    text = rewritten(PYPROJECT, plan("cpu", "cuda12.6"))
    text = rewritten(text, plan("cpu", "cuda12.6", "cuda13.0"))
    text = rewritten(text, plan("cpu", "cuda13.0"))
    at_once = rewritten(PYPROJECT, plan("cpu", "cuda13.0"))
    assert sorted(text.splitlines()) == sorted(at_once.splitlines())
    assert "12.6" not in text
    text = rewritten(text, plan())
    assert lines(PYPROJECT, text) == ([], [])


def test_what_a_person_added_to_a_group_stays() -> None:
    text = rewritten(PYPROJECT, plan("cuda12.6"))
    text = text.replace(
        '"cuda12.6" = ["torch", "cupy-cuda12x"]',
        'cuda12_6 = [\n    "torch",\n    "torchvision",\n    "nvitop",  # mine\n]',
    )
    text = rewritten(text, plan("cuda12.6"))
    assert '    "nvitop",  # mine\n' in text
    assert "cupy-cuda12x" in text
    assert "torchvision" not in text
    assert text.count("cuda12_6") == 1
    assert "nvitop" in rewritten(text, plan())


def test_an_index_that_is_there_is_used() -> None:
    own = f'\n[[tool.uv.index]]\nname = "pt"\nurl = "{HOST}cpu/"\nexplicit = true\n'
    text = rewritten(PYPROJECT + own, plan("cpu"))
    assert '{index = "pt", group = "cpu"}' in text
    assert text.count("[[tool.uv.index]]") == 2
    assert "indexes" not in text
    assert own in rewritten(text, plan())
    taken = PYPROJECT.replace('name = "mine"', 'name = "pytorch-cpu"')
    assert '{index = "pytorch-cpu-2", group = "cpu"}' in rewritten(taken, plan("cpu"))


def test_requirements_that_groups_have_are_put_back() -> None:
    text = rewritten(PYPROJECT, plan("cuda12.6", moved=("torch>=2",)))
    listed, own = text.index("[dependency-groups]"), text.index("[tool.uv-variants]")
    assert "torch >=2" not in text[:listed]
    assert '    "torch >=2", # fast\n]' in text[own:]
    text = rewritten(text, plan("cuda12.6", "cuda13.0", moved=("torch>=2",)))
    assert '    "torch >=2", # fast\n]' in text[text.index("[tool.uv-variants]") :]
    back = rewritten(text, plan())
    assert '    "torch >=2", # fast\n]' in back[: back.index("[dependency-groups]")]
    assert "moved" not in back
    plain = PYPROJECT.replace(",  # fast", ",")
    assert 'moved = ["torch >=2"]' in rewritten(plain, plan("cuda12.6", moved=("torch>=2",)))


def test_comments_at_members_stay() -> None:
    text = rewritten(PYPROJECT, plan("cuda12.6"))
    own = '[\n  \'torch\',  # "by hand" # 2\n  "cupy-cuda11x",\n]'
    text = text.replace('["torch", "cupy-cuda12x"]', own)
    text = rewritten(text, plan("cuda12.6"))
    assert '  "torch", # "by hand" # 2\n' in text
    assert "cupy-cuda12x" in text
    assert rewritten(text, plan("cuda12.6")) == text


def test_default_groups() -> None:
    for present, wanted in [
        ('default-groups = "all"', 'default-groups = "all"'),
        ("", 'default-groups = ["dev", "cpu"]'),
        ("dev-dependencies = ['pytest']", 'default-groups = ["dev", "cpu"]'),
        ("default-groups = []", 'default-groups = ["cpu"]'),
    ]:
        text = PYPROJECT.replace('default-groups = ["dev", "docs"]', present)
        assert wanted in rewritten(text, plan("cpu"))


def test_files_without_tables_and_with_other_ends_of_lines() -> None:
    text = '[project]\r\nname = "team"\r\n'
    after = rewritten(text, plan("cpu"))
    assert after.startswith(text)
    assert rewritten(text, plan()) == text
    dotted = '[project]\nname = "team"\n\n[tool]\nuv.package = false\n'
    assert rewritten(dotted, plan("cpu")).startswith('[project]\nname = "team"\n')
    assert "default-groups" in rewritten(dotted, plan("cpu"))


def test_errors() -> None:
    own = PYPROJECT.replace("idna = { git", 'torch = { index = "mine" }\nidna = { git')
    with pytest.raises(AcceleratorsUnknown, match=r"tool\.uv\.sources\.torch in pyproject\.toml"):
        rewritten(own, plan("cpu"))
    with pytest.raises(AcceleratorsUnknown, match=r"pyproject\.toml is not valid TOML"):
        rewritten("[project", plan("cpu"))


def test_what_is_declared() -> None:
    assert Declared.of({"tool": {"uv-variants": {"accelerators": ["cpu", 1]}}}) == Declared(
        ("cpu",)
    )
    names = ["cuda12.6", "a b", "", "x\0y", "-x", "--all-groups", "cpu\n"]
    assert Declared.of({"tool": {"uv-variants": {"accelerators": names}}}) == Declared(
        ("cuda12.6",)
    )
    for tree in ({}, {"tool": 1}, {"tool": {"uv-variants": {"accelerators": "cpu"}}}):
        assert Declared.of(tree) == Declared()


def shown(names: list[str], *requirements: str) -> dict[str, list[str]]:
    """Return the members of groups of the shipped catalogue, without the quotes of markers."""
    found = planned(shipped_catalog(), names, list(map(Requirement, requirements)))
    return {
        group: [item.requirement.replace("'", "") for item in members]
        for group, members in found.groups.items()
    }


def test_systems_without_a_build() -> None:
    found = shown(["cpu", "cuda12.6", "cuda13.0"], "torch", "onnxruntime", "jax", "tensorflow")
    assert "onnxruntime; platform_machine == aarch64" in found["cuda12.6"]
    assert "jax[cuda12]>=0.4.35; sys_platform != win32" in found["cuda12.6"]
    gpu = "onnxruntime-gpu[cuda,cudnn]"
    assert f"{gpu}>=1.21; platform_machine != aarch64" in found["cuda13.0"]
    assert f"{gpu}>=1.29; platform_machine == aarch64" in found["cuda13.0"]
    assert "tensorflow; platform_machine == aarch64 or sys_platform == darwin" in found["cpu"]
    pinned = shown(["cuda13.0"], "torch", "onnxruntime==1.27.0; python_version > '3'")
    condition = "python_version > 3 and platform_machine == aarch64"
    assert f"onnxruntime==1.27.0; {condition}" in pinned["cuda13.0"]
    assert shown(["cuda12.6"], "torch")["cuda12.6"] == ["torch"]


def test_a_system_with_another_index() -> None:
    wanted = planned(shipped_catalog(), ["cpu", "cuda12.9"], [Requirement("torch")])
    text = rewritten(PYPROJECT, wanted)
    windows = "marker = \"sys_platform == 'win32'\""
    assert f'{{index = "pytorch-cu128", group = "cuda12.9", {windows}}}' in text
    assert rewritten(text, wanted) == text


@pytest.mark.parametrize("members", [1, 2, 3, 6, 8])
@pytest.mark.parametrize("groups", [1, 2, 3, 5, 6])
def test_conflicts_of_members(members: int, groups: int) -> None:
    names, accelerators = [f"m{number}" for number in range(members)], "abcdef"[:groups]
    met = {
        ((one["package"], one["group"]), (other["package"], other["group"]))
        for row in conflicts_of(names, accelerators)
        for one, other in permutations(row, 2)
    }
    items = [(name, group) for name in names for group in accelerators]
    assert met == {(one, two) for one in items for two in items if one[1] != two[1]}


def test_more_members_than_uv_can_lock() -> None:
    names = [f"m{number}" for number in range(9)]
    check_members(names[:8], ["cpu", "cuda12.6", "cuda13.0"])
    check_members(names, ["cpu", "cuda12.6"])
    with pytest.raises(AcceleratorsUnknown, match="9 members of the workspace require builds: m0"):
        check_members(names, ["cpu", "cuda12.6", "cuda13.0"])


def test_a_build_for_one_gpu() -> None:
    """What its index alone has is in the group, once, and it is the build for this ROCm."""
    names = ["torch", "torchvision", "torchaudio"]
    wanted = planned(shipped_catalog(), ["rocm10.0_gfx1151"], list(map(Requirement, names)))
    members = wanted.groups["rocm10.0_gfx1151"]
    assert {member.index for member in members} == {"https://stable.repo.amd.com/rocm/whl-next"}
    assert sorted(member.requirement for member in members) == [
        "amd-torch-device-gfx1151",
        "amd-torch-device-gfx115x",
        "amd-torchvision-device-gfx1151",
        "rocm",
        "rocm-sdk-core",
        "rocm-sdk-device-gfx1151",
        "rocm-sdk-libraries",
        "torch[device-gfx1151]==2.13.0+rocm10.0.0",
        "torchaudio==2.11.0.2+rocm10.0.0",
        "torchvision[device-gfx1151]==0.28.0+rocm10.0.0",
        "triton; sys_platform == 'linux'",
    ]
