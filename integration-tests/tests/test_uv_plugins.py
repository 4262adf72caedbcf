"""Third-party provider plugins through uv: the command asks them, if the user allowed it."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from support.environments import Result
from support.index import Index, index_of
from support.plugins import PLUGIN, acme_index
from support.projects import CUDA_12_8, cuda
from support.uvs import Machine, project
from support.wheels import Release, Wheel

PYTHON = sys.executable
Serve = Callable[[Index], Index]


@pytest.fixture
def there(machine: Machine, serve: Serve) -> Machine:
    index = acme_index(PLUGIN)
    index.add_wheel(Wheel("top", "1.0", requires=("app",)))
    machine = machine.with_environ({"UV_DEFAULT_INDEX": serve(index).url})
    machine.create_environment(PYTHON)
    return machine


def test_a_plugin_runs_if_it_is_allowed(there: Machine) -> None:
    """One of a dependency when that is known: after the first command."""
    done = there.run("pip", "install", "app")
    assert done.code == 0, done
    assert there.labels() == {"app": "null"}
    assert "Namespace 'acme' is skipped" in done.err
    assert "--variant-allow-provider 'acme-provider<2,>=1'" in done.err
    allowed = ("--variant-allow-provider", "acme-provider")
    for label, says_so in (("null", True), ("fast", False)):
        done = there.run(*allowed, "pip", "install", "top")
        assert done.code == 0, done
        assert there.labels() == {"app": label}
        assert ("for the first time in this command: run it again" in done.err) is says_so
        assert "skipped" not in done.err


def test_plugins_of_locked_dependencies(there: Machine) -> None:
    there = there.with_environ({"VARIANTS_ALLOW_PROVIDER": "acme-provider"})
    project(there.work, ["top"])
    done = there.run("lock")
    assert "lock with uv-variants --variant-switch lock" in done.err
    assert there.run("--variant-switch", "lock").code == 0
    assert "/app/.variant/fast/" in (there.work / "uv.lock").read_text()


def test_a_plugin_that_fails(machine: Machine, serve: Serve) -> None:
    """It was allowed, so its failure ends the commands that want it, and only those."""
    index = acme_index("raise RuntimeError('no luck')")
    index.add_wheel(Wheel("top", "1.0", requires=("app",)))
    index.add_wheel(Wheel("other", "1.0"))
    machine = machine.with_environ(
        {"UV_DEFAULT_INDEX": serve(index).url, "VARIANTS_ALLOW_PROVIDER": "acme-provider"}
    )
    problem = "the provider plugin acme-provider==1.5 (acme_provider:Plugin) failed: RuntimeError"

    def installed(name: str, *ours: str) -> Result:
        there = machine.create_environment(PYTHON, machine.work / f"{name}{len(ours)}").path
        return machine.run(*ours, "pip", "install", "--python", str(there), name)

    # Of a dependency, which is known when uv has run; and known from the start.
    for name in ("top", "app"):
        done = installed(name)
        assert done.code != 0, done
        assert done.err.count(problem) == 1, done
        assert "--variant-on-plugin-error skip" in done.err
        assert "Traceback" not in done.err
    assert installed("other").code == 0
    done = installed("app", "--variant-on-plugin-error", "skip")
    assert done.code == 0, done
    assert f"Namespace 'acme' is skipped: {problem}" in done.err
    assert machine.labels(machine.work / "app2") == {"app": "null"}


def test_a_known_provider_of_another_version_is_a_strangers(machine: Machine, serve: Serve) -> None:
    tree = cuda("12.6", "12.8")
    provider = {**tree["providers"]["nvidia"], "requires": ["nvidia-variant-provider>=9"]}
    index = index_of([Release("app", "1.0", {**tree, "providers": {"nvidia": provider}})])
    url = serve(index).url
    machine = machine.with_environ({**CUDA_12_8, "UV_DEFAULT_INDEX": url})
    machine.create_environment(PYTHON)
    done = machine.run("pip", "install", "app")
    assert done.code == 0, done
    assert machine.labels() == {"app": "null"}
    assert "--variant-allow-provider 'nvidia-variant-provider>=9'" in done.err
    # A description of the machine is the user's word, whatever the provider.
    file = machine.work / "gpu.toml"
    file.write_text(
        '[[provider]]\nnamespace = "nvidia"\n'
        '[provider.properties]\ncuda_version_lower_bound = ["12.8", "12.7"]\n'
    )
    done = machine.run("--variant-platform", str(file), "pip", "install", "app")
    assert done.code == 0, done
    assert machine.labels() == {"app": "cu128"}
