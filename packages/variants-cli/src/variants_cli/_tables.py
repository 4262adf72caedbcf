"""Tables of TOML files: getters whose errors name the file, the key and the value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from packaging.utils import canonicalize_name

from pep_variants import limits, safe_files
from pep_variants import metadata as variant_metadata
from pep_variants.errors import VariantError, redacted, shortened
from pep_variants.metadata import Tree

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


def read_toml(path: Path) -> Table:
    """Return the whole TOML file *path*.

    Raises:
        TableError: it is not valid TOML.
        OSError: it cannot be read, or is too large.
    """
    tree = Tree(partial(TableError, str(path)))
    data = safe_files.read_regular(path, limits.MATRIX_BYTES).data
    return Table(str(path), "", tree.load_toml(data))


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
        self._read = Tree(partial(TableError, source))

    def error(self, problem: str, key: str = "") -> TableError:
        """Return the error for *problem* of the table, or of its *key*."""
        return TableError(
            self.source, variant_metadata.joined(self.path, key) if key else self.path, problem
        )

    def check(self, fine: object, problem: str, key: str = "") -> None:
        """Raise the error for *problem* of the table, or of its *key*, unless it is *fine*."""
        if not fine:
            raise self.error(problem, key)

    def check_keys(self, *known: str) -> None:
        """Refuse keys that are not *known*."""
        self._read.check_keys(self.tree, self.path, known)

    def at(self, key: str, value: object) -> Table:
        """Return *value* as the table at *key*."""
        path = variant_metadata.joined(self.path, key)
        return Table(self.source, path, self._read.mapping(value, path))

    def table(self, key: str) -> Table:
        """Return the table *key*, empty if it is missing."""
        return self.at(key, self.tree.get(key, {}))

    def tables(self, key: str) -> list[Table]:
        """Return the list of tables *key*, empty if it is missing."""
        found = self._read.tables(self.tree, key, self.path)
        return [self.at(f"{key}[{number}]", item) for number, item in enumerate(found)]

    def string(self, key: str, default: str = "") -> str:
        """Return the string *key*, or *default* if it is missing."""
        return self._read.string({key: default, **self.tree}, key, self.path) or ""

    def texts(self) -> dict[str, str]:
        """Return the contents, all of which have to be strings."""
        return {key: self.string(key) for key in self.tree}

    def strings(
        self, key: str, expected: str = "a list", default: Iterable[str] = ()
    ) -> tuple[str, ...]:
        """Return the list of strings *key*; *expected* says what else it may be."""
        value = self.tree.get(key, list(default))
        return self._read.string_list(
            value, variant_metadata.joined(self.path, key), f"{expected} of strings"
        )

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
