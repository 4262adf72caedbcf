"""Load and faults: many pips at once, servers that fail, full disks, Ctrl-C.

What happens is what happens to plain wheels; nothing is half installed; caches stay usable.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from support.environments import Result, clean_environ
from support.index import Answer, Index
from support.mounts import mounted
from support.pip_commands import installs
from support.plugins import PLUGIN, acme_index
from support.projects import CUDA_12_8, ON_GPU, app_index, cuda
from support.waiting import wait_until
from support.wheels import Release, Wheel

pytestmark = pytest.mark.one
METADATA = "app-1.0-variants.json"
CACHED = ("--trusted-host", "127.0.0.1")
"""pip keeps nothing in its cache that comes over plain HTTP from hosts it does not trust."""
KEPT = {"Cache-Control": "max-age=3600"}
"""What PyPI says of files."""
ALLOWED = ("--variant-allow-provider", "acme-provider")


@contextmanager
def started(environment, *args, env=None):
    """Start pip in a group of processes of its own, as a shell does."""
    with subprocess.Popen(
        [environment.python, "-m", "pip", *args],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=clean_environ(env), cwd=environment.path,
        start_new_session=sys.platform != "win32",
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def ended(process, timeout=240):
    out, err = process.communicate(timeout=timeout)
    return Result(process.returncode, out, err)


@pytest.mark.load
def test_many_at_once(patched, serve, tmp_path, pytestconfig):
    """Into environments of their own, sharing caches of pages and of plugins, which are empty."""
    count = 50 if pytestconfig.getoption("full_matrix") else 3
    index = serve(acme_index(PLUGIN))
    env = {
        "PIP_CACHE_DIR": str(tmp_path / "pip"),
        "VARIANTS_CACHE_DIR": str(tmp_path / "variants"),
        "PIP_DEFAULT_TIMEOUT": "120",  # 50 of them wait for two cores
    }
    for name, data in index.files["app"].items():
        index.faults[name] = lambda data=data: Answer(body=data, headers=KEPT)
    places = [tmp_path / f"{number}" for number in range(count)]
    options = ("install", *ALLOWED, *CACHED, "-i", index.url, "app", "-t")
    with ExitStack() as stack:
        running = [
            stack.enter_context(started(patched, *options, str(place), env=env)) for place in places
        ]
        for place, process in zip(places, running, strict=True):
            done = ended(process)
            assert "Successfully installed app-1.0-fast\n" in done.out, done
            assert (done.code, done.err) == (0, ""), done
            assert (place / "app" / "__init__.py").read_text() == "LABEL = 'fast'\n"
    # One of them made the plugin's environment, for all.
    assert len([name for name in index.fetched if name.startswith("acme_provider")]) == 1


def slowly(data: bytes, pause: float) -> Iterator[bytes]:
    """Yield *data* byte by byte, with pauses."""
    for byte in data:
        time.sleep(pause)
        yield bytes((byte,))


def test_slow_for_every_version(patched, serve):
    """One wait for all versions of a project, of which pip may want to see a hundred."""
    index = Index()
    for number in range(20):
        release = Release("app", f"1.{number}", cuda("12.8"))
        index.add_release(release)
        index.faults[release.metadata_filename] = lambda: Answer(body=slowly(b" " * 1000, 0.2))
    index.add_wheel(Wheel("app", "0.9"))
    index.add_release(Release("other", "1.0", cuda("12.8")))
    serve(index)
    done = patched.pip(
        "install", "--dry-run", "--timeout", "0.5", "-i", index.url, "app", "other", env=CUDA_12_8
    )
    installs(done, "app-0.9", "other-1.0-cu128")
    assert "app-1.19-variants.json: cannot be fetched: it takes longer than 2 s" in done.err
    assert done.err.count("took too long for another version, not asked again") == 19
    assert len([name for name in index.fetched if name.endswith("-variants.json")]) == 2


def test_caches_on_a_full_disk(patched, serve, tmp_path):
    """Nothing is kept, everything goes on; but there is no place for plugins, which is an error."""
    full = tmp_path / "full"
    full.mkdir()
    setup = (
        f"mount -t tmpfs -o size=16k,mode=777 tmpfs {full} && "
        f"{{ head -c 16384 /dev/zero > {full}/filler 2>/dev/null; true; }}"
    )
    env = {
        **CUDA_12_8,
        "PIP_CACHE_DIR": str(full / "pip"),
        "VARIANTS_CACHE_DIR": str(full / "variants"),
    }
    url = serve(app_index()).url
    done = mounted(patched, setup, "install", "--dry-run", "-i", url, "app", env=env)
    installs(done, *ON_GPU.split())
    wanted = ("install", "--dry-run", *ALLOWED, "-i", serve(acme_index(PLUGIN)).url, "app")
    done = mounted(patched, setup, *wanted, env=env)
    assert done.code == 1, done
    assert "Traceback" not in done.text
    assert "acme-provider" in done.err
    assert "No space left on device" in done.err
    done = mounted(patched, setup, *wanted, "--variant-on-plugin-error", "skip", env=env)
    installs(done, "app-1.0-null")
    assert "No space left on device" in done.out


@pytest.mark.nightly
def test_nothing_can_be_written(fresh, serve):
    """Neither site-packages nor a home: pip installs to where it is told."""
    setup = f"mount --bind {fresh.path} {fresh.path} && mount -o remount,ro,bind {fresh.path}"
    env = {**CUDA_12_8, "HOME": "/proc/nowhere", "XDG_CACHE_HOME": "/proc/nowhere"}
    wanted = ("install", "--dry-run", "-i", serve(app_index()).url, "app")
    installs(mounted(fresh, setup, *wanted, env=env), *ON_GPU.split())


# Ctrl-C.


def ended_by(number, environment, condition, *args, env):
    """Start pip, send it a signal when *condition* holds, and return what it printed."""
    with started(environment, *args, env=env) as process:
        assert wait_until(lambda: condition() or process.poll() is not None, 60)
        assert process.poll() is None, ended(process)
        os.killpg(process.pid, number)
        done = ended(process, timeout=20)  # the plugin would take 30 s, the index an hour
    if number == signal.SIGINT:
        assert done.code == 1, done
        assert "ERROR: Operation cancelled by user\n" in done.err
        assert "Traceback" not in done.text


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_interrupted_while_it_waits(patched, serve, tmp_path):
    """pip ends at once, in its own words, and the next one finds nothing in its way."""
    index = app_index()
    index.faults[METADATA] = lambda: Answer(body=slowly(index.files["app"][METADATA], 2))
    serve(index)
    target = tmp_path / "target"
    env = {**CUDA_12_8, "PIP_CACHE_DIR": str(tmp_path / "cache")}
    options = ("install", "-t", str(target), "-i", index.url, "app")
    ended_by(signal.SIGINT, patched, lambda: METADATA in index.fetched, *options, env=env)
    assert not target.exists()
    index.faults.clear()
    done = patched.pip(*options, env={**env, "PIP_NO_CACHE_DIR": ""})
    assert f"Successfully installed {ON_GPU}\n" in done.out, done


WAITING = PLUGIN.replace(
    "        return [",
    "        import os, time\n"
    "        if not os.path.exists({mark!r}):\n"
    "            open({mark!r}, 'w').close()\n"
    "            time.sleep(30)\n"
    "        return [",
)
"""A plugin that writes a file and waits, the first time."""


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.nightly)]
)
def test_ended_while_a_plugin_is_asked(patched, serve, tmp_path, number):
    """No process is left behind by Ctrl-C, and nothing stops the next pip.

    The plugin's environment was complete, so that one uses it.
    """
    mark = tmp_path / "asked"
    index = serve(acme_index(WAITING.format(mark=str(mark))))
    env = {"VARIANTS_CACHE_DIR": str(tmp_path / "cache")}
    # Unconfined, as it writes the mark.
    options = ("install", "--dry-run", *ALLOWED, "--variant-plugin-sandbox", "off",
               "-i", index.url, "app")  # fmt: skip
    ended_by(number, patched, mark.exists, *options, env=env)
    if number == signal.SIGINT and sys.platform == "linux":
        commands = subprocess.run(["ps", "ax", "-o", "args"], capture_output=True, text=True)
        assert str(tmp_path / "cache") not in commands.stdout
    index.requests.clear()
    installs(patched.pip(*options, env=env), "app-1.0-fast")
    assert not [name for name in index.fetched if name.startswith("acme_provider")]
