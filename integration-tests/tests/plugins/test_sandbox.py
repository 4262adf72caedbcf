"""What a running plugin can reach, and how much of the machine it gets."""

import ctypes
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from pep_variants._model.metadata import ProviderInfo
from pep_variants.errors import PluginFailed, ProviderError
from support.waiting import wait_until
from variants_plugins import _plugin_environment as plugin_environment
from variants_plugins import _sandbox as sandbox
from variants_plugins import runner
from variants_plugins.runner import PluginRunner

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits and sandbox of Linux")

HEAD = """\
import os, socket, subprocess, sys, time
from collections import namedtuple
Config = namedtuple("Config", "name values")
def get_supported_configs(): return [Config("said", [str(said).lower()])]
"""
CODE = "ACME_VARIANT_PROVIDER_CODE"
# In hexadecimal digits: paths that a variable names can be read.
GIVEN = HEAD + f"exec(bytes.fromhex(os.environ['{CODE}']), globals())\n"


@pytest.fixture(scope="module")
def measures():
    """Return what the kernel under the tests has."""
    if sys.platform != "linux":
        pytest.skip("limits and sandbox of Linux")
    done = subprocess.run(
        [sys.executable, "-I", "-B", sandbox.__file__], check=True, capture_output=True
    )
    return json.loads(done.stdout)


@pytest.fixture
def confined(measures):
    """Return what skips a test where the kernel lacks a measure."""

    def need(name):
        if name not in measures:
            pytest.skip(f"this kernel has nothing that restricts {name}")
        return measures[name]

    return need


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Where the plugin is that runs the code in a variable, and its environment."""
    return tmp_path_factory.mktemp("installed")


@pytest.fixture
def say(installed, wheelhouse, clean_environ, measures):
    """Return what runs code as a plugin, and returns its variable `said`."""
    house = type(wheelhouse)(installed / "wheels")
    if not list(house.path.iterdir()):
        house.plugin(GIVEN)

    def say(code, environ=None, **options):
        variables = {**clean_environ, **(environ or {}), CODE: code.encode().hex()}
        asked = PluginRunner(
            ["acme-variant-provider"],
            house.sources,
            cache_dir=installed / "cache",
            environ=variables,
            **options,
        )
        (said,) = asked.ask("acme", ProviderInfo(("acme-variant-provider",)), {}).features["said"]
        return said

    return say


@pytest.fixture
def refused(say, confined):
    """Return what checks that a plugin gets none of *codes* done."""

    def check(measure, *codes, before="", environ=None):
        confined(measure)
        code = f"""{before}
left = []
for number, code in enumerate({codes!r}):
    try:
        exec(code, globals())
        left.append(f"{{number}}_done")
    except PermissionError:
        pass
    except OSError as error:
        left.append(f"{{number}}_{{type(error).__name__}}")
said = ".".join(left)[:60] or "refused"
"""
        assert say(code, environ) == "refused"

    return check


@pytest.fixture
def other():
    """Another process of the user."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


# --- files


def test_files_of_the_user_cannot_be_read(say, refused, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("x")
    refused("files", f"open({str(secret)!r}).read()", f"os.listdir({str(tmp_path)!r})")
    program = f"subprocess.run(['cat', {str(secret)!r}], check=False).returncode"
    assert say(f"said = {program} != 0 and not os.listdir(os.path.expanduser('~'))") == "true"


@pytest.mark.skipif(not os.access("/etc/shadow", os.R_OK), reason="this user cannot read it")
def test_what_not_every_user_may_read_cannot_be_read(say, refused):
    """Root owns such files and needs no capability for them."""
    refused("files", "open('/etc/shadow').read()")
    assert say("said = 'root' in open('/etc/passwd').read()") == "true"


def test_programs_in_the_home_cannot_be_read(refused, tmp_path):
    program = tmp_path / "home/bin/program"
    program.parent.mkdir(parents=True)
    program.write_text("x")
    environ = {"HOME": str(tmp_path / "home"), "PATH": f"{program.parent}:/usr/bin:/bin"}
    codes = (f"open({str(program)!r})", f"os.listdir({str(program.parent)!r})")
    works = "assert subprocess.run(['true']).returncode == 0"
    refused("files", *codes, before=works, environ=environ)


def test_the_ways_out_of_the_sandbox(say, confined, tmp_path):
    """A plugin that needs more says so in an error; a file that a variable names can be read."""
    confined("files")
    needed = tmp_path / "needed"
    needed.write_text("fine")
    code = f"said = open({str(needed)!r}).read()"
    with pytest.raises(PluginFailed, match="in a sandbox; --variant-plugin-sandbox off runs it"):
        say(code)
    assert say(code, sandbox="off") == "fine"
    code = "said = open(os.environ['ACME_VARIANT_PROVIDER_DATA']).read()"
    assert say(code, {"ACME_VARIANT_PROVIDER_DATA": str(needed)}) == "fine"


CHANGES = (
    "open(place + '/new', 'w')",
    "open(place + '/file', 'a')",
    "os.truncate(place + '/file', 0)",
    "os.unlink(place + '/file')",
    "os.mkdir(place + '/new')",
    "os.rename(place + '/file', place + '/new')",
    "os.symlink('/', place + '/new')",
    "os.chmod(place + '/file', 0o777)",
    "os.setxattr(place + '/file', 'user.x', b'x')",
    "os.utime(place + '/file', (0, 0))",
    "with open(__file__) as stream: os.utime(stream.fileno())",
    "open(sys.prefix + '/new', 'w')",
    "open('/dev/shm/new', 'w')",
    "open('/tmp/new', 'w')",
)


def test_nothing_outside_is_changed(refused, confined, tmp_path):
    confined("files")
    place = tmp_path / "place"
    place.mkdir()
    (place / "file").write_text("kept")
    status = (place / "file").stat()
    refused("system calls", *CHANGES, before=f"place = {str(place)!r}")
    assert [path.name for path in place.iterdir()] == ["file"]
    assert (place / "file").read_text() == "kept"
    now = (place / "file").stat()
    assert (now.st_mode, now.st_mtime_ns) == (status.st_mode, status.st_mtime_ns)


def test_whatever_it_leaves_is_removed(say, tmp_path, monkeypatch):
    """Directories of any depth, without rights, and links, which are not followed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    place = tmp_path / "place"
    place.mkdir()
    (place / "file").write_text("kept")
    place.chmod(0o755)
    code = (
        f"os.symlink({str(place)!r}, 'link')\n"
        "os.mkdir('closed'); os.mkdir('closed/inner')\n"
        f"os.symlink({str(place)!r}, 'closed/link')\n"
        "os.umask(0o777); os.mkdir('without'); os.umask(0o77)\n"
        "import tempfile\nopen(tempfile.mkdtemp() + '/x', 'w').write('x')\n"
        "for _ in range(1200): os.mkdir('d'); os.chdir('d')\n"
        "said = 1"
    )
    assert say(code) == "1"
    assert sorted(path.name for path in tmp_path.glob("pep-variants-*")) == []
    assert (place / "file").read_text() == "kept"
    assert place.stat().st_mode & 0o777 == 0o755


# --- network and other processes


@pytest.fixture
def listening():
    """Return a port of loopback that accepts connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_there_is_no_network(refused, listening, tmp_path):
    """Nor a way to services of the machine, such as a container engine's, which is root."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        refused(
            "system calls",
            f"socket.create_connection(('127.0.0.1', {listening}), 2)",
            "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 53))",
            "socket.socket(socket.AF_INET6, socket.SOCK_STREAM)",
            "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
            "socket.create_server(('127.0.0.1', 0))",
            "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)",
            f"socket.socket(socket.AF_UNIX).connect({str(path)!r})",
        )


def test_each_measure_against_the_network_is_enough(measures, listening):
    """Where a container engine refuses namespaces, the other two do it."""
    code = (
        "import importlib.util as u, os, socket, sys\n"
        f"spec = u.spec_from_file_location('s', {sandbox.__file__!r})\n"
        "s = u.module_from_spec(spec); spec.loader.exec_module(s)\n"
        "for name in ('_unshare', '_landlock', '_seccomp'):\n"
        "    if name != sys.argv[1]: setattr(s, name, lambda *_: 0)\n"
        "s.confine('/dev/null', ['/root'])\n"
        "try: socket.create_connection(('127.0.0.1', int(sys.argv[2])), 2)\n"
        "except OSError: sys.exit(7)\n"
    )
    words = {"_unshare": "network namespace", "_landlock": "Landlock", "_seccomp": "seccomp"}
    names = [name for name, word in words.items() if word in measures.get("network", "")]
    if not names:
        pytest.skip("this kernel has nothing that restricts the network")
    for name in names:
        done = subprocess.run([sys.executable, "-c", code, name, str(listening)], check=False)
        assert done.returncode == 7, name


def test_other_processes_are_out_of_reach(refused, other):
    refused("signals", f"os.kill({other.pid}, 9)", "os.kill(os.getppid(), 9)")
    assert other.poll() is None


def test_other_processes_are_not_changed(say, refused, other):
    """A limit of no CPU time kills without a signal of the plugin."""
    before = os.sched_getscheduler(other.pid), os.getpriority(os.PRIO_PROCESS, other.pid)
    refused(
        "system calls",
        "resource.prlimit(PID, resource.RLIMIT_CPU, (0, 0))",
        "resource.prlimit(PID, resource.RLIMIT_NOFILE)",
        "os.sched_setaffinity(PID, {0})",
        "os.sched_setscheduler(PID, os.SCHED_IDLE, os.sched_param(0))",
        "os.sched_setparam(PID, os.sched_param(0))",
        "os.setpriority(os.PRIO_PROCESS, PID, 19)",
        "os.setpriority(os.PRIO_USER, 0, 19)",
        before=f"import resource\nPID = {other.pid}",
    )
    after = os.sched_getscheduler(other.pid), os.getpriority(os.PRIO_PROCESS, other.pid)
    assert after == before
    limit = resource.getrlimit(resource.RLIMIT_CPU)
    assert resource.prlimit(other.pid, resource.RLIMIT_CPU) == limit
    own = "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (50, 50))\n"
    own += "os.sched_setaffinity(0, os.sched_getaffinity(0))\n"
    assert say(own + "said = resource.getrlimit(resource.RLIMIT_NOFILE)[0]") == "50"


def test_other_processes_are_not_read(refused):
    """Command lines have passwords in URLs."""
    reads = [
        f"{'os.listdir' if name in ('task', '') else 'open'}({way + path + name!r})"
        for path in (f"/proc/{os.getpid()}/",)
        for name in ("cmdline", "comm", "status", "environ", "maps", "task", "")
        for way in ("", "/proc/self/root", "/proc/self/cwd/../../..")
    ]
    refused("files", *reads, "os.listdir('/proc')")


def test_the_machine_and_the_own_process_are_read(say, refused):
    """Of devices the names, but not disks, which root could read, and terminals."""
    refused("files", "open('/dev/ptmx', 'rb')")
    names = [
        name
        for name in ("cpuinfo", "devices", "driver", "meminfo", "modules", "self", "sys/kernel")
        if Path("/proc", name).exists()
    ]
    code = "def read(path):\n"
    code += "    return os.listdir(path) if os.path.isdir(path) else open(path).read()\n"
    code += f"for name in {names!r}: read('/proc/' + name)\n"
    code += "read('/proc/mounts'); read('/proc/self/maps')\n"
    code += "assert 'null' in os.listdir('/dev') and len(open('/dev/urandom', 'rb').read(4)) == 4\n"
    assert say(code + "said = read('/proc/thread-self/comm').strip()") == "python"


def test_shared_memory_of_others_is_not_reached(say, measures):
    """System V segments belong to a user, not to a process: screens are drawn in them."""
    if "namespace" not in measures.get("network", ""):
        pytest.skip("this kernel has no namespaces for plugins")
    libc = ctypes.CDLL(None, use_errno=True)
    segment = libc.shmget(0, 4096, 0o1600)
    assert segment >= 0, os.strerror(ctypes.get_errno())
    try:
        code = "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.shmat.restype = ctypes.c_long\n"
        assert say(code + f"said = libc.shmat({segment}, None, 0o10000) == -1") == "true"
    finally:
        libc.shmctl(segment, 0, None)


def test_names_in_the_home_are_not_watched(say, confined, tmp_path):
    """Landlock does not know of inotify, which tells the names of files that change."""
    confined("system calls")
    code = (
        "import ctypes\nlibc = ctypes.CDLL(None)\nfd = libc.inotify_init1(0)\n"
        f"said = libc.inotify_add_watch(fd, {str(tmp_path).encode()!r}, 0x100) == -1"
    )
    assert say(code) == "true"


def test_datagrams_do_not_reach_services(say, refused):
    """A datagram needs no connection: the system's log and service manager take them."""
    # Not in the test's temporary directory, whose path may be too long for a socket.
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server,
    ):
        server.bind(f"{folder}/s")
        server.setblocking(False)
        sent = f".sendto(b'x', {server.getsockname()!r})"
        refused(
            "system calls",
            f"socket.socket(socket.AF_UNIX, socket.SOCK_RAW){sent}",
            f"socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0]{sent}",
        )
        with pytest.raises(BlockingIOError):
            server.recv(1)
    assert say("a, b = socket.socketpair(); a.send(b'x'); said = b.recv(1).decode()") == "x"


def test_root_has_no_capabilities(say, confined):
    confined("files")
    code = "said = [l for l in open('/proc/self/status') if l.startswith('CapEff')][0].split()[1]"
    assert int(say(code), 16) == 0


@pytest.mark.parametrize("owner", ["acme-variant-provider", "acme-core"])
def test_code_that_runs_at_the_start_of_python_is_confined(
    wheelhouse, ask, confined, tmp_path, owner
):
    """``.pth`` files run before any module is imported: of the plugin, and of dependencies."""
    confined("files")
    trace = tmp_path / "trace"
    start = f"import builtins, pathlib; builtins.ran = True; pathlib.Path({str(trace)!r}).touch()\n"
    started = {"start.pth": start}
    wheelhouse.add("acme-core", started if owner == "acme-core" else {})
    own = started if owner == "acme-variant-provider" else {}
    wheelhouse.plugin(HEAD + "said = ran", files=own, requires=("acme-core",))
    assert ask().features == {"said": ("true",)}
    assert not trace.exists()


def test_measures_are_told(make_runner, measures):
    assert make_runner().measures() == measures
    assert make_runner(sandbox="off").measures() == {}


@LINUX
def test_a_python_in_the_home_directory(monkeypatch, tmp_path):
    """Of a home only the Python and what variables name are readable, and of PATH nothing."""
    home = tmp_path / "home"
    for name in ("python/bin", "python/lib", "tools", ".ssh"):
        (home / name).mkdir(parents=True)
    for name in ("prefix", "base_prefix", "exec_prefix", "base_exec_prefix"):
        monkeypatch.setattr(sys, name, str(home / "python"))
    monkeypatch.setattr(sys, "executable", str(home / "python/bin/python"))
    path = os.pathsep.join(["/usr/bin", str(home / "tools"), str(home), "/", "relative"])
    programs = os.pathsep.join(["/usr/bin", str(home / "bin"), str(tmp_path / "bin")])
    (home / "bin").mkdir()
    (tmp_path / "bin").mkdir()
    environ = {"LD_LIBRARY_PATH": path, "PATH": programs, "HOME": str(home)}
    monkeypatch.setattr(os, "environ", environ)
    found = set(sandbox.readable([str(home)]))
    assert {str(home / "python"), str(home / "tools"), str(tmp_path / "bin")} <= found
    assert not {str(home), str(home / ".ssh"), str(home / "bin")} & found
    assert not {str(tmp_path), "/", "/tmp", "/proc", "/etc"} & found
    # A home below a directory of the system.
    monkeypatch.setattr(sandbox, "SYSTEM", (str(tmp_path),))
    (tmp_path / "library").mkdir()
    found = set(sandbox.readable([str(home)]))
    assert str(tmp_path / "library") in found
    assert not {str(home), str(tmp_path), str(home / ".ssh")} & found


# --- limits


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("said = 'x' * 2**29", "failed: MemoryError"),
        ("import mmap\nm = mmap.mmap(-1, 2**30)\nfor p in range(0, 2**30, 4096): m[p] = 1",
         "used more than 256 MiB of memory"),
        ("for _ in range(100): subprocess.Popen(['sleep', '60'])", "more than 64 processes"),
        ("open('x', 'w').truncate(2**30)", "File too large"),
        ("while True: pass", "did not end within 1 s"),
    ],
)  # fmt: skip
def test_limits(say, code, problem, monkeypatch):
    monkeypatch.setattr(runner.limits, "PLUGIN_MEMORY_BYTES", 256 * 2**20)
    with pytest.raises(PluginFailed, match=problem):
        say(code + "\nsaid = 1", time_limit=1 if code.startswith("while") else 30)


def test_a_fork_bomb(say):
    def drivers():
        found = set()
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                found |= {path} if b"_driver.py" in path.read_bytes() else set()
        return found

    before = drivers()
    with pytest.raises(PluginFailed):
        say("while True:\n    try: os.fork()\n    except OSError: pass", time_limit=1)
    assert wait_until(lambda: not drivers() - before, 5)


@pytest.mark.parametrize("answers", [True, False])
def test_a_daemon_without_the_mark_is_ended(say, answers):
    """It has a session, parent and environment of its own, and ignores signals like the plugin."""
    code = (
        "import signal\nfor each in (1, 2, 3, 15): signal.signal(each, signal.SIG_IGN)\n"
        "r, w = os.pipe()\n"
        "if not os.fork():\n"
        "    os.setsid()\n"
        "    if os.fork(): os._exit(0)\n"
        "    os.write(w, str(os.getpid()).encode()); os.closerange(0, 99)\n"
        "    os.execve('/bin/sleep', ['sleep-of-the-daemon', '611'], {})\n"
        "said = os.read(r, 20).decode()\n"
        + ("" if answers else "print(said, flush=True)\ntime.sleep(600)\n")
    )
    if answers:
        pid = say(code)
    else:
        with pytest.raises(PluginFailed, match="did not end") as caught:
            say(code, time_limit=1)
        pid = caught.value.output
    assert pid.isdigit()
    assert wait_until(lambda: not Path(f"/proc/{pid}").exists(), 3)


def test_address_space_may_be_reserved(say):
    """GPU runtimes map what they never touch: terabytes of it."""
    code = "import mmap\nm = mmap.mmap(-1, 2**42, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE"
    assert say(code + " | mmap.MAP_ANONYMOUS | 0x4000)\nsaid = len(m)") == str(2**42)


# --- endpoints


def test_endpoints_of_others_are_not_imported(wheelhouse, ask):
    """Of the environment the allowed distribution alone is asked, whatever metadata names."""
    core = {
        "acme_core/__init__.py": HEAD + "said = 'core'\nprint('ran')",
        "shared/evil.py": HEAD + "print('ran')\nsaid = 1",
    }
    wheelhouse.add("acme-core", core)
    files = {
        "shared/own.py": HEAD + "said = 'shared'",
        "bomb.py": HEAD + "class Bomb:\n  def __init__(self): print('ran')\nsaid = 1",
    }
    source = HEAD + "import os, acme_core\nsaid = 'own'"
    wheelhouse.plugin(source, files=files, requires=("acme-core",))
    for plugin_api, named in (
        ("antigravity", "antigravity"),
        ("json.tool", "json"),
        ("sys", "sys"),
        ("acme_core", "acme_core"),
        ("acme_core:x", "acme_core"),
        ("shared.evil", "shared.evil"),
        ("acme_variant_provider:os", "os is a module"),
        ("acme_variant_provider:acme_core", "acme_core is a module"),
    ):
        with pytest.raises(PluginFailed, match="cannot be used: ") as caught:
            ask(plugin_api=plugin_api)
        assert named in caught.value.cause
        own = plugin_api.startswith("acme_variant_provider")
        assert own or "ran" not in caught.value.output
    # A namespace package that both have a part of has no code of its own.
    assert ask(plugin_api="shared.own").features == {"said": ("shared",)}
    # No instance is made of what is no plugin.
    with pytest.raises(PluginFailed, match="AttributeError") as caught:
        ask(plugin_api="bomb:Bomb")
    assert not caught.value.output


def test_a_parent_package_of_another_is_not_imported(wheelhouse, ask):
    """Importing ``a.b`` runs ``a``, which has to be the distribution's own as well."""
    wheelhouse.add("acme-core", {"a/__init__.py": "print('ran')"})
    files = {"a/plugin.py": HEAD + "said = 1"}
    wheelhouse.plugin(files=files, requires=("acme-core",))
    with pytest.raises(PluginFailed, match="a is not a module of acme-variant-provider") as caught:
        ask(plugin_api="a.plugin")
    assert not caught.value.output


# --- namespaces and numbers


def test_built_in_namespaces_are_claimed_by_the_plugin_only(wheelhouse, make_runner):
    """Metadata cannot have an allowed plugin answer for the processor."""
    provider = ProviderInfo(("acme-variant-provider",))
    with pytest.raises(ProviderError, match="does not say that it is for 'x86_64'"):
        make_runner().ask("x86_64", provider, {})
    wheelhouse.plugin(wheelhouse.acme + "namespace = 'x86_64'\n")
    own = ProviderInfo(("acme-variant-provider>=2",))
    assert make_runner().ask("x86_64", own, {}).features == {"level": ("two", "one")}


def test_many_at_once(say):
    """Threads of one process ask side by side."""
    said = []
    threads = [threading.Thread(target=lambda: said.append(say("said = 1"))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == ["1"] * 3


def test_metadata_cannot_have_any_number_of_environments_made(make_runner, monkeypatch):
    """Each other set of requirements is another environment, of hundreds of files."""
    monkeypatch.setattr(plugin_environment.limits, "PLUGIN_ENVIRONMENTS", 1)
    asked = make_runner()
    asked.ask("acme", ProviderInfo(("acme-variant-provider>=0.1",)), {})
    with pytest.raises(PluginFailed, match="more than 1 different sets of plugin packages"):
        asked.ask("acme", ProviderInfo(("acme-variant-provider>=0.2",)), {})
    # What is there already is no further one.
    asked.ask("acme", ProviderInfo(("acme-variant-provider>=0.1",)), {})
