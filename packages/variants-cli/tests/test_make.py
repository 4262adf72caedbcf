"""`variants make` and `unmake`: labels, properties, other names and dependencies."""

import json
import os
import subprocess
import sys
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wheel_files import check_record, contents

from pep_variants._wheelfile.wheel import read_wheel_metadata
from pep_variants.errors import InvalidWheel
from pep_variants.wheel_files import Edits, requirements_of
from support.gpu_libraries import library

PLAIN = "example_pkg-1.0-py3-none-any.whl"
VARIANT = "example_pkg-1.0-py3-none-any-x86_64_v3.whl"
INFO = "example_pkg-1.0.dist-info"
LEVEL_3 = "x86_64 :: level :: v3"
SCHEMAS = "https://variants-schema.wheelnext.dev/"
BOTH = ("--namespace", "nvidia", "--namespace", "amd")


def v3(wheel, *more):
    return ("make", wheel, "--label", "x86_64_v3", "--property", LEVEL_3, *more)


def options(name, *values):
    return [word for value in values for word in (f"--{name}", value)]


def test_variant_wheel(tmp_path, build_wheel, variants):
    wheel = build_wheel(files={"example_pkg/lib.so": b"\x7fELF" * 1000})
    made = tmp_path / VARIANT
    assert variants(*v3(wheel)) == (0, f"{made}\n", "")
    before, after = contents(wheel), contents(made)
    assert json.loads(after[f"{INFO}/variant.json"]) == {
        "$schema": f"{SCHEMAS}peps/825/v0.1.1.json",
        "default-priorities": {"namespace": ["x86_64"]},
        "variants": {"x86_64_v3": {"x86_64": {"level": ["v3"]}}},
    }
    assert list(after) == [*list(before)[:-1], f"{INFO}/variant.json", f"{INFO}/RECORD"]
    for name in list(before)[:-1]:
        assert after[name] == before[name]
    check_record(made)
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(made) as new:
        assert new.testzip() is None
        for info in old.infolist():
            copy = new.getinfo(info.filename)
            assert (copy.date_time, copy.external_attr) == (info.date_time, info.external_attr)
        assert new.infolist()[-2].date_time == old.getinfo(f"{INFO}/RECORD").date_time


def test_several_wheels_into_a_directory(tmp_path, build_wheel, variants):
    stems = ("example_pkg-1.0-py3-none-any", "example_pkg-1.0-2-cp313-cp313-linux_x86_64")
    wheels = [build_wheel(f"{stem}.whl") for stem in stems]
    out = tmp_path / "new" / "folder"
    result = variants("make", *wheels, "--label", "null", *BOTH, "-o", out)
    assert result.out.splitlines() == [str(out / f"{stem}-null.whl") for stem in stems]
    for path in out.iterdir():
        metadata = read_wheel_metadata(path, path.name)
        assert (metadata.variants, metadata.namespaces) == ({"null": {}}, ("nvidia", "amd"))
        check_record(path)
    wheels = [build_wheel(f"{name}-1-py3-none-any.whl") for name in ("a", "b")]
    result = variants("make", *wheels, "--label", "null", *BOTH, "--rename", "c")
    assert result.code == 1
    assert f"{wheels[0]} and {wheels[1]} would both be written to " in result.err


def test_namespaces_and_properties(build_wheel, variants):
    properties = (
        "x86_64::level::v3", " nvidia :: sm_arch :: 90_real", "nvidia :: sm_arch :: 80_real",
        "nvidia::sm_arch::90_real", "abi_dependency :: torch :: 2.9",
    )  # fmt: skip
    result = variants(
        *("make", build_wheel(), "--label", "both", "--namespace", "nvidia"),
        *options("property", *properties),
    )
    assert result.code == 0, result.err
    assert json.loads(contents(result.out.strip())[f"{INFO}/variant.json"]) == {
        "$schema": f"{SCHEMAS}peps/825/v0.1.1.json",
        "default-priorities": {"namespace": ["nvidia", "x86_64"]},
        "variants": {
            "both": {
                "abi_dependency": {"torch": ["2.9"]},
                "nvidia": {"sm_arch": ["80_real", "90_real"]},
                "x86_64": {"level": ["v3"]},
            }
        },
    }


def test_properties_of_the_gpu_code(tmp_path, build_wheel, variants):
    code = {"a.so": library(cuda=["80", "90"], ptx=["90"], hip=["gfx942"])}
    wheel = build_wheel(files=code)
    # They are proposed where none are given, and not taken before somebody says so.
    result = variants("make", wheel, "--label", "cuda")
    assert (result.code, result.out) == (1, "")
    assert "variant 'cuda' has no properties: --gpu-code adds those of its GPU code, nvidia" in (
        result.err
    )
    lowest = "nvidia :: cuda_version_lower_bound :: 12.0"
    more = ("--gpu-code", "--property", lowest)
    result = variants("make", wheel, "--label", "cuda", *more)
    assert result.code == 0, result.err
    assert json.loads(contents(result.out.strip())[f"{INFO}/variant.json"])["variants"] == {
        "cuda": {
            "nvidia": {
                "cuda_version_lower_bound": ["12.0"],
                "sm_arch": ["100_virtual", "110_virtual", "120_virtual", "80_real", "90_real",
                            "90_virtual"],
            },
            "amd": {"gfx_arch": ["gfx942"]},
        }
    }  # fmt: skip
    assert variants("validate", result.out.strip(), "--json").json["findings"] == []
    # Wheels of one label have the same properties.
    name = "example_pkg-1.0-py3-none-win_amd64.whl"
    same, other = (
        build_wheel(name, folder=tmp_path / folder, files=files)
        for folder, files in (("same", code), ("other", {"a.so": library(cuda=["80"])}))
    )
    result = variants("make", wheel, same, "--label", "x", *more, "-o", tmp_path / "new")
    assert result.code == 0, result.err
    result = variants("make", wheel, other, "--label", "x", *more)
    assert f"{wheel} and {other} have code for different GPUs" in result.err


def test_no_gpu_code_to_take_properties_from(tmp_path, build_wheel, variants):
    wheel = build_wheel(files={"a.so": library()})
    for more in ((), ("--gpu-code",)):
        result = variants("make", wheel, "--label", "x", *more)
        assert result.code == 1
        assert "variant 'x' has no properties: add at least one" in result.err
    matrix = tmp_path / "matrix.toml"
    matrix.touch()
    result = variants("make", wheel, "--matrix", matrix, "--gpu-code")
    assert (result.code, "--matrix cannot be combined" in result.err) == (2, True)


PYPROJECT = """
[project]
name = "example-pkg"

[variant.default-priorities]
namespace = ["nvidia", "blas"]

[variant.providers.nvidia]
requires = ["nvidia-variant-provider>=0.0.2"]
plugin-api = "nvidia_variant_provider.plugin:NvidiaVariantPlugin"

[variant.providers.blas]
static-properties = { library = ["mkl", "openblas"] }
"""
LISTED = "[variant.variants]\nmkl = { blas = { library = ['mkl'] } }\n"


@pytest.mark.parametrize(
    ("listed", "more"), [(LISTED, ()), ("", ("--property", "blas :: library :: mkl"))]
)
def test_pyproject(tmp_path, build_wheel, variants, listed, more):
    path = tmp_path / "pyproject.toml"
    path.write_text(PYPROJECT + listed)
    result = variants("make", build_wheel(), "--label", "mkl", "--pyproject", path, *more)
    assert result.code == 0, result.err
    assert json.loads(contents(result.out.strip())[f"{INFO}/variant.json"]) == {
        "$schema": f"{SCHEMAS}v0.2.0.json",
        "default-priorities": {"namespace": ["nvidia", "blas"]},
        "providers": {
            "blas": {"static-properties": {"library": ["mkl", "openblas"]}},
            "nvidia": {
                "plugin-api": "nvidia_variant_provider.plugin:NvidiaVariantPlugin",
                "requires": ["nvidia-variant-provider>=0.0.2"],
            },
        },
        "variants": {"mkl": {"blas": {"library": ["mkl"]}}},
    }


def test_probable_slips_are_named(tmp_path, build_wheel, variants):
    path = tmp_path / "pyproject.toml"
    path.write_text(PYPROJECT.replace('"blas"]', '"blas"]\nfeature.nvidia = ["sm_arch"]'))
    result = variants("make", build_wheel(), "--label", "null", "--pyproject", path)
    assert result.code == 0
    assert result.err.startswith(
        f"warning: {path}: default-priorities.feature does not exist in the current format"
    )
    result = variants("make", build_wheel(), "--label", "x", "--property", "x86_64 :: level :: 3")
    assert result.code == 0
    assert result.err == (
        "warning: variants.x.x86_64.level: 3 is not supported on any machine: "
        "the known values are v4, v3, v2, v1\n"
    )


ABI = "abi_dependency :: torch"
X = ["--label", "x", "--property", "acme :: f :: 1"]
NULL = ["--label", "null", *BOTH]


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["--label", "X"], 1, "'X' is not a valid variant label: it must match [0-9a-z_.]{1,128}"),
        (["--label", "a/../../b"], 1, "'a/../../b' is not a valid variant label"),
        (["--label", "x"], 1, "variant 'x' has no properties: add at least one"),
        (["--label", "null"], 1, "name those of the other variants with --namespace"),
        (["--label", "null", "--property", LEVEL_3], 1, "the variant 'null' has no properties"),
        (["--label", "x", "--property", "x86_64::level"], 2, "is not a property: write 'namespace"),
        (["--label", "x", "--property", "x86_64::level::V3"], 2, "'V3' in 'x86_64::level::V3' is"),
        (["--property", LEVEL_3], 2, "Missing option '--label'"),
        (["--label", "null", "--namespace", "A"], 1, "'A' is not a valid namespace"),
        ([*X, "--property", f"{ABI} :: 2.9.0.1"], 1, "2.9.0.1: not a release"),
        ([*X, "--property", f"{ABI}__x :: 2"], 1, "not a normalized project name"),
        ([*X, "--property", f"{ABI} :: 2", "--namespace", "abi_dependency"], 1,
         "abi_dependency is reserved"),
        ([*NULL, "--rename", "-"], 2, "'--rename': '-': name is invalid: '-'"),
        ([*NULL, "--add-dependency", "a\nName: b"], 2, "must be one line"),
        ([*NULL, "--add-dependency", "a b"], 2, "'--add-dependency': 'a b': "),
        ([*NULL, "--add-dependency", "a; variant_label > 'x'"], 2, "cannot evaluate"),
        ([*NULL, "--pyproject", "{wheel}"], 2, "--pyproject cannot be combined with --namespace"),
    ],
)  # fmt: skip
def test_wrong_requests_write_nothing(tmp_path, build_wheel, variants, arguments, code, problem):
    wheel = build_wheel()
    result = variants("make", wheel, *(text.replace("{wheel}", str(wheel)) for text in arguments))
    assert (result.code, result.out) == (code, "")
    assert result.err.startswith("error: ")
    assert problem in result.err
    assert len(result.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == [wheel]


@pytest.mark.parametrize(
    ("toml", "item", "problem"),
    [
        ("", None, "pyproject.toml: variant.default-priorities.namespace: lists no namespaces"),
        ("[variant", None, "pyproject.toml: not valid TOML"),
        (PYPROJECT, LEVEL_3, "pyproject.toml: namespace 'x86_64' is not listed"),
        (PYPROJECT, "blas :: library :: atlas", "'blas :: library :: atlas' is not supported on "
         "any machine: static-properties of 'blas' list mkl, openblas for 'library'"),
        (PYPROJECT.replace('library = ["mkl", "openblas"]', ""), "nvidia :: sm_arch :: 90_real",
         "variant.providers.blas: lists no values"),
        (PYPROJECT.replace("nvidia-variant-provider>=0.0.2", "acme >< 2"),
         "nvidia :: sm_arch :: 90_real", "providers.nvidia.requires: 'acme >< 2'"),
    ],
)  # fmt: skip
def test_wrong_pyproject(tmp_path, build_wheel, variants, toml, item, problem):
    path = tmp_path / "pyproject.toml"
    path.write_text(toml)
    more = ("--property", item) if item else ()
    result = variants("make", build_wheel(), "--label", "x", "--pyproject", path, *more)
    assert (result.code, result.out) == (1, "")
    assert problem in result.err
    assert len(result.err.splitlines()) == 1


def test_wheels_that_are_refused(tmp_path, build_wheel, variants):
    wheel = build_wheel(files={"example_pkg/data.bin": os.urandom(100_000)})
    made = tmp_path / VARIANT
    made.write_bytes(b"precious")
    result = variants(*v3(wheel))
    assert result == (1, "", f"error: {made} exists: use --force to replace it\n")
    assert made.read_bytes() == b"precious"
    (left := made.with_name(f".{made.name}.{'0' * 12}.tmp")).touch()
    os.utime(left, (0, 0))  # of one that was ended
    assert variants(*v3(wheel, "--force")).code == 0
    assert not left.exists()
    check_record(made)
    result = variants(*v3(made))
    assert result == (1, "", f"error: {made} is a variant wheel: unmake it first\n")
    result = variants("unmake", made)
    assert result == (1, "", f"error: {wheel} exists: use --force to replace it\n")
    result = variants("unmake", wheel, "-o", tmp_path / "out")
    assert result == (1, "", f"error: {wheel}: not a variant wheel: it has no variant.json\n")
    made.rename(wheel)
    result = variants(*v3(wheel))
    assert result.code == 1
    assert "has variant metadata in it although its filename has no label: unmake" in result.err
    assert variants("unmake", wheel, "--force").code == 0
    assert f"{INFO}/variant.json" not in contents(wheel)
    check_record(wheel)
    # The directory at the end is whole, the data is not: found out halfway through.
    wheel.write_bytes(wheel.read_bytes()[50_000:])
    result = variants(*v3(wheel))
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error: {wheel}: ")
    other = wheel.rename(tmp_path / "example.whl")
    result = variants(*v3(other))
    assert result.code == 1
    assert "Invalid wheel filename" in result.err
    assert list(tmp_path.iterdir()) == [other]


def test_signatures_are_left_out(build_wheel, variants):
    def unlisted(text):
        return "".join(row for row in text.splitlines(keepends=True) if "RECORD." not in row)

    signatures = {f"{INFO}/RECORD.{kind}": "signed" for kind in ("jws", "p7s")}
    wheel = build_wheel(files=signatures, record=unlisted)
    result = variants(*v3(wheel))
    assert result.code == 0
    notes = [f"note: {wheel}: RECORD.{kind} is not copied" for kind in ("jws", "p7s")]
    assert [line.partition(":")[0] for line in result.err.splitlines()] == ["note"] * len(notes)
    assert all(text in result.err for text in notes)
    assert not signatures.keys() & contents(result.out.strip()).keys()
    check_record(result.out.strip())


def test_same_bytes_whatever_the_surroundings(tmp_path, build_wheel):
    """Neither locale, umask, hash seed nor working directory show in the result."""
    wheel = build_wheel(files={"example_pkg/ü.txt": "ü" * 1000})
    items = ("b :: y :: 2", "b :: y :: 1", "b :: x :: 1", "a :: x :: 1")
    results = []
    for umask, environment in (
        (0o022, {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "UTC"}),
        (0o077, {"PYTHONHASHSEED": "2", "LC_ALL": "C.UTF-8", "TZ": "Asia/Kolkata"}),
    ):
        out = tmp_path / str(umask)
        subprocess.run(
            [
                *(sys.executable, "-c", "from variants_cli.main import main; main()"),
                *("make", wheel, "--label", "cpu", "-o", out, *options("property", *items)),
            ],
            check=True, umask=umask, cwd=tmp_path, env={**os.environ, **environment},
        )  # fmt: skip
        (made,) = out.iterdir()
        results.append(made.read_bytes())
        assert made.stat().st_mode & 0o777 == 0o666 & ~umask
    assert results[0] == results[1]


# Other names, versions and dependencies.

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
def test_edits(local, tmp_path, build_wheel, variants):
    label, properties, more = TORCH[local]
    tags = "cp312-cp312-manylinux_2_28_x86_64"
    requires = ["filelock", "nvidia-cudnn-cu12==9.10.2.21", "Triton == 3.5 ; os_name == 'posix'"]
    wheel = build_wheel(
        f"torch_nightly-2.10.0+{local}-{tags}.whl",
        requires=requires,
        description="Tensors.\n\nRequires-Dist: nothing",
        files={f"torch_nightly-2.10.0+{local}.data/scripts/run": "#!python\n"},
    )
    result = variants(
        *("make", wheel, "--label", label, *BOTH, "-o", tmp_path / "out", "--drop-local-version"),
        *("--rename", "torch", *options("property", *properties)),
        *options("remove-dependency", "nvidia-*-cu12", "triton", "pytorch_triton"),
        *options("add-dependency", *ADDED, *more),
    )
    made = tmp_path / "out" / f"torch-2.10.0-{tags}-{label}.whl"
    assert result == (0, f"{made}\n", "")
    check_record(made)
    metadata = next(d for n, d in contents(made).items() if n.endswith("/METADATA"))
    assert metadata.endswith(b"\n\nTensors.\n\nRequires-Dist: nothing\n")
    assert b"\nName: torch\nVersion: 2.10.0\n" in metadata
    assert list(requirements_of(metadata)) == ["filelock", *ADDED, *more]
    folders = {path.partition("/")[0] for path in contents(made)}
    assert folders == {"torch_nightly", "torch-2.10.0.dist-info", "torch-2.10.0.data"}
    assert [*read_wheel_metadata(made, made.name).variants] == [label]


LINES = st.lists(
    st.sampled_from(
        [
            "Name: a",
            "Version: 1+l",
            "Requires-Dist: b>=1",
            "requires-dist:c ; extra == 'x'",
            "Requires-Dist: d\n  >=2",
            "Summary: Requires-Dist: b",
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


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("record_last", [True, False])
def test_unmake_is_the_inverse(tmp_path, build_wheel, variants, method, record_last):
    wheel = build_wheel(method=method, comment=b"made by tests", record_last=record_last)
    made = variants(*v3(wheel, "-o", tmp_path / "made")).out.strip()
    back = variants("unmake", made, "-o", tmp_path / "back").out.strip()
    assert back == str(tmp_path / "back" / PLAIN)
    assert (tmp_path / "back" / PLAIN).read_bytes() == wheel.read_bytes()
    variants(*v3(back, "-o", tmp_path / "again"))
    assert (tmp_path / "again" / VARIANT).read_bytes() == (tmp_path / "made" / VARIANT).read_bytes()
