"""The store: whole records or none, whatever happens to the process or the disk."""

import os
import subprocess
import sys
import time

import pytest

from variants_index.cache import Store

FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from pep_variants.directories import cache_directory
from variants_index.cache import Store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
store = Store(Path(sys.argv[1]))
store.put("kind", "small", b"x" * 100)
store.put("kind", "large", b"x" * 100_000)
store.put("kind", "after", b"x")
print(store.problem)
print(store.get("kind", "small") == b"x" * 100, store.get("kind", "large"))
"""


def records(root):
    return [path for path in root.rglob("kind/*/*") if path.is_file()]


def test_what_was_put_is_there_for_the_next(tmp_path):
    Store(tmp_path).put("kind", "name", b"payload")
    assert "name" not in str(records(tmp_path)[0].relative_to(tmp_path))
    assert Store(tmp_path).get("kind", "name") == b"payload"
    assert Store(tmp_path).get("other", "name") is None
    assert Store(tmp_path).get("kind", "other") is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data + b"x",
        lambda data: b"",
        lambda data: data[:10],
        lambda data: data[:-1] + bytes([data[-1] ^ 1]),
        lambda data: b"something else",
    ],
)
def test_a_damaged_record_is_none(tmp_path, damage):
    store = Store(tmp_path)
    store.put("kind", "name", b"payload")
    (path,) = records(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    assert store.get("kind", "name") is None
    store.put("kind", "name", b"again")
    assert store.get("kind", "name") == b"again"


@pytest.mark.skipif(os.name == "nt", reason="permissions are access control lists there")
class TestOtherUsers:
    """Other users who can write to the cache could decide what is installed."""

    @pytest.mark.parametrize("place", ["cache", "cache/1"])
    @pytest.mark.parametrize("mode", [0o757, 0o1777])
    def test_a_directory_that_others_can_write_is_not_believed(self, tmp_path, place, mode):
        Store(tmp_path / "cache").put("kind", "name", b"planted")
        (tmp_path / place).chmod(mode)
        store = Store(tmp_path / "cache")
        assert store.get("kind", "name") is None
        assert f"{tmp_path / place} can be changed by other users: run chmod go-w" in store.problem
        assert "VARIANTS_CACHE_DIR" in store.problem
        store.put("kind", "other", b"payload")
        assert len(records(tmp_path)) == 1

    @pytest.mark.parametrize("place", ["cache", "cache/1"])
    def test_a_directory_of_another_user_is_not_believed(self, tmp_path, place, monkeypatch):
        Store(tmp_path / "cache").put("kind", "name", b"planted")
        if os.geteuid() == 0:
            os.chown(tmp_path / place, 12345, 12345)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: 12345)
        store = Store(tmp_path / "cache")
        assert store.get("kind", "name") is None
        assert "belongs to another user" in store.problem

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


def test_what_killed_processes_left_is_cleared_when_it_is_old(tmp_path):
    store = Store(tmp_path)
    store.put("kind", "name", b"payload")
    folder = store.root / "unfinished"
    old, young = folder / "old", folder / "young"
    for path in (old, young):
        path.write_bytes(b"part")
    os.utime(old, (time.time() - 10_000,) * 2)
    Store(tmp_path).put("kind", "other", b"payload")
    assert (old.exists(), young.exists()) == (False, True)


@pytest.mark.skipif(os.name == "nt", reason="there are no such limits")
def test_a_full_disk_costs_the_cache_not_the_work(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    problem, kept = done.stdout.splitlines()
    assert problem == f"{tmp_path / '1'}: the cache cannot be written: File too large"
    assert kept == "True None"
    assert not list((tmp_path / "1" / "unfinished").iterdir())
    store = Store(tmp_path)
    store.put("kind", "large", b"x" * 100_000)
    assert store.get("kind", "large") == b"x" * 100_000


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    store = Store(blocked)
    store.put("kind", "name", b"payload")
    assert store.get("kind", "name") is None
    assert str(blocked) in store.problem


def test_temporary_files_are_elsewhere_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for root in (tmp_path / "cache", tmp_path / "file" / "cache"):
        store = Store(root)
        with store.temporary_file() as file:
            file.write(b"x" * 100_000)
            file.seek(0)
            assert len(file.read()) == 100_000
        assert store.problem == ""
