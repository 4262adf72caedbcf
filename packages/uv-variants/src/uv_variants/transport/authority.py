"""The certificate authority of one user, whose certificates only children of uv-variants trust.

Its key never leaves the machine, and nothing but the file in ``SSL_CERT_FILE`` of a child names it:
neither the system nor a browser trusts it. Host certificates are kept on disk, so that a daemon
that finds them does not import `cryptography`, which takes as long as the rest of its start.
"""

from __future__ import annotations

import hashlib
import os
import re
import ssl
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from filelock import FileLock

from pep_variants.files import read_regular, replacing

from ..errors import UvVariantsError
from .trust_bundle import remove_old, trusted_roots, written

DAY: Final = 86400
AUTHORITY_DAYS: Final = 5 * 365
RENEWED_DAYS: Final = 90
"""Days before its end at which the authority is made anew: longer than any command runs."""
LEAF_DAYS: Final = 14
LEAF_RENEWED_DAYS: Final = 2
_BYTES: Final = 64 * 1024
_EXPIRY = re.compile(rb"\A# valid until (\d{1,12})\n")
_CERTIFICATE = re.compile(
    rb"-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]+-----END CERTIFICATE-----\n"
)


class AuthorityFailed(UvVariantsError):
    """The certificate authority cannot be read or made."""


class Authority:
    """The authority in a folder, and the certificates it signs."""

    def __init__(self, folder: Path, pem: bytes) -> None:
        self._folder = folder
        self._pem = pem
        certificate = _CERTIFICATE.search(pem)
        assert certificate is not None
        self.certificate = certificate[0]
        """PEM of the authority's certificate, without its key."""
        self._contexts: dict[str, tuple[float, ssl.SSLContext]] = {}

    @classmethod
    def load_or_create(cls, folder: Path) -> Authority:
        """Return the authority in *folder*, which is made if there is none that can be used.

        Raises:
            AuthorityFailed: the folder or file cannot be used; the message names it.
        """
        path = folder / "authority.pem"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_owner(folder)
            with FileLock(folder / "authority.lock", timeout=30, mode=0o600):
                pem = _valid(path, RENEWED_DAYS)
                if pem is None:
                    pem = _new_authority()
                    with replacing(path, mode=0o600) as file:
                        file.write(pem)
        except TimeoutError:
            raise AuthorityFailed(f"{folder}: another process holds its lock") from None
        except OSError as error:
            raise AuthorityFailed(
                f"{error.filename or path}: {error.strerror or error}: the certificates of the "
                "index proxy are kept here"
            ) from None
        return cls(folder, pem)

    def leaf(self, host: str) -> ssl.SSLContext:
        """Return the server's TLS context for *host*, a name or an IP address.

        Raises:
            AuthorityFailed: its certificate cannot be written.
        """
        known = self._contexts.get(host)
        now = time.time()
        if known is not None and known[0] > now:
            return known[1]
        digest = hashlib.sha256(self.certificate + host.encode()).hexdigest()[:32]
        path = self._folder / f"host-{digest}.pem"
        try:
            pem = _valid(path, LEAF_RENEWED_DAYS)
            if pem is None:
                pem = _new_leaf(self._pem, host)
                remove_old(self._folder, "host-*.pem", LEAF_DAYS)
                with replacing(path, mode=0o600) as file:
                    file.write(pem)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            context.load_cert_chain(path)
        except (OSError, ssl.SSLError) as error:
            raise AuthorityFailed(f"{path}: {error}") from None
        context.set_alpn_protocols(["http/1.1"])
        context.sni_callback = _same_name(host)
        self._contexts[host] = _expiry(pem) - LEAF_RENEWED_DAYS * DAY, context
        return context

    def files(self, environ: Mapping[str, str], *, system: bool = False) -> tuple[Path, Path]:
        """Return two files of certificates, of which the second has what the user's uv would trust.

        The first, for ``SSL_CERT_FILE`` of a child, has the one of this authority as well.

        Args:
            environ: of the user: ``SSL_CERT_FILE``, ``SSL_CERT_DIR``, ``UV_SYSTEM_CERTS``,
                ``UV_NATIVE_TLS``.
            system: the command line or a file asks for the system's certificates.

        Raises:
            AuthorityFailed: a file cannot be read or written; the message names it.
        """
        trusted = trusted_roots(environ, system=system)
        return self._bundle(self.certificate + trusted), self._bundle(trusted)

    def _bundle(self, data: bytes) -> Path:
        path = self._folder / f"trusted-{hashlib.sha256(data).hexdigest()[:32]}.pem"
        try:
            if written(path, data):
                remove_old(self._folder, "trusted-*.pem", RENEWED_DAYS)
        except OSError as error:
            raise AuthorityFailed(f"{path}: {error.strerror}") from None
        return path


def _same_name(
    host: str,
) -> Callable[[ssl.SSLObject | ssl.SSLSocket, str | None, ssl.SSLContext], int | None]:
    """Return the callback that refuses clients who greet another host than they asked for."""

    def check(_: object, name: str | None, __: object) -> int | None:
        if name is None or name.rstrip(".").lower() == host:
            return None
        return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME

    return check


def _check_owner(folder: Path) -> None:
    """Make *folder* private; refuse another user's, who could replace the key."""
    if os.name == "nt":
        return
    found = folder.stat()
    if found.st_uid != os.getuid():
        raise OSError(0, "this directory belongs to another user", str(folder))
    if found.st_mode & 0o077:
        folder.chmod(0o700)


def _valid(path: Path, days: int) -> bytes | None:
    """Return the file at *path* if it is private and valid for *days* more days, else None."""
    try:
        data, found = read_regular(path, _BYTES)
    except OSError:
        return None
    if os.name != "nt" and (found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077):
        return None  # others could read or write the key
    if _CERTIFICATE.search(data) is None or b"PRIVATE KEY-----" not in data:
        return None
    return data if _expiry(data) > time.time() + days * DAY else None


def _expiry(pem: bytes) -> float:
    found = _EXPIRY.match(pem)
    return float(found[1]) if found else 0.0


def _new_authority() -> bytes:
    from .certificates import new_authority

    return new_authority(AUTHORITY_DAYS)


def _new_leaf(authority: bytes, host: str) -> bytes:
    from .certificates import new_leaf

    return new_leaf(authority, host, LEAF_DAYS)
