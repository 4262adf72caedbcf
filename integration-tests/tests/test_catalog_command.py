"""Existing builds in `variants resolve`, `explain` and `check`, and in lock files for plain pip."""

import json
import subprocess
import sys

import pytest

from support.catalog_places import family, family_entries, numbered_entry, place_url, pytorch
from support.environments import Result, clean_environ
from support.index import Answer
from support.json_outputs import check_output
from support.projects import DRIVER
from support.published_builds import standing_in
from support.wheels import Wheel

pytestmark = pytest.mark.one

COMMAND = [sys.executable, "-c", "from variants_cli.main import main; main()"]
BUILDS = {"cuda13.0": "cu130", "cuda12.8": "cu128", "cuda12.6": "cu126", "null": "cpu"}


class World:
    """PyTorch's places, an index, also with a build of another name and an extra, and entries."""

    def __init__(self, found, folder):
        self.places, self.index, self.folder = found.builds, found.index, folder
        self.catalog = folder / "catalog"
        family_entries(found.builds, self.catalog)
        for name, requires in (("lib", "lib-cu{}"), ("tool", "{{name}}[cuda{}]")):
            text = numbered_entry(name, f"{requires}=={{{{version}}}}")
            (self.catalog / f"{name}.toml").write_text(text)
        for name in ("lib", "lib-cu12", "plug"):
            self.index.add_wheel(Wheel(name, "1.0"))
        self.index.add_wheel(
            Wheel("tool", "1.0", extras=("cuda12",), requires=("plug; extra=='cuda12'",))
        )

    def run(self, *arguments, driver="12.8", catalog=None):
        options = ["-i", self.index.url, "--variant-catalog", catalog or self.catalog]
        environ = {"VARIANTS_CACHE_DIR": str(self.folder / "cache"), DRIVER: driver}
        done = subprocess.run(
            [*COMMAND, *map(str, (*arguments, *options))],
            capture_output=True, text=True, cwd=self.folder, timeout=120, check=False,
            env=clean_environ(environ),
        )  # fmt: skip
        check_output([str(argument) for argument in arguments], done.stdout)
        return Result(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def world(tmp_path):
    with standing_in(pytorch(versions=("2.9.0",))) as found:
        yield World(found, tmp_path)


def test_explain_as_json(world):
    tree = json.loads(world.run("explain", "torch", "--json").out)
    assert tree["file"] == "torch-2.9.0+cu128-py3-none-any.whl"
    assert tree["plain"] == ["torch-2.9.0-py3-none-any.whl"]
    assert tree["catalog"] == {
        "entry": str(world.catalog / "torch.toml"),
        "documentation": "https://example.org/start",
        "builds": {
            label: f"{place_url(world.places, place)}/torch/" for label, place in BUILDS.items()
        },
        "measured": {label: [] for label in BUILDS if label != "null"},
    }
    assert tree["sources"][0]["files"] == {
        label: [f"torch-2.9.0+{place}-py3-none-any.whl"] for label, place in BUILDS.items()
    }


def test_explain_tells_what_the_lists_rest_on(world):
    unmeasured = (
        "GPU code of cuda12.6, cuda12.8, cuda13.0: as the publisher's page says, not measured"
    )
    assert unmeasured in world.run("explain", "torch").out.splitlines()
    path, wheel = world.catalog / "torch.toml", "torch-2.9.0+cu128-py3-none-any.whl"
    row = f'{{ file = "{wheel}", sha256 = "{"0" * 64}", date = "2026-11-29" }}'
    text = path.read_text()
    path.write_text(text.replace('local = "cu128"\n', f'local = "cu128"\nmeasured = [{row}]\n'))
    said = world.run("explain", "torch").out.splitlines()
    assert f"GPU code of cuda12.8: read from {wheel} on 2026-11-29" in said
    tree = json.loads(world.run("explain", "torch", "--json").out)
    assert tree["catalog"]["measured"]["cuda12.8"] == [
        {"file": wheel, "sha256": "0" * 64, "date": "2026-11-29"}
    ]


def test_a_catalogue_that_cannot_be_read(world):
    world.places.faults["/login"] = Answer(200, b"<html>")
    done = world.run("resolve", "torch", catalog=f"{world.places.root}/login")
    assert done.code == 1
    assert done.err.startswith(f"error: {world.places.root}/login")


def test_locks_and_downloads(world, plain, tmp_path):
    """Files are downloaded as they are installed; plain pip installs a lock."""
    python = plain.run("-c", "import sys; print('%d.%d' % sys.version_info[:2])").out.strip()
    lock = ("-o", "pylock.toml", "--python-version", python)
    done = world.run("resolve", "torch", "lib", "tool", "--download", "files", *lock)
    assert done.code == 0, done
    assert sorted(path.name for path in (world.folder / "files").iterdir()) == [
        "cudalib-128-py3-none-any.whl",
        "lib-1.0-py3-none-any.whl",
        "plug-1.0-py3-none-any.whl",
        "tool-1.0-py3-none-any.whl",
        "torch-2.9.0+cu128-py3-none-any.whl",
    ]
    environment = plain.copied(tmp_path / "environment")
    done = environment.pip("install", "--no-deps", "-r", str(world.folder / "pylock.toml"))
    assert done.code == 0, done
    assert environment.pip("freeze").out.split() == [
        "cudalib==128",
        "lib-cu12==1.0",
        "plug==1.0",
        "tool==1.0",
        "torch==2.9.0+cu128",
    ]


def test_check(world, plain, tmp_path):
    """Another build may fit better: of a project whose builds are extras, too."""
    environment = plain.copied(tmp_path / "environment")

    def check(wheel, driver="12.8"):
        path = tmp_path / wheel.filename
        path.write_bytes(wheel.build())
        options = ("--no-deps", "--no-index", "--force-reinstall")
        assert environment.pip("install", *options, str(path)).code == 0
        return world.run("check", "--python", environment.python, driver=driver)

    done = check(Wheel("tool", "1.0"))
    assert (done.code, done.out.split()[:4]) == (1, ["tool", "1.0", "(none)", "cuda12"])
    assert environment.pip("uninstall", "--yes", "tool").code == 0
    cpu, cuda = (family("2.9.0", local)[0] for local in ("cpu", "cu128"))
    done = check(cpu)
    assert (done.code, done.err) == (1, "")
    row, command = done.out.splitlines()
    assert row.split()[:4] == ["torch", "2.9.0+cpu", "null", "cuda12.8"]
    assert command.startswith("To switch, once pip knows variants (variants doctor")
    assert "-m pip install --variant-switch" in command
    done = check(cpu, "11.0")
    assert (done.code, done.out) == (0, "1 package checked, none has a better variant\n")
    done = check(cuda, "11.0")
    assert done.code == 1
    assert done.out.split()[:4] == ["torch", "2.9.0+cu128", "cuda12.8", "null"]
