"""Certificates for servers on loopback, of an authority of the test's own."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Certified:
    """A server's side of TLS, and the file with the authority that clients have to trust."""

    context: ssl.SSLContext
    authority: Path


def certified(folder: Path, *hosts: str) -> Certified:
    """Write an authority and a certificate for 127.0.0.1, localhost and *hosts* into *folder*."""
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.datetime.now(datetime.timezone.utc)
    day = datetime.timedelta(days=1)
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    names = [
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        for name in ("authority of a test", "127.0.0.1")
    ]
    places = x509.SubjectAlternativeName(
        [
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
            *map(x509.DNSName, ("localhost", *hosts)),
        ]
    )
    written = []
    for number, (key, name) in enumerate(zip(keys, names, strict=True)):
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(names[0])
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - day)
            .not_valid_after(now + day)
            .add_extension(x509.BasicConstraints(ca=number == 0, path_length=None), critical=True)
        )
        if number:
            builder = builder.add_extension(places, critical=False)
        certificate = builder.sign(keys[0], hashes.SHA256())
        path = folder / f"{number}.pem"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        written.append(path)
    private = folder / "key.pem"
    private.write_bytes(
        keys[1].private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(written[1], private)
    return Certified(context, written[0])
