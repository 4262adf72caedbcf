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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support.environments import Environment, Result, clean_environ
from support.index import Index
from support.plugins import PLUGIN, acme_index
from support.uvs import Machine
from support.wheels import Wheel

Serve = Callable[[Index], Index]


VARIANTS = [sys.executable, "-c", "from variants_cli.main import main; main()"]


@dataclass(frozen=True)
class Checkout:
    """A directory with a ``variants.toml`` that allows a plugin in a file beside it.

    Attributes:
        path: of the directory.
        home: of the user, empty at first.
        index: with a project ``app``, some of whose variants want the plugin.
        settings: environment variables of the user.
    """

    path: Path
    home: Path
    index: Index
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        """The hostile file."""
        return self.path / "variants.toml"

    @property
    def environ(self) -> dict[str, str]:
        """Variables for every command."""
        return {
            "HOME": str(self.home),
            "USERPROFILE": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_CONFIG_DIRS": str(self.home / "etc"),
            "XDG_DATA_HOME": str(self.home / "data"),
            "VARIANTS_CACHE_DIR": str(self.home / "cache"),
            "PIP_INDEX_URL": self.index.url,
            **self.settings,
        }

    @property
    def ran(self) -> bool:
        """Whether the plugin was installed since the last look, to be run."""
        plugins = self.home / "cache" / "plugins"
        found = plugins.is_dir() and any((plugins / "environments").iterdir())
        shutil.rmtree(plugins, ignore_errors=True)
        return found

    def variants(self, *arguments: str) -> Result:
        """Run the `variants` command in it."""
        done = subprocess.run(
            [*VARIANTS, *arguments],
            capture_output=True,
            text=True,
            cwd=self.path,
            env=clean_environ(self.environ),
            timeout=120,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def trust(self, *arguments: str) -> None:
        """Run ``variants trust`` with *arguments*."""
        done = self.variants("trust", *arguments)
        assert done.code == 0, done

    def check_warning(self, text: str, keys: str = "allow-provider") -> None:
        """Check that one line of *text* names the file, what is ignored, and the way out."""
        lines = [line for line in text.splitlines() if str(self.file) in line]
        assert len(lines) == 1, text
        assert f"{self.file}: {keys} ignored: " in lines[0]
        assert f"run variants trust {self.path}, or use --variant-" in lines[0]


@pytest.fixture
def checkout(tmp_path: Path, serve: Serve) -> Checkout:
    index = acme_index(PLUGIN)
    path = tmp_path / "checkout"
    home = tmp_path / "home"
    path.mkdir()
    home.mkdir()
    wheel = Wheel("acme-provider", "1.5", files={"acme_provider/__init__.py": PLUGIN})
    (path / wheel.filename).write_bytes(wheel.build())
    found = Checkout(path, home, serve(index))
    url = (path / wheel.filename).as_uri()
    found.file.write_text(f"allow-provider = ['acme-provider @ {url}']\n")
    found.file.chmod(0o666)
    return found


@pytest.fixture
def pip(patched: Environment, checkout: Checkout) -> Callable[..., Result]:
    """Run pip in the checkout."""

    def run(*arguments: str, flags: tuple[str, ...] = (), **env: str) -> Result:
        return patched.run(
            *flags, "-m", "pip", *arguments, env={**checkout.environ, **env}, cwd=checkout.path
        )

    return run


DRY_RUN = ("install", "--dry-run", "app")
COMMANDS = [DRY_RUN, ("download", "--dest", "there", "app")]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
def test_pip(pip, checkout, command):
    done = pip(*command)
    assert done.code == 0, done
    assert not checkout.ran
    checkout.check_warning(done.err)
    there = checkout.path / "there"
    if there.exists():
        assert not list(there.glob("*fast*"))
    else:
        assert "Would install app-1.0-null\n" in done.out, done


def test_pip_after_approval(pip, checkout):
    checkout.trust("--yes", str(checkout.path))
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
    checkout.trust("--yes", str(checkout.path))
    assert "Would install app-1.0-fast\n" in pip(*DRY_RUN).out
    checkout.trust("--revoke", str(checkout.path))
    assert "Would install app-1.0-null\n" in pip(*DRY_RUN).out


@pytest.mark.parametrize("flags", [(), ("-I",)], ids=str)
def test_pip_isolated(pip, checkout, flags):
    """Neither an approval nor the user's file and variables count, and nothing is said."""
    checkout.trust("--yes", str(checkout.path))
    user = checkout.home / "config" / "variants" / "variants.toml"
    user.parent.mkdir(parents=True)
    user.write_text("exclude = ['acme :: speed :: fast']\n")
    # --isolated ignores PIP_INDEX_URL as well.
    options = ("--isolated", "install", "--dry-run", "--index-url", checkout.index.url, "app")
    done = pip(*options, flags=flags, VARIANTS_NO_VARIANTS="1")
    assert "Would install app-1.0-null\n" in done.out, done
    assert not checkout.ran
    assert str(checkout.file) not in done.err
    allowed = ("--variant-allow-provider", "acme-provider")
    done = pip(*options, *allowed, flags=flags, VARIANTS_NO_VARIANTS="1")
    assert "Would install app-1.0-fast\n" in done.out, done


@pytest.mark.one
def test_python_isolated(pip, checkout):
    """With -I the working directory does not count; with -E and -I variables do not."""
    checkout.trust("--yes", str(checkout.path))
    variables = {"VARIANTS_NO_VARIANTS": "1"}
    assert "Would install app-1.0-null\n" in pip(*DRY_RUN, flags=("-I",), **variables).out
    assert not checkout.ran
    assert "Would install app-1.0-fast\n" in pip(*DRY_RUN, flags=("-E",), **variables).out
    assert "app-1.0-" not in pip(*DRY_RUN, **variables).out


@pytest.mark.one
def test_the_users_own_file_is_not_replaced(pip, checkout):
    """It allows what the checkout may not, and the checkout only narrows it."""
    user = checkout.home / "config" / "variants" / "variants.toml"
    user.parent.mkdir(parents=True)
    user.write_text(checkout.file.read_text())
    user.chmod(0o644)
    checkout.file.write_text("prefer = ['acme :: speed :: slow']\n")
    done = pip(*DRY_RUN)
    assert "Would install app-1.0-slow\n" in done.out, done
    assert str(checkout.file) not in done.err
    assert checkout.ran
    # Others can change it: then it allows nothing either.
    if os.name != "nt":
        user.chmod(0o666)
        done = pip(*DRY_RUN)
        assert "Would install app-1.0-null\n" in done.out, done
        assert f"{user}: allow-provider ignored: {user} can be changed by other users" in done.err


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
    assert done.code == 0, done
    assert "Would install app-1.0-null\n" in done.out, done
    (line,) = done.err.splitlines()
    assert line.isprintable()
    assert f"{checkout.file}: " in line


@pytest.mark.one
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
def test_files_that_a_checkout_names_are_not_read(pip, checkout):
    pipe = checkout.path / "pipe"
    os.mkfifo(pipe)
    for named in (str(pipe), "/dev/zero"):
        checkout.file.write_text(f"platform = '{named}'\nenable = ['acme']\n")
        done = pip(*DRY_RUN)
        assert "Would install app-1.0-null\n" in done.out, done
        checkout.check_warning(done.err, "platform, enable")


# `variants`.


@pytest.mark.parametrize("command", [("explain", "app"), ("resolve", "app")], ids=str)
def test_variants(checkout, command):
    done = checkout.variants(*command, "--json")
    assert done.code == 0, done
    assert not checkout.ran
    checkout.check_warning(done.err)
    assert _chosen(done.out) == "null"
    checkout.trust("--yes")
    done = checkout.variants(*command, "--json")
    assert checkout.ran, done
    assert str(checkout.file) not in done.err
    assert _chosen(done.out) == "fast"


def _chosen(text: str) -> str:
    """Return the label that was chosen for ``app``."""
    tree = json.loads(text)
    if "resolutions" in tree:
        ((package,),) = (item["packages"] for item in tree["resolutions"])
        return str(package["label"])
    return str(tree["file"]).removesuffix(".whl").rpartition("-")[2]


# uv.


@pytest.fixture
def uv(machine: Machine, checkout: Checkout) -> Callable[..., Result]:
    """Run `uv-variants` in the checkout."""
    there = machine.with_environ({**checkout.environ, "UV_DEFAULT_INDEX": checkout.index.url})
    there.create_environment(sys.executable, checkout.home / "environment")

    def run(*arguments: str) -> Result:
        own = there.with_environ({"VIRTUAL_ENV": str(checkout.home / "environment")})
        return own.run(*arguments, cwd=checkout.path)

    return run


def test_uv(uv, checkout):
    install = ("pip", "install", "--dry-run", "-v", "app")
    done = uv(*install)
    assert done.code == 0, done
    assert not checkout.ran
    checkout.check_warning(done.err)
    checkout.trust("--yes")
    done = uv(*install)
    assert done.code == 0, done
    assert checkout.ran
    assert str(checkout.file) not in done.err


def test_uv_and_a_virtual_environment_that_came_with_the_checkout(
    machine: Machine, checkout: Checkout
) -> None:
    """uv takes it as it is; its settings count like those of the checkout."""
    there = machine.with_environ({**checkout.environ, "UV_DEFAULT_INDEX": checkout.index.url})
    environment = checkout.path / ".venv"
    there.create_environment(sys.executable, environment)
    checkout.file.rename(environment / "variants.toml")
    install = ("pip", "install", "--dry-run", "app")
    done = there.run(*install, cwd=checkout.path)
    assert done.code == 0, done
    assert not checkout.ran
    assert f"{environment / 'variants.toml'}: allow-provider ignored: " in done.err


def test_uv_and_files_that_name_a_proxy(uv, checkout):
    """uv-variants reads no .env file, and its own settings are in no file of a project."""
    lines = "VARIANTS_PROXY_URL=http://127.0.0.1:9\nVARIANTS_ALLOW_PROVIDER=acme-provider\n"
    (checkout.path / ".env").write_text(lines)
    (checkout.path / "pyproject.toml").write_text(
        "[project]\nname = 'x'\nversion = '1'\n"
        "[tool.uv-variants]\nproxy = 'http://127.0.0.1:9'\n[tool.variants]\nallow-provider = 'p'\n"
    )
    checkout.file.unlink()
    done = uv("pip", "install", "--dry-run", "app")
    assert done.code == 0, done
    assert not checkout.ran
