"""Third-party provider plugins through pip: they run if allowed, and cannot do harm."""

from __future__ import annotations

import pytest

from support.plugins import acme_index
from support.wheels import Wheel

PLUGIN = """
import sys
from types import SimpleNamespace

class Plugin:
    namespace = "acme"

    @classmethod
    def get_supported_configs(cls):
        print("this is not the answer")
        print("looking at the hardware", file=sys.stderr)
        return [SimpleNamespace(name="speed", values=["fast", "slow"], multi_value=False)]

    get_all_configs = get_supported_configs
"""


def index_with(plugin):
    """Return an index with a project that wants the plugin, and the plugin."""
    index = acme_index(plugin)
    index.add_wheel(Wheel("acme-provider", "2.0", files={"acme_provider/__init__.py": "1 / 0"}))
    return index


@pytest.fixture
def install(patched, tmp_path):
    """Ask for the project, with a cache of plugins of this test's own."""

    def run(index, *options, **env):
        env["VARIANTS_CACHE_DIR"] = str(tmp_path / "cache")
        args = ("install", "--dry-run", "--index-url", index.url, *options, "app")
        return patched.pip(*args, env=env)

    return run


def test_allowed_plugin(serve, install):
    index = serve(index_with(PLUGIN))
    done = install(index)
    assert "Would install app-1.0-null\n" in done.out, done
    assert "allow it with --variant-allow-provider 'acme-provider<2,>=1'" in done.out
    assert not any("acme" in path for path in index.requests)

    done = install(index, "--variant-allow-provider", "acme-provider", "-v")
    assert "Would install app-1.0-fast\n" in done.out, done
    assert "acme-provider==1.5, asked for 'acme': " in done.out
    assert "looking at the hardware" in done.out
    assert "faster  rejected" in done.out
    assert "allow it with" not in done.out

    # Kept: nothing is fetched, nor asked, again. And from the environment.
    index.requests.clear()
    done = install(index, PIP_VARIANT_ALLOW_PROVIDER="acme-provider>=1")
    assert "Would install app-1.0-fast\n" in done.out, done
    assert "looking at" not in done.text
    assert "this is not the answer" not in done.text
    assert not any("acme-provider-2.0" in path for path in index.requests)


@pytest.mark.one
@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        ("raise RuntimeError('no luck')", "no luck"),
        ("import os; os._exit(3)", "status 3"),
        (PLUGIN.replace('"acme"', '"other"'), "other"),
        (PLUGIN.replace('"slow"]', '"so slow"]'), "so slow"),
    ],
)
def test_plugin_that_fails(serve, install, plugin, problem):
    """It costs its namespace; the install goes on, and says why with -v."""
    done = install(serve(index_with(plugin)), "-v", "--variant-allow-provider", "acme-provider")
    assert "Would install app-1.0-null\n" in done.out, done
    assert "Namespace 'acme' is skipped: " in done.out
    assert problem in done.out
    assert "Traceback" not in done.err


@pytest.mark.one
def test_other_version_allowed(serve, install):
    """What the user allows and what the metadata wants have to go together."""
    index = serve(index_with(PLUGIN))
    done = install(index, "-v", "--variant-allow-provider", "acme-provider==2.0")
    assert "Would install app-1.0-null\n" in done.out, done
    assert not any("/files/acme" in path for path in index.requests)


@pytest.mark.one
def test_senseless_permission(serve, install):
    done = install(serve(index_with(PLUGIN)), "--variant-allow-provider", "-r evil.txt")
    assert done.code == 1
    assert done.err.startswith("ERROR: ")
    assert "Traceback" not in done.err
