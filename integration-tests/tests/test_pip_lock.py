"""Lock files with variants: what is written, and what is made of them elsewhere.

Which wheel of a lock file is chosen is a matter of the conformance cases.
"""

from __future__ import annotations

import pytest

from pep_variants._formats import toml
from support.index import Index
from support.projects import CUDA_12_8, DRIVER, app_index
from support.wheels import NVIDIA, Release

pytestmark = pytest.mark.one
CU128 = "app-1.0-py3-none-any-cu128.whl"


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


def test_what_was_locked(patched, lock):
    """It is installed where it fits; where it does not, the reason names the file."""
    _, path = lock
    text = path.read_text()
    assert text.count("[packages.variants-json]") == 1
    assert "cu126" not in text
    done = install(patched, path)
    assert "Variant cu128 for app 1.0: CUDA driver 12.8 or newer" in done.out, done
    assert "app-1.0-cu128" in done.out.splitlines()[-1]
    done = install(patched, path, driver="12.0")
    assert done.code == 1
    assert "Traceback" not in done.err
    assert (
        f"Cannot select requirements from pylock file {str(path)!r}: packages[1] (app): none of "
        "its wheels fits this machine: cu128 needs CUDA driver 12.8 or newer, this one supports up "
        "to 12.0"
    ) in done.err


def test_wheel_that_is_not_what_the_lock_file_says(patched, lock):
    """Properties in the lock file are a promise, also of a path in place of the URL."""
    index, path = lock
    (path.parent / CU128).write_bytes(index.files["app"][CU128])
    url = f'url = "{index.url[:-7]}files/app/{CU128}"'
    path.write_text(path.read_text().replace(url, f'path = "{CU128}"'))
    assert "app-1.0-cu128" in install(patched, path).out.splitlines()[-1]
    path.write_text(path.read_text().replace('"12.8"', '"12.6"'))
    done = install(patched, path)
    assert (done.code, "variants.cu128 differs" in done.err) == (1, True), done


@pytest.mark.parametrize("listed", [True, False], ids=["index", "wheels"])
def test_documents_are_copied(patched, serve, tmp_path, listed):
    """As the index or the wheel has it: nothing rewritten, but labels that do not fit left out."""
    index = serve(Index(ranges=True))
    document = {
        "$schema": "https://variants-schema.wheelnext.dev/",
        "default-priorities": {
            "namespace": ["nvidia", "blas"],
            "feature": {"nvidia": ["cuda_version_lower_bound"]},
            "property": {"nvidia": {"cuda_version_lower_bound": ["12.6", "12.8"]}},
        },
        "providers": {"nvidia": NVIDIA, "blas": {"requires": ["blas-provider"], "optional": True}},
    }
    variants = {"null": {}, "cu128": {"nvidia": {"cuda_version_lower_bound": ["12.8", "12.6"]}}}
    release = Release("app", "1.0", {**document, "variants": variants})
    index.add_release(release)
    if not listed:
        index.remove("app", release.metadata_filename)
    path = tmp_path / "pylock.toml"
    done = patched.pip("lock", "-o", str(path), "-i", index.url, "app", env=CUDA_12_8)
    assert done.code == 0, done
    assert "is locked without" not in done.err
    (package,) = toml.read_toml(path.read_text())["packages"]
    assert package["variants-json"] == {**document, "variants": {"cu128": variants["cu128"]}}
    done = install(patched, path, "--no-index")
    assert "app-1.0-cu128" in done.out.splitlines()[-1], done
