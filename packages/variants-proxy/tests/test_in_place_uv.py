"""The oldest and newest uv at in-place pages: every name that a label makes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from upstream_server import document, wheel
from worlds import NVIDIA

from support.uvs import UVS, downloaded_uv
from variants_proxy import Machine, encode, host_target
from variants_proxy.clients import ClientSettings
from variants_proxy.index_urls import index_url

LABELS = ("null", "cu12.8", "x86_64_v3", "..", ".", "here", "_x", "a.b_c.", "0", "128")


@pytest.fixture
def uv(request, tmp_path, pytestconfig):
    program = downloaded_uv(request.param, Path(pytestconfig.cache.mkdir("wheelhouse")))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}
    environ |= {"UV_NO_CONFIG": "1", "UV_PYTHON": sys.executable, "UV_PYTHON_DOWNLOADS": "never"}
    environ["UV_CACHE_DIR"] = str(tmp_path / "uv-cache")
    environ.pop("VIRTUAL_ENV", None)

    def run(*args):
        done = subprocess.run(
            [str(program), *args], env=environ, cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    return run


@pytest.mark.parametrize("uv", [UVS[0], UVS[-1]], indirect=True)
def test_every_label(upstream, start, uv, tmp_path):
    names = []
    for label in LABELS:
        for build in ("", "7_b-"):
            found = document("12.8")
            found["variants"] = {label: {} if label == "null" else found["variants"]["cu128"]}
            name = f"app{len(names)}"
            names.append(name)
            data = wheel(f"{name}-1.0-py3-none-any-{label}.whl", variants=found)
            upstream.add(name, f"{name}-1.0-{build}py3-none-any-{label}.whl", data)
            upstream.add(name, f"{name}-1.0-variants.json", json.dumps(found).encode())
    proxy = start(upstream)
    key = encode(Machine(NVIDIA, target=host_target()))
    client = proxy.service.clients.register(ClientSettings(key))
    index = proxy.url + index_url(client, "main")
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "demo"\nversion = "1"\nrequires-python = ">=3.10"\n'
        f"dependencies = {json.dumps(names)}\n"
    )
    uv("lock", "--index-url", index)
    lock = (tmp_path / "uv.lock").read_text()
    assert lock.count("/.variant/") == len(names)
    assert lock.count('hash = "sha256:') == len(names)
    uv("sync", "--locked", "--index-url", index)
    done = uv("pip", "freeze", "--python", str(tmp_path / ".venv"))
    assert {f"{name}==1.0" for name in names} <= set(done.split())
