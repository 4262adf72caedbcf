"""What a transfer sends, and the hash of it that pages get: one pass over the upstream's file."""

from __future__ import annotations

import hashlib
import random

import pytest

from pep_variants._sources import Sources
from pep_variants._wheelfile.zip_rewriting import Piece, Rewrite
from variants_index._cache import Store
from variants_index._errors import BadResponse
from variants_index._http.responses import CHUNK
from variants_index._http.session import Session
from variants_index.pages import PageFile
from variants_proxy._upstream.transfers import Transfer, WheelDigest, read_digest, stream_all

SIZE = 3 * CHUNK + 12345
BYTES = random.Random(7).randbytes(SIZE)


def transfer_of(folder, pieces, *, original=SIZE, data=BYTES, name="0" * 64):
    path = folder / "wheel"
    path.write_bytes(BYTES)
    file = PageFile("wheel", path.as_uri(), {"sha256": hashlib.sha256(data).hexdigest()})
    return Transfer(file, Rewrite(pieces, original, sum(map(len, pieces))), name)


END = Piece(data=b"directory")
PIECES = [
    (Piece(0, SIZE), END),
    (Piece(0, CHUNK), END),
    (Piece(0, CHUNK + 1), Piece(data=b"x" * 3000), Piece(CHUNK + 1, SIZE), END),
    (Piece(0, 10), Piece(20, 2 * CHUNK), Piece(data=b"x"), Piece(3 * CHUNK, SIZE - 1), END),
    (Piece(data=b"first"), Piece(5, CHUNK), Piece(data=b"x"), Piece(data=b"y"), END),
    (END,),
]
"""Wheels put together in several ways; parts of the original stay in order."""


def expected(pieces):
    return b"".join(
        BYTES[piece.start : piece.end] if piece.data is None else piece.data for piece in pieces
    )


@pytest.fixture
def session():
    with Session(Sources(), environ={}, retries=0) as found:
        yield found


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cache")


@pytest.mark.parametrize("pieces", PIECES)
def test_the_hash_is_that_of_what_was_sent(session, store, tmp_path, pieces):
    transfer = transfer_of(tmp_path, pieces)
    sent = b"".join(stream_all(session, transfer, store))
    assert sent == expected(pieces)
    digest = WheelDigest(hashlib.sha256(sent).hexdigest(), len(sent))
    assert read_digest(store, transfer.name) == digest
    assert b"".join(stream_all(session, transfer, store)) == sent  # with the known hash
    assert read_digest(store, transfer.name) == digest


@pytest.mark.parametrize("pieces", PIECES[:4])
def test_a_file_that_differs_is_never_complete(session, store, tmp_path, pieces):
    for problem in ({"data": b"another"}, {"original": SIZE - 1}, {"original": SIZE + 1}):
        sent = []
        with pytest.raises(BadResponse):
            sent.extend(stream_all(session, transfer_of(tmp_path, pieces, **problem), store))
        assert sum(map(len, sent)) < len(expected(pieces))
        assert read_digest(store, "0" * 64) is None


def test_without_a_name_nothing_is_stored(session, store, tmp_path):
    transfer = transfer_of(tmp_path, (Piece(0, SIZE), Piece(data=b"x")), name="")
    assert b"".join(stream_all(session, transfer, store)) == BYTES + b"x"
    assert not list(tmp_path.glob("cache/proxy-rewritten/**/*"))
