"""Third-party provider plugins through pip: they run if allowed, and cannot do harm."""

from __future__ import annotations

import os
from pathlib import Path

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
    assert "faster  rejected" in done.out
    assert "allow it with" not in done.out

    # Kept: nothing is fetched, nor asked, again. And from the environment.
    index.requests.clear()
    done = install(index, PIP_VARIANT_ALLOW_PROVIDER="acme-provider>=1")
    assert "Would install app-1.0-fast\n" in done.out, done
    assert "looking at" not in done.text
    assert "this is not the answer" not in done.text
    assert not any("acme-provider-2.0" in path for path in index.requests)


FAILING = [
    ("raise RuntimeError('no luck')", "failed: RuntimeError: no luck"),
    ("import os; print('so far'); os._exit(3)", "status 3"),
]


@pytest.mark.one
@pytest.mark.parametrize(("plugin", "problem"), FAILING)
def test_plugin_that_fails(serve, install, plugin, problem):
    """It was allowed, so its failure ends the command, unless the user wants it skipped."""
    index = serve(index_with(plugin))
    allow = ("--variant-allow-provider", "acme-provider")
    done = install(index, *allow)
    assert done.code == 1, done
    assert "ERROR: the provider plugin acme-provider==1.5 (acme_provider:Plugin) " in done.err
    assert problem in done.err
    assert "--variant-on-plugin-error skip" in done.err
    assert "Traceback" not in done.err
    assert "Would install" not in done.out

    done = install(index, *allow, "--variant-on-plugin-error", "skip")
    assert done.code == 0, done
    assert "Would install app-1.0-null\n" in done.out, done
    (line,) = [line for line in done.out.splitlines() if "Namespace 'acme' is skipped: " in line]
    assert problem in line
    assert "Traceback" not in done.err


@pytest.mark.one
@pytest.mark.parametrize("with_uv", [True, False])
def test_options_that_the_plugins_installer_gets(serve, install, with_uv, tmp_path):
    """pip's timeout is a float, uv wants a whole number of seconds."""
    path = os.environ["PATH"]
    if not with_uv:
        folders = path.split(os.pathsep)
        path = os.pathsep.join(each for each in folders if not Path(each, "uv").exists())
    options = ("--timeout", "30", "--retries", "1", "--trusted-host", "a.example")
    done = install(
        serve(index_with(PLUGIN)), *options, "--variant-allow-provider", "acme-provider", PATH=path
    )
    assert "Would install app-1.0-fast\n" in done.out, done
