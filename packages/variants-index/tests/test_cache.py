"""The cache on disk: whole records or none, within its bounds, whatever happens to it."""

import os
import shutil
import subprocess
import sys
import time

import pytest
from filelock import FileLock, Timeout

from variants_index._cache import LEDGER, LOCK, UNFINISHED, Store

DAY = 86_400
BLOCK = 4096
FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from pep_variants._directories import cache_directory
from variants_index._cache import Store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
store = Store(Path(sys.argv[1]))
store.put("kind", "small", b"x" * 100)
store.put("kind", "large", b"x" * 100_000)
store.put("kind", "after", b"x")
print(store.problem)
print(store.get("kind", "small") == b"x" * 100, store.get("kind", "large"))
"""
not_on_windows = pytest.mark.skipif(os.name == "nt", reason="there are no modes and such limits")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def files(root):
    return [path for path in root.rglob("kind/*/*") if path.is_file()]


def total(store):
    return sum(size for _, size, _ in store._records())


def trim(store, size):
    """Trim the directory of *store* until *size* bytes are left; return how many were removed."""
    before = total(store)
    Store(store.root.parent, 2 * size).trim(size)
    return before - total(store)


def age(store, name, seconds):
    os.utime(store._path("kind", name), (time.time() - seconds,) * 2)


def stored(store, names):
    return [name for name in names if store._path("kind", name).exists()]


def test_what_was_put_is_there_for_the_next(store, tmp_path):
    store.put("kind", "name", b"payload")
    assert "name" not in str(files(tmp_path)[0].relative_to(tmp_path))
    assert Store(tmp_path).get("kind", "name") == b"payload"
    assert Store(tmp_path).get("other", "name") is None
    assert Store(tmp_path).get("kind", "other") is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: b"",
        lambda data: data[:-1] + bytes([data[-1] ^ 1]),
        lambda data: b"something else",
    ],
)
def test_a_damaged_record_is_none(store, tmp_path, damage):
    store.put("kind", "name", b"payload")
    (path,) = files(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    assert store.get("kind", "name") is None
    assert not path.exists()
    store.put("kind", "name", b"again")
    assert store.get("kind", "name") == b"again"


@not_on_windows
class TestOtherUsers:
    """Other users who can write to the cache could decide what is installed."""

    @pytest.mark.parametrize("place", ["cache", "cache/1"])
    @pytest.mark.parametrize("mode", [0o757, 0o1777, None])
    def test_whose_directory_is_not_used(self, tmp_path, place, mode, monkeypatch):
        """It can be changed by others, or belongs to another user."""
        Store(tmp_path / "cache").put("kind", "name", b"planted")
        if mode is not None:
            (tmp_path / place).chmod(mode)
        elif os.geteuid() == 0:
            os.chown(tmp_path / place, 12345, 12345)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: 12345)
        store = Store(tmp_path / "cache")
        assert store.get("kind", "name") is None
        if mode is None:
            assert "belongs to another user" in store.problem
        else:
            problem = "can be changed by other users: run chmod go-w"
            assert f"{tmp_path / place} {problem}" in store.problem
        assert "VARIANTS_CACHE_DIR" in store.problem
        store.put("kind", "other", b"payload")
        assert len(files(tmp_path)) == 1

    @pytest.mark.parametrize("mask", [0o000, 0o077])
    def test_directories_are_private_whatever_the_umask_is(self, tmp_path, mask):
        before = os.umask(mask)
        try:
            Store(tmp_path / "new" / "cache").put("kind", "name", b"payload")
        finally:
            os.umask(before)
        folders = [path for path in tmp_path.rglob("*") if path.is_dir()]
        assert len(folders) == 6
        assert {oct(path.stat().st_mode & 0o777) for path in folders} == {"0o700"}
        store = Store(tmp_path / "new" / "cache")
        assert store.get("kind", "name") == b"payload"
        assert store.problem == ""

    def test_a_directory_that_comes_later_is_checked(self, tmp_path):
        store = Store(tmp_path / "cache")
        assert store.get("kind", "name") is None
        assert store.problem == ""
        (tmp_path / "cache" / "1").mkdir(parents=True)
        (tmp_path / "cache" / "1").chmod(0o777)
        assert store.get("kind", "name") is None
        assert "can be changed by other users" in store.problem


class TestDisks:
    @not_on_windows
    def test_a_full_one_costs_the_cache_not_the_work(self, store, tmp_path):
        done = subprocess.run(
            [sys.executable, "-c", FULL_DISK, str(tmp_path)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        problem, kept = done.stdout.splitlines()
        assert problem == f"{tmp_path / '1'}: the cache cannot be written: File too large"
        assert kept == "True None"
        assert not list((tmp_path / "1" / UNFINISHED).iterdir())
        store.put("kind", "large", b"x" * 100_000)
        assert store.get("kind", "large") == b"x" * 100_000

    def test_temporary_files_are_elsewhere_where_nothing_can_be_written(self, tmp_path):
        (tmp_path / "file").write_bytes(b"")
        for root in (tmp_path / "cache", tmp_path / "file" / "cache"):
            store = Store(root)
            with store.temporary_file() as file:
                file.write(b"x" * 100_000)
                file.seek(0)
                assert len(file.read()) == 100_000
            assert store.problem == ""
        store.put("kind", "name", b"payload")
        assert store.get("kind", "name") is None
        assert str(root) in store.problem

    @pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
    def test_a_cache_that_cannot_be_written_is_read(self, store, tmp_path):
        store.put("kind", "name", b"x")
        age(store, "name", DAY)
        for folder, _, _ in os.walk(tmp_path):
            os.chmod(folder, 0o500)
        assert Store(tmp_path).get("kind", "name") == b"x"
        with pytest.raises(OSError, match="denied"):
            trim(store, 0)


class TestBounds:
    def test_after_every_record_of_any_size(self, tmp_path):
        store = Store(tmp_path, 20 * BLOCK)
        for number in range(60):
            store.put("kind", str(number), b"x" * 4000 * (number % 4 + 1))
            assert total(store) <= 20 * BLOCK
        assert total(store) >= 14 * BLOCK
        store.put("kind", "large", b"x" * 21 * BLOCK)
        assert store.get("kind", "large") is None
        assert total(store) >= 14 * BLOCK
        assert not store.problem

    def test_what_was_used_longest_ago_goes_first(self, store):
        names = list(map(str, range(20)))
        for name in names:
            store.put("kind", name, b"x" * 4000)
            age(store, name, DAY - int(name) * 1800)
        assert store.get("kind", "0") is not None  # used again, just now
        assert trim(store, 9 * BLOCK) == 11 * BLOCK
        assert stored(store, names) == ["0", *map(str, range(12, 20))]

    def test_one_process_trims(self, store, tmp_path):
        for number in range(20):
            store.put("kind", str(number), b"x")
        full = Store(tmp_path, 10 * BLOCK)
        with FileLock(store.root / LOCK):
            with pytest.raises(Timeout):
                trim(store, 0)
            for number in range(20, 40):  # no writer waits, and nothing piles up
                full.put("kind", str(number), b"x")
        assert total(store) == 20 * BLOCK
        assert not full.problem
        assert trim(store, 0) == 20 * BLOCK

    def test_cleared_or_deleted_while_it_is_used(self, store, tmp_path):
        store.put("kind", "name", b"x" * 5000)
        store.put("other", "name", b"x")
        assert trim(store, 0) == 3 * BLOCK
        assert store.get("kind", "name") is None
        store.put("kind", "name", b"again")
        shutil.rmtree(tmp_path)
        assert store.get("kind", "name") is None
        store.put("kind", "name", b"once more")
        assert store.get("kind", "name") == b"once more"
        assert not store.problem

    def test_damaged_records_and_strange_files_do_no_harm(self, tmp_path):
        store = Store(tmp_path, 20 * BLOCK)
        for name in ("a", "b"):
            store.put("kind", name, b"x")
        store._path("kind", "a").write_bytes(b"damaged")
        for name in ("a", "b"):
            age(store, name, 3600 * 3)
        (store.root / "kind" / "strange").write_bytes(bytes(10 * BLOCK))
        (store.root / LEDGER).write_bytes(bytes(10**6))  # as if very much had been written
        store.put("kind", "c", b"x")
        assert stored(store, "abc") == ["a", "b", "c"]
        assert store.get("kind", "a") is None
        assert stored(store, "abc") == ["b", "c"]
        assert trim(store, BLOCK) == 11 * BLOCK
        (store.root / LEDGER).unlink()
        (store.root / LEDGER).mkdir()
        store.put("kind", "d", b"x")
        assert "cannot be written" in store.problem

    def test_unfinished_files_are_cleared_when_they_are_old(self, store, tmp_path):
        """Killed processes leave them; others are being written."""
        store.put("kind", "name", b"x")
        old, young = (store.root / UNFINISHED / name for name in ("old", "young"))
        for path in (old, young):
            path.write_bytes(b"part")
        os.utime(old, (time.time() - 10_000,) * 2)
        Store(tmp_path).put("kind", "other", b"payload")
        assert (old.exists(), young.exists()) == (False, True)
        assert trim(store, 0) == 2 * BLOCK
        assert young.exists()
