"""Variants switched off: by the user, or by a fault of the shim in the middle of a command."""

from __future__ import annotations

import ast
import hashlib
import re

import pytest

from support.environments import Environment
from support.patched_pip import with_patched_pip
from support.pip_commands import dry_run, versions
from support.pip_seams import rename_in_pip
from support.projects import CUDA_12_8, ON_GPU, app_index
from support.wheels import Wheel

OFF = {"PEP_VARIANTS_SHIM": "0"}
PLAIN = "Would install always-1.0 app-1.0\n"


def an_index(**options):
    """A project with variants and a plain wheel."""
    index = app_index(**options)
    index.add_wheel(Wheel("app", "1.0", requires=("always",)), metadata_file=True)
    index.add_wheel(Wheel("plain", "1.0"))
    return index


# By the user.


def test_kill_switch(plain, patched, serve):
    """The pip that is there, as if the shim were not."""
    index = serve(an_index())
    results = [
        Environment(environment.path).pip(
            *command, env={**CUDA_12_8, **OFF, "VARIANTS_VARIANT": "app=nonsense"}
        )
        for command in (
            ("install", "--dry-run", "-i", index.url, "app"),
            ("install", "--dry-run", "--no-variants", "-i", index.url, "app"),
            ("--version",),
        )
        for environment in (plain, patched)
    ]
    for theirs, ours in zip(results[::2], results[1::2], strict=True):
        assert ours.code == theirs.code, ours
        assert ours.out.replace(str(patched.path), str(plain.path)) == theirs.out
        assert ours.err.replace(str(patched.path), str(plain.path)) == theirs.err
    assert PLAIN in results[0].out


@pytest.mark.one
def test_kill_switch_is_cheap_and_counts_always(patched, serve):
    """Nothing of the shim is imported but what starts it; ``-I`` cannot switch it on again."""
    code = (
        "import sys, pip._internal.cli.main\n"
        "print(*sorted(m for m in sys.modules if m.startswith('pep_variants_shim')))"
    )
    for value in ("off", "False"):
        done = patched.run("-c", code, env={"PEP_VARIANTS_SHIM": value})
        assert done.out == "pep_variants_shim pep_variants_shim_start\n"
    for value in ("", "1"):
        done = patched.run("-c", code, env={"PEP_VARIANTS_SHIM": value})
        assert "pep_variants_shim.hook" in done.out
    command = ("-I", "-m", "pip", "install", "--dry-run", "-i", serve(an_index()).url, "app")
    done = patched.run(*command, env={**CUDA_12_8, **OFF})
    assert done.out.endswith(PLAIN), done


@pytest.mark.one
def test_kill_switch_of_the_patched_pip(environments, available, serve):
    environment = with_patched_pip(environments, available.python, available.pip)
    index = serve(an_index())
    assert dry_run(environment, index, "app").out.endswith(f"Would install {ON_GPU}\n")
    done = dry_run(environment, index, "app", **OFF)
    assert done.out.endswith(PLAIN), done
    assert done.err == ""


# By faults. Each in a function that pip comes by after it has got variant wheels.


FAULTS = {
    "the check of the wheel": ("candidates.py", "check"),
    "conditions": ("_vendor/resolvelib_variants/provider.py", "find_matches"),
}


def broken(environment, file, name):
    """Have a function of the shim in *environment* raise an error."""
    path = environment.site_packages / "pep_variants_shim" / file
    tree = ast.parse(path.read_text("utf-8"))
    (*_, function) = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    function.body.insert(0, ast.parse("raise RuntimeError('injected')").body[0])
    path.write_text(ast.unparse(tree), "utf-8")


def assert_one_line(done):
    """Check that there is nothing in the error output but our line; return it."""
    (line,) = done.err.splitlines()
    assert line.startswith("pep-variants-shim: RuntimeError: injected ("), done
    assert re.search(r" \(\w+(\.\w+)+:\w+:\d+\): wheel variants are ignored in this run\. ", line)
    assert "Please report this line" in line
    assert "PEP_VARIANTS_SHIM=0" in line


@pytest.mark.parametrize(("file", "name"), FAULTS.values(), ids=FAULTS)
def test_fault_in_the_middle(fresh, serve, file, name):
    """pip resolves again, without variants; what was asked for by name is an error."""
    broken(fresh, file, name)
    index = serve(an_index())
    done = dry_run(fresh, index, "app")
    assert done.code == 0, done
    assert done.out.endswith(PLAIN), done
    assert_one_line(done)
    before = versions(fresh)
    done = fresh.pip("install", "-i", index.url, "--variant", "app=cu128", "app", env=CUDA_12_8)
    assert done.code == 1, done
    assert "Internal error in pep-variants-shim: RuntimeError: injected (" in done.err
    assert "Traceback" not in done.text
    assert versions(fresh) == before
    assert dry_run(fresh, index, "app", **OFF).err == ""


def test_hashes_count_after_a_fault(fresh, serve, tmp_path):
    """The wheel that is left is not taken where the user allowed only the variant."""
    broken(fresh, *FAULTS["the check of the wheel"])
    index = serve(an_index())
    files = {name: data for found in index.files.values() for name, data in found.items()}
    pins = []
    for name in ("app-1.0-py3-none-any-cu128.whl", "always-1.0-py3-none-any.whl"):
        digest = hashlib.sha256(files[name]).hexdigest()
        pins.append(f"{name.partition('-')[0]}==1.0 --hash=sha256:{digest}\n")
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("".join(pins))
    before = versions(fresh)
    options = ("--no-deps", "-r", str(requirements))
    done = fresh.pip("install", "-i", index.url, *options, env=CUDA_12_8)
    assert done.code == 1, done
    assert "wheel variants are ignored in this run" in done.err
    assert "Traceback" not in done.text
    assert versions(fresh) == before


def test_fault_too_late(fresh, serve):
    """The wheel is fetched after pip has resolved by its metadata file: an error, in time."""
    broken(fresh, "candidates.py", "check")
    index = serve(an_index(metadata_file=True))
    before = versions(fresh)
    done = fresh.pip("install", "-i", index.url, "app", env=CUDA_12_8)
    if "RuntimeError" not in done.text:
        pytest.skip("this pip does not resolve by metadata files")
    assert "Traceback" not in done.text
    assert "PEP_VARIANTS_SHIM=0" in done.err
    if done.code:
        assert versions(fresh) == before
        done = fresh.pip("install", "-i", index.url, "app", env={**CUDA_12_8, **OFF})
    assert "Successfully installed always-1.0 app-1.0\n" in done.out, done


@pytest.mark.parametrize("name", ["determine_resolver_variant", "_result"])
def test_pip_that_has_changed_where_a_label_is_forced(fresh, serve, name):
    """The label that was asked for is not replaced by another wheel, however early the fault is."""
    assert rename_in_pip(fresh, name)
    index = serve(an_index())
    for arguments, env in (
        (("--variant", "app=cu128"), {}),
        ((), {"VARIANTS_VARIANT": "app=cu128"}),
    ):
        done = fresh.pip(
            "install", "--dry-run", "-i", index.url, *arguments, "app", env={**CUDA_12_8, **env}
        )
        assert done.code == 1, done
        assert "Internal error in pep-variants-shim: AttributeError" in done.err
        assert "Traceback" not in done.text
