"""What the files in `deploy` start is started; their schemas are those of what reads them.

`test_cli.py` of the proxy has what systemd and kubectl say, `test_proxy_nginx.py` what nginx does.
"""

from __future__ import annotations

import json
import os
import plistlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from packaging.requirements import Requirement

from support.environments import ROOT, Environments, clean_environ
from support.servers import free_port
from support.tools import tool
from support.waiting import wait_until

DEPLOY = ROOT / "packages/variants-proxy/deploy"
UNIT = DEPLOY / "variants-proxy@.service"
PROGRAM = Path(sys.executable).with_name("variants-proxy")
INSTALLED = "/opt/variants-proxy/bin/variants-proxy"
"""Where `proxy-operating.md` says to install it."""


def unit_command() -> list[str]:
    (line,) = re.findall(r"(?m)^ExecStart=(.*)$", UNIT.read_text())
    return shlex.split(line.replace("%i", "4825"))


def plist_command() -> list[str]:
    tree = plistlib.loads((DEPLOY / "com.example.variants-proxy.plist").read_bytes())
    return list(tree["ProgramArguments"])


def container_command(*arguments: str) -> list[str]:
    """Return what the image runs, with *arguments* in place of its own."""
    text = (DEPLOY / "Containerfile").read_text()
    entry, own = (
        json.loads(re.findall(rf"(?m)^{word} (\[.*\])$", text)[0]) for word in ("ENTRYPOINT", "CMD")
    )
    return [INSTALLED, *entry[1:], *(arguments or own)]


def listed(name: str, key: str) -> list[str]:
    """Return the list of words at *key* of a YAML file, which has it once."""
    (found,) = re.findall(rf"(?m)^ *{key}: (\[.*\])$", (DEPLOY / name).read_text())
    return list(json.loads(found))


COMMANDS = {
    "systemd": unit_command(),
    "launchd": plist_command(),
    "compose": container_command(*listed("compose.yaml", "command")),
    "kubernetes": container_command(*listed("kubernetes/proxy.yaml", "args")),
}


@pytest.mark.skipif(os.name == "nt", reason="the files are for other systems")
@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_started(name: str, tmp_path: Path) -> None:
    program, *arguments = COMMANDS[name]
    assert program == INSTALLED
    port, token = free_port(), tmp_path / "token"
    token.write_text("a-token-of-the-test\n")
    token.chmod(0o600)
    changes = {
        "--port": str(port),
        "--host": "127.0.0.1",
        "--cache": str(tmp_path / "cache"),
        "--token-file": str(token),
    }
    for option, value in changes.items():
        if option in arguments:
            arguments[arguments.index(option) + 1] = value
        elif option == "--port":
            arguments += [option, value]
    environ = clean_environ({"VARIANTS_CACHE_DIR": str(tmp_path / "cache")})
    process = subprocess.Popen([PROGRAM, *arguments], env=environ, stderr=subprocess.PIPE)
    try:

        def answers() -> bool:
            try:
                url = f"http://127.0.0.1:{port}/health"
                return httpx.get(url, trust_env=False).json()["status"] == "ok"
            except httpx.HTTPError:
                return process.poll() is not None

        assert wait_until(answers)
    finally:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=20)
    assert process.returncode in (0, -signal.SIGTERM), err


def test_the_image_installs_what_there_is() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    (line,) = re.findall(r"(?m)^RUN pip install --no-cache-dir (\S+)", text)
    wanted = Requirement(line.strip('"'))
    assert wanted.name == "variants-proxy"
    assert not wanted.extras


def rendered(path: Path) -> Path:
    done = subprocess.run(
        ["kubectl", "kustomize", DEPLOY], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    path.write_text(done.stdout)
    return path


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["kubernetes", "compose"])
def test_schemas(name: str, environments: Environments, tmp_path: Path) -> None:
    """Containers cannot be built in most places of tests; their files are held to the schemas."""
    if name == "kubernetes":
        if not shutil.which("kubectl"):
            pytest.skip("there is no kubectl to render them with")
        where: tuple[str | Path, ...] = ("--strict", rendered(tmp_path / "all.yaml"))
        program = "kubernetes-validate"
    else:
        where = ("--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml")
        program = "check-jsonschema"
    command = [Path(tool(environments, program).python).with_name(program), *where]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
