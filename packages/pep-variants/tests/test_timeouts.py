"""Waiting, but not for ever; without threads for as long as it takes."""

import contextlib
import sys
import threading

import pytest

from pep_variants.timeouts import within


def test_what_comes_of_the_work():
    assert within(10, lambda: 1) == 1
    with pytest.raises(KeyError, match="gone"):
        within(10, lambda: {}["gone"])


def test_too_late():
    with pytest.raises(TimeoutError, match=r"^no answer within 0\.01 s$"):
        within(0.01, threading.Event().wait)


@pytest.fixture
def no_threads():
    """No machine has the memory for their stacks."""
    before = threading.stack_size()
    with contextlib.suppress(ValueError, RuntimeError):  # Windows, WebAssembly
        threading.stack_size(min(1 << 46, sys.maxsize & ~0xFFFFF))
    try:
        threading.Thread().start()
    except RuntimeError:
        yield
    else:
        pytest.skip("threads can always be started here")
    finally:
        with contextlib.suppress(ValueError, RuntimeError):
            threading.stack_size(before)


def test_no_threads(no_threads):
    assert within(0.01, threading.current_thread) is threading.current_thread()
    with pytest.raises(KeyError, match="gone"):
        within(0.01, lambda: {}["gone"])
