"""`make recording`: the first commands of the README with PyPI, as a picture.

They run in a fresh environment, as on a machine with an H100: a platform file stands for the GPU.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from demo.terminal import Typed, svg
from support.documents import Command, Page
from support.environments import ROOT, clean_environ

OUTPUT = ROOT / "docs" / "pictures" / "first-commands.svg"
MACHINE = "h100-zen4"
# What pip says of the files that it fetches, and of what was there before.
_LEFT_OUT = re.compile(
    r"\s*(Attempting|Collecting|Downloading|Found|Installing|Link|Looking|Processing|Requirement|"
    r"The catalogue has|Uninstalling|Successfully uninstalled|Using|Variant \S+ of|"
    r"WARNING: Location|\[notice|━|$)"
)


def recorded(commands: list[str]) -> list[Typed]:
    """Run *commands* in a new environment, and return them with what they print of the choice."""
    folder = Path(tempfile.mkdtemp(prefix="variants-recording-"))
    try:
        subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True)
        (folder / "dist").symlink_to(ROOT / "dist")
        path = f"{folder / 'env' / 'bin'}{os.pathsep}{os.environ['PATH']}"
        environ = {"HOME": str(folder), "PATH": path, "VARIANTS_PLATFORM": MACHINE}
        found = []
        for command in commands:
            print(f"$ {command}", flush=True)
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=folder, env=clean_environ(environ), text=True, check=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            print(done.stdout, end="")
            lines = [line for line in done.stdout.splitlines() if not _LEFT_OUT.match(line)]
            found.append(Typed(command, tuple(lines)))
        return found
    finally:
        shutil.rmtree(folder)


def main() -> None:
    """Write the picture."""
    title = "pip, on a machine with an H100 and a driver for CUDA 12.8"
    steps = Page(ROOT / "README.md").steps
    typed = recorded([step.text for step in steps if isinstance(step, Command)])
    OUTPUT.write_text(svg(title, typed, ("Variant ", "cuda12  chosen")), "utf-8")
    print(OUTPUT)


if __name__ == "__main__":
    main()
