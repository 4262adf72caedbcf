"""Released index servers, on loopback, over a folder of files."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from .environments import ROOT, Environments, clean_environ
from .index import JSON
from .tools import tool
from .waiting import wait_until

START = 60
"""Seconds that a server may take to start."""

_HTTP = """
daemon off;
{user}
pid {work}/pid;
error_log {work}/error.log;
events {{}}
http {{
  access_log {work}/access.log;
  client_body_temp_path {work}/temp;
  proxy_temp_path {work}/temp;
  fastcgi_temp_path {work}/temp;
  uwsgi_temp_path {work}/temp;
  scgi_temp_path {work}/temp;
  {more}
}}
"""
_FILES = """
  types {{
    text/html html;
    application/json json;
    {json} v1_json;
  }}
  map $http_accept $page {{
    default index.html;
    {negotiation}
  }}
  server {{
    listen 127.0.0.1:{port};
    root {root};
    index $page;
    {more}
  }}
"""


@contextmanager
def nginx(
    root: Path,
    work: Path,
    *,
    api: str = "json",
    listing: bool = False,
    credentials: str = "",
) -> Iterator[str]:
    """Serve the folder *root*; its address is the result.

    Args:
        root: has ``simple``: folders of files per project, or what ``variants index`` wrote.
        work: for the server's own files.
        api: ``json`` (PEP 691 when asked for) or ``html`` (PEP 503 only).
        listing: make pages of folders.
        credentials: ``user:password`` that every request must have.
    """
    work.mkdir(parents=True)
    more = "autoindex on;" if listing else ""
    if credentials:
        user, _, password = credentials.partition(":")
        (work / "passwords").write_text(f"{user}:{{PLAIN}}{password}\n")
        more += f'auth_basic "index"; auth_basic_user_file {work}/passwords;'
    port = free_port()
    pattern = JSON.replace(".", r"\.").replace("+", r"\+")
    negotiation = f'"~{pattern}" index.v1_json;' if api == "json" else ""
    files = _FILES.format(root=root, port=port, json=JSON, negotiation=negotiation, more=more)
    with _nginx(files, work, port):
        yield f"http://127.0.0.1:{port}/"


@contextmanager
def nginx_before(
    ports: Sequence[int],
    work: Path,
    *,
    certificate: tuple[Path, Path] | None = None,
    read_timeout: str = "20s",
) -> Iterator[str]:
    """Run nginx with the configuration that is shipped before index proxies; yield its address.

    Args:
        ports: of three proxies on loopback.
        work: for the server's own files.
        certificate: files with certificate and key; None without TLS.
        read_timeout: how long a proxy may take to answer.
    """
    work.mkdir(parents=True)
    port = free_port()
    addresses = {f"127.0.0.1:{4825 + n}": f"127.0.0.1:{ports[n]}" for n in range(3)}
    _adapted("nginx/upstream.conf", work / "upstream.part", addresses)
    timeout = {"proxy_read_timeout 20s": f"proxy_read_timeout {read_timeout}"}
    (work / "variants-proxy").mkdir()
    _adapted("nginx/location.inc", work / "variants-proxy" / "location.inc", timeout)
    if certificate is None:
        plain = {"listen 8080": f"listen 127.0.0.1:{port}"}
        _adapted("kubernetes/server.conf", work / "server.part", plain)
    else:
        secure = {
            "listen 443": f"listen 127.0.0.1:{port}",
            "server_name variants.example": "server_name localhost",
            "/etc/nginx/tls/tls.crt": str(certificate[0]),
            "/etc/nginx/tls/tls.key": str(certificate[1]),
        }
        _adapted("nginx/server.conf", work / "server.part", secure)
    parts = f"keepalive_requests 1000000;\n  include {work}/*.part;"
    with _nginx(parts, work, port):
        yield f"http{'s' if certificate else ''}://127.0.0.1:{port}"


@contextmanager
def _nginx(more: str, work: Path, port: int) -> Iterator[None]:
    """Run nginx with the lines *more* in its part about HTTP."""
    config = work / "nginx.conf"
    config.write_text(_HTTP.format(user=_user(), work=work, more=more))
    # Where its package puts it is not on everybody's PATH.
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    with running([program, "-p", str(work), "-c", str(config)], work, port):
        yield


def _adapted(name: str, path: Path, changes: Mapping[str, str]) -> None:
    """Write a file that is shipped to *path*, with other addresses and places."""
    text = (ROOT / "packages/variants-proxy/deploy" / name).read_text("utf-8")
    for old, new in changes.items():
        if old not in text:
            raise ValueError(f"{name} has no {old!r}: change it here as well")
        text = text.replace(old, new)
    path.write_text(text)


def _user() -> str:
    """Return the line that lets root's server read what only root may read."""
    if sys.platform == "win32" or os.geteuid():
        return ""
    import grp

    return f"user root {grp.getgrgid(os.getegid()).gr_name};"


def has_nginx() -> bool:
    """Return whether there is an nginx."""
    return shutil.which("nginx") is not None or Path("/usr/sbin/nginx").exists()


@contextmanager
def pypiserver(
    environments: Environments, files: Path, work: Path, *, credentials: str
) -> Iterator[str]:
    """Serve the files of a folder with pypiserver; its address is the result."""
    work.mkdir(parents=True)
    port = free_port()
    user, _, password = credentials.partition(":")
    digest = base64.b64encode(hashlib.sha1(password.encode()).digest()).decode()
    (work / "passwords").write_text(f"{user}:{{SHA}}{digest}\n")
    access = ["-P", str(work / "passwords"), "-a", "download,list,update"]
    python = tool(environments, "pypiserver").python
    command = [python, "-m", "pypiserver", "run", "-i", "127.0.0.1", "-p", str(port), *access]
    with running([*command, str(files)], work, port):
        yield f"http://127.0.0.1:{port}/"


@contextmanager
def devpi(environments: Environments, work: Path, *, mirrored: str) -> Iterator[str]:
    """Run devpi with an index ``root/main``; its address is the result.

    Args:
        environments: where it is installed.
        work: for the server's own files.
        mirrored: root of the simple API of another server, which its index ``root/mirror`` mirrors.
    """
    work.mkdir(parents=True)
    scripts = Path(tool(environments, "devpi").python).parent
    password = "secret"
    folder = ["--serverdir", str(work / "data")]
    subprocess.run(
        [scripts / "devpi-init", *folder, "--no-root-pypi", "--root-passwd", password],
        env=clean_environ(), capture_output=True, check=True,
    )  # fmt: skip
    port = free_port()
    command = [str(scripts / "devpi-server"), *folder, "--host", "127.0.0.1", "--port", str(port)]
    url = f"http://127.0.0.1:{port}"
    with running(command, work, port), httpx.Client(timeout=60) as client:
        answer = client.post(f"{url}/+login", json={"user": "root", "password": password})
        token = answer.raise_for_status().json()["result"]["password"]
        secret = base64.b64encode(f"root:{token}".encode()).decode()
        client.headers.update({"X-Devpi-Auth": secret, "Accept": "application/json"})
        index: dict[str, object] = {"type": "stage", "bases": []}
        client.put(f"{url}/root/main", json=index).raise_for_status()
        index = {"type": "mirror", "mirror_url": mirrored}
        client.put(f"{url}/root/mirror", json=index).raise_for_status()
        yield f"{url}/"


def free_port() -> int:
    """Return a loopback port without a listener."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def running(command: Sequence[str], work: Path, port: int) -> Iterator[None]:
    """Run the server *command* until the context ends; it listens to *port* when it begins."""
    with (work / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=work, env=clean_environ(), stdout=log, stderr=subprocess.STDOUT
        )
        try:
            wait_until(lambda: process.poll() is not None or _listens(port), START)
            if not _listens(port):
                text = (work / "log").read_text(errors="replace")
                raise RuntimeError(f"the server does not start:\n{text}")
            yield
        finally:
            process.terminate()
            process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def make_index(folder: Path) -> None:
    """Have ``variants index`` write the pages of the files in *folder*."""
    variants = Path(sys.executable).with_name("variants")
    subprocess.run([variants, "index", str(folder)], check=True, capture_output=True)
