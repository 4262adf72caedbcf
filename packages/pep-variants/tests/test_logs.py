"""Loggers do what those of `logging` do, and load it when there is something to log."""

import logging
import subprocess
import sys

import pytest

from pep_variants.logs import Logger


@pytest.mark.parametrize("name", ["debug", "info", "warning"])
def test_records_are_those_of_logging(caplog, name):
    caplog.set_level(logging.DEBUG)
    for logger in (Logger("a.b"), logging.getLogger("a.b")):
        getattr(logger, name)("%s of %d", "one", 2)
    ours, theirs = caplog.records
    assert ours.getMessage() == "one of 2"
    for attribute in ("name", "levelno", "msg", "args", "pathname", "funcName", "lineno", "module"):
        assert getattr(ours, attribute) == getattr(theirs, attribute)


def test_more_of_a_record(caplog):
    caplog.set_level(logging.DEBUG)
    try:
        raise KeyError(1)
    except KeyError:
        Logger("a").debug("odd", exc_info=True, extra={"attempt": 3})
    (record,) = caplog.records
    assert record.attempt == 3
    assert record.exc_info[0] is KeyError


def test_levels(caplog):
    caplog.set_level(logging.INFO, "a")
    assert not Logger("a").asked_for_all()
    Logger("a").debug("unseen")
    assert caplog.records == []
    caplog.set_level(logging.DEBUG, "a")
    assert Logger("a").asked_for_all()
    assert Logger("a").real() is logging.getLogger("a")


def test_logging_is_loaded_for_warnings_alone():
    code = (
        "import sys; from pep_variants.logs import Logger; logger = Logger('a')\n"
        "logger.debug('unseen'); logger.info('unseen'); print(logger.asked_for_all())\n"
        "print('logging' in sys.modules); logger.warning('%s seen', 1)\n"
        "print('logging' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("False\nFalse\nTrue\n", "1 seen\n")
