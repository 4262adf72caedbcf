"""`variants publish` to released index servers: what they take, refuse and leave behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from support.environments import Environments, clean_environ
from support.projects import app_index
from support.servers import devpi, pypiserver

METADATA = "app-1.0-variants.json"


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """Wheels and metadata of one version, as a build leaves them."""
    folder = tmp_path / "dist"
    folder.mkdir()
    for name, data in app_index().files["app"].items():
        if name.startswith("app-1.0-"):
            (folder / name).write_bytes(data)
    return folder


def publish(
    folder: Path, url: str, *more: str, user: str = "", password: str = ""
) -> subprocess.CompletedProcess[str]:
    env = {"TWINE_USERNAME": user, "TWINE_PASSWORD": password} if user else {}
    program = [sys.executable, "-c", "from variants_cli.main import main; main()", "publish"]
    return subprocess.run(
        [*program, str(folder), "--repository-url", url, *more],
        capture_output=True,
        text=True,
        check=False,
        env=clean_environ(env),
    )


def listed(url: str) -> set[str]:
    """Return the files that a page lists."""
    answer = httpx.get(url, headers={"Accept": "text/html"})
    if answer.status_code != 200:
        return set()
    return {part.partition("<")[0] for part in answer.text.split('">')[1:] if "app-" in part[:5]}


@pytest.mark.one
@pytest.mark.parametrize("credentials", ["", "alice:s3cr@t"])
def test_pypiserver(environments: Environments, dist: Path, tmp_path: Path, credentials: str):
    """P12: it refuses the metadata; nothing is uploaded before that is known."""
    kept = tmp_path / "kept"
    kept.mkdir()
    user, _, password = credentials.partition(":")
    with pypiserver(environments, kept, tmp_path / "server", credentials=credentials) as url:
        if credentials:
            done = publish(dist, url, user="alice", password="wrong")
            assert done.returncode == 1
            assert "refuses uploads (status 403) with the user name 'alice'" in done.stderr, (
                done.stderr
            )
        done = publish(dist, url, user=user, password=password)
        assert done.returncode == 1
        refused = f"does not accept {METADATA} (status 400: Bad filename: {METADATA})"
        assert refused in done.stderr, done.stderr
        assert list(kept.iterdir()) == []

        done = publish(dist, url, "--without-metadata", user=user, password=password)
        assert done.returncode == 0, done.stderr
        wheels = {path.name for path in dist.glob("*.whl")}
        assert {path.name for path in kept.iterdir()} == wheels
        assert all((kept / name).read_bytes() == (dist / name).read_bytes() for name in wheels)
        # It gives hashes on its pages: what is there is known to be the same.
        done = publish(dist, url, "--without-metadata", user=user, password=password)
        assert done.returncode == 0, done.stderr
        assert f"0 files uploaded, {len(wheels)} there before, verified" in done.stdout
        # It does not take another file of the same name, and is not even asked.
        path = next(dist.glob("app-1.0-*.whl"))
        (kept / path.name).write_bytes((kept / path.name).read_bytes() + b"\0")
        done = publish(dist, url, "--without-metadata", user=user, password=password)
        assert done.returncode == 1
        assert "has other contents under this name" in done.stderr, done.stderr
        assert "s3cr" not in done.stdout + done.stderr


@pytest.mark.one
def test_devpi(environments: Environments, dist: Path, tmp_path: Path):
    (tmp_path / "none").mkdir()
    with devpi(environments, tmp_path / "none", tmp_path / "server") as (url, _):
        place, page = f"{url}root/main/", f"{url}root/main/+simple/app/"
        done = publish(dist, place)
        assert done.returncode == 1
        assert "refuses uploads (status 401" in done.stderr, done.stderr
        done = publish(dist, place, user="root", password="secret")
        assert done.returncode == 1
        assert f"does not accept {METADATA}" in done.stderr, done.stderr
        assert "is not a valid archive name" in done.stderr
        assert listed(page) == set()

        done = publish(dist, place, "--without-metadata", user="root", password="secret")
        assert done.returncode == 0, done.stderr
        assert listed(page) == {path.name for path in dist.glob("*.whl")}
        done = publish(dist, place, "--without-metadata", user="root", password="secret")
        assert "0 files uploaded" in done.stdout, done.stderr
