"""Build matrices: what a file may say, what comes of it, and how it is shown."""

import json
import os
import shlex
import subprocess
import tarfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pep_variants._model.metadata import Metadata
from variants_cli import matrices
from variants_cli._matrix.backends import additions, is_setuptools, problem_of, read_pyproject
from variants_cli._matrix.combination import combine, select
from variants_cli._matrix.model import Build, BuildError, Matrix, Variant, VariantSettings
from variants_cli._matrix.output import TEXTS, shell
from variants_cli._matrix.reading import read_matrix

FOLDER = Path(matrices.__path__[0])
ALL_FILES = sorted(path.name for path in FOLDER.glob("*.toml"))
AXES = """
[axes.cuda.none]
label = ""

[axes.cuda."12.9"]
label = "cu129"
title = "CUDA 12.9"
properties = ["nvidia :: cuda_version_lower_bound :: 12.0"]
environment = { USE_CUDA = "1" }

[axes.gpu.none]
label = "cpu"
requires = { cuda = "none" }

[axes.gpu.sm90]
title = "H100"
requires = { cuda = ">=11.8" }
properties = ["nvidia :: sm_arch :: 90_real", "nvidia :: sm_arch :: 90_virtual"]
environment.CUDA_ARCHITECTURES = "90"
environment.CXXFLAGS = ["-DSM=90"]

[axes.cpu.v3]
properties = ["x86_64 :: level :: v3"]
environment.CFLAGS = ["-mavx2"]
environment.CXXFLAGS = ["-mavx2", "-DNAME='x y'"]
config-settings = { setup-args = ["-Dcpu=v3"] }
ci = { runs-on = "ubuntu-24.04" }

[axes.cpu.v4]
properties = ["x86_64 :: level :: v4"]
environment.CFLAGS = ["-mavx512f"]
"""


CPU = '[axes.cpu.v3]\nproperties = ["x86_64 :: level :: v3"]\n'


@pytest.fixture
def write(tmp_path):
    """Write a matrix file; the text may begin with keys of its top table."""

    def write(body=AXES, name="matrix.toml", namespaces='["nvidia", "x86_64"]'):
        path = tmp_path / name
        path.write_text(f"variant.default-priorities.namespace = {namespaces}\n{body}")
        return path

    return write


@pytest.fixture
def combined(write):
    """The variants of such a file, by label."""

    def combined(body=AXES):
        return {variant.label: variant for variant in combine(read_matrix(write(body)))}

    return combined


def labels(variants):
    return " ".join(variants)


def texts(items):
    return [str(item) for item in items]


@pytest.mark.parametrize(
    ("keys", "rules", "wanted"),
    [
        ('label = ["cpu", "cuda"]', "", "v3 v4 v3_cu129 v4_cu129"),
        ('label = ["gpu", "cpu"]', "", "cpu_v3 cpu_v4 sm90_v3 sm90_v4"),
        ("", '[[exclude]]\ncpu = "v4"', "cpu_v3 cu129_sm90_v3"),
        ("", '[[exclude]]\ncpu = "v4"\ngpu = "none"', "cpu_v3 cu129_sm90_v3 cu129_sm90_v4"),
        ("", '[[exclude]]\ncuda = ">=12"', "cpu_v3 cpu_v4"),
        ("", '[[exclude]]\ncuda = ["12.9"]\n[[exclude]]\ncpu = "v3"', "cpu_v4"),
    ],
)
def test_labels(combined, keys, rules, wanted):
    assert labels(combined(f"{keys}\n{AXES}\n{rules}")) == wanted


def test_override_replaces_by_feature_and_by_name(combined):
    found = combined(
        AXES
        + """
[[override]]
where = { gpu = "sm90", cpu = "v4" }
label = "hopper"
properties = ["nvidia :: cuda_version_lower_bound :: 12.8"]
environment = { USE_CUDA = "2", CFLAGS = ["-O3"], CXXFLAGS = "-O1" }

[[override]]
environment.MAX_JOBS = "4"
"""
    )
    assert labels(found) == "cpu_v3 cpu_v4 cu129_sm90_v3 hopper"
    settings = found["hopper"].settings
    assert "nvidia :: cuda_version_lower_bound :: 12.8" in texts(settings.properties)
    assert "nvidia :: cuda_version_lower_bound :: 12.0" not in texts(settings.properties)
    assert "nvidia :: sm_arch :: 90_real" in texts(settings.properties)
    assert settings.environment == {
        "USE_CUDA": "2",
        "CUDA_ARCHITECTURES": "90",
        "CXXFLAGS": "-O1",
        "MAX_JOBS": "4",
    }
    assert settings.flags == {"CFLAGS": ("-mavx512f", "-O3")}
    assert found["cpu_v3"].settings.environment == {"MAX_JOBS": "4"}


def test_extends(write, tmp_path):
    write(AXES + '[[exclude]]\ncpu = "v4"\ngpu = "none"\n', name="base.toml")
    child = tmp_path / "sub" / "child.toml"
    child.parent.mkdir()
    child.write_text(
        """
extends = "../base.toml"
label = ["cuda", "gpu", "cpu"]
[axes.cuda."13.0"]
label = "cu130"
[axes.gpu.sm90]
title = "Hopper"
[[exclude]]
cuda = "<13"
"""
    )
    found = {variant.label: variant for variant in combine(read_matrix(child))}
    assert labels(found) == "cpu_v3 cu130_sm90_v3 cu130_sm90_v4"
    assert found["cu130_sm90_v3"].title == "Hopper"
    assert "90_real" in str(found["cu130_sm90_v3"].settings.properties)


def test_shipped_files_have_names(write, variants, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "torchvision-0.24.0-cuda12.9"
    for text in (name, f"{name}.toml"):
        assert "note: 57 variants" in variants("matrix", text).err
    # In a checkout, whose source they build; a file of that name in it comes first.
    assert read_matrix(FOLDER / f"{name}.toml").build.source == Path()
    path = write(f'extends = "{name}"\n[axes.gpu.sm90]\ntitle = "mine"\n')
    (variant,) = select(combine(read_matrix(path)), ["cuda12_9_sm90_avx2"])
    assert variant.values["gpu"].title == "mine"
    assert read_matrix(path).build.source == tmp_path
    (tmp_path / name).write_text(path.read_text().replace(f'"{name}"', '"gone"'))
    assert "gone does not exist" in variants("matrix", name).err


def test_two_kinds_of_blas(write):
    """An axis of one's own over a file of the package."""
    path = write(
        """
        extends = "torch-2.10.0-cuda13.0"
        label = ["cuda", "gpu", "cpu", "blas"]
        variant.providers.mkl = { optional = true, static-properties.build = ["on"] }
        [axes.blas.openblas]
        label = ""
        [axes.blas.mkl]
        properties = ["mkl :: build :: on"]
        requires = { gpu = "none", cpu = ["avx2", "avx512"] }
        [[override]]
        where = { blas = "mkl" }
        environment = { BLAS = "MKL" }
        """,
        namespaces='["nvidia", "bf16_training", "int8_inference", "mkl", "x86_64", "aarch64"]',
    )
    found = {variant.label: variant.settings.environment for variant in combine(read_matrix(path))}
    assert [found[label]["BLAS"] for label in ("cpu_avx2", "cpu_avx2_mkl")] == ["OpenBLAS", "MKL"]
    assert "cuda13_0_sm90_avx2" in found
    assert "cuda13_0_sm90_avx2_mkl" not in found


def test_document(write, variants):
    path = write(
        """
        project = "sample"
        about = { CUDA = "12.9 | 13.0" }
        [axes.kind.release]
        label = ""
        [axes.cpu.null]
        [axes.cpu.v3]
        title = 'Haswell "and newer"'
        properties = ["x86_64 :: level :: v3"]
        about = { Hardware = "Intel Haswell (2013)", "Use for" = "development" }
        """
    )
    found = variants("matrix", path, "--format", "document").out
    assert (
        found
        == """\
# sample: 2 variants

| | |
|---|---|
| CUDA | 12.9 \\| 13.0 |

## Variants

| label | kind | cpu | needs |
|---|---|---|---|
| `null` | release | null | any machine |
| `v3` | release | Haswell "and newer" | x86-64-v3 |

## Which one

```mermaid
flowchart LR
    start{"cpu?"}
    start -->|"null"| start_0
    start_0(["null"])
    start -->|"Haswell #quot;and newer#quot;: x86-64-v3"| start_1
    start_1(["v3"])
```

## cpu

### v3: Haswell "and newer"

- Needs: x86-64-v3
- Hardware: Intel Haswell (2013)
- Use for: development
"""
    )
    reference = variants("matrix", path, "--reference").out
    assert reference == found[found.index("## cpu") :]
    assert variants("matrix", path, "--reference", "--only", "null").out == "\n"


def test_sources_are_relative_to_the_file(write, tmp_path):
    assert read_matrix(write()).build.source == tmp_path
    path = write(AXES + '[build]\nsource = "../project"\n')
    assert read_matrix(path).build.source == tmp_path / "../project"


def test_empty_list_takes_the_place_of_the_extended_one(write):
    write(FLAGS, name="base.toml")
    child = 'extends = "base.toml"\n[axes.cpu.v3]\nenvironment.FFLAGS = []\nflags.c = []\n'
    (variant,) = combine(read_matrix(write(child)))
    assert variant.settings.flags == {}
    assert variant.settings.environment == {"LDFLAGS": "-s"}
    assert variant.settings.compiler_flags["c"] == ()


def test_what_is_ruled_out_does_not_grow(combined):
    """A thousand million combinations, one of which there is."""
    axes = [f"[axes.a{n}.v{value}]\n" for n in range(9) for value in range(10)]
    rules = [f'[[exclude]]\na{n} = ["v{value}"]\n' for n in range(9) for value in range(1, 10)]
    axes[0] += CPU.partition("\n")[2]
    assert labels(combined("".join(axes + rules))) == "_".join(["v0"] * 9)


@pytest.mark.parametrize(
    ("condition", "name", "matches"),
    [
        (["a", "b"], "b", True),
        (["a", "b"], "c", False),
        ("a", "a", True),
        (">=12.9", "12.9.1", True),
        (">=12.9", "12.8", False),
        (">=12.9,<14", "14.0", False),
        ("<14", "13.0rc1", True),
        (">=0", "none", False),
    ],
)
def test_conditions(write, condition, name, matches):
    values = ("a", "b", "c", "12.8", "12.9.1", "13.0rc1", "14.0", "none")
    axis = "".join(f'[axes.n."{value}"]\n' for value in values)
    requires = f"[axes.own.x]\nrequires.n = {json.dumps(condition)}\n"
    (value,) = read_matrix(write(axis + requires)).axes["own"]
    assert (name in value.requires["n"]) == matches


V4 = '[axes.more.x]\nproperties = ["x86_64 :: level :: v4"]'
SM90 = CPU + "[axes.gpu.sm90]\n"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        # One in full, to show what all of them are like: place, value, and way out.
        (
            CPU + "[axes.cpu.V4]",
            "axes.cpu.V4.label: 'V4' is not valid in a label: it must match [0-9a-z_.]*; "
            "add the key to have another one than the name\n",
        ),
        ("", "axes: there are none: add a table"),
        ("[axes.cpu]", "axes.cpu: has no values: add one"),
        ("[axes.CPU.a]", "axes: 'CPU' is not a valid axis name"),
        ("variant.axis = 1\n" + CPU, "variant.axis: unknown key; the keys are $schema, "),
        (
            CPU + "[bild]",
            "bild: unknown key; the keys are extends, project, about, label, variant, ",
        ),
        (CPU + "property = []", "axes.cpu.v3.property: unknown key; the keys are label, title"),
        (CPU + 'label = "a-b"', "axes.cpu.v3.label: 'a-b' is not valid in a label"),
        (CPU + "title = 1", "axes.cpu.v3.title: expected a string, found 1"),
        (CPU + 'requires.gpu = "a"', "axes.cpu.v3.requires: 'gpu' is not an axis; there are cpu"),
        (CPU + 'requires.cpu = "v3"', "axes.cpu.v3.requires: names the axis 'cpu' itself"),
        (SM90 + 'requires.cpu = ["v5"]', "axes.gpu.sm90.requires.cpu: 'v5' is not a value of"),
        (SM90 + 'requires.cpu = ">=x"', "axes.gpu.sm90.requires.cpu: '>=x' is not a version "),
        (CPU + "[[exclude]]", "exclude[0]: would exclude everything: name an axis"),
        (CPU + "[exclude]", "exclude: expected tables such as [[exclude]], found {}"),
        (CPU + "[[exclude]]\ncpu = 3", "exclude[0].cpu: expected a name, versions such as"),
        (CPU + '[[exclude]]\ncpu = "v3"', "axes: no combination remains: check 'requires'"),
        (CPU + 'host = "arm"', "axes.cpu.v3.host: 'arm' is not a valid environment marker"),
        (CPU + 'environment = "CFLAGS"', "axes.cpu.v3.environment: expected a table"),
        (CPU + 'environment."A B" = "x"', "axes.cpu.v3.environment: 'A B' is not a valid variable"),
        (CPU + "environment.A = 1", "axes.cpu.v3.environment.A: expected a string to set, or"),
        (CPU + "config-settings.a = true", "axes.cpu.v3.config-settings.a: expected a string, or"),
        (CPU + "ci.a = 1", "axes.cpu.v3.ci.a: expected a string, found 1"),
        ('[axes.cpu.v3]\nproperties = ["x86_64"]', "axes.cpu.v3.properties: 'x86_64' is not a"),
        ('[axes.cpu.v3]\nproperties = "a"', "axes.cpu.v3.properties: expected a list of strings"),
        ('[axes.cpu.v3]\nproperties = ["amd :: gfx_arch :: gfx942"]', "cpu=v3: "),
        (CPU + V4.replace("more.x", "cpu.null"), "cpu=null: "),
        (
            "".join(f"[axes.cpu.v{number}]\n" for number in range(1001)),
            "axes: have 1001 values, at most 1000 are read",
        ),
        (
            "".join(f"[axes.a{axis}.v{value}]\n" for axis in range(100) for value in range(10)),
            "axes: their combinations need 6543210 checks of conditions, at most 1000000 are made",
        ),
        ("[axes.cpu.v3]", "cpu=v3: variant 'v3' has no properties"),
        ('[axes.cpu.v3]\nlabel = ""', "label: cpu=v3 has an empty label: give one of these"),
        (CPU + '[axes.cpu.x]\nlabel = "v3"', "label: cpu=v3 and cpu=x both have the label 'v3'"),
        (
            CPU + V4,
            "cpu=v3, more=x: properties: axes 'cpu' and 'more' both set 'x86_64 :: level'",
        ),
        (
            CPU + 'environment.A = "1"\n[axes.more.x]\nenvironment.A = ["2"]',
            "cpu=v3, more=x: A is set by one value and appended to by another",
        ),
        (CPU + '[[override]]\nlabel = "A"', "override[0].label: "),
        (
            CPU + 'environment.TORCH_CUDA_ARCH_LIST = "8.0;sm_120a+PTX"',
            "axes.cpu.v3.environment.TORCH_CUDA_ARCH_LIST: PyTorch does not take 'sm_120a+PTX': "
            "write 12.0a+PTX",
        ),
        (CPU + "[axes.cpu.v3.", "not valid TOML: "),
        ('label = ["gpu"]\n' + CPU, "label: 'gpu' is not an axis; there are cpu"),
        ('label = "cpu"\n' + CPU, "label: expected a list of strings, found 'cpu'"),
        ("extends = 1\n" + CPU, "extends: expected a string, found 1"),
        ('extends = "matrix.toml"\n' + CPU, "extends: extends itself in a circle"),
        ('extends = "gone.toml"\n' + CPU, "extends: "),
        ("variant.variants = {}\n" + CPU, "variant.variants: the axes say what variants there"),
    ],
)
def test_errors_name_place_and_value(write, variants, body, message):
    path = write(body)
    result = variants("matrix", path)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error: {path}: {message}"), result.err


@pytest.mark.parametrize(
    ("namespaces", "message"),
    [
        ("[]", "variant.default-priorities.namespace: lists no namespaces: list those of"),
        ("['A']", "variant: default-priorities.namespace: 'A'"),
    ],
)
def test_namespaces_are_wanted(write, variants, namespaces, message):
    path = write(CPU, namespaces=namespaces)
    assert variants("matrix", path).err.startswith(f"error: {path}: {message}")


def test_probable_slips_are_warned_of(write, variants):
    result = variants("matrix", write(CPU.replace(":: v3", ":: v9")))
    assert result.code == 0
    assert "warning: " in result.err
    assert "v9" in result.err


# What is printed.


def test_table(write, variants):
    result = variants("matrix", write())
    assert result.out.splitlines()[2].split("  ")[0] == "cu129_sm90_v3"
    assert "CUDA driver 12.0 or newer, compute capability 9.0, x86-64-v3" in result.out
    assert result.err == "note: 4 variants\n"
    result = variants("matrix", write(), "--only", "cpu=v3")
    assert [line.split()[0] for line in result.out.splitlines()] == ["cpu_v3", "cu129_sm90_v3"]
    assert result.err == "note: 2 variants of 4\n"
    # One of eleven is not what a variant needs.
    row, *_ = variants("matrix", FOLDER / "torch-2.9.0-rocm.toml").out.splitlines()
    assert row.endswith(
        "ROCm 6.4, AMD GPU gfx900, gfx906, gfx908, gfx90a, gfx942, gfx1030, gfx1100, gfx1101, "
        "gfx1102, gfx1200, gfx1201"
    )


def test_json(write, variants):
    result = variants("matrix", write(), "--format", "json", "--only", "cu129_sm90_v3")
    assert result.json == [
        {
            "label": "cu129_sm90_v3",
            "values": {"cuda": "12.9", "gpu": "sm90", "cpu": "v3"},
            "title": "CUDA 12.9; H100",
            "properties": [
                "nvidia :: cuda_version_lower_bound :: 12.0",
                "nvidia :: sm_arch :: 90_real",
                "nvidia :: sm_arch :: 90_virtual",
                "x86_64 :: level :: v3",
            ],
            "environment": {"USE_CUDA": "1", "CUDA_ARCHITECTURES": "90"},
            "flags": {"CXXFLAGS": "-DSM=90 -mavx2 -DNAME='x y'", "CFLAGS": "-mavx2"},
            "compiler_flags": {},
            "config_settings": {"setup-args": ["-Dcpu=v3"]},
            "hosts": [],
            "ci": {"runs-on": "ubuntu-24.04"},
        }
    ]


def test_github(write, variants):
    result = variants("matrix", write(), "--format", "github", "--only", "cpu=v3")
    assert len(result.out.splitlines()) == 1  # as $GITHUB_OUTPUT wants it
    jobs = result.json["include"]
    assert [job["variant"] for job in jobs] == ["cpu_v3", "cu129_sm90_v3"]
    assert jobs[1] == {
        "cuda": "12.9",
        "gpu": "sm90",
        "cpu": "v3",
        "variant": "cu129_sm90_v3",
        "environment": {
            "USE_CUDA": "1",
            "CUDA_ARCHITECTURES": "90",
            "CXXFLAGS": "-DSM=90 -mavx2 -DNAME='x y'",
            "CFLAGS": "-mavx2",
        },
        "runs-on": "ubuntu-24.04",
    }


FLAGS = """
[axes.cpu.v3]
properties = ["x86_64 :: level :: v3"]
environment = { LDFLAGS = "-s", FFLAGS = ["-g"] }
[axes.cpu.v3.flags]
c = ["-mavx2", "-DNAME=x y"]
cuda = ["--use_fast_math"]
fortran = ["-mavx2"]
link = ["-Wl,-O1"]
"""
CONSTANT = {
    "LDFLAGS": "-s -Wl,-O1",
    "FFLAGS": "-g -mavx2",
    "NVCC_APPEND_FLAGS": "--use_fast_math",
}


@pytest.fixture
def with_backend(write, tmp_path):
    """Write a matrix with flags beside a project of a backend."""

    def with_backend(backend):
        system = f'[build-system]\nrequires = []\nbuild-backend = "{backend}"\n'
        (tmp_path / "pyproject.toml").write_text(system)
        return write(FLAGS)

    return with_backend


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    ("backend", "before", "expected"),
    [
        ("setuptools.build_meta", None, "-DNDEBUG  -O3 -mavx2 '-DNAME=x y'"),
        ("setuptools.build_meta", "-O1", "-O1 -mavx2 '-DNAME=x y'"),
        ("setuptools.build_meta", "", " -mavx2 '-DNAME=x y'"),
        ("scikit_build_core.build", None, "-mavx2 '-DNAME=x y'"),
        ("scikit_build_core.build", "-O1", "-O1 -mavx2 '-DNAME=x y'"),
    ],
)
def test_flags_in_a_shell(with_backend, variants, tmp_path, backend, before, expected):
    """They are added to the flags of the interpreter that is there, as in a build."""
    script = variants("matrix", with_backend(backend), "--format", "shell").out
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(
        "#!/bin/sh\n[ \"$1\" = -c ] && case $2 in *'(\"CFLAGS\")'*) echo '-DNDEBUG  -O3';; esac\n"
    )
    python.chmod(0o755)
    environ = {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    if before is not None:
        environ["CFLAGS"] = before
    names = ["CFLAGS", *CONSTANT]
    printed = "".join(f'printf "%s\\n" "${name}"\n' for name in names)
    done = subprocess.run(
        ["sh", "-euc", f"{script}\n{printed}"],
        env=environ, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert dict(zip(names, done.stdout.splitlines(), strict=True)) == {
        "CFLAGS": expected,
        **CONSTANT,
    }


@pytest.mark.parametrize(
    ("backend", "more"),
    [
        # Only the machine that builds knows what the variable has to begin with.
        ("setuptools.build_meta", {}),
        ("scikit_build_core.build", {"CFLAGS": "-mavx2 '-DNAME=x y'"}),
    ],
)
def test_flags_in_jobs(with_backend, variants, backend, more):
    path = with_backend(backend)
    (job,) = variants("matrix", path, "--format", "github").json["include"]
    assert job["environment"] == {**CONSTANT, **more}


def test_cibuildwheel(write, variants):
    path = write(
        CPU + "environment = { CFLAGS = ['-mavx2', '-DNAME=x'], LEVEL = '3 or more' }\n"
        "config-settings = { setup-args = ['-Da=b c', '-Dd'] }"
    )
    lines = variants("matrix", path, "--format", "cibuildwheel").out.splitlines()
    assert [shlex.split(line) for line in lines] == [
        ["export", 'CIBW_ENVIRONMENT=LEVEL="3 or more" CFLAGS="$CFLAGS -mavx2 -DNAME=x"'],
        ["export", "CIBW_CONFIG_SETTINGS='setup-args=-Da=b c' setup-args=-Dd"],
    ]


@pytest.mark.parametrize(
    ("form", "place"), [("shell", "a shell"), ("cibuildwheel", "one run of cibuildwheel")]
)
def test_environment_of_one_variant(write, variants, form, place):
    result = variants("matrix", write(), "--format", form)
    assert (result.code, result.out) == (1, "")
    assert f"{place} has the environment of one variant, these are 4" in result.err
    assert "(cpu_v3, cpu_v4, …): select one with --only" in result.err


# Which of them.


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_shell_takes_nothing_for_itself(text):
    variant = Variant(
        "v3", {}, VariantSettings(environment={"SET": text}, flags={"ADDED": (text, text)})
    )
    matrix = Matrix("m.toml", Metadata(()), {}, (), (), (), Build(Path("/nothing")))
    script = shell(matrix, [variant]) + '\nprintf "%s" "$SET|$ADDED"'
    environ = {"PATH": os.environ["PATH"], "ADDED": text}
    done = subprocess.run(["sh", "-euc", script], env=environ, capture_output=True, check=True)
    added = f"{text} {text} {text}" if text else f"{text} {text}"
    assert done.stdout.decode() == f"{text}|{added}"


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ([], "cpu_v3 cpu_v4 cu129_sm90_v3 cu129_sm90_v4"),
        (["cpu_v3"], "cpu_v3"),
        (["*_v4"], "cpu_v4 cu129_sm90_v4"),
        (["cpu_*", "cu129_sm90_v3"], "cpu_v3 cpu_v4 cu129_sm90_v3"),
        (["gpu=sm90"], "cu129_sm90_v3 cu129_sm90_v4"),
        (["gpu=sm90", "cpu=v4"], "cu129_sm90_v4"),
        (["gpu=sm90", "gpu=none", "cpu=v4"], "cpu_v4 cu129_sm90_v4"),
        (["cu*", "cpu=v4"], "cu129_sm90_v4"),
    ],
)
def test_only(combined, wanted, found):
    variants = list(combined().values())
    assert labels(variant.label for variant in select(variants, wanted)) == found


@pytest.mark.parametrize("wanted", [["nonsense"], ["cpu=v5"], ["tpu=v3"], ["cpu_*", "gpu=sm90"]])
def test_only_nothing(write, variants, wanted):
    options = [text for which in wanted for text in ("--only", which)]
    result = variants("matrix", write(), *options)
    assert (result.code, result.out) == (1, "")
    assert wanted[-1].partition("=")[0] in result.err


# What the documentation shows, and the files that come with the package.


def test_documentation(variants, tmp_path, monkeypatch):
    docs = Path(__file__).parents[3] / "docs"
    text = "".join((docs / kind / "matrix.md").read_text() for kind in ("how-to", "reference"))
    blocks = [part.partition("```")[0] for part in text.split("```toml\n")[1:]]
    monkeypatch.chdir(tmp_path)
    (first,) = (block for block in blocks if "[axes.cuda.none]" in block)
    (override,) = (block for block in blocks if "sm120" in block)
    Path("matrix.toml").write_text(first + override.replace("sm120", "sm90"))
    assert "CUDA driver 12.8 or newer" in variants("matrix", "matrix.toml").out
    for kind in ("table", *TEXTS, "metadata"):
        assert f"`{kind}`" in text
    for name in ALL_FILES:
        assert f"`{name}`" in text or name == "pytorch.toml"


# As PyTorch 2.10 has it (torch/utils/cpp_extension.py, supported_arches): what extensions such as
# torchvision can be built for, which is less than the rule admits.
EXTENSION_ARCHITECTURES = """
    3.5 3.7 5.0 5.2 5.3 6.0 6.1 6.2 7.0 7.2 7.5 8.0 8.6 8.7 8.9 9.0 9.0a 10.0 10.0a 11.0 11.0a
    10.3 10.3a 12.0 12.0a 12.1 12.1a
""".split()


@pytest.mark.parametrize("name", ALL_FILES)
def test_shipped_architectures_are_those_of_the_properties(name):
    for variant in combine(read_matrix(FOLDER / name)):
        real = [
            item.value.removesuffix("_real")
            for item in variant.settings.properties
            if item.feature == "sm_arch"
        ]
        text = variant.settings.environment.get("TORCH_CUDA_ARCH_LIST", "")
        architectures = text.split(";") if text else []
        assert set(architectures) <= set(EXTENSION_ARCHITECTURES)
        assert [architecture.replace(".", "") for architecture in architectures] == real
        if real:
            assert variant.settings.environment["CMAKE_CUDA_ARCHITECTURES"] == ";".join(real)


# Flags that add: what each build backend is given, for what a project sets itself.

C = {"c": ("-mavx2", "-DX=a b")}
BOTH = {"c": ("-mavx2",), "cxx": ("-mavx2", "-g"), "msvc": ("/arch:AVX2",)}
OTHER = {"build-system": {"build-backend": "mesonpy"}}


@pytest.mark.parametrize(
    ("flags", "pyproject", "environ", "system", "expected"),
    [
        (BOTH, {}, {}, "linux", {"CFLAGS": "-DNDEBUG -O3 -mavx2",
                                 "CXXFLAGS": "-DNDEBUG -O3 -mavx2 -g"}),
        # What null compiles with then, and the flags behind it.
        (BOTH, {}, {"CFLAGS": "-O2", "CXXFLAGS": ""}, "darwin",
         {"CFLAGS": "-O2 -mavx2", "CXXFLAGS": "-mavx2 -g"}),
        (BOTH, {}, {}, "win32", {"_CL_": "/arch:AVX2"}),
        (C, OTHER, {}, "linux", {"CFLAGS": "-mavx2 '-DX=a b'"}),
        (C, OTHER, {}, "win32", {"CFLAGS": '-mavx2 "-DX=a b"'}),
        ({"fortran": ("-g",), "link": ("-Wl,-O1",), "rust": ("-C", "opt"), "cuda": ()}, {},
         {"LDFLAGS": "-s"}, "linux",
         {"FFLAGS": "-g", "LDFLAGS": "-s -Wl,-O1", "RUSTFLAGS": "-C opt"}),
    ],
)  # fmt: skip
def test_additions(flags, pyproject, environ, system, expected):
    found = additions(flags, pyproject, environ, system=system, interpreter="-DNDEBUG -O3")
    assert found == expected


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        (None, True),
        ({"requires": ["setuptools"]}, True),
        ({"build-backend": "setuptools.build_meta:__legacy__"}, True),
        ({"build-backend": "scikit_build_core.setuptools.build_meta"}, False),
        ({"build-backend": "own", "backend-path": ["."], "requires": ["Setuptools>=70"]}, True),
        ({"build-backend": "own", "requires": ["setuptools"]}, False),
        ("wrong", True),
    ],
)
def test_is_setuptools(system, expected):
    assert is_setuptools({} if system is None else {"build-system": system}) == expected


def test_read_pyproject(tmp_path):
    tree = tmp_path / "x-1"
    tree.mkdir()
    (tree / "pyproject.toml").write_text("[build-system]\nbuild-backend = 'mesonpy'\n")
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as tar:
        tar.add(tree, "x-1")
    for source in (tree, tmp_path / "x.tar.gz"):
        assert read_pyproject(source) == OTHER
    (tree / "pyproject.toml").write_text("[build-system")
    with pytest.raises(BuildError, match=r"pyproject\.toml is not valid TOML"):
        read_pyproject(tree)
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(b"none")
    with pytest.raises(BuildError, match="not a source distribution"):
        read_pyproject(broken)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("8.6;9.0a;12.0+PTX;10.0f", ""),
        ("Ampere+Tegra 8.0(8.6)", ""),
        ("native", ""),
        ("All", ""),
        ("sm_90", "write 9.0"),
        ("9.0;120a", "write 12.0a"),
        ("8.0,86", "write 8.6"),
        ("compute_75", "write 7.5"),
    ],
)
def test_architectures_that_pytorch_takes(text, problem):
    found = problem_of("TORCH_CUDA_ARCH_LIST", text)
    assert problem in found if problem else found == ""
    assert problem_of("OTHER", text) == ""


# Providers that a build matrix, or `variants make`, asks.

BUILT_IN = """
variant.providers.x86_64.build-requires = ["provider-variant-x86-64"]
variant.providers.x86_64.plugin-api = "provider_variant_x86_64.plugin:X8664Plugin"
"""


@pytest.fixture
def asking(write):
    """Write a file whose provider the build asks."""
    return partial(write, namespaces='["x86_64"]')


def test_provider_of_the_build_that_is_built_in(asking, variants, build_wheel):
    """What it says is written: installers do not ask it."""
    path = asking(BUILT_IN + CPU)
    provider = variants("matrix", path, "--format", "metadata").json["providers"]["x86_64"]
    assert set(provider) == {"static-properties", "feature-order"}
    assert provider["static-properties"]["level"] == ["v4", "v3", "v2", "v1"]
    assert provider["feature-order"][0] == "level"
    options = ("--label", "x", "--pyproject", asking(BUILT_IN, "pyproject.toml"))
    made = variants("make", build_wheel(), *options, "--property", "x86_64 :: level :: v3")
    provider = variants("inspect", "--json", made.out.strip()).json["providers"]["x86_64"]
    assert provider["static-properties"]["level"] == ["v4", "v3", "v2", "v1"]
    wrong = ("--property", "x86_64 :: level :: v9", "--force")
    assert variants("make", build_wheel(), *options, *wrong).code == 1


@pytest.mark.parametrize(
    ("body", "messages"),
    [
        (BUILT_IN + CPU.replace("level :: v3", "level :: v9"), ["v9"]),
        (BUILT_IN + CPU.replace("level :: v3", "levl :: v3"), ["levl"]),
        ('variant.providers.x86_64.build-requires = ["acme-provider>=1"]\n' + CPU,
         ["variant.providers.x86_64: the build asks this provider: ", "--variant-allow-provider"]),
    ],
)  # fmt: skip
def test_provider_of_the_build_that_does_not_answer(asking, variants, body, messages):
    result = variants("matrix", asking(body))
    assert (result.code, result.out) == (1, "")
    assert all(message in result.err for message in messages)


def test_validate_is_not_for_matrices(write, variants):
    result = variants("validate", write(CPU))
    assert (result.code, result.out) == (1, "")
    assert "variants matrix FILE checks a build matrix" in result.err
