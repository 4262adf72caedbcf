"""Real plugins in real environments: those that misbehave, and what becomes of them."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from pep_variants._model.metadata import ProviderInfo
from pep_variants.errors import ProviderError
from support.waiting import wait_until
from variants_plugins.runner import PluginRunner

LINUX_ONLY = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
LOG = "ACME_VARIANT_PROVIDER_LOG"

OK = """\
import os, sys, time, subprocess
from collections import namedtuple
Config = namedtuple("Config", "name values")
def get_supported_configs(): return [Config("level", ["two", "one"])]
"""

# Vicious ones that still answer.
LOUD = {
    "prints": OK
    + """
print("before")
os.write(1, b'{"features": []}\\n')
def get_supported_configs():
    print("inside", flush=True)
    subprocess.run(["echo", "from a program"])
    import atexit
    atexit.register(print, "after")
    return [Config("level", ["two", "one"])]
""",
    "closes_streams": OK
    + "sys.stdout.close(); sys.stderr.close(); sys.stdin.close()\nos.closerange(0, 3)\n",
    "threads": OK + "import threading\nthreading.Thread(target=time.sleep, args=(600,)).start()\n",
    "imports": OK
    + """
try:
    import trap
except ImportError:
    pass
else:
    raise SystemExit("imported from the working directory")
assert os.listdir() == []
assert sys.flags.isolated
assert "" not in sys.path and os.getcwd() not in sys.path
""",
    "writes_temporary": OK
    + f"""
import tempfile
with open(os.environ["{LOG}"], "w") as log:
    log.write(tempfile.mkdtemp())
open("left", "w").close()
""",
    "long_errors": OK + "sys.stderr.write('first\\n' + 'x' * 10**6 + '\\nlast\\n')\n",
}

# Module: its source, and what the error says. More are in the corpus of attacks.
FAILING = {
    "raises": (OK + "def get_supported_configs(): raise ValueError('no luck')", "no luck"),
    "killed": ("import os; os.kill(os.getpid(), 11)", "ended with status -11 and no answer"),
    "broken": ("def", "failed: SyntaxError"),
    "returns_itself": (
        OK + "a = []\na.append(a)\ndef get_supported_configs(): return [Config('level', a)]",
        "failed: ValueError: Circular reference",
    ),
    "prints_a_gigabyte": (
        OK + "for _ in range(1024): sys.stdout.write('x' * 2**20)",
        "printed more than 16 MiB",
    ),
    "closes_everything": (OK + "os.closerange(0, 1000)", "no answer"),
    "answers_itself": (
        "import os\nfor fd in range(3, 20):\n  try: os.write(fd, b'x' * 2**21)\n"
        "  except OSError: pass\n",
        "answered more than 1 MiB",
    ),
}


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    """Return where the package of all the modules above and its environment are."""
    return tmp_path_factory.mktemp("zoo")


@pytest.fixture
def ask_zoo(zoo, wheelhouse, clean_environ):
    """Return what asks one of those modules."""
    sources = LOUD | {name: source for name, (source, _) in FAILING.items()}
    folder = type(wheelhouse)(zoo / "wheels")
    if not list(folder.path.iterdir()):
        folder.add("zoo", {f"zoo/{name}.py": source for name, source in sources.items()})

    def ask(plugin_api, environ=None):
        runner = PluginRunner(
            ["zoo"],
            folder.sources,
            cache_dir=zoo / "cache",
            environ={**clean_environ, **(environ or {})},
            # In the sandbox it could not write its log.
            sandbox="off" if environ else "auto",
        )
        return runner.ask("acme", ProviderInfo(("zoo",), plugin_api), {})

    return ask


@pytest.mark.parametrize("name", LOUD)
def test_answers(ask_zoo, name, tmp_path, monkeypatch):
    (tmp_path / "trap.py").write_text("")
    monkeypatch.chdir(tmp_path)
    log = tmp_path / "log"
    answer = ask_zoo(f"zoo.{name}", {LOG: str(log), "PYTHONPATH": str(tmp_path)})
    assert answer.features == {"level": ("two", "one")}
    assert answer.resolved == ("zoo==1.0",)
    assert answer.plugin_api == f"zoo.{name}"
    if name == "prints":
        lines = answer.stderr.splitlines()
        assert sorted(lines) == ["before", "from a program", "inside", '{"features": []}']
    if name == "writes_temporary":
        assert not Path(log.read_text()).exists()
    if name == "long_errors":
        assert answer.stderr.endswith("x\nlast\n")
        assert len(answer.stderr) <= 32 * 1024


@pytest.mark.parametrize("name", FAILING)
def test_fails(ask_zoo, name, caplog):
    endpoint = f"zoo.{name}"
    caplog.set_level(logging.DEBUG, logger="variants_plugins")
    with pytest.raises(ProviderError) as caught:
        ask_zoo(endpoint)
    assert ("Traceback" in caplog.text) == (name in ("raises", "broken"))
    message = str(caught.value)
    assert message.startswith(f"the provider plugin zoo==1.0 ({endpoint}) ")
    assert FAILING[name][1] in message
    assert message.isprintable()
    assert len(message) < 600


@pytest.mark.parametrize(
    ("plugin_api", "problem"),
    [
        ("zoo.nothing", "failed: ModuleNotFoundError"),
        ("zoo.raises:nothing", "failed: AttributeError"),
        ("zoo.", "is not a valid plugin endpoint"),
        ("z" * 301, "is not a valid plugin endpoint"),
    ],
)
def test_endpoint_that_is_none(ask_zoo, plugin_api, problem):
    with pytest.raises(ProviderError, match=problem):
        ask_zoo(plugin_api)


def is_running(pid):
    """Return whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@LINUX_ONLY
def test_ends_by_itself_when_the_caller_is_killed(wheelhouse, clean_environ, tmp_path):
    log = tmp_path / "pids"
    wheelhouse.plugin(f"{OK}open({str(log)!r}, 'w').write(f'{{os.getpid()}}\\n')\ntime.sleep(600)")
    script = Path(__file__).with_name("ask_acme.py")
    caller = subprocess.Popen(
        [sys.executable, script, tmp_path / "cache", wheelhouse.path],
        env={**clean_environ, LOG: str(log), "TIME_LIMIT": "1"},
    )
    assert wait_until(lambda: log.exists() and log.read_text().strip(), 20)
    caller.kill()
    caller.wait()
    (pid,) = log.read_text().split()
    assert wait_until(lambda: not is_running(pid), 8.0)


def test_all_that_a_plugin_has(make_runner):
    runner = make_runner()
    provider = ProviderInfo(("acme-variant-provider",))
    assert runner.ask("acme", provider, {}).features == {"level": ("two", "one")}
    found = runner.ask_all("acme", provider, {})
    assert found.features == {"level": ("three", "two", "one")}
    assert runner.ask("acme", provider, {}).features == {"level": ("two", "one")}
