"""`variants cache`: what is kept of indexes, shown and cleared."""

import json

import pytest

from variants_index.cache.store import Store


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("VARIANTS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("VARIANTS_CACHE_SIZE", raising=False)
    monkeypatch.delenv("VARIANTS_CACHE_DAYS", raising=False)
    return Store(tmp_path / "cache" / "index")


def fill(store):
    store.put("http", "page", bytes(2_000_000))
    store.put("core-metadata", "file", b"x")


def test_shown(variants, store, monkeypatch):
    fill(store)
    monkeypatch.setenv("VARIANTS_CACHE_SIZE", "10MB")
    monkeypatch.setenv("VARIANTS_CACHE_DAYS", "7")
    result = variants("cache")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        str(store.root),
        "core-metadata  1 record       0.0 MB",
        "http           1 record       2.0 MB",
        "all            2 records      2.0 MB",
        "at most        7 days unused  10.0 MB",
    ]


def test_cleared(variants, store):
    fill(store)
    assert variants("cache", "--clear").out == "2 records removed, 2.0 MB\n"
    assert store.get("http", "page") is None
    assert variants("cache", "--clear").out == "0 records removed, 0.0 MB\n"


def test_for_programs(variants, store):
    fill(store)
    kinds = {
        "core-metadata": {"records": 1, "size": 4096},
        "http": {"records": 1, "size": 2_002_944},
    }
    assert json.loads(variants("cache", "--json").out) == {
        "path": str(store.root),
        "size-limit": 1024**3,
        "days-limit": 30.0,
        "kinds": kinds,
    }
    removed = {"records": 2, "size": 2_007_040}
    assert json.loads(variants("cache", "--clear", "--json").out) == {"removed": removed}


@pytest.mark.parametrize("command", [["cache"], ["resolve", "name"], ["explain", "name"]])
def test_bounds_that_make_no_sense(variants, store, monkeypatch, command):
    monkeypatch.setenv("VARIANTS_CACHE_SIZE", "plenty")
    result = variants(*command)
    assert (result.code, result.out) == (1, "")
    assert result.err == (
        "error: VARIANTS_CACHE_SIZE: expected a size such as 500MB or 2GiB, found 'plenty'\n"
    )
