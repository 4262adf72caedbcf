"""Canonical compression of platform keys: LZ77 with a preset dictionary.

Not `zlib`: its implementations (zlib, zlib-ng) compress the same text to different bytes, and keys
of equal machines must be equal whatever Python was built with. Here the longest match is used, the
first one of several.

Packed data is a sequence of tokens that begin with a number *n* (LEB128). Even: *n*/2 literal bytes
follow. Odd: copy (*n*-1)/2 + `SHORTEST` bytes from the position that follows as a number, in the
dictionary and the output after it.
"""

from __future__ import annotations

SHORTEST = 4
"""Minimum length of a match in bytes."""


def pack(text: bytes, dictionary: bytes) -> bytes:
    """Return *text* compressed; equal texts and dictionaries give equal bytes."""
    seen = bytearray(dictionary)
    packed = bytearray()
    literal = bytearray()
    position = 0
    while position < len(text):
        start, length = _longest(seen, text, position)
        if length < SHORTEST:
            literal.append(text[position])
            length = 1
        else:
            _flush(literal, packed)
            packed += _number((length - SHORTEST) << 1 | 1) + _number(start)
        seen += text[position : position + length]
        position += length
    _flush(literal, packed)
    return bytes(packed)


def unpack(packed: bytes, dictionary: bytes, limit: int) -> bytes:
    """Return the text that was packed.

    Raises:
        ValueError: it is not a result of `pack`, or the text has more than *limit* bytes.
    """
    text = bytearray(dictionary)
    end = len(dictionary) + limit
    position = 0
    while position < len(packed):
        token, position = _read_number(packed, position)
        if token & 1:
            length = (token >> 1) + SHORTEST
            start, position = _read_number(packed, position)
            if start + length > len(text):
                raise ValueError("a match begins after the end of the data")
            part = text[start : start + length]
        else:
            length = token >> 1
            part = bytearray(packed[position : position + length])
            if len(part) < length:
                raise ValueError("truncated")
            position += length
        if len(text) + length > end:
            raise ValueError(f"larger than {limit} bytes")
        text += part
    return bytes(text[len(dictionary) :])


def _longest(seen: bytearray, text: bytes, position: int) -> tuple[int, int]:
    """Return position and length of the longest match for *text* from *position* on."""
    start, length = 0, SHORTEST - 1
    while position + length < len(text):
        # A longer match cannot begin before the first shorter one.
        found = seen.find(text[position : position + length + 1], start)
        if found < 0:
            break
        start, length = found, length + 1
    return start, length


def _flush(literal: bytearray, packed: bytearray) -> None:
    if literal:
        packed += _number(len(literal) << 1) + literal
        literal.clear()


def _number(value: int) -> bytes:
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _read_number(packed: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(packed) or shift > 21:
            raise ValueError("truncated")
        byte = packed[position]
        position += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, position
