"""Third-party provider plugins through pip: they run if allowed."""

from __future__ import annotations

from support.pip_commands import installs
from support.plugins import PLUGIN, acme_index
from support.wheels import Wheel


def test_allowed_plugin(serve, patched, tmp_path):
    """The index that pip has is where it comes from; pip's timeout is a float, uv's is not."""

    def install(*options, **env):
        args = ("install", "--dry-run", "--index-url", index.url, *options, "app")
        return patched.pip(*args, env={"VARIANTS_CACHE_DIR": str(tmp_path / "cache"), **env})

    noisy = PLUGIN.replace("        return", "        print('not the answer')\n        return")
    index = acme_index(noisy)
    index.add_wheel(Wheel("acme-provider", "2.0", files={"acme_provider/__init__.py": "1 / 0"}))
    serve(index)
    done = install()
    installs(done, "app-1.0-null")
    assert done.text.count("allow it with --variant-allow-provider 'acme-provider<2,>=1'") == 1
    assert not any("acme" in path for path in index.requests)
    options = ("--timeout", "30", "--retries", "1", "--trusted-host", "a.example", "-v")
    done = install(*options, "--variant-allow-provider", "acme-provider")
    installs(done, "app-1.0-fast")
    assert "faster  rejected" in done.out
    assert "allow it with" not in done.out
    # Kept: nothing is fetched, nor asked, again. And from the environment.
    index.requests.clear()
    done = install(PIP_VARIANT_ALLOW_PROVIDER="acme-provider>=1")
    installs(done, "app-1.0-fast")
    assert "not the answer" not in done.text
    assert not any("acme-provider-2.0" in path for path in index.requests)
