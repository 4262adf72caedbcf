"""Tests have nothing of the user's: neither home nor settings; and leave the checkout alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.environments import ROOT, clean_environ
from support.isolation import outside
from variants_plugins.plugin_environment import RECORD, write_record


def test_every_test_has_a_home_of_its_own(request):
    home = Path.home()
    assert home.is_dir()
    assert not list(home.iterdir())
    assert home.parent == Path(os.environ["XDG_CACHE_HOME"]).parents[1]
    os.environ["LEFT_BEHIND"] = os.environ["HOME"] = "yes"  # the fixture takes it back


def test_what_a_test_leaves_in_the_environment_is_taken_back():
    assert "LEFT_BEHIND" not in os.environ
    assert os.environ["HOME"] != "yes"


@pytest.mark.parametrize(
    "environ", [lambda: None, clean_environ, outside], ids=["inherited", "clean", "outside"]
)
def test_no_process_of_a_test_writes_bytecode_into_the_checkout(environ):
    """What is started with a limit on the size of files would leave it cut off, and broken."""
    assert sys.dont_write_bytecode
    code = "import sys; print(sys.dont_write_bytecode)"
    done = subprocess.run([sys.executable, "-c", code], env=environ(), capture_output=True)
    assert done.stdout.split() == [b"True"]


SENSITIVE = [
    "packages/pep-variants/tests/test_preferences.py",
    "packages/variants-cli/tests/test_detect.py",
    "packages/variants-cli/tests/test_rank.py",
    "packages/variants-index/tests/test_credentials.py",
    "integration-tests/tests/test_resolve_command.py::TestLock::test_there_and_back",
]


@pytest.mark.nightly
@pytest.mark.skipif(os.name == "nt", reason="the files are where they are looked for elsewhere")
@pytest.mark.nightly
def test_the_tests_pass_whatever_the_user_has(tmp_path):
    """Those that are the most sensitive: once more, in a home where everything is wrong."""
    home = tmp_path / "home"
    kept = home / ".cache" / "variants" / "plugins" / "environments" / "kept"
    for path, text in {
        ".config/pip/pip.conf": "[global\nindex-url",
        ".config/uv/uv.toml": 'index-url = "http://127.0.0.1:9/simple"\noffline = true\n',
        ".config/variants/variants.toml": 'allow-provider = ["acme-provider"]\nvariants = false\n',
        ".config/git/config": "[broken",
        ".netrc": "machine 127.0.0.1 login me password wrong\nnonsense",
        ".pypirc": "[broken",
        "modules/packaging.py": "raise RuntimeError",
    }.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text)
    kept.mkdir(parents=True)
    write_record(kept / RECORD, ["acme-provider==9"], "")
    hostile = {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "HTTP_PROXY": "http://127.0.0.1:9",
        "ALL_PROXY": "http://127.0.0.1:9",
        "SSL_CERT_FILE": "/nowhere",
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "PIP_REQUIRE_VIRTUALENV": "1",
        "UV_OFFLINE": "1",
        "UV_INDEX_URL": "http://127.0.0.1:9/simple",
        "VARIANTS_ALLOW_PROVIDER": "acme-provider",
        "VARIANTS_PLATFORM": "/nowhere",
        "VARIANTS_CACHE_DIR": str(home / "elsewhere"),
        "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION": "11.0",
        "COLUMNS": "20",
        "FORCE_COLOR": "1",
        "TZ": "Asia/Kathmandu",
    }
    variables = {
        **{name: value for name, value in os.environ.items() if "XDIST" not in name},
        **hostile,
    }
    before = sorted(home.rglob("*"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
         f"--basetemp={tmp_path / 'temporary'}", *SENSITIVE],
        cwd=ROOT, env=variables, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert sorted(home.rglob("*")) == before
    # Such a home does make a difference.
    command = [str(Path(sys.executable).with_name("variants")), "detect", "-v"]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    assert "VARIANTS_ALLOW_PROVIDER" in done.stdout + done.stderr
    assert "11.0" in done.stdout
