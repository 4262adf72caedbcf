"""Index proxies behind the real nginx, with the configuration that is shipped."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator

import httpx
import pytest

from pep_variants.model.platform import Platform, Support
from support.certificates import certified
from support.environments import ROOT
from support.index import JSON, Answer, Index, served
from support.projects import app_index
from support.proxy_fleet import install, installing, replicas
from support.servers import has_nginx, nginx_before
from support.waiting import wait_until
from variants_proxy import Machine, encode
from variants_proxy.index_urls import keyed_url

pytestmark = [
    pytest.mark.skipif(not has_nginx(), reason="there is no nginx"),
    pytest.mark.skipif(sys.platform == "win32", reason="processes are stopped by signals"),
]

NVIDIA = Platform({"nvidia": Support({"cuda_version_lower_bound": ("12.8", "12.6")})})
GPU = encode(Machine(NVIDIA, target="linux-x86_64"))
CPU = encode(Machine(target="linux-x86_64"))
LABELS = {GPU: "cu128", CPU: "null"}


@pytest.fixture
def index(serve) -> Index:
    return serve(app_index(metadata_file=True))


@pytest.fixture(scope="module")
def proxies(tmp_path_factory) -> Iterator[list[int]]:
    """Ports of three proxies."""
    with (
        served(app_index(metadata_file=True)) as index,
        replicas(index.url, tmp_path_factory.mktemp("proxies")) as fleet,
    ):
        yield [each.port for each in fleet]


@pytest.fixture
def front(proxies, tmp_path) -> Iterator[str]:
    """Nginx without TLS before them, with nothing kept yet."""
    with nginx_before(proxies, tmp_path / "nginx") as url:
        yield url


def get(url: str, path: str, key: str = "", **headers: str) -> httpx.Response:
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
    assert get(front, "/simple/app/").status_code == 401
    assert get(front, "/simple/app/", "2~nonsense").status_code == 401


def test_tls(proxies, tmp_path):
    certificate = certified(tmp_path / "tls")
    pair = (tmp_path / "tls" / "1.pem", tmp_path / "tls" / "key.pem")
    with nginx_before(proxies, tmp_path / "nginx", certificate=pair) as url:
        assert url.startswith("https://")
        environ = {"SSL_CERT_FILE": str(certificate.authority)}
        for key, label in LABELS.items():
            assert install(keyed_url(url, key), label, environ) == ""
        trusted = ssl.create_default_context(cafile=str(certificate.authority))
        query = {"project": "app", "key": GPU}
        page = httpx.get(f"{url}/", params=query, verify=trusted, trust_env=False)
        assert f"{url.replace('://', f'://{GPU}:v@')}/simple/" in page.text
        assert "cache-control" in page.headers


def test_nothing_is_lost_when_things_fail(index, tmp_path):
    """One proxy is killed, one is slow, and the index fails for longer than pages are fresh."""
    with (
        replicas(index.url, tmp_path, fresh_seconds=1) as fleet,
        nginx_before([each.port for each in fleet], tmp_path / "nginx", read_timeout="3s") as url,
    ):
        for each in fleet:  # the first answer takes longer: what it needs is imported
            for key in LABELS:
                assert get(f"http://127.0.0.1:{each.port}", "/simple/app/", key).is_success
        for key, label in LABELS.items():
            assert install(keyed_url(url, key), label, {}) == ""
        with installing(url, LABELS) as installs:
            assert wait_until(lambda: installs.right + len(installs.wrong) >= 5)
            fleet[0].kill()
            with fleet[1].slow(stopped=3.5, running=0.3):
                index.page_faults[""] = lambda: Answer(500, b"the index is down")
                time.sleep(4)
                del index.page_faults[""]
            fleet[0].start()
            fleet[0].wait()
        assert installs.wrong == []
        assert installs.right > 10


def test_configuration_for_kubernetes(tmp_path):
    deploy = ROOT / "packages/variants-proxy/deploy"
    (tmp_path / "variants-proxy").mkdir()
    shutil.copy(deploy / "nginx/location.inc", tmp_path / "variants-proxy")
    parts = [deploy / "kubernetes/server.conf", deploy / "kubernetes/upstream.conf"]
    text = "\n".join(path.read_text() for path in parts)
    text = text.replace("server variants-proxy:4825", "server 127.0.0.1:4825")
    config = tmp_path / "nginx.conf"
    config.write_text(f"pid {tmp_path}/pid; events {{}} http {{ {text} }}")
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    command = [program, "-t", "-q", "-p", str(tmp_path), "-c", str(config)]
    done = subprocess.run(
        [*command, "-e", str(tmp_path / "log")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
