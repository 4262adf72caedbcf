"""Every name of pip that the shim touches may be gone tomorrow: pip works all the same.

Each is gone in turn for the shim, in real pips, see `support.pip_seams`; then each function of the
shim fails. A pip of which the shim is not sure ignores variants; it never fails over a project
without them, never installs half of a variant, and what was asked for by name, a variant or a
machine, is not replaced by something else. A sample; with ``--full-matrix`` all of them.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import zipfile
from pathlib import Path

import pytest

from support import pip_seams
from support.environments import PIPS, find_python
from support.index import served
from support.pip_commands import PipCommands, versions
from support.pip_seams import SHIM
from support.projects import CUDA_12_8, app_index
from support.wheels import Wheel

PIP = Path(str(importlib.util.find_spec("pip").origin)).parent
OLDER = {"Pylock", "_lib_dirs", "from_dict"}
"""Names that only pips older than that of the tests have."""
NAMES = sorted(pip_seams.touched() & (pip_seams.defined(PIP) | OLDER))

# The oldest and the newest, and with them both of pip's metadata backends.
TAIL = [("3.10", PIPS[0]), ("3.13", PIPS[-1])]

ON_GPU = {"always", "app", "for-128", "for-cu128", "for-gpu"}
PLAIN = {"always", "app"}


def pytest_generate_tests(metafunc):
    """Try everything on every pip with ``--full-matrix``, else a sample on `TAIL`, by turns."""
    full = metafunc.config.getoption("full_matrix")
    if "fault" in metafunc.fixturenames:
        chosen = [*functions()][:: 1 if full else 40]
        metafunc.parametrize("fault", chosen, ids=[f"{file}:{name}" for file, _, name in chosen])
    if "seam_pips" not in metafunc.fixturenames:
        return
    known = {"name": (NAMES, 14), "module": (modules(), 6)}
    argument = next((item for item in known if item in metafunc.fixturenames), None)
    values, step = known.get(argument, ([None], 1))
    if full:
        every = [TAIL[0], *(("3.12", pip) for pip in PIPS[1:-1]), TAIL[1]]
        cases = [(value, [pip]) for value in values for pip in every]
    elif argument is None:
        cases = [(None, [pip]) for pip in TAIL]
    else:
        cases = [
            (value, TAIL[:: 1 if number % 2 else -1]) for number, value in enumerate(values[::step])
        ]
    names = [name for name in (argument, "seam_pips") if name]
    ids = ["-".join(filter(None, (value, f"pip{pips[0][1]}"))) for value, pips in cases]
    metafunc.parametrize(names, [case[-len(names) :] for case in cases], ids=ids)


@pytest.fixture(scope="module")
def index():
    """A project without variants, one with them and with a plain wheel, and a newer pip."""
    found = app_index(plain=True)
    found.add_wheel(Wheel("plain", "1.0", requires=("always",)))
    found.add_wheel(Wheel("pip", "99.0", files={"pip/__main__.py": ""}))
    with served(found) as running:
        yield running


@pytest.fixture(scope="module")
def with_catalog(index, tmp_path_factory):
    """Options for a catalogue that has the project without variants, from another index."""
    path = tmp_path_factory.mktemp("catalog") / "plain.toml"
    path.write_text(pip_seams.ENTRY.format(place=index.url.rstrip("/")))
    own = index.url.replace("127.0.0.1", "localhost")
    return ("-i", own, "--variant-catalog", str(path))


@pytest.fixture(scope="module")
def templates(environments, index, tmp_path_factory):
    """Return what makes an environment with the shim, of which every module is compiled."""

    @functools.cache
    def make(python, pip):
        if find_python(python) is None:
            pytest.skip(f"there is no Python {python} here")
        folder = tmp_path_factory.mktemp("seams")
        environment = environments.patched(python, pip).copied(folder / "environment")
        with PipCommands(environment) as commands:  # which tells what to import
            commands.pip("install", "--dry-run", "-i", index.url, "app", env=CUDA_12_8)
            commands.pip("uninstall", "-y", "absent")
        return environment

    return make


@pytest.fixture
def changed(templates, seam_pips, tmp_path):
    """Return what changes the first pip that can be changed so, and returns its environment."""

    def change(how, *arguments):
        for python, pip in seam_pips:
            environment = pip_seams.linked(templates(python, pip), tmp_path / f"environment-{pip}")
            if how(environment, *arguments):
                return environment
        pytest.skip(f"not in {seam_pips}: {arguments}")

    return change


def assert_works(environment, index, with_catalog, what):
    """Run the commands of this test; check what they have done and said."""
    options = ("-i", index.url)
    with PipCommands(environment) as commands:
        results = [
            commands.pip(*command, env=CUDA_12_8)
            for command in (
                ("install", "--dry-run", *with_catalog, "plain"),
                ("install", *options, "plain"),
                ("uninstall", "-y", "plain", "always"),
                ("install", "--dry-run", "--no-variants", *options, "app"),
                ("install", "--no-compile", *options, "app"),
                ("install", "--upgrade", *options, "pip"),
            )
        ]
    catalog, plain, uninstalled, without, app, upgraded = results
    for done in results:
        assert "Traceback" not in done.text, (what, done)
        lines = (commands.said + done.err).splitlines()
        assert len([line for line in lines if line.startswith("pep-variants-shim: ")]) <= 1, done
    for done in (plain, uninstalled, upgraded):
        assert done.code == 0, (what, done)
        rest = [line for line in done.err.splitlines() if not line.startswith("pep-variants-shim")]
        assert not rest, (what, done)
    assert "Successfully installed always-1.0 plain-1.0\n" in plain.out
    assert "Successfully uninstalled plain-1.0\n" in uninstalled.out
    assert "Successfully installed pip-99.0\n" in upgraded.out
    if without.code:  # without the shim pip does not know the option
        assert "no such option: --no-variants" in without.err, (what, without)
    else:
        assert "Would install always-1.0 app-1.0\n" in without.out, (what, without)
    assert_catalog(catalog)
    assert (environment.site_packages / "pip-99.0.dist-info").exists()
    names = set(versions(environment))
    if app.code:
        assert not names, (what, app)
        assert "PEP_VARIANTS_SHIM=0" in app.err, (what, app)
        return "refused"
    module = (environment.site_packages / "app" / "__init__.py").read_text()
    expected = {"LABEL = 'cu128'\n": ON_GPU, "LABEL = None\n": PLAIN}
    assert names == expected[module], (what, app)
    return "variant" if names == ON_GPU else "plain"


def assert_catalog(done):
    """Check that the catalogue is an option without effect, is ignored, or is what is installed."""
    if done.code:
        assert "no such option: --variant-catalog" in done.err or "has no effect" in done.err, done
    elif not done.out.endswith("always-1.0 plain-1.0\n"):
        assert "Variant cuda12 for plain 1.0 (published as always): " in done.out, done
        # The command may not show the label.
        assert done.out.endswith(("Would install plain-1.0-cuda12\n", "plain-1.0\n")), done


@pytest.mark.nightly
@pytest.mark.parametrize("version", PIPS)
def test_names_are_known(environments, version, tmp_path):
    """What is tested below is all that any pip has."""
    with zipfile.ZipFile(environments.pip_wheel(version)) as archive:
        archive.extractall(tmp_path)
    assert pip_seams.touched() & pip_seams.defined(tmp_path / "pip") <= {*NAMES}


def test_name_that_is_gone(changed, index, with_catalog, name):
    assert_works(changed(pip_seams.rename_in_shim, name), index, with_catalog, name)


def modules():
    tables = (
        ast.literal_eval(node.value)
        for node in ast.parse((SHIM / "hook.py").read_text("utf-8")).body
        if isinstance(node, ast.Assign) and node.targets[0].id in ("PATCHES", "EXTRAS")
    )
    return [name for table in tables for name in table]


def test_module_that_is_gone(changed, index, with_catalog, module):
    assert_works(changed(pip_seams.rename_module_in_shim, module), index, with_catalog, module)


def test_more_parameters(changed, index, with_catalog):
    """Which everything that is replaced passes through."""
    environment = changed(pip_seams.add_parameters, NAMES)
    assert assert_works(environment, index, with_catalog, "parameters") == "variant"


# Faults of the shim.

LEFT_OUT = {
    "__init__.py",  # imported before the fault can be put there
    "bootstrap.py",  # runs in another interpreter
    "guard.py",  # what survives the faults of all others
}
READING = {"distributions.py", "hook.py", "markers.py", "patches/metadata.py"}
COMMAND = ("patches/command.py", "init")
OURS = ("pep-variants-shim: ", "ERROR: Internal error in pep-variants-shim: ")


def functions():
    """Yield file, line and name of the functions of the shim."""
    for path in sorted(SHIM.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and path.name not in LEFT_OUT:
                yield path.relative_to(SHIM).as_posix(), node.lineno, node.name


@pytest.fixture(scope="module")
def commands(environments, index, tmp_path_factory):
    """The pip of an environment with a variant, and with the shim."""
    if find_python("3.13") is None:
        pytest.skip("there is no Python 3.13 here")
    folder = tmp_path_factory.mktemp("faults") / "environment"
    made = environments.patched(*TAIL[1]).copied(folder)
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


def test_fault(commands, index, with_catalog, tmp_path, fault):
    file, line, _name = fault
    install = ("install", "--ignore-installed", "-i", index.url)
    wanted = {
        "install": (*install, "--prefix", str(tmp_path / "prefix"), "app"),
        "machine": (*install, "--dry-run", "--variant-platform", "cuda=12.6", "app"),
        "catalogue": (*install[:2], "--dry-run", *with_catalog, "plain"),
        **{name: (name,) for name in ("check", "list", "freeze")},
        "show": ("show", "app"),
    }
    place = file.removesuffix(".py").replace("/", "."), line
    results = {
        name: commands.pip(*command, env=CUDA_12_8, fault=place) for name, command in wanted.items()
    }
    for name, done in results.items():
        assert "Traceback" not in done.text, (name, done)
        lines = [text for text in done.err.splitlines() if text.startswith(OURS)]
        assert len(lines) <= 1, done
        if name == "catalogue":
            assert_catalog(done)
            assert lines or not done.code, done
        # Without markers reduced pip cannot read them.
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
