"""The certificate authority of one command, which only the uv of that command trusts.

Its key is an object of this process that is never written anywhere, and its certificate is limited
to the hosts of the command's indexes (name constraints, RFC 5280, 4.2.1.10) and to two days.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import ssl
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID: Final = datetime.timedelta(days=2)
"""Longer than any command runs."""
_EARLIER: Final = datetime.timedelta(days=1)
"""uv may run in a container whose clock differs."""
_NO_ADDRESS: Final = ("0.0.0.0/0", "::/0")


class Authority:
    """An authority, and the certificates of hosts that it signs.

    Attributes:
        certificate: PEM of the authority's certificate.
    """

    def __init__(self, hosts: Iterable[str]) -> None:
        """Make a key and its certificate.

        Args:
            hosts: the only names (in ASCII) and IP addresses that it may sign for.
        """
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("authority of a command")
        self._contexts: dict[str, ssl.SSLContext] = {}
        made = (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_limited_to(hosts), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = made.public_bytes(serialization.Encoding.PEM)

    def leaf(self, host: str) -> ssl.SSLContext:
        """Return the server's TLS context for *host*, a name or an IP address.

        Raises:
            OSError: the certificate cannot be loaded.
        """
        known = self._contexts.get(host)
        if known is None:
            known = self._contexts[host] = self._context(host)
        return known

    def _context(self, host: str) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        made = (
            self._builder(_name("host of an index"), key.public_key())
            .add_extension(x509.SubjectAlternativeName([_general_name(host)]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        password = os.urandom(32).hex()
        with (
            _readable(made.public_bytes(serialization.Encoding.PEM)) as certificate,
            _readable(_pem(key, password)) as private,
        ):
            context.load_cert_chain(certificate, private, password)
        context.set_alpn_protocols(["http/1.1"])
        context.sni_callback = _same_name(host)
        return context

    def _builder(
        self, subject: x509.Name, public: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.timezone.utc)
        issuer = self._key.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _EARLIER)
            .not_valid_after(now + _VALID)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), critical=False
            )
        )


def _same_name(
    host: str,
) -> Callable[[ssl.SSLObject | ssl.SSLSocket, str | None, ssl.SSLContext], int | None]:
    """Return the callback that refuses clients who greet another host than they asked for."""

    def check(_: object, name: str | None, __: object) -> int | None:
        if name is None or name.rstrip(".").lower() == host:
            return None
        return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME

    return check


def _name(text: str) -> x509.Name:
    # OpenSSL takes a common name without blanks for a host, and applies the constraints to it.
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"uv-variants {text}")])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _limited_to(hosts: Iterable[str]) -> x509.NameConstraints:
    """Return the constraints; a kind of name of which there is none is excluded as a whole."""
    names: list[x509.GeneralName] = []
    networks: list[x509.GeneralName] = []
    for host in sorted(set(hosts)):
        try:
            networks.append(x509.IPAddress(ipaddress.ip_network(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    excluded: list[x509.GeneralName] = []
    if not names:
        excluded.append(x509.DNSName(""))
    if not networks:
        excluded += [x509.IPAddress(ipaddress.ip_network(each)) for each in _NO_ADDRESS]
    return x509.NameConstraints([*names, *networks] or None, excluded or None)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey, password: str) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password.encode()),
    )


@contextmanager
def _readable(data: bytes) -> Iterator[str]:
    """Yield a path at which `ssl`, which reads files only, finds *data* once.

    It is a pipe; where pipes have no path, a file that is removed at once.
    """
    if os.name != "nt" and Path("/dev/fd").is_dir():
        read, write = os.pipe()
        try:
            os.write(write, data)  # less than a pipe holds
            os.close(write)
            yield f"/dev/fd/{read}"
        finally:
            os.close(read)
        return
    handle, path = tempfile.mkstemp(prefix="uv-variants-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        yield path
    finally:
        Path(path).unlink()
