"""The certificate authority of a command, and the certificates that uv trusts anyway."""

from __future__ import annotations

import datetime
import os
import socket
import ssl
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography import x509

from support.running_transport import trusting
from uv_variants._transport import authority, trust_bundle
from uv_variants._transport.authority import Authority
from uv_variants._transport.trust_bundle import NoCertificates, trusted_roots

HOSTS = ("index.example", "127.0.0.1", "::1", "a" * 60 + ".example.org")


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


@pytest.mark.parametrize("host", HOSTS)
def test_hosts_of_indexes_are_trusted(tmp_path, host):
    made = Authority(HOSTS)
    assert greeted(made.leaf(host), trusting(made, tmp_path), host)["subjectAltName"]
    assert made.leaf(host) is made.leaf(host)


@pytest.mark.parametrize(
    ("hosts", "other"),
    [
        (["index.example"], "other.example"),
        (["index.example"], "::1"),
        (["127.0.0.1"], "127.0.0.2"),
        (["127.0.0.1"], "index.example"),
        ([], "index.example"),
        ([], "127.0.0.1"),
    ],
)
def test_the_authority_is_for_no_other_host(tmp_path, hosts, other):
    """T2: who had its key could sign for the hosts of the command's indexes alone."""
    made = Authority(hosts)
    with pytest.raises(ssl.SSLCertVerificationError, match="subtree"):
        greeted(made.leaf(other), trusting(made, tmp_path), other)


def test_what_the_certificate_says():
    """T2: limited in time, to hosts, and to signing certificates of servers."""
    found = x509.load_pem_x509_certificate(Authority(["index.example"]).certificate)
    assert found.not_valid_after_utc - found.not_valid_before_utc == datetime.timedelta(days=3)
    constraints = found.extensions.get_extension_for_class(x509.NameConstraints)
    assert constraints.critical
    assert constraints.value.permitted_subtrees == [x509.DNSName("index.example")]
    basic = found.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (basic.critical, basic.value.ca, basic.value.path_length) == (True, True, 0)


@pytest.mark.skipif(os.name == "nt", reason="has no files of pipes")
def test_no_key_is_written(tmp_path, monkeypatch):
    """T2: of the host's certificate neither; without pipes it is written encrypted, and removed."""
    written = []

    def opened(path, *arguments, real=os.open, **options):
        written.append(str(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", opened)
    made = Authority(["index.example"])
    made.leaf("index.example")
    assert written == []
    monkeypatch.setattr(authority.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(Path, "is_dir", lambda _: False)
    made = Authority(["index.example"])
    made.leaf("index.example")
    assert len(written) == 2
    assert list(tmp_path.iterdir()) == []


def certificates(environ: dict[str, str]) -> int:
    return trusted_roots(environ).count(b"-----BEGIN CERTIFICATE-----")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have a store")
def test_which_roots_are_trusted(tmp_path, monkeypatch):
    ours = tmp_path / "ours.pem"
    key = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
    ours.write_bytes(b"a comment\n" + key + Authority(["other.example"]).certificate)
    folder = tmp_path / "certs"
    folder.mkdir()
    (folder / "a.pem").write_bytes(ours.read_bytes())
    (folder / "same.0").write_bytes(ours.read_bytes())
    (folder / "broken").symlink_to("missing")
    mozilla = certificates({})
    assert mozilla > 50
    assert certificates({"SSL_CERT_FILE": str(tmp_path / "missing")}) == mozilla
    # A certificate that both have is loaded once: on Debian that is every one of them.
    both = {"SSL_CERT_FILE": str(ours), "SSL_CERT_DIR": str(folder)}
    for environ in ({name: both[name]} for name in both):
        assert certificates(environ) == 1
    assert certificates(both) == 1
    monkeypatch.setattr(trust_bundle, "_SYSTEM_FILES", (str(tmp_path / "missing"), str(ours)))
    for variable in ("UV_SYSTEM_CERTS", "UV_NATIVE_TLS"):
        assert certificates({variable: "1"}) == 1
    # Keys in such a file stay there.
    assert b"PRIVATE" not in trusted_roots(both)


@pytest.mark.parametrize("content", [b"", b"-----BEGIN CERTIFICATE-----\n" * 9])
def test_a_file_without_certificates_is_named(tmp_path, content):
    path = tmp_path / "roots.pem"
    path.write_bytes(content)
    with pytest.raises(NoCertificates, match=r"roots\.pem \(SSL_CERT_FILE\)"):
        trusted_roots({"SSL_CERT_FILE": str(path)})
