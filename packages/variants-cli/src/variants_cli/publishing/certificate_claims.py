"""What a signing certificate of Sigstore says of the identity that signed.

The few strings that are needed, out of X.509 in DER (RFC 5280; Fulcio's extensions:
https://github.com/sigstore/fulcio/blob/main/docs/oid-info.md). Nothing is verified here. Linear in
the size of the certificate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_BYTES = 100_000

_OCTETS, _OID, _UTF8 = 0x04, 0x06, 0x0C
_EXTENSIONS = 0xA3
_EMAIL = 0x81

# Below 1.3.6.1.4.1.57264.1, which is Fulcio's.
_FULCIO = bytes.fromhex("2b0601040183bf3001")
_CLAIMS = {
    _FULCIO + b"\x08": "issuer",
    _FULCIO + b"\x0c": "repository",
    _FULCIO + b"\x12": "config",
}
_ALTERNATIVE_NAME = bytes.fromhex("551d11")  # 2.5.29.17


def certificate_claims(certificate: bytes) -> dict[str, str]:
    """Return the claims that *certificate* (DER) has.

    These are ``issuer`` of the identity token, ``repository`` and ``config`` (URIs of the source
    repository and of the build instructions), and ``email``. Empty for what is no certificate.
    """
    found: dict[str, str] = {}
    if len(certificate) > MAX_BYTES:
        return found
    try:
        for identifier, value in _extensions(certificate):
            name = _CLAIMS.get(identifier)
            if name is not None:
                (text,) = (content for tag, content in _items(value) if tag == _UTF8)
                found[name] = text.decode()
            elif identifier == _ALTERNATIVE_NAME:
                ((_, names),) = _items(value)
                for tag, content in _items(names):
                    if tag == _EMAIL:
                        found["email"] = content.decode()
    except (ValueError, IndexError):  # UnicodeDecodeError is one, too
        return {}
    return {name: text for name, text in found.items() if text.isprintable()}


def _extensions(certificate: bytes) -> Iterator[tuple[bytes, bytes]]:
    ((_, whole),) = _items(certificate)
    (_, signed), *_rest = _items(whole)
    for tag, content in _items(signed):
        if tag == _EXTENSIONS:
            ((_, listed),) = _items(content)
            for _, extension in _items(listed):
                parts = dict(_items(extension))  # identifier, perhaps a boolean, value
                yield parts.get(_OID, b""), parts.get(_OCTETS, b"")


def _items(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield tag and content of the elements in *data*."""
    at = 0
    while at < len(data):
        tag, length = data[at], data[at + 1]
        at += 2
        if length & 0x80:
            size = length & 0x7F
            if not 1 <= size <= 4 or at + size > len(data):
                raise ValueError("the length of an element is not valid")
            length = int.from_bytes(data[at : at + size], "big")
            at += size
        if at + length > len(data):
            raise ValueError("an element is cut off")
        yield tag, data[at : at + length]
        at += length
