"""Real index servers: how they treat variant wheels, and what pip makes of it."""

from __future__ import annotations

import shutil

import httpx
import pytest

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


@pytest.fixture
def by_project(files, tmp_path):
    """The same files in a folder per project."""
    root = tmp_path / "root"
    for project, found in app_index().files.items():
        folder = root / "simple" / project
        folder.mkdir(parents=True)
        for name in found:
            shutil.copy(files / name, folder)
    return root


def chosen(patched, url, *, lines=()):
    """Install from the simple API at *url* on machines with a GPU and without."""
    results = []
    for env in (CUDA_12_8, {}):
        options = () if env else ("--variant-exclude", "nvidia")
        done = patched.pip("install", "--dry-run", "-v", *options, "-i", url, "app", env=env)
        assert done.code == 0, done
        assert "Traceback" not in done.text
        for line in lines:
            assert line in done.text, done
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
def test_directory_listing(patched, by_project, tmp_path):
    """No hashes, no metadata files, just names."""
    with nginx(by_project, tmp_path / "nginx", listing=True) as url:
        assert "Index of /simple/app/" in page(f"{url}simple/app/")
        for done in chosen(patched, f"{url}simple/"):
            assert done.err == "", done
        # As one page of links, too.
        links = ("--no-index", "--find-links")
        done = patched.pip(
            "install", "--dry-run", *links, f"{url}simple/app/", "--no-deps", "app", env=CUDA_12_8
        )
        assert "Would install app-1.0-cu128\n" in done.out, done


@needs_nginx
@pytest.mark.one
def test_listing_with_credentials(patched, by_project, tmp_path):
    with nginx(by_project, tmp_path / "nginx", listing=True, credentials=PASSWORD) as url:
        assert httpx.get(f"{url}simple/app/").status_code == 401
        refused = patched.pip("install", "--dry-run", "-i", f"{url}simple/", "app", env=CUDA_12_8)
        assert refused.code != 0
        for done in chosen(patched, f"{url}simple/".replace("://", f"://{USER}@")):
            assert done.err == "", done
            assert "s3cr" not in done.text


@pytest.mark.one
@pytest.mark.parametrize("credentials", ["", PASSWORD])
def test_pypiserver(environments, patched, files, tmp_path, credentials):
    """It lists variant wheels, but not their metadata file: the wheels are asked."""
    with pypiserver(environments, files, tmp_path / "server", credentials=credentials) as url:
        if credentials:
            assert httpx.get(f"{url}simple/app/").status_code == 401
            url = url.replace("://", f"://{USER}@")
        seen = page(f"{url}simple/app/")
        assert seen.count(".whl<") == 4
        assert METADATA not in seen
        for done in chosen(patched, f"{url}simple/"):
            assert "s3cr" not in done.text


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
        devpi(environments, files, tmp_path / "devpi", mirrored=f"{original}simple/") as (
            url,
            uploads,
        ),
    ):
        assert uploads.pop(METADATA) == 400
        assert set(uploads.values()) == {200}
        main, mirror = f"{url}root/main/+simple/", f"{url}root/mirror/+simple/"
        assert METADATA not in page(f"{main}app/", JSON)
        chosen(patched, main)
        assert METADATA in page(f"{mirror}app/", JSON)
        chosen(patched, mirror)
