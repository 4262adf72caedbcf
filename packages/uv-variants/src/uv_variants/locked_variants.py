"""The variants in uv.lock: what its URLs say of them.

A variant wheel is in a lock at ``<index>/<project>/.variant/<label>/<name>``, below the URL of its
own index, with the label in its build tag too. The hash is that of the file that is served there.
In a *floating* lock the label is `HERE`: each machine gets what fits it, and there is no hash.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from .invocation import Invocation

HERE = "here"
"""Label that stands for the variant that fits the machine at hand."""

_VARIANT_FILE = re.compile(
    r'url = "(?P<index>[^"\s]*)/(?P<project>[a-z0-9-]+)/\.variant/(?P<label>[^/"\s]+)'
    r'/(?P<name>[^/"\s?#]+\.whl)[^"]*"(?P<rest>[^{}\n]*)'
)
_PACKAGE = re.compile(r'(?m)^\[\[package\]\]\nname = "([^"]+)"\nversion = "([^"]+)"')

Labels = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Labels by project (normalized name) and version."""


@dataclass(frozen=True)
class LockedFile:
    """A variant wheel of a lock.

    Attributes:
        index: URL of its index.
        project: normalized name.
        label: of the variant, or `HERE`.
        name: of the file, with the label in its build tag.
        has_hash: whether the lock has a hash of it.
    """

    index: str
    project: str
    label: str
    name: str
    has_hash: bool

    @property
    def version(self) -> str:
        """Version in the name of the file."""
        return unquote(self.name).split("-")[1]


@dataclass(frozen=True)
class Lock:
    """A lock file, or none.

    Attributes:
        path: of the file, None for commands without one.
        text: its text, None if it does not exist or cannot be read.
        problem: why it cannot be read, empty if it can or does not exist.
    """

    path: Path | None = None
    text: str | None = field(default=None, repr=False)
    problem: str = ""

    @classmethod
    def read(cls, path: Path | None) -> Lock:
        """Return the lock file at *path* as it is now."""
        if path is None:
            return cls()
        from pep_variants.files import read_text
        from pep_variants.limits import LOCK_TEXT_BYTES

        try:
            return cls(path, read_text(path, LOCK_TEXT_BYTES))
        except FileNotFoundError:
            return cls(path)
        except (OSError, ValueError) as error:
            problem = getattr(error, "strerror", None) or "is not UTF-8"
            return cls(path, problem=f"{path}: {problem}")

    @cached_property
    def files(self) -> tuple[LockedFile, ...]:
        """The variant wheels."""
        return tuple(
            LockedFile(
                match["index"],
                match["project"],
                unquote(match["label"]),
                match["name"],
                "hash = " in match["rest"],
            )
            for match in _VARIANT_FILE.finditer(self.text or "")
        )

    @cached_property
    def labels(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """Labels of the variants, without `HERE`."""
        found: dict[str, dict[str, tuple[str, ...]]] = {}
        for file in self.files:
            if file.label != HERE:
                versions = found.setdefault(file.project, {})
                labels = versions.get(file.version, ())
                if file.label not in labels:
                    versions[file.version] = (*labels, file.label)
        return found

    @cached_property
    def versions(self) -> dict[str, set[str]]:
        """Versions of every project."""
        found: dict[str, set[str]] = {}
        for name, version in _PACKAGE.findall(self.text or ""):
            found.setdefault(name, set()).add(version)
        return found

    @property
    def projects(self) -> tuple[str, ...]:
        """Projects with variants (normalized names)."""
        return tuple(dict.fromkeys(file.project for file in self.files))

    @property
    def indexes(self) -> tuple[str, ...]:
        """URLs of the indexes that the variants are from."""
        return tuple(dict.fromkeys(file.index for file in self.files))

    @property
    def is_floating(self) -> bool:
        """Whether the variants are to fit the machine at hand."""
        return any(file.label == HERE for file in self.files)

    @property
    def without_hash(self) -> int:
        """Number of variant wheels that the lock has no hash of."""
        return sum(not file.has_hash for file in self.files)


def kept_labels(labels: Labels, invocation: Invocation, renewed: Iterable[str] | None) -> Labels:
    """Return the labels of a lock that stay as they are.

    Args:
        labels: of the lock.
        invocation: uv's command line, which may upgrade all or some of them.
        renewed: projects (normalized names) whose variants our own options decide, None for all.
    """
    if renewed is None or invocation.has("upgrade", "U"):
        return {}
    from packaging.utils import canonicalize_name

    given = invocation.values("upgrade-package")
    names = (re.split(r"[^A-Za-z0-9._-]", text.strip(), maxsplit=1)[0] for text in given)
    gone = {*map(canonicalize_name, names), *renewed}
    return {project: versions for project, versions in labels.items() if project not in gone}
