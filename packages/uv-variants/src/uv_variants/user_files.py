"""Files of the user that uv writes indexes into: the proxy's URLs are replaced afterwards.

``uv add`` writes the indexes of its command line into ``pyproject.toml`` or a script, ``uv tool``
into the receipts of tools. Before ``uv add`` starts, the text of its file is kept in the cache: if
the command is killed, the next one restores the file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pep_variants.files import read_text, replacing
from pep_variants.limits import PYPROJECT_BYTES
from variants_proxy.upstream_options import bare_url

from .command_scope import Scope
from .daemon.address import RESERVED_URL
from .indexes import UserIndex
from .uv_directories import tool_directory

if TYPE_CHECKING:
    from .context import Context
    from .plan import Plan


@contextmanager
def real_indexes_restored(context: Context, plan: Plan) -> Iterator[None]:
    """Replace the proxy's URLs that uv writes inside the block."""
    command = context.invocation.command
    if command == ("add",):
        path = _edited_file(context)
        if path is None:
            yield
            return
        kept = KeptFile(path, context.cache)
        kept.keep(plan.persistent)
        try:
            yield
        finally:
            kept.restore()
        return
    yield
    if command in (("tool", "install"), ("tool", "upgrade")):
        restore_receipts(tool_directory(context.place.environ).glob("*"), plan.indexes)


def restore_left_over(context: Context) -> None:
    """Restore the file of an earlier ``uv add`` that was killed."""
    if context.scope is not Scope.PROJECT:
        return
    path = _edited_file(context)
    try:
        has_proxy_url = path is not None and RESERVED_URL in read_text(path, PYPROJECT_BYTES)
    except (OSError, ValueError):
        return
    if has_proxy_url and path is not None:
        KeptFile(path, context.cache).restore()


class KeptFile:
    """A file whose text before ``uv add`` is kept in the cache.

    Attributes:
        path: of the file.
        note: file with its text before, and the indexes that uv is given.
    """

    def __init__(self, path: Path, cache: Path) -> None:
        self.path = path.absolute()
        name = hashlib.sha256(str(self.path).encode("utf-8", "surrogatepass")).hexdigest()[:32]
        self.note = cache / "restore" / f"{name}.json"

    def keep(self, given: Sequence[UserIndex]) -> None:
        """Keep the text of the file, and the indexes that uv is to write into it."""
        text = _read(self.path)
        if text is None:
            return
        kept = {"text": text, "given": [_table(index) for index in given]}
        self.note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(self.note, json.dumps(kept))

    def restore(self) -> None:
        """Restore the indexes of the file if it has URLs of the proxy; forget its text."""
        note, text = _read(self.note), _read(self.path)
        if text is not None and note is not None and RESERVED_URL in text:
            from .pyproject_restore import restored

            try:
                tree = json.loads(note)
                fixed = restored(tree["text"], text, tree["given"])
            except (ValueError, KeyError, TypeError):
                return
            _write(self.path, fixed)
        with contextlib.suppress(OSError):
            self.note.unlink()


def restore_receipts(folders: Iterable[Path], indexes: Mapping[str, UserIndex]) -> None:
    """Write the real indexes into the receipts of tools in *folders*."""
    from .pyproject_restore import real_urls

    urls = {name: bare_url(index.url) for name, index in indexes.items()}
    for folder in folders:
        path = folder / "uv-receipt.toml"
        text = _read(path)
        if text is not None and RESERVED_URL in text:
            _write(path, real_urls(text, urls))


def _edited_file(context: Context) -> Path | None:
    """Return the file that ``uv add`` edits, None without one."""
    script = context.invocation.last("script")
    if script is not None:
        return context.place.cwd / script
    start = context.place.project.absolute()
    paths = (folder / "pyproject.toml" for folder in (start, *start.parents))
    return next((path for path in paths if path.is_file()), None)


def _table(index: UserIndex) -> dict[str, str | bool]:
    """Return *index* as ``uv add`` writes it into ``tool.uv.index``."""
    table: dict[str, str | bool] = {"name": index.name} if index.name else {}
    table["url"] = bare_url(index.url)
    return table | {"default": True} if index.default else table


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, ValueError):
        return None


def _write(path: Path, text: str) -> None:
    """Write *text* to *path* atomically, with the permissions that the file has."""
    try:
        mode = path.stat().st_mode & 0o777
    except OSError:
        mode = 0o600
    with replacing(path, mode=0o600) as file:
        file.write(text.encode("utf-8"))
        Path(file.name).chmod(mode)
