"""Checks of the tables of a TOML file, which name the file, the place and the value."""

from __future__ import annotations

from typing import Any

from packaging.utils import InvalidName, canonicalize_name

from pep_variants.errors import shortened

from .model import MatrixError


class TableChecks:
    """Reads values of one file; every method raises `MatrixError` for what is not expected.

    Each takes the path of the value, or of its table, for the message.
    """

    def __init__(self, source: str) -> None:
        self.source = source

    def check_keys(self, table: dict[str, Any], path: str, known: tuple[str, ...]) -> None:
        """Refuse keys of *table* that are not *known*."""
        for key in table:
            if key not in known:
                raise self.error(
                    path, f"unknown key {shortened(key)}; there are {', '.join(known)}"
                )

    def table(self, tree: dict[str, Any], key: str, path: str) -> dict[str, Any]:
        """Return the table *key* of *tree*, empty if it is missing."""
        value = tree.get(key, {})
        if not isinstance(value, dict):
            place = f"{path}.{key}" if path else key
            raise self.error(place, f"expected a table, found {shortened(value)}")
        return value

    def tables(self, tree: dict[str, Any], key: str) -> list[dict[str, Any]]:
        """Return the list of tables *key* of *tree*, empty if it is missing."""
        value = tree.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.error(key, f"expected tables such as [[{key}]], found {shortened(value)}")
        return value

    def string(self, table: dict[str, Any], key: str, path: str, default: str) -> str:
        """Return the string *key* of *table*, or *default* if it is missing."""
        value = table.get(key, default)
        if not isinstance(value, str):
            place = f"{path}.{key}" if path else key
            raise self.error(place, f"expected a string, found {shortened(value)}")
        return value

    def strings(self, value: object, path: str, expected: str) -> tuple[str, ...]:
        """Return *value* if it is a list of strings; *expected* says what else it may be."""
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(path, f"expected {expected} of strings, found {shortened(value)}")
        return tuple(value)

    def project(self, value: object, path: str) -> str:
        """Return the normalized project name *value*, empty if it is empty."""
        try:
            return str(canonicalize_name(value, validate=True)) if value else ""  # type: ignore[arg-type]
        except (InvalidName, TypeError):
            raise self.error(path, f"{shortened(value)} is not a valid project name") from None

    def error(self, path: str, problem: str) -> MatrixError:
        """Return the error for *problem* at *path*."""
        return MatrixError(self.source, path, problem)
