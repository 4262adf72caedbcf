"""A checkout with a hostile variants.toml: it runs no code, reads no file and breaks no command.

Every client is started in the checkout. Whether the plugin ran shows in the choice (it supports
``fast``, without it ``null`` is left), and in the cache, where it is installed first.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.environments import Environment, Result, clean_environ
from support.index import Index
from support.plugins import PLUGIN, acme_index
from support.uvs import Machine
from support.wheels import Wheel

VARIANTS = Path(sys.executable).with_name("variants")
DRY_RUN = ("install", "--dry-run", "app")


class Checkout:
    """A directory with a ``variants.toml`` that allows a plugin in a file beside it.

    Attributes:
        path: of the directory.
        home: of the user, empty at first.
        index: URL of one with a project ``app``, some of whose variants want the plugin.
        file: the hostile file.
        environ: variables for every command.
    """

    def __init__(self, folder: Path, index: str) -> None:
        self.path, self.home, self.index = folder / "checkout", folder / "home", index
        self.file = self.path / "variants.toml"
        self.path.mkdir()
        self.home.mkdir()
        wheel = Wheel("acme-provider", "1.5", files={"acme_provider/__init__.py": PLUGIN})
        (self.path / wheel.filename).write_bytes(wheel.build())
        url = (self.path / wheel.filename).as_uri()
        self.file.write_text(f"allow-provider = ['acme-provider @ {url}']\n")
        self.file.chmod(0o666)
        self.environ = {
            "HOME": str(self.home),
            "USERPROFILE": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_CONFIG_DIRS": str(self.home / "etc"),
            "XDG_DATA_HOME": str(self.home / "data"),
            "VARIANTS_CACHE_DIR": str(self.home / "cache"),
            "PIP_INDEX_URL": index,
            "UV_DEFAULT_INDEX": index,
        }

    @property
    def ran(self) -> bool:
        """Whether the plugin was installed since the last look, to be run."""
        plugins = self.home / "cache" / "plugins"
        found = plugins.is_dir() and any((plugins / "environments").iterdir())
        shutil.rmtree(plugins, ignore_errors=True)
        return found

    def variants(self, *arguments: str) -> str:
        """Run the `variants` command in it; return what it printed, warnings last."""
        environ = clean_environ(self.environ)
        done = subprocess.run(
            [VARIANTS, *arguments], capture_output=True, text=True, cwd=self.path, env=environ
        )
        assert done.returncode == 0, done
        return done.stdout + done.stderr

    def check_warning(self, text: str) -> None:
        """Check that one line of *text* names the file, what is ignored, and the way out."""
        (line,) = (line for line in text.splitlines() if str(self.file) in line)
        assert f"{self.file}: allow-provider ignored: " in line
        assert f"run variants trust {self.path}, or use --variant-" in line


@pytest.fixture
def checkout(tmp_path: Path, serve: Callable[[Index], Index]) -> Checkout:
    return Checkout(tmp_path, serve(acme_index(PLUGIN)).url)


@pytest.fixture
def pip(patched: Environment, checkout: Checkout) -> Callable[..., Result]:
    """Run pip in the checkout."""

    def run(*arguments: str, **env: str) -> Result:
        done = patched.pip(*arguments, env={**checkout.environ, **env}, cwd=checkout.path)
        assert done.code == 0, done
        return done

    return run


def test_pip(pip, checkout):
    done = pip(*DRY_RUN)
    assert not checkout.ran
    checkout.check_warning(done.err)
    assert "Would install app-1.0-null\n" in done.out, done
    done = pip("download", "--dest", "there", "app")
    assert not checkout.ran
    checkout.check_warning(done.err)
    assert not list((checkout.path / "there").glob("*fast*"))
    checkout.variants("trust", "--yes", str(checkout.path))
    done = pip(*DRY_RUN)
    assert "Would install app-1.0-fast\n" in done.out, done
    assert str(checkout.file) not in done.err
    assert checkout.ran
    # A change of the file takes another approval.
    with checkout.file.open("a") as stream:
        stream.write("# changed\n")
    done = pip(*DRY_RUN)
    assert "Would install app-1.0-null\n" in done.out, done
    assert not checkout.ran
    assert "it has changed since you approved it" in done.err
    checkout.check_warning(done.err)


def test_pip_isolated(pip, checkout):
    """Neither an approval nor the user's file and variables count, and nothing is said."""
    checkout.variants("trust", "--yes", str(checkout.path))
    user = checkout.home / "config" / "variants" / "variants.toml"
    user.parent.mkdir(parents=True)
    user.write_text("exclude = ['acme :: speed :: fast']\n")
    # --isolated ignores PIP_INDEX_URL as well.
    options = ("--isolated", "install", "--dry-run", "--index-url", checkout.index, "app")
    done = pip(*options, VARIANTS_NO_VARIANTS="1")
    assert "Would install app-1.0-null\n" in done.out, done
    assert not checkout.ran
    assert str(checkout.file) not in done.err
    allowed = ("--variant-allow-provider", "acme-provider")
    done = pip(*options, *allowed, VARIANTS_NO_VARIANTS="1")
    assert "Would install app-1.0-fast\n" in done.out, done


@pytest.mark.one
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
@pytest.mark.parametrize("kind", ["device", "pipe", "key"])
def test_a_checkout_does_not_break_pip(pip, checkout, kind):
    checkout.file.unlink()
    if kind == "device":
        checkout.file.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(checkout.file)
    else:
        checkout.file.write_text('"\\u001b[31mred" = 1\n')
    done = pip(*DRY_RUN)
    assert "Would install app-1.0-null\n" in done.out, done
    (line,) = done.err.splitlines()
    assert line.isprintable()
    assert f"{checkout.file}: " in line


@pytest.mark.parametrize("command", ["explain", "resolve"])
def test_variants(checkout, command):
    printed = checkout.variants(command, "app", "--json")
    assert not checkout.ran
    checkout.check_warning(printed)
    chosen, _ = json.JSONDecoder().raw_decode(printed)
    assert _label(chosen) == "null"
    checkout.variants("trust", "--yes")
    printed = checkout.variants(command, "app", "--json")
    assert checkout.ran
    assert str(checkout.file) not in printed
    assert _label(json.loads(printed)) == "fast"


def _label(tree):
    """Return the label that was chosen for ``app``."""
    if "resolutions" in tree:
        ((package,),) = (item["packages"] for item in tree["resolutions"])
        return package["label"]
    return tree["file"].removesuffix(".whl").rpartition("-")[2]


def test_uv(machine: Machine, checkout: Checkout) -> None:
    """A virtual environment that came with the checkout has settings that count like its own."""
    there = machine.with_environ(checkout.environ)
    environment = checkout.path / ".venv"
    there.create_environment(sys.executable, environment)
    install = ("pip", "install", "--dry-run", "app")
    done = there.run(*install, cwd=checkout.path)
    assert done.code == 0, done
    assert not checkout.ran
    checkout.check_warning(done.err)
    checkout.file.rename(environment / "variants.toml")
    done = there.run(*install, cwd=checkout.path)
    assert done.code == 0, done
    assert not checkout.ran
    assert f"{environment / 'variants.toml'}: allow-provider ignored: " in done.err
    checkout.variants("trust", "--yes", str(environment))
    done = there.run(*install, cwd=checkout.path)
    assert done.code == 0, done
    assert checkout.ran
    assert "ignored" not in done.err
