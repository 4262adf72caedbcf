"""Indexes of the shim's are taken out of the user's files."""

from __future__ import annotations

import pytest

from uv_variants.restoring import real_urls, restored

SHIM = "http://uv-variants.invalid/p/1~abc/i/{}/simple/"


def table(name: str, url: str) -> str:
    return f'[[tool.uv.index]]\nname = "{name}"\nurl = "{url}"\n'


HEAD = '[project]\nname = "p"\ndependencies = [\n    "{}",\n]\n'
OTHER = "\n[tool.other]\nx = 1\n"


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        # Nothing was there: nothing stays.
        ("", "\n" + table("pypi", SHIM.format("pypi")), ""),
        (OTHER, "\n" + table("pypi", SHIM.format("pypi")) + OTHER, OTHER),
        # What was there stands where it stood, in its order.
        (
            "\n" + table("a", "https://a") + "\n" + table("b", "https://b") + OTHER,
            "\n" + table("b", SHIM.format("b")) + OTHER + "\n" + table("a", SHIM.format("a")),
            "\n" + table("a", "https://a") + "\n" + table("b", "https://b") + OTHER,
        ),
    ],
)
def test_projects(before, after, wanted, ending):
    first = (HEAD.format("old") + before).replace("\n", ending)
    second = (HEAD.format("new") + after).replace("\n", ending)
    assert restored(first, second, []) == (HEAD.format("new") + wanted).replace("\n", ending)


def test_what_was_given_is_kept():
    after = HEAD.format("new") + "\n" + table("a", SHIM.format("a"))
    found = restored(HEAD.format("old"), after, ['name = "a"\nurl = "https://a"'])
    assert found == HEAD.format("new") + "\n" + table("a", "https://a")


def test_scripts():
    before = "# /// script\n# dependencies = []\n# ///\nprint(1)\n"
    after = (
        '# /// script\n# dependencies = [\n#     "a",\n# ]\n#\n# [[tool.uv.index]]\n'
        f'# url = "{SHIM.format("pypi")}"\n# default = true\n# ///\nprint(1)\n'
    )
    found = restored(before, after, [])
    assert "invalid" not in found
    assert found.startswith('# /// script\n# dependencies = [\n#     "a",\n# ]\n')
    assert found.endswith("# ///\nprint(1)\n")


def test_receipts():
    text = f'index = [{{ url = "{SHIM.format("a")}" }}, {{ url = "{SHIM.format("b")}" }}]'
    assert real_urls(text, {"a": "https://a"}) == (
        f'index = [{{ url = "https://a" }}, {{ url = "{SHIM.format("b")}" }}]'
    )
