"""Installed variants: what pip says of them, with the shim and without it; better ones."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import socket
import zipfile

import pytest

from support.environments import Environment
from support.index import index_of
from support.pip_commands import dry_run, installs, labels, versions
from support.projects import CUDA_12_8, DRIVER, GPU, app_index, by_value_index, cuda, gpu_index
from support.wheels import Release, Wheel

NO_GPU = {DRIVER: "12.0"}
BETTER = (
    "gpu 2.0 is installed as variant null; variant cu128 fits better (CUDA driver 12.8 or newer)"
)
ADVICE = "to switch, add --variant-switch"


@pytest.mark.everywhere
def test_life(fresh, serve):
    """Installed, shown, checked, added to, removed: as decided when it was installed."""
    index = serve(app_index())
    index.add_wheel(Wheel("other", "1.0", requires=("app",)))
    fresh.pip("install", "-i", index.url, "app", env=CUDA_12_8)
    show = fresh.pip("show", "app").out
    assert "Name: app\nVersion: 1.0\nVariant: cu128\n" in show
    assert "Requires: always, for-128, for-cu128, for-gpu\n" in show
    rows = [line.split() for line in fresh.pip("list").out.splitlines()]
    assert rows[0] == ["Package", "Version", "Variant"]
    assert ["app", "1.0", "cu128"] in rows
    assert ["always", "1.0"] in rows
    items = {item["name"]: item for item in json.loads(fresh.pip("list", "--format", "json").out)}
    assert items["app"] == {"name": "app", "version": "1.0", "variant_label": "cu128"}
    assert items["always"] == {"name": "always", "version": "1.0"}
    inspected = json.loads(fresh.pip("inspect").out)["installed"]
    found = {item["metadata"]["name"]: item.get("variant_label") for item in inspected}
    assert (found["app"], found["always"]) == ("cu128", None)
    assert "app==1.0\n" in fresh.pip("freeze").out
    check = fresh.pip("check", env=NO_GPU)
    assert (check.code, check.out) == (0, "No broken requirements found.\n")
    assert fresh.pip("uninstall", "-y", "for-gpu").code == 0
    check = fresh.pip("check")
    assert (check.code, check.err) == (1, "")
    assert check.out == "app 1.0 requires for-gpu, which is not installed.\n"
    # What is installed is not asked for again, whatever the machine has become.
    later = fresh.pip("install", "-i", index.url, "other", env=NO_GPU)
    assert "Successfully installed for-gpu-1.0 other-1.0\n" in later.out, later
    done = fresh.pip("uninstall", "-y", "app")
    assert "Successfully uninstalled app-1.0\n" in done.out, done
    assert "app" not in versions(fresh)


# What the reference says of plain pip where the metadata of what is installed has variant markers:
# exit code since pip 24.1, exit code of pip 24.0, and what there is to read since pip 24.1.
WITHOUT_SHIM = {
    "list": (0, 0, "app       1.0"),
    "freeze": (0, 0, "app==1.0\n"),
    "show app": (0, 2, "for-gpu; 'nvidia' in variant_namespaces"),
    "check": (1, 1, "WARNING: Error parsing dependencies of app: Expected a marker variable"),
    "install -U always": (0, 0, "WARNING: Error parsing dependencies of app"),
    "install app": (1, 2, "hint: To proceed this package must be uninstalled."),
    "uninstall -y app": (0, 0, "Successfully uninstalled app-1.0\n"),
}


@pytest.fixture
def by_value(serve):
    """An index with a project for several architectures, whose dependencies depend on them."""
    return serve(by_value_index())


def as_published(environment, index):
    """Give *app* the METADATA of its wheel, as other installers write it."""
    (info,) = environment.site_packages.glob("app-1.0.dist-info")
    data = index.files["app"][f"app-1.0-py3-none-any-{labels(environment)['app']}.whl"]
    with zipfile.ZipFile(io.BytesIO(data)) as wheel:
        (info / "METADATA").write_bytes(wheel.read("app-1.0.dist-info/METADATA"))


def recorded(environment, project="app"):
    """Return whether each file of *project* is as RECORD has it."""
    (info,) = environment.site_packages.glob(f"{project}-*.dist-info")
    rows = list(csv.reader((info / "RECORD").read_text().splitlines()))
    own = [row for row in rows if row[0].startswith(info.name) and row[1]]
    assert any(row[0].endswith("METADATA") for row in own), rows
    for path, digest, size in own:
        data = (environment.site_packages / path).read_bytes()
        found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        assert (f"sha256={found}", str(len(data))) == (digest, size), path


@pytest.mark.everywhere
def test_without_the_shim(changeable, available, serve):
    """What was decided is written, so plain pip works; not if another installer wrote markers."""
    index = serve(app_index())
    changeable.pip("install", "-i", index.url, "app", env=CUDA_12_8)
    recorded(changeable)

    def plain(command):
        words = command.split()
        url = ("-i", index.url) if words[0] == "install" else ()
        return Environment(changeable.path).pip(*words, *url, env={"PEP_VARIANTS_SHIM": "0"})

    assert plain("uninstall -y pep-variants-shim pip-variants").code == 0
    show = plain("show app")
    assert "Requires: always, for-128, for-cu128, for-gpu\n" in show.out, show
    for command in ("check", "install -U always", "install app", "list --not-required", "inspect"):
        done = plain(command)
        assert (done.code, "WARNING" in done.text) == (0, False), done
    as_published(changeable, index)
    old = available.pip.startswith("24.0")
    for command, (code, old_code, text) in WITHOUT_SHIM.items():
        done = plain(command)
        assert done.code == (old_code if old else code), (command, done)
        assert old or text in done.text, (command, done)


@pytest.mark.everywhere
def test_what_was_decided_stays(fresh, by_value):
    """Which values a machine supported when a variant was installed, also on another machine."""
    url = ("-i", by_value.url)
    done = fresh.pip("install", *url, "app", "--dry-run", env=CUDA_12_8)
    installs(done, "app-1.0-many", "for-9-1.0")
    done = fresh.pip("install", *url, "app", env=CUDA_12_8)
    assert "Successfully installed app-1.0-many for-9-1.0\n" in done.out, done
    recorded(fresh)
    for machine in (CUDA_12_8, {GPU: "10.0", DRIVER: "12.8"}, NO_GPU, {}):
        assert "Requires: for-9\n" in fresh.pip("show", "app", env=machine).out
        check = fresh.pip("check", env=machine)
        assert (check.code, check.out) == (0, "No broken requirements found.\n"), check
        inspected = json.loads(fresh.pip("inspect", env=machine).out)["installed"]
        (found,) = (item["metadata"] for item in inspected if item["metadata"]["name"] == "app")
        assert found["requires_dist"] == ["for-9"]
        done = fresh.pip("install", *url, "other", "--dry-run", env=machine)
        installs(done, "other-1.0")
    # The wheel is installed again, for the machine that is here now.
    done = fresh.pip("install", *url, "--force-reinstall", "app", env={**CUDA_12_8, GPU: "10.0"})
    assert "Successfully installed app-1.0-many for-10-1.0\n" in done.out, done
    assert "Requires: for-10\n" in fresh.pip("show", "app", env=NO_GPU).out
    done = fresh.pip("uninstall", "-y", "app")
    assert (done.code, done.err) == (0, ""), done
    assert not list(fresh.site_packages.glob("app-1.0.dist-info"))


def test_dependencies_by_value(fresh, by_value):
    """Markers of another installer: the values that this machine supports, else all of them."""
    fresh.pip("install", "-i", by_value.url, "app", env=CUDA_12_8)
    as_published(fresh, by_value)
    assert "Requires: for-9\n" in fresh.pip("show", "app", env=CUDA_12_8).out
    assert fresh.pip("check", env=CUDA_12_8).code == 0
    assert "Requires: for-10, for-8, for-9\n" in fresh.pip("show", "app", env={GPU: "5.0"}).out


# Another machine.


@pytest.mark.everywhere
def test_gpu_appears(fresh, serve):
    """One line tells of the better variant; it is not taken unasked, and whole when it is."""
    index = serve(gpu_index())
    url = ("-i", index.url)
    done = fresh.pip("install", *url, "gpu==2.0", "always", env=NO_GPU)
    assert "Successfully installed always-1.0 gpu-2.0-null\n" in done.out, done
    for options in ([], ["--upgrade-strategy", "eager", "-U"]):
        done = fresh.pip("install", *url, *options, "gpu", env=CUDA_12_8)
        assert (done.code, done.err) == (0, ""), done
        assert f"{BETTER}: {ADVICE}\n" in done.out
        assert "Successfully" not in done.out
    # Not of a dependency, on a machine like that, or where there is no index.
    for place, wanted, driver in (
        (index.url, "app", "12.8"), (index.url, "gpu", "12.0"),
        ("http://127.0.0.1:1/", "gpu", "12.8"),
    ):  # fmt: skip
        done = fresh.pip("install", "--dry-run", "-i", place, wanted, env={DRIVER: driver})
        assert (done.code, done.err) == (0, ""), done
        assert "fits better" not in done.out
    switch = ("install", "--variant-switch", *url, "gpu")
    before = versions(fresh), labels(fresh)
    installs(fresh.pip(*switch, "--dry-run", env=CUDA_12_8), "cudalib-12.8", "gpu-2.0-cu128")
    assert (versions(fresh), labels(fresh)) == before
    done = fresh.pip(*switch, env=CUDA_12_8)
    assert (done.code, done.err) == (0, ""), done
    assert f"{BETTER}: switching\n" in done.out
    assert "Successfully installed cudalib-12.8 gpu-2.0-cu128\n" in done.out
    assert versions(fresh) == {"always": "1.0", "cudalib": "12.8", "gpu": "2.0"}
    assert labels(fresh) == {"gpu": "cu128"}
    # Again: there is nothing to do.
    done = fresh.pip(*switch, env=CUDA_12_8)
    assert (done.code, done.err) == (0, ""), done
    assert "Successfully" not in done.out
    assert "switch" not in done.out
    done = fresh.pip("install", *url, "gpu", env=NO_GPU)
    assert "as variant cu128, which does not fit this machine (needs CUDA driver 12.8" in done.out
    assert f"variant null does: {ADVICE}" in done.out


@pytest.mark.one
def test_better_than_no_variant(fresh, serve):
    """Only where pip looks at the index anyway: what is installed is nothing special."""
    index = serve(index_of([Release("app", "1.0", cuda("12.8"), non_variant=True)]))
    fresh.pip("install", "--no-variants", "-i", index.url, "app")
    index.requests.clear()
    assert "fits better" not in fresh.pip("install", "-i", index.url, "app", env=CUDA_12_8).out
    assert index.requests == []
    done = fresh.pip("install", "-U", "-i", index.url, "app", env=CUDA_12_8)
    assert "app 1.0 is installed without variant; variant cu128 fits better" in done.out, done


@pytest.mark.one
def test_what_is_switched(fresh, serve, tmp_path):
    """Installed versions stay; dependencies are switched too; nothing else is touched."""
    index = serve(gpu_index())
    index.add_release(Release("other", "1.0", cuda("12.8")))
    url = ("-i", index.url)
    fresh.pip("install", *url, "gpu==1.0", "app", "other", env=NO_GPU)
    switch = ("install", "--variant-switch", *url)
    done = fresh.pip(*switch, "app", env={DRIVER: "12.6"})
    assert "Successfully installed cudalib-12.6 gpu-1.0-cu126\n" in done.out, done
    assert labels(fresh) == {"gpu": "cu126", "other": "null"}
    # A constraint that what fits better does not meet.
    (tmp_path / "constraints.txt").write_text("cudalib==12.6\n")
    done = fresh.pip(*switch, "-c", str(tmp_path / "constraints.txt"), "gpu", env=CUDA_12_8)
    assert "Successfully" not in done.out, done
    # The report, and the label that the user asks for.
    report = tmp_path / "report.json"
    forced = ("--report", str(report), "--variant", "gpu=null", "gpu")
    installs(dry_run(fresh, index, "--variant-switch", *forced), "gpu-1.0-null")
    (item,) = json.loads(report.read_text())["install"]
    assert (item["metadata"]["name"], item["variant_label"]) == ("gpu", "null")
    # An upgrade as well; what a variable says; a file that came with a checkout says nothing.
    installs(dry_run(fresh, index, "-U", "gpu", PIP_VARIANT_SWITCH="1"),
             "cudalib-12.8", "gpu-2.0-cu128")  # fmt: skip
    (tmp_path / "variants.toml").write_text("switch = true\n")
    done = fresh.pip("install", "--dry-run", *url, "gpu", env=CUDA_12_8, cwd=tmp_path)
    assert "Would install" not in done.out, done
    assert "switch ignored" in done.err
    # Without a GPU: the other way round.
    done = fresh.pip(*switch, "gpu", env=NO_GPU)
    assert "gpu 1.0 is installed as variant cu126, which does not fit this machine" in done.out
    assert "Successfully installed gpu-1.0-null\n" in done.out, done


@pytest.mark.nightly
@pytest.mark.everywhere
def test_an_index_that_never_answers(fresh, serve):
    """The look for better variants is bounded for all projects together."""
    names = [f"gpu{number}" for number in range(6)]
    index = serve(index_of([Release(name, "1.0", cuda("12.8")) for name in names]))
    fresh.pip("install", "-i", index.url, *names, env=NO_GPU)
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/simple/"
        done = fresh.pip("install", "-i", url, *names, env=CUDA_12_8)
        assert (done.code, done.err) == (0, ""), done
        assert done.out.count("Requirement already satisfied: ") == 6
        silent.accept()  # asked for 3 s; the other five projects are not tried
        silent.setblocking(False)
        with pytest.raises(BlockingIOError):
            silent.accept()
