"""Many pip commands in one environment, cheaply; what they printed, and what they installed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .environments import BYTECODE, Environment, Result, clean_environ
from .index import Index
from .projects import CUDA_12_8, ON_GPU

_SERVER = Path(__file__).with_name("pip_server.py")
TIMEOUT = 120
"""Seconds that a command may take."""


class PipCommands:
    """The pip of an environment, imported once, see `pip_server`. Close it.

    Where processes cannot be forked every command starts a Python of its own.

    Attributes:
        environment: that of pip.
        said: what importing pip printed, if it was imported by an earlier server, too.
    """

    def __init__(
        self,
        environment: Environment,
        env: Mapping[str, str] | None = None,
        *,
        of: Environment | None = None,
    ) -> None:
        """Start.

        Args:
            environment: that of pip.
            env: variables for the server and all commands.
            of: that of which *environment* is a copy, in which commands install.
        """
        self.environment = environment
        self._env = dict(env or {})
        self.said = ""
        self._process: subprocess.Popen[str] | None = None
        known = (of or environment).path / "modules.txt"
        left_out = ["pkg_resources"] if of else []  # which looks at what is installed once
        if hasattr(os, "fork"):
            self._process = subprocess.Popen(
                [environment.python, str(_SERVER), environment.module, str(known), *left_out],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=environment.path,
                env=clean_environ({**BYTECODE, **self._env}),
            )
            self.said = self._answer("")
            if not known.exists():
                # What it says is of no interest, what it imports is.
                self.pip("install", "--dry-run", "--no-index", "nothing")

    def __enter__(self) -> PipCommands:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """End."""
        if self._process is not None:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.close()
            self._process.wait(TIMEOUT)
            self._process.stdout.close()

    def pip(
        self, *args: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> Result:
        """Run pip with *args*, in *cwd* or the folder of the environment."""
        if self._process is None:
            return self.environment.pip(*args, env={**self._env, **(env or {})}, cwd=cwd)
        job = {
            "args": args,
            "env": clean_environ({"PIP_NO_CACHE_DIR": "1", **self._env, **(env or {})}),
            "cwd": str(cwd or self.environment.path),
        }
        return Result(*self._answer(json.dumps(job)))

    def _answer(self, job: str) -> Any:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if job:
            print(job, file=self._process.stdin, flush=True)
        watch = threading.Timer(TIMEOUT, self._process.kill)
        watch.start()
        try:
            line = self._process.stdout.readline()
        finally:
            watch.cancel()
        if not line:
            raise RuntimeError(f"pip took longer than {TIMEOUT} s, or crashed: {job}")
        return json.loads(line)


def dry_run(environment: Environment, index: Index, *wanted: str, **env: str) -> Result:
    """Ask the pip of *environment* what it would install, on a machine with `CUDA_12_8`."""
    done = environment.pip(
        "install", "--dry-run", "-i", index.url, *wanted, env={**CUDA_12_8, **env}
    )
    assert "Traceback" not in done.text, done
    return done


def installs(done: Result, *names: str) -> None:
    """Check that pip would install just these: names and versions, with labels."""
    assert done.code == 0, done
    assert done.out.splitlines()[-1].split() == ["Would", "install", *names], done


def chooses(environment: Environment, index: Index, *start: str) -> None:
    """Check that the pip that *start* starts there takes the variant of `app_index`, in silence."""
    command = start or ("-m", environment.module)
    done = environment.run(*command, "install", "--dry-run", "-i", index.url, "app", env=CUDA_12_8)
    installs(done, *ON_GPU.split())
    assert done.err == "", done


def versions(environment: Environment) -> dict[str, str]:
    """Return the version of what is installed beside pip and the shim, by name."""
    found = {}
    for path in environment.site_packages.glob("*.dist-info"):
        name, _, version = path.name.removesuffix(".dist-info").partition("-")
        if name not in ("pip", "pep_variants_shim", "pip_variants"):
            found[name.replace("_", "-")] = version
    return found


def labels(environment: Environment) -> dict[str, str]:
    """Return the labels of the installed variants, by name."""
    found = {}
    for path in environment.site_packages.glob("*.dist-info/variant.json"):
        (found[path.parent.name.partition("-")[0]],) = json.loads(path.read_text())["variants"]
    return found


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
