"""Directories with source code: what they say without a build, and what is not to be had."""

import pytest
from world import cuda, short

from resolvelib_variants.resolution import (
    NoSolution,
    RequirementError,
    RequirementSet,
    parse_requirement,
    read_file,
)
from support.wheels import Wheel
from variants_index.distribution_metadata import read_source_tree
from variants_index.errors import InvalidSourceTree

PROJECT = """
[project]
name = "My.Project"
version = "1.2"
requires-python = ">=3.8"
dependencies = ["tensors>=1; python_version > '3'", "for-gpu; 'nvidia' in variant_namespaces"]

[project.optional-dependencies]
"Nice_Things" = ["nice; sys_platform == 'linux' or sys_platform == 'win32'", "plain"]
"""


@pytest.fixture
def project(tmp_path):
    return write(tmp_path / "project", PROJECT)


def write(folder, text):
    folder.mkdir(exist_ok=True)
    (folder / "pyproject.toml").write_text(text)
    return folder


def test_what_it_says(project):
    tree = read_source_tree(project)
    assert (tree.name, str(tree.version)) == ("my-project", "1.2")
    assert tree.core.requires_python == ">=3.8"
    assert tree.core.extras == {"nice-things"}
    assert tree.core.requires == (
        'tensors>=1; python_version > "3"',
        'nice; (sys_platform == "linux" or sys_platform == "win32") and extra == "nice-things"',
        'plain; extra == "nice-things"',
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[build-system]\nrequires = []", r"its pyproject\.toml has no \[project\] table"),
        ("[project]\nname = 'a'", r"its pyproject\.toml has no project\.version"),
        ("[project]\nversion = '1'", r"its pyproject\.toml has no project\.name"),
        ("[project]\nname = 'a'\ndynamic = ['version', 'readme']", "leaves version to it"),
        ("[project]\nname = 'a'\nversion = '1'\ndynamic = ['dependencies', 'requires-python']",
         "leaves dependencies, requires-python to it"),
        ("[project]\nname = 'a'\nversion = '1'\ndynamic = 'version'", r"dynamic: expected"),
        ("[project]\nname = '-'\nversion = '1'", "pyproject.toml: name is invalid"),
        ("[project]\nname = 'a'\nversion = 'one'", "pyproject.toml: Invalid version: 'one'"),
        ("[project]\nname = 'a'\nversion = '1'\ndependencies = 'b'", r"project\.dependencies: exp"),
        ("[project]\nname = 'a'\nversion = '1'\ndependencies = ['b c']", r"\.dependencies: "),
        ("[project]\nname = 'a'\nversion = '1'\ndependencies = ['b; variant_label']",
         r"project\.dependencies: "),
        ("[project]\nname = 'a'\nversion = '1'\n[project.optional-dependencies]\nx = [1]",
         r"optional-dependencies\.x: expected a list of strings"),
        ("[project]\nname = 'a'\nversion = '1'\noptional-dependencies = 1", "expected a table"),
        ("[project]\nname = 'a'\nversion = '1'\nrequires-python = 3", "expected a string"),
        ("[project", "not valid TOML"),
        ("\udcff".encode("utf-8", "surrogateescape"), "not valid TOML"),
    ],
)  # fmt: skip
def test_what_cannot_be_used(tmp_path, text, message):
    folder = write(tmp_path / "a", "")
    data = text if isinstance(text, bytes) else text.encode()
    (folder / "pyproject.toml").write_bytes(data)
    with pytest.raises(InvalidSourceTree, match=message) as caught:
        read_source_tree(folder)
    assert str(folder) in str(caught.value)


def test_the_way_out_of_a_build(tmp_path):
    with pytest.raises(InvalidSourceTree) as caught:
        read_source_tree(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path} needs a build (it has no pyproject.toml), and nothing is built here: "
        f"run 'pip wheel --no-deps {tmp_path} -w DIR' and name the wheel in DIR instead"
    )


@pytest.mark.parametrize(
    "text",
    [
        "./project", ".//project/", "{folder}/project", "file://{folder}/project",
        "my-project @ file://{folder}/project", "My_Project@file://{folder}/project",
        "./project[nice-things]", "./project ; python_version > '3'",
        "-e ./project", "-e project", "--editable=project", "-e my-project@file://{folder}/project",
    ],
)  # fmt: skip
def test_ways_to_name_it(tmp_path, project, text):
    file = tmp_path / "requirements.txt"
    file.write_text(text.format(folder=tmp_path))
    (wanted,) = read_file(file, {}).requirements
    assert wanted.project == "my-project"
    assert wanted.requirement.url.rstrip("/") == project.as_uri()
    assert wanted.editable == text.startswith("-")
    assert wanted.requirement.extras == ({"nice-things"} if "[" in text else set())
    assert (wanted.requirement.marker is not None) == (";" in text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("./none", "'./none': no such directory"),
        ("-e none", "'none': no such directory"),
        ("-e demo@https://h/demo-1.0.tar.gz", "only a directory can be editable"),
        ("git+https://me:pw@h/demo.git@v1#egg=demo", r"git\+https://\*\*\*\*@h/demo.*pip wheel"),
        ("demo @ git+ssh://git@h/demo", "nothing is checked out of version control here: name a"),
        ("-e hg+https://h/demo#egg=demo", "nothing is checked out of version control here"),
    ],
)  # fmt: skip
def test_ways_that_lead_nowhere(tmp_path, text, message):
    file = tmp_path / "requirements.txt"
    file.write_text(text)
    with pytest.raises(RequirementError, match=message) as caught:
        read_file(file, {})
    assert str(caught.value).startswith(f"{file}:1: ")
    assert "pw" not in str(caught.value)


def test_resolved_with_what_it_needs(world, project):
    world.add(cuda("tensors", "1.0", "12.8"), Wheel("nice", "1"), Wheel("plain", "1"))
    wanted = parse_requirement(f"{project}[nice-things]", editable=True)
    resolution = world.resolve(requirement_set=RequirementSet((wanted,)))
    assert short(resolution) == "my-project-1.2 nice-1 plain-1 tensors-1.0-cu128"
    package = resolution.by_name["my-project"]
    assert package.to_tree() == {
        **package.to_tree(),
        "filename": None,
        "editable": True,
        "url": project.as_uri(),
        "label": None,
        "hashes": {},
        "requested": True,
    }
    plain = world.resolve(str(project))
    assert short(plain) == "my-project-1.2 tensors-1.0-cu128"
    assert not plain.by_name["my-project"].editable


def test_what_others_need_of_it(world, project):
    world.add(cuda("tensors", "1.0", "12.8"))
    world.add(
        *(Wheel("app", version, requires=(f"my-project=={version}",)) for version in ("1.2", "2"))
    )
    world.add(Wheel("my-project", "2"))
    assert world.names("app", str(project)) == "app-1.2 my-project-1.2 tensors-1.0-cu128"
    with pytest.raises(NoSolution):
        world.resolve("app==2", str(project))


def test_for_another_python(world, tmp_path):
    text = "[project]\nname = 'new'\nversion = '1'\nrequires-python = '>=3.99'"
    folder = write(tmp_path / "new", text)
    with pytest.raises(NoSolution) as caught:
        world.resolve(str(folder))
    assert caught.value.details == ("new 1 cannot be used: it needs Python >=3.99",)


def test_a_directory_that_is_called_like_a_wheel(world, tmp_path):
    folder = write(tmp_path / "new-1-py3-none-any-cu128.whl", "[project]\nname='new'\nversion='1'")
    (package,) = world.resolve(f"new @ {folder.as_uri()}").packages
    assert (package.label, package.candidate.is_wheel) == (None, False)


def test_a_requirement_of_a_wheel_that_nobody_checks_out(world):
    world.add(Wheel("demo", "2", requires=("other @ git+https://h/other",)), Wheel("demo", "1"))
    resolution = world.resolve("demo")
    assert short(resolution) == "demo-1"
    (warning,) = resolution.warnings
    assert warning.startswith("demo 2 is left out: git+https://h/other: nothing is checked out")
