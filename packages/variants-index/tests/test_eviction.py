"""The cache on disk stays within its bounds, whichever process writes, reads or is killed."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from filelock import FileLock, Timeout
from hypothesis import given, settings
from hypothesis import strategies as st

from variants_index.cache import LEDGER, LOCK, UNFINISHED, Store, occupied

DAY = 86_400
RECORD = 4000
"""Size of a record that takes one block with its head."""

WRITERS = """
import os, sys
from pathlib import Path
from variants_index.cache import Store
store = Store(Path(sys.argv[1]), 200 * 4096)
print("ready", flush=True)
number = 0
while True:
    name = str((os.getpid() * 7919 + number) % 1000)
    store.put("kind", name, name.encode().ljust(4000))
    found = store.get("kind", str(number % 1000))
    assert found is None or found.strip() == str(number % 1000).encode()
    assert not store.problem, store.problem
    number += 1
"""


def total(root):
    return sum(size for _, size, _ in Store(root.parent)._records())


def trim(store, size):
    """Trim the directory of *store* until *size* bytes are left; return how many were removed."""
    before = total(store.root)
    Store(store.root.parent, 2 * size).trim(size)
    return before - total(store.root)


def age(store, name, seconds):
    path = store._path("kind", name)
    moment = time.time() - seconds
    os.utime(path, (moment, moment))


def stored(store, names):
    return [name for name in names if store._path("kind", name).exists()]


def test_the_bound_holds_after_every_record(tmp_path):
    store = Store(tmp_path, 50 * 4096)
    for number in range(200):
        store.put("kind", str(number), b"x" * RECORD)
        assert total(store.root) <= 50 * 4096
    assert total(store.root) >= 40 * 4096
    assert not store.problem


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 60_000), max_size=60), st.integers(0, 40))
def test_the_bound_holds_for_records_of_any_size(tmp_path_factory, sizes, blocks):
    store = Store(tmp_path_factory.mktemp("cache"), blocks * 4096)
    for number, size in enumerate(sizes):
        store.put("kind", str(number), bytes(size))
        assert total(store.root) <= blocks * 4096
    assert not store.problem


def test_what_was_used_longest_ago_goes_first(tmp_path):
    store = Store(tmp_path, 100 * 4096)
    names = list(map(str, range(20)))
    for name in names:
        store.put("kind", name, b"x" * RECORD)
        age(store, name, DAY - int(name) * 1800)
    assert store.get("kind", "0") is not None  # used again, just now
    assert trim(store, 9 * 4096) == 11 * 4096
    assert stored(store, names) == ["0", *map(str, range(12, 20))]


def test_what_is_used_often_is_not_marked_each_time(tmp_path):
    store = Store(tmp_path)
    store.put("kind", "name", b"payload")
    path = store._path("kind", "name")
    age(store, "name", 60)
    before = path.stat().st_mtime_ns
    store.get("kind", "name")
    assert path.stat().st_mtime_ns == before


def test_the_directory_is_not_walked_for_every_record(tmp_path, monkeypatch):
    walks = []
    real = Store._records
    monkeypatch.setattr(Store, "_records", lambda store: walks.append(store) or real(store))
    for number in range(300):  # a process each
        Store(tmp_path, 200 * 4096).put("kind", str(number), b"x" * RECORD)
    # One per twenty records.
    assert 10 <= len(walks) <= 15


def test_one_does_it(tmp_path):
    store = Store(tmp_path)
    for number in range(20):
        store.put("kind", str(number), b"x")
    full = Store(tmp_path, 10 * 4096)
    with FileLock(store.root / LOCK):
        with pytest.raises(Timeout):
            trim(store, 0)
        for number in range(20, 40):  # no writer waits, and nothing piles up
            full.put("kind", str(number), b"x")
    assert total(store.root) == 20 * 4096
    assert not full.problem
    assert trim(store, 0) == 20 * 4096


def test_what_alone_is_larger_than_all_may_be_is_not_kept(tmp_path):
    store = Store(tmp_path, 10 * 4096)
    store.put("kind", "small", b"x")
    store.put("kind", "large", b"x" * 11 * 4096)
    assert (store.get("kind", "small"), store.get("kind", "large")) == (b"x", None)
    assert not store.problem


def test_cleared_or_deleted_while_it_is_used(tmp_path):
    store = Store(tmp_path)
    store.put("kind", "name", b"x" * 5000)
    store.put("other", "name", b"x")
    assert total(store.root) == 12288
    assert trim(store, 0) == 12288
    assert store.get("kind", "name") is None
    store.put("kind", "name", b"again")
    shutil.rmtree(tmp_path)
    assert store.get("kind", "name") is None
    store.put("kind", "name", b"once more")
    assert store.get("kind", "name") == b"once more"
    assert not store.problem


def test_damaged_records_and_strange_files_are_in_nobodys_way(tmp_path):
    store = Store(tmp_path, 20 * 4096)
    for name in ("a", "b"):
        store.put("kind", name, b"x")
        age(store, name, 3600 * 3)
    store._path("kind", "a").write_bytes(b"damaged")
    age(store, "a", 3600 * 3)
    (store.root / "kind" / "strange").write_bytes(bytes(10 * 4096))
    (store.root / LEDGER).write_bytes(bytes(10**6))  # as if very much had been written
    store.put("kind", "c", b"x")
    assert stored(store, "abc") == ["a", "b", "c"]
    assert store.get("kind", "a") is None
    assert stored(store, "abc") == ["b", "c"]
    assert trim(store, 4096) == 11 * 4096
    (store.root / LEDGER).unlink()
    (store.root / LEDGER).mkdir()
    store.put("kind", "d", b"x")
    assert "cannot be written" in store.problem


def test_what_is_being_written_is_left_alone(tmp_path):
    store = Store(tmp_path)
    store.put("kind", "name", b"x")
    part = store.root / UNFINISHED / "part"
    part.write_bytes(b"part")
    assert trim(store, 0) == 4096
    assert part.exists()


@pytest.mark.skipif(os.name == "nt", reason="there are no such signals")
def test_processes_that_write_read_and_are_killed_share_one_bound(tmp_path):
    command = [sys.executable, "-c", WRITERS, str(tmp_path)]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(6)
    ]  # fmt: skip
    for process in processes:
        process.stdout.readline()
    root = Store(tmp_path).root
    seen = []
    for process in [*processes, None]:
        for _ in range(5):
            time.sleep(0.03)
            seen.append(total(root))
        if process is not None:
            process.send_signal(signal.SIGKILL)
            _, errors = process.communicate()
            assert process.returncode == -signal.SIGKILL, errors.decode()
    # Beyond the bound is only what each of them was writing, and what was both seen here and
    # removed meanwhile.
    assert max(seen) <= 1.2 * 200 * 4096
    store = Store(tmp_path, 200 * 4096)
    for number in range(30):
        store.put("kind", f"after {number}", b"x" * RECORD)
    assert total(root) <= 200 * 4096
    assert not store.problem


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_cache_that_cannot_be_written_is_read(tmp_path):
    store = Store(tmp_path)
    store.put("kind", "name", b"x")
    age(store, "name", DAY)
    for folder, _, _ in os.walk(tmp_path):
        os.chmod(folder, 0o500)
    assert Store(tmp_path).get("kind", "name") == b"x"
    with pytest.raises(OSError, match="denied"):
        trim(store, 0)


@pytest.mark.skipif(os.name == "nt", reason="there are no such limits")
def test_a_ledger_that_cannot_grow_keeps_nothing_half(tmp_path):
    import resource

    store = Store(tmp_path)
    store.put("kind", "before", b"x")
    (store.root / LEDGER).write_bytes(bytes(4096))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
        store.put("kind", "after", b"x")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert "File too large" in store.problem
    assert stored(store, ["before", "after"]) == ["before"]
    assert not list((store.root / UNFINISHED).iterdir())


def test_size_on_disk():
    assert [occupied(size) for size in (0, 1, 4096, 4097)] == [0, 4096, 4096, 8192]
