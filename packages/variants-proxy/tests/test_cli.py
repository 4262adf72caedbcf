"""The command ``variants-proxy``."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from machines import NVIDIA

from variants_proxy import Machine, encode, index_url

COMMAND = [sys.executable, "-c", "from variants_proxy.cli import main; main()"]
DEPLOY = Path(__file__).parents[1] / "deploy"
KEY = encode(Machine(NVIDIA, target="linux-x86_64"))
"""Of a machine with a GPU."""


def environ(folder, **variables):
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    return {**kept, "HOME": str(folder), "VARIANTS_CACHE_DIR": str(folder / "cache"), **variables}


def run(folder, *arguments, **variables):
    return subprocess.run(
        [*COMMAND, *arguments],
        env=environ(folder, **variables),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@contextmanager
def serving(folder, *arguments, **variables):
    """Run the proxy; yield its URL and process."""
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", *arguments],
        env=environ(folder, **variables),
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        line = process.stderr.readline()
        yield re.fullmatch(r"Serving .* at (http://\S+)\n", line)[1], process
    finally:
        process.kill()
        process.communicate()


def test_serve_with_a_token(tmp_path, upstream):
    (tmp_path / "token").write_text("secret\n")
    index = f"own={upstream.simple}"
    with serving(tmp_path, "--index", index, "--token-file", "token") as (url, process):
        page = f"{url}{index_url(KEY, 'own')}app/"
        answer = httpx.get(page, trust_env=False)
        assert (answer.status_code, answer.text) == (401, "401: missing or wrong proxy token\n")
        assert answer.headers["www-authenticate"] == 'Basic realm="variants-proxy"'
        assert httpx.get(page, auth=("any", "wrong"), trust_env=False).status_code == 401
        assert httpx.get(page, auth=("any", "secret"), trust_env=False).status_code == 404
        bearer = {"Authorization": "Bearer secret"}
        assert httpx.get(page, headers=bearer, trust_env=False).status_code == 404
        assert httpx.get(f"{url}/health", trust_env=False).json()["upstreams"] == 1
        if os.name != "nt":
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0


def test_serve_without_a_token(tmp_path, upstream):
    variables = {"VARIANTS_PROXY_INDEX": f"one={upstream.simple} two={upstream.simple}"}
    with serving(tmp_path, "--open", **variables) as (url, _):
        assert httpx.get(f"{url}/health", trust_env=False).json()["upstreams"] == 2
        page = httpx.get(f"{url}{index_url(KEY)}app/", trust_env=False)
        assert page.status_code == 404


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "Error: there is no token: set VARIANTS_PROXY_TOKEN"),
        (("--token-file", "missing"), 1, "Error: missing: the token cannot be read"),
        (("--open", "--platform", "gpu"), 2, "Error: --platform gpu: expected NAME=FILE"),
        (("--open", "--index", "ftp://host/"), 1, "variants-proxy: index "),
        (("--open", "--host", "192.0.2.1"), 1, "choose another address with --host and --port"),
    ],
)
def test_invalid_options(tmp_path, arguments, code, message):
    done = run(tmp_path, "serve", "--port", "0", *arguments)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_url(tmp_path):
    done = run(tmp_path, "url", "--proxy", "https://variants.example/")
    assert done.returncode == 0, done
    assert re.fullmatch(r"https://variants\.example/p/1~[\w-]+/simple/\n", done.stdout)
    done = run(tmp_path, "url", "--index", "own", "--platform", "h100")
    assert done.stdout == "http://127.0.0.1:4825/p/h100/i/own/simple/\n"


def test_deployments_use_options_that_exist(tmp_path):
    known = set(re.findall(r"--[a-z-]+", run(tmp_path, "serve", "--help").stdout))
    for file in DEPLOY.iterdir():
        text = file.read_text()
        command = next(line for line in text.splitlines() if re.search(r"serve\b", line))
        assert set(re.findall(r"(?<![\w-])--[a-z-]+", command)) <= known, file
