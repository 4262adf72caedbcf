import json
import os
import subprocess
import sys
import zipfile

import pytest
from wheel_files import check_record, contents

from pep_variants.wheelfile.wheel import read_wheel_metadata

PLAIN = "example_pkg-1.0-py3-none-any.whl"
VARIANT = "example_pkg-1.0-py3-none-any-x86_64_v3.whl"
LEVEL_3 = "x86_64 :: level :: v3"


def v3(wheel, *more):
    return ("make", wheel, "--label", "x86_64_v3", "--property", LEVEL_3, *more)


def test_variant_wheel(tmp_path, build_wheel, variants):
    wheel = build_wheel(files={"example_pkg/lib.so": b"\x7fELF" * 1000})
    result = variants(*v3(wheel))
    made = tmp_path / VARIANT
    assert result == (0, f"{made}\n", "")
    before, after = contents(wheel), contents(made)
    variant = json.loads(after["example_pkg-1.0.dist-info/variant.json"])
    assert variant == {
        "$schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
        "default-priorities": {"namespace": ["x86_64"]},
        "variants": {"x86_64_v3": {"x86_64": {"level": ["v3"]}}},
    }
    assert list(after) == [
        *list(before)[:-1],
        "example_pkg-1.0.dist-info/variant.json",
        "example_pkg-1.0.dist-info/RECORD",
    ]
    for name in list(before)[:-1]:
        assert after[name] == before[name]
    check_record(made)
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(made) as new:
        assert new.testzip() is None
        for info in old.infolist():
            copy = new.getinfo(info.filename)
            assert (copy.date_time, copy.external_attr) == (info.date_time, info.external_attr)
        record = old.getinfo("example_pkg-1.0.dist-info/RECORD")
        assert new.infolist()[-2].date_time == record.date_time


def test_output_folder_and_several_wheels(tmp_path, build_wheel, variants):
    first = build_wheel()
    second = build_wheel("example_pkg-1.0-2-cp313-cp313-linux_x86_64.whl")
    out = tmp_path / "new" / "folder"
    result = variants("make", first, second, "--label", "null", "--namespace", "nvidia", "-o", out)
    assert result.code == 0
    names = [
        "example_pkg-1.0-py3-none-any-null.whl",
        "example_pkg-1.0-2-cp313-cp313-linux_x86_64-null.whl",
    ]
    assert result.out.splitlines() == [str(out / name) for name in names]
    for name in names:
        metadata = read_wheel_metadata(out / name, name)
        assert metadata.variants == {"null": {}}
        assert metadata.namespaces == ("nvidia",)
        check_record(out / name)


def test_namespaces_and_properties(tmp_path, build_wheel, variants):
    result = variants(
        "make",
        build_wheel(),
        *("--label", "both", "--namespace", "nvidia"),
        *("--property", "x86_64::level::v3", "--property", " nvidia :: sm_arch :: 90_real"),
        *("--property", "nvidia :: sm_arch :: 80_real", "--property", "nvidia::sm_arch::90_real"),
        *("--property", "abi_dependency :: torch :: 2.9"),
    )
    assert result.code == 0, result.err
    data = contents(result.out.strip())["example_pkg-1.0.dist-info/variant.json"]
    assert json.loads(data) == {
        "$schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
        "default-priorities": {"namespace": ["nvidia", "x86_64"]},
        "variants": {
            "both": {
                "abi_dependency": {"torch": ["2.9"]},
                "nvidia": {"sm_arch": ["80_real", "90_real"]},
                "x86_64": {"level": ["v3"]},
            }
        },
    }


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--property", "abi_dependency :: torch :: abc"], "abc: not a release"),
        (["--property", "abi_dependency :: torch :: 2.9.0.1"], "2.9.0.1: not a release"),
        (["--property", "abi_dependency :: torch__x :: 2"], "not a normalized project name"),
        (
            ["--property", "abi_dependency :: torch :: 2", "--namespace", "abi_dependency"],
            "abi_dependency is reserved",
        ),
    ],
)
def test_abi_dependencies_that_match_nothing(build_wheel, variants, options, words):
    result = variants(
        *("make", build_wheel(), "--label", "x", "--property", "acme :: f :: 1"), *options
    )
    assert (result.code, result.out) == (1, "")
    assert words in result.err


def test_the_variants_that_a_pyproject_lists(tmp_path, build_wheel, variants):
    pyproject = tmp_path / "pyproject.toml"
    pyproject.write_text(PYPROJECT + "[variant.variants]\nmkl = { blas = { library = ['mkl'] } }\n")
    result = variants("make", build_wheel(), "--label", "mkl", "--pyproject", pyproject)
    assert result.code == 0, result.err
    data = contents(result.out.strip())["example_pkg-1.0.dist-info/variant.json"]
    assert json.loads(data)["variants"] == {"mkl": {"blas": {"library": ["mkl"]}}}


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


def test_pyproject(tmp_path, build_wheel, variants):
    pyproject = tmp_path / "pyproject.toml"
    pyproject.write_text(PYPROJECT)
    wheel = build_wheel()
    result = variants(
        *("make", wheel, "--label", "mkl", "--pyproject", pyproject),
        *("--property", "blas :: library :: mkl"),
    )
    assert result.code == 0, result.err
    data = contents(result.out.strip())["example_pkg-1.0.dist-info/variant.json"]
    assert json.loads(data) == {
        "$schema": "https://variants-schema.wheelnext.dev/v0.2.0.json",
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


def test_priorities_that_have_no_place_any_more_are_named(tmp_path, build_wheel, variants):
    pyproject = tmp_path / "pyproject.toml"
    pyproject.write_text(
        PYPROJECT.replace('["nvidia", "blas"]', '["nvidia", "blas"]\nfeature.nvidia = ["sm_arch"]')
    )
    result = variants("make", build_wheel(), "--label", "null", "--pyproject", pyproject)
    assert result.code == 0
    assert result.err.startswith(
        f"warning: {pyproject}: default-priorities.feature does not exist in the current format"
    )


def test_probable_slips_are_named(build_wheel, variants):
    result = variants(
        *("make", build_wheel(), "--label", "x", "--property", "x86_64 :: level :: 3")
    )
    assert result.code == 0
    assert result.err == (
        "warning: variants.x.x86_64.level: 3 is not supported on any machine: "
        "the known values are v4, v3, v2, v1\n"
    )


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
    ],
)
def test_wrong_requests(tmp_path, build_wheel, variants, arguments, code, problem):
    wheel = build_wheel()
    result = variants("make", wheel, *arguments)
    assert result.code == code
    assert result.out == ""
    assert result.err.startswith("error: ")
    assert problem in result.err
    assert len(result.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == [wheel]


@pytest.mark.parametrize(
    ("toml", "arguments", "problem"),
    [
        ("", [], "pyproject.toml: variant.default-priorities.namespace: lists no namespaces"),
        ("[variant", [], "pyproject.toml: not valid TOML"),
        (PYPROJECT, ["--property", LEVEL_3], "pyproject.toml: namespace 'x86_64' is not listed"),
        (
            PYPROJECT,
            ["--property", "blas :: library :: atlas"],
            "'blas :: library :: atlas' is not supported on any machine: static-properties of "
            "'blas' list mkl, openblas for 'library'",
        ),
        (
            PYPROJECT.replace('["mkl", "openblas"]', "[]").replace("library = []", ""),
            ["--property", "nvidia :: sm_arch :: 90_real"],
            "variant.providers.blas: lists no values",
        ),
        (
            PYPROJECT.replace("nvidia-variant-provider>=0.0.2", "acme >< 2"),
            ["--property", "nvidia :: sm_arch :: 90_real"],
            "providers.nvidia.requires: 'acme >< 2'",
        ),
    ],
)
def test_wrong_pyproject(tmp_path, build_wheel, variants, toml, arguments, problem):
    pyproject = tmp_path / "pyproject.toml"
    pyproject.write_text(toml)
    result = variants("make", build_wheel(), "--label", "x", "--pyproject", pyproject, *arguments)
    assert (result.code, result.out) == (1, "")
    assert problem in result.err
    assert len(result.err.splitlines()) == 1


def test_pyproject_and_namespaces_exclude_each_other(tmp_path, build_wheel, variants):
    pyproject = tmp_path / "pyproject.toml"
    pyproject.write_text(PYPROJECT)
    result = variants(
        *("make", build_wheel(), "--label", "null", "--pyproject", pyproject),
        *("--namespace", "x86_64"),
    )
    assert result.code == 2
    assert "--pyproject cannot be combined with --namespace" in result.err


def test_variant_wheels_are_refused(build_wheel, variant_json, variants):
    wheel = build_wheel(VARIANT, variant=variant_json("x86_64_v3", {"x86_64": {"level": ["v3"]}}))
    result = variants(*v3(wheel))
    assert result == (1, "", f"error: {wheel} is a variant wheel: unmake it first\n")
    renamed = wheel.rename(wheel.with_name(PLAIN))
    result = variants(*v3(renamed))
    assert result.code == 1
    assert "has variant metadata in it although its filename has no label: unmake" in result.err
    assert list(renamed.parent.iterdir()) == [renamed]


def test_files_that_exist_are_kept_unless_forced(tmp_path, build_wheel, variants):
    wheel = build_wheel()
    (tmp_path / VARIANT).write_bytes(b"precious")
    result = variants(*v3(wheel))
    assert result.code == 1
    assert result.err == f"error: {tmp_path / VARIANT} exists: use --force to replace it\n"
    assert (tmp_path / VARIANT).read_bytes() == b"precious"
    assert variants(*v3(wheel, "--force")).code == 0
    check_record(tmp_path / VARIANT)


def test_two_wheels_for_one_path(tmp_path, build_wheel, variants):
    first, second = build_wheel(), build_wheel(folder=tmp_path / "b")
    result = variants(*v3(first), second, "-o", tmp_path / "out")
    assert result.code == 1
    assert f"{first} and {second} would both be written to" in result.err


@pytest.mark.parametrize("signature", ["RECORD.jws", "RECORD.p7s"])
def test_signatures_are_left_out(build_wheel, variants, signature):
    name = f"example_pkg-1.0.dist-info/{signature}"
    wheel = build_wheel(
        files={name: "signed"},
        record=lambda text: "".join(
            line for line in text.splitlines(keepends=True) if signature not in line
        ),
    )
    result = variants(*v3(wheel))
    assert result.code == 0
    assert result.err.startswith(f"note: {wheel}: {signature} is not copied")
    assert name not in contents(result.out.strip())
    check_record(result.out.strip())


def test_names_that_are_no_wheels(tmp_path, build_wheel, variants):
    other = build_wheel().rename(tmp_path / "example.whl")
    result = variants(*v3(other))
    assert result.code == 1
    assert "Invalid wheel filename" in result.err
    assert "example" in result.err
    missing = variants(*v3(tmp_path / PLAIN))
    assert missing.code == 2
    assert "does not exist" in missing.err


def test_truncated_wheel_leaves_nothing_behind(tmp_path, build_wheel, variants):
    """The directory at the end is whole, the data is not: found out halfway through."""
    wheel = build_wheel(files={"example_pkg/data.bin": os.urandom(100_000)})
    data = wheel.read_bytes()
    wheel.write_bytes(data[50_000:])
    result = variants(*v3(wheel))
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error: {wheel}: ")
    assert list(tmp_path.iterdir()) == [wheel]


def test_same_bytes_whatever_the_surroundings(tmp_path, build_wheel):
    """Neither locale, umask, hash seed nor working directory show in the result."""
    wheel = build_wheel(files={"example_pkg/ü.txt": "ü" * 1000})
    results = []
    for number, (umask, environment) in enumerate(
        [
            (0o022, {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "UTC"}),
            (0o077, {"PYTHONHASHSEED": "2", "LC_ALL": "C.UTF-8", "TZ": "Asia/Kolkata"}),
        ]
    ):
        out = tmp_path / str(number)
        subprocess.run(
            [
                *(sys.executable, "-c", "from variants_cli.main import main; main()"),
                *("make", wheel, "--label", "cpu", "-o", out),
                *("--property", "b :: y :: 2", "--property", "b :: y :: 1"),
                *("--property", "b :: x :: 1", "--property", "a :: x :: 1"),
            ],
            check=True,
            umask=umask,
            cwd=tmp_path,
            env={**os.environ, **environment},
        )
        (made,) = out.iterdir()
        results.append(made.read_bytes())
        assert made.stat().st_mode & 0o777 == 0o666 & ~umask
    assert results[0] == results[1]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("record_last", [True, False])
def test_unmake_is_the_inverse(tmp_path, build_wheel, variants, method, record_last):
    wheel = build_wheel(method=method, comment=b"made by tests", record_last=record_last)
    made = variants(*v3(wheel, "-o", tmp_path / "made")).out.strip()
    back = variants("unmake", made, "-o", tmp_path / "back").out.strip()
    assert back == str(tmp_path / "back" / PLAIN)
    assert (tmp_path / "back" / PLAIN).read_bytes() == wheel.read_bytes()
    again = variants(*v3(back, "-o", tmp_path / "again")).out.strip()
    assert (tmp_path / "again" / VARIANT).read_bytes() == (tmp_path / "made" / VARIANT).read_bytes()
    assert again != made


def test_unmake_refuses_plain_wheels_and_existing_files(tmp_path, build_wheel, variants):
    wheel = build_wheel()
    made = variants(*v3(wheel)).out.strip()
    result = variants("unmake", made)
    assert result == (1, "", f"error: {wheel} exists: use --force to replace it\n")
    result = variants("unmake", wheel, "-o", tmp_path / "out")
    assert result.code == 1
    assert result.err == f"error: {wheel}: not a variant wheel: it has no variant.json\n"
    assert not (tmp_path / "out").exists()


def test_unmake_of_a_renamed_variant_wheel(tmp_path, build_wheel, variant_json, variants):
    wheel = build_wheel(variant=variant_json("x"))
    result = variants("unmake", wheel, "--force")
    assert result.code == 0, result.err
    assert "example_pkg-1.0.dist-info/variant.json" not in contents(wheel)
    check_record(wheel)


def test_names_that_readers_disagree_about(build_wheel, variants):
    wheel = build_wheel(files={"example_pkg/data.bin": b""})
    wheel.write_bytes(wheel.read_bytes().replace(b"example_pkg/data.bin", b"example_pkg/data\0bin"))
    result = variants("make", wheel, "--label", "null", "--namespace", "x86_64")
    assert result.code == 1
    assert "readers disagree about a name in it" in result.err
