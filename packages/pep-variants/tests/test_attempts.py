"""What detection tried is collected, from all threads, and leaves logging as it was."""

import logging
import threading

from pep_variants._providers.base import Attempt, recorded, tried
from pep_variants._providers.registry import BUILTIN_NAMESPACES, examine_host


def test_recorded(caplog):
    package = logging.getLogger("pep_variants._detect")
    before = package.level, package.propagate, list(package.handlers)
    with recorded() as trail:
        thread = threading.Thread(
            target=tried, args=("lib.so", "is loaded"), kwargs={"found": True}
        )
        thread.start()
        thread.join()
        tried("/dev/kfd", "does not exist")
        logging.getLogger("pep_variants._providers.amd").warning("slow: %s", 3)
    assert trail.attempts == [
        Attempt("lib.so", "is loaded", True),
        Attempt("/dev/kfd", "does not exist"),
    ]
    assert trail.warnings == ["slow: 3"]
    assert caplog.text == ""
    assert (package.level, package.propagate, list(package.handlers)) == before
    tried("later", "is not recorded")
    assert len(trail.attempts) == 2


def test_a_tool_that_cannot_be_started(tmp_path):
    path = tmp_path / "npu-smi"
    path.write_text("no program")
    path.chmod(0o755)
    found = examine_host({"PATH": str(tmp_path)}, tmp_path)
    assert found.keys() == BUILTIN_NAMESPACES.keys()
    (attempt,) = [each for each in found["ascend"].attempts if each.place == str(path)]
    assert attempt.answer.startswith("cannot be started: ")
