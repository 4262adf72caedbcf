"""A uv command that writes an export, to a file or standard output, and what is made of that."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pep_variants.errors import LockError
from pep_variants.files import replacing
from variants_proxy.choice.in_place_names import FOLDER

from ..command_scope import EXPORTING
from ..errors import ExportFailed
from ..locked_variants import Lock
from ..uv_process import run_uv

if TYPE_CHECKING:
    from ..invocation import Invocation
    from ..place import Place
    from .files import ExportedFiles


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
        return cls(
            is_compile,
            place.cwd / output if output else None,
            lock,
            not is_compile and not invocation.has("no-hashes"),
        )

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
        with _kept(self.path) as keep, tempfile.TemporaryFile() as output:
            code = run_uv(command, environ, stdout=output)
            output.seek(0)
            printed = output.read()
            if code == 0:
                if self.is_compile:
                    check()
                printed = self._completed(printed, files)
                if self.path is not None and self.path.is_file():
                    before = self.path.read_bytes()
                    after = self._completed(before, files)
                    if after != before:
                        _replace(self.path, after)
            keep()
        sys.stdout.flush()
        sys.stdout.buffer.write(printed)
        sys.stdout.buffer.flush()
        return code

    def _completed(self, data: bytes, files: ExportedFiles) -> bytes:
        """Return what uv wrote with the files of the indexes."""
        from . import pylock, requirements

        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise LockError("what uv wrote is not UTF-8") from None
        lock = None if self.is_compile else Lock.read(self.lock)
        if text.startswith("{"):
            _check_bill_of_materials(text)
        elif pylock.is_pylock(text):
            text = pylock.with_real_files(
                text,
                files.of_locked,
                files.note_left_out,
                lambda each: files.parts(each.name, each.version, lock),
            )
        else:
            names = {pinned.name for pinned in requirements.pinned_requirements(text)}
            files.prepare(names if lock is None else names.intersection(lock.projects))
            is_hashed = self.hashes or "--hash=" in text
            text = requirements.with_origins(
                text, lambda each: files.parts(each.name, each.version, lock), hashes=is_hashed
            )
            if is_hashed:
                hashes = {
                    pinned: files.hashes(pinned.name, pinned.version, lock)
                    for pinned in requirements.pinned_requirements(text)
                }
                text = requirements.with_hashes(text, lambda pinned: hashes[pinned])
        return text.encode()


def _check_bill_of_materials(text: str) -> None:
    """Refuse a CycloneDX document with variant wheels: their URLs in it are those of our proxy.

    Raises:
        ExportFailed: it lists some.
    """
    found = re.search(rf"/([^/\s\"]+)/{re.escape(FOLDER)}/", text)
    if found is not None:
        raise ExportFailed(
            f"{found[1]} is locked with variants, whose files uv cannot list in CycloneDX: nothing "
            "was written; describe what is installed: uvx --from cyclonedx-bom cyclonedx-py "
            "environment .venv; or export --format pylock.toml"
        )


@contextmanager
def _kept(path: Path | None) -> Iterator[Callable[[], None]]:
    """Restore the file at *path* when the block ends, unless it calls what this yields."""
    before: bytes | None = None
    with contextlib.suppress(OSError):
        before = path.read_bytes() if path is not None else None
    done = False

    def keep() -> None:
        nonlocal done
        done = True

    try:
        yield keep
    finally:
        if path is not None and not done:
            if before is not None:
                _replace(path, before)
            else:
                path.unlink(missing_ok=True)


def _replace(path: Path, data: bytes) -> None:
    """Write *data* to the file at *path*, or the one that it is a link to, all or nothing."""
    target = Path(os.path.realpath(path))
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666
    with replacing(target, mode=mode) as stream:
        stream.write(data)
