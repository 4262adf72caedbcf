"""Strict reading of parsed TOML and JSON.

Every value is checked when it is read, and every error names the place of the value. The readers
of variant metadata, platform files, settings, matrices and targets all use this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import shortened
from . import toml


class Tree:
    """Checked access to the values of one document.

    Methods that take *tree*, *key* and *path* read the value of a key: *tree* is the mapping and
    *path* its place, empty for the document itself. A missing key gives the default.
    """

    def __init__(self, error: Callable[[str, str], Exception], kind: str = "table") -> None:
        """Set up for one document.

        Args:
            error: makes the error of the path of a value and the problem with it.
            kind: what the format calls a mapping: ``table`` or ``object``.
        """
        self.error = error
        self._mapping = f"an {kind}" if kind == "object" else f"a {kind}"

    def load_toml(self, data: bytes | str) -> dict[str, Any]:
        """Parse a TOML document, within the limits of `toml`."""
        try:
            return toml.loads(data if isinstance(data, str) else data.decode())
        except (ValueError, RecursionError) as error:
            raise self.error("", f"not valid TOML: {error}") from None

    def check_keys(self, tree: Mapping[str, Any], path: str, known: Iterable[str]) -> None:
        """Refuse keys other than *known*: they are misspelled."""
        known = tuple(known)
        for key in tree:
            if key not in known:
                place = joined(path, shortened(key, 80)[1:-1])
                raise self.error(place, f"unknown key; the keys are {', '.join(known)}")

    def mapping(self, value: object, path: str) -> dict[str, Any]:
        """Return *value*, a mapping."""
        if not isinstance(value, dict):
            raise self.expected(self._mapping, value, path)
        return value

    def table(self, tree: Mapping[str, Any], key: str, path: str = "") -> dict[str, Any]:
        """Return the mapping at *key*, by default an empty one."""
        return self.mapping(tree.get(key, {}), joined(path, key))

    def tables(self, tree: Mapping[str, Any], key: str, path: str = "") -> list[dict[str, Any]]:
        """Return the list of mappings at *key*, by default an empty one."""
        value = tree.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.expected(f"tables such as [[{key}]]", value, joined(path, key))
        return value

    def string(self, tree: Mapping[str, Any], key: str, path: str = "") -> str | None:
        """Return the string at *key*, None by default."""
        value = tree.get(key)
        if value is not None and not isinstance(value, str):
            raise self.expected("a string", value, joined(path, key))
        return value

    def boolean(self, tree: Mapping[str, Any], key: str, path: str, default: bool) -> bool:
        """Return the boolean at *key*."""
        value = tree.get(key, default)
        if not isinstance(value, bool):
            raise self.expected("true or false", value, joined(path, key))
        return value

    def strings(self, tree: Mapping[str, Any], key: str, path: str = "") -> tuple[str, ...]:
        """Return the list of strings at *key*, by default an empty one."""
        return self.string_list(tree.get(key, []), joined(path, key))

    def string_list(
        self, value: object, path: str, expected: str = "a list of strings"
    ) -> tuple[str, ...]:
        """Return *value*, a list of strings; *expected* says so in the error."""
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.expected(expected, value, path)
        return tuple(value)

    def expected(self, what: str, value: object, path: str) -> Exception:
        """Return the error of a *value* of the wrong type."""
        return self.error(path, f"expected {what}, found {shortened(value)}")


def joined(path: str, key: str) -> str:
    """Return the path of *key* in the mapping at *path*."""
    return f"{path}.{key}" if path else key
