"""``python -m patched VERSION``: build the wheel of a patched pip."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from .archive import read_wheel, release_date, write_wheel
from .repack import RepackError, local_version, repack
from .upstream import SHA256, UpstreamError, fetch, verify


def main() -> int:
    """Run the command; return the exit code."""
    parser = argparse.ArgumentParser(prog="patched", description=__doc__)
    parser.add_argument("version", choices=SHA256, metavar="VERSION", help=", ".join(SHA256))
    parser.add_argument("--shim", type=Path, required=True, help="wheel of pep-variants-shim")
    parser.add_argument(
        "--upstream", type=Path, help="use this wheel of pip instead of downloading it"
    )
    parser.add_argument("-o", "--out-dir", type=Path, default=Path("dist"), help="output directory")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            upstream = options.upstream or fetch(options.version, Path(folder))
            verify(upstream, options.version)
            files = repack(read_wheel(upstream), read_wheel(options.shim), options.version)
        except (UpstreamError, RepackError, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        options.out_dir.mkdir(parents=True, exist_ok=True)
        name = f"pip-{local_version(options.version)}-py3-none-any.whl"
        write_wheel(options.out_dir / name, files, release_date(upstream))
    wheel = options.out_dir / name
    print(wheel)
    # The same wheel that is released, as anybody would run it.
    environ = {**os.environ, "PYTHONPATH": str(wheel)}
    trial = [sys.executable, "-m", "pip._variants.trial"]
    done = subprocess.run(trial, env=environ, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        print(f"error: {wheel.name}: {done.stdout.strip()}", file=sys.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
