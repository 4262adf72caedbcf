"""Settings of indexes are of a form that real installers take."""

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from pep_variants.sources import Sources
from variants_plugins.variables import installer_variables

# Settings as pip gives them; every one has to be of a form that both installers take.
FORMS = {
    "timeout": 0.5,
    "trusted_hosts": ("a.example", "b.example:8443", "[::1]:80"),
    "proxy": "http://me:pw@127.0.0.1:9",
    "keyring": True,
    "index_strategy": "unsafe-best-match",
    "extra_index_urls": ("https://127.0.0.1:9/a b/", "file:///nowhere"),
}


@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_real_installers_take_them(wheelhouse, tmp_path, clean_environ, tool):
    """They would end with an error for a value that they cannot read."""
    settings = {**vars(wheelhouse.sources), **FORMS, "cert": str(tmp_path)}
    sources = Sources(**settings)
    commands = {
        "uv": [Path(sysconfig.get_path("scripts"), "uv"), "pip", "install", "--dry-run"],
        "pip": [sys.executable, "-m", "pip", "install", "--dry-run"],
    }
    variables = {"uv": sources.for_uv, "pip": sources.for_pip}[tool]()
    command = commands[tool]
    if tool == "uv":
        command += ["--python", sys.executable]
    done = subprocess.run(
        [*command, "--no-index", "acme-variant-provider"],
        env={**installer_variables(clean_environ), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"acme-variant-provider(==|-)1\.0", done.stdout + done.stderr)
