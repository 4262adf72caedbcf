"""The indexes of the proxy are replaced in pyproject.toml, scripts and receipts."""

from __future__ import annotations

import pytest
import tomlkit

from uv_variants.pyproject_restore import real_urls, restored

PROXY = "http://uv-variants.invalid/p/1~abc/i/{}/simple/"


def table(name: str, url: str) -> str:
    return f'[[tool.uv.index]]\nname = "{name}"\nurl = "{url}"\n'


HEAD = '[project]\nname = "p"\ndependencies = [\n    "{}",\n]\n'
OTHER = "\n[tool.other]\nx = 1\n"


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        # Nothing was there: nothing stays.
        ("", "\n" + table("pypi", PROXY.format("pypi")), ""),
        (OTHER, "\n" + table("pypi", PROXY.format("pypi")) + OTHER, OTHER),
        # What was there stands where it stood, in its order.
        (
            "\n" + table("a", "https://a") + "\n" + table("b", "https://b") + OTHER,
            "\n" + table("b", PROXY.format("b")) + OTHER + "\n" + table("a", PROXY.format("a")),
            "\n" + table("a", "https://a") + "\n" + table("b", "https://b") + OTHER,
        ),
    ],
)
def test_projects(before, after, wanted, ending):
    first = (HEAD.format("old") + before).replace("\n", ending)
    second = (HEAD.format("new") + after).replace("\n", ending)
    assert restored(first, second, []) == (HEAD.format("new") + wanted).replace("\n", ending)


def test_what_was_given_is_kept():
    after = HEAD.format("new") + "\n" + table("a", PROXY.format("a"))
    found = restored(HEAD.format("old"), after, [{"name": "a", "url": "https://a"}])
    assert found == HEAD.format("new") + "\n" + table("a", "https://a")


GIVEN = [{"name": "g", "url": "https://g"}]


@pytest.mark.parametrize(
    ("before", "wanted"),
    [
        ("\n[tool.uv]\nx = 1\n", "\n[tool.uv]\nx = 1\n\n" + table("g", "https://g")),
        (OTHER, OTHER + "\n" + table("g", "https://g")),
        # Before the other ones, since the first index of a name counts.
        (
            "\n" + table("a", "https://a") + OTHER,
            "\n" + table("g", "https://g") + "\n" + table("a", "https://a") + OTHER,
        ),
        # One that is known stays where it is, with the new URL.
        ("\n" + table("g", "https://old") + OTHER, "\n" + table("g", "https://g") + OTHER),
        ("\n" + table("x", "https://g/") + OTHER, "\n" + table("x", "https://g/") + OTHER),
    ],
)
def test_where_given_ones_go(before, wanted):
    after = HEAD.format("new") + before + "\n" + table("g", PROXY.format("g"))
    assert restored(HEAD.format("old") + before, after, GIVEN) == HEAD.format("new") + wanted


def test_indexes_in_one_line():
    before = '[tool.uv]\nindex = [{ name = "a", url = "https://a" }]\n'
    after = f'[tool.uv]\nindex = [{{ name = "a", url = "{PROXY.format("a")}" }}]\n'
    assert restored(before, after, []) == before
    assert tomlkit.parse(restored(before, after, GIVEN))["tool"]["uv"]["index"] == [
        *GIVEN,
        {"name": "a", "url": "https://a"},
    ]


def test_other_changes_are_kept():
    before = '\n[tool.uv.sources]\nold = { path = "old" } # mine\n# The end.\n'
    after = (
        '\n[tool.uv.sources]\nold = { path = "old" } # mine\nnew = { index = "g" }\n\n'
        + table("g", PROXY.format("g"))
        + '\n[dependency-groups]\ndev = [\n    "new",\n]\n# The end.\n'
    )
    found = restored(HEAD.format("a") + before, HEAD.format("a") + after, [])
    assert found == HEAD.format("a") + (
        '\n[tool.uv.sources]\nold = { path = "old" } # mine\nnew = { index = "g" }\n\n'
        '[dependency-groups]\ndev = [\n    "new",\n]\n# The end.\n'
    )


def test_a_script_without_metadata():
    after = (
        '# /// script\n# dependencies = ["a"]\n#\n# [[tool.uv.index]]\n'
        f'# url = "{PROXY.format("pypi")}"\n# ///\nprint(1)\n'
    )
    wanted = '# /// script\n# dependencies = ["a"]\n# ///\nprint(1)\n'
    assert restored("print(1)\n", after, []) == wanted


def test_scripts():
    before = "# /// script\n# dependencies = []\n# ///\nprint(1)\n"
    after = (
        '# /// script\n# dependencies = [\n#     "a",\n# ]\n#\n# [[tool.uv.index]]\n'
        f'# url = "{PROXY.format("pypi")}"\n# default = true\n# ///\nprint(1)\n'
    )
    found = restored(before, after, [])
    assert "invalid" not in found
    assert found.startswith('# /// script\n# dependencies = [\n#     "a",\n# ]\n')
    assert found.endswith("# ///\nprint(1)\n")


def test_receipts():
    text = f'index = [{{ url = "{PROXY.format("a")}" }}, {{ url = "{PROXY.format("b")}" }}]'
    assert real_urls(text, {"a": "https://a"}) == (
        f'index = [{{ url = "https://a" }}, {{ url = "{PROXY.format("b")}" }}]'
    )


@pytest.mark.parametrize("tail", ["", "\n", "\n# The end.\n", "# A.\n\n# B.\n# C.\n"])
@pytest.mark.parametrize("other", ["", OTHER])
def test_comments_at_the_end(other, tail):
    """uv writes its table before them."""
    before = HEAD.format("old") + other + tail
    after = HEAD.format("new") + other + "\n" + table("pypi", PROXY.format("pypi")) + tail
    assert comments(restored(before, after, [])) == comments(before)


@pytest.mark.parametrize("moved", [False, True])
def test_comments_between_tables(moved):
    own, other = "\n" + table("a", "https://a"), "\n# Of the other.\n" + OTHER.lstrip("\n")
    before = HEAD.format("old") + own + other
    proxy = "\n" + table("a", PROXY.format("a"))
    after = HEAD.format("new") + (other + proxy if moved else proxy + other)
    assert comments(restored(before, after, [])) == ["# Of the other."]


def comments(text):
    return [line for line in text.splitlines() if line.startswith("#")]
