import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pep_variants._formats.platform_file import load_platform, read_platform, write_platform
from pep_variants._formats.toml import read_toml
from pep_variants._model.platform import UNSUPPORTED, Platform, Support
from pep_variants.errors import PlatformFileError

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


def test_what_uv_writes(tmp_path):
    path = tmp_path / "machine.toml"
    with pytest.raises(PlatformFileError, match=re.escape(f"{path}: cannot be read: No such file")):
        load_platform(path)
    path.write_text(FROM_UV)
    found = load_platform(path)
    assert found.source == str(path)
    assert found == load_platform(str(path)) == read_platform(FROM_UV.encode(), "x")
    assert found.support("nvidia") == Support(
        {
            "cuda_version_lower_bound": ("12.8", "12.7", "12.6"),
            "sm_arch": ("90_real", "90_virtual"),
        },
        ("nvidia-variant-provider==0.0.2",),
        "nvidia_variant_provider.plugin:NvidiaVariantPlugin",
    )
    assert found.support("x86_64").resolved[1] == "archspec==0.2.5"
    assert found.support("amd") is UNSUPPORTED
    written = write_platform(found, "uv 0.8.14")
    assert read_toml(written) == read_toml(FROM_UV)
    lines = [[line for line in text.splitlines() if line] for text in (written, FROM_UV)]
    assert lines[0] == lines[1]


def test_little_is_enough():
    for text in ("[metadata]", "provider = []", "[metadata]\nversion = '0.9'"):
        assert read_platform(text, "x") == Platform()
    found = read_platform("[[provider]]\nnamespace = 'a'\n[new]\nkey = 1", "x")
    assert found == Platform({"a": Support()})


def test_notices_are_comments():
    platform = Platform(
        {"a": Support(notice="first line\nsecond \x1b[31m line\u2028third"), "b": Support()}
    )
    written = write_platform(platform, "test")
    assert "# first line\n# second ?[31m line\n# third\n[provider.properties]" in written
    assert orders(read_platform(written, "")) == {"a": [], "b": []}


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_written_for_toml(text):
    platform = Platform({"a": Support({"f": ("2", "1"), "e": ("1",)}, (text,), text, text)})
    written = write_platform(platform, text)
    again = read_platform(written, "x")
    assert orders(again) == orders(platform)
    support = again.support("a")
    assert (support.resolved, support.plugin_api) == ((text,), text)
    assert read_toml(written)["metadata"]["created-by"] == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("provider = 1", "provider: expected tables such as [[provider]], found "),
        ("provider = [1]", "provider: expected tables such as [[provider]], found [1]"),
        ("[[provider]]\nnamespace = 'A'", "provider 1.namespace: 'A' is not a valid namespace"),
        (
            "[[provider]]\nnamespace = 'a'\n[[provider]]\nnamespace = 'a'",
            "provider 2: namespace 'a' is listed twice",
        ),
        (
            "[[provider]]\nnamespace = 'a'\nproperties.F = []",
            "provider 1 (a).properties: 'F' is not a valid name",
        ),
        (
            "[[provider]]\nnamespace = 'a'\nproperties.f = 'x'",
            "provider 1 (a).properties.f: expected a list of strings, found 'x'",
        ),
        (
            "[[provider]]\nnamespace = 'a'\nproperties.f = ['x', 'y', 'x']",
            "provider 1 (a).properties.f: 'x' is listed twice",
        ),
        ("[metadata]\nversion = '1.0'", "metadata.version: '1.0' is not supported, only 0.1"),
        ("x = [" + "[" * 100_000, "not valid TOML: "),
        (
            "[[provider]]\nnamespace = 'a'\nresolved = 'x'",
            "provider 1.resolved: expected a list of strings",
        ),
        ("metadata = 5", "metadata: expected a table, found 5"),
        # What is quoted is short and printable.
        ('metadata.version = "\\u001b[31m"', "metadata.version: "),
        ('[[provider]]\nnamespace = "\\u001b[31m"', "provider 1.namespace: "),
        (
            f'[[provider]]\nnamespace = "a"\nproperties.{"b" * 99_999} = 1',
            "not valid TOML: line 3: a key",
        ),
    ],
)
def test_broken(text, said):
    with pytest.raises(PlatformFileError) as raised:
        read_platform(text, "https://u:secret@host/\x1b[31m/machine.toml")
    message = str(raised.value)
    assert message.startswith(f"https://****@host/?[31m/machine.toml: {said}")
    assert message.isprintable()
    assert len(message) < 500


@pytest.mark.parametrize("text", ["", "lock-version = '1.0'\n[[packages]]\nname = 'a'"])
def test_other_files_are_refused(text):
    with pytest.raises(PlatformFileError, match=r"^pylock\.toml: not a platform file: "):
        read_platform(text, "pylock.toml")
