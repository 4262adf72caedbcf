import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import NAMESPACES, ordered_features

from pep_variants.errors import PlatformFileError
from pep_variants.platform import (
    UNSUPPORTED,
    Platform,
    Support,
    load_platform,
    read_platform,
    write_platform,
)
from pep_variants.toml import loads

# As uv's variant branch writes it.
FROM_UV = """\
[metadata]
created-by = "uv 0.8.14"
version = "0.1"

[[provider]]
resolved = ["nvidia-variant-provider==0.0.2"]
plugin-api = "nvidia_variant_provider.plugin:NvidiaVariantPlugin"
namespace = "nvidia"

[provider.properties]
cuda_version_lower_bound = ["12.8", "12.7", "12.6"]
sm_arch = ["90_real", "90_virtual"]

[[provider]]
resolved = ["provider-variant-x86-64==0.0.1", "archspec==0.2.5"]
plugin-api = "provider_variant_x86_64"
namespace = "x86_64"

[provider.properties]
level = ["v3", "v2", "v1"]
"""


def orders(platform):
    return {
        namespace: list(support.features.items())
        for namespace, support in platform.namespaces.items()
    }


def test_read():
    found = read_platform(FROM_UV, "machine.toml")
    assert found.source == "machine.toml"
    assert found == read_platform(FROM_UV.encode(), "machine.toml")
    assert found.support("nvidia") == Support(
        {
            "cuda_version_lower_bound": ("12.8", "12.7", "12.6"),
            "sm_arch": ("90_real", "90_virtual"),
        },
        ("nvidia-variant-provider==0.0.2",),
        "nvidia_variant_provider.plugin:NvidiaVariantPlugin",
    )
    assert found.support("x86_64").resolved == (
        "provider-variant-x86-64==0.0.1",
        "archspec==0.2.5",
    )
    assert found.support("amd") is UNSUPPORTED


def test_write():
    written = write_platform(read_platform(FROM_UV, "machine.toml"), "uv 0.8.14")
    assert loads(written) == loads(FROM_UV)
    assert [line for line in written.splitlines() if line] == [
        line for line in FROM_UV.splitlines() if line
    ]


def test_order_of_keys_is_the_order_of_preference():
    backwards = FROM_UV.replace(
        'cuda_version_lower_bound = ["12.8", "12.7", "12.6"]\nsm_arch = ["90_real", "90_virtual"]',
        'sm_arch = ["90_virtual", "90_real"]\ncuda_version_lower_bound = ["12.6"]',
    )
    assert orders(read_platform(backwards, ""))["nvidia"] == [
        ("sm_arch", ("90_virtual", "90_real")),
        ("cuda_version_lower_bound", ("12.6",)),
    ]


def test_little_is_enough():
    assert read_platform("", "x") == Platform()
    found = read_platform("[[provider]]\nnamespace = 'a'\n[new]\nkey = 1", "x")
    assert found == Platform({"a": Support()})
    found = read_platform("[metadata]\nversion = '0.9'", "x")
    assert found == Platform()


def test_empty_list_of_values():
    text = "[[provider]]\nnamespace = 'a'\n[provider.properties]\nf = []\ng = ['1']"
    assert read_platform(text, "").support("a").features == {"g": ("1",)}


def test_notices_are_comments():
    platform = Platform(
        {"a": Support(notice="first line\nsecond \x1b[31m line\u2028third"), "b": Support()}
    )
    written = write_platform(platform, "test")
    assert "# first line\n# second ?[31m line\n# third\n[provider.properties]" in written
    assert orders(read_platform(written, "")) == {"a": [], "b": []}


@pytest.mark.parametrize("text", ["\x7f", "\x00\x1f", 'a"b\\c', "\u00fc", "\U0001f600", "\u2028"])
def test_characters_that_toml_is_particular_about(text):
    written = write_platform(Platform({"a": Support({}, (text,), text, text)}), text)
    assert loads(written)["metadata"]["created-by"] == text
    support = read_platform(written, "x").support("a")
    assert (support.resolved, support.plugin_api) == ((text,), text)


supports = st.builds(
    Support,
    ordered_features(),
    st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=2).map(tuple),
    st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]))),
    st.text(st.characters(exclude_categories=["Cs"])),
)


@given(
    st.dictionaries(st.sampled_from(NAMESPACES), supports).map(Platform),
    st.text(st.characters(exclude_categories=["Cs"])),
)
def test_round_trip(platform, created_by):
    written = write_platform(platform, created_by)
    again = read_platform(written, "x")
    assert orders(again) == orders(platform)
    assert list(again.namespaces) == list(platform.namespaces)
    for namespace, support in platform.namespaces.items():
        assert again.support(namespace).resolved == support.resolved
        assert again.support(namespace).plugin_api == support.plugin_api
    assert loads(written)["metadata"]["created-by"] == created_by
    assert read_platform(written.encode(), "x") == again


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("provider = 1", "provider: write one [[provider]] table per namespace"),
        ("[provider]\nnamespace = 'a'", "provider: write one [[provider]] table per namespace"),
        ("provider = [1]", "provider 1: expected a table"),
        ("[[provider]]", "provider 1.namespace: None is no namespace"),
        ("[[provider]]\nnamespace = 'A'", "provider 1.namespace: 'A' is no namespace"),
        ("[[provider]]\nnamespace = 5", "provider 1.namespace: 5 is no namespace"),
        (
            "[[provider]]\nnamespace = 'a'\n[[provider]]\nnamespace = 'a'",
            "provider 2: namespace 'a' is listed twice",
        ),
        (
            "[[provider]]\nnamespace = 'a'\nproperties = []",
            "provider 1.properties: expected a table of features",
        ),
        (
            "[[provider]]\nnamespace = 'a'\nproperties.F = []",
            "provider 1 (a).properties.F: 'F' is no feature name",
        ),
        (
            "[[provider]]\nnamespace = 'a'\nproperties.f = 'x'",
            "provider 1 (a).properties.f: expected a list of values, found 'x'",
        ),
        (
            "[[provider]]\nnamespace = 'a'\nproperties.f = [12.8]",
            "provider 1 (a).properties.f: 12.8 is no feature value",
        ),
        (
            "[[provider]]\nnamespace = 'a'\nproperties.f = ['X']",
            "provider 1 (a).properties.f: 'X' is no feature value",
        ),
        (
            "[[provider]]\nnamespace = 'a'\nproperties.f = ['x', 'y', 'x']",
            "provider 1 (a).properties.f: a value is listed twice in ['x', 'y', 'x']",
        ),
        (
            "[[provider]]\nnamespace = 'a'\nresolved = 'x'",
            "provider 1.resolved: expected a list of requirements",
        ),
        (
            "[[provider]]\nnamespace = 'a'\nplugin-api = 5",
            "provider 1.plugin-api: expected a string, found 5",
        ),
        ("metadata = 5", "metadata: expected a table, found 5"),
        ("[metadata]\nversion = '1.0'", "metadata.version: '1.0' is not supported, only 0.1"),
        ("[metadata]\nversion = 0.1", "metadata.version: 0.1 is not supported, only 0.1"),
        ("x = ", "not valid TOML: "),
        (b"\xff", "not valid TOML: "),
        ("x = [" + "[" * 100_000, "not valid TOML: "),
    ],
)
def test_broken(text, said):
    with pytest.raises(PlatformFileError) as raised:
        read_platform(text, "https://u:secret@host/machine.toml")
    assert str(raised.value).startswith(f"https://****@host/machine.toml: {said}")


def test_load(tmp_path):
    path = tmp_path / "machine.toml"
    with pytest.raises(PlatformFileError, match=re.escape(f"{path}: cannot be read: No such file")):
        load_platform(path)
    path.write_text(FROM_UV)
    assert load_platform(path) == load_platform(str(path)) == read_platform(FROM_UV, "")
    assert load_platform(path).source == str(path)


@given(st.one_of(st.binary(), st.text()))
def test_arbitrary_data_raises_nothing_else(data):
    try:
        found = read_platform(data, "x")
    except PlatformFileError as error:
        found = str(error)
    assert isinstance(found, Platform) or found.startswith("x: ")
