"""A ``docker`` for Dockerfiles whose steps run here, one folder standing for the file system.

``build`` runs the instructions for real: FROM starts with an empty folder, COPY copies from the
context or from an earlier stage, RUN is a shell. Paths in a Dockerfile have to be below ``rootfs``
of the state already, so a test replaces them (`support.documents.Reader.follow`). ``run`` puts the
files of an image back there. Run as a program: ``python containers.py STATE ARGUMENTS``.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import string
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

_FLAG = re.compile(r"--(\w+)=(\S+)\s+")


@dataclass
class Image:
    """What a stage has besides its files.

    Attributes:
        environ: set by ENV.
        folder: working directory.
        command, entry: as lists.
    """

    environ: dict[str, str] = field(default_factory=dict)
    folder: str = ""
    command: list[str] = field(default_factory=list)
    entry: list[str] = field(default_factory=list)


def instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile: words in capitals, and what follows them."""
    joined = re.sub(r"\\\n", " ", re.sub(r"(?m)^\s*#.*\n", "", text))
    lines = (line.strip().partition(" ") for line in joined.splitlines() if line.strip())
    return [(word.upper(), rest.strip()) for word, _, rest in lines]


class Builder:
    """Stages and images, in a folder that is kept between commands."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._root = state / "rootfs"
        self._made = state / "images"
        self._made.mkdir(parents=True, exist_ok=True)

    def build(self, context: Path, file: Path, tag: str, target: str, given: list[str]) -> None:
        """Run the instructions of *file*, up to the stage *target* if it is not empty."""
        passed = dict(item.split("=", 1) for item in given)
        values: dict[str, str] = {}
        image, name, number = Image(), "", 0
        for word, rest in instructions(file.read_text("utf-8")):
            if word == "FROM":
                if name and name == target:
                    break
                if number:
                    self._keep(name or str(number), image)
                base, _, name = rest.partition(" AS ")
                image, number, values = self._start(base), number + 1, {}
            elif word == "ARG":
                key, _, default = rest.partition("=")
                values[key] = passed.get(key, default)
            else:
                self._do(word, rest, context, image, values)
        for each in (name, tag):
            if each:
                self._keep(each, image)

    def run(self, tag: str, command: list[str], given: dict[str, str]) -> int:
        """Run a command in an image; return its exit code."""
        image = self._start(tag)
        typed = [*image.entry, *(command or image.command)]
        environ = {**os.environ, "container": "docker", **image.environ, **given}
        found = shutil.which(typed[0], path=environ["PATH"]) or typed[0]
        return subprocess.run(
            [found, *typed[1:]], env=environ, cwd=image.folder or self._root, check=False
        ).returncode

    def _do(
        self, word: str, rest: str, context: Path, image: Image, values: dict[str, str]
    ) -> None:
        flags = dict(_FLAG.findall(rest))
        rest = _FLAG.sub("", rest)
        environ = {**os.environ, **image.environ, **values}
        text = string.Template(rest).safe_substitute(environ)
        if word == "ENV":
            key, _, value = text.partition("=")
            image.environ[key] = value.strip('"')
        elif word == "WORKDIR":
            image.folder = text
            Path(text).mkdir(parents=True, exist_ok=True)
        elif word == "COPY":
            stage = self._made / flags["from"] / "files" if "from" in flags else None
            *sources, target = shlex.split(text)
            self._copy(sources, target, context, stage, image)
        elif word in ("CMD", "ENTRYPOINT"):
            words = json.loads(rest)
            image.command, image.entry = (
                (words, image.entry) if word == "CMD" else (image.command, words)
            )
        elif word == "RUN":
            print(f"#{len(list(self._made.iterdir())) + 5} RUN {rest}", flush=True)
            done = subprocess.run(
                ["/bin/sh", "-c", rest], env=environ, cwd=image.folder or self._root,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            )  # fmt: skip
            for line in done.stdout.splitlines():
                print(f"#{len(list(self._made.iterdir())) + 5} 1.234 {line}", flush=True)
            if done.returncode:
                sys.exit(f"ERROR: process {rest!r} did not complete: {done.returncode}")
        else:
            sys.exit(f"unknown instruction: {word}")

    def _copy(
        self, sources: list[str], target: str, context: Path, stage: Path | None, image: Image
    ) -> None:
        for source in sources:
            if stage is None:
                place = context / source
            else:
                place = stage / Path(source).relative_to(self._root)
            goal = Path(image.folder, target) if image.folder else Path(target)
            if place.is_dir():
                shutil.copytree(place, goal, symlinks=stage is not None, dirs_exist_ok=True)
            else:
                goal = goal / place.name if target.endswith("/") else goal
                goal.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(place, goal)

    def _start(self, base: str) -> Image:
        """Put the files of an image in place: none for one from a registry."""
        shutil.rmtree(self._root, ignore_errors=True)
        kept = self._made / base
        if not kept.is_dir():
            self._root.mkdir(parents=True)
            return Image()
        shutil.copytree(kept / "files", self._root, symlinks=True)
        return Image(**json.loads((kept / "image.json").read_text("utf-8")))

    def _keep(self, name: str, image: Image) -> None:
        kept = self._made / name
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(self._root, kept / "files", symlinks=True)
        (kept / "image.json").write_text(json.dumps(asdict(image)), "utf-8")


def main() -> int:
    """Run the command; ``gpus.json`` of the state has the variables that ``--gpus`` sets."""
    state = Path(sys.argv[1])
    parser = argparse.ArgumentParser("docker")
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build")
    build.add_argument("-t", "--tag", required=True)
    build.add_argument("-f", "--file", type=Path)
    build.add_argument("--target", default="")
    build.add_argument("--build-arg", action="append", default=[])
    build.add_argument("--progress", choices=["plain"])
    build.add_argument("-q", "--quiet", action="store_true")
    build.add_argument("context", type=Path)
    run = commands.add_parser("run")
    run.add_argument("--rm", action="store_true", required=True)
    run.add_argument("--gpus")
    run.add_argument("image")
    run.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(sys.argv[2:])
    builder = Builder(state)
    if options.command == "run":
        given = json.loads((state / "gpus.json").read_text()) if options.gpus else {}
        return builder.run(options.image, options.arguments, given)
    file = options.file or options.context / "Dockerfile"
    with contextlib.redirect_stdout(io.StringIO() if options.quiet else sys.stdout):
        builder.build(options.context, file, options.tag, options.target, options.build_arg)
    if options.quiet:
        print(f"sha256:{hashlib.sha256(options.tag.encode()).hexdigest()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
