"""Runs pip commands one after the other, each in a process of its own that is forked from here.

Unlike `pip_server` it imports pip once, before the first command, and tells what that printed. Run
with the Python of an environment, whose pip it is; gets jobs as JSON, and prints results as JSON.
What is imported is in ``modules.txt`` of the environment: what all commands of an earlier run have
imported. Uses nothing but the standard library.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

from pip_server import forked, read, warm_up


def main() -> None:
    """Do the jobs in standard input."""
    jobs = json.load(sys.stdin)
    sys.path.pop(0)  # the folder of this file
    answers = os.fdopen(os.dup(1), "w")
    results = []
    known = Path(sys.prefix, "modules.txt")
    found: set[str] = set()
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        if known.exists():
            warm_up(known.read_text().split())
        sys.stderr.flush()
        results.append([0, "", read(said)])
    for job in jobs:
        with (
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
            tempfile.TemporaryFile("w+") as modules,
        ):
            code = forked(job, out.fileno(), err.fileno(), modules.fileno())
            results.append([code, read(out), read(err)])
            modules.seek(0)
            found.update(modules.read().split())
    if not known.exists():
        known.write_text("\n".join(sorted(found)))
    json.dump(results, answers)
    answers.flush()


if __name__ == "__main__":
    main()
