"""``variants-proxy export``: the answers to one machine as files, for real installers."""

from __future__ import annotations

import base64
import functools
import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest
from machines import NVIDIA
from publishers import LINUX, OTHER_NAME, Publisher
from test_cli import run
from upstream_server import wheel

from pep_variants.formats.platform_file import write_platform

APP = "app-1.0-py3-none-any.whl"


@pytest.fixture
def export(tmp_path, upstream):
    """Run the command for a machine with a GPU; the projects are those given, else ``app``."""
    (tmp_path / "gpu.toml").write_text(write_platform(NVIDIA, "a test"))

    def running(*projects, options=(), platform="gpu.toml", index=None, code=0):
        wanted = [item for name in projects or ("app",) for item in ("--project", name)]
        done = run(
            tmp_path, "export", "out", "--platform", platform, *wanted, *options,
            "--index", f"main={index or upstream.simple}",
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return running


def page(folder, project="app"):
    return json.loads((folder / "simple" / project / "index.v1_json").read_text())


def files(folder, project="app"):
    return {file["filename"]: file for file in page(folder, project)["files"]}


def links(folder, project="app"):
    found = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: found.append(dict(attributes))
    parser.feed((folder / "simple" / project / "index.html").read_text())
    return [each["href"] for each in found if "href" in each]


def tree(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@contextmanager
def static_server(folder):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=folder)
    )
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def installed(tmp_path, url, *requirements, installer="pip"):
    """Install into a folder and return it."""
    target = tmp_path / f"installed-{len(list(tmp_path.glob('installed-*')))}"
    start = {
        "pip": [sys.executable, "-m", "pip", "install", "--no-cache-dir", "--index-url", url],
        "uv": [sys.executable, "-m", "uv", "pip", "install", "--no-cache", "--python",
               sys.executable, "--default-index", url],
    }[installer]  # fmt: skip
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PIP_", "UV_", "VARIANTS_"))
    }
    done = subprocess.run(
        [*start, "--quiet", "--target", str(target), *requirements],
        env={**environ, "PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return target


class TestPages:
    def test_what_is_there(self, upstream, export, tmp_path):
        upstream.add_release("1.0")
        upstream.add("app", "app-1.0.tar.gz", b"source")
        upstream.base = upstream.url
        done = export()
        out = tmp_path / "out"
        assert done.stdout.strip() == f"{out.as_uri()}/simple/"
        assert "app: 1 files with 0.0 MB, 1 links" in done.stderr
        assert sorted(tree(out)) == [
            f"files/main/app/cu128/{APP}",
            f"files/main/app/cu128/{APP}.metadata",
            "simple/app/index.html",
            "simple/app/index.v1_json",
            "simple/index.html",
            "simple/index.v1_json",
            "variants-export.json",
        ]
        data = upstream.files["app"]["app-1.0-py3-none-any-cu128.whl"]
        assert (out / "files/main/app/cu128" / APP).read_bytes() == data
        entry = files(out)[APP]
        assert entry["url"] == f"../../files/main/app/cu128/{APP}"
        assert entry["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}
        assert entry["size"] == len(data)
        metadata = (out / "files/main/app/cu128" / f"{APP}.metadata").read_bytes()
        assert entry["core-metadata"] == {"sha256": hashlib.sha256(metadata).hexdigest()}
        source = files(out)["app-1.0.tar.gz"]
        assert source["url"] == f"{upstream.url}/files/app/app-1.0.tar.gz"
        assert links(out) == [
            f"{file['url']}#sha256={file['hashes']['sha256']}" for file in page(out)["files"]
        ]
        record = json.loads((out / "variants-export.json").read_text())
        assert record == {"platform": "gpu", "system": "", "projects": ["app"], "files": False}

    def test_versions_and_targets(self, upstream, export, tmp_path):
        tags = ("py3-none-manylinux_2_28_x86_64", "py3-none-win_amd64")
        for version in ("1.0", "2.0", "3.0"):
            upstream.add_release(version, tags=tags)
        export("app>=2", "App<3", options=("--system", "win-x86_64"))
        assert set(files(tmp_path / "out")) == {"app-2.0-py3-none-win_amd64.whl"}
        assert "versions" not in page(tmp_path / "out")  # its index does not say them

    @pytest.mark.parametrize(
        ("platform", "label"), [("cpu-zen4", "null"), ("cuda=12.8,sm=9.0,cpu=zen4", "cu128")]
    )
    def test_a_known_machine_and_facts(self, upstream, export, tmp_path, platform, label):
        upstream.add_release("1.0")
        export(platform=platform)
        assert f"/{label}/" in files(tmp_path / "out")[APP]["url"]
        record = json.loads((tmp_path / "out" / "variants-export.json").read_text())
        assert record["platform"] == platform

    def test_every_file(self, upstream, export, tmp_path):
        upstream.add_release("1.0")
        upstream.add("app", "app-1.0.tar.gz", b"source")
        plain = "plain-1.0-py3-none-any.whl"
        upstream.add("plain", plain, wheel(plain))
        upstream.base = upstream.url
        upstream.hashes = False
        export("app", "plain", options=("--files",))
        out = tmp_path / "out"
        for project in ("app", "plain"):
            for name, file in files(out, project).items():
                data = (out / "simple" / project / file["url"]).resolve().read_bytes()
                assert file["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}, name
        assert upstream.url not in json.dumps([page(out), page(out, "plain")])

    def test_of_an_index_with_credentials(self, upstream, export, tmp_path):
        """What needs them is stored, since nobody else has them."""
        plain = "plain-1.0-py3-none-any.whl"
        upstream.add("plain", plain, wheel(plain))
        upstream.credentials = f"Basic {base64.b64encode(b'me:secret').decode()}"
        export("plain", index=upstream.simple.replace("://", "://me:secret@"))
        out = tmp_path / "out"
        assert files(out, "plain")[plain]["url"].startswith("../../files/main/plain/-/")
        assert not any(b"secret" in data for data in tree(out).values())

    def test_twice_the_same(self, upstream, export, tmp_path):
        upstream.add_release("1.0", "a; 'nvidia' in variant_namespaces")
        out = tmp_path / "out"
        export()
        first = tree(out)
        export()
        assert tree(out) == first
        assert not list(tmp_path.glob(".out-*"))


class TestInstalling:
    @pytest.mark.parametrize(("installer", "at_server"), [("pip", False), ("uv", True)])
    def test_from_a_folder_and_a_server(self, upstream, export, tmp_path, installer, at_server):
        upstream.add_release("1.0", "dep; 'nvidia' in variant_namespaces")
        name = "dep-1.0-py3-none-any.whl"
        upstream.add("dep", name, wheel(name))
        upstream.base = upstream.url
        url = export("app", "dep", options=("--files",)).stdout.strip()
        upstream.faults = {path: (500, {}, b"") for path in set(upstream.paths)}
        with static_server(tmp_path / "out") as server:
            place = f"{server}simple/" if at_server else url
            target = installed(tmp_path, place, "app", installer=installer)
        assert (target / "app.py").read_text() == "LABEL = 'cu128'\n"
        assert (target / "dep.py").exists()  # the marker is evaluated in METADATA


class TestCatalog:
    def test_a_publishers_build(self, upstream, export, tmp_path):
        """It has its own name, which says what it is: it can be a link."""
        publisher = Publisher(upstream)
        made = publisher.add("cu128", "2.9.0+cu128", (LINUX,))
        publisher.add("cu126", "2.9.0+cu126", (LINUX,))
        publisher.add("cu130", "2.9.0+cu130", (LINUX,))
        publisher.add("cpu", "2.9.0+cpu", (LINUX,))
        (tmp_path / "torch.toml").write_text(publisher.entry())
        plain = f"torch-2.9.0-cp312-cp312-{LINUX}.whl"
        upstream.add("torch", plain, wheel(plain))
        options = ("--variant-catalog", "torch.toml", "--system", "linux-x86_64")
        ((name, data),) = made.items()
        export("torch", options=options)
        ((found, file),) = files(tmp_path / "out", "torch").items()
        assert found == name
        assert file["url"] == f"{upstream.url}/whl/cu128/{name.replace('+', '%2B')}"
        export("torch==2.9.0", options=(*options, "--files"))
        ((found, file),) = files(tmp_path / "out", "torch").items()
        assert found == name
        stored = tmp_path / "out" / "simple" / "torch" / unquote(file["url"])
        assert stored.resolve().read_bytes() == data
        assert file["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}

    def test_a_project_of_another_name(self, upstream, export, tmp_path):
        for project in ("cupy", "cupy-cuda12x", "cupy-cuda13x"):
            name = f"{project.replace('-', '_')}-14.0-cp312-cp312-{LINUX}.whl"
            upstream.add(project, name, wheel(name))
        (tmp_path / "cupy.toml").write_text(OTHER_NAME)
        export("cupy", options=("--variant-catalog", "cupy.toml", "--system", "linux-x86_64"))
        ((name, file),) = files(tmp_path / "out", "cupy").items()
        path = (tmp_path / "out" / "simple" / "cupy" / file["url"]).resolve()
        assert "/cuda12/" in file["url"]
        metadata = path.with_name(f"{path.name}.metadata").read_text()
        assert "Name: cupy\n" in metadata
        assert file["hashes"] == {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}

    def test_a_place_that_is_down(self, upstream, export, tmp_path, caplog):
        publisher = Publisher(upstream)
        publisher.add("cu126", "2.9.0+cu126", (LINUX,))
        upstream.faults["/whl/cu128/torch/"] = (500, {}, b"")
        (tmp_path / "torch.toml").write_text(publisher.entry())
        plain = f"torch-2.9.0-cp312-cp312-{LINUX}.whl"
        upstream.add("torch", plain, wheel(plain))
        export("torch", options=("--variant-catalog", "torch.toml"))
        assert caplog.text.count("torch: variant") == 1
        assert any("+cu126" in name for name in files(tmp_path / "out", "torch"))


class TestProblems:
    def test_a_wrong_hash(self, upstream, export, tmp_path):
        """The export before stays as it was."""
        upstream.add_release("1.0")
        export()
        before = tree(tmp_path / "out")
        name = "app-2.0-py3-none-any-cu128.whl"
        upstream.add_release("2.0")
        upstream.lies.add(name)
        done = export(code=1)
        assert name in done.stderr
        assert "http://127.0.0.1" in done.stderr
        assert tree(tmp_path / "out") == before
        assert not list(tmp_path.glob(".out-*"))

    def test_metadata_that_cannot_be_read(self, upstream, export, tmp_path):
        upstream.add_release("1.0")
        upstream.faults["/files/app/app-1.0-variants.json"] = (500, {}, b"")
        done = export(code=1)
        assert "app-1.0-variants.json" in done.stderr
        assert "--project 'app!=1.0'" in done.stderr
        assert not (tmp_path / "out").exists()

    def test_broken_metadata(self, upstream, export, tmp_path):
        for version in ("1.0", "2.0"):
            upstream.add_release(version)
        upstream.add("app", "app-1.0-variants.json", b"{")
        assert "not valid JSON" in export(code=1).stderr
        export("app!=1.0")
        assert set(files(tmp_path / "out")) == {"app-2.0-py3-none-any.whl"}

    @pytest.mark.parametrize(
        ("projects", "words"),
        [
            (("missing",), "no index has the project missing"),
            (("app>9",), "app>9: http"),
            (("app[",), "--project app[: not a requirement"),
        ],
    )
    def test_what_is_not_there(self, upstream, export, tmp_path, projects, words):
        upstream.add_release("1.0")
        done = export(*projects, code=2 if "[" in projects[0] else 1)
        assert words in done.stderr
        assert not (tmp_path / "out").exists()

    def test_an_unknown_platform(self, export):
        assert "did you mean h100-" in export(platform="h100", code=1).stderr

    def test_an_index_that_is_down(self, export):
        done = export(index="http://127.0.0.1:1/simple/", code=1)
        assert "127.0.0.1:1" in done.stderr

    def test_a_folder_with_something_else(self, upstream, export, tmp_path):
        upstream.add_release("1.0")
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "mine").write_text("kept")
        done = export(code=1)
        assert "neither empty nor an earlier export" in done.stderr
        assert tree(tmp_path / "out") == {"mine": b"kept"}

    @pytest.mark.skipif(os.name == "nt" or not os.geteuid(), reason="root may write everywhere")
    def test_a_place_that_cannot_be_written(self, upstream, export, tmp_path):
        upstream.add_release("1.0")
        tmp_path.chmod(0o500)
        try:
            assert "cannot be written" in export(code=1).stderr
        finally:
            tmp_path.chmod(0o700)

    def test_a_link_out_of_the_folder(self, upstream, export, tmp_path):
        upstream.add("app", "..", b"x")
        upstream.add("app", "a%2f..%2f..%2fb-1.0.tar.gz", b"x")
        upstream.add("app", "app-1.0.tar.gz", b"x")
        upstream.base = upstream.url
        done = run(
            tmp_path, "export", "out", "--platform", "gpu.toml", "--project", "app", "--files",
            "--index", f"main={upstream.simple}",
        )  # fmt: skip
        assert "Traceback" not in done.stderr
        outside = {path.name for path in tmp_path.iterdir()} - {"out", "cache", "gpu.toml"}
        assert outside == set()
