"""Unmodified uvs at in-place pages: what they lock and install, and names in the oldest one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from in_place_client import KEY
from machines import NVIDIA
from upstream_server import document, json, wheel

from support.uvs import UVS, downloaded_uv
from variants_proxy import Machine, encode, host_target
from variants_proxy.clients import ClientSettings
from variants_proxy.index_urls import index_url

HERE = encode(Machine(NVIDIA, target=host_target()))
LABELS = ("null", "cu12.8", "x86_64_v3", "..", ".", "here", "_x", "a.b_c.", "0", "128")


@pytest.fixture(params=[UVS[-1]])
def uv(request, tmp_path, pytestconfig):
    program = downloaded_uv(request.param, Path(pytestconfig.cache.mkdir("wheelhouse")))

    def run(*args, cwd=None, fails=False):
        environ = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}
        environ |= {
            "UV_NO_CONFIG": "1",
            "UV_PYTHON": sys.executable,
            "UV_PYTHON_DOWNLOADS": "never",
        }
        environ["UV_CACHE_DIR"] = str(tmp_path / "uv-cache")
        environ.pop("VIRTUAL_ENV", None)
        done = subprocess.run(
            [str(program), *args], env=environ, cwd=cwd or tmp_path, capture_output=True, text=True
        )
        assert (done.returncode != 0) is fails, done.stderr
        return done.stdout + done.stderr

    return run


def index_of(proxy, key=HERE, **settings):
    """Return the URL of an index of in-place pages."""
    name = proxy.service.clients.register(ClientSettings(key, **settings))
    return proxy.url + index_url(name, "main")


def project(folder, *dependencies):
    folder.mkdir()
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "demo"\nversion = "1"\nrequires-python = ">=3.10"\n'
        f"dependencies = {json.dumps(dependencies)}\n"
    )
    return folder


def add_variant(upstream, name, label, build=""):
    """Add the only variant of a project, which fits this machine."""
    found = document("12.8")
    found["variants"] = {label: {} if label == "null" else found["variants"]["cu128"]}
    filename = f"{name}-1.0-{build and build + '-'}py3-none-any-{label}.whl"
    data = wheel(f"{name}-1.0-py3-none-any-{label}.whl", variants=found)
    upstream.add(name, filename, data)
    upstream.add(name, f"{name}-1.0-variants.json", json.dumps(found).encode())


@pytest.mark.parametrize("uv", [UVS[0], UVS[-1]], indirect=True)
def test_every_label(upstream, start, uv, tmp_path):
    """uv reads every name that a label makes, installs, locks, and installs from the lock."""
    names = [f"app{number}" for number in range(2 * len(LABELS))]
    cases = [(label, build) for label in LABELS for build in ("", "7_b")]
    for name, (label, build) in zip(names, cases, strict=True):
        add_variant(upstream, name, label, build=build)
    index = index_of(start(upstream))
    folder = project(tmp_path / "project", *names)
    uv("lock", "--index-url", index, cwd=folder)
    lock = (folder / "uv.lock").read_text()
    assert lock.count("/.variant/") == len(names)
    assert lock.count('hash = "sha256:') == len(names)
    uv("sync", "--locked", "--index-url", index, cwd=folder)
    environment = folder / ".venv"
    done = uv("pip", "freeze", "--python", str(environment))
    assert {f"{name}==1.0" for name in names} <= set(done.split())
    uv("pip", "install", "--reinstall", "--python", str(environment), "--index-url", index, *names)


@pytest.mark.parametrize("html", [False, True])
def test_what_has_no_variants_is_locked_as_without(upstream, start, uv, tmp_path, html):
    upstream.base, upstream.html, upstream.core_metadata = upstream.url, html, not html
    for version, day in (("1.0", "01"), ("2.0", "02"), ("3.0", "03")):
        for name in (f"plain-{version}-py3-none-any.whl", f"plain-{version}.tar.gz"):
            upstream.add("plain", name, wheel(name) if name.endswith(".whl") else b"source")
            upstream.attributes[name] = {
                "upload-time": f"2026-01-{day}T00:00:00.123456Z",
                "requires-python": ">=3.8",
                "yanked": "broken" if version == "3.0" else False,
            }
    locks = []
    for name, index in (("with", index_of(start(upstream))), ("without", upstream.simple)):
        folder = project(tmp_path / name, "plain")
        uv("lock", "--index-url", index, cwd=folder)
        locks.append((folder / "uv.lock").read_text().replace(index.rstrip("/"), "INDEX"))
    assert locks[0] == locks[1]
    assert ("upload-time" in locks[0]) or html or "revision" not in locks[0]


def test_exclude_newer_yanked_and_requires_python(upstream, start, uv, tmp_path):
    for version, attributes in (
        ("1.0", {"upload-time": "2026-01-01T00:00:00Z"}),
        ("1.1", {"upload-time": "2026-02-01T00:00:00Z"}),
        ("1.2", {"upload-time": "2026-01-02T00:00:00Z", "yanked": "broken"}),
        ("1.3", {"upload-time": "2026-01-03T00:00:00Z", "requires-python": ">=3.99"}),
    ):
        name = f"app-{version}-py3-none-any-cu128.whl"
        upstream.add_release(version, labels=["cu128"])
        upstream.attributes[name] = attributes
    index = index_of(start(upstream))
    uv("venv", "--quiet", "venv")
    at = ("--python", "venv", "--index-url", index, "--dry-run")
    assert "app==1.1" in uv("pip", "install", *at, "app")
    assert "app==1.0" in uv("pip", "install", *at, "--exclude-newer", "2026-01-15T00:00:00Z", "app")
    assert "app==1.2" in uv("pip", "install", *at, "app==1.2")
    uv("pip", "install", *at, "app==1.3", fails=True)


def test_a_lock_stays_on_another_machine(upstream, start, uv, tmp_path):
    upstream.add_release("1.0", "dep; 'nvidia' in variant_namespaces")
    upstream.add("dep", "dep-1.0-py3-none-any.whl", wheel("dep-1.0-py3-none-any.whl"))
    upstream.base = upstream.url
    proxy = start(upstream)
    index = index_of(proxy)
    folder = project(tmp_path / "project", "app")
    uv("lock", "--index-url", index, cwd=folder)
    lock = (folder / "uv.lock").read_text()
    url = next(line.split('"')[1] for line in lock.splitlines() if "/.variant/" in line)
    bare = encode(Machine(target=host_target()))
    there = index_of(proxy, bare, locked={"app": {"1.0": (url,)}})
    (folder / "uv.lock").write_text(lock.replace(index, there))
    uv("lock", "--upgrade", "--index-url", there, cwd=folder)
    assert (folder / "uv.lock").read_text().replace(there, index) == lock
    uv("sync", "--locked", "--index-url", there, cwd=folder)
    shown = uv("run", "--no-sync", "python", "-c", "import app, dep; print(app.LABEL)", cwd=folder)
    assert "cu128" in shown
    assert KEY != bare


def test_find_links(upstream, start, uv, tmp_path):
    """A flat page: variants are beside it."""
    from variants_proxy import Upstream

    upstream.add_release("1.0", "dep; 'nvidia' in variant_namespaces")
    upstream.add("app", "dep-1.0-py3-none-any.whl", wheel("dep-1.0-py3-none-any.whl"))
    upstream.base = upstream.url
    proxy = start(Upstream("main", f"{upstream.simple}app/", "find-links"))
    links = index_of(proxy).replace("/simple/", "/links/")
    folder = project(tmp_path / "project", "app")
    place = ("--no-index", "--find-links", links)
    uv("lock", *place, cwd=folder)
    lock = (folder / "uv.lock").read_text()
    assert f"{links}.variant/cu128/app-1.0-0_cu128-py3-none-any.whl" in lock
    assert f"{upstream.url}/files/app/dep-1.0-py3-none-any.whl" in lock
    uv("sync", "--locked", *place, cwd=folder)
