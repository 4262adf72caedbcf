"""The platform files by name, and what they are called."""

from pep_variants.formats.platform_file import load_platform
from variants_index.named_platforms import named_platforms, platform_title


def test_names():
    found = named_platforms()
    assert {"h100-zen4", "apple-m1", "cpu-x86-64-v3"} <= found.keys()
    assert list(found) == sorted(found)
    assert load_platform(found["h100-zen4"]).support("nvidia").features


def test_titles():
    found = named_platforms()
    assert platform_title(found["apple-m1"]) == "Mac with an Apple M1"
    assert platform_title(found["cpu-zen4"]) == (
        "AMD Zen 4 CPU, e.g. EPYC Genoa: AVX-512 BF16 and VNNI"
    )
    for path in found.values():
        title = platform_title(path)
        assert 10 < len(title) < 200
        assert "built-in" not in title


def test_title_of_another_file(tmp_path):
    path = tmp_path / "own.toml"
    for text, title in [
        ("", ""),
        ("[metadata]\n# later\n", ""),
        ("# Ours.\n[metadata]\n", "Ours"),
        ("#" + "x" * 5000, "x" * 199),
    ]:
        path.write_text(text)
        assert platform_title(path) == title
