"""A uv command that writes an export, to a file or standard output, and what is made of that."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.pylock import is_valid_pylock_path

from pep_variants.internal import (
    LOCK_TEXT_BYTES,
    LockError,
    labels_of,
    lists_variants,
    read_text,
    replacing,
    toml,
)
from variants_proxy.internal import FOLDER

from ..command_scope import EXPORTING
from ..errors import ExportFailed
from ..locked_variants import Lock
from ..uv_process import run_uv

if TYPE_CHECKING:
    from ..invocation import Invocation
    from ..place import Place
    from .exported_files import ExportedFiles, Part


@dataclass(frozen=True)
class ExportCommand:
    """A command that writes an export.

    Attributes:
        is_compile: ``pip compile``, which resolves; ``export`` reads a lock.
        path: file that it writes, None for standard output alone.
        lock: path of the lock file, None without one.
        hashes: whether the user wants hashes, as far as the command line says.
    """

    is_compile: bool
    path: Path | None
    lock: Path | None
    hashes: bool

    @classmethod
    def of(cls, invocation: Invocation, place: Place, lock: Path | None) -> ExportCommand | None:
        """Return the export that *invocation* writes, None if it writes none."""
        if invocation.command not in EXPORTING or invocation.has("dry-run"):
            return None
        is_compile = invocation.command == ("pip", "compile")
        output = invocation.last("output-file")
        path = place.cwd / output if output else None
        return cls(is_compile, path, lock, not is_compile and not invocation.has("no-hashes"))

    def run(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        files: ExportedFiles,
        check: Callable[[], None],
    ) -> int:
        """Run uv, and complete what it writes; return its exit code.

        If that fails, the file has the contents that it had before, and nothing is printed.

        Args:
            command: uv's command line.
            environ: environment variables.
            files: what the indexes have; asked after uv has ended.
            check: raises if what was resolved is not to be written.

        Raises:
            SourcesMissing: *check* raised it.
            ExportFailed, ProxyFailed, VariantError: what belongs there cannot be found out.
            OSError: the file cannot be written.
        """
        path = self.path
        before = path.read_bytes() if path is not None and path.is_file() else None
        try:
            with tempfile.TemporaryFile() as output:
                code = run_uv(command, environ, stdout=output)
                output.seek(0)
                printed = output.read()
            if code == 0:
                if self.is_compile:
                    check()
                written = path.read_bytes() if path is not None and path.is_file() else b""
                known = {data: self._completed(data, files) for data in {printed, written}}
                printed = known[printed]
                if path is not None and written:
                    _replace(path, known[written])
        except BaseException:
            if path is not None and before is not None:
                _replace(path, before)
            elif path is not None:
                path.unlink(missing_ok=True)
            raise
        sys.stdout.flush()
        sys.stdout.buffer.write(printed)
        sys.stdout.buffer.flush()
        return code

    def _completed(self, data: bytes, files: ExportedFiles) -> bytes:
        """Return what uv wrote with the files of the indexes."""
        from . import documents

        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise LockError("what uv wrote is not UTF-8") from None
        lock = None if self.is_compile else Lock.read(self.lock)

        @cache
        def parts(each: documents.Pinned | documents.LockedVariants) -> list[Part]:
            return files.parts(each.name, each.version, lock)

        @cache
        def hashes(each: documents.Pinned) -> set[str]:
            return files.hashes(each.name, each.version, lock)

        if documents.is_pylock(text):
            text = documents.with_real_files(text, lambda each: files.locked(*each), parts)
        elif not text.startswith("{"):
            names = {pinned.name for pinned in documents.pinned_requirements(text)}
            files.prepare(names if lock is None else names.intersection(lock.projects))
            is_hashed = self.hashes or "--hash=" in text
            text = documents.with_hashes(text, parts, hashes if is_hashed else None)
        before, found, _ = text.partition(f"/{FOLDER}/")
        if found:
            raise ExportFailed(
                f"{before.rpartition('/')[2]} is locked with variants, whose files uv cannot list "
                "in this format: nothing was written; export --format pylock.toml"
            )
        return text.encode()


def _replace(path: Path, data: bytes) -> None:
    """Write *data* to the file at *path*, or the one that it is a link to, all or nothing."""
    target = Path(os.path.realpath(path))
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666
    if not target.exists() or target.read_bytes() != data:
        with replacing(target, mode=mode) as stream:
            stream.write(data)


def unread_variants(invocation: Invocation, place: Place) -> Iterator[str]:
    """Yield a line for each lock file of *invocation* whose variants uv does not take."""
    if invocation.command not in (("pip", "install"), ("pip", "sync")):
        return
    given = invocation.values("requirements")
    given += invocation.operands if invocation.command == ("pip", "sync") else ()
    for text in given:
        path = place.cwd / text
        try:
            if not is_valid_pylock_path(Path(text)):
                continue
            tree = toml.loads(read_text(path, LOCK_TEXT_BYTES))
        except (OSError, ValueError, RecursionError):
            continue  # for uv to report
        if lists_variants(tree):
            first = next(item for item in tree["packages"] if any(labels_of(item)))
            yield (
                f"{text}: uv takes no variants from it: it installs {first.get('name')} without, "
                "or fails; sync from uv.lock, export requirements instead, or install the file "
                "with pip and pep-variants-shim"
            )
