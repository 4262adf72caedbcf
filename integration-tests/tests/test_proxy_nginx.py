"""Index proxies behind the real nginx, with the configuration that is shipped."""

import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from pep_variants._model.platform import Platform, Support
from support.certificates import certified
from support.environments import ROOT, clean_environ, uv_command
from support.index import JSON, Answer, served
from support.projects import app_index
from support.servers import free_port, has_nginx, nginx_before
from support.waiting import wait_until
from variants_proxy._index_urls import keyed_url
from variants_proxy.urls import Machine, encode

pytestmark = [
    pytest.mark.skipif(not has_nginx(), reason="there is no nginx"),
    pytest.mark.skipif(sys.platform == "win32", reason="processes are stopped by signals"),
]

NVIDIA = Platform({"nvidia": Support({"cuda_version_lower_bound": ("12.8", "12.6")})})
GPU = encode(Machine(NVIDIA, target="linux-x86_64"))
CPU = encode(Machine(target="linux-x86_64"))
LABELS = {GPU: "cu128", CPU: "null"}
SERVE = """
import sys
from pathlib import Path
from variants_proxy.settings import Settings, Upstream
from variants_proxy._server.listening import listen
from variants_proxy._server.server import make_server
settings = Settings((Upstream("main", sys.argv[1]),), Path(sys.argv[2]), fresh_seconds=0.0)
make_server(settings).run_until_signal(listen("127.0.0.1", int(sys.argv[3])))
"""


class Fleet:
    """Three proxies with one cache, for an index that is open to all."""

    def __init__(self, index, folder):
        self.arguments = [index.url, str(folder)]
        self.index = index
        self.ports = [free_port() for _ in range(3)]
        self.processes = {}

    def start(self, number):
        command = [sys.executable, "-c", SERVE, *self.arguments, str(self.ports[number])]
        self.processes[number] = subprocess.Popen(
            command, env=clean_environ(), stderr=subprocess.DEVNULL
        )

    def answers(self, number):
        url = f"http://127.0.0.1:{self.ports[number]}"
        try:  # the first answer takes longer: what it needs is imported
            return all(get(url, "/simple/app/", key).is_success for key in LABELS)
        except httpx.HTTPError:
            return False

    def kill(self, number):
        self.processes[number].kill()
        self.processes[number].wait()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    with served(app_index(metadata_file=True)) as index:
        found = Fleet(index, tmp_path_factory.mktemp("proxies"))
        try:
            for number in range(3):
                found.start(number)
            assert all(wait_until(lambda each=number: found.answers(each)) for number in range(3))
            yield found
        finally:
            for number in found.processes:
                found.kill(number)


@pytest.fixture
def front(fleet, tmp_path):
    """Nginx without TLS before them, with nothing kept yet."""
    with nginx_before(fleet.ports, tmp_path / "nginx") as url:
        yield url


def get(url, path, key="", **headers):
    auth = (key, "v") if key else None
    return httpx.get(
        url + path, headers={"Accept": JSON, **headers}, auth=auth, trust_env=False, timeout=20
    )


def test_each_machine_has_its_own_from_one_url(front):
    bodies = {}
    for key in LABELS:
        answer = get(front, "/simple/app/", key)
        assert answer.headers["cache-control"] == "private, no-cache"
        assert "Authorization" in answer.headers["vary"]
        assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
        bodies[key] = answer.text
    assert "/cu128/" in bodies[GPU]
    assert "/cu128/" not in bodies[CPU]
    # Behind an ingress with TLS the page for people has its scheme.
    query = f"/?project=app&key={GPU}"
    assert f"{front}/" in get(front, query).text.replace(f"{GPU}:v@", "")
    assert f"{front.replace('http:', 'https:')}/" in get(
        front, query, **{"X-Forwarded-Proto": "https"}
    ).text.replace(f"{GPU}:v@", "")
    assert get(front, "/simple/app/").status_code == 401
    assert get(front, "/simple/app/", "2~nonsense").status_code == 401


def test_tls(fleet, tmp_path):
    certificate = certified(tmp_path / "tls")
    pair = (tmp_path / "tls" / "1.pem", tmp_path / "tls" / "key.pem")
    with nginx_before(fleet.ports, tmp_path / "nginx", certificate=pair) as url:
        assert url.startswith("https://")
        check_installs(url, SSL_CERT_FILE=str(certificate.authority))
        trusted = ssl.create_default_context(cafile=str(certificate.authority))
        query = {"project": "app", "key": GPU}
        page = httpx.get(f"{url}/", params=query, verify=trusted, trust_env=False)
        assert f"{url.replace('://', f'://{GPU}:v@')}/simple/" in page.text
        assert "cache-control" in page.headers


def check_installs(url, **environ):
    """Install ``app`` with uv, without cache and retries, for each machine."""
    for key, label in LABELS.items():
        with tempfile.TemporaryDirectory() as folder:
            options = ["--quiet", "--no-config", "--no-cache", "--python", sys.executable]
            command = [*uv_command(), "pip", "install", *options, "--target", folder]
            subprocess.run(
                [*command, "--default-index", keyed_url(url, key), "app"],
                env=clean_environ({"UV_HTTP_RETRIES": "0", **environ}), check=True,
            )  # fmt: skip
            assert (Path(folder) / "app" / "__init__.py").read_text() == f"LABEL = {label!r}\n"


def test_nothing_is_lost_when_things_fail(fleet, tmp_path):
    """One proxy is killed amid requests, one does not answer, and the index fails."""
    with nginx_before(fleet.ports, tmp_path / "nginx", read_timeout="1s") as url:
        check_installs(url)
        with ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(get, url, "/simple/app/", key) for key in [GPU, CPU] * 20]
            fleet.kill(0)
            assert all(each.result().is_success for each in asked)
        fleet.processes[1].send_signal(signal.SIGSTOP)
        check_installs(url)
        fleet.index.faults[""] = lambda: Answer(500, b"the index is down")
        check_installs(url)
    del fleet.index.faults[""]
    fleet.processes[1].send_signal(signal.SIGCONT)
    fleet.start(0)


@pytest.mark.parametrize("running", [1, 2])
def test_an_index_that_hangs(running, fleet, tmp_path):
    """Pages that are known cost two seconds at most, and no request fails."""
    ports = [fleet.ports[number % running] for number in range(3)]
    assert all(wait_until(lambda each=each: fleet.answers(each)) for each in range(running))
    with nginx_before(ports, tmp_path / "nginx") as url:
        check_installs(url)
        hanging = threading.Event()

        def late():
            hanging.wait(60)
            return Answer(500, b"the index is down")

        def timed(key):
            begin = time.monotonic()
            return get(url, "/simple/app/", key).status_code, time.monotonic() - begin

        fleet.index.faults[""] = late
        try:
            with ThreadPoolExecutor(8) as pool:
                answers = list(pool.map(timed, [GPU, CPU] * 20))
        finally:
            hanging.set()
            del fleet.index.faults[""]
        assert [status for status, _ in answers] == [200] * 40


def test_configuration_for_kubernetes(tmp_path):
    deploy = ROOT / "packages/variants-proxy/deploy"
    (tmp_path / "variants-proxy").mkdir()
    shutil.copy(deploy / "nginx/location.inc", tmp_path / "variants-proxy")
    parts = [deploy / "kubernetes/server.conf", deploy / "kubernetes/upstream.conf"]
    text = "\n".join(path.read_text() for path in parts)
    text = text.replace("server variants-proxy:4825", "server 127.0.0.1:4825")
    config = tmp_path / "nginx.conf"
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = " ".join(f"{kind}_temp_path {tmp_path}/temp;" for kind in kinds)
    http = f"access_log off; {folders} {text}"
    config.write_text(f"pid {tmp_path}/pid; events {{}} http {{ {http} }}")
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    command = [program, "-t", "-q", "-p", str(tmp_path), "-c", str(config)]
    done = subprocess.run(
        [*command, "-e", str(tmp_path / "log")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
