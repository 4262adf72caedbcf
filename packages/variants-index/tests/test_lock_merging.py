"""Lock files of several groups by themselves, merged into one."""

from __future__ import annotations

from typing import Any

import pytest
import tomllib
from packaging.markers import default_environment
from packaging.pylock import Pylock

from pep_variants import lock_entries
from pep_variants.errors import LockError
from pep_variants.machines import load_machine
from pep_variants.metadata import metadata_from_tree
from pep_variants.preferences import Preferences
from variants_index import finder

DIGEST = "0" * 64
CUDA = load_machine("cuda=12.8,sm=9.0")


def package(name: str, version: str, marker: str = "", **more: object) -> dict[str, Any]:
    wheel = {
        "url": f"https://files.example/{name}-{version}-py3-none-any.whl",
        "hashes": {"sha256": DIGEST},
    }
    found = {"name": name, "version": version, **({"marker": marker} if marker else {})}
    return {**found, "wheels": [wheel], **more}


def lock(*packages: dict[str, Any], **more: object) -> dict[str, Any]:
    start = {"lock-version": "1.0", "created-by": "uv", "requires-python": ">=3.10"}
    return {**start, **more, "packages": list(packages)}


def merged(locks: dict[str, dict[str, Any]], **builds: Any) -> dict[str, Any]:
    tree = tomllib.loads(finder.merge_locks(locks, builds, "tests").decode())
    Pylock.from_dict(tree)
    return tree


def chosen(tree: dict[str, Any], *groups: str, **environment: str) -> list[tuple[str, str]]:
    here = {**default_environment(), **environment}
    found = Pylock.from_dict(tree).select(environment=here, dependency_groups=groups)
    return [(each.name, str(each.version)) for each, _ in found]


def test_what_groups_have_alike_is_one_package() -> None:
    elsewhere = "sys_platform == 'win32' or sys_platform == 'darwin'"
    both = package("a", "1"), package("b", "1", elsewhere)
    tool = {"other": {"note": "kept"}}
    tree = merged(
        {
            "cpu": lock(*both, package("c", "1"), tool=tool),
            "cuda12.6": lock(*both, package("c", "2")),
            "cuda13.0": lock(*both, package("d", "1")),
        }
    )
    assert tree["dependency-groups"] == ["cpu", "cuda12-6", "cuda13-0"]
    assert (tree["default-groups"], tree["created-by"]) == ([], "tests")
    assert tree["tool"]["other"] == {"note": "kept"}
    found = {(each["name"], each.get("version")): each.get("marker") for each in tree["packages"]}
    assert found == {
        ("a", "1"): None,
        ("b", "1"): elsewhere.replace("'", '"'),
        ("c", "1"): '"cpu" in dependency_groups',
        ("c", "2"): '"cuda12-6" in dependency_groups',
        ("d", "1"): '"cuda13-0" in dependency_groups',
        ("name-a-dependency-group", None): '"cpu" not in dependency_groups and "cuda12-6" not in '
        'dependency_groups and "cuda13-0" not in dependency_groups',
    }


def test_markers_of_the_groups_stay_apart() -> None:
    windows = "sys_platform == 'win32'"
    tree = merged(
        {
            "cpu": lock(package("a", "1", windows), package("a", "2", "sys_platform != 'win32'")),
            "cuda12.6": lock(package("a", "1")),
            "cuda13.0": lock(package("a", "1", f"{windows} or python_version < '3.11'")),
        }
    )
    here = {"sys_platform": "linux", "python_version": "3.12"}
    assert chosen(tree, "cpu", **here) == [("a", "2")]
    assert chosen(tree, "cuda12-6", **here) == [("a", "1")]
    assert chosen(tree, "cuda13-0", **here) == []
    assert chosen(tree, "cuda13-0", **{**here, "python_version": "3.10"}) == [("a", "1")]
    assert chosen(tree, "cpu", **{**here, "sys_platform": "win32"}) == [("a", "1")]


def test_files_that_differ_are_packages_of_their_own() -> None:
    other = package("a", "1", index="https://other.example/simple")
    tree = merged({"cpu": lock(package("a", "1")), "cuda12.6": lock(other)})
    assert [each.get("index") for each in tree["packages"][:2]] == [None, other["index"]]
    assert chosen(tree, "cpu") == chosen(tree, "cuda12-6") == [("a", "1")]


def test_builds_tell_which_group_fits() -> None:
    document = {
        "default-priorities": {"namespace": ["nvidia"]},
        "providers": {"nvidia": {"builtin": "nvidia"}},
        "variants": {"cuda12.6": {"nvidia": {"cuda_version_lower_bound": ["12.6"]}}},
    }
    metadata = metadata_from_tree(document, "tests")
    builds = {"cuda12.6": {"torch": ("cuda12.6", metadata)}}
    same = {"os_name == 'nt'": builds, "os_name != 'nt'": builds}
    tree = merged({"cpu": lock(), "cuda12.6": lock()}, **same)
    own = tree["tool"]["pep-variants"]
    assert own["groups"] == {
        "cpu": {"builds": {}},
        "cuda12-6": {"builds": {"torch": "cuda12.6"}},
    }
    assert own["variants"]["torch"]["variants"] == document["variants"]
    tree = merged({"cuda12.6": lock()}, **{"os_name == 'nt'": builds, "os_name != 'nt'": {}})
    assert tree["tool"]["pep-variants"]["groups"]["cuda12-6"] == [
        {"environment": "os_name == 'nt'", "builds": {"torch": "cuda12.6"}},
        {"environment": "os_name != 'nt'", "builds": {}},
    ]
    for name, expected in (("nt", {"torch"}), ("posix", set())):
        choice = lock_entries.choose_group(
            tree, "", {"os_name": name}, lambda _: CUDA, Preferences()
        )
        assert choice.projects == expected


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"packages": []}, "the lock file of group cuda12.6 is not valid: "),
        (lock(**{"dependency-groups": ["x"]}), "cuda12.6 has dependency groups of its own"),
    ],
)
def test_what_cannot_be_merged(tree: dict[str, Any], message: str) -> None:
    with pytest.raises(LockError, match=message):
        finder.merge_locks({"cpu": lock(), "cuda12.6": tree}, {}, "tests")
