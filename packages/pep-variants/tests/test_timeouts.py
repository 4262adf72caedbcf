"""Waiting, but not for ever; without threads for as long as it takes."""

import threading

import pytest

from pep_variants._timeouts import within


def test_what_comes_of_the_work():
    assert within(10, lambda: 1) == 1
    with pytest.raises(KeyError, match="gone"):
        within(10, lambda: {}["gone"])


def test_too_late():
    with pytest.raises(TimeoutError, match=r"^no answer within 0\.01 s$"):
        within(0.01, threading.Event().wait)


def test_no_threads(monkeypatch):
    """No machine has the memory for their stacks."""

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert within(0.01, threading.current_thread) is threading.current_thread()
    with pytest.raises(KeyError, match="gone"):
        within(0.01, lambda: {}["gone"])
