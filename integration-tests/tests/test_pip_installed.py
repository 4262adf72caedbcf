"""Installed variants: what pip says of them, with the shim and without it; better ones."""

from __future__ import annotations

import json

import pytest

from support.index import index_of
from support.projects import CUDA_12_8, DRIVER, GPU, app_index, cuda
from support.wheels import Release, Wheel

BETTER = (
    "app 1.0 is installed as variant null; variant cu128 fits better (CUDA driver 12.8 or newer): "
    "to switch, add --variant-switch"
)


def installed(environment, index, driver="12.8"):
    """Install the project on a machine with that driver; return the environment."""
    done = environment.pip("install", "-i", index.url, "app", env={DRIVER: driver})
    assert done.code == 0, done
    return environment


@pytest.mark.everywhere
def test_life(fresh, serve):
    """Installed, shown, checked, added to, switched, removed: as decided when it was installed."""
    index = serve(app_index())
    index.add_wheel(Wheel("other", "1.0", requires=("app",)))
    environment = installed(fresh, index)
    show = environment.pip("show", "app").out
    assert "Name: app\nVersion: 1.0\nVariant: cu128\n" in show
    assert "Requires: always, for-128, for-cu128, for-gpu\n" in show
    rows = [line.split() for line in environment.pip("list").out.splitlines()]
    assert rows[0] == ["Package", "Version", "Variant"]
    assert ["app", "1.0", "cu128"] in rows
    assert ["always", "1.0"] in rows
    items = {
        item["name"]: item for item in json.loads(environment.pip("list", "--format", "json").out)
    }
    assert items["app"] == {"name": "app", "version": "1.0", "variant_label": "cu128"}
    assert items["always"] == {"name": "always", "version": "1.0"}
    inspected = json.loads(environment.pip("inspect").out)["installed"]
    labels = {item["metadata"]["name"]: item.get("variant_label") for item in inspected}
    assert labels["app"] == "cu128"
    assert labels["always"] is None
    assert "app==1.0\n" in environment.pip("freeze").out
    assert environment.pip("list", "--format", "freeze").out.count("app==1.0\n") == 1
    check = environment.pip("check", env={DRIVER: "12.0"})
    assert (check.code, check.out) == (0, "No broken requirements found.\n")
    assert environment.pip("uninstall", "-y", "for-gpu").code == 0
    check = environment.pip("check")
    assert (check.code, check.err) == (1, "")
    assert check.out == "app 1.0 requires for-gpu, which is not installed.\n"
    # What is installed is not asked for again, whatever the machine has become.
    later = environment.pip("install", "-i", index.url, "other", env={DRIVER: "12.0"})
    assert "Successfully installed for-gpu-1.0 other-1.0\n" in later.out, later
    done = environment.pip("uninstall", "-y", "app")
    assert "Successfully uninstalled app-1.0\n" in done.out, done


@pytest.mark.everywhere
def test_better_one(fresh, serve):
    """It is told of, in one line, and is not taken unasked."""
    index = serve(app_index())
    environment = installed(fresh, index, "12.0")
    for options in ([], ["-U"], ["--upgrade-strategy", "eager", "-U"]):
        done = environment.pip("install", "-i", index.url, *options, "app", env=CUDA_12_8)
        assert (done.code, done.err) == (0, ""), done
        assert f"{BETTER}\n" in done.out
        assert "Successfully" not in done.out
    # Nobody asks about a dependency, on a machine like that, or where there is no index.
    index.add_wheel(Wheel("other", "1.0", requires=("app",)))
    done = environment.pip("install", "-i", index.url, "other", env=CUDA_12_8)
    assert "fits better" not in done.text
    for url, driver in ((index.url, "12.0"), ("http://127.0.0.1:1/", "12.8")):
        done = environment.pip("install", "-i", url, "app", env={DRIVER: driver})
        assert (done.code, done.err) == (0, ""), done
        assert "fits better" not in done.out
    switch = ("install", "--variant-switch", "--no-deps", "-i", index.url, "app")
    assert "Successfully installed app-1.0-cu128\n" in environment.pip(*switch, env=CUDA_12_8).out
    done = environment.pip("install", "-i", index.url, "app", env={DRIVER: "12.0"})
    assert "as variant cu128, which does not fit this machine (needs CUDA driver 12.8" in done.out
    assert "variant null does: to switch, add --variant-switch" in done.out


@pytest.mark.one
def test_better_than_no_variant(fresh, serve):
    """Only where pip looks at the index anyway: what is installed is nothing special."""
    index = serve(index_of([Release("app", "1.0", cuda("12.8"), non_variant=True)]))
    fresh.pip("install", "--no-variants", "-i", index.url, "app")
    index.requests.clear()
    done = fresh.pip("install", "-i", index.url, "app", env=CUDA_12_8)
    assert "fits better" not in done.out
    assert index.requests == []
    done = fresh.pip("install", "-U", "-i", index.url, "app", env=CUDA_12_8)
    assert "app 1.0 is installed without variant; variant cu128 fits better" in done.out, done


# What the README says of plain pip where the metadata of an installed project has variant markers:
# exit code since pip 24.1, exit code of pip 24.0, and what there is to read since pip 24.1.
WITHOUT_SHIM = {
    "list": (0, 0, "app       1.0"),
    "freeze": (0, 0, "app==1.0\n"),
    "inspect": (0, 0, "variant_label == 'cu128'"),
    "show app": (0, 2, "for-gpu; 'nvidia' in variant_namespaces"),
    "show always": (0, 2, "Required-by: #N/A"),
    "check": (1, 1, "WARNING: Error parsing dependencies of app: Expected a marker variable"),
    "install -U always": (0, 0, "WARNING: Error parsing dependencies of app"),
    "list --not-required": (2, 2, "InvalidRequirement"),
    "install app": (1, 2, "hint: To proceed this package must be uninstalled."),
    "uninstall -y app": (0, 0, "Successfully uninstalled app-1.0\n"),
    "install always": (0, 0, "Requirement already satisfied: always"),
    "check again": (0, 0, "No broken requirements found.\n"),
}


def test_without_the_shim(fresh, available, serve):
    """As far as plain pip understands the metadata, it works on."""
    index = serve(app_index())
    environment = installed(fresh, index)
    assert environment.pip("uninstall", "-y", "pep-variants-shim").code == 0
    wrong = {}
    for command, (code, old_code, text) in WITHOUT_SHIM.items():
        words = command.removesuffix(" again").split()
        done = environment.pip(*words, *(("-i", index.url) if words[0] == "install" else ()))
        old = available.pip.startswith("24.0")
        if done.code != (old_code if old else code) or (not old and text not in done.text):
            wrong[command] = str(done)
    assert not wrong, "".join(f"\n=== {name}\n{text}" for name, text in wrong.items())


SEVERAL = {
    **cuda(),
    "variants": {
        "null": {},
        "many": {"nvidia": {"sm_arch": ["80_real", "90_real", "100_real"]}},
    },
}
BY_VALUE = tuple(
    f"for-{arch}; 'nvidia :: sm_arch :: {arch}0_real' in variant_properties" for arch in (8, 9, 10)
)


def test_what_was_decided_stays(fresh, serve):
    """Also which values a machine supported when a wheel was installed."""
    index = index_of([Release("app", "1.0", SEVERAL, BY_VALUE)])
    for name in ("for-8", "for-9", "for-10"):
        index.add_wheel(Wheel(name, "1.0"))
    index.add_wheel(Wheel("other", "1.0", requires=("app",)))
    url = ("-i", serve(index).url)
    done = fresh.pip("install", *url, "app", env=CUDA_12_8)
    assert "app-1.0-many" in done.out, done
    (info,) = fresh.site_packages.glob("app-1.0.dist-info")
    dependencies = fresh.pip("show", "app", env=CUDA_12_8).out
    assert "Requires: for-9\n" in dependencies, dependencies
    # The GPU is another one, or there is none any more.
    for machine in ({GPU: "10.0"}, {}):
        assert fresh.pip("show", "app", env=machine).out == dependencies
        assert fresh.pip("check", env=machine).code == 0
        done = fresh.pip("install", "--dry-run", *url, "other", env=machine)
        assert "Would install other-1.0\n" in done.out, done
    assert fresh.pip("uninstall", "-y", "app").code == 0
    assert not info.exists()


@pytest.mark.one
def test_without_the_shim_and_without_markers(fresh, serve):
    """A variant wheel like any other wheel is one."""
    index = serve(index_of([Release("app", "1.0", cuda("12.8"), ("dep",))]))
    index.add_wheel(Wheel("dep", "1.0"))
    environment = installed(fresh, index)
    assert environment.pip("uninstall", "-y", "pep-variants-shim").code == 0
    for command in ("list", "freeze", "check", "show app", "inspect", "list --not-required"):
        done = environment.pip(*command.split())
        assert (done.code, done.err) == (0, ""), done
    done = environment.pip("install", "-i", index.url, "app")
    assert "Requirement already satisfied: dep" in done.out, done


@pytest.mark.one
def test_user_site(fresh, serve, tmp_path):
    """--user, in an environment that sees the user's packages."""
    index = serve(app_index())
    config = fresh.path / "pyvenv.cfg"
    config.write_text(config.read_text().replace("packages = false", "packages = true"))
    user = {"PYTHONUSERBASE": str(tmp_path / "user")}
    done = fresh.pip("install", "--user", "-i", index.url, "app", env={**CUDA_12_8, **user})
    assert "app-1.0-cu128" in done.out, done
    assert list((tmp_path / "user").glob("lib/*/site-packages/app-1.0.dist-info/variant.json"))
    assert "Variant: cu128\n" in fresh.pip("show", "app", env=user).out
