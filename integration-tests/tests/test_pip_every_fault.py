"""A fault in any function of the shim: pip goes on as without it, or says why it does not.

What was asked for by name, a variant or a machine, is not replaced by something else. A sample of
the functions; with ``--full-matrix`` all of them.
"""

from __future__ import annotations

import ast
import json
import subprocess
from pathlib import Path

import pytest

from support.environments import PIPS, PYTHONS, Result, clean_environ, find_python
from support.index import served
from support.pip_seams import ENTRY, SHIM
from support.projects import CUDA_12_8, app_index
from support.wheels import Wheel

SEQUENCE = Path(__file__).resolve().parents[1] / "support" / "pip_faults.py"
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
    found = app_index()
    found.add_wheel(Wheel("app", "1.0", requires=("always",)))
    found.add_wheel(Wheel("plain", "1.0", requires=("always",)))
    with served(found) as running:
        yield running


@pytest.fixture(scope="module")
def environment(environments, index, tmp_path_factory):
    """An environment with a variant, and with the shim."""
    if find_python(PYTHONS[-1]) is None:
        pytest.skip(f"there is no Python {PYTHONS[-1]} here")
    folder = tmp_path_factory.mktemp("faults") / "environment"
    made = environments.patched(PYTHONS[-1], PIPS[-1]).copied(folder)
    done = made.pip("install", "-i", index.url, "app", env=CUDA_12_8)
    assert done.code == 0, done
    return made


def run(environment, file, line, commands, env):
    """Run *commands* with a fault in the function at *line* of *file*."""
    module = file.removesuffix(".py").replace("/", ".")
    jobs = [
        {"args": args, "env": env, "cwd": str(environment.path), "fault": [module, line]}
        for args in commands
    ]
    ran = subprocess.run(
        [environment.python, str(SEQUENCE)], input=json.dumps(jobs),
        capture_output=True, text=True, env=env, check=True,
    )  # fmt: skip
    return [Result(*item) for item in json.loads(ran.stdout)]


def test_a_variable_without_its_option(environment, index):
    """A machine that a variable names is not lost where the options could not be added."""
    file, line, _ = next(
        each for each in functions() if each[::2] == ("patches/command.py", "init")
    )
    env = {**clean_environ(CUDA_12_8), "PIP_VARIANT_PLATFORM": "cuda=12.6"}
    command = ("install", "--ignore-installed", "--dry-run", "-i", index.url, "app")
    (done,) = run(environment, file, line, [command], env)
    assert done.code == 1, done
    assert "ERROR: a variable that asks for variants has no effect: RuntimeError" in done.err


def test_fault(environment, index, tmp_path, fault):
    file, line, _name = fault
    (tmp_path / "plain.toml").write_text(ENTRY.format(place=index.url.rstrip("/")))
    other = index.url.replace("127.0.0.1", "localhost")
    install = ("install", "--ignore-installed", "-i")
    commands = {
        "install": (*install, index.url, "--prefix", str(tmp_path / "prefix"), "app"),
        "machine": (*install, index.url, "--dry-run", "--variant-platform", "cuda=12.6", "app"),
    }
    if file not in RESOLVING:
        commands |= {name: (name,) for name in ("check", "list", "freeze")}
        commands["show"] = ("show", "app")
    if file not in SHOWING:
        catalog = ("--variant-catalog", str(tmp_path / "plain.toml"))
        commands["catalogue"] = (*install, other, "--dry-run", *catalog, "plain")
    env = {**clean_environ(CUDA_12_8), "PIP_NO_CACHE_DIR": "1"}
    results = dict(zip(commands, run(environment, file, line, commands.values(), env), strict=True))
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
