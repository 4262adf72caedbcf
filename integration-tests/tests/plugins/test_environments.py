"""Plugin environments: how they are made, by how many at once, and what may happen to them."""

import hashlib
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest

from pep_variants._model.metadata import ProviderInfo
from pep_variants.errors import ProviderError
from pep_variants.preferences import Sources
from support.index import Index, served
from support.waiting import wait_until
from variants_plugins._plugin_environment import RECORD
from variants_plugins._variables import installer_variables
from variants_plugins.runner import PluginRunner

HERE = Path(__file__).parent
UV = shutil.which("uv", path=sysconfig.get_path("scripts")) or shutil.which("uv")
needs_uv = pytest.mark.skipif(UV is None, reason="there is no uv")

LEVELS = {"level": ("two", "one")}
PROGRAMS = "/usr/bin:/bin"
with_or_without_uv = pytest.mark.parametrize(
    "path", [pytest.param(f"{Path(UV or '').parent}:{PROGRAMS}", marks=needs_uv), PROGRAMS],
    ids=["uv", "pip"],
)  # fmt: skip


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def cache(tmp_path):
    """Return the cache directory of the test's runners."""
    return tmp_path / "cache"


@pytest.fixture
def environments(cache):
    """Return what lists the environments that are there, and what was left of others."""

    def listed():
        paths = (cache / "environments").iterdir() if cache.exists() else ()
        return sorted(path for path in paths if path.is_dir())

    return listed


@pytest.fixture
def script(cache, wheelhouse, clean_environ, shared_python):
    """Return what starts a process that asks acme, with a Python that has no uv beside it."""

    def start(*allow, python=shared_python, **environ):
        return subprocess.Popen(
            [python, HERE / "ask_acme.py", cache, wheelhouse.path, *allow],
            env={**clean_environ, "PATH": PROGRAMS, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return start


def result(process):
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    return json.loads(output)


@pytest.fixture
def logging_uv(tmp_path):
    """Return a directory with a uv that notes how it is called, and the notes."""
    log, variables = tmp_path / "uv.log", tmp_path / "uv.env"
    folder = tmp_path / "bin"
    folder.mkdir()
    uv = folder / "uv"
    uv.write_text(f'#!/bin/sh\necho "$@" >> {log}\nenv > {variables}\nexec {UV} "$@"\n')
    uv.chmod(0o755)
    return folder, log, variables


# Making one.


@needs_uv
def test_uv_makes_it_once(script, logging_uv, environments):
    folder, log, variables = logging_uv
    path = f"{folder}:{PROGRAMS}"
    first = result(script(PATH=path, UV_INDEX_URL="https://x.example", PYTHONPATH="/x"))
    assert first["features"] == {"level": ["two", "one"]}
    assert first["resolved"] == ["acme-variant-provider==1.0"]
    calls = log.read_text().splitlines()
    assert [call.split()[:2] for call in calls] == [["venv", "--quiet"], ["pip", "install"]]
    assert "--only-binary :all:" in calls[1]
    assert "--link-mode copy" in calls[1]
    seen = variables.read_text().splitlines()
    assert "PIP_NO_VARIANTS=1" in seen
    assert "UV_NO_CONFIG=1" in seen
    assert not [line for line in seen if line.startswith(("UV_INDEX_URL", "PYTHON"))]
    # Other variables, another answer, the same environment.
    second = result(script(PATH=path, ACME_VARIANT_PROVIDER_LEVELS="three"))
    assert second["features"] == {"level": ["three"]}
    assert len(log.read_text().splitlines()) == 2
    (environment,) = environments()
    # What runs later cannot write bytecode.
    assert list(environment.glob("**/acme_variant_provider/__pycache__/__init__.*.pyc"))


@pytest.mark.parametrize("old", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_venv_brings_pip_where_there_is_none(script, tmp_path, make_python, old):
    """Or one before 22.3, which cannot be run in another Python."""
    pytest.importorskip("ensurepip")
    python = make_python(tmp_path / "python", pip=False)
    if old:
        (tmp_path / "python/libraries/pip").mkdir()
        (tmp_path / "python/libraries/pip/__init__.py").write_text("raise SystemExit(9)")
    assert result(script(python=python))["resolved"] == ["acme-variant-provider==1.0"]


def test_several_indexes_without_uv(ask, monkeypatch):
    monkeypatch.setattr("variants_plugins._installer._find_uv", lambda _: None)
    sources = Sources("https://a.invalid", ("https://b.invalid",))
    with pytest.raises(ProviderError, match="needs uv: install uv, or configure one index"):
        ask(sources=sources)


@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_settings_of_indexes_are_of_a_form_that_installers_take(
    wheelhouse, tmp_path, clean_environ, tool
):
    """They would end with an error for a value that they cannot read."""
    settings = {
        "timeout": 0.5,
        "trusted_hosts": ("a.example", "b.example:8443", "[::1]:80"),
        "proxy": "http://me:pw@127.0.0.1:9",
        "keyring": True,
        "index_strategy": "unsafe-best-match",
        "extra_index_urls": ("https://127.0.0.1:9/a b/", "file:///nowhere"),
        "cert": str(tmp_path),
    }
    sources = Sources(**{**vars(wheelhouse.sources), **settings})
    command, variables = {
        "uv": ([UV, "pip", "install", "--python", sys.executable], sources.for_uv),
        "pip": ([sys.executable, "-m", "pip", "install"], sources.for_pip),
    }[tool]
    done = subprocess.run(
        [*command, "--dry-run", "--no-index", "acme-variant-provider"],
        env={**installer_variables(clean_environ), **variables()},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(r"acme-variant-provider(==|-)1\.0", done.stdout + done.stderr)


@with_or_without_uv
def test_no_dependency_is_built_from_source(wheelhouse, script, tmp_path, path):
    """Nor one that the plugin names by its URL, to which pip does not apply ``--only-binary``."""
    trace, source = tmp_path / "built", tmp_path / "acme_source-1.0"
    # A build that needs nothing: whatever builds it, it runs.
    for name, text in {
        "PKG-INFO": "Metadata-Version: 2.1\nName: acme-source\nVersion: 1.0\n",
        "pyproject.toml": "[build-system]\nrequires = []\n"
        "build-backend = 'backend'\nbackend-path = ['.']\n",
        "backend.py": f"open({str(trace)!r}, 'w').close()\n",
    }.items():
        source.mkdir(exist_ok=True)
        (source / name).write_text(text)
    archived = wheelhouse.path / "acme_source-1.0.tar.gz"
    with tarfile.open(archived, "w:gz") as archive:
        archive.add(source, source.name)
    wheelhouse.plugin(requires=(f"acme-source @ {archived.as_uri()}",))
    failed = script(PATH=path)
    output, _ = failed.communicate(timeout=60)
    assert not trace.exists()
    assert failed.returncode == 3, output
    assert path != PROGRAMS or "installed from wheels only" in output


@with_or_without_uv
def test_installing_runs_nothing_of_what_is_installed(wheelhouse, script, tmp_path, path):
    """``.pth`` files run wherever the environment's Python starts, which installers do."""
    trace = tmp_path / "ran"
    start = f"import os; open({str(trace)!r}, 'w').close()\n"
    wheels = {
        "zebra==3": wheelhouse.add("zebra", {"zebra.pth": start}, "3"),
        "base==2": wheelhouse.add("base", {"base.pth": start}, "2", requires=("zebra",)),
        "acme-variant-provider==2.0": wheelhouse.plugin(
            files={"acme.pth": start}, requires=("base",)
        ),
    }
    allow = [f"{pin} --hash=sha256:{sha256(wheel)}" for pin, wheel in wheels.items()]
    # Nor is what uv knows of the interpreter kept.
    started = script(*(allow if path == PROGRAMS else ()), PATH=path, UV_NO_CACHE="1")
    resolved = result(started)["resolved"]
    ran = trace.exists()
    assert resolved == ["acme-variant-provider==2.0", "base==2", "zebra==3"]
    assert not ran


def test_url_of_a_wheel(wheelhouse, ask, tmp_path):
    elsewhere = type(wheelhouse)(tmp_path / "elsewhere")
    wheel = elsewhere.plugin(version="7.0")
    allowed = f"acme-variant-provider @ {wheel.as_uri()}"
    answer = ask(allowed, requires=("acme-variant-provider>=7",))
    assert answer.resolved == ("acme-variant-provider==7.0",)
    hashed = f"{allowed} --hash=sha256:{sha256(wheel)}"
    assert ask(hashed, requires=(allowed,)).resolved == answer.resolved
    with pytest.raises(ProviderError, match=r"is version 7\.0, but its provider requires <7"):
        ask(allowed, requires=("acme-variant-provider<7",))
    # The same URL with another file behind it is another environment.
    elsewhere.plugin(wheelhouse.acme.replace("level", "rank"), "7.0")
    assert list(ask(allowed, requires=("acme-variant-provider>=7",)).features) == ["rank"]


# Hashes.


def test_hashes(wheelhouse, ask):
    more = ("base>=1", "other ; extra == 'more'", "other ; python_version < '3'")
    acme = wheelhouse.plugin(f"import base\n{wheelhouse.acme}", requires=more, extras=("more",))
    base = wheelhouse.add("base", version="2")
    allowed = f"acme-variant-provider==2.0 --hash=sha256:{sha256(acme)}"
    with pytest.raises(ProviderError, match="depends on base: as it is allowed with a hash, allow"):
        ask(allowed)
    old = f"base==0.5 --hash=sha256:{sha256(wheelhouse.add('base', version='0.5'))}"
    with pytest.raises(ProviderError, match=r"depends on base>=1, but 0\.5 is allowed"):
        ask(allowed, old)
    both = allowed, f"base==2 --hash=sha256:{'0' * 64} --hash=sha256:{sha256(base)}"
    assert ask(*both).resolved == ("acme-variant-provider==2.0", "base==2")
    # Another file under the same name and version.
    wheelhouse.plugin("other = 1")
    with pytest.raises(
        ProviderError, match=r"cannot install acme-variant-provider==2\.0"
    ) as caught:
        ask(*both)
    assert "hash" in str(caught.value).lower()


# Being many, and being killed.


@needs_uv
def test_many_at_once_make_it_once(script, environments, logging_uv):
    folder, calls, _ = logging_uv
    started = [script(PATH=f"{folder}:{PROGRAMS}") for _ in range(4)]
    answers = [result(process) for process in started]
    assert all(answer["features"] == {"level": ["two", "one"]} for answer in answers)
    assert len(environments()) == 1
    assert len(calls.read_text().splitlines()) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@needs_uv
def test_killed_while_making_it(script, ask, tmp_path, environments):
    reached = tmp_path / "reached"
    folder = tmp_path / "hanging"
    folder.mkdir()
    uv = folder / "uv"
    # Does its work, then hangs: all is there but what comes last.
    uv.write_text(
        f'#!/bin/sh\n{UV} "$@" || exit\n'
        f'if [ "$1" = pip ]; then echo $$ > {reached}.tmp; mv {reached}.tmp {reached}; '
        "exec sleep 600; fi\n"
    )
    uv.chmod(0o755)
    process = script(PATH=f"{folder}:{PROGRAMS}")
    assert wait_until(reached.exists)
    process.kill()
    process.wait()
    process.stdout.close()
    os.kill(int(reached.read_text()), signal.SIGKILL)
    (left,) = environments()
    assert left.name.startswith(".")
    assert ask().features == LEVELS
    (environment,) = environments()
    assert not environment.name.startswith(".")
    assert left != environment
    assert not left.exists()


# What may happen to one later.


def module(environment):
    (path,) = environment.glob("lib/**/acme_variant_provider/__init__.py")
    return path


DAMAGES = {
    "edited, same size": lambda e: module(e).write_text(module(e).read_text().replace("t", "u")),
    "added": lambda e: (module(e).parent.parent / "sitecustomize.py").write_text("raise"),
    "no interpreter": lambda e: (e / "bin" / "python").unlink(),
    "record of wrong types": lambda e: (e / RECORD).write_text(
        (e / RECORD).read_text().replace('"resolved": [', '"resolved": [1, ')
    ),
    "a file": lambda e: (shutil.rmtree(e), e.write_text("")),
    "the locks gone": lambda e: [path.unlink() for path in e.parent.glob("*.lock")],
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged(ask, environments, name):
    ask()
    (environment,) = environments()
    before = (environment / RECORD).read_text()
    DAMAGES[name](environment)
    answer = ask(environ={"ACME_VARIANT_PROVIDER_LEVELS": "three"})
    assert answer.features == {"level": ("three",)}
    assert environments() == [environment]
    kept = (environment / RECORD).read_text() == before
    assert kept == (name == "the locks gone")


def test_what_makes_another_environment(wheelhouse, ask, environments):
    ask()
    ask("acme-variant-provider>=1")
    assert len(environments()) == 2
    # A wheel that was built again, under the same version.
    wheelhouse.plugin(wheelhouse.acme.replace("level", "rank"), "1.0")
    assert list(ask().features) == ["rank"]
    assert len(environments()) == 3
    # What is of no consequence.
    wheelhouse.add("unrelated")
    ask("acme-variant-provider", "unrelated", requires=("Acme_Variant.Provider",))
    assert len(environments()) == 3


# The cache directory.


def test_where_it_is(wheelhouse, clean_environ, tmp_path):
    place = tmp_path / "elsewhere"
    runner = PluginRunner(
        ["acme-variant-provider"], wheelhouse.sources,
        environ={**clean_environ, "VARIANTS_CACHE_DIR": str(place)},
    )  # fmt: skip
    runner.ask("acme", ProviderInfo(("acme-variant-provider",)), {})
    (environment,) = runner.cached()
    assert environment.path.parents[1] == place / "plugins"
    assert place.joinpath("plugins").stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="POSIX permissions")
def test_others_must_not_be_able_to_write(ask, cache):
    ask()
    (cache / "environments").chmod(0o777)
    with pytest.raises(ProviderError, match="can be changed by other users: run chmod"):
        ask(environ={"ACME_VARIANT_PROVIDER_LEVELS": "three"})


def test_no_directory(ask, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ProviderError, match=r"cannot be used: .*: set VARIANTS_CACHE_DIR"):
        ask(cache_dir=tmp_path / "file/below")


# Credentials.

USER, PASSWORD = "me", "s3cr3t-p4ssw0rd"


@pytest.fixture
def index(wheelhouse):
    """Return the URL, with credentials, of an index that has acme."""
    index = Index(credentials=f"{USER}:{PASSWORD}")
    for wheel in wheelhouse.path.iterdir():
        index.add("acme-variant-provider", wheel.name, wheel.read_bytes())
    with served(index):
        yield index.url.replace("://", f"://{USER}:{PASSWORD}@")


def test_credentials_stay_out_of_sight(index, ask, cache, caplog):
    caplog.set_level(logging.DEBUG)
    sources = Sources(index_url=index)
    assert ask(sources=sources).features == LEVELS
    with pytest.raises(ProviderError) as caught:
        ask("other", requires=("other",), sources=sources)
    wrong = Sources(index_url=index.replace(PASSWORD, "wr0ng-p4ssw0rd"))
    with pytest.raises(ProviderError) as refused:
        ask("other", requires=("other",), sources=wrong)
    files = index.replace("/simple/", "/files/acme-variant-provider/")
    wheel = f"{files}acme_variant_provider-1.0-py3-none-any.whl"
    assert ask(f"acme-variant-provider @ {wheel}").features == LEVELS
    with pytest.raises(ProviderError) as missing:
        ask(f"acme-variant-provider @ {wheel.replace('1.0', '1.1')}")
    errors = "".join(str(each.value) for each in (caught, refused, missing))
    for text in (errors, caplog.text, repr(sources)):
        assert PASSWORD not in text
        assert "wr0ng" not in text
    for path in cache.rglob("*"):
        assert PASSWORD not in path.name
        if path.is_file() and not path.is_symlink():
            assert PASSWORD.encode() not in path.read_bytes(), path


@pytest.mark.parametrize(
    "with_uv", [pytest.param(True, marks=needs_uv), pytest.param(False, marks=pytest.mark.nightly)]
)
def test_credentials_are_on_no_command_line(
    index, cache, clean_environ, logging_uv, shared_python, with_uv
):
    """Watched from outside, as another user of the machine can."""
    folder, _, _ = logging_uv
    process = subprocess.Popen(
        [shared_python, HERE / "ask_acme.py", cache, "-"],
        env={**clean_environ, "PATH": f"{folder if with_uv else '/nowhere'}:{PROGRAMS}"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    process.stdin.write(index)
    process.stdin.close()
    seen = set()
    while process.poll() is None:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                seen.add(path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
            except OSError:
                continue
    assert "level" in process.stdout.read()
    process.stdout.close()
    assert process.returncode == 0
    installs = [line for line in seen if "install" in line and "--only-binary" in line]
    assert installs
    assert not [line for line in seen if PASSWORD in line]
