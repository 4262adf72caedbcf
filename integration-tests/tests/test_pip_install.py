"""What users do most, on every Python and pip: install, download and dry runs, from anywhere."""

from __future__ import annotations

import pytest

from support.index import index_of
from support.projects import CUDA_12_8, DRIVER, ON_CPU, ON_GPU, app, app_index
from support.wheels import X86_64, Release, Wheel, metadata


@pytest.mark.parametrize(("api", "metadata_file"), [("json", True), ("html", False)])
def test_dry_run(patched, serve, api, metadata_file):
    index = serve(app_index(api=api, metadata_file=metadata_file))
    done = patched.pip("install", "--dry-run", "-i", index.url, "app", env=CUDA_12_8)
    assert done.code == 0, done
    assert f"Would install {ON_GPU}\n" in done.out
    assert (
        "Variant cu128 for app 1.0: CUDA driver 12.8 or newer; cu130 needs CUDA driver 13.0"
        in done.out
    )
    assert done.err == ""
    fetched = "app-1.0-py3-none-any-cu128.whl" + (".metadata" if metadata_file else "")
    assert index.fetched[:2] == ["app-1.0-variants.json", fetched]
    # Of other variants nothing; old pips download in dry runs, too.
    assert {name for name in index.fetched if name.startswith("app-")} <= {
        "app-1.0-variants.json",
        "app-1.0-py3-none-any-cu128.whl",
        "app-1.0-py3-none-any-cu128.whl.metadata",
    }


@pytest.mark.matrix
def test_install(patched, serve, tmp_path):
    index = serve(app_index())
    done = patched.pip("install", "-t", str(tmp_path), "-i", index.url, "app", env=CUDA_12_8)
    assert done.code == 0, done
    assert done.out.splitlines()[-1].startswith("Successfully installed ")
    assert sorted(done.out.splitlines()[-1].split()[2:]) == ON_GPU.split()
    assert done.err == ""
    # What is installed stays what the publisher made of it.
    info = tmp_path / "app-1.0.dist-info"
    published = Wheel("app", "1.0", requires=app().requires).metadata()
    assert (info / "METADATA").read_bytes() == published
    # Without the GPU: what was decided when it was installed holds.
    check = patched.pip("check", env={"PYTHONPATH": str(tmp_path)})
    assert (check.code, check.out, check.err) == (0, "No broken requirements found.\n", "")


def test_directory_of_files(patched, tmp_path):
    for files in app_index().files.values():
        for name, data in files.items():
            (tmp_path / name).write_bytes(data)
    offline = ("install", "--dry-run", "--no-index", "--find-links")
    done = patched.pip(*offline, str(tmp_path), "app", env=CUDA_12_8)
    assert done.code == 0, done
    assert f"Would install {ON_GPU}\n" in done.out
    # Names as the publisher spells them.
    (tmp_path / "app-1.0-variants.json").rename(tmp_path / "App-1.0.0-variants.json")
    done = patched.pip(*offline, tmp_path.as_uri(), "app", env={DRIVER: "12.5"})
    assert f"Would install {ON_CPU}\n" in done.out, done


def test_index_in_a_directory(patched, tmp_path):
    """A file: URL as index: pip reads its index.html pages."""
    index = app_index()
    for project, files in index.files.items():
        (tmp_path / project).mkdir()
        for name, data in files.items():
            (tmp_path / project / name).write_bytes(data)
        page = "".join(f'<a href="{name}">{name}</a>' for name in files)
        (tmp_path / project / "index.html").write_text(f"<!DOCTYPE html>{page}")
    done = patched.pip("install", "--dry-run", "-i", tmp_path.as_uri(), "app", env=CUDA_12_8)
    assert f"Would install {ON_GPU}\n" in done.out, done


@pytest.mark.everywhere
def test_uses_the_cpu(patched, serve):
    """No override, no platform file: what this machine has is asked for real."""
    levels = {f"v{n}": {"x86_64": {"level": [f"v{n}"]}} for n in (1, 2, 3, 4)}
    found = metadata({"null": {}, **levels}, namespaces=["x86_64"], providers={"x86_64": X86_64})
    index = serve(index_of([Release("app", "1.0", found)]))
    done = patched.pip("install", "--dry-run", "-i", index.url, "app")
    assert done.code == 0, done
    label = done.out.splitlines()[-1].rpartition("-")[2]
    code = (
        "from pep_variants_shim._vendor.pep_variants.detect.detector import Detector as D;"
        "print(*D().host().support('x86_64').features.get('level', ['null']))"
    )
    assert label == patched.run("-c", code).out.split()[0]


def test_verbose_shows_every_variant(patched, serve):
    index = serve(app_index())
    done = patched.pip("install", "--dry-run", "-v", "-i", index.url, "app", env=CUDA_12_8)
    lines = [line.split() for line in done.out.splitlines()]
    table = [line for line in lines if line[:1] and line[0] in ("cu126", "cu128", "cu130", "null")]
    assert [line[:2] for line in table] == [
        ["cu128", "chosen"],
        ["cu126", "compatible"],
        ["null", "compatible"],
        ["cu130", "rejected"],
    ], done
    assert "needs CUDA driver 13.0 or newer, this one supports up to 12.8" in done.out
