"""Third-party provider plugins through pip: they run if allowed."""

from __future__ import annotations

import pytest

from support.pip_commands import installs
from support.plugins import PLUGIN, acme_index
from support.wheels import Wheel

ALLOWED = ("--variant-allow-provider", "acme-provider")


@pytest.fixture
def install(patched, tmp_path):
    """Ask for the project, with a cache of plugins of this test's own."""

    def run(index, *options, **env):
        env["VARIANTS_CACHE_DIR"] = str(tmp_path / "cache")
        args = ("install", "--dry-run", "--index-url", index.url, *options, "app")
        return patched.pip(*args, env=env)

    return run


def test_allowed_plugin(serve, install):
    """The index that pip has is where it comes from; pip's timeout is a float, uv's is not."""
    noisy = PLUGIN.replace("        return", "        print('not the answer')\n        return")
    index = acme_index(noisy)
    index.add_wheel(Wheel("acme-provider", "2.0", files={"acme_provider/__init__.py": "1 / 0"}))
    serve(index)
    done = install(index)
    installs(done, "app-1.0-null")
    assert done.text.count("allow it with --variant-allow-provider 'acme-provider<2,>=1'") == 1
    assert not any("acme" in path for path in index.requests)
    options = ("--timeout", "30", "--retries", "1", "--trusted-host", "a.example")
    done = install(index, *options, *ALLOWED, "-v")
    installs(done, "app-1.0-fast")
    assert "faster  rejected" in done.out
    assert "allow it with" not in done.out
    # Kept: nothing is fetched, nor asked, again. And from the environment.
    index.requests.clear()
    done = install(index, PIP_VARIANT_ALLOW_PROVIDER="acme-provider>=1")
    installs(done, "app-1.0-fast")
    assert "not the answer" not in done.text
    assert not any("acme-provider-2.0" in path for path in index.requests)


@pytest.mark.one
def test_plugin_that_fails(serve, install):
    """It was allowed, so its failure ends the command, unless the user wants it skipped."""
    index = serve(acme_index("raise RuntimeError('no luck')"))
    done = install(index, *ALLOWED)
    assert done.code == 1, done
    assert "ERROR: the provider plugin acme-provider==1.5 (acme_provider:Plugin) " in done.err
    assert "failed: RuntimeError: no luck" in done.err
    assert "--variant-on-plugin-error skip" in done.err
    assert "Traceback" not in done.err
    done = install(index, *ALLOWED, "--variant-on-plugin-error", "skip")
    installs(done, "app-1.0-null")
    (line,) = [line for line in done.out.splitlines() if "Namespace 'acme' is skipped: " in line]
    assert "no luck" in line
