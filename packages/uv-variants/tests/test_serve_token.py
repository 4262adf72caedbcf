"""The token of ``uv-variants serve``: kept, private, replaced if others could know it."""

from __future__ import annotations

import os

import pytest

from uv_variants.daemon.serve_token import serve_token


@pytest.fixture
def environ(tmp_path):
    return {"VARIANTS_STATE_DIR": str(tmp_path / "state")}


def test_it_stays(environ, tmp_path):
    token = serve_token(environ)
    assert serve_token(environ) == token
    assert token == (tmp_path / "state" / "serve-token").read_text()


@pytest.mark.skipif(os.name == "nt", reason="permissions")
def test_others_cannot_read_it(environ, tmp_path):
    token = serve_token(environ)
    path = tmp_path / "state" / "serve-token"
    assert path.stat().st_mode & 0o077 == 0
    path.chmod(0o644)
    assert serve_token(environ) != token
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 40, b"a b\n" * 20])
def test_a_broken_file_is_replaced(environ, tmp_path, content):
    serve_token(environ)
    path = tmp_path / "state" / "serve-token"
    path.write_bytes(content)
    token = serve_token(environ)
    assert len(token) == 32
    assert serve_token(environ) == token
