"""``python -m patched.command``: build pip-variants, the shim without files that run at start.

The wheel has the package of the wheel of pep-variants-shim and a command, ``pip-variants``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from .archive import Files, read_wheel, release_date, with_record, write_wheel
from .repack import SHIM

NAME = "pip-variants"

_SCRIPTS = f"[console_scripts]\n{NAME} = {SHIM}.__main__:main\n"


def without_hook(shim: Files) -> tuple[str, dict[str, bytes]]:
    """Return the filename of the wheel, and its files, made from those of the *shim*."""
    (before,) = {name.partition("/")[0] for name in shim if name.endswith(".dist-info/METADATA")}
    after = before.replace(SHIM, NAME.replace("-", "_"))
    kept = {name: data for name, data in shim.items() if name.startswith((f"{SHIM}/", before))}
    files = {name.replace(before, after): data for name, data in kept.items()}
    for name in files:
        if name == f"{after}/METADATA" or "/sboms/" in name:
            files[name] = files[name].replace(b"pep-variants-shim", NAME.encode())
    files[f"{after}/entry_points.txt"] = _SCRIPTS.encode()
    return after.replace(".dist-info", "-py3-none-any.whl"), with_record(files, after)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="patched.command", description=__doc__)
    parser.add_argument("--shim", type=Path, required=True, help="wheel of pep-variants-shim")
    parser.add_argument("-o", "--out-dir", type=Path, default=Path("dist"), help="output directory")
    options = parser.parse_args()
    name, files = without_hook(read_wheel(options.shim))
    options.out_dir.mkdir(parents=True, exist_ok=True)
    write_wheel(options.out_dir / name, files, release_date(options.shim))
    print(options.out_dir / name)


if __name__ == "__main__":
    main()
