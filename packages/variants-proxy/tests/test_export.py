"""``variants-proxy export``: the answers to one machine as files, for real installers."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from urllib.parse import unquote

import pytest
from publishers import LINUX, OTHER_NAME, TORCH, publish
from test_cli import environ, run
from upstream_server import wheel
from worlds import APP, NVIDIA

from pep_variants._formats.platform_file import write_platform
from support.catalog_places import entry, variant
from support.index import JSON, Answer
from variants_index.pages import read_page
from variants_proxy._commands.cli import main

PLAIN = "plain-1.0-py3-none-any.whl"


@pytest.fixture
def export(tmp_path, upstream):
    """Run the command for a machine with a GPU; the projects are those given, else ``app``."""
    (tmp_path / "gpu.toml").write_text(write_platform(NVIDIA, "a test"))

    def running(*projects, options=(), platform="gpu.toml", index=None, code=0):
        wanted = [item for name in projects or ("app",) for item in ("--project", name)]
        done = run(
            tmp_path, "export", "out", "--platform", platform, *wanted, *options,
            "--index", f"main={index or upstream.url}",
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return running


def page(folder, project="app"):
    return json.loads((folder / "simple" / project / "index.v1_json").read_text())


def files(folder, project="app"):
    return {file["filename"]: file for file in page(folder, project)["files"]}


def stored(folder, project, name):
    """Return path and contents of a stored file, after a look at its hash."""
    file = files(folder, project)[name]
    path = (folder / "simple" / project / unquote(file["url"])).resolve()
    data = path.read_bytes()
    assert file["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}
    return path, data


def tree(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


class TestPages:
    def test_what_is_there(self, upstream, export, tmp_path):
        upstream.add_release("1.0")
        upstream.add("app", "app-1.0.tar.gz", b"source")
        upstream.files_url = upstream.root
        done = export()
        out = tmp_path / "out"
        assert done.stdout.strip() == f"{out.as_uri()}/simple/"
        assert "app: 1 files with 0.0 MB, 1 links" in done.stderr
        first = tree(out)
        assert sorted(first) == [
            f"files/main/app/cu128/{APP}",
            f"files/main/app/cu128/{APP}.metadata",
            "simple/app/index.html",
            "simple/app/index.v1_json",
            "simple/index.html",
            "simple/index.v1_json",
            "variants-export.json",
        ]
        data = upstream.files["app"]["app-1.0-py3-none-any-cu128.whl"]
        assert stored(out, "app", APP)[1] == data
        entry = files(out)[APP]
        assert entry["url"] == f"../../files/main/app/cu128/{APP}"
        assert entry["size"] == len(data)
        metadata = first[f"files/main/app/cu128/{APP}.metadata"]
        assert entry["core-metadata"] == {"sha256": hashlib.sha256(metadata).hexdigest()}
        assert files(out)["app-1.0.tar.gz"]["url"] == f"{upstream.root}/files/app/app-1.0.tar.gz"
        html, of_json = (
            read_page(first[f"simple/app/index.{end}"], kind, "https://x.example/simple/app/").files
            for end, kind in (("html", "text/html"), ("v1_json", JSON))
        )
        assert [(f.url, f.hashes) for f in html] == [(f.url, f.hashes) for f in of_json]
        record = json.loads(first["variants-export.json"])
        assert record == {"platform": "gpu", "system": "", "projects": ["app"], "files": False}
        export()  # twice the same
        assert tree(out) == first
        assert not list(tmp_path.glob(".out-*"))

    def test_versions_targets_and_facts(self, upstream, export, tmp_path):
        tags = ("py3-none-manylinux_2_28_x86_64", "py3-none-win_amd64")
        for version in ("1.0", "2.0", "3.0"):
            upstream.add_release(version, tags=tags)
        out, facts = tmp_path / "out", "cuda=12.8,sm=9.0,cpu=zen4"
        export("app>=2", "App<3", options=("--system", "win-x86_64"), platform=facts)
        ((name, file),) = files(out).items()
        assert name == "app-2.0-py3-none-win_amd64.whl"
        assert "/cu128/" in file["url"]
        assert "versions" not in page(out)  # its index does not say them
        assert json.loads((out / "variants-export.json").read_text())["platform"] == facts

    def test_of_an_index_with_credentials(self, upstream, export, tmp_path):
        """What needs them is stored, as no one else has them."""
        upstream.add("plain", PLAIN, wheel(PLAIN))
        upstream.credentials = "me:secret"
        export("plain", index=upstream.url.replace("://", "://me:secret@"))
        out = tmp_path / "out"
        assert files(out, "plain")[PLAIN]["url"].startswith("../../files/main/plain/-/")
        assert not any(b"secret" in data for data in tree(out).values())

    def test_pip_installs_from_the_folder(self, upstream, export, tmp_path):
        upstream.add_release("1.0", "dep; 'nvidia' in variant_namespaces")
        upstream.add("app", "app-1.0.tar.gz", b"source")
        name = "dep-1.0-py3-none-any.whl"
        upstream.add("dep", name, wheel(name))
        upstream.files_url, upstream.hashes = upstream.root, False
        url = export("app", "dep", options=("--files",)).stdout.strip()
        out, target = tmp_path / "out", tmp_path / "installed"
        for project in ("app", "dep"):
            for name in files(out, project):
                stored(out, project, name)
        assert upstream.root not in json.dumps([page(out), page(out, "dep")])
        command = [sys.executable, "-m", "pip", "--isolated", "install", "--no-cache-dir"]
        command += ["--quiet", "--index-url", url, "--target", str(target), "app"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert (target / "app" / "__init__.py").read_text() == "LABEL = 'cu128'\n"
        assert (target / "dep").exists()  # the marker is evaluated in METADATA


class TestCatalog:
    def test_a_publishers_build(self, upstream, export, tmp_path, caplog):
        """It has its own name, which says what it is: it can be a link."""
        ((name, data),) = publish(upstream, "cu128", "2.9.0+cu128", (LINUX,)).items()
        for backend in ("cu126", "cu130"):
            publish(upstream, backend, f"2.9.0+{backend}", (LINUX,))
        upstream.faults["/whl/cpu/torch/"] = Answer(500)  # a place that is down
        (tmp_path / "torch.toml").write_text(TORCH.replace("URL", upstream.root))
        plain = f"torch-2.9.0-cp312-cp312-{LINUX}.whl"
        upstream.add("torch", plain, wheel(plain))
        options = ("--variant-catalog", "torch.toml", "--system", "linux-x86_64")
        done = export("torch", options=options, code=1)
        assert "choosing torch without its build null" in done.stderr
        assert not (tmp_path / "out").exists()
        caplog.clear()
        options = (*options, "--allow-missing-sources")
        export("torch", options=options)
        assert caplog.text.count("choosing torch without its build null") == 1
        ((found, file),) = files(tmp_path / "out", "torch").items()
        assert found == name
        assert file["url"] == f"{upstream.root}/files/whl/cu128/torch/{name.replace('+', '%2B')}"
        export("torch==2.9.0", options=(*options, "--files"))
        assert list(files(tmp_path / "out", "torch")) == [name]
        assert stored(tmp_path / "out", "torch", name)[1] == data

    def test_a_build_under_the_projects_own_name(self, upstream, export, tmp_path):
        """It is the variant itself, and no other file that one is taken in place of."""
        name = "app-1.0-py3-none-any.whl"
        upstream.add("app", name, wheel(name))
        upstream.add("app", "app-1.0.tar.gz", b"source")
        upstream.files_url = upstream.root
        (tmp_path / "app.toml").write_text(
            entry("app", [variant("cuda12", 'local = ""', cuda="12.6")])
        )
        export("app", options=("--variant-catalog", "app.toml"))
        assert files(tmp_path / "out")[name]["url"] == f"{upstream.root}/files/app/{name}"
        done = export("app", options=("--variant-catalog", "app.toml"), platform="cpu=zen4", code=1)
        assert "no such file for this machine" in done.stderr
        assert name in files(tmp_path / "out")  # the one before

    def test_sources_alone(self, upstream, export, tmp_path):
        """Where there are builds, none of which is for the machine, they are no answer."""
        publish(upstream, "cu128", "2.9.0+cu128", (LINUX,))
        upstream.add("torch", "torch-2.9.0.tar.gz", b"source")
        (tmp_path / "torch.toml").write_text(TORCH.replace("URL", upstream.root))
        options = ("--variant-catalog", "torch.toml", "--system", "linux-x86_64")
        done = export("torch", options=options, platform="cpu=zen4", code=1)
        assert "sources alone" in done.stderr, done.stderr
        assert not (tmp_path / "out").exists()

    def test_a_project_of_another_name(self, upstream, export, tmp_path):
        for project in ("cupy", "cupy-cuda12x", "cupy-cuda13x"):
            name = f"{project.replace('-', '_')}-14.0-cp312-cp312-{LINUX}.whl"
            upstream.add(project, name, wheel(name))
        (tmp_path / "cupy.toml").write_text(OTHER_NAME)
        export("cupy", options=("--variant-catalog", "cupy.toml", "--system", "linux-x86_64"))
        ((name, file),) = files(tmp_path / "out", "cupy").items()
        path, _ = stored(tmp_path / "out", "cupy", name)
        assert "/cuda12/" in file["url"]
        assert "Name: cupy\n" in path.with_name(f"{path.name}.metadata").read_text()


class TestProblems:
    def test_a_wrong_hash(self, upstream, export, tmp_path):
        """The export before stays as it was."""
        upstream.add_release("1.0")
        export()
        before = tree(tmp_path / "out")
        name = "app-2.0-py3-none-any-cu128.whl"
        upstream.add_release("2.0")
        upstream.wrong_hashes.add(name)
        done = export(code=1)
        assert name in done.stderr
        assert "http://127.0.0.1" in done.stderr
        assert tree(tmp_path / "out") == before
        assert not list(tmp_path.glob(".out-*"))

    def test_a_dead_link(self, upstream, export, tmp_path):
        """The file is left out with a line, as no one could install it; one that fails is not."""
        for version in ("1.0", "2.0"):
            upstream.add_release(version)
        gone = f"{upstream.root}/files/app/app-1.0-py3-none-any-cu128.whl"
        upstream.faults[gone.rpartition("/")[2]] = Answer(404)
        done = export(options=("--files",))
        assert f"variants-proxy: app: a file is left out: {gone}: not found" in done.stderr
        assert "app-1.0-py3-none-any-cu128.whl" not in str(tree(tmp_path / "out").keys())
        assert "app-2.0-py3-none-any.whl" in files(tmp_path / "out")
        upstream.faults[gone.rpartition("/")[2]] = Answer(503)
        assert gone in export(options=("--files",), code=1).stderr

    def test_an_index_that_is_down(self, upstream, export, tmp_path):
        """What the cache has is no reason to write it into files."""
        upstream.add_release("1.0")
        export()
        before = tree(tmp_path / "out")
        upstream.faults[""] = Answer(503)
        assert "503" in export(code=1).stderr
        assert tree(tmp_path / "out") == before
        export(options=("--allow-missing-sources",))
        assert tree(tmp_path / "out") == before

    @pytest.mark.skipif(os.name == "nt", reason="processes are ended by signals")
    def test_one_that_is_ended(self, upstream, export, tmp_path):
        """The export before stays as it was; what is left goes a day later."""
        upstream.add_release("1.0")
        export()
        before, asked, waiting = tree(tmp_path / "out"), threading.Event(), threading.Event()
        upstream.add_release("2.0")

        def late():
            asked.set()
            waiting.wait(30)
            return Answer(500)

        upstream.faults["app-2.0-py3-none-any-cu128.whl"] = late
        options = ("--platform", "gpu.toml", "--project", "app", "--index", f"main={upstream.url}")
        command = [sys.executable, "-c", f"from {main.__module__} import main; main()"]
        process = subprocess.Popen(
            [*command, "export", "out", *options], cwd=tmp_path, env=environ(tmp_path)
        )
        try:
            assert asked.wait(20)
        finally:
            process.kill()
            process.wait()
            waiting.set()
        assert tree(tmp_path / "out") == before
        (left,) = tmp_path.glob(".out-*")
        upstream.faults.clear()
        export()
        assert left.is_dir()  # it may be of one that runs
        assert len(tree(tmp_path / "out")) > len(before)
        for path in (*left.rglob("*"), left):
            os.utime(path, (0, 0))
        export()
        assert not left.exists()

    def test_metadata_that_cannot_be_used(self, upstream, export, tmp_path):
        for version in ("1.0", "2.0"):
            upstream.add_release(version)
        upstream.add("app", "app-1.0-variants.json", b"{")
        done = export(code=1)
        assert "not valid JSON" in done.stderr
        assert "app-1.0-variants.json" in done.stderr
        assert "--project 'app!=1.0'" in done.stderr
        assert not (tmp_path / "out").exists()
        export("app!=1.0")
        assert set(files(tmp_path / "out")) == {"app-2.0-py3-none-any.whl"}

    @pytest.mark.parametrize(
        ("project", "options", "words"),
        [
            ("missing", {}, "no index has the project missing"),
            ("app>9", {}, "app>9: http"),
            ("app[", {"code": 2}, "--project app[: not a requirement"),
            ("app", {"platform": "h100"}, "did you mean h100-"),
            ("app", {"index": "http://127.0.0.1:1/simple/"}, "127.0.0.1:1"),
        ],
    )
    def test_what_is_not_there(self, upstream, export, tmp_path, project, options, words):
        upstream.add_release("1.0")
        done = export(project, **{"code": 1, **options})
        assert words in done.stderr
        assert not (tmp_path / "out").exists()

    def test_a_folder_with_something_else(self, upstream, export, tmp_path):
        upstream.add_release("1.0")
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "mine").write_text("kept")
        assert "neither empty nor an earlier export" in export(code=1).stderr
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
        for name in ("..", "a%2f..%2f..%2fb-1.0.tar.gz", "app-1.0.tar.gz"):
            upstream.add("app", name, b"x")
        upstream.files_url = upstream.root
        export(options=("--files",), code=1)
        assert {path.name for path in tmp_path.iterdir()} <= {"out", "cache", "gpu.toml"}
