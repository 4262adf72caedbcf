"""An unmodified uv at the proxy: what it installs and locks is what was chosen."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from machines import NVIDIA
from upstream_server import wheel

from variants_proxy import Machine, encode, host_target, index_url, links_url

UV = str(Path(sys.executable).with_name("uv.exe" if os.name == "nt" else "uv"))
KEY = encode(Machine(NVIDIA, target=host_target()))


@pytest.fixture
def uv(tmp_path):
    def run(*args, cwd=None):
        environ = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}
        environ |= {"UV_CACHE_DIR": str(tmp_path / "uv-cache"), "UV_NO_CONFIG": "1"}
        environ.pop("VIRTUAL_ENV", None)
        done = subprocess.run(
            [UV, *args], env=environ, cwd=cwd or tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    return run


@pytest.fixture
def index(upstream):
    upstream.add_release("1.0", "gpu; 'nvidia' in variant_namespaces", "cpu; variant_label == ''")
    for name in ("gpu", "cpu"):
        upstream.add(name, f"{name}-1.0-py3-none-any.whl", wheel(f"{name}-1.0-py3-none-any.whl"))
    return upstream


@pytest.mark.parametrize("beside", [True, False])
def test_install(index, start, uv, tmp_path, beside):
    index.core_metadata = beside
    proxy = start(index)
    uv("venv", "--quiet", "venv")
    python = str(tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python")
    out = uv("pip", "install", "--python", python, "--index-url", proxy.url + index_url(KEY), "app")
    assert "+ app==1.0" in out
    assert "+ gpu==1.0" in out
    assert "cpu" not in out
    assert "compatible" in uv("pip", "check", "--python", python)
    for command in (
        (python, "-c", "import app; print(app.LABEL)"),
        (sys.executable, "-m", "pip", "--python", python, "check"),
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
        assert done.stdout in ("cu128\n", "No broken requirements found.\n")


def test_find_links(index, start, uv, tmp_path):
    from variants_proxy import Upstream

    folder = tmp_path / "wheels"
    folder.mkdir()
    for files in index.files.values():
        for name, data in files.items():
            (folder / name).write_bytes(data)
    proxy = start(Upstream("dir", folder.as_uri(), "find-links"))
    uv("venv", "--quiet", "venv")
    out = uv("pip", "install", "--python", "venv", "--no-index", "--find-links",
             proxy.url + links_url(KEY, "dir"), "app")  # fmt: skip
    assert "+ gpu==1.0" in out


def test_lock_and_sync(index, start, uv, tmp_path):
    proxy = start(index)
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text(
        '[project]\nname = "demo"\nversion = "1"\nrequires-python = ">=3.10"\n'
        'dependencies = ["app"]\n'
    )
    place = ("--index-url", proxy.url + index_url(KEY))
    uv("lock", *place, cwd=project)
    lock = (project / "uv.lock").read_text()
    file = proxy.files("app", KEY)["app-1.0-py3-none-any.whl"]
    assert f'url = "{file["url"]}", hash = "sha256:{file["hashes"]["sha256"]}"' in lock
    assert 'name = "cpu"' not in lock
    # What has no variants is locked as without the proxy.
    assert f'url = "{index.url}/files/gpu/gpu-1.0-py3-none-any.whl"' in lock
    uv("sync", "--locked", *place, cwd=project)
    out = uv("run", "--no-sync", "python", "-c", "import app; print(app.LABEL)", cwd=project)
    assert "cu128" in out
