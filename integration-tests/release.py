"""Build the wheels and sdists of a release, twice, and compare them.

    python release.py ../dist --uv ../.tools/bin/uv
    python release.py --changelog

Both builds are of the last commit, in folders of different names and with different file modes.
SOURCE_DATE_EPOCH is the time of the commit, and the build tools are those of uv.lock, so that the
commit is enough to make the same files again. Wheels are built from the sdists. Before, the change
notes are moved into CHANGELOG.md: a commit with the tag of the version has none left.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
SUMS = "SHA256SUMS"
NOTES, CHANGELOG = "changes", "CHANGELOG.md"


class ReleaseError(Exception):
    """The files cannot be released."""


def source(commit: str, folder: Path, *, umask: int) -> Path:
    """Unpack *commit* to *folder*, with the file modes that *umask* gives; return the folder."""
    archive = subprocess.check_output(
        ["git", "-c", f"tar.umask={umask:04o}", "archive", commit], cwd=ROOT
    )
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        if sys.version_info >= (3, 12):
            tar.extractall(folder, filter="tar")
        else:
            tar.extractall(folder)
    return folder


def make_changelog(place: Path, version: str) -> None:
    """Move the change notes of the checkout at *place* into its changelog, for *version*."""
    command = [sys.executable, "-m", "towncrier", "build", "--yes", "--version", version]
    subprocess.run(command, cwd=place, check=True)


def check_changelog(source: Path, version: str) -> None:
    """Check that the changelog in *source* has all change notes, as those of *version*.

    Raises:
        ReleaseError: there are others, or it has none of the version.
    """
    notes = sorted(path.name for path in (source / NOTES).iterdir() if path.name != "README.md")
    text = (source / CHANGELOG).read_text("utf-8")
    if notes or f"\n## {version}, " not in text:
        listed = f"{NOTES} has {', '.join(notes)}" if notes else f"{CHANGELOG} has no {version}"
        raise ReleaseError(f"{listed}: run make changelog, and commit what it changes")


def distributions(source: Path) -> list[str]:
    """Return the folders of the distributions, relative to *source*."""
    workspace = tomllib.loads((source / "pyproject.toml").read_text("utf-8"))
    members: list[str] = workspace["tool"]["uv"]["workspace"]["members"]
    return members


def build(
    source: Path, out: Path, uv: str, environ: Mapping[str, str], folders: Sequence[str]
) -> dict[str, bytes]:
    """Build the sdists of *folders* in *source* into *out*, and wheels from them.

    Returns:
        The files by name.
    """
    bundled = tomllib.loads((source / "pip-patch" / "vendor.toml").read_text("utf-8"))
    export = [uv, "export", "--quiet", "--frozen", "--no-emit-workspace", "--no-header"]
    # vendor.toml has the hashes of the libraries that the pip shim bundles.
    export += ["--no-annotate", *(f"--no-emit-package={name}" for name in bundled)]
    constraints = out.with_name(f"{out.name}-constraints.txt")
    constraints.write_bytes(subprocess.check_output(export, cwd=source, env=environ))
    command = [uv, "build", "--quiet", "--out-dir", str(out)]
    command += ["--build-constraints", str(constraints)]
    for folder in folders:
        subprocess.run([*command, folder], cwd=source, env=environ, check=True)
    for shim in out.glob("pep_variants_shim-*.whl"):  # without files that run at start
        derive = [sys.executable, "-m", "patched.command", "--shim", str(shim)]
        derive += ["-o", str(out)]
        place = source / "pip-patch"
        subprocess.run(derive, cwd=place, env=environ, check=True, capture_output=True)
    return {
        path.name: path.read_bytes() for path in out.iterdir() if path.suffix in (".whl", ".gz")
    }


def build_twice(
    commit: str,
    folder: Path,
    uv: str,
    epoch: int,
    environ: Mapping[str, str],
    folders: Sequence[str] = (),
) -> list[dict[str, bytes]]:
    """Build *folders* of *commit*, all if empty, in two places with different file modes.

    Args:
        commit: of the repository.
        folder: for both.
        uv: the command.
        epoch: the time of every file, in seconds since 1970.
        environ: the environment variables of uv.
        folders: of distributions.
    """
    environ = {**environ, "SOURCE_DATE_EPOCH": str(epoch)}
    builds = []
    for name, umask in (("first", 0o022), ("the-second", 0o077)):
        place = source(commit, folder / name, umask=umask)
        out = folder / f"{name}-dist"
        builds.append(build(place, out, uv, environ, folders or distributions(place)))
    return builds


def check(first: Mapping[str, bytes], second: Mapping[str, bytes]) -> None:
    """Check that two builds gave the same files.

    Raises:
        ReleaseError: they differ.
    """
    names = first.keys() | second.keys()
    if different := sorted(name for name in names if first.get(name) != second.get(name)):
        raise ReleaseError(f"two builds of one commit differ: {', '.join(different)}")


def sums(files: Mapping[str, bytes]) -> str:
    """Return the text of SHA256SUMS, as sha256sum writes and checks it."""
    return "".join(
        f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(files.items())
    )


def main() -> int:
    """Build the release; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("out", type=Path, nargs="?", help="folder of the release, replaced")
    parser.add_argument(
        "--changelog", action="store_true", help="move the change notes into the changelog alone"
    )
    parser.add_argument("--uv", default="uv", help="uv's command")
    options = parser.parse_args()
    version = (ROOT / "VERSION").read_text("utf-8").strip()
    if options.changelog:
        make_changelog(ROOT, version)
        return 0
    if options.out is None:
        parser.error("name the folder of the release")
    uv = str(Path(shutil.which(options.uv) or options.uv).absolute())
    git = ["git", "-C", str(ROOT)]
    if subprocess.check_output([*git, "status", "--porcelain"]):
        print(
            "error: there are changes that are not committed; commit or stash them", file=sys.stderr
        )
        return 1
    commit = subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()
    epoch = int(subprocess.check_output([*git, "log", "-1", "--format=%ct", commit]))
    tags = subprocess.check_output([*git, "tag", "--points-at", commit], text=True).split()
    with tempfile.TemporaryDirectory() as temporary:
        try:
            if f"v{version}" in tags:
                check_changelog(ROOT, version)
            builds = build_twice(commit, Path(temporary), uv, epoch, os.environ)
            check(*builds)
        except ReleaseError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    shutil.rmtree(options.out, ignore_errors=True)
    options.out.mkdir(parents=True)
    for name, data in builds[0].items():
        (options.out / name).write_bytes(data)
    text = sums(builds[0])
    (options.out / SUMS).write_text(text, "utf-8")
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
