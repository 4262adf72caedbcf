"""How uv gets the proxy of a command, and how its programs get the user's variables."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from pep_variants._formats import toml
from uv_variants import _launcher as launcher
from uv_variants import _uv_environment as uv_environment
from uv_variants._command_line import parse
from uv_variants._environments import variants_caches
from uv_variants._named_projects import CommandPlace
from uv_variants._session_settings import network_variables
from uv_variants._uv_environment import program_run, uv_variables

LAUNCHER = str(Path(launcher.__file__))
PROXY = "http://uv:secret@127.0.0.1:3"
ENVIRON = {
    "NO_PROXY": "*",
    "no_proxy": "corp.example",
    "https_proxy": "http://corp.example:3128",
    "SSL_CERT_FILE": "/etc/corp.pem",
    "HOME": "/home/me",
}


@pytest.fixture
def variables(tmp_path, monkeypatch):
    """Return a function from a command line to uv's variables and its file of the system level."""
    session = SimpleNamespace(proxy_url=PROXY, ca_file=Path("/ca.pem"), folder=tmp_path / "ours")

    def made(line, release=(0, 9, 23), **more):
        session.folder.mkdir()
        monkeypatch.setattr(uv_environment, "release_of", lambda *_: release)
        environ = {**ENVIRON, "XDG_CONFIG_DIRS": str(tmp_path / "etc"), **more}
        context = SimpleNamespace(
            uv="uv",
            cache=tmp_path,
            invocation=parse(line.split()),
            place=CommandPlace(tmp_path, tmp_path, environ),
        )
        state = SimpleNamespace(context=context, session=session, uv_cache=Path("/c"))
        found = uv_variables(state)
        file = session.folder / "uv" / "uv.toml"
        return found, toml.read_toml(file.read_text()) if file.exists() else None

    return made


posix = pytest.mark.skipif(os.name == "nt", reason="has variables there")


@posix
@pytest.mark.parametrize("system", ["", 'native-tls = true\nindex-url = "https://a.example"\n'])
def test_the_proxy_is_in_a_file(variables, tmp_path, system):
    """V10: no program that uv starts has the proxy or its token in its environment."""
    (tmp_path / "etc" / "uv").mkdir(parents=True)
    (tmp_path / "etc" / "uv" / "uv.toml").write_text(system)
    found, settings = variables("sync")
    assert found == {
        **ENVIRON,
        "SSL_CERT_FILE": "/ca.pem",
        "UV_CACHE_DIR": "/c",
        "XDG_CONFIG_DIRS": f"{tmp_path / 'ours'}:{tmp_path / 'etc'}",
    }
    assert settings == {"http-proxy": PROXY, "https-proxy": PROXY, **toml.read_toml(system)}


@pytest.mark.parametrize(
    ("line", "more", "system"),
    [
        ("sync", {"release": (0, 9, 22)}, ""),
        ("sync --no-config", {}, ""),
        ("sync", {"UV_CONFIG_FILE": "x.toml"}, ""),
        ("sync", {}, "broken"),
        ("sync", {}, 'no-proxy = ["a.example"]\n'),
    ],
)
def test_the_proxy_is_in_variables_where_files_do_not_count(
    variables, tmp_path, line, more, system
):
    (tmp_path / "etc" / "uv").mkdir(parents=True)
    (tmp_path / "etc" / "uv" / "uv.toml").write_text(system)
    found, settings = variables(line, **more)
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    assert {name for name in found if found[name] == PROXY} == {
        name for upper in names for name in (upper, upper.lower())
    }
    assert not {"NO_PROXY", "no_proxy"} & found.keys()
    assert (found["SSL_CERT_FILE"], found["UV_CACHE_DIR"]) == ("/ca.pem", "/c")
    assert settings is None


def planned(*arguments, cwd=Path()):
    context = SimpleNamespace(uv="/bin/uv", place=CommandPlace(cwd, cwd, {"A": "1"}))
    return program_run(context, arguments, {"A": "2"})


@pytest.fixture
def folder(tmp_path):
    for name in ("a.py", "b.PYC", "text", "package/__main__.py", "empty/other.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    (tmp_path / "metadata.py").write_text("# /// script\n# dependencies = []\n# ///\n")
    for name, content in (("archive", "__main__.py"), ("data.zip", "data")):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(content, "")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        *("run metadata.py x", "run archive", "run -", "run https://example.org/a"),
        *("run -qm mod", "run --script text", "run --with x", "tool run x"),
    ],
)
def test_what_uv_has_to_read_stays(folder, words):
    assert planned(*words.split(), cwd=folder) == (["/bin/uv", *words.split()], {"A": "2"})


@pytest.mark.parametrize("program", ["text", "empty", "data.zip", "c.py", "python3"])
@pytest.mark.parametrize("before", ["run", "run --", "run --with y -q"])
def test_programs_start_by_way_of_the_launcher(folder, before, program):
    command, _ = planned(*before.split(), program, "-c", "--", cwd=folder)
    again = ["/bin/uv", "run", "--no-project", "--", program, "-c", "--"]
    launched = [sys.executable, "-I", "-S", LAUNCHER, "program", *again]
    assert command == ["/bin/uv", *before.split(), *launched]


@pytest.mark.parametrize("script", ["a.py", "b.PYC", "package", "Python"])
def test_scripts_are_run_by_the_same_python(folder, script):
    command, _ = planned("run", "--", script, "-x", cwd=folder)
    python, rest = ("Python", []) if script == "Python" else ("python", [script])
    assert command == ["/bin/uv", "run", "--", python, "-I", "-S", LAUNCHER, "python", *rest, "-x"]


@pytest.mark.skipif(os.name == "nt", reason="the process is not replaced there")
@pytest.mark.parametrize("way", ["program", "python"])
def test_the_variables_are_restored(way, tmp_path):
    user = {**os.environ, "ODD": os.fsdecode(b"\xff;=\n"), "EMPTY": ""}
    user["LC_CTYPE"] = "C.UTF-8"  # Python sets it in the C locale
    own = {**user, "ODD": "x", "EMPTY": "x", "SECRET": "x"}
    own[launcher.STATE] = uv_environment._state_of(own, user)
    end = ["-c", "import os; print(*sorted(os.environb.items()), sep='\\0')"]
    more = ["program", "no-uv", "--", sys.executable] if way == "program" else ["python"]
    launched = [sys.executable, "-I", "-S", LAUNCHER, *more, *end]
    found = subprocess.run(launched, env=own, stdout=subprocess.PIPE, check=True)
    plain = subprocess.run([sys.executable, *end], env=user, stdout=subprocess.PIPE, check=True)
    assert found.stdout == plain.stdout


def test_the_cache_is_beside_that_of_plain_uv(tmp_path):
    assert variants_caches(tmp_path / "uv") == tmp_path / "uv-variants"
    assert variants_caches(tmp_path / "not" / "there" / "uv").name == "uv-variants"


def test_what_is_no_proxy_is_ignored_as_uv_does():
    """V10: a variable that is no URL, or of another kind."""
    given = {"HTTP_PROXY": ":::no url", "HTTPS_PROXY": "http://[", "ALL_PROXY": "ftp://127.0.0.1"}
    assert network_variables(given) == {}
    proxies = {"HTTP_PROXY": "127.0.0.1:3128", "ALL_PROXY": "socks4://127.0.0.1", "NETRC": "/n"}
    assert network_variables({**proxies, "NO_PROXY": "", "OTHER": "x"}) == proxies
