"""The certificate authority of a user, and the file of trusted certificates."""

from __future__ import annotations

import os
import socket
import ssl
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import certifi
import pytest

from uv_variants.transport.authority import Authority, AuthorityFailed
from uv_variants.transport.trust_bundle import NoCertificates, trusted_roots

POSIX = pytest.mark.skipif(os.name == "nt", reason="has no modes of files")


def greeted(context: ssl.SSLContext, trusted: Path, host: str) -> dict[str, object]:
    """Return the certificate that a client which trusts *trusted* gets for *host*."""
    ours, theirs = socket.socketpair()

    def answer() -> None:
        with ours, suppress(OSError), context.wrap_socket(ours, server_side=True):
            pass

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        with theirs:
            client = ssl.create_default_context(cafile=str(trusted))
            with client.wrap_socket(theirs, server_hostname=host) as connection:
                return dict(connection.getpeercert() or {})
    finally:
        thread.join()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.load_or_create(tmp_path / "ca")


@pytest.mark.parametrize("host", ["index.example", "127.0.0.1", "::1", "a" * 60 + ".example.org"])
def test_hosts_are_trusted_through_the_bundle_alone(authority, host):
    bundle = authority.files({})[0]
    assert greeted(authority.leaf(host), bundle, host)["subjectAltName"]
    assert authority.leaf(host) is authority.leaf(host)


def test_a_certificate_is_for_one_host(authority):
    with pytest.raises(ssl.SSLError):
        greeted(authority.leaf("index.example"), authority.files({})[0], "other.example")


def test_the_roots_do_not_have_the_authority(authority):
    with pytest.raises(ssl.SSLCertVerificationError):
        greeted(authority.leaf("index.example"), authority.files({})[1], "index.example")


@POSIX
def test_files_are_private(authority, tmp_path):
    authority.leaf("index.example")
    authority.files({})
    folder = tmp_path / "ca"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_it_is_made_once(tmp_path):
    folder = tmp_path / "ca"
    with ThreadPoolExecutor(8) as pool:
        found = {
            each.certificate
            for each in pool.map(lambda _: Authority.load_or_create(folder), "1" * 16)
        }
    assert len(found) == 1


def spoiled(path: Path, how: str) -> None:
    if how == "readable":
        path.chmod(0o644)
    elif how == "expired":
        text = path.read_bytes()
        line = b"# valid until %d\n" % (time.time() + 3600)
        path.write_bytes(line + text.partition(b"\n")[2])
    elif how == "cut":
        path.write_bytes(path.read_bytes()[:300])
    else:
        path.write_bytes(b"")


@POSIX
@pytest.mark.parametrize("how", ["readable", "expired", "cut", "empty"])
def test_a_key_that_others_know_or_that_ends_is_made_anew(tmp_path, how):
    folder = tmp_path / "ca"
    first = Authority.load_or_create(folder).certificate
    spoiled(folder / "authority.pem", how)
    again = Authority.load_or_create(folder)
    assert again.certificate != first
    assert greeted(again.leaf("a.example"), again.files({})[0], "a.example")


@pytest.mark.parametrize("how", ["expired", "cut", "empty"])
def test_a_leaf_that_ends_is_made_anew(tmp_path, how):
    folder = tmp_path / "ca"
    first = Authority.load_or_create(folder)
    first.leaf("a.example")
    (path,) = folder.glob("host-*.pem")
    before = path.read_bytes()
    spoiled(path, how)
    again = Authority.load_or_create(folder)
    assert greeted(again.leaf("a.example"), again.files({})[0], "a.example")
    assert path.read_bytes() != before


def test_a_folder_that_cannot_be_used_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(AuthorityFailed, match="file"):
        Authority.load_or_create(tmp_path / "file" / "ca")


def test_known_hosts_need_no_cryptography(tmp_path):
    folder = tmp_path / "ca"
    Authority.load_or_create(folder).leaf("a.example")
    code = (
        "import sys; from pathlib import Path\n"
        "from uv_variants.transport.authority import Authority\n"
        "Authority.load_or_create(Path(sys.argv[1])).leaf('a.example')\n"
        "assert 'cryptography' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, str(folder)], check=True)


def certificates(data: bytes) -> int:
    return data.count(b"-----BEGIN CERTIFICATE-----")


def test_which_roots_are_trusted(tmp_path, authority):
    ours = tmp_path / "ours.pem"
    ours.write_bytes(b"a comment\n" + (tmp_path / "ca" / "authority.pem").read_bytes())
    folder = tmp_path / "certs"
    folder.mkdir()
    (folder / "a.pem").write_bytes(ours.read_bytes())
    (folder / "same.0").write_bytes(ours.read_bytes())
    (folder / "broken").symlink_to("missing")
    mozilla = certificates(Path(certifi.where()).read_bytes())
    assert certificates(trusted_roots({})) == mozilla
    assert certificates(trusted_roots({"SSL_CERT_FILE": str(ours)})) == 1
    assert certificates(trusted_roots({"SSL_CERT_DIR": str(folder)})) == 1
    assert certificates(trusted_roots({"SSL_CERT_FILE": str(tmp_path / "missing")})) == mozilla
    # What is kept of a file counts while it is unchanged.
    ours.write_bytes(2 * ours.read_bytes())
    assert certificates(trusted_roots({"SSL_CERT_FILE": str(ours)})) == 2
    (folder / "a.pem").unlink()
    assert certificates(trusted_roots({"SSL_CERT_DIR": str(folder)})) == 1
    os.replace(ours, folder / "same.0")
    assert certificates(trusted_roots({"SSL_CERT_DIR": str(folder)})) == 2
    ours.write_bytes((folder / "same.0").read_bytes())
    # Keys in such a file stay there.
    assert b"PRIVATE" not in trusted_roots({"SSL_CERT_FILE": str(ours)})


@pytest.mark.parametrize("content", [b"", b"no certificate", b"-----BEGIN CERTIFICATE-----\n" * 9])
def test_a_file_without_certificates_is_named(tmp_path, content):
    path = tmp_path / "roots.pem"
    path.write_bytes(content)
    with pytest.raises(NoCertificates, match=r"roots\.pem \(SSL_CERT_FILE\)"):
        trusted_roots({"SSL_CERT_FILE": str(path)})


def test_a_bundle_is_written_once(authority):
    first = authority.files({})[0]
    inode = first.stat().st_ino
    assert authority.files({})[0] == first
    assert first.stat().st_ino == inode
    assert authority.certificate in first.read_bytes()


def test_bundles_that_nothing_uses_are_removed(tmp_path, authority):
    old, new = authority.files({})
    assert authority.files({}) == (old, new)
    os.utime(old, (0, 0))
    roots = tmp_path / "roots.pem"
    roots.write_bytes(authority.certificate)
    other = authority.files({"SSL_CERT_FILE": str(roots)})[1]
    assert [path.exists() for path in (old, new, other)] == [False, True, True]
    # In use again: as fresh as a new one.
    os.utime(new, (0, 0))
    assert authority.files({})[1].stat().st_mtime > 1
