import pytest

from pep_variants.platform import read_platform


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
        assert support.keys() == {"features", "resolved", "plugin-api", "notice"}
        assert isinstance(support["notice"], str)
        assert all("==" in package for package in support["resolved"])
        for values in support["features"].values():
            assert isinstance(values, list)
    nvidia = namespaces["nvidia"]
    assert nvidia["plugin-api"] == "nvidia_variant_provider.plugin:NvidiaVariantPlugin"
    assert nvidia["features"]["cuda_version_lower_bound"][:2] == ["12.8", "12.7"]
    assert nvidia["features"]["sm_arch"] == ["90_real", "90_virtual"]


def test_table(variants):
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


def test_broken_override_is_a_notice(variants, monkeypatch):
    monkeypatch.setenv("NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION", "latest")
    result = variants("detect", "--json")
    assert result.code == 0
    nvidia = result.json["namespaces"]["nvidia"]
    assert nvidia["features"] == {}
    assert "latest" in nvidia["notice"]
    assert "latest" in variants("detect").out


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


def test_platform_file_that_cannot_be_written(tmp_path, variants):
    path = tmp_path / "missing" / "platform.toml"
    result = variants("detect", "-o", path)
    assert result == (1, "", f"error: {path}: No such file or directory\n")
