import json
from pathlib import Path

import pytest

from pep_variants import _directories as directories
from pep_variants._formats.platform_file import read_platform
from support.plugins import ACME, PLUGIN
from support.wheels import Wheel, metadata
from variants_cli._commands.detect import confinement


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    """A machine with this driver and GPU."""
    monkeypatch.setenv("NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION", "12.8")
    monkeypatch.setenv("NV_VARIANT_PROVIDER_FORCE_SM_ARCH", "9.0")


def test_json(variants):
    result = variants("detect", "--json")
    assert (result.code, result.err) == (0, "")
    namespaces = result.json["namespaces"]
    assert {"aarch64", "nvidia", "x86_64"} <= namespaces.keys()
    for support in namespaces.values():
        assert all("==" in package for package in support["resolved"])
    nvidia = namespaces["nvidia"]
    assert nvidia["plugin-api"] == "nvidia_variant_provider.plugin:NvidiaVariantPlugin"
    assert nvidia["features"]["cuda_version_lower_bound"][:2] == ["12.8", "12.7"]
    assert nvidia["features"]["sm_arch"] == ["90_real", "90_virtual"]
    assert [(fact["value"], fact["forced"]) for fact in nvidia["facts"]] == [
        ("12.8", True), ("9.0", True)
    ]  # fmt: skip


def test_table(variants, monkeypatch):
    result = variants("detect")
    assert result.code == 0
    lines = result.out.splitlines()
    (start,) = (number for number, line in enumerate(lines) if line.startswith("nvidia "))
    rows = [line.split() for line in lines[start : start + 3]]
    assert rows[0][:3] == ["nvidia", "cuda_version_lower_bound", "12.8"]
    assert rows[0][-3:] == ["…", "(32", "values)"]
    assert rows[2] == ["sm_arch", "90_real", "90_virtual"]
    columns = {line.index(row[-1]) for line, row in zip(lines[start + 2 :], rows[2:], strict=False)}
    assert len(columns) == 1
    facts = variants("detect", "nvidia", "-v").out.split("\n\n")[1].splitlines()
    cells = [[cell.strip() for cell in row.split("  ") if cell.strip()] for row in facts]
    assert cells == [
        ["nvidia", "CUDA driver", "12.8", "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION (forced)"],
        ["compute capability", "9.0", "NV_VARIANT_PROVIDER_FORCE_SM_ARCH (forced)"],
    ]
    monkeypatch.setenv("NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION", "latest")
    assert "'latest' is not" in variants("detect").out


def test_platform_file(tmp_path, variants):
    path = tmp_path / "platform.toml"
    path.write_text("old")
    result = variants("detect", "--json", "-o", path)
    platform = read_platform(path.read_bytes(), "platform.toml")
    for namespace, support in result.json["namespaces"].items():
        read = platform.support(namespace)
        assert {feature: list(values) for feature, values in read.features.items()} == (
            support["features"]
        )
        assert list(read.resolved) == support["resolved"]
    assert 'created-by = "variants-cli ' in path.read_text()


def test_some_namespaces(variants):
    result = variants("detect", "nvidia", "--json")
    assert list(result.json["namespaces"]) == ["nvidia"]
    result = variants("detect", "nvidia", "acme")
    assert result.code == 2
    assert "no provider for acme; there are aarch64, " in result.err


@pytest.fixture
def acme(tmp_path, monkeypatch):
    """Metadata of a release whose provider is a plugin, which a folder of wheels has."""
    wheel = Wheel("acme-provider", "1.5", files={"acme_provider/__init__.py": PLUGIN})
    (tmp_path / wheel.filename).write_bytes(wheel.build())
    for name, value in {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path),
        "VARIANTS_CACHE_DIR": str(tmp_path / "cache"),
    }.items():
        monkeypatch.setenv(name, value)
    path = tmp_path / "pkg-1.0-variants.json"
    speeds = {speed: {"acme": {"speed": [speed]}} for speed in ("slow", "fast")}
    tree = metadata(speeds, namespaces=["acme"], providers={"acme": ACME})
    path.write_text(json.dumps(tree))
    return path


def test_plugin(variants, acme):
    """It is skipped, unless it is allowed."""
    result = variants("detect", "--metadata", acme)
    assert (result.code, result.err) == (0, "")
    assert "allow it with --variant-allow-provider 'acme-provider<2,>=1'" in result.out
    assert variants("rank", acme, "--json").json["selected"] is None
    allow = ("--variant-allow-provider", "acme-provider>=1")
    result = variants("detect", "--metadata", acme, "--json", *allow)
    support = result.json["namespaces"]["acme"]
    assert support["features"] == {"speed": ["fast", "slow"]}
    assert support["resolved"] == ["acme-provider==1.5"]
    assert support["notice"] == ""
    lines = variants("detect", "-v", "--metadata", acme, *allow).out.splitlines()
    words = [line.split() for line in lines]
    assert ["acme", "plugin", "acme-provider==1.5", "acme_provider:Plugin"] in words
    assert ["allowed", "acme-provider>=1", "--variant-allow-provider"] in words
    (installed,) = (each for each in words if each[:2] == ["installed", "acme-provider==1.5"])
    assert Path(installed[2]).is_dir()  # what a user removes
    assert variants("rank", acme, "--json", *allow).json["selected"] == "fast"


MATRIX = """
[variant.default-priorities]
namespace = ["acme"]
[variant.providers.acme]
build-requires = ["acme-provider"]
plugin-api = "acme_provider:Plugin"
[axes.speed.{speed}]
properties = ["acme :: speed :: {speed}"]
"""


def test_a_matrix_asks_an_allowed_plugin(variants, acme, tmp_path):
    """What it has at all is what variants may have."""
    path = tmp_path / "matrix.toml"
    command = ("matrix", path, "--format", "metadata", "--variant-allow-provider", "acme-provider")
    path.write_text(MATRIX.format(speed="fast"))
    provider = variants(*command).json["providers"]["acme"]
    assert provider["static-properties"] == {"speed": ["fast", "slow"]}
    path.write_text(MATRIX.format(speed="faster"))
    wrong = variants(*command)
    assert (wrong.code, wrong.out) == (1, "")
    assert "'acme :: speed :: faster' is not supported on any machine" in wrong.err
    assert "list fast, slow for 'speed'" in wrong.err


def test_allowed_plugin_that_fails(variants, acme, monkeypatch):
    """It ends the command, with its name, cause and the way on."""
    command = ("detect", "--metadata", acme, "--variant-allow-provider", "acme-provider")
    monkeypatch.setenv("PIP_FIND_LINKS", "/nothing/there")
    problem = "the provider plugin acme-provider<2,>=1 cannot be used: "
    result = variants(*command)
    assert (result.code, result.out) == (1, "")
    assert problem in result.err
    assert "--variant-on-plugin-error skip" in result.err
    result = variants(*command, "--variant-on-plugin-error", "skip")
    assert result.code == 0
    assert problem in result.out


def test_allowed_providers_and_who_allows_them(variants, monkeypatch, tmp_path):
    def allowed(*options):
        lines = variants("detect", "--verbose", *options).out.splitlines()
        return [line.split()[1:] for line in lines if line.startswith("allowed ")]

    monkeypatch.setattr(directories, "user_config", lambda: tmp_path)
    configuration = tmp_path / "variants.toml"
    configuration.write_text('allow-provider = ["acme>=1", "b@https://me:secret@h/b.whl"]\n')
    file = str(configuration)
    assert allowed() == [["acme>=1", file], ["b@https://****@h/b.whl", file]]
    monkeypatch.setenv("VARIANTS_ALLOW_PROVIDER", "acme==2")
    assert allowed() == [["acme==2", "VARIANTS_ALLOW_PROVIDER"]]
    option = ("--variant-allow-provider", "acme <3")
    assert allowed(*option) == [["acme<3", "--variant-allow-provider"]]


def test_what_confines_plugins(variants):
    """Without Landlock, a plugin reads the user's files, whatever else confines it."""
    found = confinement({"network": "seccomp", "system calls": "seccomp"}, "auto")
    assert found["files"] == found["signals"] == "none on this system"
    assert found["network"] == "seccomp"
    off = variants("detect", "-v", "--variant-plugin-sandbox", "off").out
    assert ["sandbox", "all", "it", "is", "switched", "off"] in [
        line.split() for line in off.splitlines()
    ]


@pytest.mark.parametrize("machine", ["gone.toml", "a100-zen3"])
def test_a_setting_that_describes_another_machine_does_not_count(variants, monkeypatch, machine):
    """To detect is how such a file is written anew."""
    monkeypatch.setenv("VARIANTS_PLATFORM", machine)
    result = variants("detect", "--json")
    assert (result.code, result.err) == (0, "")
    assert result.json["namespaces"]["nvidia"]["features"]["sm_arch"] == ["90_real", "90_virtual"]
