"""The hashes of a lock file: uv locks files of versions with variants without.

uv takes the dependencies of the file whose hash it knows from the last lock, so pages show it none
for such versions. They are written to the lock afterwards: the publisher's where the bytes are the
publisher's, else that of the wheel as it is served, for which it is read once. Of large wheels
that is done where `ALL_HASHES` asks for it; the next commands keep what a lock has.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pep_variants import safe_files
from variants_proxy import urls as proxy_urls
from variants_proxy.errors import PassingFailure

from ._errors import ALLOWED, SourcesMissing
from ._uv_lock import Lock, file_item
from ._uv_version import release_of

if TYPE_CHECKING:
    from variants_index.pages import PageFile

    from ._state import CommandState

_PACKAGE = re.compile(
    r'(?m)^name = "(?P<name>[^"]+)"\nversion = "(?P<version>[^"]+)"\n'
    r'source = \{ registry = "(?P<index>[^"]+)" \}(?P<files>(?:\n(?!\[\[package).*)*)'
)
_FILE = re.compile(
    r'(?m)^(?P<begin>(?:sdist = |    )\{ url = "(?P<url>[^"\s]+)")(?!, hash)(?:, size = \d+)?'
)
_HASHED = re.compile(r'\{ url = "(?P<url>[^"\s]+)"(?P<hash>, hash = "[^"]+"(?:, size = \d+)?)')
_KINDS = ("sha256", "sha384", "sha512", "blake2b")

Files = Callable[[str, str, str, "frozenset[str]"], "Iterable[PageFile]"]
"""Returns the files of a project (normalized name) and version on the page of an index (URL), of
which there are these filenames."""


_MIXES = (0, 9, 19)
"""The first release of uv that was found to install a wheel without a hash where others of its
version have one: older ones compare it with theirs."""


def with_hashes(
    text: str, files: Files, kept: Mapping[str, str] = MappingProxyType({}), *, mixes: bool = True
) -> str:
    """Return the text of a lock file with the hashes and sizes that it lacks.

    Args:
        text: of the file.
        files: of its indexes.
        kept: see `kept_hashes`; for what *files* do not know.
        mixes: whether a version may have files with a hash and files without.
    """

    def package(match: re.Match[str]) -> str:
        names = frozenset(
            _key(each["url"]).rpartition("/")[2] for each in _FILE.finditer(match["files"])
        )
        if not names:
            return match[0]
        found = files(match["name"], match["version"], match["index"], names)
        known = {_key(each.url): each for each in found}
        start = match.start("files") - match.start()
        written = _FILE.sub(lambda each: _entry(each, known, kept), match["files"])
        return match[0] if _FILE.search(written) and not mixes else match[0][:start] + written

    return _PACKAGE.sub(package, text)


def kept_hashes(lock: Lock, names: Container[str]) -> dict[str, str]:
    """Return hash and size that *lock* has of files, as they stand there, by URL.

    Of what the proxy serves of the projects *names*, which stay as they are.
    """
    return {
        match["url"]: match["hash"]
        for name, _, text in lock.packages
        if name in names
        for match in _HASHED.finditer(text)
        if f"/{proxy_urls.FOLDER}/" in match["url"]
    }


def _entry(match: re.Match[str], known: Mapping[str, PageFile], kept: Mapping[str, str]) -> str:
    file = known.get(_key(match["url"]))
    kind = next((each for each in _KINDS if file is not None and file.hashes.get(each)), None)
    if file is None or kind is None:
        old = kept.get(match["url"])
        return match[0] if old is None else f"{match['begin']}{old}"
    size = "" if file.size is None else f", size = {file.size}"
    return f'{match["begin"]}, hash = "{kind}:{file.hashes[kind]}"{size}'


def _key(url: str) -> str:
    at = url if "://" in url else f"./{url}"  # those of the proxy are relative to the page
    return unquote(file_item(at.partition("#")[0]))


def complete(state: CommandState, *, ended: bool = True) -> None:
    """Write the hashes to the lock file that uv has written, and that stays if it has not *ended*.

    Raises:
        SourcesMissing: a wheel cannot be read for now; the lock is as it was before.
        OSError: it cannot be written.
        ProxyFailed: there are no answers.
    """
    context, before = state.context, state.context.lock
    now = Lock.read(before.path)
    if now.path is None or now.text is None or now.text == before.text:
        return
    names = {
        proxy_urls.bare_url(index.url): name for name, index in context.answered_indexes.items()
    }

    @cache
    def files(project: str, version: str, index: str, wanted: frozenset[str]) -> Iterable[PageFile]:
        name = names.get(proxy_urls.bare_url(index))
        return () if name is None else state.session.hashed(project, version, name, wanted)

    release = release_of(context.uv, context.place.environ, context.cache / "uv-versions")
    hashed = partial(
        with_hashes,
        files=files,
        kept=kept_hashes(before, context.kept),
        mixes=not () < release < _MIXES,
    )
    try:
        if hashed(now.text) == now.text:
            return
    except PassingFailure as error:
        left = before.restore() if ended else "not yet"
        raise SourcesMissing(f"{left}: {error}; {ALLOWED} goes on without it") from None
    latest = Lock.read(now.path)  # another command may have written it meanwhile
    if latest.text is not None:
        with safe_files.replacing(now.path, mode=now.path.stat().st_mode & 0o777) as stream:
            stream.write(hashed(latest.text).encode())


_SECONDS = 0.5
"""Between two looks at the lock file."""


@contextmanager
def completed_meanwhile(state: CommandState) -> Iterator[None]:
    """Write the hashes as soon as the lock file changes: a program may run for days after that."""
    ended, path = threading.Event(), state.context.lock.path

    def changed() -> object:
        with suppress(OSError):
            return path and path.stat().st_mtime_ns
        return None

    known = changed()

    def watch() -> None:
        while not ended.wait(_SECONDS):
            if changed() != known:
                with suppress(Exception):  # tried again at the end, which says what is wrong
                    complete(state, ended=False)
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
