"""The variant_config.toml of variant-repack: as a recipe, and as a matrix."""

import json
import re
import zipfile
from pathlib import Path

import pytest

from variants_cli.variant_config import read_variant_config

FIELD = Path(__file__).parents[4] / "shared" / "data" / "field"
PYPROJECT = """
[variant.default-priorities]
namespace = ["nvidia"]
[variant.providers.nvidia]
requires = ["nvidia-variant-provider>=0.0.2,<1"]
plugin-api = "nvidia_variant_provider.plugin:NvidiaVariantPlugin"
"""
CONFIG = """
[metadata_configs.example-pkg]
normalize_version = true
deps_remove_list = ["nvidia-cublas", "triton"]
deps_add_list = [
    "triton==3.6.0; 'nvidia' in variant_namespaces",
    "nvidia-cublas==12.6; variant_label == 'cuda12.6'",
]
[metadata_configs.other]
rename_package_to = "other"
[metadata_configs.normal]
normalize_package_name = true

[variant_configs.cu126]
variant_label = "cuda12.6"
properties = [
    { namespace = "nvidia", feature = "cuda_version_lower_bound", value = "12.0" },
    { namespace = "nvidia", feature = "sm_arch", value = "80_real" },
    { namespace = "nvidia", feature = "sm_arch", value = "90_real" },
]
[variant_configs.cpu]
properties = []
"""


@pytest.fixture
def config(tmp_path):
    """The file, with a pyproject.toml beside it."""
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    path = tmp_path / "variant_config.toml"
    path.write_text(CONFIG)
    return path


def read(path, name):
    with zipfile.ZipFile(path) as archive:
        (found,) = [item for item in archive.namelist() if item.endswith(f".dist-info/{name}")]
        return archive.read(found).decode()


def requirements(path):
    text = read(path, "METADATA")
    return sorted(re.findall("^Requires-Dist: (.*)$", text, re.MULTILINE))


OLD = ("nvidia-cublas-cu12==12.6.4", "triton==3.0", "sympy>=1.13")


def test_variant_named_by_the_version(config, variants, build_wheel, tmp_path):
    wheels = [
        build_wheel(f"example_pkg-1.0+{local}-py3-none-any.whl", requires=OLD)
        for local in ("cu126", "cpu")
    ]
    result = variants("make", "--config", config, "-o", tmp_path / "dist", *wheels)
    assert result.code == 0, result.err
    gpu, cpu = map(Path, result.out.split())
    assert gpu.name == "example_pkg-1.0-py3-none-any-cuda12.6.whl"
    assert cpu.name == "example_pkg-1.0-py3-none-any-null.whl"
    assert json.loads(read(gpu, "variant.json"))["variants"]["cuda12.6"] == {
        "nvidia": {"cuda_version_lower_bound": ["12.0"], "sm_arch": ["80_real", "90_real"]}
    }
    assert "sympy>=1.13" in requirements(cpu)
    assert not any(item.startswith("nvidia-cublas-cu12") for item in requirements(gpu))
    assert any(item.startswith("nvidia-cublas==12.6") for item in requirements(gpu))


def test_options_name_both(config, variants, build_wheel, tmp_path):
    wheel = build_wheel(requires=OLD)
    result = variants(
        "make", "--config", config, "--only", "cu126", "--metadata-config", "other",
        "-o", tmp_path / "dist", "--json", wheel,
    )  # fmt: skip
    assert result.code == 0, result.err
    path = Path(result.json[0]["path"])
    assert path.name == "other-1.0-py3-none-any-cuda12.6.whl"
    assert requirements(path) == sorted(OLD)


def test_name_without_its_suffix(config, variants, build_wheel, tmp_path):
    wheel = build_wheel("example_pkg_cu12-1.0-py3-none-any.whl")
    result = variants(
        "make", "--config", config, "--only", "cpu", "--metadata-config", "normal", wheel
    )
    assert result.code == 0, result.err
    assert Path(result.out.strip()).name == "example_pkg-1.0-py3-none-any-null.whl"


def test_other_pyproject(config, variants, build_wheel, tmp_path):
    elsewhere = tmp_path / "else"
    elsewhere.mkdir()
    moved = (tmp_path / "pyproject.toml").rename(elsewhere / "pyproject.toml")
    options = ("make", "--config", config, "--only", "cu126", build_wheel())
    assert "put it beside this file, or name it with --pyproject" in variants(*options).err
    assert variants(*options, "--pyproject", moved).code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "its version does not name one of the variants of"),
        (["--only", "cu999"], "variant_configs has no 'cu999'; there are cu126, cpu"),
        (
            ["--only", "cpu", "--metadata-config", "x"],
            "metadata_configs has no 'x'; there are example-pkg, other, normal",
        ),
    ],
)
def test_what_is_not_there(config, variants, build_wheel, options, message):
    result = variants("make", "--config", config, build_wheel(), *options)
    assert (result.code, result.out) == (1, "")
    assert message in result.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[variant_configs]", "variant_configs: has no variants: add [variant_configs.NAME]"),
        ("[variant_configs]\na = 1", "variant_configs.a: 1: must be a table"),
        ("[variant_configs.a]\nlabel = 'x'", "variant_configs.a.label: is not a"),
        ("[variant_configs.a]\nvariant_label = 'A'", "variant_configs.a.label: 'A': must match"),
        ("[variant_configs.a]\nproperties = 1", "variant_configs.a.properties: 1: must be a list"),
        (
            "[variant_configs.a]\nproperties = [{ namespace = 'n' }]",
            "variant_configs.a.properties[0]: {'namespace': 'n'}: must be a table with namespace,",
        ),
        (
            "[variant_configs.a]\nproperties = [{ namespace = 'n', feature = 'f', value = 'v' }]",
            "variant_configs.a.variant_label: is missing: add the label of the variant",
        ),
        (
            "[variant_configs.a]\n[metadata_configs.b]\nnormalize_version = 1",
            "metadata_configs.b.normalize_version: 1: must be true or false",
        ),
        ("[variant_configs.a]\n[x]", "x: is not a"),
    ],
)
def test_errors_name_the_place(config, variants, text, message):
    config.write_text(text)
    result = variants("matrix", config)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error: {config}: {message}"), result.err
    assert variants("validate", config).code == 1


def test_matrix_of_it(config, variants):
    result = variants("matrix", config)
    assert [line.split()[0] for line in result.out.splitlines()] == ["cuda12.6", "null"]
    assert "compute capability 8.0, 9.0" in result.out
    found = variants("matrix", config, "--format", "metadata").json
    assert sorted(found["variants"]) == ["cuda12.6", "null"]
    assert variants("validate", config).code == 0


@pytest.mark.skipif(not FIELD.is_dir(), reason="the data of the field is not here")
def test_the_file_of_pytorch(tmp_path, variants, build_wheel):
    """What was published under that name has another namespace for the order of its variants."""
    text = (FIELD / "torch_variant_config.toml").read_text()
    path = tmp_path / "variant_config.toml"
    path.write_text(text)
    assert sorted(read_variant_config(path).edits) == ["torch", "torchvision"]
    (tmp_path / "pyproject.toml").write_bytes((FIELD / "torch_pyproject.toml").read_bytes())
    assert "namespace 'property' is not listed" in variants("matrix", path).err
    path.write_text(text.replace('namespace = "property"', 'namespace = "priority"'))
    found = variants("matrix", path, "--format", "metadata").json["variants"]
    published = json.loads((FIELD / "torch-2.10.0-variants.json").read_text())["variants"]
    ordered = {
        label: {n: {f: sorted(v) for f, v in features.items()} for n, features in tree.items()}
        for label, tree in published.items()
    }
    assert found.keys() == ordered.keys()
    # Of two the published properties are others than in the file.
    assert {label for label in found if found[label] != ordered[label]} == {"cuda13.0", "rocm7.1"}
    wheel = build_wheel("torch-2.10.0+cu128-cp312-cp312-manylinux_2_28_x86_64.whl", requires=OLD)
    made = variants("make", "--config", path, "-o", tmp_path / "dist", wheel)
    assert made.code == 0, made.err
    wanted = {"nvidia-cublas==12.8.4.1", "triton==3.6.0"}
    assert wanted <= {item.partition(";")[0].strip() for item in requirements(made.out.strip())}
