"""A fault in any function of the shim: pip goes on as without it, or says why it does not.

What was asked for by name, a variant or a machine, is not replaced by something else. A sample of
the functions; with ``--full-matrix`` all of them.
"""

from __future__ import annotations

import ast

import pytest

from support.environments import PIPS, PYTHONS, find_python
from support.index import served
from support.pip_commands import PipCommands
from support.pip_seams import ENTRY, SHIM
from support.projects import CUDA_12_8, app_index
from support.wheels import Wheel

LEFT_OUT = {
    "__init__.py",  # imported before the fault can be put there
    "bootstrap.py",  # runs in another interpreter
    "guard.py",  # what survives the faults of all others
}
RESOLVING = {
    "candidates.py", "catalog.py", "fetching.py", "options.py", "outcome.py", "pip_provider.py",
    "release_metadata.py", "reporter.py", "same_files.py", "session.py", "switching.py",
    "patches/build.py", "patches/command.py", "patches/finder.py",
    "patches/lock.py", "patches/names.py", "patches/prepare.py", "patches/resolution.py",
}  # fmt: skip
"""What commands that only look at the environment do not use."""
READING = {"distributions.py", "hook.py", "markers.py", "patches/metadata.py"}
SHOWING = {"patches/check.py", "patches/shown.py"}
COMMAND = ("patches/command.py", "init")
OURS = ("pep-variants-shim: ", "ERROR: Internal error in pep-variants-shim: ")


def functions():
    """Yield file, line and name of the functions of the shim."""
    for path in sorted(SHIM.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and path.name not in LEFT_OUT:
                yield path.relative_to(SHIM).as_posix(), node.lineno, node.name


def pytest_generate_tests(metafunc):
    if "fault" not in metafunc.fixturenames:
        return
    step = 1 if metafunc.config.getoption("full_matrix") else 40
    chosen = [*functions()][::step]
    metafunc.parametrize("fault", chosen, ids=[f"{file}:{name}" for file, _, name in chosen])


@pytest.fixture(scope="module")
def index():
    found = app_index(plain=True)
    found.add_wheel(Wheel("plain", "1.0", requires=("always",)))
    with served(found) as running:
        yield running


@pytest.fixture(scope="module")
def commands(environments, index, tmp_path_factory):
    """The pip of an environment with a variant, and with the shim."""
    if find_python(PYTHONS[-1]) is None:
        pytest.skip(f"there is no Python {PYTHONS[-1]} here")
    folder = tmp_path_factory.mktemp("faults") / "environment"
    made = environments.patched(PYTHONS[-1], PIPS[-1]).copied(folder)
    done = made.pip("install", "-i", index.url, "app", env=CUDA_12_8)
    assert done.code == 0, done
    with PipCommands(made) as commands:
        yield commands


def test_a_variable_without_its_option(commands, index):
    """A machine that a variable names is not lost where the options could not be added."""
    (line,) = (line for file, line, name in functions() if (file, name) == COMMAND)
    command = ("install", "--ignore-installed", "--dry-run", "-i", index.url, "app")
    env = {**CUDA_12_8, "PIP_VARIANT_PLATFORM": "cuda=12.6"}
    done = commands.pip(*command, env=env, fault=("patches.command", line))
    assert done.code == 1, done
    assert "ERROR: a variable that asks for variants has no effect: RuntimeError" in done.err


def test_fault(commands, index, tmp_path, fault):
    file, line, _name = fault
    (tmp_path / "plain.toml").write_text(ENTRY.format(place=index.url.rstrip("/")))
    other = index.url.replace("127.0.0.1", "localhost")
    install = ("install", "--ignore-installed", "-i")
    wanted = {
        "install": (*install, index.url, "--prefix", str(tmp_path / "prefix"), "app"),
        "machine": (*install, index.url, "--dry-run", "--variant-platform", "cuda=12.6", "app"),
    }
    if file not in RESOLVING:
        wanted |= {name: (name,) for name in ("check", "list", "freeze")}
        wanted["show"] = ("show", "app")
    if file not in SHOWING:
        catalog = ("--variant-catalog", str(tmp_path / "plain.toml"))
        wanted["catalogue"] = (*install, other, "--dry-run", *catalog, "plain")
    place = file.removesuffix(".py").replace("/", "."), line
    results = {
        name: commands.pip(*command, env=CUDA_12_8, fault=place) for name, command in wanted.items()
    }
    for name, done in results.items():
        assert "Traceback" not in done.text, (name, done)
        ours = [text for text in done.err.splitlines() if text.startswith(OURS)]
        assert len(ours) <= 1, (name, done)
        # An option without effect is an error; without markers reduced pip cannot read them.
        if name == "catalogue" and done.code:
            assert "no such option: --variant-catalog" in done.err or "has no effect" in done.err
            assert any(text.startswith(OURS) for text in done.err.splitlines()), done
        elif name != "machine" and not (name == "check" and file in READING):
            assert done.code == 0, (name, done)
    machine = results["machine"]
    if machine.code:
        assert "pep-variants-shim" in machine.err or "no such option: --variant" in machine.err
    else:
        # The dependencies of that variant: a fault of the output costs the label there.
        planned = {word.partition("-1.0")[0] for word in machine.out.splitlines()[-1].split()[2:]}
        assert planned == {"always", "app", "for-gpu"}, machine
    (folder,) = (tmp_path / "prefix").rglob("app-1.0.dist-info")
    module = (folder.parent / "app" / "__init__.py").read_text()
    assert module in ("LABEL = 'cu128'\n", "LABEL = None\n")
