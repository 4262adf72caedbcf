"""Existing builds in `variants resolve`, `explain` and `check`, and in lock files for plain pip."""

import json
import subprocess
import sys

import pytest

from pep_variants.formats import toml
from support.environments import Result, clean_environ
from support.index_server import Resource, served
from support.json_outputs import check_output
from support.wheels import Wheel

pytestmark = pytest.mark.one

COMMAND = [sys.executable, "-c", "from variants_cli.main import main; main()"]

GPU = """
[[provider]]
namespace = "nvidia"
[provider.properties]
cuda_version_lower_bound = ["13.0", "12.0"]
"""
NO_GPU = '[[provider]]\nnamespace = "nvidia"\n'

HEAD = """
catalog-version = "1"
[project]
name = "{0}"
documentation = "https://docs.example/{0}"
default-priorities.namespace = ["nvidia"]
"""
BUILDS = """
[[variant]]
label = "cuda12"
index = "{url}/whl/cu12"
local = "cu12"
properties = ["nvidia :: cuda_version_lower_bound :: 12.0"]
[[variant]]
label = "null"
index = "{url}/whl/cpu"
local = "cpu"
"""
RENAMED = """
[[variant]]
label = "cuda12"
requires = ["{0}-cu12=={{version}}"]
properties = ["nvidia :: cuda_version_lower_bound :: 12.0"]
"""
EXTRA = """
[[variant]]
label = "cuda12"
requires = ["{{name}}[cuda12]=={{version}}"]
properties = ["nvidia :: cuda_version_lower_bound :: 12.0"]
"""


class World:
    """An index, and a publisher's own index for each accelerator.

    Attributes:
        own, publisher: servers.
        catalog: directory of entries.
    """

    def __init__(self, own, publisher, folder):
        self.own, self.publisher, self.folder = own, publisher, folder
        self.catalog = folder / "catalog"
        self.catalog.mkdir()
        for name, text in (("gpu", GPU), ("cpu", NO_GPU)):
            (folder / f"{name}.toml").write_text(text)
        self.describe("app", BUILDS)
        self.add(Wheel("app", "1.0"), Wheel("base", "1.0"))
        for place in ("cu12", "cpu"):
            wheel = Wheel("app", f"1.0+{place}", requires=("base",))
            path = f"/whl/{place}/app-1.0%2B{place}-py3-none-any.whl"
            publisher.resources[path] = Resource(wheel.build(), ranges=True)
            page = f'<a href="{path}">{wheel.filename}</a>'.encode()
            publisher.resources[f"/whl/{place}/app/"] = Resource(page, kind="text/html")

    def describe(self, name, text):
        filled = HEAD.format(name) + text.format(name, url=self.publisher.url)
        (self.catalog / f"{name}.toml").write_text(filled)

    def add(self, *wheels):
        for wheel in wheels:
            self.own.page(wheel.name, {wheel.filename: wheel.build()})

    def run(self, *arguments, platform="gpu", catalog=None):
        options = ["-i", self.own.simple, "--variant-catalog", catalog or self.catalog]
        environ = {"VARIANTS_CACHE_DIR": str(self.folder / "cache")}
        if platform:
            options += ["--variant-platform", self.folder / f"{platform}.toml"]
        done = subprocess.run(
            [*COMMAND, *map(str, (*arguments, *options))],
            capture_output=True, text=True, cwd=self.folder, timeout=120, check=False,
            env=clean_environ(environ),
        )  # fmt: skip
        check_output([str(argument) for argument in arguments], done.stdout)
        return Result(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def world(tmp_path):
    with served() as own, served() as publisher:
        yield World(own, publisher, tmp_path)


class TestCommands:
    def test_explain_as_json(self, world):
        tree = json.loads(world.run("explain", "app", "--json").out)
        assert tree["file"] == "app-1.0+cu12-py3-none-any.whl"
        assert tree["plain"] == ["app-1.0-py3-none-any.whl"]
        assert tree["catalog"] == {
            "entry": str(world.catalog / "app.toml"),
            "documentation": "https://docs.example/app",
            "builds": {
                "cuda12": f"{world.publisher.url}/whl/cu12/app/",
                "null": f"{world.publisher.url}/whl/cpu/app/",
            },
        }
        assert tree["sources"][0]["files"] == {
            "cuda12": ["app-1.0+cu12-py3-none-any.whl"],
            "null": ["app-1.0+cpu-py3-none-any.whl"],
        }

    def test_a_catalogue_that_cannot_be_read(self, world):
        world.publisher.resources["/login"] = Resource(b"<html>", kind="text/html")
        done = world.run("resolve", "app", catalog=f"{world.publisher.url}/login")
        assert done.code == 1
        assert done.err.startswith(f"error: {world.publisher.url}/login")

    def test_download(self, world):
        world.describe("lib", RENAMED)
        world.add(Wheel("lib", "1.0"), Wheel("lib-cu12", "1.0"))
        done = world.run("resolve", "app", "lib", "--download", "files")
        assert done.code == 0
        assert sorted(path.name for path in (world.folder / "files").iterdir()) == [
            "app-1.0+cu12-py3-none-any.whl",
            "base-1.0-py3-none-any.whl",
            "lib-1.0-py3-none-any.whl",
        ]
        targets = ["--target", "gpu.toml", "--target", "cpu.toml"]
        done = world.run("resolve", "lib", "--download", "both", *targets, platform=None)
        assert done.code == 1
        assert "use --download for one target at a time" in done.err


class TestLocks:
    def lock(self, world, *arguments, platform="gpu"):
        done = world.run("resolve", "-o", "pylock.toml", *arguments, platform=platform)
        assert done.code == 0, done.err
        text = (world.folder / "pylock.toml").read_text()
        return {item["name"]: item for item in toml.loads(text)["packages"]}

    def test_select_from_it(self, world):
        self.lock(world, "app")
        done = subprocess.run(
            [*COMMAND, "resolve", "--from", "pylock.toml", "--download", "files"],
            capture_output=True, text=True, cwd=world.folder, timeout=120, check=False,
            env=clean_environ({"VARIANTS_CACHE_DIR": str(world.folder / "cache")}),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == ["app", "1.0+cu12", "base", "1.0"]
        assert (world.folder / "files" / "app-1.0+cu12-py3-none-any.whl").exists()

    def test_plain_pip_installs_it(self, world, plain, tmp_path):
        world.describe("lib", RENAMED)
        world.describe("tool", EXTRA)
        world.add(
            Wheel("lib", "1.0"),
            Wheel("lib-cu12", "1.0"),
            Wheel("tool", "1.0", extras=("cuda12",), requires=("plug; extra == 'cuda12'",)),
            Wheel("plug", "1.0"),
        )
        python = plain.run("-c", "import sys; print('%d.%d' % sys.version_info[:2])").out.strip()
        self.lock(world, "app", "lib", "tool", "--python-version", python)
        environment = plain.copied(tmp_path / "environment")
        path = str(world.folder / "pylock.toml")
        done = environment.pip("install", "--no-deps", "-r", path)
        assert done.code == 0, done
        assert environment.pip("freeze").out.split() == [
            "app==1.0+cu12",
            "base==1.0",
            "lib-cu12==1.0",
            "plug==1.0",
            "tool==1.0",
        ]


class TestCheck:
    @pytest.fixture
    def installed(self, plain, tmp_path):
        """Install wheels, and return the environment."""
        environment = plain.copied(tmp_path / "environment")

        def install(*wheels):
            for wheel in wheels:
                path = tmp_path / wheel.filename
                path.write_bytes(wheel.build())
                done = environment.pip(
                    "install", "--no-deps", "--no-index", "--force-reinstall", str(path)
                )
                assert done.code == 0, done
            return environment.python

        return install

    def test_another_build_fits_better(self, world, installed):
        python = installed(Wheel("app", "1.0+cpu"), Wheel("base", "1.0"))
        done = world.run("check", "--python", python)
        assert (done.code, done.err) == (1, "")
        row, command = done.out.splitlines()
        assert row.split()[:4] == ["app", "1.0+cpu", "null", "cuda12"]
        assert command.startswith("To switch: pip --python")
        done = world.run("check", "--python", python, platform="cpu")
        assert (done.code, done.out) == (0, "1 package checked, none has a better variant\n")
        python = installed(Wheel("app", "1.0+cu12"))
        done = world.run("check", "--python", python, platform="cpu")
        assert done.code == 1
        assert done.out.split()[:4] == ["app", "1.0+cu12", "cuda12", "null"]

    def test_extras_are_not_judged(self, world, installed):
        world.describe("lib", EXTRA)
        world.add(Wheel("lib", "1.0", extras=("cuda12",)))
        assert world.run("check", "--python", installed(Wheel("lib", "1.0"))).code == 0
