"""A ``docker`` for Dockerfiles whose steps run here, one folder standing for the file system.

``build`` runs the instructions for real: FROM starts with an empty folder or an image made before,
COPY copies from the context or from an earlier stage, RUN is a shell. Paths in a Dockerfile have to
be below ``rootfs`` of the state already, so a test replaces them (`support.documents.Reader`).
``run`` puts the files of an image back there. Run as a program: ``containers.py STATE ARGUMENTS``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import string
import subprocess
import sys
from pathlib import Path
from typing import Any

FLAG = re.compile(r"--(\w+)=(\S+)\s+")
BASE: dict[str, Any] = {"environ": {}, "folder": "", "CMD": [], "ENTRYPOINT": []}
"""What an image of a registry has besides its files, of which there are none here."""


class Docker:
    """Stages and images, in a folder that is kept between commands."""

    def __init__(self, state: Path) -> None:
        self._state, self._root, self._made = state, state / "rootfs", state / "images"

    def build(self, options: argparse.Namespace) -> int:
        """Run the instructions of a Dockerfile."""
        text = (options.file or options.context / "Dockerfile").read_text("utf-8")
        image, names = BASE, [""]
        values: dict[str, str] = {}
        for line in re.sub(r"\\\n", " ", text).splitlines():
            word, _, rest = line.strip().partition(" ")
            if word == "FROM":
                self._keep(names[-1], image)
                base, _, name = rest.partition(" AS ")
                image, values = self._start(base), {}
                names.append(name)
            elif word == "ARG":
                name, _, values[name] = rest.partition("=")
            elif word and not word.startswith("#"):
                self._do(word, rest, image, values, options)
        self._keep(options.tag, image)
        if options.quiet:
            print("sha256:0123")
        return 0

    def run(self, options: argparse.Namespace) -> int:
        """Run a command in an image; ``gpus.json`` has the variables that ``--gpus`` sets."""
        image = self._start(options.image)
        given = json.loads((self._state / "gpus.json").read_text()) if options.gpus else {}
        environ = {**os.environ, "container": "docker", **image["environ"], **given}
        command = [*image["ENTRYPOINT"], *(options.arguments or image["CMD"])]
        return subprocess.run(command, env=environ, cwd=self._root, check=False).returncode

    def _do(
        self, word: str, rest: str, image: Any, values: Any, options: argparse.Namespace
    ) -> None:
        flags, rest = dict(FLAG.findall(rest)), FLAG.sub("", rest)
        environ = {**os.environ, **image["environ"], **values}
        text = string.Template(rest).safe_substitute(environ)
        if word == "ENV":
            name, _, image["environ"][name] = text.partition("=")
        elif word == "WORKDIR":
            image["folder"] = text
            Path(text).mkdir(parents=True, exist_ok=True)
        elif word == "COPY":
            *sources, target = shlex.split(text)
            goal = Path(image["folder"], target)
            for source in sources:
                place = options.context / source
                if "from" in flags:
                    stage = self._made / flags["from"] / "files"
                    place = stage / Path(source).relative_to(self._root)
                if place.is_dir():
                    shutil.copytree(place, goal, symlinks="from" in flags, dirs_exist_ok=True)
                else:
                    shutil.copy(place, goal)
        elif word in ("CMD", "ENTRYPOINT"):
            image[word] = json.loads(rest)
        else:
            assert word == "RUN", word
            done = subprocess.run(
                ["/bin/sh", "-c", rest], env=environ, cwd=image["folder"] or self._root,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            )  # fmt: skip
            for line in done.stdout.splitlines() if not options.quiet else ():
                print(f"#5 1.234 {line}", flush=True)
            if done.returncode:
                sys.exit(f"ERROR: process {rest!r} did not complete: {done.stdout}")

    def _start(self, base: str) -> Any:
        """Put the files of an image in place; return what it has besides."""
        shutil.rmtree(self._root, ignore_errors=True)
        kept = self._made / base
        if kept.is_dir():
            shutil.copytree(kept / "files", self._root, symlinks=True)
            return json.loads((kept / "image.json").read_text("utf-8"))
        self._root.mkdir(parents=True)
        return json.loads(json.dumps(BASE))

    def _keep(self, name: str, image: Any) -> None:
        if name:
            kept = self._made / name
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(self._root, kept / "files", symlinks=True)
            (kept / "image.json").write_text(json.dumps(image), "utf-8")


def main() -> int:
    """Run the command."""
    docker = Docker(Path(sys.argv[1]))
    parser = argparse.ArgumentParser("docker")
    commands = parser.add_subparsers(required=True)
    build = commands.add_parser("build")
    build.set_defaults(act=docker.build)
    build.add_argument("-t", "--tag", required=True)
    build.add_argument("-f", "--file", type=Path)
    build.add_argument("--progress", choices=["plain"])
    build.add_argument("-q", "--quiet", action="store_true")
    build.add_argument("context", type=Path)
    run = commands.add_parser("run")
    run.set_defaults(act=docker.run)
    run.add_argument("--rm", action="store_true", required=True)
    run.add_argument("--gpus")
    run.add_argument("image")
    run.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(sys.argv[2:])
    return int(options.act(options))


if __name__ == "__main__":
    sys.exit(main())
