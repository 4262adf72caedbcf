"""Third-party provider plugins through uv: the command asks them, if the user allowed it."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from support.index import Index
from support.plugins import acme_index
from support.uvs import Machine, project
from support.wheels import Wheel

PYTHON = sys.executable
Serve = Callable[[Index], Index]
PLUGIN = """
from types import SimpleNamespace

class Plugin:
    namespace = "acme"

    @classmethod
    def get_supported_configs(cls):
        return [SimpleNamespace(name="speed", values=["fast", "slow"], multi_value=False)]

    get_all_configs = get_supported_configs
"""


@pytest.fixture
def there(machine: Machine, serve: Serve) -> Machine:
    index = acme_index(PLUGIN)
    index.add_wheel(Wheel("top", "1.0", requires=("app",)))
    machine = machine.with_environ({"UV_DEFAULT_INDEX": serve(index).url})
    machine.create_environment(PYTHON)
    return machine


def test_a_plugin_runs_if_it_is_allowed(there: Machine) -> None:
    done = there.run("pip", "install", "app")
    assert done.code == 0, done
    assert there.labels() == {"app": "null"}
    assert "Namespace 'acme' is skipped" in done.err
    assert "--variant-allow-provider 'acme-provider<2,>=1'" in done.err
    allowed = ("--variant-allow-provider", "acme-provider")
    done = there.run(*allowed, "pip", "install", "app")
    assert done.code == 0, done
    assert there.labels() == {"app": "fast"}
    assert "skipped" not in done.err
    # Another one was allowed, so this one is not.
    done = there.run("--variant-allow-provider", "other", "pip", "install", "app")
    assert done.code == 0, done
    assert there.labels() == {"app": "null"}


def test_projects_and_plugins(there: Machine) -> None:
    there = there.with_environ({"VARIANTS_ALLOW_PROVIDER": "acme-provider"})
    project(there.work, ["app"])
    done = there.run("sync")
    assert done.code == 0, done
    assert there.labels() == {"app": "fast"}
    assert "/app/fast/" in (there.work / "uv.lock").read_text()


def test_plugins_of_dependencies_are_asked_when_they_are_known(there: Machine) -> None:
    there = there.with_environ({"VARIANTS_ALLOW_PROVIDER": "acme-provider"})
    again = "asked only now: run the command again"
    for label, says_so in (("null", True), ("fast", False), ("fast", False)):
        done = there.run("pip", "install", "top")
        assert done.code == 0, done
        assert there.labels() == {"app": label}
        assert (again in done.err) is says_so


def test_plugins_of_locked_dependencies(there: Machine) -> None:
    there = there.with_environ({"VARIANTS_ALLOW_PROVIDER": "acme-provider"})
    project(there.work, ["top"])
    done = there.run("lock")
    assert "run the command again with --variant-lock pinned" in done.err
    done = there.run("--variant-lock", "pinned", "sync")
    assert done.code == 0, done
    assert "asked only now" not in done.err
    assert there.labels() == {"app": "fast"}
