"""Names of variant wheels on in-place pages: one rule, in both directions, and what uv takes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.utils import parse_wheel_filename
from upstream_server import document, wheel
from worlds import NVIDIA, Asked

from support.uvs import UVS, downloaded_uv
from variants_proxy._choice.in_place_names import decoded_name, encoded_name, variant_path, wheel_at
from variants_proxy.urls import Machine, encode, host_target

TAGS = "cp313-cp313-manylinux_2_28_x86_64"
LABELS = st.from_regex(r"[0-9a-z_.]{1,20}", fullmatch=True)
BUILDS = st.from_regex(r"([0-9]{1,4}[a-z0-9_.]{0,8})?", fullmatch=True)


def plain(build, version="2.9.0"):
    return "-".join(filter(None, ("torch", version, build, f"{TAGS}.whl")))


@pytest.mark.parametrize(
    ("build", "label", "tag"),
    [
        ("", "cu128", "0_cu128"),
        ("2", "cu128", "2_cu128"),
        ("0", "cu128", "00_cu128"),
        ("00", "cu128", "000_cu128"),
        ("1_cu128", "cu128", "1_cu128_cu128"),
        ("", "..", "0_.."),
    ],
)
def test_the_build_tag(build, label, tag):
    name = encoded_name(plain(build), label)
    assert name == f"torch-2.9.0-{tag}-{TAGS}.whl"
    assert decoded_name(name, label) == plain(build)


@settings(max_examples=60, deadline=None)
@given(BUILDS, LABELS)
def test_there_and_back(build, label):
    """So two wheels have two URLs."""
    path = variant_path(label, plain(build))
    assert wheel_at(f"https://index.example/simple/torch/{path}#sha256=00") == (label, plain(build))
    assert path.split("/")[1] not in (".", "..", "-")
    name, version, found, tags = parse_wheel_filename(encoded_name(plain(build), label))
    assert (name, str(version), len(tags)) == ("torch", "2.9.0", 1)
    assert found[1].endswith(f"_{label}")


@pytest.mark.parametrize(
    "url",
    [
        f".variant/torch-2.9.0-0_cu128-{TAGS}.whl",
        f".variant/cu126/torch-2.9.0-0_cu128-{TAGS}.whl",
        f".variant/cu128/torch-2.9.0-{TAGS}.whl",
        f".variant/cu128/torch-2.9.0-_cu128-{TAGS}.whl",
        f".variant/~cu128/torch-2.9.0-0_cu128-{TAGS}.whl",
        f".variant/CU128/torch-2.9.0-0_CU128-{TAGS}.whl",
        f"variant/cu128/torch-2.9.0-0_cu128-{TAGS}.whl",
        ".variant/cu128/torch-2.9.0.tar.gz",
        f".variant//torch-2.9.0-0_-{TAGS}.whl",
    ],
)
def test_what_is_no_such_url(url):
    assert wheel_at(url) is None


def test_without_a_label_and_with_a_local_version():
    assert wheel_at(variant_path(None, plain("7"))) == (None, plain("7"))
    local = plain("", "2.9.0+cu128")
    assert "%2Bcu128" in variant_path("x", local)
    assert wheel_at(variant_path("x", local)) == ("x", local)


@pytest.mark.parametrize("version", [UVS[0], UVS[-1]])
def test_the_oldest_and_the_newest_uv_take_every_label(
    upstream, start, version, tmp_path, pytestconfig
):
    program = downloaded_uv(version, Path(pytestconfig.cache.mkdir("wheelhouse")))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}
    environ |= {"UV_NO_CONFIG": "1", "UV_PYTHON": sys.executable, "UV_PYTHON_DOWNLOADS": "never"}
    environ["UV_CACHE_DIR"] = str(tmp_path / "uv-cache")
    environ.pop("VIRTUAL_ENV", None)

    def uv(*args):
        done = subprocess.run(
            [str(program), *args], env=environ, cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    names = []
    for label in ("null", "cu12.8", "x86_64_v3", "..", ".", "here", "_x", "a.b_c.", "0", "128"):
        for build in ("", "7_b-"):
            found = document("12.8")
            found["variants"] = {label: {} if label == "null" else found["variants"]["cu128"]}
            names.append(name := f"app{len(names)}")
            data = wheel(f"{name}-1.0-py3-none-any-{label}.whl", variants=found)
            upstream.add(name, f"{name}-1.0-{build}py3-none-any-{label}.whl", data)
            upstream.add(name, f"{name}-1.0-variants.json", json.dumps(found).encode())
    asked = Asked(start(upstream), encode(Machine(NVIDIA, target=host_target())))
    index = asked.url("x").removesuffix("x/")
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "demo"\nversion = "1"\nrequires-python = ">=3.10"\n'
        f"dependencies = {json.dumps(names)}\n"
    )
    uv("lock", "--index-url", index)
    lock = (tmp_path / "uv.lock").read_text()
    assert lock.count("/.variant/") == lock.count('hash = "sha256:') == len(names)
    uv("sync", "--locked", "--index-url", index)
    done = uv("pip", "freeze", "--python", str(tmp_path / ".venv"))
    assert {f"{name}==1.0" for name in names} <= set(done.split())
