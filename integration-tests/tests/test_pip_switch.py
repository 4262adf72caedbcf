"""Another machine: installed variants that are switched, with their dependencies."""

from __future__ import annotations

import contextlib
import json
import socket
import threading

import pytest

from support.index import index_of
from support.projects import CUDA_12_8, DRIVER, cuda, gpu_index
from support.wheels import Release

NO_GPU = {DRIVER: "12.0"}
CUDA_12_6 = {DRIVER: "12.6"}
SWITCH = (
    "gpu 2.0 is installed as variant null; variant cu128 fits better (CUDA driver 12.8 or newer)"
)


def installed(environment):
    """Return name and version of what is installed, and labels by name."""
    found, labels = {}, {}
    for folder in environment.site_packages.glob("*.dist-info"):
        name, _, version = folder.name.removesuffix(".dist-info").partition("-")
        if name not in ("pip", "pep_variants_shim", "pip_variants"):
            found[name] = version
        if (folder / "variant.json").exists():
            (labels[name],) = json.loads((folder / "variant.json").read_text())["variants"]
    return found, labels


@pytest.mark.everywhere
def test_gpu_appears(fresh, serve):
    """The advice names a command, and what that leaves is a working environment."""
    url = serve(gpu_index()).url
    done = fresh.pip("install", "-i", url, "gpu==2.0", "always", env=NO_GPU)
    assert "Successfully installed always-1.0 gpu-2.0-null\n" in done.out, done
    done = fresh.pip("install", "-i", url, "gpu", env=CUDA_12_8)
    assert f"{SWITCH}: to switch, add --variant-switch\n" in done.out, done
    before = installed(fresh)
    command = ("install", "--variant-switch", "-i", url, "gpu")
    done = fresh.pip(*command, "--dry-run", env=CUDA_12_8)
    assert "Would install cudalib-12.8 gpu-2.0-cu128\n" in done.out, done
    assert installed(fresh) == before
    done = fresh.pip(*command, env=CUDA_12_8)
    assert (done.code, done.err) == (0, ""), done
    assert f"{SWITCH}: switching\n" in done.out
    assert "Successfully installed cudalib-12.8 gpu-2.0-cu128\n" in done.out
    assert installed(fresh) == (
        {"always": "1.0", "cudalib": "12.8", "gpu": "2.0"}, {"gpu": "cu128"}
    )  # fmt: skip
    check = fresh.pip("check", env=CUDA_12_8)
    assert (check.code, check.out) == (0, "No broken requirements found.\n")
    # Again: there is nothing to do.
    done = fresh.pip(*command, env=CUDA_12_8)
    assert (done.code, done.err) == (0, ""), done
    assert "Successfully" not in done.out
    assert "switch" not in done.out


@pytest.mark.one
def test_what_is_switched(fresh, serve, tmp_path):
    """Installed versions stay; dependencies are switched too; nothing else is touched."""
    index = serve(gpu_index())
    index.add_release(Release("other", "1.0", cuda("12.8")))
    url = ("-i", index.url)
    fresh.pip("install", *url, "gpu==1.0", "app", "other", env=NO_GPU)
    (tmp_path / "requirements.txt").write_text("app\n")
    switch = ("install", "--variant-switch", *url)
    done = fresh.pip(*switch, "-r", str(tmp_path / "requirements.txt"), env=CUDA_12_6)
    assert "Successfully installed cudalib-12.6 gpu-1.0-cu126\n" in done.out, done
    assert installed(fresh)[1] == {"gpu": "cu126", "other": "null"}
    # A constraint that what fits better does not meet.
    (tmp_path / "constraints.txt").write_text("cudalib==12.6\n")
    done = fresh.pip(*switch, "-c", str(tmp_path / "constraints.txt"), "gpu", env=CUDA_12_8)
    assert "Successfully" not in done.out, done
    assert installed(fresh)[1] == {"gpu": "cu126", "other": "null"}
    # The report, and the label that the user asks for.
    report = tmp_path / "report.json"
    done = fresh.pip(
        *switch, "--dry-run", "--report", str(report), "--variant", "gpu=null", "gpu", env=CUDA_12_8
    )
    assert "Would install gpu-1.0-null\n" in done.out, done
    (item,) = json.loads(report.read_text())["install"]
    assert (item["metadata"]["name"], item["variant_label"]) == ("gpu", "null")
    # An upgrade as well.
    done = fresh.pip(*switch, "--upgrade", "gpu", env=CUDA_12_8)
    assert "Successfully installed cudalib-12.8 gpu-2.0-cu128\n" in done.out, done
    # Without a GPU: the other way round.
    done = fresh.pip(*switch, "gpu", env=NO_GPU)
    assert "gpu 2.0 is installed as variant cu128, which does not fit this machine" in done.out
    assert "Successfully installed gpu-2.0-null\n" in done.out, done
    # Where nothing is installed it changes nothing.
    target = ("--target", str(tmp_path / "target"))
    done = fresh.pip(*switch, *target, "gpu", env=CUDA_12_8)
    assert "Successfully installed always-1.0 cudalib-12.8 gpu-2.0-cu128\n" in done.out, done


@pytest.mark.one
def test_settings_that_switch(fresh, serve, tmp_path):
    """A variable, and the user's own file; not a file that came with a checkout."""
    url = ("-i", serve(gpu_index()).url)
    fresh.pip("install", *url, "gpu", env=NO_GPU)
    dry_run = ("install", "--dry-run", *url, "gpu")
    for variable in ("VARIANTS_SWITCH", "PIP_VARIANT_SWITCH"):
        done = fresh.pip(*dry_run, env={**CUDA_12_8, variable: "1"})
        assert "Would install cudalib-12.8 gpu-2.0-cu128\n" in done.out, (variable, done)
    (tmp_path / "variants.toml").write_text("switch = true\n")
    done = fresh.pip(*dry_run, env={**CUDA_12_8, "PIP_VARIANT_SWITCH": "0"}, cwd=tmp_path)
    assert "Would install" not in done.out, done
    assert "switch ignored" in done.err


@contextlib.contextmanager
def silent_index():
    """An address that accepts connections and never answers, and those connections."""
    connections = []

    def accept():
        with contextlib.suppress(OSError):  # closed
            while True:
                connections.append(server.accept()[0])

    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/simple/", connections


@pytest.mark.everywhere
def test_an_index_that_never_answers(fresh, serve):
    """The look for better variants is bounded for all projects together."""
    names = [f"gpu{number}" for number in range(6)]
    index = serve(index_of([Release(name, "1.0", cuda("12.8")) for name in names]))
    fresh.pip("install", "-i", index.url, *names, env=NO_GPU)
    with silent_index() as (url, connections):
        done = fresh.pip("install", "-i", url, *names, env=CUDA_12_8)
    assert (done.code, done.err) == (0, ""), done
    assert done.out.count("Requirement already satisfied: ") == 6
    assert len(connections) == 1  # asked for 3 s; the other five projects are not tried
