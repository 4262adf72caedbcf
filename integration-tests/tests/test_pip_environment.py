"""The shim as a guest: in environments, pips and interpreters of every kind, and gone again."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.environments import PIPS, clean_environ
from support.index import index_of
from support.projects import CUDA_12_8, ON_GPU, app_index
from support.wheels import NVIDIA, X86_64, Release, Wheel, metadata


def tree(environment):
    """Contents of everything in the environment that is no byte code."""
    return {
        str(path.relative_to(environment.path)): path.read_bytes()
        for path in environment.path.rglob("*")
        if path.is_file() and not path.is_symlink() and path.suffix != ".pyc"
    }


def dry_run(environment, index, *wanted, **env):
    done = environment.pip(
        "install", "--dry-run", "-i", index.url, *(wanted or ["app"]), env={**CUDA_12_8, **env}
    )
    assert "Traceback" not in done.text
    return done


@pytest.mark.matrix
def test_install_and_uninstall(environments, available, plain, serve, tmp_path):
    """It acts from the next command on; without it everything is as it was."""
    index = serve(app_index())
    copy = plain.copied(tmp_path / "environment")
    before = tree(copy)
    unpatched = dry_run(copy, index)
    assert unpatched.code == 1

    copy.install(str(environments.shim_wheel))
    assert f"Would install {ON_GPU}\n" in dry_run(copy, index).out
    version = copy.pip("--version").out
    assert re.fullmatch(rf"pip {available.pip} from .* with pep-variants-shim \d\S+\n", version)

    done = copy.pip("uninstall", "-y", "pep-variants-shim")
    assert done.code == 0, done
    assert done.err == ""
    assert tree(copy) == before
    assert not list(copy.site_packages.glob("pep_variants*"))
    assert dry_run(copy, index) == unpatched
    assert "pep-variants" not in copy.pip("--version").out


IGNORED = "wheel variants are ignored"
UNSUPPORTED = (
    f"pep-variants-shim: pip 23.3.2 is too old (24.0 or newer is needed): {IGNORED}; "
    "to upgrade it: {} -m pip install --upgrade pip\n"
)


@pytest.mark.one
def test_older_pip(environments, available, serve, tmp_path):
    """It works as if there were no shim, and says why in one line, where it matters."""
    index = app_index()
    index.add_wheel(Wheel("app", "0.9", requires=("always",)))
    serve(index)
    none = environments.plain(available.python, "23.3.2").copied(tmp_path / "none")
    shim = none.copied(tmp_path / "shim")
    shim.install(str(environments.shim_wheel))
    line = UNSUPPORTED.format(none.python)  # paths are compared as if they were equal
    target = str(tmp_path / "target")
    for command, expected in (
        (("install", "--dry-run", "-i", index.url, "app"), line),
        (("download", "-d", target, "-i", index.url, "app"), line),
        (("install", "--dry-run", "-i", index.url, "absent"), line),
        (("--version",), ""),
        (("list", "--exclude", "pep-variants-shim"), ""),
        (("show", "pip", "install"), ""),
        (("check",), ""),
        (("index", "versions", "-i", index.url, "app"), ""),
        (("--log", str(tmp_path / "install"), "freeze", "--exclude", "pep-variants-shim"), ""),
    ):
        shutil.rmtree(target, ignore_errors=True)
        theirs = none.pip(*command)
        shutil.rmtree(target, ignore_errors=True)
        ours = shim.pip(*command)
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
    "evaluate_links": "index.package_finder lacks PackageFinder.evaluate_links",
    "parse_wheel_filename": "index.sources lacks parse_wheel_filename",
    "select_backend": "select_backend",
}


@pytest.mark.one
@pytest.mark.parametrize("seam", SEAMS)
def test_pip_without_a_seam(available, plain, patched, serve, tmp_path, seam):
    """A pip that was changed: one line, and it is as if there were no shim, never half of it."""
    index = app_index(metadata_file=True)
    index.add_wheel(Wheel("app", "0.9", requires=("always",)))
    serve(index)
    results = []
    for environment, name in ((plain, "none"), (patched, "shim")):
        copy = environment.copied(tmp_path / name)
        package = copy.site_packages / "pip" / "_internal"
        for path in package.rglob("*.py"):
            text = path.read_text("utf-8")
            if seam != "parse_wheel_filename":
                text = re.sub(rf"\b{seam}\b", f"renamed_{seam}", text)
            elif path.name == "sources.py":  # where it comes from, it keeps its name
                text = text.replace(f"    {seam},", f"    {seam} as renamed_{seam},")
                text = text.replace(f"{seam}(", f"renamed_{seam}(")
            path.write_text(text, "utf-8")
        results.append(dry_run(copy, index))
    none, shim = results
    assert "Would install always-1.0 app-0.9\n" in none.out, none
    line, _, rest = shim.err.partition("\n")
    assert line.startswith(f"pep-variants-shim: pip {available.pip} is not supported (")
    assert line.endswith(
        f"): {IGNORED}; to get versions that go together: {copy.python} -m pip install --upgrade "
        f'pep-variants-shim "pip<={PIPS[-1]}"'
    )
    assert SEAMS[seam] in line
    assert (shim.code, shim.out, rest) == (none.code, none.out, none.err)
    # What was asked for and cannot be had is an error: of ours, or of pip's, which does not know
    # the option.
    done = dry_run(copy, index, "--variant", "app=null", "app")
    assert done.code != 0
    refused = ("ERROR: --variant has no effect: pip ", "no such option: --variant")
    assert done.err.splitlines()[-1].startswith(refused), done
    if refused[0] in done.err:
        assert "PEP_VARIANTS_SHIM=0" in done.err
        done = dry_run(copy, index, "app", VARIANTS_VARIANT="app=null")
        assert done.code == 1, done
        assert "ERROR: VARIANTS_VARIANT has no effect: pip " in done.err
    # Others say nothing, and do what they did.
    assert copy.pip("list", "--exclude", "pep-variants-shim").err == ""


PARAMETERS = {
    "index/package_finder.py": ("link_evaluator: LinkEvaluator, links:", "evaluate_links(self, "),
    "models/wheel.py": ("self, filename: str", "Wheel.__init__(self, filename)"),
}


@pytest.mark.one
@pytest.mark.parametrize("file", PARAMETERS)
def test_pip_with_other_parameters(fresh, serve, file):
    """A function of the same name that takes something else is not the one that is meant."""
    before, lacks = PARAMETERS[file]
    path = fresh.site_packages / "pip" / "_internal" / file
    text = path.read_text("utf-8")
    assert before in text
    path.write_text(text.replace(before, f"other: Any, {before}"), "utf-8")
    done = fresh.pip("install", "--dry-run", "-i", serve(app_index()).url, "app")
    line = done.err.splitlines()[0]
    assert re.match(r"pep-variants-shim: pip \S+ is not supported \(pip\._internal\.", line)
    assert lacks in line


@pytest.mark.one
@pytest.mark.parametrize("seam", ["InMemoryMetadata", "_parsed_pkg_info"])
def test_other_backend_without_a_seam(fresh, serve, seam):
    files = {"InMemoryMetadata": "_internal/metadata", "_parsed_pkg_info": "_vendor/pkg_resources"}
    for path in (fresh.site_packages / "pip" / files[seam]).rglob("*.py"):
        path.write_text(path.read_text("utf-8").replace(seam, f"renamed{seam}"), "utf-8")
    index = serve(app_index())
    done = dry_run(fresh, index, "always", _PIP_USE_IMPORTLIB_METADATA="0")
    (line,) = (line for line in done.err.splitlines() if line.startswith("pep-variants-shim"))
    assert f"lacks {seam}" in line or f"lacks DistInfoDistribution.{seam}" in line
    assert "Would install always-1.0\n" in done.out, done
    # The backend that is not used does not matter.
    assert f"Would install {ON_GPU}\n" in dry_run(fresh, index).out


STARTS = {
    "alone": ((), {}),
    "isolated": (("-I",), {}),
    "without site": (("-S",), {}),
    "without environment": (("-E",), {}),
    "with warnings as errors": ((), {"PYTHONWARNINGS": "error"}),
    "with warnings as errors in development mode": (("-X", "dev", "-W", "error"), {}),
    "optimized": (("-OO",), {}),
}


@pytest.mark.everywhere
@pytest.mark.hook
def test_start_of_the_interpreter(patched):
    """It is silent, and loads two small modules where the command line has pip in it."""
    code = "import sys; print([n for n in sorted(sys.modules) if 'variants' in n or n == 'pip'])"
    for options, env in STARTS.values():
        done = patched.run(*options, "-c", code, env=env)
        loaded = [] if "-S" in options else ["pep_variants_shim", "pep_variants_shim_start"]
        assert (done.code, done.out, done.err) == (0, f"{loaded}\n", ""), options


@pytest.mark.one
def test_isolated_interpreters_have_variants(patched, serve):
    """-I and -E are about the user's settings, -S is about everything in the environment."""
    index = serve(app_index())
    wanted = ("-m", "pip", "install", "--dry-run", "--no-deps", "-i", index.url)
    for option in ("-I", "-E"):
        done = patched.run(option, *wanted, "--variant", "app=null", "app")
        assert "Would install app-1.0-null\n" in done.out, done
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
    for name in ("pip3", "PIP.EXE", "pip-compile", "other", "other.py"):
        (fresh.path / name).write_text(shown)
    for command, watches in (
        (("-c", shown), False),
        (("-c", f"{shown}  # pip"), True),
        (("pip3", "list"), True),
        (("PIP.EXE",), True),
        (("pip-compile",), True),
        (("other", "a"), False),
        (("-m", "other"), False),
    ):
        # The path of the interpreter has "pip" in it, as that of every test here: that is no sign.
        done = subprocess.run(
            [fresh.python, *command],
            cwd=fresh.path,
            env=clean_environ(),
            capture_output=True,
            text=True,
        )
        assert (done.stdout, done.stderr) == (f"{watches}\n", ""), command


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
    done = dry_run(fresh, serve(cpu_index()))
    assert re.search(r"Would install app-1\.0-(cu|v\d|null)\n", done.out), done
    assert done.err == ""


def test_nothing_leaks(patched, serve):
    """Who runs pip in his own process finds no module of ours under its usual name."""
    index = serve(cpu_index())
    code = (
        "import sys; from pip._internal.cli.main import main\n"
        f"assert main(['install', '--dry-run', '-q', '-i', {index.url!r}, 'app']) == 0\n"
        f"print([n for n in {(*LIBRARIES, *OURS)!r} if n in sys.modules])"
    )
    done = patched.run("-c", code, env={"NV_VARIANT_PROVIDER_FORCE_SM_ARCH": "9.0"})
    assert (done.out, done.err) == ("[]\n", ""), done


FEW = ("errors", "internal", "label", "limits", "options", "places", "directories")


@pytest.mark.one
def test_only_what_is_needed_is_loaded(patched, serve):
    """Without variants the engine is not loaded at all."""
    index = app_index()
    serve(index)
    for wanted, loaded in (("always", False), ("app", True)):
        done = patched.run(
            "-X", "importtime", "-m", "pip", "install", "--dry-run", "-i", index.url, wanted,
            env=CUDA_12_8,
        )  # fmt: skip
        modules = {line.rpartition("|")[2].strip() for line in done.err.splitlines()}
        bundled = {name for name in modules if "_vendor.pep_variants." in name}
        assert (len(bundled) > 10) == loaded
        if not loaded:
            names = {name.rpartition(".")[2] for name in bundled}
            packages = {"choose", "model", "settings"}
            assert names <= {*FEW, *packages}


FAULTS = {
    "the wrapper": "_vendor/resolvelib_variants/ordering.py",
}


@pytest.mark.one
@pytest.mark.parametrize("file", FAULTS.values(), ids=FAULTS)
def test_damaged_installation(fresh, serve, file):
    """Variants are lost, pip is not."""
    (fresh.site_packages / "pep_variants_shim" / file).write_text("1 +")
    index = app_index()
    index.add_wheel(Wheel("app", "1.0", requires=("always",)))
    serve(index)
    done = dry_run(fresh, index)
    assert "Would install always-1.0 app-1.0\n" in done.out, done
    assert done.err.count("\n") == 1
    assert done.err.startswith("pep-variants-shim: SyntaxError: "), done
    assert "wheel variants are ignored in this run" in done.err
    done = dry_run(fresh, index, "--variant", "app=null", "app")
    assert done.code == 1
    assert done.err.startswith("ERROR: Internal error in pep-variants-shim: SyntaxError"), done
    assert done.err.count("\n") == 1
    assert (
        "Would install app-1.0\n" in dry_run(fresh, index, "--no-variants", "--no-deps", "app").out
    )


@pytest.mark.one
@pytest.mark.parametrize("file", ["hook.py", "session.py", "_vendor"])
def test_badly_damaged_installation(fresh, serve, file):
    path = fresh.site_packages / "pep_variants_shim" / file
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.write_text("1 +")
    index = app_index()
    index.add_wheel(Wheel("app", "1.0", requires=("always",)))
    done = dry_run(fresh, serve(index))
    assert "Would install always-1.0 app-1.0\n" in done.out, done
    assert done.err.count("\n") == 1, done
    assert fresh.pip("uninstall", "-y", "pep-variants-shim").code == 0


@pytest.mark.one
def test_who_looks_for_candidates_himself(patched, serve):
    """Programs that use parts of pip in their own process see no wheel that they cannot judge."""
    index = app_index()
    index.add_wheel(Wheel("app", "0.9"))
    code = (
        "from pip._internal.commands import create_command\n"
        "command = create_command('install')\n"
        f"options, _ = command.parse_args(['-i', {serve(index).url!r}])\n"
        "with command.main_context():\n"
        "    session = command._build_session(options)\n"
        "    finder = command._build_package_finder(options=options, session=session)\n"
        "    print(*finder.find_all_candidates('app'))\n"
    )
    done = patched.run("-c", code)
    assert done.out.startswith("'app' candidate (version 0.9 at "), done
    assert done.out.count("candidate") == 1
