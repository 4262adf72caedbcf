"""The cache on disk stays within its limit."""

import os

from filelock import FileLock

from uv_variants.shim.eviction import trim


def fill(folder, number):
    for index in range(number):
        path = folder / f"{index % 3}" / f"{index}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 100)
        os.utime(path, (index, index))
    return lambda: sorted(int(path.name) for path in folder.rglob("*") if path.name.isdigit()
                          and path.is_file())  # fmt: skip


def test_the_oldest_go_first(tmp_path):
    left = fill(tmp_path, 20)
    assert trim(tmp_path, 1000) == 12
    assert left() == list(range(12, 20))


def test_nothing_goes_while_there_is_room(tmp_path):
    left = fill(tmp_path, 20)
    assert trim(tmp_path, 2000) == 0
    assert len(left()) == 20


def test_one_does_it(tmp_path):
    fill(tmp_path, 20)
    with FileLock(tmp_path / "trim.lock"):
        assert trim(tmp_path, 1) == 0


def test_no_folder_yet(tmp_path):
    assert trim(tmp_path / "none", 1) == 0
