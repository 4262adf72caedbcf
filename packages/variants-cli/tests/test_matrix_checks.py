"""Providers that a build matrix, or `variants make`, asks."""

import pytest

V3 = '"x86_64 :: level :: v3"'


def test_validate_is_not_for_matrices(asking, variants):
    path = asking("x86_64", V3, "")
    assert variants("matrix", path).code == 0
    result = variants("validate", path)
    assert (result.code, result.out) == (1, "")
    assert "variants matrix FILE checks a build matrix" in result.err


AOT = """
[variant.providers.x86_64]
build-requires = ["provider-variant-x86-64"]
plugin-api = "provider_variant_x86_64.plugin:X8664Plugin"
[variant.providers.acme]
build-requires = ["acme-provider>=1"]
"""
BUILT_IN, _, FOREIGN = AOT.partition("[variant.providers.acme]")
FOREIGN = f"[variant.providers.acme]{FOREIGN}"


@pytest.fixture
def asking(tmp_path):
    """Write a matrix whose providers the build asks."""

    def asking(namespace, properties, provider):
        path = tmp_path / "matrix.toml"
        path.write_text(
            f'[variant.default-priorities]\nnamespace = ["{namespace}"]\n{provider}\n'
            f"[axes.cpu.v3]\nproperties = [{properties}]\n"
        )
        return path

    return asking


def test_provider_of_the_build_that_is_built_in(asking, variants):
    """What it says is written: installers do not ask it."""
    path = asking("x86_64", V3, BUILT_IN)
    found = variants("matrix", path, "--format", "metadata").json
    provider = found["providers"]["x86_64"]
    assert set(provider) == {"static-properties", "feature-order"}
    assert provider["static-properties"]["level"] == ["v4", "v3", "v2", "v1"]
    assert provider["feature-order"][0] == "level"


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ('"x86_64 :: level :: v9"', "v9"),
        ('"x86_64 :: levl :: v3"', "levl"),
    ],
)
def test_what_the_provider_of_the_build_does_not_know(asking, variants, properties, message):
    path = asking("x86_64", properties, BUILT_IN)
    shown = variants("matrix", path)
    assert (shown.code, shown.out) == (1, "")
    assert message in shown.err


def test_provider_of_the_build_that_is_not_allowed(asking, variants):
    path = asking("acme", '"acme :: level :: one"', FOREIGN)
    result = variants("matrix", path)
    assert result.code == 1
    assert "variant.providers.acme: the build asks this provider: " in result.err
    assert "--variant-allow-provider" in result.err


def test_make_asks_the_provider_of_the_build(asking, variants, build_wheel, tmp_path):
    path = tmp_path / "pyproject.toml"
    path.write_text('[variant.default-priorities]\nnamespace = ["x86_64"]\n' + BUILT_IN)
    options = ("--label", "x", "--pyproject", path)
    good = variants("make", build_wheel(), *options, "--property", "x86_64 :: level :: v3")
    assert good.code == 0, good.err
    metadata = variants("inspect", "--json", good.out.strip()).out
    assert '"static-properties"' in metadata or "v4" in metadata
    bad = variants(
        "make", build_wheel(), *options, "--property", "x86_64 :: level :: v9", "--force"
    )
    assert bad.code == 1
