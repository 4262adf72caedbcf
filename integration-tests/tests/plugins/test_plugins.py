"""Real plugins in real environments: those that misbehave, and what becomes of them."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pep_variants.errors import ProviderError
from pep_variants.model.metadata import ProviderInfo
from support.waiting import wait_until
from variants_plugins import PluginRunner

LINUX_ONLY = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

HEAD = """\
import os, sys, time, subprocess
from collections import namedtuple
Config = namedtuple("Config", "name values multi_value", defaults=[False])
LEVELS = [Config("level", ["two", "one"])]
"""
OK = HEAD + "def get_supported_configs(): return LEVELS\n"

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
    return LEVELS
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
    "changes_variables": OK
    + "assert 'ACME_LEAK' not in os.environ\nos.environ['ACME_LEAK'] = '1'\nos.putenv('B', '2')\n",
    "writes_temporary": OK
    + """
import tempfile
with open(os.environ["ACME_VARIANT_PROVIDER_LOG"], "w") as log:
    log.write(tempfile.mkdtemp())
open("left", "w").close()
""",
}

# Module: its source, and what the error says.
FAILING = {
    "raises": (HEAD + "def get_supported_configs(): raise ValueError('no luck')", "no luck"),
    "exits_1": ("import os; os._exit(1)", "ended with status 1 and no answer"),
    "killed": ("import os; os.kill(os.getpid(), 11)", "ended with status -11 and no answer"),
    "broken": ("def", "failed: SyntaxError"),
    "returns_generator": (
        HEAD + "def get_supported_configs(): yield LEVELS[0]",
        "'<generator>', which is not a list",
    ),
    "returns_itself": (
        HEAD + "a = []\na.append(a)\ndef get_supported_configs(): return [Config('level', a)]",
        "failed: ValueError: Circular reference",
    ),
    "many_values": (
        HEAD + "def get_supported_configs(): return [Config('a', list(map(str, range(10**6))))]",
        "answered more than 1 MiB",
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
    files = {"zoo/__init__.py": "", **{f"zoo/{name}.py": source for name, source in LOUD.items()}}
    files |= {f"zoo/{name}.py": source for name, (source, _) in FAILING.items()}
    folder = type(wheelhouse)(zoo / "wheels")
    if not list(folder.path.iterdir()):
        folder.add("zoo", files)

    def ask(plugin_api, environ=None, **options):
        runner = PluginRunner(
            ["zoo"],
            folder.sources,
            cache_dir=zoo / "cache",
            environ={**clean_environ, **(environ or {})},
            # In the sandbox it could not write its log.
            **{"sandbox": "off" if environ else "auto", **options},
        )
        return runner.ask("acme", ProviderInfo(("zoo",), plugin_api), {})

    return ask


@pytest.mark.parametrize("name", LOUD)
def test_answers(ask_zoo, name, tmp_path, monkeypatch):
    (tmp_path / "trap.py").write_text("")
    monkeypatch.chdir(tmp_path)
    log = tmp_path / "log"
    answer = ask_zoo(
        f"zoo.{name}", {"ACME_VARIANT_PROVIDER_LOG": str(log), "PYTHONPATH": str(tmp_path)}
    )
    assert answer.features == {"level": ("two", "one")}
    assert answer.resolved == ("zoo==1.0",)
    assert answer.plugin_api == f"zoo.{name}"
    if name == "prints":
        lines = answer.stderr.splitlines()
        assert sorted(lines) == ["before", "from a program", "inside", '{"features": []}']
    if name == "writes_temporary":
        assert not Path(log.read_text()).exists()


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
        ("zoo.raises:__import__('os')", "is not a valid plugin endpoint"),
        ("zoo.", "is not a valid plugin endpoint"),
        ("zoo\n:x\ny(", "is not a valid plugin endpoint"),
        ("z" * 301, "is not a valid plugin endpoint"),
    ],
)
def test_endpoint_that_is_none(ask_zoo, plugin_api, problem):
    with pytest.raises(ProviderError, match=problem):
        ask_zoo(plugin_api)


# Those that have to be ended.

SLEEPER = """\
import os, sys, time, subprocess
log = os.environ["ACME_VARIANT_PROVIDER_LOG"]
def note(pid):
    with open(log, "a") as stream:
        stream.write(f"{pid}\\n")
note(os.getpid())
"""
TAIL = """
from collections import namedtuple
Config = namedtuple("Config", "name values")
def get_supported_configs(): return [Config("level", ["two", "one"])]
"""
FORK = """
child = os.fork()
if child == 0:
    SETUP
    note(os.getpid())
    time.sleep(600)
    os._exit(0)
while open(log).read().count("\\n") < 2:
    time.sleep(0.01)
"""
ENDED = {
    # name: source, whether it answers
    "ignores_signals": (
        SLEEPER + "import signal\nfor s in (1, 2, 3, 15): signal.signal(s, signal.SIG_IGN)\n"
        "while True: time.sleep(1)",
        False,
    ),
    "detaches_twice": (
        SLEEPER
        + FORK.replace(
            "SETUP", "os.setsid()\n    if os.fork(): os._exit(0)\n    os.closerange(0, 99)"
        )
        + TAIL,
        True,
    ),
    "starts_a_program": (
        SLEEPER + "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'],"
        " start_new_session=True)\nnote(p.pid)" + TAIL,
        True,
    ),
}


def is_running(pid):
    """Return whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@LINUX_ONLY
@pytest.mark.parametrize("name", ENDED)
def test_ended_with_all_it_started(wheelhouse, ask, tmp_path, name):
    source, answers = ENDED[name]
    wheelhouse.add("acme-variant-provider", {"acme_variant_provider.py": source}, "2.0")
    log = tmp_path / "pids"
    environ = {"ACME_VARIANT_PROVIDER_LOG": str(log)}
    if answers:
        # Long enough for a loaded machine.
        answer = ask(environ=environ, time_limit=60.0)
        assert answer.features == {"level": ("two", "one")}
    else:
        with pytest.raises(ProviderError, match=r"did not end within 1 s"):
            ask(environ=environ, time_limit=1.0)
    pids = log.read_text().split()
    assert len(pids) == (2 if answers else 1)
    assert wait_until(lambda: not any(map(is_running, pids)), 2.0)


@LINUX_ONLY
def test_ends_by_itself_when_the_caller_is_killed(wheelhouse, tmp_path):
    source = SLEEPER + "time.sleep(600)"
    wheelhouse.add("acme-variant-provider", {"acme_variant_provider.py": source}, "2.0")
    log = tmp_path / "pids"
    script = (
        "import sys\nfrom pathlib import Path\n"
        "from pep_variants.model.metadata import ProviderInfo\n"
        "from variants_plugins import PluginRunner, Sources\n"
        "runner = PluginRunner(['acme-variant-provider'], Sources(find_links=(sys.argv[1],), "
        "no_index=True), cache_dir=Path(sys.argv[2]), time_limit=1.0, sandbox='off')\n"
        "runner.ask('acme', ProviderInfo(('acme-variant-provider',)), {})\n"
    )
    caller = subprocess.Popen(
        [sys.executable, "-c", script, str(wheelhouse.path), str(tmp_path / "cache")],
        env={**os.environ, "ACME_VARIANT_PROVIDER_LOG": str(log)},
    )
    assert wait_until(lambda: log.exists() and log.read_text().strip(), 20)
    caller.kill()
    caller.wait()
    (pid,) = log.read_text().split()
    assert wait_until(lambda: not is_running(pid), 8.0)


# What the plugin gets, and what becomes of what it says.


def test_overrides_reach_it_and_credentials_do_not(wheelhouse, ask):
    wheelhouse.add(
        "acme-variant-provider",
        {
            "acme_variant_provider.py": TAIL
            + "import os\nassert 'ACME_TOKEN' not in os.environ, 'credentials'\n"
            "assert os.environ['LD_LIBRARY_PATH'] == '/opt/acme'\n"
            "def get_supported_configs():\n"
            "    return [Config('level', [os.environ['ACME_VARIANT_PROVIDER_FORCE_LEVEL']])]\n"
        },
        "2.0",
    )
    environ = {
        "ACME_TOKEN": "secret",
        "LD_LIBRARY_PATH": "/opt/acme",
        "ACME_VARIANT_PROVIDER_FORCE_LEVEL": "9",
    }
    assert ask(environ=environ).features == {"level": ("9",)}


def test_only_the_end_of_its_errors_is_kept(wheelhouse, ask):
    source = TAIL + "import sys\nsys.stderr.write('first\\n' + 'x' * 10**6 + '\\nlast\\n')\n"
    wheelhouse.add("acme-variant-provider", {"acme_variant_provider.py": source}, "2.0")
    answer = ask()
    assert answer.stderr.endswith("x\nlast\n")
    assert len(answer.stderr) <= 32 * 1024


def test_not_allowed(make_runner, tmp_path):
    runner = make_runner("other")
    provider = ProviderInfo(("acme-variant-provider>=1",))
    with pytest.raises(ProviderError, match="'acme-variant-provider>=1', which is not allowed"):
        runner.ask("acme", provider, {})
    assert runner.judge(provider, {}).requirement == "acme-variant-provider>=1"
    assert not (tmp_path / "cache").exists()


def test_nothing_heavy_is_imported_before_it_is_asked():
    script = (
        "import sys; before = set(sys.modules); from variants_plugins import PluginRunner; "
        "print(*set(sys.modules) - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    # platformdirs, and tempfile with it, says where the user's settings are.
    heavy = {"subprocess", "filelock", "packaging", "asyncio", "pip"}
    assert not heavy & set(done.stdout.split())
