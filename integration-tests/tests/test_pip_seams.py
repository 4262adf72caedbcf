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
import io
import shutil
import zipfile
from pathlib import Path

import pytest

from support import pip_seams
from support.environments import PIPS, ROOT, find_python
from support.index import served
from support.pip_commands import PipCommands, dry_run, installs, labels, versions
from support.pip_mutations import MUTATIONS, mutate
from support.pip_seams import SHIM
from support.projects import CUDA_12_8, app_index, built_against, cuda
from support.wheels import Wheel

PIP = Path(str(importlib.util.find_spec("pip").origin)).parent
OLDER = {"Pylock", "_lib_dirs", "from_dict"}
"""Names that only pips older than that of the tests have."""
NAMES = sorted(pip_seams.touched() & (pip_seams.defined(PIP) | OLDER))

# The oldest and the newest, and with them both of pip's metadata backends.
TAIL = [("3.10", PIPS[0]), ("3.13", PIPS[-1])]

OURS = ("pep-variants-shim: ", "ERROR: Internal error in pep-variants-shim: ")
ON_GPU = {"always", "app", "for-128", "for-cu128", "for-gpu"}
PLAIN = {"always", "app"}


def pytest_generate_tests(metafunc):
    """Try everything on every pip with ``--full-matrix``, else a sample on `TAIL`, by turns."""
    if "seam_pips" not in metafunc.fixturenames:
        return
    known = {
        "name": (NAMES, 16),
        "module": (modules, 6),
        "fault": (functions, 40),
        "mutation": ([*MUTATIONS], 6),
    }
    argument = next((item for item in known if item in metafunc.fixturenames), None)
    values, step = known.get(argument, ([None], 1))
    values = values() if callable(values) else values
    if argument == "fault":
        pips = [TAIL[1:]]
    elif metafunc.config.getoption("full_matrix"):
        pips = [TAIL[:1], *([("3.12", pip)] for pip in PIPS[1:-1]), TAIL[1:]]
    else:
        pips = [TAIL, TAIL[::-1]] if argument else [TAIL[:1], TAIL[1:]]
    if metafunc.config.getoption("full_matrix") or not argument:
        cases = [(value, each) for value in values for each in pips]
    else:
        cases = [(value, pips[n % len(pips)]) for n, value in enumerate(values[::step])]
    names = [name for name in (argument, "seam_pips") if name]
    ids = ["-".join(filter(None, (value, f"pip{each[0][1]}"))) for value, each in cases]
    metafunc.parametrize(names, [case[-len(names) :] for case in cases], ids=ids)


@pytest.fixture(scope="module")
def index():
    """Projects without variants, with them, with a plain wheel beside; and a newer pip."""
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


def assert_works(environment, index, with_catalog, fault=""):
    """Run commands; check what they have done and said; return what was installed of variants."""
    options = ("-i", index.url)
    with PipCommands(environment) as commands:

        def pip(*args):
            done = commands.pip(*args, env=CUDA_12_8)
            assert "Traceback" not in done.text, done
            lines = (commands.said + done.err).splitlines()
            assert len([line for line in lines if line.startswith(OURS)]) <= 1, done
            return done

        def succeeds(said, *args):
            done = pip(*args)
            assert done.code == 0, done
            lines = done.err.splitlines()
            assert [line for line in lines if not line.startswith("pep-variants-shim")] == [], done
            assert f"{said}\n" in done.out, done

        dry = ("install", "--dry-run", *options)
        assert_catalog(pip(*dry[:2], *with_catalog, "plain"))
        assert_machine(pip(*dry, "--variant-platform", "cuda=12.6", "app"))
        succeeds("Successfully installed always-1.0 plain-1.0", "install", *options, "plain")
        succeeds("  Successfully uninstalled plain-1.0", "uninstall", "-y", "plain", "always")
        without = pip(*dry, "--no-variants", "app")
        if without.code:  # without the shim pip does not know the option
            assert "no such option: --no-variants" in without.err, without
        else:
            installs(without, "always-1.0", "app-1.0")
        app = pip("install", "--no-compile", *options, "app")
        if fault:
            installed = environment.site_packages / "had-1.0.dist-info"
            with zipfile.ZipFile(io.BytesIO(HAD.build())) as wheel:
                wheel.extractall(environment.site_packages)
            assert pip("check").code == 0 or fault.startswith(READING)
            for command in (("list",), ("freeze",), ("show", "had")):
                assert pip(*command).code == 0
            shutil.rmtree(installed)
        if not fault.startswith(READING):
            succeeds("Successfully installed pip-99.0", "install", "--upgrade", *options, "pip")
    names = set(versions(environment))
    if app.code:
        assert not names, app
        assert "PEP_VARIANTS_SHIM=0" in app.err, app
        return "refused"
    module = (environment.site_packages / "app" / "__init__.py").read_text()
    expected = {"LABEL = 'cu128'\n": ON_GPU, "LABEL = None\n": PLAIN}
    assert names == expected[module], app
    return "variant" if names == ON_GPU else "plain"


def assert_catalog(done):
    """Check that the catalogue is an option without effect, is ignored, or is what is installed."""
    if done.code:
        assert "no such option: --variant-catalog" in done.err or "has no effect" in done.err, done
    elif not done.out.endswith("always-1.0 plain-1.0\n"):
        assert "Variant cuda12 for plain 1.0 (published as always): " in done.out, done
        # The command may not show the label.
        assert done.out.endswith(("Would install plain-1.0-cuda12\n", "plain-1.0\n")), done


def assert_machine(done):
    """Check that nothing is installed but what is for the machine that was asked for."""
    if done.code:
        assert "pep-variants-shim" in done.err or "no such option: --variant" in done.err, done
    else:
        # The dependencies of that variant: the command may not show the label.
        planned = {word.partition("-1.0")[0] for word in done.out.splitlines()[-1].split()[2:]}
        assert planned == {"always", "app", "for-gpu"}, done


@pytest.mark.nightly
@pytest.mark.parametrize("version", PIPS)
def test_names_are_known(environments, version, tmp_path):
    """What is tested below is all that any pip has."""
    with zipfile.ZipFile(environments.pip_wheel(version)) as archive:
        archive.extractall(tmp_path)
    assert pip_seams.touched() & pip_seams.defined(tmp_path / "pip") <= {*NAMES}


def test_name_that_is_gone(changed, index, with_catalog, name):
    assert_works(changed(pip_seams.rename_in_shim, name), index, with_catalog)


def modules():
    tables = (
        ast.literal_eval(node.value)
        for node in ast.parse((SHIM / "_hook.py").read_text("utf-8")).body
        if isinstance(node, ast.Assign) and node.targets[0].id in ("PATCHES", "EXTRAS")
    )
    return [name for table in tables for name in table]


def test_module_that_is_gone(changed, index, with_catalog, module):
    assert_works(changed(pip_seams.rename_module_in_shim, module), index, with_catalog)


def test_more_parameters(changed, index, with_catalog):
    """Which everything that is replaced passes through."""
    environment = changed(pip_seams.add_parameters, NAMES)
    assert assert_works(environment, index, with_catalog) == "variant"


@pytest.fixture(scope="module")
def toys():
    """Variants with dependencies of their own, and some built against an older release."""
    found = app_index(plain=True, metadata_file=True)
    found.add_release(built_against("ext", "2.7", "2.8", requires=("torch",), non_variant=True))
    for version in ("2.7", "2.8"):
        found.add_wheel(Wheel("torch", version))
    found.add_wheel(Wheel("late", "1.0", requires=("torch==2.7",)))
    with served(found) as running:
        yield running


def test_pip_that_does_it_otherwise(changed, toys, mutation):
    """It gets the right variants, or none with a line: no traceback, and no other result."""
    environment = changed(mutate, mutation)
    done = environment.pip("install", "-i", toys.url, "app", "ext", "late", env=CUDA_12_8)
    assert "Traceback" not in done.text, done
    assert done.code == 0, done
    lines = [line for line in done.err.splitlines() if line.startswith(OURS)]
    plain = {"app", "always", "ext", "torch", "late"}
    found = versions(environment)
    if labels(environment):
        assert lines == [], done
        assert found.keys() == plain | ON_GPU, done
        assert labels(environment) == {"app": "cu128", "ext": "t27"}, done
    else:
        assert len(lines) == 1, done
        assert found.keys() == plain, done
    assert found["torch"] == "2.7", done
    assert is_right(environment) is bool(labels(environment)), (mutation, done)
    result = "variants" if labels(environment) else "plain, one line"
    assert documented().get((mutation, environment.path.name), result) == result


@functools.cache
def documented():
    """Return what the reference says, by the change and the name of an environment."""
    text = (ROOT / "docs" / "reference" / "pip-seams.md").read_text("utf-8")
    rows = [[*map(str.strip, line.split("|")[1:-1])] for line in text.splitlines()]
    (pips,) = (row[1:] for row in rows if row[:1] == ["a pip with"])
    cells = {row[0]: row[1:] for row in rows if row and row[0] in MUTATIONS}
    assert cells.keys() == MUTATIONS.keys()
    return {
        (change, f"environment-{pip}"): cell
        for change, row in cells.items()
        for pip, cell in zip(pips, row, strict=True)
    }


def is_right(environment):
    """Return whether the toy resolution says so of the pip of *environment*."""
    done = environment.run("-m", "pep_variants_shim.trial")
    assert done.err == "", done
    assert done.code == done.out.count("\n"), done
    assert done.out.startswith("pip 2") is bool(done.code), done
    return not done.code


def test_toy_resolution(changed):
    """It holds with the pips that are supported, and takes no notice of what the user has set."""
    environment = changed(lambda _: True)
    assert is_right(environment)
    newer = ("-m", "pep_variants_shim.trial", "--newer")
    assert environment.run(*newer, env={"PIP_DRY_RUN": "x"}).code == 0
    init = environment.site_packages / "pip" / "__init__.py"
    text = init.read_text()
    init.unlink()  # it is shared
    init.write_text(text + "\n__version__ = '99'\n")
    assert environment.run(*newer, env={"VARIANTS_VARIANT": "x"}).code == 0
    assert environment.run(*newer, env={"PEP_VARIANTS_SHIM": "0"}).code == 1


# Faults of the shim.

LEFT_OUT = {
    "__init__.py",  # pip cannot be started without it
    "_bootstrap.py",  # runs in another interpreter
    "_guard.py",  # what survives the faults of all others
}
READING = ("_distributions.py", "_hook.py", "_markers.py", "_patches/metadata.py")
"""Without them pip cannot read the markers of installed variants."""
HAD = Wheel(
    "had", "1.0", "cu128", requires=("absent; 'nvidia' not in variant_namespaces",),
    variant_json={**cuda(), "variants": {"cu128": cuda("12.8")["variants"]["cu128"]}},
)  # fmt: skip
"""An installed variant."""


def functions():
    """Return files and names of the functions of the shim, with a colon."""
    return [
        f"{path.relative_to(SHIM).as_posix()}:{node.name}"
        for path in sorted(SHIM.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and path.name not in LEFT_OUT
    ]


def test_fault(changed, index, with_catalog, fault):
    environment = changed(pip_seams.fail_in_shim, *fault.split(":"))
    assert assert_works(environment, index, with_catalog, fault) != "refused"


def test_a_variable_without_its_option(changed, index):
    """A machine that a variable names is not lost where the options could not be added."""
    environment = changed(pip_seams.fail_in_shim, "_patches/command.py", "init")
    done = dry_run(environment, index, "app", PIP_VARIANT_PLATFORM="cuda=12.6")
    assert done.code == 1, done
    assert "ERROR: a variable that asks for variants has no effect: RuntimeError" in done.err
