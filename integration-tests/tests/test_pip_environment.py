"""The shim as a guest: in environments, pips and interpreters of every kind, and gone again."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from support.environments import PIPS
from support.index import index_of
from support.pip_commands import dry_run, installs
from support.projects import CUDA_12_8, ON_GPU, app_index
from support.wheels import NVIDIA, X86_64, Release, Wheel, metadata

CHOSEN = f"Would install {ON_GPU}\n"
PLAIN = "Would install always-1.0 app-0.9\n"
IGNORED = "wheel variants are ignored"


@pytest.fixture
def index(serve):
    """The project with variants, and an older release that has none."""
    index = app_index(metadata_file=True)
    index.add_wheel(Wheel("app", "0.9", requires=("always",)))
    return serve(index)


def tree(environment):
    """Contents of everything in the environment that is no byte code."""
    return {
        str(path.relative_to(environment.path)): path.read_bytes()
        for path in environment.path.rglob("*")
        if path.is_file() and not path.is_symlink() and path.suffix != ".pyc"
    }


# Pips and shims.


@pytest.mark.matrix
def test_install_and_uninstall(environments, available, plain, index, tmp_path):
    """It acts from the next command on; without it everything is as it was."""
    copy = plain.copied(tmp_path / "environment")
    before = tree(copy)
    unpatched = dry_run(copy, index, "app")
    assert PLAIN in unpatched.out
    copy.install(str(environments.shim_wheel))
    assert CHOSEN in dry_run(copy, index, "app").out
    version = copy.pip("--version").out
    assert re.fullmatch(rf"pip {available.pip} from .* with pep-variants-shim \d\S+\n", version)
    done = copy.pip("uninstall", "-y", "pep-variants-shim")
    assert (done.code, done.err) == (0, ""), done
    assert tree(copy) == before
    assert dry_run(copy, index, "app") == unpatched
    assert "pep-variants" not in copy.pip("--version").out


UNSUPPORTED = (
    f"pep-variants-shim: pip 23.3.2 is too old (24.0 or newer is needed): {IGNORED}; "
    "to upgrade it: {} -m pip install --upgrade pip\n"
)


@pytest.mark.one
def test_older_pip(environments, available, index, tmp_path):
    """It works as if there were no shim, and says why in one line, where it matters."""
    none = environments.plain(available.python, "23.3.2").copied(tmp_path / "none")
    shim = none.copied(tmp_path / "shim")
    shim.install(str(environments.shim_wheel))
    line = UNSUPPORTED.format(none.python)  # paths are compared as if they were equal
    for command, expected in (
        (("install", "--dry-run", "-i", index.url, "app"), line),
        (("install", "--dry-run", "-i", index.url, "absent"), line),
        (("--version",), ""),
        (("show", "pip", "install"), ""),
        (("index", "versions", "-i", index.url, "app"), ""),
        (("--log", str(tmp_path / "install"), "freeze", "--exclude", "pep-variants-shim"), ""),
    ):
        theirs, ours = none.pip(*command), shim.pip(*command)
        assert ours.code == theirs.code, ours
        assert ours.err.replace(str(shim.path), str(none.path)) == expected + theirs.err
        assert ours.out.replace(str(shim.path), str(none.path)) == theirs.out
    # Where `python` is that of the environment, its path is not needed.
    scripts = f"{Path(shim.python).parent}{os.pathsep}{os.environ['PATH']}"
    done = shim.pip("install", "--dry-run", "-i", index.url, "app", env={"PATH": scripts})
    assert done.err.startswith(UNSUPPORTED.format("python")), done
    completion = {"COMP_WORDS": "pip install --no-dep", "COMP_CWORD": "2", "PIP_AUTO_COMPLETE": "1"}
    assert shim.pip(env=completion).err == ""


SEAMS = {
    "a function": (
        r"\bevaluate_links\b", "renamed", "index.package_finder lacks PackageFinder.evaluate_links"
    ),
    "a parameter": (
        r"def __init__\(self, filename: str\)", "def __init__(self, other, filename: str)",
        "models.wheel lacks Wheel.__init__(self, filename)",
    ),
    "the metadata backend": (r"\bselect_backend\b", "renamed", "select_backend"),
}  # fmt: skip


@pytest.mark.one
@pytest.mark.parametrize("seam", SEAMS)
def test_pip_that_has_changed(available, fresh, index, seam):
    """One line, and it is as if there were no shim; what was asked for is an error."""
    pattern, replacement, lacks = SEAMS[seam]
    for path in (fresh.site_packages / "pip" / "_internal").rglob("*.py"):
        text = path.read_text("utf-8")
        path.write_text(re.sub(pattern, replacement, text), "utf-8")
    done = fresh.pip("install", "--dry-run", "-i", index.url, "app", env=CUDA_12_8)
    line = done.err.splitlines()[0]
    assert line.startswith(f"pep-variants-shim: pip {available.pip} is not supported (")
    assert line.endswith(
        f"): {IGNORED}; to get versions that go together: {fresh.python} -m pip install --upgrade "
        f'pep-variants-shim "pip<={PIPS[-1]}"'
    )
    assert lacks in line
    if seam == "a parameter":  # which pip itself misses
        return
    assert PLAIN in done.out
    done = dry_run(fresh, index, "--variant", "app=null", "app")
    assert done.code != 0
    refused = ("ERROR: --variant has no effect: pip ", "no such option: --variant")
    assert done.err.splitlines()[-1].startswith(refused), done
    if refused[0] in done.err:
        assert "PEP_VARIANTS_SHIM=0" in done.err
        done = dry_run(fresh, index, "app", VARIANTS_VARIANT="app=null")
        assert done.code == 1, done
        assert "ERROR: VARIANTS_VARIANT has no effect: pip " in done.err
    # Others say nothing, and do what they did.
    assert fresh.pip("list", "--exclude", "pep-variants-shim").err == ""


FAULTS = {
    "_vendor/resolvelib_variants/ordering.py": "SyntaxError: ",
    "hook.py": "SyntaxError: ",
    "_vendor": "pip ",
}


@pytest.mark.one
@pytest.mark.parametrize("file", FAULTS)
def test_damaged_installation(fresh, index, file):
    """Variants are lost, pip is not."""
    path = fresh.site_packages / "pep_variants_shim" / file
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.write_text("1 +")
    index.files["app"].pop("app-0.9-py3-none-any.whl")
    index.add_wheel(Wheel("app", "1.0", requires=("always",)))
    done = dry_run(fresh, index, "app")
    installs(done, "always-1.0", "app-1.0")
    assert done.err.count("\n") == 1
    assert done.err.startswith(f"pep-variants-shim: {FAULTS[file]}"), done
    assert IGNORED in done.err
    done = dry_run(fresh, index, "--variant", "app=null", "app")
    assert done.code != 0
    if "ordering" in file:
        assert done.err.startswith("ERROR: Internal error in pep-variants-shim: SyntaxError"), done
        assert done.err.count("\n") == 1
    assert fresh.pip("uninstall", "-y", "pep-variants-shim").code == 0


# Interpreters.


@pytest.mark.everywhere
@pytest.mark.hook
def test_start_of_the_interpreter(patched):
    """It is silent, and loads two small modules where the command line has pip in it."""
    code = "import sys; print([n for n in sorted(sys.modules) if 'variants' in n or n == 'pip'])"
    for options in ((), ("-S",), ("-X", "dev", "-W", "error"), ("-OO",)):
        done = patched.run(*options, "-c", code)
        loaded = [] if "-S" in options else ["pep_variants_shim", "pep_variants_shim_start"]
        assert (done.code, done.out, done.err) == (0, f"{loaded}\n", ""), options


@pytest.mark.one
def test_isolated_interpreters_have_variants(patched, index):
    """-I and -E are about the user's settings, -S is about everything in the environment."""
    wanted = ("-m", "pip", "install", "--dry-run", "--no-deps", "-i", index.url)
    for option in ("-I", "-E"):
        done = patched.run(option, *wanted, "--variant", "app=null", "app")
        installs(done, "app-1.0-null")
    code = (
        "import runpy, sys; sys.path.append(sys.argv.pop(1)); "
        "runpy.run_module('pip', {}, '__main__')"
    )
    done = patched.run("-S", "-c", code, str(patched.site_packages), "--version")
    assert "pep-variants" not in done.out, done


def test_starts_both_ways(patched):
    """Python up to 3.14 reads the .pth file, newer ones the .start file: both do the same."""
    (pth,) = patched.site_packages.glob("pep_variants*.pth")
    (start,) = patched.site_packages.glob("pep_variants*.start")
    module, _, function = start.read_text().strip().partition(":")
    assert pth.read_text() == f"import {module}\n"
    code = (
        f"import pkgutil, sys; pkgutil.resolve_name('{module}:{function}')()  # pip\n"
        "print(sum(type(f).__module__.startswith('pep_variants') for f in sys.meta_path))"
    )
    assert patched.run("-c", code).out == "1\n"


@pytest.mark.one
def test_only_programs_with_pip_in_their_command_import_the_shim(fresh):
    shown = "import sys; print('pep_variants_shim' in sys.modules)"
    for name in ("PIP.EXE", "pip-compile", "other"):
        (fresh.path / name).write_text(shown)
    for command, watches in (
        (("-c", shown), False),
        (("-c", f"{shown}  # pip"), True),
        (("PIP.EXE",), True),
        (("pip-compile", "list"), True),
        (("other", "a"), False),
    ):
        # The path of the interpreter has "pip" in it, as that of every test here: that is no sign.
        done = fresh.run(*command)
        assert done.text == f"{watches}\n", command


# Modules.

LIBRARIES = ("packaging", "archspec", "platformdirs", "tomli", "pynvml", "resolvelib")
OURS = ("pep_variants", "resolvelib_variants")


def cpu_index():
    levels = {f"v{n}": {"x86_64": {"level": [f"v{n}"]}} for n in (1, 2, 3, 4)}
    variants = {"null": {}, **levels, "cu": {"nvidia": {"cuda_version_lower_bound": ["12.0"]}}}
    found = metadata(
        variants, namespaces=["nvidia", "x86_64"], providers={"nvidia": NVIDIA, "x86_64": X86_64}
    )
    return index_of([Release("app", "1.0", found)])


def test_other_libraries_do_not_matter(fresh, serve):
    """The environment's own packaging, archspec, … may be anything, even broken."""
    for name in (*LIBRARIES, *OURS):
        (fresh.site_packages / f"{name}.py").write_text("raise RuntimeError('not this one')")
    done = dry_run(fresh, serve(cpu_index()), "app")
    assert re.search(r"Would install app-1\.0-(cu|v\d|null)\n", done.out), done
    assert done.err == ""


def test_nothing_leaks(patched, serve):
    """The bundled modules are not importable by a program that runs pip in its own process."""
    index = serve(cpu_index())
    code = (
        "import sys; from pip._internal.cli.main import main\n"
        f"assert main(['install', '--dry-run', '-q', '-i', {index.url!r}, 'app']) == 0\n"
        f"print([n for n in {(*LIBRARIES, *OURS)!r} if n in sys.modules])"
    )
    done = patched.run("-c", code, env={"NV_VARIANT_PROVIDER_FORCE_SM_ARCH": "9.0"})
    assert (done.out, done.err) == ("[]\n", ""), done


FEW = {"errors", "internal", "label", "limits", "options", "places", "directories"}
PACKAGES = {"choose", "model", "settings"}


@pytest.mark.one
def test_only_what_is_needed_is_loaded(patched, index):
    """Without variants the engine is not loaded at all."""
    for wanted, loaded in (("always", False), ("app", True)):
        done = patched.run(
            "-X", "importtime", "-m", "pip", "install", "--dry-run", "-i", index.url, wanted,
            env=CUDA_12_8,
        )  # fmt: skip
        modules = {line.rpartition("|")[2].strip() for line in done.err.splitlines()}
        bundled = {name for name in modules if "_vendor.pep_variants." in name}
        assert (len(bundled) > 10) == loaded
        if not loaded:
            assert {name.rpartition(".")[2] for name in bundled} <= FEW | PACKAGES


@pytest.mark.one
def test_programs_that_look_for_candidates_themselves(patched, index):
    """Programs that use parts of pip in their own process see no wheel that they cannot judge."""
    code = (
        "from pip._internal.commands import create_command\n"
        "command = create_command('install')\n"
        f"options, _ = command.parse_args(['-i', {index.url!r}])\n"
        "with command.main_context():\n"
        "    session = command._build_session(options)\n"
        "    finder = command._build_package_finder(options=options, session=session)\n"
        "    print(*finder.find_all_candidates('app'))\n"
    )
    done = patched.run("-c", code)
    assert done.out.startswith("'app' candidate (version 0.9 at "), done
    assert done.out.count("candidate") == 1


KILLER = """
import os, runpy, sys
left = 40
def count(event, arguments):
    global left
    if event not in ("open", "os.rename", "os.remove") or "pep_variants" not in str(arguments[0]):
        return
    if event != "open" or "w" in str(arguments[1]):
        left -= 1
        if left == 0:
            os._exit(137)
sys.addaudithook(count)
runpy.run_module("pip", {}, "__main__")
"""


@pytest.mark.one
def test_killed_while_it_is_installed(environments, fresh, index):
    """Whatever is there of it then, Python starts, pip works, and installs it again."""
    command = ("install", "--no-index", "--force-reinstall", str(environments.shim_wheel))
    done = fresh.run("-c", KILLER, *command)
    assert done.code == 137, done
    assert fresh.run("-c", "print('fine')").text == "fine\n"
    done = fresh.pip("list", "--format", "freeze")
    assert (done.code, "Traceback" in done.text) == (0, False), done
    done = fresh.pip(*command)
    assert (done.code, "Traceback" in done.text) == (0, False), done
    assert CHOSEN in dry_run(fresh, index, "app").out
