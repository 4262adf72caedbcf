"""Load and faults: many pips at once, servers that fail, full disks, Ctrl-C.

What happens is what happens to plain wheels; nothing is half installed; caches stay usable.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support.environments import Result, clean_environ
from support.index import Answer, Index
from support.projects import CUDA_12_8, ON_GPU, app_index, cuda
from support.wheels import Release, Wheel, metadata

METADATA = "app-1.0-variants.json"
CU128 = "app-1.0-py3-none-any-cu128.whl"
CACHED = ("--trusted-host", "127.0.0.1")
"""pip keeps nothing in its cache that comes over plain HTTP from hosts it does not trust."""
KEPT = {"Cache-Control": "max-age=3600"}
"""What PyPI says of files."""
ACME = {"requires": ["acme-provider>=1"], "plugin-api": "acme_provider:Plugin"}
PLUGIN = """
import time
from types import SimpleNamespace

class Plugin:
    namespace = "acme"

    def get_supported_configs(self):
        time.sleep({seconds})
        return [SimpleNamespace(name="speed", values=["fast"], multi_value=False)]
"""


def plugin_index(seconds=0):
    """An index with a project that wants a plugin, which takes its time."""
    found = metadata(
        {"null": {}, "fast": {"acme": {"speed": ["fast"]}}},
        namespaces=["acme"], providers={"acme": ACME},
    )  # fmt: skip
    index = Index()
    index.add_release(Release("app", "1.0", found))
    code = PLUGIN.format(seconds=seconds)
    index.add_wheel(Wheel("acme-provider", "1.0", files={"acme_provider/__init__.py": code}))
    return index


@contextmanager
def started(environment, *args, env=None, cwd=None):
    """Start pip in a group of processes of its own, as a shell does."""
    process = subprocess.Popen(
        [environment.python, "-m", "pip", *args],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=clean_environ(env), cwd=cwd or environment.path,
        start_new_session=sys.platform != "win32",
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ended(process, timeout=240):
    out, err = process.communicate(timeout=timeout)
    return Result(process.returncode, out, err)


# Load.


@pytest.mark.one
@pytest.mark.load
def test_many_at_once(patched, serve, tmp_path, pytestconfig):
    """Into environments of their own, sharing caches of pages and of plugins, which are empty."""
    count = 50 if pytestconfig.getoption("full_matrix") else 4
    index = serve(plugin_index())
    env = {
        "PIP_CACHE_DIR": str(tmp_path / "pip"),
        "VARIANTS_CACHE_DIR": str(tmp_path / "variants"),
        "PIP_DEFAULT_TIMEOUT": "120",  # 50 of them wait for two cores
    }
    for name, data in index.files["app"].items():
        index.faults[name] = lambda data=data: Answer(body=data, headers=KEPT)
    options = ("--variant-allow-provider", "acme-provider", *CACHED, "-i", index.url, "app")
    places = [patched.copied(tmp_path / f"{number}") for number in range(count)]
    running = [
        subprocess.Popen(
            [place.python, "-m", "pip", "install", *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_environ(env),
        )
        for place in places
    ]  # fmt: skip
    for place, process in zip(places, running, strict=True):
        done = ended(process)
        assert "Successfully installed app-1.0-fast\n" in done.out, done
        assert (done.code, done.err) == (0, ""), done
        module = (place.site_packages / "app" / "__init__.py").read_text()
        assert module == "LABEL = 'fast'\n"
    # One of them made the plugin's environment, for all.
    assert len([name for name in index.fetched if name.startswith("acme_provider")]) == 1


# Servers.


def slowly(data: bytes, *, at_once: int = 0, pause: float = 0.5) -> Iterator[bytes]:
    """Yield *data* byte by byte, with pauses, but for what comes *at_once*."""
    yield data[:at_once]
    for byte in data[at_once:]:
        time.sleep(pause)
        yield bytes((byte,))


@pytest.mark.one
def test_slow_for_every_version(patched, serve):
    """One wait for all versions of a project, of which pip may want to see a hundred."""
    index = Index()
    for number in range(20):
        release = Release("app", f"1.{number}", cuda("12.8"))
        index.add_release(release)
        index.faults[release.metadata_filename] = lambda: Answer(body=slowly(b" " * 1000))
    index.add_wheel(Wheel("app", "0.9"))
    index.add_release(Release("other", "1.0", cuda("12.8")))
    serve(index)
    done = patched.pip(
        "install", "--dry-run", "--timeout", "1", "-i", index.url, "app", "other", env=CUDA_12_8
    )
    assert "Would install app-0.9 other-1.0-cu128\n" in done.out, done
    assert "app-1.19-variants.json: cannot be fetched: it takes longer than 4 s" in done.err
    assert done.err.count("took too long for another version, not asked again") == 19
    assert len([name for name in index.fetched if name.endswith("-variants.json")]) == 2


# Full disks.


def on_full_disk(environment, folder, *args, env):
    """Run pip with a *folder* that has no room."""
    if sys.platform != "linux" or not shutil.which("unshare"):
        pytest.skip("needs mounts")
    folder.mkdir(parents=True, exist_ok=True)
    script = (
        f"mount -t tmpfs -o size=16k,mode=777 tmpfs {folder} || exit 99\n"
        f"head -c 16384 /dev/zero > {folder}/filler 2>/dev/null\n"
        'exec "$@"'
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", environment.python, "-m", "pip", *args],
        env=clean_environ(env), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode == 99 or "unshare failed" in done.stderr:
        pytest.skip(f"may not mount: {done.stderr.strip()}")
    return Result(done.returncode, done.stdout, done.stderr)


@pytest.mark.one
def test_caches_on_a_full_disk(patched, serve, tmp_path):
    """Nothing is kept, everything goes on; but there is no place for plugins, which is an error."""
    full = tmp_path / "full"
    env = {
        **CUDA_12_8,
        "PIP_CACHE_DIR": str(full / "pip"),
        "VARIANTS_CACHE_DIR": str(full / "variants"),
    }
    index = serve(app_index())
    target = ("-t", str(tmp_path / "target"))
    done = on_full_disk(patched, full, "install", *target, "-i", index.url, "app", env=env)
    assert f"Successfully installed {ON_GPU}\n" in done.out, done
    assert done.code == 0

    index = serve(plugin_index())
    options = ("--variant-allow-provider", "acme-provider", "-i", index.url, "app")
    done = on_full_disk(patched, full, "install", "--dry-run", *options, env=env)
    assert done.code == 1, done
    assert "Traceback" not in done.text
    assert "acme-provider" in done.err
    assert "No space left on device" in done.err
    skip = ("--variant-on-plugin-error", "skip")
    done = on_full_disk(patched, full, "install", "--dry-run", *skip, *options, env=env)
    assert "Would install app-1.0-null\n" in done.out, done
    assert "No space left on device" in done.out


# Ctrl-C.


def interrupt(process):
    """Do what Ctrl-C does to all processes of a shell's job."""
    os.killpg(process.pid, signal.SIGINT)


def wait_for(condition, process):
    end = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, ended(process)
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.one
@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize("file", [METADATA, CU128])
def test_interrupted_while_it_waits(patched, serve, tmp_path, file):
    """pip ends at once, in its own words, and the next one finds nothing in its way."""
    index = app_index()
    index.faults[file] = lambda: Answer(body=slowly(index.files["app"][file], pause=2))
    serve(index)
    target = tmp_path / "target"
    env = {**CUDA_12_8, "PIP_CACHE_DIR": str(tmp_path / "cache")}
    options = ("install", "-t", str(target), "-i", index.url, "app")
    with started(patched, *options, env=env) as process:
        wait_for(lambda: file in index.fetched, process)
        time.sleep(0.3)
        interrupt(process)
        start = time.monotonic()
        done = ended(process)
        assert time.monotonic() - start < 60  # the rest would take an hour
    assert done.code == 1, done
    assert "ERROR: Operation cancelled by user\n" in done.err
    assert "Traceback" not in done.text
    assert not target.exists()
    index.faults.clear()
    done = patched.pip(*options, env={**env, "PIP_NO_CACHE_DIR": ""})
    assert f"Successfully installed {ON_GPU}\n" in done.out, done


@pytest.mark.one
@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_ended_while_a_plugin_is_asked(patched, serve, tmp_path, number):
    """Nobody is left behind by Ctrl-C, and nothing stops the next pip.

    The plugin's environment was complete, so that one uses it.
    """
    mark = tmp_path / "asked"
    first = f"not __import__('os').path.exists({str(mark)!r})"
    index = serve(plugin_index(f"30 if {first} and open({str(mark)!r}, 'w') else 0"))
    env = {"VARIANTS_CACHE_DIR": str(tmp_path / "cache")}
    # Unconfined, as it writes the mark.
    options = ("install", "--dry-run", "--variant-allow-provider", "acme-provider",
               "--variant-plugin-sandbox", "off", "-i", index.url, "app")  # fmt: skip
    with started(patched, *options, env=env) as process:
        wait_for(mark.exists, process)
        os.killpg(process.pid, number)
        done = ended(process, timeout=20)
    if number == signal.SIGINT:
        assert done.code == 1, done
        assert "ERROR: Operation cancelled by user\n" in done.err
        assert "Traceback" not in done.text
        if sys.platform == "linux":
            commands = subprocess.run(["ps", "ax", "-o", "args"], capture_output=True, text=True)
            assert str(tmp_path / "cache") not in commands.stdout
    index.requests.clear()
    done = patched.pip(*options, env=env)
    assert "Would install app-1.0-fast\n" in done.out, done
    assert not [name for name in index.fetched if name.startswith("acme_provider")]
