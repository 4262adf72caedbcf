"""The certificates that the user's uv would trust, as one PEM text.

As uv does: the user's ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` if they exist, else the system's if
uv is told to use them, else Mozilla's, which uv has built in and which `certifi` has here.
"""

from __future__ import annotations

import os
import re
import ssl
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import certifi

from pep_variants import safe_files
from variants_index import uv_files

from .._errors import UvVariantsError

LIMIT: Final = 16 * 2**20
"""Maximum size in bytes of a file with certificates."""
FILES: Final = 5000
"""Maximum number of files read in a directory of certificates."""

_CERTIFICATE = re.compile(
    rb"-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[A-Za-z0-9+/=\s]+"
    rb"-----END (?:TRUSTED |X509 )?CERTIFICATE-----"
)
# As openssl-probe, which uv uses, looks for them on Linux and BSD.
_SYSTEM_FILES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/usr/local/share/certs/ca-root-nss.crt",
    "/etc/pki/tls/cacert.pem",
    "/etc/ca-certificates/extracted/tls-ca-bundle.pem",
)
_KEYCHAINS = (
    "/System/Library/Keychains/SystemRootCertificates.keychain",
    "/Library/Keychains/System.keychain",
)


class NoCertificates(UvVariantsError):
    """A file with trusted certificates cannot be used."""


def trusted_roots(environ: Mapping[str, str], *, system: bool = False) -> bytes:
    """Return the trusted certificates, as PEM.

    Args:
        environ: environment variables of the user.
        system: the system's certificates were asked for.

    Raises:
        NoCertificates: a file cannot be read, or has no certificate; the message names it.
    """
    found = []
    file, folder = environ.get("SSL_CERT_FILE", ""), environ.get("SSL_CERT_DIR", "")
    if file and Path(file).exists():  # uv ignores one that does not exist, with a warning
        found.append(_certificates(Path(file), "SSL_CERT_FILE"))
    for each in filter(None, folder.split(os.pathsep)):
        if Path(each).is_dir():
            found.append(_folder(Path(each)))
    if any(found):
        return _only_certificates(b"".join(found))
    if system or any(
        uv_files.is_on(environ.get(n, "")) for n in ("UV_SYSTEM_CERTS", "UV_NATIVE_TLS")
    ):
        certificates = _system()
        if certificates:
            return certificates
        raise NoCertificates(
            "the system has no trusted certificates where uv looks for them: set SSL_CERT_FILE"
        )
    return _certificates(Path(certifi.where()), "certifi")


def _certificates(path: Path, source: str) -> bytes:
    try:
        found = _read(path)
    except OSError as error:
        raise NoCertificates(f"{path} ({source}): {error.strerror}") from None
    if not found:
        raise NoCertificates(f"{path} ({source}): no certificate in it: it must have PEM blocks")
    return found


def _read(path: Path) -> bytes:
    """Return the certificates in the file at *path*.

    Raises:
        OSError: it cannot be read, or is no file.
    """
    return _only_certificates(safe_files.read_regular(path, LIMIT)[0])


def _only_certificates(data: bytes) -> bytes:
    """Return the certificates in *data*, each once: it may hold a private key and comments."""
    return b"".join(found + b"\n" for found in dict.fromkeys(_CERTIFICATE.findall(data)))


def _folder(folder: Path) -> bytes:
    try:
        paths = sorted(folder.iterdir())[:FILES]
    except OSError as error:
        raise NoCertificates(f"{folder} (SSL_CERT_DIR): cannot be read: {error.strerror}") from None
    found: dict[tuple[int, int], bytes] = {}
    for path in paths:
        try:
            stat = path.stat()
            file = stat.st_dev, stat.st_ino
            if file not in found:  # most are there twice, by name and by hash
                found[file] = _read(path)
        except OSError:
            continue  # a broken link, as directories of the system have them
    return _only_certificates(b"".join(found.values()))


def _system() -> bytes:
    if sys.platform == "darwin":
        done = subprocess.run(
            ["/usr/bin/security", "find-certificate", "-a", "-p", *_KEYCHAINS],
            capture_output=True,
            check=False,
        )
        return _only_certificates(done.stdout)
    if sys.platform == "win32":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_default_certs()
        return b"".join(
            ssl.DER_cert_to_PEM_cert(found).encode() for found in context.get_ca_certs(True)
        )
    for name in _SYSTEM_FILES:
        if Path(name).is_file():
            return _certificates(Path(name), "the system's certificates")
    return _folder(Path("/etc/ssl/certs")) if Path("/etc/ssl/certs").is_dir() else b""
