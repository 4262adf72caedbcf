"""Tests have nothing of the user's: neither home nor settings; and leave the checkout alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.environments import clean_environ
from support.isolation import isolated, outside, places


def test_every_test_has_a_home_of_its_own():
    assert not list(Path.home().iterdir())
    assert Path.home().parent == Path(os.environ["XDG_CACHE_HOME"]).parents[1]


def test_settings_of_the_user_do_not_reach_tests(tmp_path):
    hostile = {
        "HTTP_PROXY": "http://127.0.0.1:9",
        "SSL_CERT_FILE": "/nowhere",
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "UV_OFFLINE": "1",
        "VARIANTS_ALLOW_PROVIDER": "acme-provider",
        "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION": "11.0",
        "PYTHONPATH": "/nowhere",
        "COLUMNS": "20",
        "FORCE_COLOR": "1",
    }
    user = {"PATH": "/bin", "HOME": "/home/me", "XDG_CONFIG_HOME": "/home/me/.config"}
    own = {"PATH": "/bin", "PYTHONDONTWRITEBYTECODE": "1", **places(tmp_path)}
    assert isolated({**user, **hostile}, tmp_path) == own


@pytest.mark.parametrize(
    "environ", [lambda: None, clean_environ, outside], ids=["inherited", "clean", "outside"]
)
def test_no_process_of_a_test_writes_bytecode_into_the_checkout(environ):
    """What is started with a limit on the size of files would leave it cut off, and broken."""
    assert sys.dont_write_bytecode
    code = "import sys; print(sys.dont_write_bytecode)"
    done = subprocess.run([sys.executable, "-c", code], env=environ(), capture_output=True)
    assert done.stdout.split() == [b"True"]
