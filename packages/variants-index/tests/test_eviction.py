"""The cache on disk stays within its bounds, whichever process writes or reads."""

import os
import shutil
import time

import pytest
from filelock import FileLock, Timeout

from variants_index.cache import LEDGER, LOCK, UNFINISHED, Store

DAY = 86_400
RECORD = 4000
"""Size of a record that takes one block with its head."""


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


def test_the_bound_holds_after_every_record_of_any_size(tmp_path):
    store = Store(tmp_path, 20 * 4096)
    for number in range(60):
        store.put("kind", str(number), b"x" * RECORD * (number % 4 + 1))
        assert total(store.root) <= 20 * 4096
    assert total(store.root) >= 14 * 4096
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


def test_damaged_records_and_strange_files_do_no_harm(tmp_path):
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
