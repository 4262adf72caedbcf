"""The example platform files: what they say, in which shape, and that users get them."""

import json
import re
import subprocess
import sys
import zipfile
from importlib import resources
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from pep_variants.detect.providers.amd import ARCHITECTURE_OVERRIDE, VERSION_OVERRIDE, AmdProvider
from pep_variants.detect.providers.intel import DEVICE_OVERRIDE, IntelProvider
from pep_variants.detect.providers.nvidia import (
    CAPABILITY_OVERRIDE,
    DRIVER_OVERRIDE,
    NvidiaProvider,
)
from pep_variants.detect.registry import BUILTIN_NAMESPACES
from pep_variants.formats import toml
from pep_variants.formats.platform_file import load_platform, read_platform, write_platform
from pep_variants.model.property import NAME, VALUE

PROJECT = Path(__file__).parents[1]
FOLDER = resources.files("variants_index.named_platforms")
FILES = sorted(file.name for file in FOLDER.iterdir() if file.name.endswith(".toml"))


@pytest.fixture(params=FILES)
def name(request):
    return request.param


@pytest.fixture
def text(name):
    return (FOLDER / name).read_text(encoding="utf-8")


@pytest.fixture
def platform(name, text):
    return read_platform(text, name)


def test_the_script_writes_the_same(tmp_path):
    """Or else run make_platforms.py again, and look at what changed."""
    script = Path(__file__).with_name("make_platforms.py")
    for folder in ("once", "twice"):
        (tmp_path / folder).mkdir()
        subprocess.run([sys.executable, script, tmp_path / folder], check=True)
    once, twice = (
        {file.name: file.read_bytes() for file in (tmp_path / folder).iterdir()}
        for folder in ("once", "twice")
    )
    assert sorted(once) == FILES
    assert once == twice
    assert [name for name in FILES if once[name] != (FOLDER / name).read_bytes()] == []


def test_every_namespace_is_told_of(platform):
    assert [*platform.namespaces] == sorted(BUILTIN_NAMESPACES)
    for namespace, support in platform.namespaces.items():
        known = BUILTIN_NAMESPACES[namespace]
        assert support.resolved == (f"{known.package}=={known.stands_for}",)
        assert support.plugin_api == known.plugin_apis[0]
    families = [name for name in ("aarch64", "x86_64") if platform.support(name).features]
    assert len(families) == 1


def test_comments_say_what_it_is(text, platform):
    first, *rest = text.splitlines()
    assert first.startswith("# Example: ")
    assert "What the built-in providers answer for" in " ".join(rest[:3])
    absent = [name for name, support in platform.namespaces.items() if not support.features]
    for namespace in absent:
        assert re.search(
            rf'namespace = "{namespace}"\n\n# (no |neither |a CPU of another family).*\n'
            r"\[provider\.properties\]\n(\n|$)",
            text,
        )
    assert len(re.findall(r"^# ", text.partition("[metadata]")[2], re.M)) == len(absent)


def test_shape_is_that_of_uv(text):
    """uv wants every one of these keys, and a version or URL in ``resolved``."""
    tree = toml.loads(text)
    assert [*tree] == ["metadata", "provider"]
    assert [*tree["metadata"]] == ["created-by", "version"]
    assert str(Version(tree["metadata"]["version"])) == "0.1"
    assert isinstance(tree["metadata"]["created-by"], str)
    for provider in tree["provider"]:
        assert [*provider] == ["resolved", "plugin-api", "namespace", "properties"]
        (resolved,) = map(Requirement, provider["resolved"])
        assert re.fullmatch(r"[a-z0-9-]+==[0-9.]+", str(resolved))
        assert re.fullmatch(r"[a-z0-9_]+\.plugin:[A-Za-z0-9]+", provider["plugin-api"])
        assert NAME.fullmatch(provider["namespace"])
        for feature, values in provider["properties"].items():
            assert NAME.fullmatch(feature)
            assert values
            assert all(VALUE.fullmatch(value) for value in values)


def test_written_again_it_says_the_same(text, platform):
    written = write_platform(platform, "variants-cli, example")
    uncommented = [line for line in text.splitlines() if not line.startswith("#")]
    assert written.splitlines() == uncommented[1:]  # an empty line ends the first comment


def test_gpus_are_as_the_providers_report_them(platform):
    features = platform.support("nvidia").features
    if features:
        code = features["sm_arch"][0].removesuffix("_real")
        forced = {
            DRIVER_OVERRIDE: features["cuda_version_lower_bound"][0],
            CAPABILITY_OVERRIDE: f"{code[:-1]}.{code[-1]}",
        }
        assert [*NvidiaProvider(forced).supported().items()] == [*features.items()]
    features = platform.support("amd").features
    if features:
        assert features["gfx_arch"] == tuple(sorted(features["gfx_arch"]))
        forced = {
            ARCHITECTURE_OVERRIDE: ",".join(features["gfx_arch"]),
            VERSION_OVERRIDE: features["rocm_version"][0],
        }
        assert [*AmdProvider(forced).supported().items()] == [*features.items()]
    features = platform.support("intel").features
    if features:
        forced = {DEVICE_OVERRIDE: features["device_ip"][0]}
        assert IntelProvider(forced).supported() == features


def test_one_told_in_full():
    features = load_platform(FOLDER / "h100-sapphirerapids.toml").support("nvidia").features
    assert [*features] == ["cuda_version_lower_bound", "cuda_version_upper_bound", "sm_arch"]
    lower, upper = features["cuda_version_lower_bound"], features["cuda_version_upper_bound"]
    assert " ".join(lower[:4]) == "13.0 13 12.20 12.19"
    assert " ".join(lower[-4:]) == "11.2 11.1 11.0 11"
    assert " ".join(upper[:2]) == "15.20 15.19"
    assert " ".join(upper[-2:]) == "13.2 13.1"
    assert (len(lower), len(upper)) == (2 + 2 * 22, 2 * 22 + 20)
    assert features["sm_arch"] == ("90_real", "90_virtual")
    cpu = load_platform(FOLDER / "h100-sapphirerapids.toml").support("x86_64").features
    assert [*cpu][:3] == ["level", "amx_tile", "amx_bf16"]
    assert cpu["level"] == ("v4", "v3", "v2", "v1")
    assert {"avx512_bf16", "avx512_vnni", "avx512f", "avx2", "sse2"} <= cpu.keys()
    assert all(values == ("on",) for feature, values in cpu.items() if feature != "level")


@pytest.mark.parametrize(
    ("name", "best", "there", "not_there"),
    [
        ("cpu-x86-64-v1.toml", "v1", "", "sse2"),
        ("cpu-sandybridge.toml", "v2", "avx", "avx2"),
        ("gtx-1080-ti-haswell.toml", "v3", "avx2", "avx512f"),
        ("rtx-3090-alderlake.toml", "v3", "avx2 avx_vnni", "avx512f"),
        ("rtx-3090-skylake-avx512.toml", "v4", "avx512f", "avx512_vnni avx512_bf16"),
        ("t4-cascadelake.toml", "v4", "avx512_vnni", "avx512_bf16"),
        ("h100-zen4.toml", "v4", "avx512_vnni avx512_bf16", "amx_tile"),
        ("cpu-graviton2.toml", "8.2a", "asimddp", "sve"),
        ("cpu-graviton3.toml", "8.4a", "sve bf16 i8mm", "sve2"),
        ("gh200-grace.toml", "9.0a", "sve2 sve bf16 i8mm", "sme"),
        ("thor.toml", "9.2a", "sve2", "sme"),
        ("apple-m1.toml", "8.4a", "fp asimd", "bf16 sve"),
    ],
)
def test_cpus(platform, best, there, not_there):
    grade, cpu = (
        ("level", platform.support("x86_64").features)
        if best.startswith("v")
        else ("version", platform.support("aarch64").features)
    )
    assert next(iter(cpu)) == grade
    assert cpu[grade][0] == best
    assert {*there.split()} <= cpu.keys()
    assert not {*not_there.split()} & cpu.keys()


def test_readme_lists_them_all():
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    _, _, section = readme.partition("\n## Example platform files\n")
    section, _, _ = section.partition("\n## ")
    listed = re.findall(r"`([a-z0-9.-]+)\.toml`", section)
    assert sorted(listed) == [name.removesuffix(".toml") for name in FILES]


def test_wheel_contains_them(tmp_path):
    code = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    index = PROJECT.with_name("variants-index")
    subprocess.run([sys.executable, "-c", code, tmp_path], cwd=index, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        shipped = [
            Path(path).name
            for path in archive.namelist()
            if path.startswith("variants_index/named_platforms/") and path.endswith(".toml")
        ]
        assert sorted(shipped) == FILES


def test_wheel_contains_matrices(tmp_path):
    code = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, tmp_path], cwd=PROJECT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert "variants_cli/matrices/pytorch.toml" in archive.namelist()


def test_rank_takes_one(tmp_path, variants, variant_json, monkeypatch):
    monkeypatch.chdir(tmp_path)  # away from any variants.toml
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = tmp_path / "example_pkg-1.0-variants.json"
    tree = variant_json("null", namespaces=["nvidia", "x86_64"])
    tree["variants"] |= {
        "cuda12": {"nvidia": {"cuda_version_lower_bound": ["12.0"], "sm_arch": ["80_real"]}},
        "v3": {"x86_64": {"level": ["v3"]}},
    }
    path.write_text(json.dumps(tree))
    selected = {
        name: variants("rank", path, "--json", "--platform", FOLDER / name).json["selected"]
        for name in ("a100-zen3.toml", "h100-zen3.toml", "cpu-haswell.toml", "cpu-graviton2.toml")
    }
    assert [*selected.values()] == ["cuda12", "v3", "v3", "null"]
