"""Variants switched off: by the user, by a pip that is not known, by a fault of the shim."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from pathlib import Path

import pytest

from support.environments import PIPS, Environment
from support.patched_pip import with_patched_pip
from support.pip_commands import dry_run, installs, versions
from support.pip_seams import fail_in_shim
from support.projects import CUDA_12_8, ON_GPU, app_index
from support.wheels import Wheel

OFF = {"PEP_VARIANTS_SHIM": "0"}
PLAIN = ("always-1.0", "app-1.0")
IGNORED = "wheel variants are ignored"


@pytest.fixture
def index(serve):
    """A project with variants and a plain wheel."""
    return serve(app_index(plain=True))


def same(command, none, shim, **options):
    """Run *command* without the shim and with it; return both results, paths made equal."""
    theirs, ours = (Environment(each.path).pip(*command, **options) for each in (none, shim))
    out, err = (text.replace(str(shim.path), str(none.path)) for text in (ours.out, ours.err))
    assert (ours.code, out) == (theirs.code, theirs.out), ours
    return theirs.err, err


# By the user.


def test_kill_switch(plain, patched, index):
    """The pip that is there, as if the shim were not."""
    install = ("install", "--dry-run", "-i", index.url)
    env = {**CUDA_12_8, **OFF, "VARIANTS_VARIANT": "app=nonsense"}
    for command in ((*install, "app"), (*install, "--no-variants", "app"), ("--version",)):
        theirs, ours = same(command, plain, patched, env=env)
        assert ours == theirs


@pytest.mark.one
def test_kill_switch_is_cheap_and_counts_always(patched, index):
    """Nothing of the shim is imported but what starts it; ``-I`` cannot switch it on again."""
    code = (
        "import sys, pip._internal.cli.main\n"
        "print(*sorted(m for m in sys.modules if m.startswith('pep_variants_shim')))"
    )
    for value, on in (("off", False), ("False", False), ("", True), ("1", True)):
        done = patched.run("-c", code, env={"PEP_VARIANTS_SHIM": value})
        assert ("pep_variants_shim._hook" in done.out) is on
        assert on or done.out == "pep_variants_shim pep_variants_shim_start\n"
    command = ("-I", "-m", "pip", "install", "--dry-run", "-i", index.url, "app")
    installs(patched.run(*command, env={**CUDA_12_8, **OFF}), *PLAIN)


@pytest.mark.one
def test_kill_switch_of_the_patched_pip(environments, available, index):
    environment = with_patched_pip(environments, available.python, available.pip)
    installs(dry_run(environment, index, "app"), *ON_GPU.split())
    done = dry_run(environment, index, "app", **OFF)
    installs(done, *PLAIN)
    assert done.err == ""


# By a pip that is not known.


@pytest.mark.one
def test_older_pip(environments, available, index, tmp_path):
    """It works as if there were no shim, and says why in one line, where it matters."""
    none = environments.plain(available.python, "23.3.2").copied(tmp_path / "none")
    shim = none.copied(tmp_path / "shim")
    shim.install(str(environments.shim_wheel))
    line = (
        f"pep-variants-shim: pip 23.3.2 is too old (24.0 or newer is needed): {IGNORED}; "
        "to upgrade it: {} -m pip install --upgrade pip\n"
    )
    install = ("install", "--dry-run", "-i", index.url)
    for command, said in (
        ((*install, "app"), True),
        ((*install, "absent"), True),
        (("--version",), False),
        (("index", "versions", "-i", index.url, "app"), False),
        (("--log", str(tmp_path / "install"), "freeze", "--exclude", "pep-variants-shim"), False),
    ):
        theirs, ours = same(command, none, shim)
        assert ours == (line.format(none.python) if said else "") + theirs
    # Where `python` is that of the environment, its path is not needed.
    scripts = f"{Path(shim.python).parent}{os.pathsep}{os.environ['PATH']}"
    done = shim.pip(*install, "app", env={"PATH": scripts})
    assert done.err.startswith(line.format("python")), done
    completion = {"COMP_WORDS": "pip install --no-dep", "COMP_CWORD": "2", "PIP_AUTO_COMPLETE": "1"}
    assert shim.pip(env=completion).err == ""


@pytest.mark.one
@pytest.mark.parametrize(
    ("name", "lacks"),
    [
        ("evaluate_links", "index.package_finder lacks PackageFinder.evaluate_links"),
        ("select_backend", "select_backend"),
    ],
)
def test_pip_that_has_changed(available, changeable, index, name, lacks):
    """One line, and it is as if there were no shim; what was asked for is an error."""
    for path in (changeable.site_packages / "pip" / "_internal").rglob("*.py"):
        text = path.read_text("utf-8")
        path.write_text(re.sub(rf"\b{name}\b", "renamed", text), "utf-8")
    done = dry_run(changeable, index, "app")
    installs(done, *PLAIN)
    assert done.err.startswith(f"pep-variants-shim: pip {available.pip} is not supported (")
    assert lacks in done.err
    assert done.err.endswith(
        f"): {IGNORED}; to get versions that go together: {changeable.python} -m pip install "
        f'--upgrade pep-variants-shim "pip<={PIPS[-1]}"\n'
    )
    done = dry_run(changeable, index, "--variant", "app=null", "app")
    assert done.code != 0
    if "no such option: --variant" not in done.err:
        refused = "ERROR: --variant has no effect: pip "
        assert done.err.splitlines()[-1].startswith(refused), done
        assert "PEP_VARIANTS_SHIM=0" in done.err
        done = dry_run(changeable, index, "app", VARIANTS_VARIANT="app=null")
        assert done.code == 1, done
        assert "ERROR: VARIANTS_VARIANT has no effect: pip " in done.err
    # Others say nothing, and do what they did.
    assert changeable.pip("list", "--exclude", "pep-variants-shim").err == ""


# By faults.


@pytest.mark.one
@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("_vendor/resolvelib_variants/ordering.py", "SyntaxError: "),
        ("_hook.py", "SyntaxError: "),
        ("_vendor", "pip "),
    ],
)
def test_damaged_installation(changeable, index, file, said):
    """Variants are lost, pip is not, and can remove it."""
    path = changeable.site_packages / "pep_variants_shim" / file
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.write_text("1 +")
    done = dry_run(changeable, index, "app")
    installs(done, *PLAIN)
    assert done.err.count("\n") == 1
    assert done.err.startswith(f"pep-variants-shim: {said}"), done
    assert IGNORED in done.err
    done = dry_run(changeable, index, "--variant", "app=null", "app")
    assert done.code != 0
    if "ordering" in file:
        assert done.err.startswith("ERROR: Internal error in pep-variants-shim: SyntaxError"), done
        assert done.err.count("\n") == 1
    assert changeable.pip("uninstall", "-y", "pep-variants-shim").code == 0


@pytest.mark.parametrize(
    ("file", "name"),
    [("_candidates.py", "check"), ("_vendor/resolvelib_variants/provider.py", "find_matches")],
)
def test_fault_in_the_middle(changeable, index, tmp_path, file, name):
    """pip resolves again, without variants; what was asked for by name or hash is an error."""
    fail_in_shim(changeable, file, name)
    done = dry_run(changeable, index, "app")
    installs(done, *PLAIN)
    (line,) = done.err.splitlines()
    assert line.startswith("pep-variants-shim: RuntimeError: injected ("), done
    assert re.search(rf" \(\w+(\.\w+)+:\w+:\d+\): {IGNORED} in this run\. Please report", line)
    assert "PEP_VARIANTS_SHIM=0" in line
    assert dry_run(changeable, index, "app", **OFF).err == ""
    before = versions(changeable)
    data = index.files["app"]["app-1.0-py3-none-any-cu128.whl"]
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"app==1.0 --hash=sha256:{hashlib.sha256(data).hexdigest()}\n")
    errors = {
        "--variant app=cu128 app": "Internal error in pep-variants-shim: RuntimeError: injected (",
        f"--no-deps -r {requirements}": f"{IGNORED} in this run",
    }
    for wanted, said in [*errors.items()][: 2 if name == "check" else 1]:
        done = changeable.pip("install", "-i", index.url, *wanted.split(), env=CUDA_12_8)
        assert done.code == 1, done
        assert said in done.err
        assert "Traceback" not in done.text
        assert versions(changeable) == before


def test_fault_that_no_function_of_ours_handles(changeable, index):
    """pip compares a version of the shim: the command runs again, without variants."""
    index.add_wheel(Wheel("app", "0.9"))
    assert changeable.pip("install", "-i", index.url, "app==0.9").code == 0
    for name in ("__le__", "__hash__"):  # pip needs the second one before the first
        fail_in_shim(changeable, "_links.py", name)
        done = dry_run(changeable, index, "--upgrade", "app")
        installs(done, "always-1.0", "app-1.0")
        (line,) = done.err.splitlines()
        assert line.startswith("pep-variants-shim: RuntimeError: injected ("), done
        assert f":{name}:" in line, done


def test_fault_too_late(changeable, serve):
    """The wheel is fetched after pip has resolved by its metadata file: an error, in time."""
    fail_in_shim(changeable, "_candidates.py", "check")
    index = serve(app_index(metadata_file=True, plain=True))
    before = versions(changeable)
    done = changeable.pip("install", "-i", index.url, "app", env=CUDA_12_8)
    if "RuntimeError" not in done.text:
        pytest.skip("this pip does not resolve by metadata files")
    assert "Traceback" not in done.text
    assert "PEP_VARIANTS_SHIM=0" in done.err
    if done.code:
        assert versions(changeable) == before
        done = changeable.pip("install", "-i", index.url, "app", env={**CUDA_12_8, **OFF})
    assert "Successfully installed always-1.0 app-1.0\n" in done.out, done
