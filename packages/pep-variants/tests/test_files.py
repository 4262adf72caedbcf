import errno
import os
import stat
from pathlib import Path

import pytest

from pep_variants._files import read_regular, read_text, replacing, write_if_changed

LIMIT = 1000
posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")


def refused(path):
    with pytest.raises(OSError) as raised:
        read_regular(path, LIMIT)
    assert raised.value.filename == str(path)
    return raised.value


def test_content_and_status(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"\r\n\x1a" * 100)
    found = read_regular(path, LIMIT)
    assert found.data == b"\r\n\x1a" * 100
    assert (found.status.st_ino, found.status.st_size) == (path.stat().st_ino, 300)
    assert read_regular(str(path), 300) == found


def test_text(tmp_path):
    path = tmp_path / "file"
    path.write_bytes("ä\r\nb\rc\n".encode())
    assert read_text(path, LIMIT) == "ä\nb\nc\n" == path.read_text("utf-8")
    path.write_bytes(b"\xff")
    with pytest.raises(UnicodeDecodeError):
        read_text(path, LIMIT)
    assert read_text(path, LIMIT, errors="replace") == "\ufffd"


def test_too_large(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * (LIMIT + 1))
    assert refused(path).strerror == "larger than 1,000 bytes"


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="needs /proc")
def test_too_large_though_it_says_that_it_is_empty():
    assert os.stat("/proc/self/smaps").st_size == 0
    assert refused("/proc/self/smaps").errno == errno.EFBIG


@posix
def test_what_is_no_regular_file(tmp_path):
    path = tmp_path / "path"
    for target in ("/dev/zero", "/dev/tty", path, tmp_path):
        path.symlink_to(target)
        strerrors = {os.strerror(number) for number in (errno.ENXIO, errno.ELOOP, errno.EISDIR)}
        assert refused(path).strerror in {"not a regular file", *strerrors}
        path.unlink()
    os.mkfifo(path)
    assert refused(path).strerror == "not a regular file"


@posix
def test_named_pipe_that_takes_the_place_of_a_file(tmp_path, monkeypatch):
    """Between looking at a path and opening it: what was opened is looked at again."""
    path = tmp_path / "file"
    path.write_bytes(b"x")
    really_open = os.open

    def swap(*arguments):
        path.unlink()
        os.mkfifo(path)
        return really_open(*arguments)

    monkeypatch.setattr(os, "open", swap)
    assert refused(path).strerror == "not a regular file"


def test_replacing_keeps_the_old_file_until_the_end(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with replacing(path) as stream:
        stream.write(b"new")
        stream.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    with pytest.raises(RuntimeError), replacing(path) as stream:  # noqa: PT012
        stream.write(b"half")
        raise RuntimeError
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_write_if_changed(tmp_path):
    path = tmp_path / "folder" / "file"
    assert write_if_changed(path, b"one")
    assert not write_if_changed(path, b"one")
    assert write_if_changed(path, b"on")
    assert path.read_bytes() == b"on"


def test_mode_and_place_of_a_replaced_file(tmp_path):
    path = tmp_path / "file"
    path.touch(mode=0o644)
    temporaries = tmp_path / "temporaries"
    temporaries.mkdir()
    with replacing(path, mode=0o600, temporaries=temporaries) as stream:
        stream.write(b"secret")
        assert Path(stream.name).parent == temporaries
    assert path.read_bytes() == b"secret"
    assert os.name == "nt" or stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not any(temporaries.iterdir())


def test_errors_of_replacing_name_the_file(tmp_path):
    path = tmp_path / "missing" / "file"
    with pytest.raises(FileNotFoundError) as raised, replacing(path):
        pass
    assert raised.value.filename == str(path)
