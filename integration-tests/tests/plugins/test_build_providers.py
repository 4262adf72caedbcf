"""Providers that a build asks: what they have at all is what variants may have."""

import json
import subprocess
import sys

from pep_variants.model.metadata import ProviderInfo

LINUX = {"python_version": "3.11", "sys_platform": "linux", "platform_system": "Linux"}
MATRIX = """
[variant.default-priorities]
namespace = ["acme"]
[variant.providers.acme]
build-requires = ["acme-variant-provider"]
[axes.level.{level}]
properties = ["acme :: level :: {level}"]
"""


def test_all_that_a_plugin_has(make_runner):
    runner = make_runner()
    provider = ProviderInfo(("acme-variant-provider",))
    assert runner.ask("acme", provider, LINUX).features == {"level": ("two", "one")}
    found = runner.ask_all("acme", provider, LINUX)
    assert found.features == {"level": ("three", "two", "one")}
    assert runner.ask("acme", provider, LINUX).features == {"level": ("two", "one")}


def matrix(tmp_path, wheelhouse, clean_environ, level):
    path = tmp_path / "matrix.toml"
    path.write_text(MATRIX.format(level=level))
    return subprocess.run(
        [
            *(sys.executable, "-c", "from variants_cli.main import main; main()"),
            *("matrix", str(path), "--format", "metadata"),
            *("--variant-allow-provider", "acme-variant-provider"),
        ],
        env={
            **clean_environ,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(wheelhouse.path),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_matrix_asks_what_the_user_allows(tmp_path, wheelhouse, clean_environ):
    done = matrix(tmp_path, wheelhouse, clean_environ, "three")
    assert done.returncode == 0, done.stderr
    provider = json.loads(done.stdout)["providers"]["acme"]
    assert provider["static-properties"] == {"level": ["three", "two", "one"]}
    wrong = matrix(tmp_path, wheelhouse, clean_environ, "four")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "'acme :: level :: four' is not supported on any machine" in wrong.stderr
    assert "list three, two, one for 'level'" in wrong.stderr
