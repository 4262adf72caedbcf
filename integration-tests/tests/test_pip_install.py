"""What users do most, on every Python and pip: install, download and dry runs, from anywhere."""

from __future__ import annotations

import json

import pytest

from support.environments import ROOT
from support.index import index_of
from support.projects import CUDA_12_8, DRIVER, GPU, ON_CPU, ON_GPU, app, app_index
from support.wheels import X86_64, Release, Wheel, metadata

FIXTURES = ROOT / "packages" / "pep-variants" / "tests" / "fixtures"


@pytest.mark.matrix
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


@pytest.mark.every_pip
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


def test_what_comes_after_an_installation(fresh, serve):
    """Everything that looks at installed distributions copes with variant markers."""
    index = serve(app_index())
    done = fresh.pip("install", "-i", index.url, "app", env=CUDA_12_8)
    assert done.code == 0, done
    assert fresh.run("-c", "import app; print(app.LABEL)").out == "cu128\n"
    assert fresh.pip("uninstall", "-y", "for-gpu").code == 0
    check = fresh.pip("check")
    assert (check.code, check.err) == (1, "")
    assert check.out == "app 1.0 requires for-gpu, which is not installed.\n"

    show = fresh.pip("show", "app")
    assert "Requires: always, for-128, for-cu128, for-gpu\n" in show.out, show
    freeze = fresh.pip("freeze")
    assert "app==1.0\n" in freeze.out
    assert fresh.pip("list").code == 0
    inspect = json.loads(fresh.pip("inspect").out)
    (found,) = (item for item in inspect["installed"] if item["metadata"]["name"] == "app")
    assert found["metadata"]["requires_dist"][:2] == ["always", "for-gpu"]

    index.add_wheel(Wheel("other", "1.0", requires=("app",)))
    later = fresh.pip("install", "-i", index.url, "other", env=CUDA_12_8)
    assert later.code == 0, later
    assert "Successfully installed for-gpu-1.0 other-1.0\n" in later.out
    uninstall = fresh.pip("uninstall", "-y", "app", "other")
    assert uninstall.code == 0, uninstall
    assert "Successfully uninstalled app-1.0\n" in uninstall.out


@pytest.mark.matrix
def test_download(patched, serve, tmp_path):
    index = serve(app_index(metadata_file=True))
    done = patched.pip("download", "-d", str(tmp_path), "-i", index.url, "app", env=CUDA_12_8)
    assert done.code == 0, done
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "always-1.0-py3-none-any.whl",
        "app-1.0-py3-none-any-cu128.whl",
        "for_128-1.0-py3-none-any.whl",
        "for_cu128-1.0-py3-none-any.whl",
        "for_gpu-1.0-py3-none-any.whl",
    ]
    # Once more: the files are there already.
    again = patched.pip("download", "-d", str(tmp_path), "-i", index.url, "app", env=CUDA_12_8)
    assert again.code == 0, again
    assert "File was already downloaded" in again.out


@pytest.mark.matrix
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


@pytest.mark.parametrize("api", ["json", "html"])
def test_page_of_links(patched, serve, api):
    index = serve(app_index(api=api))
    done = patched.pip(
        "install", "--dry-run", "--no-index", "--find-links", index.links_url, "app", env=CUDA_12_8
    )
    assert f"Would install {ON_GPU}\n" in done.out, done


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


@pytest.mark.matrix
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


MACHINES = [
    ("12.9", "7.5", "cu129"),
    ("12.8", "9.0", "cu128"),
    ("12.6", "9.0", "cu126"),
    ("12.5", "9.0", "null"),
    ("13.0", "12.0", "cu129"),
    ("12.8", "5.0", "cu126"),
]


@pytest.mark.parametrize(("driver", "capability", "label"), MACHINES)
def test_the_pytorch_tutorial(patched, serve, driver, capability, label):
    published = json.loads((FIXTURES / "pytorch-tutorial-variants.json").read_text())
    index = serve(index_of([Release("torch", "2.8.0", published)]))
    forced = {DRIVER: driver, GPU: capability}
    done = patched.pip("install", "--dry-run", "-i", index.url, "torch", env=forced)
    assert done.code == 0, done
    assert f"Would install torch-2.8.0-{label}\n" in done.out


def test_the_pytorch_tutorial_without_a_gpu(patched, serve, tmp_path):
    published = json.loads((FIXTURES / "pytorch-tutorial-variants.json").read_text())
    index = serve(index_of([Release("torch", "2.8.0", published)]))
    nothing = tmp_path / "platform.toml"
    nothing.write_text('[metadata]\nversion = "0.1"\n[[provider]]\nnamespace = "nvidia"\n')
    done = patched.pip(
        "install", "--dry-run", "-i", index.url, "--variant-platform", str(nothing), "torch"
    )
    assert "Would install torch-2.8.0-null\n" in done.out, done


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


def test_quiet_says_nothing(patched, serve):
    index = serve(app_index())
    done = patched.pip("install", "--dry-run", "-q", "-i", index.url, "app", env=CUDA_12_8)
    assert (done.code, done.out, done.err) == (0, "", "")
