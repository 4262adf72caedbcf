"""The source distribution that all variants are built from."""

from __future__ import annotations

import os
import shutil
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .build_plan import BuildError, Plan
from .build_process import CommandRunner
from .build_results import digest, fingerprint
from .frontends import command
from .source_project import SourceProject, read_source


@dataclass(frozen=True)
class SourceArchive:
    """A source distribution.

    Attributes:
        path: the file.
        digest: of its contents, independent of dates and owners.
        project: what it says of its own build.
    """

    path: Path
    digest: str
    project: SourceProject

    @classmethod
    def read(cls, path: Path) -> SourceArchive:
        """Read the source distribution at *path*.

        Raises:
            BuildError: it cannot be read as one.
            OSError: it cannot be opened.
        """
        return cls(path, contents_digest(path), read_source(path))


def make_sdist(plan: Plan) -> Path:
    """Return the source distribution to build from; build it unless the matrix names one.

    Raises:
        BuildError: the source is missing, or building the source distribution failed.
    """
    source = plan.matrix.build.source
    if source.is_file():
        return source.resolve()
    if not source.is_dir():
        raise BuildError(f"{source}: no such file or directory: name the source with --source")
    target = plan.folder / "sdist"
    shutil.rmtree(target, ignore_errors=True)
    log = plan.folder / "sdist.log"
    environment = dict(os.environ)
    constraints = None
    # One source distribution for all variants, made beside what the first of them is built against.
    against = next(iter(plan.against.values()), None)
    if against is not None:
        constraints = against.constraints(plan.folder)
        environment.update(against.environment(environment, constraints))
    line = command(
        plan.frontend, "sdist", source.resolve(), target, {},
        isolated=plan.isolated, constraints=constraints,
    )  # fmt: skip
    CommandRunner(threading.Event()).run(line, log, environment, "the source distribution")
    found = sorted((*target.glob("*.tar.gz"), *target.glob("*.zip")))
    if len(found) != 1:
        raise BuildError(f"{target}: expected one source distribution, found {len(found)}")
    return found[0].resolve()


def contents_digest(sdist: Path) -> str:
    """Return a digest of the files in *sdist*, independent of dates and owners."""
    return fingerprint(sorted(_members(sdist)))


def unpack(sdist: Path, target: Path) -> Path:
    """Unpack *sdist* to *target*; return its top-level folder.

    Raises:
        BuildError: it does not have exactly one.
    """
    target.mkdir()
    if sdist.suffix == ".zip":
        with zipfile.ZipFile(sdist) as archive:
            archive.extractall(target)  # noqa: S202 - zipfile keeps names inside
    else:
        with tarfile.open(sdist) as tar:
            if hasattr(tarfile, "data_filter"):
                tar.extractall(target, filter="data")
            else:  # a Python without the fix of PEP 706
                tar.extractall(target)  # noqa: S202 - the user's own source distribution
    folders = [path for path in target.iterdir() if path.is_dir()]
    if len(folders) != 1:
        raise BuildError(
            f"{sdist}: not a source distribution: it has {len(folders)} top-level folders, not one"
        )
    return folders[0]


def _members(sdist: Path) -> Iterator[tuple[str, int, str]]:
    """Yield name, executable bits and digest of the contents of every member of *sdist*."""
    if sdist.suffix == ".zip":
        with zipfile.ZipFile(sdist) as archive:
            for info in archive.infolist():
                with archive.open(info) as stream:
                    yield info.filename, 0, digest(stream)
        return
    with tarfile.open(sdist) as tar:
        for member in tar:
            contents = tar.extractfile(member) if member.isfile() else None
            content = digest(contents) if contents else member.linkname
            yield member.name, member.mode & 0o111, content
