"""Lock files with variants: what is written, and what is made of them elsewhere."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest
import tomli_w

from pep_variants.detect.detector import Detector
from pep_variants.formats import toml
from support.environments import clean_environ
from support.index import Index
from support.projects import CUDA_12_8, DRIVER, app, app_index, cuda
from support.wheels import NVIDIA, Release, Wheel
from variants_index.lock_files import read_lock, select_locked
from variants_index.target import load_target

pytestmark = pytest.mark.one


@pytest.fixture
def lock(patched, serve, tmp_path):
    """An index, and a lock file that was written for CUDA 12.8."""
    index = serve(app_index())
    path = tmp_path / "pylock.toml"
    done = patched.pip("lock", "-o", str(path), "-i", index.url, "app", env=CUDA_12_8)
    assert done.code == 0, done
    return index, path


def install(environment, path, *options, driver="12.8"):
    return environment.pip(
        "install", "--dry-run", "--no-deps", *options, "-r", str(path), env={DRIVER: driver}
    )


def test_what_was_locked_is_installed(patched, lock):
    _, path = lock
    text = path.read_text()
    assert text.count("[packages.variants-json]") == 1
    assert "cu126" not in text
    done = install(patched, path)
    assert "Variant cu128 for app 1.0: CUDA driver 12.8 or newer" in done.out, done
    assert "app-1.0-cu128" in done.out.splitlines()[-1]


def test_what_was_locked_does_not_fit(patched, lock):
    _, path = lock
    done = install(patched, path, driver="12.0")
    assert done.code == 1
    assert (
        "Cannot select requirements from pylock file "
        f"{str(path)!r}: packages[1] (app): none of its wheels fits this machine: "
        "cu128 needs CUDA driver 12.8 or newer, this one supports up to 12.0"
    ) in done.err
    assert "Traceback" not in done.err


def test_label_that_is_not_locked(patched, lock):
    _, path = lock
    done = install(patched, path, "--variant", "app=cu126")
    assert done.code == 1
    assert "app 1.0 has no variant 'cu126', which --variant app=cu126 asks for" in done.err
    done = install(patched, path, "--variant", "app=cu128")
    assert "app-1.0-cu128" in done.out.splitlines()[-1]


def test_wheel_that_is_not_what_the_lock_file_says(patched, lock):
    """Properties in the lock file are a promise."""
    _, path = lock
    path.write_text(path.read_text().replace('"12.8"', '"12.6"'))
    done = install(patched, path)
    assert done.code == 1
    assert "variants.cu128 differs" in done.err


@pytest.mark.parametrize("bound", ["12.8", "12.6"])
def test_wheel_beside_the_lock_file(patched, lock, bound):
    """A path in place of the URL; the promise holds as well."""
    index, path = lock
    name = "app-1.0-py3-none-any-cu128.whl"
    (path.parent / name).write_bytes(index.files["app"][name])
    text = path.read_text().replace(f'url = "{index.url[:-7]}files/app/{name}"', f'path = "{name}"')
    path.write_text(text.replace('"12.8"', f'"{bound}"'))
    done = install(patched, path, "--variant", "app=cu128")
    assert done.code == (0 if bound == "12.8" else 1), done
    assert ("variants.cu128 differs" in done.err) == (bound != "12.8")


@pytest.mark.parametrize("table", ["variants-json = {}", ""])
def test_lock_file_with_broken_metadata(patched, lock, table):
    """There is nothing else to take."""
    _, path = lock
    text = path.read_text()
    start = text.index("[packages.variants-json]")
    end = text.index("[[packages]]", start)
    name = 'name = "app"\n'
    path.write_text((text[:start] + text[end:]).replace(name, f"{name}{table}\n", 1))
    done = install(patched, path)
    assert done.code == 1
    assert "Traceback" not in done.err
    assert "packages[1] (app): " in done.err
    assert "variants-json" in done.err


# One document per generation that pip has to copy into a lock file. `static` has values of its own.
NAMESPACES = {"namespace": ["nvidia", "blas"]}
PRIORITIES = {
    **NAMESPACES,
    "feature": {"nvidia": ["cuda_version_lower_bound"]},
    "property": {"nvidia": {"cuda_version_lower_bound": ["12.6", "12.8"]}},
}
SCHEMAS = "https://variants-schema.wheelnext.dev/"
OLD_PROVIDERS = {"nvidia": NVIDIA, "blas": {"requires": ["blas-provider"], "optional": True}}
GENERATIONS = {
    "0.0.1": {"$schema": SCHEMAS, "default-priorities": PRIORITIES, "providers": OLD_PROVIDERS},
    "0.1.1": {"$schema": f"{SCHEMAS}peps/825/v0.1.1.json", "default-priorities": NAMESPACES},
    "0.2.0": {
        "$schema": f"{SCHEMAS}peps/850/v0.2.0.json",
        "default-priorities": NAMESPACES,
        "providers": {
            "nvidia": NVIDIA,
            "blas": {"static-properties": {"library": ["mkl"]}, "a-later-key": 1},
        },
    },
    "none": {"default-priorities": PRIORITIES, "providers": OLD_PROVIDERS},
}
VARIANTS = {"null": {}, "cu128": {"nvidia": {"cuda_version_lower_bound": ["12.8", "12.6"]}}}
PLATFORM = """
[[provider]]
namespace = "nvidia"
[provider.properties]
cuda_version_lower_bound = ["12.8", "12.7"]
"""


@pytest.fixture
def options(serve, tmp_path):
    """Return a function that serves a release of a generation; it gives options of pip."""
    (tmp_path / "platform.toml").write_text(PLATFORM)

    def prepared(generation, *, document=True, requires=()):
        index = serve(Index(ranges=True))
        release = Release("app", "1.0", {**GENERATIONS[generation], "variants": VARIANTS}, requires)
        index.add_release(release)
        if not document:
            index.remove("app", release.metadata_filename)
        return ["-i", index.url, "--variant-platform", str(tmp_path / "platform.toml")]

    return prepared


@pytest.mark.parametrize("document", [True, False], ids=["index", "wheels"])
@pytest.mark.parametrize("generation", GENERATIONS)
def test_documents_are_copied(patched, options, tmp_path, generation, document):
    """Every generation as the index or the wheel has it: nothing rewritten, labels apart."""
    where = options(generation, document=document)
    path = tmp_path / "pylock.toml"
    done = patched.pip("lock", "-o", str(path), *where, "app")
    assert done.code == 0, done
    assert "is locked without" not in done.err
    (package,) = toml.loads(path.read_text())["packages"]
    assert package["variants-json"] == {
        **GENERATIONS[generation],
        "variants": {"cu128": VARIANTS["cu128"]},
    }
    done = patched.pip("install", "--dry-run", *where[2:], "--no-index", "-r", str(path))
    assert "app-1.0-cu128" in done.out.splitlines()[-1], done


def test_keys_that_the_schema_forbids_are_not_copied(patched, serve, tmp_path):
    """An index may have them, a lock file may not."""
    index = serve(Index())
    tree = {**GENERATIONS["0.1.1"], "variants": VARIANTS, "providers": {}, "note": None}
    index.add_release(Release("app", "1.0", tree))
    path = tmp_path / "pylock.toml"
    assert patched.pip("lock", "-o", str(path), "-i", index.url, "app", env=CUDA_12_8).code == 0
    (package,) = toml.loads(path.read_text())["packages"]
    assert list(package["variants-json"]) == ["$schema", "default-priorities", "variants"]
    assert "app-1.0-cu128" in install(patched, path, "--no-index").out.splitlines()[-1]


@pytest.mark.parametrize("generation", ["0.2.0"])
def test_what_was_decided_stays_decided(fresh, options, generation):
    """By a platform file here, so that nothing on this machine says the same."""
    marker = "'nvidia :: cuda_version_lower_bound :: 12.6' in variant_properties"
    where = options(generation, requires=(f"missing; {marker}",))
    done = fresh.pip("install", *where, "app")
    assert "Successfully installed app-1.0-cu128" in done.out, done
    for driver in ("", "12.6", "12.8"):
        check = fresh.pip("check", env={DRIVER: driver} if driver else {})
        assert (check.code, check.out) == (0, "No broken requirements found.\n"), driver


@pytest.fixture
def three_machines(available, serve, tmp_path):
    """An index, and the lock file of the resolver for two drivers and for a machine without any."""
    index = serve(app_index())
    targets = []
    for name, values in {"new": ["12.8", "12.6"], "old": ["12.6"], "cpu": []}.items():
        text = f'[target]\npython-version = "{available.python}"\n'
        text += '[[provider]]\nnamespace = "nvidia"\n'
        if values:
            text += f"[provider.properties]\ncuda_version_lower_bound = {values}\n"
        (tmp_path / f"{name}.toml").write_text(text)
        targets += ["--target", f"{name}.toml"]
    command = [sys.executable, "-c", "from variants_cli.main import main; main()"]
    subprocess.run(
        [*command, "resolve", "app", "-i", index.url, "-o", "pylock.toml", *targets],
        cwd=tmp_path, check=True, env=clean_environ({"VARIANTS_CACHE_DIR": str(tmp_path / "c")}),
    )  # fmt: skip
    return index, tmp_path / "pylock.toml"


MACHINES = [
    ("12.8", "always-1.0 app-1.0-cu128 for-128-1.0 for-cu128-1.0 for-gpu-1.0"),
    ("12.6", "always-1.0 app-1.0-cu126 for-gpu-1.0"),
    ("11.0", "always-1.0 app-1.0-null for-cpu-1.0"),
]


@pytest.mark.parametrize(("driver", "expected"), MACHINES)
def test_one_lock_file_for_several_machines(patched, three_machines, driver, expected):
    """What only other variants need is not installed."""
    _, path = three_machines
    done = patched.pip("install", "--dry-run", "-r", str(path), env={DRIVER: driver})
    assert done.out.splitlines()[-1] == f"Would install {expected}", done


@pytest.mark.parametrize("version", ["1.0+cuda"])
def test_local_versions(patched, serve, tmp_path, version):
    """Their plus sign is percent-encoded in URLs."""
    index = serve(Index())
    index.add_release(app(version))
    name = f"app-{version}-py3-none-any-cu128.whl"
    url = f"{index.url[:-7]}files/app/{name.replace('+', '%2B')}"
    path = tmp_path / "pylock.toml"
    table = cuda("12.6", "12.8")
    digest = hashlib.sha256(index.files["app"][name]).hexdigest()
    package = {"name": "app", "version": version, "variants-json": table,
               "wheels": [{"url": url, "hashes": {"sha256": digest}}]}  # fmt: skip
    path.write_text(
        tomli_w.dumps({"lock-version": "1.0", "created-by": "x", "packages": [package]})
    )
    done = install(patched, path)
    assert f"app-{version}-cu128" in done.out.splitlines()[-1], done


def test_only_variants_are_locked_and_not_wanted(patched, lock):
    """Said in words of lock files and options, not of the format."""
    _, path = lock
    done = install(patched, path, "--no-variants")
    assert done.code == 1
    assert (
        "packages[1] (app): only variant wheels of it are locked, and --no-variants leaves them "
        "out: install without that option, or lock a non-variant wheel too"
    ) in done.err
    assert "Exactly one of" not in done.err


BROKEN = {
    "missing": (None, "lists variant wheels, but no variants-json"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_metadata_costs_the_variants_not_the_install(patched, three_machines, case):
    """One warning in every client; the non-variant wheel of the package is installed."""
    index, path = three_machines
    table, problem = BROKEN[case]
    wheel = Wheel("app", "1.0")
    index.add_wheel(wheel)
    tree = toml.loads(path.read_text())
    package = next(item for item in tree["packages"] if item["name"] == "app")
    del package["variants-json"]
    if table is not None:
        package["variants-json"] = table
    url = f"{index.url[:-7]}files/app/{wheel.filename}"
    digest = hashlib.sha256(wheel.build()).hexdigest()
    package["wheels"].append({"url": url, "hashes": {"sha256": digest}})
    path.write_text(tomli_w.dumps(tree))
    done = install(patched, path)
    last = done.out.splitlines()[-1]
    assert last == "Would install always-1.0 app-1.0 for-cpu-1.0", done
    assert done.err.count(problem) == 1, done
    choices = []
    target = load_target(path.with_name("cpu.toml"))
    detect = Detector(platform=target.platform).platform
    chosen = select_locked(read_lock(path), target, detect, decided=choices.append)
    assert " ".join(item.name for item in chosen) == "always app for-cpu"
    (found,) = (str(error) for choice in choices for error in choice.selection.problems.values())
    assert problem in found
