"""Servers on loopback, and sessions that know nothing of the user's own settings."""

import os
from contextlib import ExitStack

import pytest

from pep_variants._sources import Sources
from support.index import served
from variants_index._http.session import Session


@pytest.fixture
def server():
    with served() as running:
        yield running


@pytest.fixture
def other():
    with served() as running:
        yield running


@pytest.fixture
def session():
    """Make sessions, by the URL of their index; they are closed at the end of the test."""
    with ExitStack() as stack:

        def make(
            index="http://index.example/simple/", *, environ=(), store=None, retries=4, **sources
        ):
            given = {"HOME": os.devnull, "PATH": os.defpath, **dict(environ)}
            options = {"environ": given, "store": store, "retries": retries, "first_pause": 0.01}
            return stack.enter_context(Session(Sources(index_url=index, **sources), **options))

        yield make
