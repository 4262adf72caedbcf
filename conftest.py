"""Isolate all tests from the home, caches and configuration of the user."""

import compileall
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent
sys.path[:0] = [str(ROOT / "integration-tests"), str(ROOT)]  # for `support` and `conformance`

from support.environments import DISTRIBUTIONS
from support.isolation import isolate, places

settings.register_profile("busy machine", deadline=None)
settings.load_profile("busy machine")

_HOMES = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    """Isolate the process that runs tests, see `support.isolation`."""
    if not hasattr(config, "workerinput"):
        # Processes started by tests write no bytecode and would compile the sources each time.
        for distribution in DISTRIBUTIONS:
            compileall.compile_dir(ROOT / distribution / "src", quiet=2)
        if config.getoption("dist", "no") != "no":
            return  # tests run in workers, which need this process's variables
    # Processes in the background of a shell ignore SIGINT, and so do their children.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    homes = Path(tempfile.mkdtemp(prefix="variants-tests-"))
    config.add_cleanup(lambda: shutil.rmtree(homes, ignore_errors=True))
    config.stash[_HOMES] = homes
    isolate(homes / "session")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the workers of `-n auto`: many tests wait, as for a client that tries again."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, (cores or 1) * 2)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name long binary values by their length: archives contain the time, and workers differ."""
    return f"{len(val)}-bytes" if isinstance(val, bytes) and len(val) > 16 else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage meanwhile, nor later in what is collected: half of the time is that."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_finish() -> None:
    """Write no more bytecode: tests limit the size of files, in this process too."""
    sys.dont_write_bytecode = True


@pytest.fixture(autouse=True)
def _own_home(pytestconfig: pytest.Config) -> Iterator[None]:
    """Give every test a new home directory, and restore `os.environ` after it."""
    before = dict(os.environ)
    home = Path(tempfile.mkdtemp(dir=pytestconfig.stash[_HOMES]))
    os.environ.update(places(home))
    yield
    for name in os.environ.keys() - before.keys() - {"PYTEST_CURRENT_TEST"}:
        del os.environ[name]
    os.environ.update(before)
    shutil.rmtree(home, ignore_errors=True)
