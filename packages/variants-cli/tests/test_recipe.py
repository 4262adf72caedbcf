"""Recipes: many wheels at once, with other names, versions and dependencies."""

import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.metadata import Metadata
from wheel_files import check_record, contents

from pep_variants.errors import InvalidWheel
from pep_variants.wheelfile.core_metadata import requirements_of
from pep_variants.wheelfile.metadata_edits import Edits
from pep_variants.wheelfile.wheel import read_wheel_metadata

NVIDIA = "[variant.default-priorities]\nnamespace = ['nvidia', 'amd']\n"


def metadata_of(wheel):
    (data,) = (data for name, data in contents(wheel).items() if name.endswith("/METADATA"))
    return Metadata.from_email(data, validate=False)


def recipe(tmp_path, text, variant=NVIDIA):
    path = tmp_path / "repack.toml"
    path.write_text(text + variant)
    return path


TORCH = """
project.drop-local-version = true
dependencies.remove = ["nvidia-*-cu12", "triton", "pytorch_triton"]
dependencies.add = [
    "triton==3.6.0; platform_system == 'Linux' and 'nvidia' in variant_namespaces",
    "nvidia-cudnn==9.10.2.21; variant_label == 'cuda12.6' or variant_label == 'cuda12.8'",
    "nvidia-cudnn==9.15.1.9; variant_label == 'cuda13.0'",
]

[[wheel]]
files = ["torch-*+cu126-*.whl"]
label = "cuda12.6"
properties = ["nvidia :: cuda_version_lower_bound :: 12.0", "nvidia :: sm_arch :: 90_real"]

[[wheel]]
files = ["torch-*+rocm6.4-*.whl"]
label = "rocm6.4"
properties = ["amd :: rocm_version :: 6.4"]
dependencies.add = ["pytorch-triton-rocm==3.6.0"]

[[wheel]]
files = ["torch-*+cpu-*.whl"]
label = "null"

[[wheel]]
files = ["torch-*+cpu-*.whl"]
"""


def test_torch(tmp_path, build_wheel, variants):
    tags = "cp312-cp312-manylinux_2_28_x86_64"
    requires = ["filelock", "nvidia-cudnn-cu12==9.10.2.21", "Triton == 3.5 ; os_name == 'posix'"]
    for local, more in (("cu126", requires), ("rocm6.4", ["filelock"]), ("cpu", ["filelock"])):
        build_wheel(
            f"torch-2.10.0+{local}-{tags}.whl",
            requires=more,
            description="Tensors.\n\nRequires-Dist: nothing\n",
            files={"torch-2.10.0+" + local + ".data/scripts/run": "#!python\n"},
        )
    result = variants("make", "--config", recipe(tmp_path, TORCH), "-o", tmp_path / "out")
    assert (result.code, result.err) == (0, "")
    made = [f"torch-2.10.0-{tags}{label}.whl" for label in ("-null", "", "-cuda12.6", "-rocm6.4")]
    assert [Path(line).name for line in result.out.splitlines()] == made
    added = [
        "triton==3.6.0; platform_system == 'Linux' and 'nvidia' in variant_namespaces",
        "nvidia-cudnn==9.10.2.21; variant_label == 'cuda12.6' or variant_label == 'cuda12.8'",
        "nvidia-cudnn==9.15.1.9; variant_label == 'cuda13.0'",
    ]
    for name in made:
        wheel = tmp_path / "out" / name
        check_record(wheel)
        metadata = next(d for n, d in contents(wheel).items() if n.endswith("/METADATA"))
        assert metadata.endswith(b"\n\nTensors.\n\nRequires-Dist: nothing\n")
        assert b"\nVersion: 2.10.0\n" in metadata
        rocm = ["pytorch-triton-rocm==3.6.0"] * ("rocm" in name)
        assert list(requirements_of(metadata)) == ["filelock", *added, *rocm]
        folders = {path.partition("/")[0] for path in contents(wheel)}
        assert folders == {"torch", "torch-2.10.0.dist-info", "torch-2.10.0.data"}
        with zipfile.ZipFile(wheel) as archive:
            assert archive.testzip() is None
        variant = read_wheel_metadata(wheel, name)
        assert (variant is None) is (name == made[1])


CUPY = {
    "cupy-cuda101": ("nvidia :: cuda_version_lower_bound :: 11.0", "cuda10.1"),
    "cupy-cuda102": ("nvidia :: cuda_version_lower_bound :: 11.1", "cuda10.2"),
    "cupy-cuda110": ("nvidia :: cuda_version_lower_bound :: 11.2", "cuda11.0"),
    "cupy-cuda111": ("nvidia :: cuda_version_lower_bound :: 11.3", "cuda11.1"),
    "cupy-cuda11x": ("nvidia :: cuda_version_lower_bound :: 11.4", "cuda11"),
    "cupy-cuda12x": ("nvidia :: cuda_version_lower_bound :: 12", "cuda12"),
    "cupy-cuda13x": ("nvidia :: cuda_version_lower_bound :: 13", "cuda13"),
    "cupy-rocm-4-0": ("amd :: rocm_version :: 4.0", "rocm4.0"),
    "cupy-rocm-4-2": ("amd :: rocm_version :: 4.2", "rocm4.2"),
    "cupy-rocm-4-3": ("amd :: rocm_version :: 4.3", "rocm4.3"),
    "cupy-rocm-5-0": ("amd :: rocm_version :: 5.0", "rocm5.0"),
}


def test_eleven_names_become_one_project(tmp_path, build_wheel, variants):
    text = "project.name = 'cupy'\ndependencies.remove = ['cupy-cuda*']\n"
    text += "dependencies.add = [\"fastrlock>=0.5; 'nvidia' in variant_namespaces\"]\n"
    for name, (item, label) in CUPY.items():
        escaped = name.replace("-", "_")
        build_wheel(
            f"{escaped}-14.0-cp312-cp312-manylinux2014_x86_64.whl",
            files={"cupy/__init__.py": f"build = {name!r}\n"},
            requires=["numpy>=2", "cupy-cuda11x ; extra == 'all'"],
        )
        text += f"[[wheel]]\nfiles = ['{escaped}-*.whl']\nlabel = '{label}'\n"
        text += f"properties = ['{item}']\n"
    out = tmp_path / "out"
    result = variants("make", "--config", recipe(tmp_path, text), "-o", out)
    assert result.code == 0, result.err
    names = sorted(path.name for path in out.iterdir())
    assert names == sorted(
        f"cupy-14.0-cp312-cp312-manylinux2014_x86_64-{label}.whl" for _, label in CUPY.values()
    )
    for path in out.iterdir():
        check_record(path)
        metadata = metadata_of(path)
        assert (metadata.name, str(metadata.version)) == ("cupy", "14.0")
        assert "cupy-14.0.dist-info/RECORD" in contents(path)
    indexed = variants("index", out)
    assert indexed.code == 0
    assert "1 project, 11 wheels, 1 version with variants" in indexed.out
    assert variants("validate", out).code == 0


def test_named_wheels_and_patterns_without_one(tmp_path, build_wheel, variants):
    wheel = build_wheel()
    path = recipe(
        tmp_path,
        "[[wheel]]\nfiles = ['example_*']\nlabel = 'null'\n[[wheel]]\nfiles = ['x*']\nlabel='x'\n"
        "properties=['nvidia :: a :: b']\n",
    )
    result = variants("make", wheel, "--config", path)
    assert result.code == 0
    assert "wheel[1]: no wheel matches x*" in result.err
    other = build_wheel("other-1-py3-none-any.whl")
    result = variants("make", other, "--config", path)
    assert result.code == 1
    assert "no [[wheel]] table matches other-1-py3-none-any.whl" in result.err


def test_attestations_are_told(tmp_path, build_wheel, variants):
    wheel = build_wheel()
    wheel.with_name(wheel.name + ".publish.attestation").write_text("{}")
    result = variants("make", wheel, "--label", "null", "--namespace", "x")
    assert result.code == 0
    assert f"{wheel.name}.publish.attestation attests to {wheel.name} only" in result.err


WRONG = {
    "not valid TOML": "a b",
    "unknown key 'typo'": "typo = 1\n[[wheel]]\nfiles=['*']\n",
    "list wheels": "",
    "wheel[0].files: name the wheels": "[[wheel]]\nlabel = 'x'\n",
    "wheel[0].files: expected a list of strings, found 'x'": "[[wheel]]\nfiles = 'x'\n",
    "wheel[0].label: 'X-1' must match": "[[wheel]]\nfiles = ['*']\nlabel = 'X-1'\n",
    "wheel[0].properties": "[[wheel]]\nfiles = ['*']\nlabel = 'x'\nproperties = ['a::b']\n",
    "a wheel with properties needs a label": "[[wheel]]\nfiles = ['*']\n"
    "properties = ['nvidia :: b :: c']\n",
    "'-' is not a valid project name": "project.name = '-'\n[[wheel]]\nfiles = ['*']\n",
    "must be true or false": "project.drop-local-version = 1\n[[wheel]]\nfiles = ['*']\n",
    "must not have line breaks": 'dependencies.add = ["a\\nName: b"]\n[[wheel]]\nfiles = ["*"]\n',
    "not a valid requirement": "dependencies.add = ['a b']\n[[wheel]]\nfiles = ['*']\n",
    "cannot evaluate": "dependencies.add = [\"a; variant_label > 'x'\"]\n[[wheel]]\nfiles=['*']\n",
    "is not listed in": "[[wheel]]\nfiles = ['*']\nlabel = 'x'\nproperties = ['zzz :: b :: c']\n",
    "would both become": "[[wheel]]\nfiles = ['*']\nlabel = 'null'\n" * 2,
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_recipes_write_nothing(message, tmp_path, build_wheel, variants):
    wheel = build_wheel()
    path = recipe(tmp_path, WRONG[message])
    result = variants("make", wheel, "--config", path)
    assert result.code == 1
    assert message in result.err
    assert str(path) in result.err
    assert sorted(path.name for path in tmp_path.iterdir()) == [wheel.name, "repack.toml"]


def test_config_beside_other_options(tmp_path, build_wheel, variants):
    path = recipe(tmp_path, "[[wheel]]\nfiles = ['*']\n")
    assert variants("make", build_wheel(), "--config", path, "--label", "x").code == 2
    assert variants("make", "--label", "x").code == 2
    assert variants("make", build_wheel()).code == 2


def test_metadata_of_another_project_table(tmp_path, build_wheel, variants):
    (tmp_path / "pyproject.toml").write_text(NVIDIA)
    path = recipe(
        tmp_path, "pyproject = 'pyproject.toml'\n[[wheel]]\nfiles=['*']\nlabel='null'\n", ""
    )
    assert variants("make", build_wheel(), "--config", path).code == 0


LINES = st.lists(
    st.sampled_from(
        [
            "Name: a",
            "Version: 1+l",
            "Requires-Dist: b>=1",
            "requires-dist:c ; extra == 'x'",
            "Requires-Dist: d\n  >=2",
            "Summary: Requires-Dist: b",
            "Classifier: x",
        ]
    )
)


@given(LINES, st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", "\n", "\nb\nName: z\n"]))
def test_other_lines_stay_as_they_are(lines, ending, body):
    text = "".join(f"{line}\n" for line in ("Name: a", "Version: 1+l", *lines)) + body
    data = text.replace("\n", ending).encode()
    assert Edits(remove=("zz",)).edited(data, "w") == data
    edited = Edits(name="new", drop_local=True, remove=("b", "D"), add=("e",)).edited(data, "w")
    kept = [line for line in requirements_of(data) if line[0] not in "bd"]
    assert sorted(requirements_of(edited)) == sorted([*kept, "e"])
    assert edited.endswith(body.replace("\n", ending).encode())
    again = Edits(name="new", drop_local=True, remove=("b", "d")).edited(edited, "w")
    assert again == edited


@pytest.mark.parametrize("data", [b"", b"Name: a\n", b"Version: 1\n\nName: a", b"\xff"])
def test_metadata_that_cannot_be_edited(data):
    with pytest.raises(InvalidWheel, match=r"w\.whl: METADATA"):
        Edits(add=("a",)).edited(data, "w.whl")
