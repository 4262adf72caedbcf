"""Tables of TOML files: getters whose errors name the file, the key and the value."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from packaging.utils import canonicalize_name

from pep_variants.errors import VariantError, redacted, shortened
from pep_variants.formats import toml

T = TypeVar("T")


class TableError(VariantError):
    """A file that cannot be used.

    Attributes:
        source: the file.
        path: place inside it, e.g. ``axes.gpu.sm90.requires``; empty for the whole file.
        problem: what is wrong, with the value and what to do.
    """

    def __init__(self, source: str, path: str, problem: str) -> None:
        self.source, self.path, self.problem = redacted(source), path, problem
        super().__init__(": ".join(filter(None, (self.source, path, problem))))


def read_toml(path: Path) -> dict[str, Any]:
    """Return the contents of the TOML file *path*.

    Raises:
        TableError: it is not valid TOML.
        OSError: it cannot be read.
    """
    try:
        return toml.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, UnicodeDecodeError
        raise TableError(str(path), "", f"not valid TOML: {error}") from None


def project_name(text: str) -> str:
    """Return the normalized project name *text*.

    Raises:
        ValueError: it is none.
    """
    return str(canonicalize_name(text, validate=True))


class Table:
    """A table of a file; getters raise `TableError` for what is not expected.

    Attributes:
        source: the file.
        path: of the table in it, empty for the whole file.
        tree: its contents.
    """

    def __init__(self, source: str, path: str, tree: dict[str, Any]) -> None:
        self.source, self.path, self.tree = source, path, tree

    def error(self, problem: str, key: str = "") -> TableError:
        """Return the error for *problem* of the table, or of its *key*."""
        return TableError(self.source, ".".join(filter(None, (self.path, key))), problem)

    def check(self, fine: object, problem: str, key: str = "") -> None:
        """Raise the error for *problem* of the table, or of its *key*, unless it is *fine*."""
        if not fine:
            raise self.error(problem, key)

    def check_keys(self, *known: str) -> None:
        """Refuse keys that are not *known*."""
        for key in self.tree:
            self.check(key in known, f"unknown key {shortened(key)}; there are {', '.join(known)}")

    def at(self, key: str, tree: dict[str, Any]) -> Table:
        """Return *tree* as the table at *key*."""
        return Table(self.source, ".".join(filter(None, (self.path, key))), tree)

    def table(self, key: str) -> Table:
        """Return the table *key*, empty if it is missing."""
        value = self.tree.get(key, {})
        self.check(isinstance(value, dict), f"expected a table, found {shortened(value)}", key)
        return self.at(key, value)

    def tables(self, key: str) -> list[Table]:
        """Return the list of tables *key*, empty if it is missing."""
        value = self.tree.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.error(f"expected tables such as [[{key}]], found {shortened(value)}", key)
        return [self.at(f"{key}[{number}]", item) for number, item in enumerate(value)]

    def string(self, key: str, default: str = "") -> str:
        """Return the string *key*, or *default* if it is missing."""
        value = self.tree.get(key, default)
        self.check(isinstance(value, str), f"expected a string, found {shortened(value)}", key)
        return str(value)

    def texts(self) -> dict[str, str]:
        """Return the contents, all of which have to be strings."""
        return {key: self.string(key) for key in self.tree}

    def strings(
        self, key: str, expected: str = "a list", default: Iterable[str] = ()
    ) -> tuple[str, ...]:
        """Return the list of strings *key*; *expected* says what else it may be."""
        value = self.tree.get(key, list(default))
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(f"expected {expected} of strings, found {shortened(value)}", key)
        return tuple(value)

    def words(self, key: str, text: str) -> tuple[str, ...]:
        """Return the words of the command *text*."""
        (words,) = self.parsed(key, shlex.split, [text], "is not a valid command: {error}")
        return tuple(words)

    def read(self, key: str, read: Callable[[str], T], what: str = "{error}") -> T | None:
        """Return what *read* makes of the string *key*, None if it is missing; see `parsed`."""
        if key not in self.tree:
            return None
        (found,) = self.parsed(key, read, [self.string(key)], what)
        return found

    def parsed(
        self, key: str, read: Callable[[str], T], texts: Iterable[str], what: str = "{error}"
    ) -> list[T]:
        """Return what *read* makes of *texts*.

        Args:
            key: their key.
            read: raises a ValueError or VariantError for a wrong one.
            texts: strings.
            what: what a wrong one is not, for messages; ``{error}`` is what the error says, which
                is the default.
        """
        found = []
        for text in texts:
            try:
                found.append(read(text))
            except VariantError as error:  # which names the text
                raise self.error(str(error), key) from None
            except ValueError as error:
                raise self.error(
                    f"{shortened(text)} {what}".replace("{error}", str(error)), key
                ) from None
        return found
