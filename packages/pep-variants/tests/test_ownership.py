import os
import re
import stat
from types import SimpleNamespace

import pytest

from pep_variants._ownership import NotPrivate, check_private, make_private

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX owners and modes")

ME = os.geteuid() if os.name != "nt" else 0
OTHER_USER = 12345


@pytest.fixture
def owned(monkeypatch):
    """Let files belong to users as a test says; only root could really give them away."""
    owners = {}
    really_stat = os.stat

    def fake(path, *args, **kwargs):
        status = really_stat(path, *args, **kwargs)
        followed = kwargs.get("follow_symlinks", True)
        owner = owners.get(os.path.realpath(path) if followed else os.fspath(path))
        if owner is None:
            return status
        fields = list(status)
        fields[stat.ST_UID] = owner
        return os.stat_result(fields)

    monkeypatch.setattr(os, "stat", fake)
    return owners


@pytest.fixture(autouse=True)
def group(tmp_path, monkeypatch):
    """The user's account and primary group, by default one that others may be in as well."""
    user = SimpleNamespace(pw_name="alice", pw_uid=1000, pw_gid=os.getgid())
    found = SimpleNamespace(gr_name="staff", gr_mem=[])
    monkeypatch.setattr("pwd.getpwuid", lambda _: user)
    monkeypatch.setattr("grp.getgrgid", lambda _: found)
    return SimpleNamespace(user=user, group=found)


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "folder"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def file(folder):
    path = folder / "file"
    path.touch(mode=0o600)
    return path


@pytest.mark.parametrize("mode", [0o666, 0o664, 0o622, 0o602, 0o620])
def test_modes_with_which_others_can_write(file, mode):
    file.chmod(0o755)
    check_private(file)
    file.chmod(mode)
    with pytest.raises(NotPrivate) as raised:
        check_private(file)
    assert str(raised.value) == f"{file} can be changed by other users: run chmod go-w {file}"


def test_directories_in_which_others_can_write(folder, file):
    folder.chmod(0o775)
    for path in (folder, file):
        with pytest.raises(NotPrivate, match=f"{folder} can be changed by other users"):
            check_private(path)
    # Sticky ones protect their files, but not themselves.
    folder.chmod(0o1777)
    check_private(file)
    with pytest.raises(NotPrivate):
        check_private(folder)


def test_what_a_umask_of_002_leaves_in_the_users_own_group_is_private(folder, file, group):
    """Ubuntu and Fedora have it so."""
    group.group.gr_name = "alice"
    file.chmod(0o664)
    folder.chmod(0o2775)
    check_private(file)
    make_private(folder)
    for mode in (0o666, 0o662):
        file.chmod(mode)
        with pytest.raises(NotPrivate):
            check_private(file)


@pytest.mark.parametrize(
    ("account", "changed"),
    [
        ("group", {"gr_name": "staff"}),
        ("group", {"gr_mem": ["alice", "bob"]}),
        ("user", {"pw_gid": -1}),
        ("user", {"pw_uid": 0}),
    ],
    ids=str,
)
def test_groups_with_others_in_them(file, group, account, changed):
    group.group.gr_name = "alice"
    file.chmod(0o664)
    check_private(file)
    vars(getattr(group, account)).update(changed)
    with pytest.raises(NotPrivate):
        check_private(file)


def test_groups_without_a_name(file, monkeypatch):
    monkeypatch.setattr("grp.getgrgid", {}.__getitem__)
    file.chmod(0o664)
    with pytest.raises(NotPrivate):
        check_private(file)


def test_owners(folder, file, owned):
    for path, judged in ((file, file), (folder, folder), (folder, file)):
        for owner in (ME, 0):
            owned[str(path)] = owner
            check_private(judged)
        owned[str(path)] = OTHER_USER
        with pytest.raises(NotPrivate, match=f"{path} belongs to another user \\(uid 12345\\)"):
            check_private(judged)
        owned.clear()


def test_the_file_that_was_read_is_judged(file):
    """Not the one that is at its path by now."""
    file.chmod(0o666)
    status = file.stat()
    file.chmod(0o600)
    with pytest.raises(NotPrivate):
        check_private(file, status)


def test_links_count_by_what_they_lead_to(tmp_path, folder, file):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    link = elsewhere / "link"
    link.symlink_to(file)
    check_private(link)
    folder.chmod(0o777)
    with pytest.raises(NotPrivate, match=str(folder)):
        check_private(link)
    folder.chmod(0o700)
    elsewhere.chmod(0o777)
    with pytest.raises(NotPrivate, match=str(elsewhere)):
        check_private(link)


def test_links_of_other_users_are_not_followed(tmp_path, folder, owned):
    """Root with the home of a user would write where that user wants it to."""
    link = tmp_path / "link"
    link.symlink_to(folder)
    make_private(link)
    owned[str(link)] = OTHER_USER
    with pytest.raises(NotPrivate, match=f"{link} belongs to another user"):
        make_private(link)


def test_message_is_printable(tmp_path):
    path = tmp_path / "a\x1b[31m b"
    path.mkdir()
    path.chmod(0o777)
    with pytest.raises(NotPrivate, match=re.escape(f"chmod go-w '{tmp_path}/a?[31m b'")):
        check_private(path)


def test_directories_are_made_private_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        make_private(tmp_path / "one" / "two")
        make_private(tmp_path / "one" / "two")
    finally:
        os.umask(before)
    for name in ("one", "one/two"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o700


def test_made_directories_that_exist(folder, file):
    folder.chmod(0o777)
    with pytest.raises(NotPrivate):
        make_private(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o777
    folder.chmod(0o700)
    with pytest.raises(FileExistsError):
        make_private(file)
    with pytest.raises(NotADirectoryError):
        make_private(file / "below")
