"""Many pip commands in one environment, cheaply; and what two of them printed, compared."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

from .environments import BYTECODE, Environment, Result, clean_environ

_SERVER = Path(__file__).with_name("pip_server.py")
TIMEOUT = 120
"""Seconds that a command may take."""


class PipCommands:
    """The pip of an environment, imported once, see `pip_server`. Close it.

    Where processes cannot be forked every command starts a Python of its own.
    """

    def __init__(self, environment: Environment) -> None:
        """Start."""
        self.environment = environment
        self._process: subprocess.Popen[str] | None = None
        if hasattr(os, "fork"):
            self._process = subprocess.Popen(
                [environment.python, str(_SERVER), environment.module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=environment.path,
                env=clean_environ(BYTECODE),
            )
            # What it says is of no interest, what it imports is.
            self.pip("install", "--dry-run", "--no-index", "nothing")

    def close(self) -> None:
        """End."""
        if self._process is not None:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.close()
            self._process.wait(TIMEOUT)
            self._process.stdout.close()

    def pip(self, *args: str, env: Mapping[str, str] | None = None) -> Result:
        """Run pip with *args* in the folder of the environment."""
        if self._process is None:
            return self.environment.pip(*args, env=env)
        job = {
            "args": args,
            "env": clean_environ({"PIP_NO_CACHE_DIR": "1", **(env or {})}),
            "cwd": str(self.environment.path),
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(job), file=self._process.stdin, flush=True)
        watch = threading.Timer(TIMEOUT, self._process.kill)
        watch.start()
        try:
            line = self._process.stdout.readline()
        finally:
            watch.cancel()
        if not line:
            raise RuntimeError(f"pip {' '.join(args)} took longer than {TIMEOUT} s, or crashed")
        return Result(*json.loads(line))


def comparable(result: Result, **places: str) -> Result:
    """Return *result* without what differs from place to place.

    Args:
        result: of a command.
        places: paths, by the name that is shown instead.
    """
    texts = []
    for text in (result.out, result.err):
        for name, path in places.items():
            text = text.replace(path, name)
        # Old pips fall over broken metadata; what they fall over counts, not the way there.
        text = re.sub(r"(?ms)^Traceback .*?^(?=\S*(Error|Invalid\w+): )(?!.*^Traceback)", "", text)
        texts.append(re.sub(r"(/private)?(/var|/tmp)[\w/]*/pip-[\w-]+", "TEMP", text))
    return Result(result.code, *texts)
