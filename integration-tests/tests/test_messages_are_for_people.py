"""Our code does not parse the messages of its own errors: it uses their types and fields."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from support.environments import DISTRIBUTIONS, ROOT

FOREIGN = {
    "str(error).removeprefix(f'{name}: ')",  # the dynamic loader's
    "re.search(_NO_BUCKET, str(error))",  # opendal's, which has one type for all errors
    "re.search(cause, str(error))",
}
"""Words of others, who have no types for what they mean."""

_READING = {"startswith", "endswith", "partition", "rpartition", "removeprefix", "removesuffix"}


def readings(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions in which the text of an exception is looked at."""
    caught = {node.name for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)}

    def is_text(node: ast.AST) -> bool:
        match node:
            case ast.Call(func=ast.Name("str"), args=[ast.Name(name)]):
                return name in caught
        return False

    for node in ast.walk(tree):
        match node:
            case ast.Compare(left, _, others) if any(map(is_text, (left, *others))):
                yield node
            case ast.Call(ast.Attribute(text, name)) if name in _READING and is_text(text):
                yield node
            case ast.Call(ast.Attribute(ast.Name("re")), args) if any(map(is_text, args)):
                yield node


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_no_error_is_read_back(distribution: str) -> None:
    for path in sorted((ROOT / distribution / "src").rglob("*.py")):
        for found in readings(ast.parse(path.read_text("utf-8"))):
            text = ast.unparse(found)
            assert text in FOREIGN, f"{path.relative_to(ROOT)}:{found.lineno}: {text}"


def test_readings() -> None:
    source = """
try:
    pass
except OSError as error:
    a = "x" in str(error)
    b = str(error).partition(":")
    c = re.search("x", str(error))
    d = f"{error}: {str(error)}"
"""
    assert [ast.unparse(found) for found in readings(ast.parse(source))] == [
        "'x' in str(error)",
        "str(error).partition(':')",
        "re.search('x', str(error))",
    ]
