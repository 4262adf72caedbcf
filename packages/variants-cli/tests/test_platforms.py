"""`variants platforms`, the platform files that it writes, and commands that take a machine."""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from pep_variants.detect.known_machines import BY_NAME, KNOWN_MACHINES
from pep_variants.detect.machines import load_machine, machine_text
from pep_variants.formats import toml
from pep_variants.formats.platform_file import read_platform, write_platform
from pep_variants.model.property import NAME, VALUE
from pep_variants.providers.registry import BUILTIN_NAMESPACES

PROJECT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _away(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # away from any variants.toml
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


class TestCommand:
    def test_all(self, variants):
        lines = variants("platforms").out.splitlines()
        groups = [line for line in lines if line.endswith(":") and "  " not in line]
        assert groups == ["NVIDIA GPU:", "AMD GPU:", "Intel GPU:", "no accelerator:"]
        rows = [line.split(maxsplit=2) for line in lines if line and line not in groups]
        assert rows == [[each.name, each.facts, each.title] for each in KNOWN_MACHINES]

    def test_some(self, variants):
        found = variants("platforms", "mi*", "--json").json["platforms"]
        assert {each["group"] for each in found} == {"AMD GPU"}
        assert found[-1] == {
            "name": "mi100-mi210-rocm7.0",
            "group": "AMD GPU",
            "facts": {"rocm": ["7.0"], "gfx": ["gfx908", "gfx90a"], "cpu": ["zen2"]},
            "title": BY_NAME["mi100-mi210-rocm7.0"].title,
        }
        assert len(variants("platforms", "--json").json["platforms"]) == len(KNOWN_MACHINES)

    @pytest.mark.parametrize("machine", ["h100-zen4", "cuda=12.8,sm=9.0", "h100-zen4,cuda=13.0"])
    def test_one(self, variants, tmp_path, machine):
        text = variants("platforms", machine).out
        assert read_platform(text, "x").namespaces.keys() == BUILTIN_NAMESPACES.keys()
        assert variants("platforms", machine, "-o", "machine.toml").out == ""
        assert (tmp_path / "machine.toml").read_text() == text
        assert 'created-by = "variants-cli ' in text
        tree = variants("platforms", machine, "--json").json["namespaces"]
        assert tree["nvidia"]["features"]["sm_arch"] == ["90_real", "90_virtual"]
        again = variants("platforms", "machine.toml").out
        assert read_platform(again, "x") == read_platform(text, "x")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["h100"], "did you mean h100-sapphirerapids, h100-zen4 or h100-zen3?"),
            (["none.toml"], "none.toml: cannot be read: No such file or directory"),
            (["cuda=9.0"], "cuda=9.0 is outside 11.0 to 15.20"),
            (["zz*"], "no known machine matches 'zz*'"),
            (["-o", "file"], "--output needs one machine"),
            (["h100*", "-o", "file"], "--output needs one machine"),
            (["h100-zen4", "-o", "missing/file"], "missing/file"),
        ],
    )
    def test_wrong(self, variants, arguments, message):
        result = variants("platforms", *arguments)
        assert result.code in (1, 2)
        assert result.out == ""
        assert message in result.err
        assert len(result.err.splitlines()) == 1


def test_shape_is_that_of_uv():
    """uv wants every one of these keys, and a version or URL in ``resolved``."""
    for name in BY_NAME:
        text = machine_text(name, "a test")
        platform = read_platform(text, name)
        assert [*platform.namespaces] == sorted(BUILTIN_NAMESPACES)
        families = [each for each in ("aarch64", "x86_64") if platform.support(each).features]
        assert len(families) == 1
        absent = [each for each, support in platform.namespaces.items() if not support.features]
        for namespace in absent:
            assert re.search(
                rf'namespace = "{namespace}"\n\n# (no |neither |a CPU of another family).*\n'
                r"\[provider\.properties\]\n(\n|$)",
                text,
            )
        assert len(re.findall(r"^# ", text.partition("[metadata]")[2], re.M)) == len(absent)
        uncommented = [line for line in text.splitlines() if not line.startswith("#")]
        # An empty line ends the first comment.
        assert write_platform(platform, "a test").splitlines() == uncommented[1:]
        tree = toml.loads(text)
        assert [*tree] == ["metadata", "provider"]
        assert [*tree["metadata"]] == ["created-by", "version"]
        assert str(Version(tree["metadata"]["version"])) == "0.1"
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


def test_one_told_in_full():
    features = load_machine("h100-sapphirerapids").support("nvidia").features
    assert [*features] == ["cuda_version_lower_bound", "cuda_version_upper_bound", "sm_arch"]
    lower, upper = features["cuda_version_lower_bound"], features["cuda_version_upper_bound"]
    assert " ".join(lower[:4]) == "13.0 13 12.20 12.19"
    assert " ".join(lower[-4:]) == "11.2 11.1 11.0 11"
    assert " ".join(upper[:2]) == "15.20 15.19"
    assert " ".join(upper[-2:]) == "13.2 13.1"
    assert (len(lower), len(upper)) == (2 + 2 * 22, 2 * 22 + 20)
    assert features["sm_arch"] == ("90_real", "90_virtual")
    cpu = load_machine("h100-sapphirerapids").support("x86_64").features
    assert [*cpu][:3] == ["level", "amx_tile", "amx_bf16"]
    assert cpu["level"] == ("v4", "v3", "v2", "v1")
    assert {"avx512_bf16", "avx512_vnni", "avx512f", "avx2", "sse2"} <= cpu.keys()
    assert all(values == ("on",) for feature, values in cpu.items() if feature != "level")


@pytest.mark.parametrize(
    ("name", "best", "there", "not_there"),
    [
        ("cpu-x86-64-v1", "v1", "", "sse2"),
        ("cpu-sandybridge", "v2", "avx", "avx2"),
        ("gtx-1080-ti-haswell", "v3", "avx2", "avx512f"),
        ("rtx-3090-alderlake", "v3", "avx2 avx_vnni", "avx512f"),
        ("rtx-3090-skylake-avx512", "v4", "avx512f", "avx512_vnni avx512_bf16"),
        ("t4-cascadelake", "v4", "avx512_vnni", "avx512_bf16"),
        ("h100-zen4", "v4", "avx512_vnni avx512_bf16", "amx_tile"),
        ("cpu-graviton2", "8.2a", "asimddp", "sve"),
        ("cpu-graviton3", "8.4a", "sve bf16 i8mm", "sve2"),
        ("gh200-grace", "9.0a", "sve2 sve bf16 i8mm", "sme"),
        ("thor", "9.2a", "sve2", "sme"),
        ("apple-m1", "8.4a", "fp asimd", "bf16 sve"),
    ],
)
def test_cpus(name, best, there, not_there):
    platform = load_machine(name)
    grade, cpu = (
        ("level", platform.support("x86_64").features)
        if best.startswith("v")
        else ("version", platform.support("aarch64").features)
    )
    assert next(iter(cpu)) == grade
    assert cpu[grade][0] == best
    assert {*there.split()} <= cpu.keys()
    assert not {*not_there.split()} & cpu.keys()


def test_wheel_contains_matrices(tmp_path):
    code = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, tmp_path], cwd=PROJECT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert "variants_cli/matrices/pytorch.toml" in archive.namelist()


@pytest.fixture
def document(tmp_path, variant_json):
    path = tmp_path / "example_pkg-1.0-variants.json"
    tree = variant_json("null", namespaces=["nvidia", "x86_64"])
    tree["variants"] |= {
        "cuda12": {"nvidia": {"cuda_version_lower_bound": ["12.0"], "sm_arch": ["80_real"]}},
        "v3": {"x86_64": {"level": ["v3"]}},
    }
    path.write_text(json.dumps(tree))
    return path


@pytest.mark.parametrize(
    ("given", "machine", "selected"),
    [
        ("option", "a100-zen3", "cuda12"),
        ("option", "cpu-graviton2", "null"),
        ("option", "cuda=11.4,sm=8.0,cpu=zen3", "v3"),
        ("option", "a100-zen3,cuda=11.4", "v3"),
        ("option", "written.toml", "cuda12"),
        ("variable", "cuda=12.4,sm=8.0", "cuda12"),
        ("variable", "written.toml", "cuda12"),
        ("settings", "h100-zen3", "v3"),
        ("settings", "written.toml", "cuda12"),
    ],
)
def test_rank(tmp_path, variants, document, monkeypatch, machine, selected, given):
    (tmp_path / "written.toml").write_text(machine_text("a100-zen3", "a test"))
    options = []
    if given == "option":
        options = ["--platform", machine]
    elif given == "variable":
        monkeypatch.setenv("VARIANTS_PLATFORM", machine)
    else:
        settings = tmp_path / "config" / "variants" / "variants.toml"
        settings.parent.mkdir(parents=True)
        settings.parent.chmod(0o700)
        text = f'platform = "{machine}"\n'.replace("written", "../../written")
        settings.write_text(text)
        settings.chmod(0o600)
    assert variants("rank", document, "--json", *options).json["selected"] == selected


def test_rank_of_no_machine(variants, document):
    result = variants("rank", document, "--platform", "a100")
    assert result.code == 1
    assert result.out == ""
    assert result.err == (
        "error: 'a100' is neither a platform file nor a known machine: did you mean a100-zen3, "
        "a100-cascadelake or a100-altra? 'variants platforms' lists the machines\n"
    )
