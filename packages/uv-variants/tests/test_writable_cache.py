"""The cache of a command."""

import os

import pytest

from uv_variants._run import writable_cache


def test_the_user_s_own(tmp_path, capsys):
    with writable_cache(tmp_path / "a" / "b") as cache:
        assert cache == tmp_path / "a" / "b"
        assert cache.is_dir()
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(os.name == "nt", reason="POSIX modes")
def test_one_that_other_users_can_write(tmp_path, capsys):
    """Nothing in it is opened: what lies there may be a link."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with writable_cache(shared) as cache:
        assert cache != shared
    assert list(shared.iterdir()) == []
    assert f"run chmod go-w {shared}" in capsys.readouterr().err


def test_one_that_cannot_be_written(tmp_path, capsys):
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "cache"
    with writable_cache(path) as cache:
        (cache / "x").write_text("x")
        assert cache != path
    assert not cache.exists()
    (line,) = capsys.readouterr().err.splitlines()
    assert str(path) in line
    assert "VARIANTS_CACHE_DIR" in line
