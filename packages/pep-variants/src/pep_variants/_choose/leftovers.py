"""What a build leaves behind that another one replaces: dependencies, and files of two owners.

Builds of one project require different libraries, such as ``nvidia-nccl-cu12`` and ``-cu13``, which
own the same file. Installers install and remove them in any order, and leave dependencies that are
no longer required. `unneeded` says what to remove, `repairs` what to install again after that.

Requirements count whatever their markers say, of extras as well: it is not recorded which extras
were asked for, and what is removed must not be needed. Of the build that is replaced, and of the
one that replaces it, only those without an extra count: a build that is an extra has its
requirements written out.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from packaging.utils import canonicalize_name

from .._wheelfile.installed import Installed, OwnershipProblem, ownership_problems
from ..errors import InvalidMarker
from ..markers import is_for_extra

_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")
_FOR_CUDA = re.compile(r"(nvidia-.+)-cu\d+")
_CHUNK = 1 << 20


def required_by(
    found: Mapping[str, Installed], names: Iterable[str], without_extras: Collection[str] = ()
) -> set[str]:
    """Return the projects that *names* require, and those that these require, and so on.

    Args:
        found: what is installed, by project. Their requirements are read now.
        names: normalized names.
        without_extras: projects whose requirements for extras do not count.
    """
    required: set[str] = set()
    waiting = [name for name in names if name in found]
    while waiting:
        project = waiting.pop()
        for text in found[project].requires:
            if project in without_extras and _is_optional(text):
                continue
            match = _NAME.match(text)
            name = canonicalize_name(match[1]) if match else ""
            if name and name not in required:
                required.add(name)
                waiting += [name] if name in found else []
    return required


def unneeded(
    before: Mapping[str, Installed],
    after: Mapping[str, Installed],
    changed: Iterable[str],
    asked: Collection[str] = (),
) -> list[Installed]:
    """Return what only the builds that were replaced required, by project.

    Args:
        before: what was installed, by project; what *changed* required was read by `required_by`.
        after: what is installed now.
        changed: normalized names of the projects of which another build was installed.
        asked: projects that the user names; they stay, as do those that the user named to pip.
    """
    changed = set(changed)
    gone = required_by(before, changed, changed) - changed - {*asked}
    gone = {name for name in gone & after.keys() if not after[name].is_requested}
    kept = required_by(after, after.keys() - gone, changed)
    return [after[name] for name in sorted(gone - kept)]


def _is_optional(requirement: str) -> bool:
    try:
        return is_for_extra(requirement)
    except InvalidMarker:
        return False


def rivals(names: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Yield those of *names* that have the same files: one library for different CUDA versions.

    NVIDIA's packages whose names end in the version have the same folder, and files without a
    version in their names.

    >>> from pep_variants.selection import rivals
    >>> list(rivals(["nvidia-nccl-cu12", "nvidia-nccl-cu13", "numpy"]))
    [('nvidia-nccl-cu12', 'nvidia-nccl-cu13')]
    """
    groups: dict[str, list[str]] = {}
    for name in sorted(names):
        match = _FOR_CUDA.fullmatch(name)
        if match:
            groups.setdefault(match[1], []).append(name)
    yield from (tuple(group) for group in groups.values() if len(group) > 1)


class Repairs(NamedTuple):
    """What is wrong with files after a command.

    Attributes:
        again: distributions to be installed again: what is required, but has files that are missing
            or are those of another distribution.
        contested: files that several distributions own which are all required, with different
            contents: only one of these works.
    """

    again: tuple[Installed, ...]
    contested: tuple[OwnershipProblem, ...]


def repairs(
    paths: Iterable[str],
    found: Mapping[str, Installed],
    projects: Collection[str],
    without: Collection[str] = (),
    *,
    going: Collection[str] = (),
    alone: bool = True,
) -> Repairs:
    """Return what is wrong with the files of *projects* and of what these require.

    Args:
        paths: directories as in ``sys.path``.
        found: what is installed there, by project.
        projects: normalized names.
        without: what is no longer required, see `unneeded`.
        going: projects whose files are going to be removed.
        alone: whether to return what has lost a file that no other project owns.
    """
    within = {*projects, *required_by(found, projects)}
    required = {*projects, *required_by(found, found.keys() - {*without})}
    again: dict[str, Installed] = {}
    contested = []
    for problem in ownership_problems(paths, within):
        owners = [owner.partition("==")[0] for owner in problem.owners]
        staying = [name for name in owners if name not in going]
        if within.isdisjoint(owners) or not staying or (len(owners) == 1 and not alone):
            continue
        needed = [name for name in staying if name in required and name in found] or staying[:1]
        lost = problem.missing or len(staying) < len(owners)
        digests = {problem.digests[owners.index(name)] for name in needed}
        if len(digests) > 1:
            contested.append(problem)
        elif lost or digests != {_digest(problem.path, *digests)}:
            again[needed[0]] = found[needed[0]]
    return Repairs(tuple(again[name] for name in sorted(again)), tuple(contested))


def _digest(path: str, like: str) -> str:
    """Return the digest of the file at *path* in the form and algorithm of *like*, see `Row`."""
    algorithm = like.partition("=")[0]
    if algorithm not in hashlib.algorithms_guaranteed:
        return like
    digest = hashlib.new(algorithm)
    try:
        for chunk in _chunks(path):
            digest.update(chunk)
    except OSError:
        return like
    return f"{algorithm}={base64.urlsafe_b64encode(digest.digest()).rstrip(b'=').decode()}"


def _chunks(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:  # noqa: PTH123
        while chunk := file.read(_CHUNK):
            yield chunk
