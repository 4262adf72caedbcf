"""Uploads with twine or ``uv publish``, and of metadata, which neither uploads."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from pep_variants.errors import redacted
from pep_variants.model.filename import parse_metadata_filename
from variants_index.http.credentials import Credentials, find_credentials, split_credentials

from .errors import PublishError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

TIMEOUT = 60.0
TOOLS = ("twine", "uv")

_REFUSED = (400, 404, 405, 415, 422)


def find_tool(wanted: str | None, environ: Mapping[str, str]) -> list[str]:
    """Return the command line that uploads distributions, without files.

    Args:
        wanted: one of `TOOLS`, None for the first that is there.
        environ: environment variables.

    Raises:
        PublishError: no upload tool is installed.
    """
    # The environment of this command may not be on PATH.
    places = os.pathsep.join((str(Path(sys.executable).parent), environ.get("PATH", os.defpath)))
    for name in TOOLS if wanted is None else (wanted,):
        if name == "twine" and importlib.util.find_spec("twine") is not None:
            return [sys.executable, "-m", "twine", "upload", "--non-interactive"]
        path = shutil.which(name, path=places)
        if path is not None:
            return [path, "upload", "--non-interactive"] if name == "twine" else [path, "publish"]
    missing = " nor ".join(TOOLS) if wanted is None else wanted
    raise PublishError(f"{missing} is not installed here: pip install {wanted or TOOLS[0]}")


def upload_command(
    tool: Sequence[str], url: str, files: Iterable[Path], arguments: Sequence[str]
) -> list[str]:
    """Return the command line with which *tool* uploads *files* to *url*."""
    option = "--publish-url" if tool[-1] == "publish" else "--repository-url"
    return [*tool, *arguments, option, url, "--", *map(str, files)]


def run_tool(command: Sequence[str], environ: Mapping[str, str]) -> None:
    """Run an upload with the output of this process.

    Raises:
        PublishError: it fails.
    """
    try:
        done = subprocess.run(command, env=dict(environ), check=False)
    except OSError as error:
        raise PublishError(f"{command[0]}: {error.strerror or error}") from None
    if done.returncode:
        raise PublishError(
            f"{Path(command[0]).name} failed with exit code {done.returncode}: "
            "later steps were not uploaded: correct the cause and run it again"
        )


def credentials_of(url: str, environ: Mapping[str, str]) -> Credentials | None:
    """Return user name and password for uploads, from where twine and uv take them."""
    given = split_credentials(url)[1]
    if given is not None and given.password:
        return given
    for prefix in ("TWINE", "UV_PUBLISH"):
        password = environ.get(f"{prefix}_PASSWORD")
        if password:
            return Credentials(environ.get(f"{prefix}_USERNAME", "__token__"), password)
    if token := environ.get("UV_PUBLISH_TOKEN"):
        return Credentials("__token__", token)
    return find_credentials(url, environ)


def upload_metadata(path: Path, url: str, credentials: Credentials | None) -> None:
    """Upload a ``*-variants.json`` as distributions are uploaded (the legacy upload API).

    twine and uv publish upload nothing but distributions.

    Raises:
        PublishError: the index does not take it; the message says what to do.
    """
    release = parse_metadata_filename(path.name)
    if release is None:
        raise PublishError(f"{path}: installers do not look for metadata under this name")
    data = path.read_bytes()
    target = split_credentials(url)[0]
    shown = redacted(target)
    try:
        answer = httpx.post(
            target,
            auth=(credentials.username, credentials.password) if credentials else None,
            data={
                ":action": "file_upload",
                "protocol_version": "1",
                "metadata_version": "2.1",
                "name": release[0],
                "version": str(release[1]),
                "filetype": "variants_json",
                "sha256_digest": hashlib.sha256(data).hexdigest(),
            },
            files={"content": (path.name, data, "application/json")},
            timeout=TIMEOUT,
            follow_redirects=False,
        )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise PublishError(f"{shown}: {path.name} could not be uploaded: {error}") from None
    if answer.is_success:
        return
    if answer.status_code in _REFUSED:
        raise PublishError(
            f"{shown} does not accept {path.name} (status {answer.status_code}): where the index "
            "makes this file itself, or installers are to read the wheels instead, publish with "
            "--without-metadata; or serve the directory as static files, see variants index"
        )
    raise PublishError(
        f"{shown}: {path.name} could not be uploaded: status {answer.status_code}; later "
        "steps were not uploaded"
    )
