"""Other names, versions and dependencies of the wheels that `variants make` writes."""

import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.metadata import Metadata
from wheel_files import check_record, contents

from pep_variants.errors import InvalidWheel
from pep_variants.wheelfile.core_metadata import requirements_of
from pep_variants.wheelfile.rewriting import Edits
from pep_variants.wheelfile.wheel import read_wheel_metadata

BOTH = ("--namespace", "nvidia", "--namespace", "amd")


def metadata_of(wheel):
    (data,) = (data for name, data in contents(wheel).items() if name.endswith("/METADATA"))
    return Metadata.from_email(data, validate=False)


def options(name, values):
    return [word for value in values for word in (f"--{name}", value)]


ADDED = [
    "triton==3.6.0; platform_system == 'Linux' and 'nvidia' in variant_namespaces",
    "nvidia-cudnn==9.10.2.21; variant_label == 'cuda12.6' or variant_label == 'cuda12.8'",
    "nvidia-cudnn==9.15.1.9; variant_label == 'cuda13.0'",
]
TORCH = {
    "cu126": (
        "cuda12.6",
        ["nvidia :: cuda_version_lower_bound :: 12.0", "nvidia :: sm_arch :: 90_real"],
        [],
    ),
    "rocm6.4": ("rocm6.4", ["amd :: rocm_version :: 6.4"], ["pytorch-triton-rocm==3.6.0"]),
    "cpu": ("null", [], []),
}


@pytest.mark.parametrize("local", TORCH)
def test_torch(local, tmp_path, build_wheel, variants):
    label, properties, more = TORCH[local]
    tags = "cp312-cp312-manylinux_2_28_x86_64"
    requires = ["filelock", "nvidia-cudnn-cu12==9.10.2.21", "Triton == 3.5 ; os_name == 'posix'"]
    wheel = build_wheel(
        f"torch-2.10.0+{local}-{tags}.whl",
        requires=requires,
        description="Tensors.\n\nRequires-Dist: nothing\n",
        files={"torch-2.10.0+" + local + ".data/scripts/run": "#!python\n"},
    )
    result = variants(
        *("make", wheel, "--label", label, *BOTH, "-o", tmp_path / "out", "--drop-local-version"),
        *options("property", properties),
        *options("remove-dependency", ["nvidia-*-cu12", "triton", "pytorch_triton"]),
        *options("add-dependency", [*ADDED, *more]),
    )
    made = tmp_path / "out" / f"torch-2.10.0-{tags}-{label}.whl"
    assert result == (0, f"{made}\n", "")
    check_record(made)
    metadata = next(d for n, d in contents(made).items() if n.endswith("/METADATA"))
    assert metadata.endswith(b"\n\nTensors.\n\nRequires-Dist: nothing\n")
    assert b"\nVersion: 2.10.0\n" in metadata
    assert list(requirements_of(metadata)) == ["filelock", *ADDED, *more]
    folders = {path.partition("/")[0] for path in contents(made)}
    assert folders == {"torch", "torch-2.10.0.dist-info", "torch-2.10.0.data"}
    with zipfile.ZipFile(made) as archive:
        assert archive.testzip() is None
    assert [*read_wheel_metadata(made, made.name).variants] == [label]


CUPY = {
    "cupy-cuda110": ("nvidia :: cuda_version_lower_bound :: 11.2", "cuda11.0"),
    "cupy-cuda12x": ("nvidia :: cuda_version_lower_bound :: 12", "cuda12"),
    "cupy-rocm-5-0": ("amd :: rocm_version :: 5.0", "rocm5.0"),
}


def test_several_names_become_one_project(tmp_path, build_wheel, variants):
    out = tmp_path / "out"
    for name, (item, label) in CUPY.items():
        wheel = build_wheel(
            f"{name.replace('-', '_')}-14.0-cp312-cp312-manylinux2014_x86_64.whl",
            files={"cupy/__init__.py": f"build = {name!r}\n"},
            requires=["numpy>=2", "cupy-cuda11x ; extra == 'all'"],
        )
        result = variants(
            *("make", wheel, "--label", label, *BOTH, "--property", item, "--rename", "cupy"),
            *("--remove-dependency", "cupy-cuda*", "-o", out),
            *("--add-dependency", "fastrlock>=0.5; 'nvidia' in variant_namespaces"),
        )
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
    assert "1 project, 3 wheels, 1 version with variants" in indexed.out
    assert variants("validate", out).code == 0


def test_two_wheels_become_one(tmp_path, build_wheel, variants):
    wheels = [build_wheel(f"{name}-1-py3-none-any.whl") for name in ("a", "b")]
    result = variants("make", *wheels, "--label", "null", *BOTH, "--rename", "c")
    assert result.code == 1
    assert f"{wheels[0]} and {wheels[1]} would both be written to " in result.err


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("--rename", "-", "'-': name is invalid: '-'"),
        ("--add-dependency", "a\nName: b", "must be one line"),
        ("--add-dependency", "a b", "'a b': "),
        ("--add-dependency", "a; variant_label > 'x'", "cannot evaluate"),
    ],
)
def test_wrong_edits_write_nothing(option, value, problem, tmp_path, build_wheel, variants):
    wheel = build_wheel()
    result = variants("make", wheel, "--label", "null", *BOTH, option, value)
    assert result.code == 2
    assert problem in result.err
    assert f"'{option}'" in result.err
    assert list(tmp_path.iterdir()) == [wheel]


def test_labels_and_wheels_are_needed(build_wheel, variants):
    assert variants("make", "--label", "x").code == 2
    assert variants("make", build_wheel()).code == 2


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
