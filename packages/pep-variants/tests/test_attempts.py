"""What detection tried is collected, from all threads, and leaves logging as it was."""

import logging
import threading

from pep_variants.providers.base import Attempt, recorded, tried


def test_recorded(caplog):
    package = logging.getLogger("pep_variants.detect")
    before = package.level, package.propagate, list(package.handlers)
    with recorded() as trail:
        thread = threading.Thread(
            target=tried, args=("lib.so", "is loaded"), kwargs={"found": True}
        )
        thread.start()
        thread.join()
        tried("/dev/kfd", "does not exist")
        logging.getLogger("pep_variants.providers.amd").warning("slow: %s", 3)
    assert trail.attempts == [
        Attempt("lib.so", "is loaded", True),
        Attempt("/dev/kfd", "does not exist"),
    ]
    assert trail.warnings == ["slow: 3"]
    assert caplog.text == ""
    assert (package.level, package.propagate, list(package.handlers)) == before
    tried("later", "is not recorded")
    assert len(trail.attempts) == 2
