"""The page for people: its form, its lines, its reasons."""

import base64
import hashlib
import re
from dataclasses import replace
from html import unescape

import httpx
import pytest
from markupsafe import escape
from publishers import ARM, LINUX, TORCH, WINDOWS, publish
from test_cli import serving
from upstream_server import wheel
from worlds import KEY

from pep_variants.machines import load_machine
from support.index import Answer
from variants_proxy._choice.offers import version_in
from variants_proxy._index_urls import keyed_url
from variants_proxy._server.landing import INSTALLERS, POLICY, Address
from variants_proxy._server.questions import GPUS, named_gpus, read_question
from variants_proxy.settings import Upstream
from variants_proxy.urls import decode, encode

TAGS = ("py3-none-manylinux_2_28_x86_64", "py3-none-win_amd64", "py3-none-manylinux_2_28_aarch64")


@pytest.fixture
def proxy(upstream, start):
    upstream.add_release("1.0")
    upstream.add_release("1.1")
    upstream.add_release("2.0", tags=TAGS, project="native")
    upstream.add("plain", "plain-1.0-py3-none-any.whl", wheel("plain-1.0-py3-none-any.whl"))
    return start(upstream)


def asked(proxy, project="app", **query):
    return proxy.get("/", params={"project": project, **query})


def test_without_a_question(start):
    proxy = start(Upstream("a", "http://me:secret@127.0.0.1:1/<b>/"))
    answer = proxy.get("/")
    assert answer.status_code == 200
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "h100-zen4 — NVIDIA H100 (Hopper)" in answer.text
    assert "&lt;b&gt;" in answer.text
    assert "secret" not in answer.text
    assert "<script" not in answer.text
    assert not re.findall(r"""(?:src|href|url\()[=("']*(?:https?:)?//""", answer.text)
    (style,) = re.findall(r"<style>(.*?)</style>", answer.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in answer.headers["content-security-policy"]
    for path in ("/health", "/nothing"):  # no other response has its policy
        policy = proxy.get(path).headers.get_list("content-security-policy")
        assert policy == ["sandbox; default-src 'none'"]
    answer = asked(proxy, key=KEY)
    assert answer.status_code == 502
    assert 'role="alert"' in answer.text
    assert "secret" not in answer.text


def test_lines(proxy):
    for installer, (_, lines_of) in INSTALLERS.items():
        if installer == "pixi":  # with which the proxy was never tried
            assert "was ever tried" in asked(proxy, installer=installer, platform="h100-zen4").text
            continue
        answer = asked(proxy, installer=installer, platform="h100-zen4")
        assert answer.status_code == 200
        for lines in lines_of(Address(proxy.url, "h100-zen4", "app")):
            assert f"<pre>{escape(lines.text)}</pre>" in answer.text
        credentials = {"uv": "_PASSWORD=v\n", "pdm": "_PASSWORD=v\n", "poetry": "h100-zen4 v\n"}
        assert credentials.get(installer, "h100-zen4:v@") in answer.text
        assert f'<option value="{installer}" selected>' in answer.text


def test_the_machine_in_place_of_a_platform(proxy):
    in_path = f"{proxy.url}/p/{KEY}/simple/"
    for text in (KEY, in_path, keyed_url(proxy.url, KEY, "secret")):
        answer = asked(proxy, key=text)
        assert answer.status_code == 200
        lines, _, rest = answer.text.partition('id="choice"')
        assert f"pip install --index-url {keyed_url(proxy.url, KEY)} app" in lines
        assert "Variant cu128" in rest


def test_a_token_is_not_shown(upstream, tmp_path):
    arguments = ("--index", f"own={upstream.url}")
    with serving(tmp_path, *arguments, VARIANTS_PROXY_TOKEN="s3cret-of-16-or-more") as (url, _):
        query = f"{url}/?project=app&platform=t4-cascadelake"
        assert httpx.get(query, trust_env=False).status_code == 401
        upstream.add_release("1.0")
        answer = httpx.get(query, auth=("me", "s3cret-of-16-or-more"), trust_env=False)
        assert answer.status_code == 200
        assert "s3cret-of-16-or-more" not in answer.text
        assert "t4-cascadelake:TOKEN@" in answer.text


def test_reasons_are_those_of_the_decision_report(proxy):
    text = asked(proxy, platform="h100-zen4").text
    assert "What this machine gets: app 1.1" in text
    tree = proxy.report(key="h100-zen4")["versions"][0]
    assert f"<strong>Variant cu128</strong>: {tree['why']}" in text
    for row in tree["variants"]:
        assert f"<td>{row['label']}<td>{row['verdict']}<td>{row['why']}</tr>" in text
    assert "1.0: Variant cu128" in text
    assert "<strong>Variant null</strong>" in asked(proxy, platform="cpu-zen4").text
    assert "This version has no variants" in asked(proxy, "plain", platform="cpu-zen4").text


def test_a_newer_version_without_variants(upstream, start):
    """It is in the report for its older build alone."""
    upstream.add_release("1.0")
    upstream.add("app", "app-3.0-py3-none-any.whl", wheel("app-3.0-py3-none-any.whl"))
    proxy = start(upstream)
    assert proxy.report(key="h100-zen4")["versions"][0]["version"] == "3.0"
    text = asked(proxy, platform="h100-zen4").text
    assert "app 3.0" in text
    assert "This version has no variants" in text
    assert "1.0: Variant cu128" in text


@pytest.mark.parametrize(
    ("platform", "system", "words", "others"),
    [
        ("h100-zen4", "win", "<code>native-2.0-py3-none-win_amd64.whl</code>: cu128", "manylinux"),
        ("h100-zen4", "macosx", "no wheel for this operating system", "manylinux"),
        ("h100-zen4", "", "win_amd64", "nothing else"),
        ("gh200-grace", "linux", "_2_28_aarch64.whl</code>: cu130", "_2_28_x86_64"),
    ],
)
def test_files_of_the_system(proxy, platform, system, words, others):
    text = asked(proxy, "native", platform=platform, system=system).text
    assert words in text
    assert others not in text


def test_a_publishers_build(upstream, start, tmp_path):
    for version in ("2.8.0", "2.9.0"):
        publish(upstream, "cu128", f"{version}+cu128", (LINUX,))
    (tmp_path / "torch.toml").write_text(TORCH.replace("URL", upstream.root))
    plain = f"torch-2.9.0-cp312-cp312-{LINUX}.whl"
    upstream.add("torch", plain, wheel(plain))
    upstream.faults["/whl/cu126/torch/"] = Answer(500)
    options = {"catalog": str(tmp_path / "torch.toml")}
    refused = asked(start(upstream, **options), "torch", platform="h100-zen4", system="linux")
    assert refused.status_code == 503
    assert "choosing torch without its build cuda12.6" in refused.text
    proxy = start(upstream, **options, allow_missing_sources=True)
    text = asked(proxy, "torch", platform="h100-zen4", system="linux").text
    for words in (
        "What this machine gets: torch 2.9.0<", "<strong>Variant cuda12.8</strong>",
        f"<code>torch-2.9.0+cu128-cp312-cp312-{LINUX}.whl</code>: cuda12.8",
        "https://example.org/start", "choosing torch without its build cuda12.6",
        "2.8.0: Variant cuda12.8",
    ):  # fmt: skip
        assert words in text


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({}, "choose a GPU or a platform, or paste"),
        ({"platform": "h100"}, "did you mean h100-zen"),
        ({"platform": "nothing-like-it"}, "and 64 more"),
        ({"key": "2~nonsense"}, "is not a valid platform key"),
        ({"key": "<script>alert(1)</script>"}, "&lt;script&gt;"),
        ({"platform": "cpu-zen4", "project": "nope"}, "no index has the project nope"),
        ({"platform": "cpu-zen4", "project": "<b>"}, "&lt;b&gt;"),
        ({"platform": "cpu-zen4", "project": "x" * 5000}, "is not a valid project name"),
    ],
)
def test_problems(proxy, query, words):
    answer = asked(proxy, **query)
    assert answer.status_code == 404
    assert words in answer.text
    assert 'role="alert"' in answer.text
    assert "<script" not in answer.text
    assert "<b>" not in answer.text


def test_words_of_an_index_are_escaped(upstream, start):
    upstream.add_release("1.0")
    document = b'{"variants": {"<img src=x onerror=alert(1)>": {}}}'
    upstream.files["app"]["app-1.0-variants.json"] = document
    answer = asked(start(upstream), key=KEY)
    assert answer.status_code == 200
    assert "<img" not in answer.text


def test_a_host_that_a_shell_would_read(upstream, start):
    upstream.add_release("1.0")
    proxy = start(upstream, hosts=("*",))
    for host in ("a;rm -rf.example", "a$(x)"):
        query = {"project": "app", "key": KEY}
        answer = proxy.get("/", params=query, headers={"Host": host})
        assert answer.status_code in (200, 400)
        assert "rm -rf" not in answer.text
        assert "$(" not in answer.text


@pytest.fixture
def torch(upstream, start, tmp_path):
    """A proxy with builds of torch for CUDA 12.8, none of which the newest release has."""
    for version in ("2.8.0", "2.9.0", "3.0"):
        plain = f"torch-{version}-cp312-cp312-{LINUX}.whl"
        upstream.add("torch", plain, wheel(plain))
        publish(upstream, "cpu", f"{version}+cpu", (LINUX, ARM, WINDOWS))
    publish(upstream, "cu128", "2.9.0+cu128", (LINUX, ARM))
    upstream.add_release("1.0")
    first = TORCH.replace("documentation", "before-version = true\ndocumentation")
    entry, own = tmp_path / "torch.toml", "https://builds.example"
    entry.write_text(first.replace("URL", own))
    mirrors = {own: upstream.root.replace("://", "://u:secret@")}
    return start(upstream, catalog=str(entry), catalog_mirrors=mirrors, allow_missing_sources=True)


def said(answer):
    """Return the text of a page."""
    return " ".join(unescape(re.sub("<[^>]+>", " ", answer.text.partition("</style>")[2])).split())


def test_a_gpu_and_its_driver(torch):
    answer = asked(torch, "torch", gpu="rtx 4090", driver="570", system="linux", python="3.12")
    text = said(answer)
    for words in (
        "RTX 4090, driver 570 (CUDA 12.8), Linux on x86-64 gets torch 2.9.0 : build cuda12.8",
        "Using torch 2.9.0 (cuda12.8), the newest release with a build for this GPU, not 3.0, ",
        "pip install torch==2.9.0+cu128 --extra-index-url http://127.0.0.1:",
        'python -c "import torch; print(torch.cuda.is_available())" prints True',
        "For: CUDA driver 12.8 or newer (as the publisher's page says, not measured).",
    ):  # fmt: skip
        assert words in text
    assert "secret" not in answer.text
    assert "the newest that this GPU can have" not in text
    # The key in the line has all of it: an installer gets what the page says.
    (key,) = set(re.findall(r"http://(2~[^:]+):v@", answer.text))
    machine = decode(key)
    assert (machine.name, machine.target) == ("cuda=12.8,sm=8.9", "linux-x86_64")
    assert machine.python == "3.12"
    files = torch.page("torch", key)["files"]
    newest = max(version_in(file["filename"]) for file in files if "yanked" not in file)
    assert str(newest) == "2.9.0+cu128"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"gpu": "4090"}, "This is for driver 620 (CUDA 13.5), the newest that this GPU can have."),
        ({"gpu": "4090"}, "nvidia-smi --query-gpu=name,driver_version --format=csv shows yours"),
        ({"gpu": "No GPU"}, "No GPU, Linux on x86-64 gets torch 3.0 : build null Lines for pip"),
        ({"gpu": "none", "system": "linux-aarch64"}, "version('torch'))\" prints 3.0+cpu"),
        ({"gpu": "M2"}, "import torch; print(torch.backends.mps.is_available())"),
        (
            {"gpu": "rtx-5090", "system": "windows", "driver": "580"},
            "5090, driver 580 (CUDA 13.0), Windows gets",
        ),
        ({"gpu": "l4", "project": "torch+app"}, "What this machine gets: app 1.0"),
        ({"gpu": "780m"}, "torch 3.0 : build null Lines"),  # nothing is for GPUs of AMD
        ({"gpu": "V100", "driver": "450"}, "build null, which runs on the CPU: no build for this"),
        ({"gpu": "gh200", "installer": "uv"}, "uv pip install torch==2.9.0+cu128 --index http://"),
        ({"gpu": "gh200", "installer": "pdm"}, "pip, as the publisher has it today"),
        ({"gpu": "gh200", "project": "torch, app"}, "None: the builds of app are variants of its"),
        ({"gpu": "gh200", "project": "torch app"}, "What this machine gets: app 1.0"),
        ({"gpu": "l4", "installer": "pip-tools", "project": "torch x"}, "no index has the project"),
    ],
)
def test_gpus_by_name(torch, query, words):
    answer = asked(torch, **{"project": "torch", **query})
    assert words in said(answer)
    assert answer.status_code == (404 if "no index" in words else 200)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"gpu": "H100 SXM"}, "did you mean NVIDIA H100?"),
        ({"gpu": "GTX 10"}, "choose a platform, or paste a key"),
        ({"gpu": "rtx"}, "did you mean NVIDIA RTX 2060, "),
        ({"gpu": "V100", "driver": "590"}, "NVIDIA V100 has one of 450 to 580, not '590'"),
        ({"gpu": "Arc B580", "driver": "590"}, "Intel Arc B580 has none of these drivers"),
        ({"gpu": "Apple M2", "system": "win"}, "Apple M2 is not known with Windows"),
        ({"gpu": "<b>"}, "no GPU is known as '<b>'"),
        ({"gpu": "()"}, "no GPU is known as '()'"),
    ],
)
def test_gpus_that_are_not_known(proxy, query, words):
    answer = asked(proxy, **query)
    assert answer.status_code == 404
    assert words in said(answer)
    assert "<b>" not in answer.text


def test_every_gpu_has_an_answer(proxy):
    """Each with its newest driver, and its oldest, on each of its systems."""
    empty = read_question({})
    for title, rows in GPUS.items():
        assert named_gpus(title) == rows
        for gpu in rows:
            drivers = [driver.name for driver in gpu.known_drivers()] or [""]
            for driver in (drivers[0], drivers[-1]):
                machine = replace(empty, gpu=title, driver=driver).described().machine
                assert load_machine(machine.name).namespaces
                assert decode(encode(machine)) == machine
    page = proxy.get("/").text
    assert all(f'<option value="{escape(title)}">' in page for title in GPUS)
    assert page.count("<optgroup") == 3
