"""`uv_variants._locked_hashes`: the hashes that uv was not shown."""

from __future__ import annotations

from uv_variants._locked_hashes import kept_hashes, with_hashes
from uv_variants._uv_lock import Lock
from variants_index.pages import PageFile

LOCK = """\
version = 1
revision = 3

[[package]]
name = "app"
version = "1.0"
source = { registry = "https://index.example/simple" }
dependencies = [
    { name = "lib" },
]
sdist = { url = "https://files.example/app-1.0.tar.gz", size = 5 }
wheels = [
    { url = "https://index.example/simple/app/.variant/cu12/app-1.0-0_cu12-py3-none-any.whl" },
    { url = "https://files.example/app-1.0%2Bx-py3-none-any.whl", upload-time = "2026-01-01" },
    { url = "https://index.example/simple/app/.variant/cu12/large-1.0-py3-none-any.whl", size = 7 },
]

[[package]]
name = "known"
version = "2"
source = { registry = "https://index.example/simple" }
wheels = [
    { url = "https://files.example/known-2-py3-none-any.whl", hash = "sha256:00", size = 1 },
]

[[package]]
name = "direct"
version = "1"
source = { url = "https://files.example/direct-1-py3-none-any.whl" }
wheels = [
    { url = "https://files.example/direct-1-py3-none-any.whl" },
]
"""

FILES = [
    PageFile("app-1.0.tar.gz", "https://files.example/app-1.0.tar.gz", {"sha256": "aa"}, size=5),
    PageFile(
        "app-1.0-0_cu12-py3-none-any.whl",
        ".variant/cu12/app-1.0-0_cu12-py3-none-any.whl",
        {"md5": "ff", "sha256": "bb"},
        size=9,
    ),
    PageFile("app-1.0+x-py3-none-any.whl", "https://a.example/app-1.0+x-py3-none-any.whl",
             {"sha512": "cc"}),
    PageFile("large-1.0-py3-none-any.whl", ".variant/cu12/large-1.0-py3-none-any.whl"),
]  # fmt: skip


LARGE = "https://index.example/simple/app/.variant/cu12/large-1.0-py3-none-any.whl"
KEPT = {LARGE: ', hash = "sha256:dd", size = 8'}


def test_what_is_missing_is_added() -> None:
    asked = []

    def files(project: str, version: str, index: str, names: frozenset[str]) -> list[PageFile]:
        asked.append((project, version, index))
        assert names == {each.filename for each in FILES}
        return FILES

    text = with_hashes(LOCK, files, KEPT)
    assert asked == [("app", "1.0", "https://index.example/simple")]
    assert 'app-1.0.tar.gz", hash = "sha256:aa", size = 5 }' in text
    assert '0_cu12-py3-none-any.whl", hash = "sha256:bb", size = 9 }' in text
    assert '%2Bx-py3-none-any.whl", hash = "sha512:cc", upload-time = "2026-01-01" }' in text
    # Nothing else changes: what is not known, is there, or is of no index.
    added = [', hash = "sha256:aa"', ', hash = "sha256:bb", size = 9', ', hash = "sha512:cc"']
    for each in added:
        text = text.replace(each, "")
    assert text.replace(KEPT[LARGE], ", size = 7") == LOCK


def test_all_or_none() -> None:
    """Uv before 0.9.19 compares a wheel without a hash with those of the other files."""
    assert with_hashes(LOCK, lambda *_: FILES, mixes=False) == LOCK
    complete = with_hashes(LOCK, lambda *_: FILES, KEPT)
    assert with_hashes(LOCK, lambda *_: FILES, KEPT, mixes=False) == complete != LOCK


def test_what_a_lock_has_is_kept() -> None:
    lock = Lock(text=LOCK.replace(f'{LARGE}", size = 7', f'{LARGE}"{KEPT[LARGE]}'))
    assert kept_hashes(lock, ["app", "known"]) == KEPT
    assert kept_hashes(lock, ["known"]) == {}
