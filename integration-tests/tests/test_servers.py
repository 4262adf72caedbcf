"""Real index servers: what they take of `variants publish`, and what pip makes of it."""

from __future__ import annotations

import shutil
import subprocess
import sys

import httpx
import pytest

from support.environments import clean_environ
from support.index import JSON
from support.projects import CUDA_12_8, ON_CPU, ON_GPU, app_index
from support.servers import devpi, has_nginx, make_index, nginx, pypiserver

METADATA = "app-1.0-variants.json"
USER = "alice:s3cr%40t"  # percent-encoded, as in a URL
PASSWORD = "alice:s3cr@t"

needs_nginx = pytest.mark.skipif(not has_nginx(), reason="there is no nginx")


@pytest.fixture
def files(tmp_path):
    """A folder of wheels, with the metadata file."""
    folder = tmp_path / "files"
    folder.mkdir()
    for project in app_index().files.values():
        for name, data in project.items():
            (folder / name).write_bytes(data)
    return folder


def chosen(patched, url):
    """Install from the simple API at *url* on machines with a GPU and without."""
    results = []
    for env in (CUDA_12_8, {}):
        options = () if env else ("--variant-exclude", "nvidia")
        done = patched.pip("install", "--dry-run", "-v", *options, "-i", url, "app", env=env)
        assert done.code == 0, done
        assert "Traceback" not in done.text
        results.append(done)
    assert f"Would install {ON_GPU}\n" in results[0].out, results[0]
    assert f"Would install {ON_CPU}\n" in results[1].out, results[1]
    return results


def page(url, accept="text/html"):
    return httpx.get(url, headers={"Accept": accept}, follow_redirects=True).raise_for_status().text


@needs_nginx
@pytest.mark.one
@pytest.mark.parametrize(("api", "credentials"), [("html", ""), ("json", PASSWORD)])
def test_static_index(patched, files, tmp_path, api, credentials):
    """What ``variants index`` writes, on a server that knows nothing of indexes."""
    make_index(files)
    with nginx(files, tmp_path / "nginx", api=api, credentials=credentials) as url:
        if credentials:
            url = url.replace("://", f"://{USER}@")
        seen = page(f"{url}simple/app/", f"{JSON}, text/html;q=0.1")
        assert seen.startswith("{") == (api == "json")
        assert METADATA in seen
        for done in chosen(patched, f"{url}simple/"):
            assert done.err == "", done
            assert "s3cr" not in done.text
        requests = (tmp_path / "nginx" / "access.log").read_text()
        # Requirements come from .metadata files, and only what is chosen is fetched.
        assert "cu126.whl" not in requests.replace(".whl.metadata", "")
        assert requests.count(METADATA) == 2


@needs_nginx
@pytest.mark.one
def test_directory_listing(patched, tmp_path):
    """No hashes, no metadata files, just names; and credentials, which are not shown."""
    for project, found in app_index().files.items():
        folder = tmp_path / "root" / "simple" / project
        folder.mkdir(parents=True)
        for name, data in found.items():
            (folder / name).write_bytes(data)
    with nginx(tmp_path / "root", tmp_path / "nginx", listing=True, credentials=PASSWORD) as url:
        assert httpx.get(f"{url}simple/app/").status_code == 401
        url = url.replace("://", f"://{USER}@")
        assert "Index of /simple/app/" in page(f"{url}simple/app/")
        for done in chosen(patched, f"{url}simple/"):
            assert done.err == "", done
            assert "s3cr" not in done.text
        # As one page of links, too.
        links = ("--no-index", "--find-links")
        done = patched.pip(
            "install", "--dry-run", *links, f"{url}simple/app/", "--no-deps", "app", env=CUDA_12_8
        )
        assert "Would install app-1.0-cu128\n" in done.out, done


def publish(folder, url, *more, user="", password=""):
    """Publish as a user does; return the exit code and what is said."""
    env = {"TWINE_USERNAME": user, "TWINE_PASSWORD": password} if user else {}
    program = [sys.executable, "-c", "from variants_cli.main import main; main()", "publish"]
    done = subprocess.run(
        [*program, str(folder), "--repository-url", url, *more],
        capture_output=True, text=True, check=False, env=clean_environ(env),
    )  # fmt: skip
    assert "s3cr" not in done.stdout + done.stderr
    return done.returncode, done.stdout + done.stderr


@pytest.mark.one
def test_pypiserver(environments, patched, files, tmp_path):
    """P12: it refuses the metadata file, and lists variant wheels: the wheels are asked."""
    kept = tmp_path / "kept"
    kept.mkdir()
    login = {"user": "alice", "password": PASSWORD.partition(":")[2]}
    with pypiserver(environments, kept, tmp_path / "server", credentials=PASSWORD) as url:
        code, said = publish(files, url, user="alice", password="wrong")
        assert code == 1
        assert "refuses uploads (status 403) with the user name 'alice'" in said
        assert httpx.get(f"{url}simple/app/").status_code == 401
        code, said = publish(files, url, **login)
        assert code == 1
        assert f"does not accept {METADATA} (status 400: Bad filename: {METADATA})" in said
        assert list(kept.iterdir()) == []  # known before anything is uploaded

        wheels = {path.name for path in files.glob("*.whl")}
        for number in (len(wheels), 0):
            code, said = publish(files, url, "--without-metadata", **login)
            assert code == 0, said
            there = len(wheels) - number
            assert f"{number} files uploaded, {there} there before, verified" in said
        assert {path.name for path in kept.iterdir()} == wheels
        assert all((kept / name).read_bytes() == (files / name).read_bytes() for name in wheels)
        open_url = url.replace("://", f"://{USER}@")
        seen = page(f"{open_url}simple/app/")
        assert seen.count(".whl<") == 4
        assert METADATA not in seen
        for done in chosen(patched, f"{open_url}simple/"):
            assert "s3cr" not in done.text
        # It does not take another file of the same name, and is not even asked.
        path = next(kept.glob("app-1.0-*.whl"))
        path.write_bytes(path.read_bytes() + b"\0")
        code, said = publish(files, url, "--without-metadata", **login)
        assert code == 1
        assert "has other contents under this name" in said


@needs_nginx
@pytest.mark.one
def test_devpi(environments, patched, files, tmp_path):
    """It takes variant wheels, but not their metadata file; of an index that it mirrors it has all.

    Without the file one wheel of each label is downloaded, as it gives no parts of files.
    """
    mirrored = tmp_path / "mirrored"
    shutil.copytree(files, mirrored)
    make_index(mirrored)
    with (
        nginx(mirrored, tmp_path / "nginx") as original,
        devpi(environments, tmp_path / "devpi", mirrored=f"{original}simple/") as url,
    ):
        place, main = f"{url}root/main/", f"{url}root/main/+simple/"
        code, said = publish(files, place)
        assert code == 1
        assert "refuses uploads (status 401" in said
        login = {"user": "root", "password": "secret"}
        code, said = publish(files, place, **login)
        assert code == 1
        assert f"does not accept {METADATA}" in said
        assert "is not a valid archive name" in said
        code, said = publish(files, place, "--without-metadata", **login)
        assert code == 0, said
        assert "0 there before" in said
        assert METADATA not in page(f"{main}app/", JSON)
        chosen(patched, main)
        mirror = f"{url}root/mirror/+simple/"
        assert METADATA in page(f"{mirror}app/", JSON)
        chosen(patched, mirror)
