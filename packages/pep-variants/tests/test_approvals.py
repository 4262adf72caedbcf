import json
import os
import stat
from pathlib import Path

import pytest

from pep_variants._ownership import NotPrivate
from pep_variants._settings.trust import Approval, Approvals, approval_digest, covered_files
from pep_variants.errors import PreferenceError

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX modes and links")


@pytest.fixture
def approvals(tmp_path):
    return Approvals(tmp_path / "data" / "approvals")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "checkout" / "variants.toml"
    path.parent.mkdir()
    path.write_text("prefer = 'a'")
    return path


def test_approved_and_revoked(approvals, path, tmp_path):
    assert approvals.find(path) is None
    assert not approvals.remove(path)
    assert not approvals.root.exists()
    other = tmp_path / "variants.toml"
    assert approvals.add(path, "aa") == Approval(str(path), "aa")
    approvals.add(other, "bb")
    approvals.add(path, "cc")
    assert approvals.find(path) == Approval(str(path), "cc")
    assert list(approvals) == [Approval(str(path), "cc"), Approval(str(other), "bb")]
    assert approvals.remove(path)
    assert approvals.find(path) is None
    assert list(approvals) == [Approval(str(other), "bb")]


@posix
def test_directory_that_is_a_link(approvals, path, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(path.parent)
    monkeypatch.chdir(tmp_path)
    approvals.add(Path("link", "..", "link", "variants.toml"), "aa")
    assert approvals.find(path) == Approval(str(path), "aa")
    (record,) = approvals.root.iterdir()
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    # A link to an approved file is another file: what it names is relative to the link.
    (tmp_path / "variants.toml").symlink_to(path)
    assert approvals.find(tmp_path / "variants.toml") is None


@posix
def test_records_that_others_can_write_are_not_believed(approvals, path):
    approvals.add(path, "aa")
    approvals.root.chmod(0o777)
    with pytest.raises(NotPrivate):
        approvals.find(path)
    with pytest.raises(NotPrivate):
        approvals.add(path, "bb")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"format": 2, "path": "PATH", "digest": "aa"}',
        '{"format": 1, "path": "PATH"}',
        '{"format": 1, "path": "/elsewhere/variants.toml", "digest": "aa"}',
        "\xff",
    ],
)
def test_broken_records_approve_nothing(approvals, path, text):
    approvals.add(path, "aa")
    (record,) = approvals.root.iterdir()
    record.write_text(text.replace("PATH", json.dumps(str(path))[1:-1]), "latin-1")
    assert approvals.find(path) is None
    list(approvals)


@pytest.mark.parametrize("name", ["missing.toml", "a\x1b[31m"])
def test_platform_file_that_cannot_be_read(path, name):
    with pytest.raises(PreferenceError) as raised:
        covered_files(path, b"", {"platform": name})
    assert str(raised.value).startswith(f"{path}: platform: ")
    assert "cannot be read: " in str(raised.value)
    assert str(raised.value).isprintable()


def test_digest_covers_wheels_that_are_named_by_path(path):
    """Code that runs once the file is approved must not change under the approval."""
    for nothing in ({}, {"platform": ""}, {"platform": 5}):
        assert [file.path for file in covered_files(path, b"x", nothing)] == [path]
    wheel = path.parent / "acme provider-1.0-py3-none-any.whl"
    wheel.write_bytes(b"one")
    tree = {"allow-provider": ["other>=1", f"acme-provider @ FILE://{wheel.as_uri()[7:]}"]}
    files = covered_files(path, b"x", tree)
    assert [file.path for file in files] == [path, wheel]
    wheel.write_bytes(b"two")
    assert approval_digest(covered_files(path, b"x", tree)) != approval_digest(files)
    remote = {"allow-provider": "acme @ https://a.example/acme-1.0-py3-none-any.whl"}
    assert len(covered_files(path, b"x", remote)) == 1
    wheel.unlink()
    with pytest.raises(PreferenceError, match=r"allow-provider: .* cannot be read"):
        covered_files(path, b"x", tree)


@posix
def test_record_that_is_no_file(approvals, path):
    approvals.add(path, "aa")
    (record,) = approvals.root.iterdir()
    record.unlink()
    os.mkfifo(record)
    assert approvals.find(path) is None
    assert list(approvals) == []
