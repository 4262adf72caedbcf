import contextlib

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from pep_variants import limits
from pep_variants._formats.toml import read_toml
from support.waiting import processor_limit

SIZE = limits.LOCK_BYTES  # the largest limit of any TOML that is read


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("a.b = [[1], {c = '[['}]", {"a": {"b": [[1], {"c": "[["}]}}),
        ('a = """[[ \\" "" \\\\"""\nb = 1', {"a": '[[ " "" \\', "b": 1}),
        ("a = '''['' [\n'''\nb = 1", {"a": "['' [\n", "b": 1}),
        ('# [[ " \na = "\\"[" # \'\n', {"a": '"['}),
        (f"a = '{'.' * 99}'", {"a": "." * 99}),
        (f'a = "{"[" * 99}"', {"a": "[" * 99}),
        (f"a = [\n{'1.5, ' * 99}]", {"a": [1.5] * 99}),
        (f"a = {'[' * limits.TOML_DEPTH}{']' * limits.TOML_DEPTH}", None),
        (f"{'a.' * (limits.TOML_KEY_PARTS - 1)}a = 1", None),
    ],
)
def test_documents(text, expected):
    found = read_toml(text)
    assert expected is None or found == expected


_STRINGS = st.text(st.sampled_from("\"'\\[]{}#.,=\n\tab"), max_size=9)


@given(
    st.dictionaries(
        _STRINGS,
        st.recursive(
            st.one_of(_STRINGS, st.integers(-9, 9), st.floats(allow_nan=False), st.dates()),
            lambda inner: st.one_of(st.lists(inner), st.dictionaries(_STRINGS, inner)),
        ),
    ),
    st.booleans(),
)
def test_strings_and_comments_hide_nothing(tree, multiline):
    """Nor does what is in them count: it would be beyond every limit."""
    comment = "# [[[ \"\"\" ''' \" ' a.b.c\n"
    text = tomli_w.dumps(tree, multiline_strings=multiline)
    assert read_toml(comment * 65 + text) == read_toml(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"\na = {'[' * 65}", "line 2: nested more than 64 deep"),
        (f"a = {'{a=' * 65}", "line 1: nested more than 64 deep"),
        (f"a = {'[{a = ' * 40}", "line 1: nested more than 64 deep"),
        (f"{'a.' * 16}a = 1", "line 1: a key of more than 16 parts"),
        (f"\n\n[{'a . ' * 16}a]", "line 3: a key of more than 16 parts"),
        (f"a = {{{'a.' * 16}a = 1}}", "line 1: a key of more than 16 parts"),
        (f"""{"'a'." * 16}a = 1""", "line 1: a key of more than 16 parts"),
    ],
)
def test_too_deep(text, problem):
    with pytest.raises(ValueError, match=problem):
        read_toml(text)


# Each as long as may be, most of them beyond what may be in it.
HOSTILE = {
    "dotted keys": "".join(f"a{n}.{'a.' * 14}a=1\n" for n in range(SIZE // 40)),
    "nested arrays": "a=[" + ("[" * 60 + "]" * 60 + ",") * (SIZE // 121) + "]",
    "inline tables": "a=" + "{a=" * (SIZE // 3),
    "multi-line strings": '"""\\' * (SIZE // 4),
    "quotes in a multi-line string": 'a="""' + '"\\"' * (SIZE // 3),
    "escapes": 'a="' + "\\" * SIZE,
    "digits": "a=" + "1_" * (SIZE // 2) + "1",
    "as many headers as may be": "".join(
        f"[a{n}.{'a.' * 14}a]\n" for n in range(limits.TOML_WORK // 160)
    ),
    "as many inline tables as may be": "a=[" + "{b.c=1}," * (limits.TOML_WORK // 10) + "]",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_the_worst_documents_end(name):
    with processor_limit(), contextlib.suppress(ValueError):
        read_toml(HOSTILE[name])
