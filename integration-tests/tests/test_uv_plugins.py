"""Third-party provider plugins through uv: the command asks them, if the user allowed it."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.environments import Result
from support.index import Index
from support.plugins import ACME, PLUGIN, acme_index
from support.uvs import Machine, project
from support.wheels import Release, Wheel, metadata

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
    assert "/app/.variant/fast/" in (there.work / "uv.lock").read_text()


def test_plugins_of_dependencies_are_asked_when_they_are_known(there: Machine) -> None:
    there = there.with_environ({"VARIANTS_ALLOW_PROVIDER": "acme-provider"})
    again = "for the first time in this command: run it again"
    for label, says_so in (("null", True), ("fast", False), ("fast", False)):
        done = there.run("pip", "install", "top")
        assert done.code == 0, done
        assert there.labels() == {"app": label}
        assert (again in done.err) is says_so


def test_plugins_of_locked_dependencies(there: Machine) -> None:
    there = there.with_environ({"VARIANTS_ALLOW_PROVIDER": "acme-provider"})
    project(there.work, ["top"])
    done = there.run("lock")
    assert "lock with uv-variants --variant-switch lock" in done.err
    assert there.run("--variant-switch", "lock").code == 0
    done = there.run("sync")
    assert done.code == 0, done
    assert "for the first time" not in done.err
    assert there.labels() == {"app": "fast"}


FAILING = "raise RuntimeError('no luck')"


def test_a_plugin_that_fails(machine: Machine, serve: Serve) -> None:
    """It was allowed, so its failure ends the commands that want it, and only those."""
    index = acme_index(FAILING)
    index.add_wheel(Wheel("top", "1.0", requires=("app",)))
    index.add_wheel(Wheel("other", "1.0"))
    machine = machine.with_environ(
        {"UV_DEFAULT_INDEX": serve(index).url, "VARIANTS_ALLOW_PROVIDER": "acme-provider"}
    )
    machine.create_environment(PYTHON)
    problem = "the provider plugin acme-provider==1.5 (acme_provider:Plugin) failed: RuntimeError"
    # Not known yet, then known; and as a dependency.
    for command in (("app",), ("app",), ("top",)):
        done = machine.run("pip", "install", *command)
        assert done.code != 0, done
        assert done.err.count(problem) == 1, done
        assert "--variant-on-plugin-error skip" in done.err
        assert "Traceback" not in done.err
        assert machine.labels() == {}
    done = machine.run("pip", "install", "other")
    assert done.code == 0, done
    done = machine.run("--variant-on-plugin-error", "skip", "pip", "install", "app")
    assert done.code == 0, done
    assert f"Namespace 'acme' is skipped: {problem}" in done.err
    assert machine.labels() == {"app": "null"}


def test_a_dependencys_plugin_that_fails(machine: Machine, serve: Serve) -> None:
    """It is asked when uv has run: an error all the same."""
    index = acme_index(FAILING)
    index.add_wheel(Wheel("top", "1.0", requires=("app",)))
    machine = machine.with_environ(
        {"UV_DEFAULT_INDEX": serve(index).url, "VARIANTS_ALLOW_PROVIDER": "acme-provider"}
    )
    machine.create_environment(PYTHON)
    done = machine.run("pip", "install", "top")
    assert done.code != 0, done
    assert "failed: RuntimeError: no luck" in done.err


def test_an_answer_belongs_to_its_provider(machine: Machine, serve: Serve) -> None:
    """What an allowed plugin answers cannot be claimed for the processor, nor by other metadata."""
    index = acme_index(PLUGIN.replace('namespace = "acme"', "").replace("speed", "level"))
    claims = metadata(
        {"null": {}, "evil": {"x86_64": {"level": ["fast"]}}},
        namespaces=["x86_64"],
        providers={"x86_64": ACME},
    )
    index.add_release(Release("evil", "1.0", claims))
    honest = metadata(
        {"null": {}, "v1": {"x86_64": {"level": ["v1"]}}},
        namespaces=["x86_64"],
        providers={"x86_64": {"requires": ["provider-variant-x86-64"]}},
    )
    index.add_release(Release("good", "1.0", honest))
    machine = machine.with_environ(
        {
            "UV_DEFAULT_INDEX": serve(index).url,
            "VARIANTS_ALLOW_PROVIDER": "acme-provider",
            "X86_64_VARIANT_PROVIDER_FORCE_LEVEL": "v1",
        }
    )
    machine.create_environment(PYTHON)
    done = machine.run("pip", "install", "evil")
    assert done.code != 0, done
    assert "does not say that it is for 'x86_64'" in done.err
    done = machine.run("pip", "install", "good")
    assert done.code == 0, done
    assert machine.labels()["good"] == ("v1" if platform.machine() == "x86_64" else "null")


def test_many_at_once(machine: Machine, serve: Serve, tmp_path: Path) -> None:
    """Ten commands with a cold cache all have the variant of the plugin."""
    served = serve(acme_index(PLUGIN))
    machine = machine.with_environ(
        {"UV_DEFAULT_INDEX": served.url, "VARIANTS_ALLOW_PROVIDER": "acme-provider"}
    )

    def install(number: int) -> Result:
        target = tmp_path / f"target-{number}"
        return machine.run("pip", "install", "--python", PYTHON, "--target", str(target), "app")

    with ThreadPoolExecutor(10) as pool:
        done = list(pool.map(install, range(10)))
    assert [each.code for each in done] == [0] * 10, done
    labels = [
        [
            path.read_text()
            for path in tmp_path.glob(f"target-{number}/app-1.0.dist-info/variant.json")
        ]
        for number in range(10)
    ]
    assert all('"fast"' in text for (text,) in labels)
