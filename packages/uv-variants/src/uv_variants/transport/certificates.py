"""Certificates, made with `cryptography`; imported when one has to be made, and only then.

A file has its end of validity in a first line, which readers of PEM skip: whether it is still valid
is seen without an X.509 parser.
"""

from __future__ import annotations

import datetime
import ipaddress
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NAME: Final = "uv-variants index proxy of this user"
_EARLIER: Final = datetime.timedelta(days=1)
"""Clocks of containers and machines that share a home differ."""


def new_authority(days: int) -> bytes:
    """Return key and certificate of a new authority, valid for *days*, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(NAME)
    public = key.public_key()
    builder, end = _builder(name, name, public, days)
    certificate = (
        builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pem(end, key, certificate)


def new_leaf(authority: bytes, host: str, days: int) -> bytes:
    """Return key and certificate of a server called *host*, as PEM.

    Args:
        authority: what `new_authority` returned.
        host: name (ASCII) or IP address.
        days: for which it is valid, at most as long as the authority.
    """
    issuer = x509.load_pem_x509_certificate(authority)
    signing = serialization.load_pem_private_key(authority, None)
    assert isinstance(signing, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    # A common name has at most 64 characters, and clients read the alternative name only.
    builder, end = _builder(_name(host[:64]), issuer.subject, key.public_key(), days)
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key())
    certificate = (
        builder.add_extension(x509.SubjectAlternativeName([_alternative(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(identifier, critical=False)
        .sign(signing, hashes.SHA256())
    )
    return _pem(end, key, certificate)


def _builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, days: int
) -> tuple[x509.CertificateBuilder, datetime.datetime]:
    now = datetime.datetime.now(datetime.timezone.utc)
    end = now + datetime.timedelta(days=days)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(end)
    )
    return builder, end


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


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


def _pem(
    end: datetime.datetime, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate
) -> bytes:
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    line = b"# valid until %d\n" % end.timestamp()
    return line + certificate.public_bytes(serialization.Encoding.PEM) + private
