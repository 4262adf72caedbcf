"""Third-party provider plugins through uv: the command asks them, if the user allowed it."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from support.index import Index
from support.plugins import PLUGIN, acme_index
from support.uvs import Machine, project
from support.wheels import Wheel

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


@pytest.mark.parametrize("name", ["top", "app"])
def test_a_plugin_that_fails(machine: Machine, serve: Serve, name: str) -> None:
    """Of a dependency, which is known when uv has run; and known from the start."""
    index = acme_index("raise RuntimeError('no luck')")
    index.add_wheel(Wheel("top", "1.0", requires=("app",)))
    machine = machine.with_environ(
        {"UV_DEFAULT_INDEX": serve(index).url, "VARIANTS_ALLOW_PROVIDER": "acme-provider"}
    )
    machine.create_environment(PYTHON)
    done = machine.run("pip", "install", name)
    assert done.code != 0, done
    problem = "the provider plugin acme-provider==1.5 (acme_provider:Plugin) failed: RuntimeError"
    assert done.err.count(problem) == 1, done
    assert "--variant-on-plugin-error skip" in done.err
    assert "Traceback" not in done.err
