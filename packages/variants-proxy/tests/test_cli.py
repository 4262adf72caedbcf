"""The command ``variants-proxy``."""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import httpx
import pytest
from worlds import KEY

from pep_variants._detect.machines import machine_text
from variants_proxy._commands.cli import main
from variants_proxy._key import decode
from variants_proxy.urls import host_target, index_url

DEPLOY = Path(__file__).parents[1] / "deploy"


def environ(folder, **variables):
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    return {**kept, "HOME": str(folder), "VARIANTS_CACHE_DIR": str(folder / "cache"), **variables}


def run(folder, *arguments, **variables):
    """Run a command in this process, with its own variables and working directory."""
    found = SimpleNamespace(returncode=0, stdout=io.StringIO(), stderr=io.StringIO())
    before = Path.cwd()
    os.chdir(folder)
    try:
        with (
            patch.dict(os.environ, environ(folder, **variables), clear=True),
            patch.object(sys, "argv", ["variants-proxy", *map(str, arguments)]),
            redirect_stdout(found.stdout),
            redirect_stderr(found.stderr),
        ):
            main()
    except SystemExit as ended:
        found.returncode = ended.code or 0
    finally:
        os.chdir(before)
    found.stdout, found.stderr = found.stdout.getvalue(), found.stderr.getvalue()
    return found


def test_habits_of_commands(tmp_path):
    assert "Did you mean 'serve'?" in run(tmp_path, "serv").stderr
    assert run(tmp_path, "-V").stdout == run(tmp_path, "--version").stdout != ""
    code = "from variants_proxy._commands.cli import main; main()"
    variables = environ(tmp_path, _VARIANTS_PROXY_COMPLETE="zsh_source")
    script = subprocess.check_output([sys.executable, "-c", code], env=variables, text=True)
    assert "_VARIANTS_PROXY_COMPLETE=zsh_complete" in script


@contextmanager
def serving(folder, *arguments, before="", **variables):
    """Run the proxy in a process, after some code; yield its URL and the process."""
    code = f"{before}\nfrom variants_proxy._commands.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "serve", "--port", "0", *arguments],
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


TOKEN = "a-secret-that-no-one-guesses"


def write_token(path, text=TOKEN, mode=0o600):
    path.write_text(f"{text}\n")
    path.chmod(mode)


def test_serve(tmp_path, upstream):
    write_token(tmp_path / "token")
    variables = {"VARIANTS_PROXY_INDEX": f"own={upstream.url} two={upstream.url}"}
    (tmp_path / "box.toml").write_text(machine_text("a100-zen3", "a test"))
    options = ("--token-file", "token", "--access-log", "--platform", "box=box.toml")
    with serving(tmp_path, *options, **variables) as (url, process):
        page = f"{url}{index_url(KEY, 'own')}app/"
        answer = httpx.get(f"{page}?token={TOKEN}", trust_env=False)
        assert (answer.status_code, answer.text) == (401, "401: missing or wrong proxy token\n")
        assert process.stderr.readline().endswith('app/ HTTP/1.1" 401\n')
        forged = {"X-Forwarded-For": "\x1b]0;pwned\x07"}
        httpx.get(page, headers=forged, trust_env=False)
        # Lines have a time.
        line = r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} \?\]0;pwned\?:0 - "GET '
        assert re.match(line, process.stderr.readline())
        assert answer.headers["www-authenticate"] == 'Basic realm="variants-proxy"'
        assert httpx.get(page, auth=("any", "wrong"), trust_env=False).status_code == 401
        assert httpx.get(page, auth=("any", TOKEN), trust_env=False).status_code == 404
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        box = f"{url}{index_url('box', 'own')}app/"
        for path in (page, box):
            answer = httpx.get(path, headers=bearer, trust_env=False)
            assert (answer.status_code, answer.text) == (404, "index own has no project app\n")
        assert httpx.get(f"{url}/health", trust_env=False).json()["upstreams"] == 2
        if os.name != "nt":
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0


@pytest.mark.parametrize(
    ("text", "mode", "message"),
    [
        pytest.param(
            TOKEN,
            0o644,
            "token: other users of this machine can read the token: chmod o-rwx token",
            marks=pytest.mark.skipif(os.name == "nt", reason="there are no modes"),
        ),
        ("abc", 0o600, "token: the token has 3 characters, less than 16, and can be guessed"),
        ("  \n", 0o600, "there is no token"),
    ],
)
def test_tokens_that_are_none(tmp_path, text, mode, message):
    write_token(tmp_path / "token", text, mode)
    done = run(tmp_path, "serve", "--port", "0", "--token-file", "token")
    assert done.returncode != 0
    assert message in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "Error: there is no token: set VARIANTS_PROXY_TOKEN"),
        (("--token-file", "missing"), 1, "Error: missing: the token cannot be read"),
        (("--open", "--platform", "gpu"), 2, "Error: --platform gpu: expected NAME=MACHINE"),
        (("--open", "--platform", "gpu=none.toml"), 1, "none.toml: cannot be read: No such file"),
        (("--open", "--platform", "gpu=h100-zen5"), 1, "variants-proxy: 'h100-zen5' is neither a"),
        (("--open", "--index", "ftp://host/"), 1, "variants-proxy: index "),
        (("--open", "--host", "192.0.2.1"), 1, "choose another address with --host and --port"),
        (("--open", "--variant-catalog", "missing"), 1, f"{os.sep}missing"),
        (("--open", "--variant-catalog-mirror", "x"), 1, "FROM=TO"),
    ],
)
def test_invalid_options(tmp_path, arguments, code, message):
    done = run(tmp_path, "serve", "--port", "0", *arguments)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_url(tmp_path, monkeypatch):
    monkeypatch.setattr("platform.system", lambda: "Linux")  # others have no such provider
    driver = {"NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION": "12.8"}
    done = run(tmp_path, "url", "--proxy", "https://variants.example/", **driver)
    assert done.returncode == 0, done
    found = re.fullmatch(r"https://variants\.example/p/(2~[\w-]+)/simple/\n", done.stdout)
    machine = decode(found[1])
    assert machine.target == host_target()
    assert machine.detected.support("nvidia").features
    done = run(tmp_path, "url", "--index", "own", "--platform", "h100")
    assert done.stdout == "http://127.0.0.1:4825/p/h100/i/own/simple/\n"
    done = run(tmp_path, "url", "--keyed", "--platform", "h100", VARIANTS_PROXY_TOKEN="t")
    assert done.stdout == "http://h100:t@127.0.0.1:4825/simple/\n"
    done = run(tmp_path, "url", "--platform", "h100", VARIANTS_BEFORE_VERSION=":none:")
    machine = decode(done.stdout.split("/")[4])
    assert (machine.name, machine.preferences.before_version) == ("h100", {":none:"})
    (tmp_path / "ours.toml").write_text(machine_text("a100-zen3", "a test"))
    for machine, level in (("cuda=12.8,sm=9.0,cpu=zen4", "90_real"), ("ours.toml", "80_real")):
        done = run(tmp_path, "url", "--platform", machine)
        (key,) = re.findall(r"/p/(2~[\w-]+)/simple/", done.stdout)
        assert decode(key).platform.support("nvidia").features["sm_arch"][0] == level
    done = run(tmp_path, "url", "--platform", "cuda=9.0")
    assert (done.returncode, done.stdout) == (1, "")
    assert "cuda=9.0 is outside 11.0 to 15.20" in done.stderr


def test_deployments_use_options_and_files_that_exist(tmp_path):
    known = set(re.findall(r"--[a-z-]+", run(tmp_path, "serve", "--help").stdout))
    commands = re.compile(r".*serve\b.*|\s*(?:args|command|CMD):? .*")
    used = {}
    for file in filter(Path.is_file, DEPLOY.rglob("*")):
        lines = [line for line in file.read_text().splitlines() if commands.fullmatch(line)]
        used[file.name] = set(re.findall(r"(?<![\w-])--[a-z-]+", " ".join(lines)))
        assert used[file.name] <= known, file
    assert all("--open" in used[name] for name in ("Containerfile", "compose.yaml", "proxy.yaml"))
    assert "--port" in used["variants-proxy@.service"]
    names = re.findall(r"- \./(\S+?):", (DEPLOY / "compose.yaml").read_text())
    resources = (DEPLOY / "kustomization.yaml").read_text()
    names += re.findall(r"- ((?:kubernetes|nginx)/\S+)", resources)
    assert len(names) >= 9
    assert [name for name in names if name != "tls" and not (DEPLOY / name).is_file()] == []


@pytest.mark.skipif(not shutil.which("kubectl"), reason="there is no kubectl")
def test_kustomization():
    done = subprocess.run(
        ["kubectl", "kustomize", str(DEPLOY)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"(?m)^kind: (\w+)", done.stdout)) == 8
    # What a Deployment mounts has the name with the digest of its contents.
    for name in re.findall(r"(?m)^  name: (nginx-\w+|nginx-location-\w+)$", done.stdout):
        assert done.stdout.count(f"name: {name}\n") == 2
    # The proxy has nothing else for a cluster.
    assert "prometheus" not in done.stdout
    assert set(re.findall(r"path: (/\w*)", done.stdout)) == {"/health"}


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd")
def test_systemd(tmp_path):
    unit = tmp_path / "variants-proxy@4825.service"
    text = (DEPLOY / "variants-proxy@.service").read_text()
    unit.write_text(text.replace("/opt/variants-proxy/bin/variants-proxy", sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    ours = [line for line in done.stderr.splitlines() if "variants-proxy" in line]
    assert (done.returncode, ours) == (0, []), done.stderr
