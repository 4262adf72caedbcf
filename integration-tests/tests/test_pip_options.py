"""The options, given to pip in each of the ways it takes options.

What they do to the choice, and settings files, are a matter of the conformance cases.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.index import index_of
from support.pip_commands import installs
from support.projects import CUDA_12_8, cuda, gpu_index
from support.wheels import NVIDIA, Release, Wheel, metadata

BLAS = {
    "static-properties": {"library": ["mkl", "openblas"]},
    "feature-order": ["library"],
}
FANCY = {**BLAS, "static-properties": {"library": ["fancy"]}, "optional": True}

METADATA = metadata(
    {
        **cuda("12.6", "12.8")["variants"],
        "mkl": {"blas": {"library": ["mkl"]}},
        "openblas": {"blas": {"library": ["openblas"]}},
        "fancy": {"fancy": {"library": ["fancy"]}},
    },
    namespaces=["fancy", "nvidia", "blas"],
    providers={"nvidia": NVIDIA, "blas": BLAS, "fancy": FANCY},
)
OLD_DRIVER = """
[metadata]
version = "0.1"
[[provider]]
namespace = "nvidia"
[provider.properties]
cuda_version_lower_bound = ["12.6", "12.5"]
"""


@pytest.fixture
def index(serve):
    """An index with the project, and one without any variant."""
    found = index_of([Release("app", "1.0", METADATA, non_variant=True)])
    found.add_wheel(Wheel("other", "1.0"))
    return serve(found)


@pytest.fixture
def in_folder(patched, index, tmp_path):
    """Run a dry run in a folder with a platform file."""
    (tmp_path / "old-driver.toml").write_text(OLD_DRIVER)

    def run(*arguments, wanted="app", **env):
        return patched.pip(
            "install", "--dry-run", "-i", index.url, *arguments, wanted,
            env={**CUDA_12_8, **env}, cwd=tmp_path,
        )  # fmt: skip

    return run


PREFER = "blas :: library :: openblas"
EXCLUDE = "nvidia blas :: library"
EFFECTS = {
    "--no-variants": None,
    "--variant=app=": None,
    "--variant-enable=fancy": "fancy",
    "PIP_NO_VARIANTS=1": None,
    "PIP_NO_VARIANTS=0": "cu128",
    "PIP_VARIANT=app=openblas": "openblas",
    f"PIP_VARIANT_PREFER={PREFER}": "openblas",
    f"PIP_VARIANT_EXCLUDE={EXCLUDE}": "null",
    "PIP_VARIANT_PLATFORM=old-driver.toml": "cu126",
    "PIP_VARIANT_ENABLE=fancy": "fancy",
    "VARIANTS_NO_VARIANTS=1": None,
    "VARIANTS_VARIANT=app=openblas": "openblas",
    f"variant-exclude={EXCLUDE}": "null",
    "variant-platform=old-driver.toml": "cu126",
}
"""Options, variables and lines of pip's configuration, and the label that they lead to."""


def test_effects(in_folder, tmp_path):
    for given, label in EFFECTS.items():
        arguments, env = [given] if given.startswith("-") else [], {}
        if given[0].isupper():
            env = dict([given.split("=", 1)])
        elif not arguments:
            (tmp_path / "pip.conf").write_text(f"[install]\n{given}\n")
            env["PIP_CONFIG_FILE"] = str(tmp_path / "pip.conf")
        done = in_folder(*arguments, **env)
        installs(done, "app-1.0" if label is None else f"app-1.0-{label}")
        assert done.err == "", given


@pytest.mark.one
def test_mistakes(patched, in_folder, tmp_path):
    """They are errors that name option and value, on an index without any variant as well."""
    assert "--variant <name=label>" in patched.pip("install", "--help").out
    (tmp_path / "broken.toml").write_text("= 1")
    for option, value, wanted in (
        ("--variant", "app==1.0", "other"),
        ("--variant-exclude", "nvidia::", "other"),
        ("--variant-platform", "broken.toml", "app"),
    ):
        done = in_folder(option, value, wanted=wanted)
        error = last_line(done)
        assert done.err.count("\n") == 1
        assert (option if wanted == "other" else value) in error


def last_line(done):
    assert done.code == 1, done
    assert "Traceback" not in done.text
    line = done.err.splitlines()[-1]
    assert line.startswith("ERROR: ")
    return line


def test_forced_label_that_cannot_be_had(in_folder, index):
    # That project is not asked for here.
    assert in_folder("--variant", "other=x").code == 0
    legacy = ["--use-deprecated", "legacy-resolver", "--variant", "app=mkl"]
    error = last_line(in_folder(*legacy))
    assert error == "ERROR: --variant has no effect with the legacy resolver"
    index.add("app", "app-1.0-variants.json", b"[]")
    error = last_line(in_folder("--variant", "app=cu128"))
    assert f"{index.url[:-7]}files/app/app-1.0-variants.json: expected an object" in error


@pytest.mark.one
def test_forced_label_of_the_users_file_for_a_project_without_variants(in_folder, tmp_path):
    """It is an error wherever the label is asked for, also where nothing else reads settings."""
    folder = tmp_path / "config" / "variants"
    folder.mkdir(parents=True)
    (folder / "variants.toml").write_text("variant = ['other=x']\n")
    user = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    error = last_line(in_folder(wanted="other", **user))
    assert "other 1.0 has no variant 'x'" in error
    assert in_folder("--isolated", wanted="other", **user).code == 0
    # What is wrong with settings does not concern those who install plain wheels.
    (folder / "variants.toml").write_text("= broken")
    done = in_folder(wanted="other", **user)
    assert (done.code, done.err) == (0, ""), done


@pytest.mark.one
def test_forced_label_beside_what_is_installed(fresh, index):
    urls = ("-i", index.url)
    assert fresh.pip("install", *urls, "app", env=CUDA_12_8).code == 0
    same = fresh.pip("install", *urls, "--variant", "app=cu128", "app", env=CUDA_12_8)
    assert (same.code, "Requirement already satisfied" in same.out) == (0, True), same
    error = last_line(fresh.pip("install", *urls, "--variant", "app=", "app", env=CUDA_12_8))
    assert "app 1.0 is installed already, as variant cu128" in error
    assert "--variant-switch" in error
    forced = ("--variant-switch", "--variant", "app=")
    done = fresh.pip("install", *urls, *forced, "app", env=CUDA_12_8)
    assert "Successfully installed app-1.0\n" in done.out, done
    error = last_line(fresh.pip("install", *urls, "--variant", "app=mkl", "app", env=CUDA_12_8))
    assert "app 1.0 is installed already, without variant" in error


@pytest.mark.one
def test_for_another_python_of_this_machine(patched, index, tmp_path):
    """pip takes the platform of this machine then, so its GPU and what overrides it count."""
    arguments = ["download", "-d", str(tmp_path), "--only-binary=:all:", "--python-version", "3.9"]
    options = ("-i", index.url, "--variant-exclude", "blas")
    done = patched.pip(*arguments, *options, "app", env=CUDA_12_8)
    names = [path.name for path in tmp_path.glob("*.whl")]
    assert names == ["app-1.0-py3-none-any-cu128.whl"], done


def test_names_that_match_nothing(in_folder):
    """What is misspelled on the command line is said; what a variable sets is for all commands."""
    wrong = ("--variant=appp=cu126", "--variant-exclude=nvidai", "--variant-enable=fancyy")
    done = in_folder(*wrong)
    assert "--variant appp=cu126: this command has no project appp" in done.err
    assert "--variant-exclude 'nvidai' matches no variant of this command" in done.err
    assert "--variant-enable 'fancyy' matches no variant of this command" in done.err
    assert "app-1.0-cu128" in done.out
    quiet = in_folder(PIP_VARIANT_EXCLUDE="nvidai", PIP_VARIANT="appp=x")
    assert "matches no variant" not in quiet.err
    assert "has no project" not in quiet.err


@pytest.mark.everywhere
def test_versions_without_variants(patched, serve):
    index = gpu_index()
    index.add_wheel(Wheel("gpu", "1.0"))
    serve(index)
    for options, versions in (((), "2.0, 1.0"), (("--no-variants",), "1.0")):
        done = patched.pip("index", "versions", *options, "-i", index.url, "gpu", env=CUDA_12_8)
        assert f"Available versions: {versions}\n" in done.out, done


@pytest.mark.everywhere
def test_labels_in_requirements_files(fresh, index, tmp_path):
    """A file that `pip freeze` writes gives the same variant again, in every client."""
    force = ("install", "-i", index.url, "--variant", "app=cu126", "app", "other")
    assert fresh.pip(*force, env=CUDA_12_8).code == 0
    frozen = fresh.pip("freeze").out
    assert "# --variant app=cu126\napp==1.0\nother==1.0\n" in frozen
    assert fresh.pip("check").code == 0
    hashes = " ".join(
        f"--hash=sha256:{hashlib.sha256(index.files['app'][f'app-1.0-py3-none-any{end}']).hexdigest()}"
        for end in ("-cu126.whl", ".whl")
    )
    files = {
        "frozen": (frozen, (), "cu126"),
        "behind": ("app==1.0  # --variant app=cu126\n", (), "cu126"),
        "hashed": (f"# --variant=app=cu126\napp==1.0 {hashes}\n", (), "cu126"),
        "nested": ("-r frozen.txt\n", (), "cu126"),
        "wanted": ("app\n-c nested.txt\n", (), "cu126"),
        "option": (frozen, ("--variant", "app=mkl"), "mkl"),
        "plain": ("# --variant app=\napp\n", (), None),
        "other": ("# --variant app=cu126 and more\napp\n", (), "cu128"),
    }
    for name, (text, _, _) in files.items():
        (tmp_path / f"{name}.txt").write_text(text)
    variants = Path(sys.executable).with_name("variants")
    for name, (_, options, label) in files.items():
        path = str(tmp_path / f"{name}.txt")
        again = ("install", "--dry-run", "--ignore-installed", "--no-deps", "-i", index.url)
        done = fresh.pip(*again, *options, "-r", path, env=CUDA_12_8)
        assert done.code == 0, (name, done)
        assert f" app-1.0{f'-{label}' if label else ''}" in f"{done.out.splitlines()[-1]} ", done
        command = (variants, "resolve", "--json", "-i", index.url, *options, "-r", path)
        found = subprocess.run(
            command, env={**os.environ, **CUDA_12_8}, capture_output=True, text=True, check=True
        )
        assert f'"label": {json.dumps(label)}' in found.stdout, (name, found)
        plain = fresh.pip(*again, "-r", path, env={"PEP_VARIANTS_SHIM": "0"})
        assert "Would install app-1.0" in plain.out, (name, plain)
    # What is installed again without being asked for is not written.
    again = ("install", "-i", index.url, "--force-reinstall", "app", "--no-deps")
    assert fresh.pip(*again, env=CUDA_12_8).code == 0
    assert fresh.pip("freeze").out.startswith("app==1.0\n")
    (tmp_path / "absent.txt").write_text("# --variant app=cu99\napp\n")
    done = fresh.pip(*again, "-r", str(tmp_path / "absent.txt"), env=CUDA_12_8)
    assert (done.code, "cu99" in done.err) == (1, True)
