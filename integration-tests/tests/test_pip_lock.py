"""Lock files with variants: what is written, and what is made of them elsewhere."""

from __future__ import annotations

import pytest

from support.projects import CUDA_12_8, DRIVER, app_index

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
    assert "Variant cu128 for app 1.0: CUDA driver 12.8 or newer\n" in done.out, done
    assert "app-1.0-cu128" in done.out.splitlines()[-1]


def test_what_was_locked_does_not_fit(patched, lock):
    _, path = lock
    done = install(patched, path, driver="12.0")
    assert done.code == 1
    assert "no variant of app 1.0 in the lock file fits this machine" in done.err
    assert "cu128 needs CUDA driver 12.8 or newer, this one supports up to 12.0" in done.err
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


@pytest.mark.parametrize("table", ["variants-json = 7", "variants-json = {}", ""])
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
    assert "packages.app.variants-json" in done.err
