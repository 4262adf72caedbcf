"""Index proxies behind the real nginx, with the configuration that is shipped: TLS and a cache."""

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
from support.proxy_fleet import cache_statuses, install, installing, replicas
from support.servers import has_nginx, nginx_before
from support.waiting import wait_until
from variants_proxy import Machine, encode, index_url
from variants_proxy.urls import keyed_url

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


def status(answer: httpx.Response) -> str:
    return answer.headers["x-cache-status"]


def test_each_machine_has_its_own_from_one_url(front):
    bodies = {}
    for key in LABELS:
        first, second = (get(front, "/simple/app/", key) for _ in range(2))
        assert (status(first), status(second)) == ("MISS", "HIT")
        assert first.content == second.content
        assert second.headers["cache-control"] == "private, no-cache"
        assert "Authorization" in second.headers["vary"]
        assert "x-accel-expires" not in second.headers
        bodies[key] = second.text
    assert "/cu128/" in bodies[GPU]
    assert "/cu128/" not in bodies[CPU]
    assert get(front, "/simple/app/").status_code == 401
    assert get(front, "/simple/app/", "2~nonsense").status_code == 401


def test_what_a_response_depends_on(front):
    """uv has its own METADATA, old clients have HTML; other differences share what is kept."""
    path = f"{index_url(GPU)}app/"
    json = "application/vnd.pypi.simple.v1+json"
    asks = [
        ({"Accept": json}, "MISS"),
        ({"Accept": f"text/html;q=0.1, {json}", "User-Agent": "pip/26.3"}, "HIT"),
        ({"Accept": json, "Accept-Encoding": "identity"}, "HIT"),
        ({"Accept": json, "User-Agent": "uv/0.13.9"}, "MISS"),
        ({"Accept": "text/html"}, "MISS"),
        ({"Accept": "*/*", "User-Agent": "old"}, "HIT"),
        ({"Accept": json, "Cache-Control": "no-cache"}, "BYPASS"),
    ]
    for headers, expected in asks:
        answer = get(front, path, **headers)
        assert status(answer) == expected, headers
        assert ("html" in answer.headers["content-type"]) == (json not in headers["Accept"])
        assert "app-1.0-py3-none-any.whl" in answer.text
        assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"


def test_what_does_not_exist_is_kept_for_a_short_time(front):
    path = f"{index_url(GPU)}later/"
    first, second = (get(front, path) for _ in range(2))
    assert (first.status_code, second.status_code) == (404, 404)
    assert (status(first), status(second)) == ("MISS", "HIT")
    keyed = [get(front, "/simple/later/", GPU) for _ in range(2)]
    assert [status(each) for each in keyed] == ["MISS", "HIT"]


def test_with_a_token_only_clients_with_it_get_what_is_kept(index, tmp_path):
    with (
        replicas(index.url, tmp_path, 1, token="s3cret") as (replica,),
        nginx_before([replica.port] * 3, tmp_path / "nginx") as url,
    ):
        page = f"{index_url(GPU)}app/"
        for path, user in (("/simple/app/", GPU), (page, "any")):
            answers = [
                httpx.get(url + path, auth=(user, "s3cret"), trust_env=False) for _ in range(2)
            ]
            assert [answer.status_code for answer in answers] == [200, 200]
            assert [status(answer) for answer in answers] == ["MISS", "HIT"]
            assert answers[1].headers["cache-control"].startswith("private")
            for auth in (None, (user, "wrong"), ("other", "wrong")):
                refused = httpx.get(url + path, auth=auth, trust_env=False)
                assert refused.status_code == 401
                assert status(refused) != "HIT"
        other = httpx.get(f"{url}/simple/app/", auth=(CPU, "s3cret"), trust_env=False)
        assert status(other) == "MISS"
        assert "cu128" not in other.text


def test_metrics_stay_inside(front):
    assert get(front, "/metrics").status_code == 403
    assert get(front, "/health").status_code == 200


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
        assert status(page) == "MISS"
        again = httpx.get(f"{url}/", params=query, verify=trusted, trust_env=False)
        assert status(again) == "MISS"  # no-store


def test_nothing_is_lost_when_things_fail(index, tmp_path):
    """One proxy is killed, one is slow, and the index fails for longer than pages are fresh."""
    with (
        replicas(index.url, tmp_path, fresh_seconds=1) as fleet,
        nginx_before([each.port for each in fleet], tmp_path / "nginx", read_timeout="1s") as url,
    ):
        for key, label in LABELS.items():
            assert install(keyed_url(url, key), label, {}) == ""
        with installing(url, LABELS, {}) as installs:
            assert wait_until(lambda: installs.right + len(installs.wrong) >= 5)
            fleet[0].kill()
            with fleet[1].slow(stopped=1.5, running=0.3):
                index.page_faults[""] = lambda: Answer(500, b"the index is down")
                time.sleep(4)
                del index.page_faults[""]
            fleet[0].start()
            fleet[0].wait()
        assert installs.wrong == []
        assert installs.right > 10
        seen = cache_statuses(tmp_path / "nginx" / "access.log")
        assert seen["HIT"] > seen["MISS"]


def test_configuration_for_kubernetes(tmp_path):
    deploy = ROOT / "packages/variants-proxy/deploy"
    (tmp_path / "variants-proxy").mkdir()
    shutil.copy(deploy / "nginx/location.inc", tmp_path / "variants-proxy")
    parts = [deploy / "nginx/cache.conf", deploy / "kubernetes/server.conf"]
    parts.append(deploy / "kubernetes/upstream.conf")
    text = "\n".join(path.read_text() for path in parts)
    text = text.replace("server variants-proxy:4825", "server 127.0.0.1:4825")
    text = text.replace("/var/cache/nginx", str(tmp_path))
    config = tmp_path / "nginx.conf"
    config.write_text(f"pid {tmp_path}/pid; events {{}} http {{ {text} }}")
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    command = [program, "-t", "-q", "-p", str(tmp_path), "-c", str(config)]
    done = subprocess.run(
        [*command, "-e", str(tmp_path / "log")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
