"""What a transfer sends, and the hash of it that pages get: one pass over the upstream's file."""

from __future__ import annotations

import hashlib
import random

import pytest

from pep_variants.sources import Sources
from pep_variants.wheelfile.zip_rewriting import Piece, Rewrite
from variants_index.cache import Store
from variants_index.errors import BadResponse
from variants_index.http.responses import CHUNK
from variants_index.http.session import Session
from variants_index.pages import PageFile
from variants_proxy.upstream.transfers import Transfer, WheelDigest, read_digest, stream_all

SIZE = 3 * CHUNK + 12345
BYTES = random.Random(7).randbytes(SIZE)


def transfer_of(folder, pieces, *, original=SIZE, data=BYTES, name="0" * 64):
    path = folder / "wheel"
    path.write_bytes(BYTES)
    file = PageFile("wheel", path.as_uri(), {"sha256": hashlib.sha256(data).hexdigest()})
    return Transfer(file, Rewrite(pieces, original, sum(map(len, pieces))), name)


def random_pieces(seed):
    """A wheel put together in some way; parts of the original stay in order."""
    rng = random.Random(seed)
    places = sorted(
        rng.choice([rng.randrange(SIZE + 1), CHUNK * rng.randrange(4)])
        for _ in range(2 * rng.randrange(1, 4))
    )
    if rng.random() < 0.7:
        places[0] = 0
    pieces = []
    for start, end in zip(places[::2], places[1::2], strict=True):
        if start < end:
            pieces.append(Piece(start, end))
        if rng.random() < 0.7:
            pieces.append(Piece(data=rng.randbytes(rng.randrange(1, 3000))))
    if rng.random() < 0.2:
        pieces.insert(0, Piece(data=b"first"))
    return (*pieces, Piece(data=b"directory"))


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


@pytest.mark.parametrize("seed", range(20))
def test_the_hash_is_that_of_what_was_sent(session, store, tmp_path, seed):
    pieces = random_pieces(seed)
    transfer = transfer_of(tmp_path, pieces)
    sent = b"".join(stream_all(session, transfer, store))
    assert sent == expected(pieces)
    digest = WheelDigest(hashlib.sha256(sent).hexdigest(), len(sent))
    assert read_digest(store, transfer.name) == digest
    assert b"".join(stream_all(session, transfer, store)) == sent  # with the known hash
    assert read_digest(store, transfer.name) == digest


@pytest.mark.parametrize("seed", range(4))
def test_a_file_that_differs_is_never_complete(session, store, tmp_path, seed):
    pieces = random_pieces(seed)
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
