"""What the doctor finds: data for people and for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Problem:
    """Something that is wrong, or could be better.

    Attributes:
        text: what, where and why, on one line.
        command: what to type, empty if there is no command for it.
        fails: something does not fit or work; else it is a hint.
    """

    text: str
    command: str = ""
    fails: bool = True


@dataclass(frozen=True)
class VariantState:
    """A project that is installed or locked, and the variant that would be chosen now.

    Attributes:
        name: normalized name.
        version: as it is installed or locked.
        label: of its variant; empty for none, ``here`` for the one that fits when it is installed.
        fits: whether the variant fits this machine, None if that is not known.
        why: why it fits, or why not; why it is not known.
        best: label of the variant that would be chosen now, empty for none.
        best_why: why that one.
    """

    name: str
    version: str
    label: str
    fits: bool | None
    why: str = ""
    best: str = ""
    best_why: str = ""

    @property
    def is_best(self) -> bool:
        """Whether another variant would not be chosen now, as far as known."""
        return self.fits is None or self.label in (self.best, "here")


@dataclass(frozen=True)
class File:
    """A file or directory that counts.

    Attributes:
        what: what it is.
        path: where it is.
        bytes: size of a directory, None for files.
        complete: whether all of the directory was measured.
    """

    what: str
    path: str
    bytes: int | None = None
    complete: bool = True


@dataclass(frozen=True)
class Findings:
    """Everything that was found, see `as_tree` for JSON.

    Attributes:
        versions: of uv-variants and uv, the path of uv, and whether that uv was tested.
        machine: facts by namespace.
        environment: path, empty without one.
        installed: variants there.
        lock: path, empty without one.
        locked: variants in it.
        indexes: URL, without credentials, by name.
        unasked: why an index could not be asked, by name.
        proxy: what is known of the background process.
        files: that count for settings and certificates.
        caches: with their sizes.
        problems: those that fail first.
    """

    versions: Mapping[str, Any] = field(default_factory=dict)
    machine: Mapping[str, list[str]] = field(default_factory=dict)
    environment: str = ""
    installed: tuple[VariantState, ...] = ()
    lock: str = ""
    locked: tuple[VariantState, ...] = ()
    indexes: Mapping[str, str] = field(default_factory=dict)
    unasked: Mapping[str, str] = field(default_factory=dict)
    proxy: Mapping[str, str] = field(default_factory=dict)
    files: tuple[File, ...] = ()
    caches: tuple[File, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def is_well(self) -> bool:
        """Whether everything fits and works."""
        return not any(problem.fails for problem in self.problems)

    def as_tree(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {**asdict(self), "well": self.is_well}
