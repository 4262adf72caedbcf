"""Plugins as tiny wheels in a directory, and Pythons that have what a test wants and no more."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from pep_variants._choose.preferences import SANDBOX_OFF
from pep_variants._model.metadata import ProviderInfo
from pep_variants.preferences import Sources
from support.wheels import Wheel
from variants_plugins.runner import PluginRunner

LOG = "ACME_VARIANT_PROVIDER_LOG"
"""Environment variable that names the file in which the tests' plugins leave a trace."""

PACKAGES = Path(__file__).resolve().parents[3] / "packages"

ACME = '''\
"""The plugin that most tests ask: what it supports is in ACME_VARIANT_PROVIDER_LEVELS."""
import os
from dataclasses import dataclass

@dataclass(frozen=True)
class Config:
    name: str
    values: list
    multi_value: bool = False

log = os.environ.get("ACME_VARIANT_PROVIDER_LOG")
if log:
    with open(log, "a") as stream:
        stream.write("asked\\n")

def get_supported_configs():
    levels = os.environ.get("ACME_VARIANT_PROVIDER_LEVELS", "two one").split()
    return [Config("level", levels)]

def get_all_configs():
    return [Config("level", ["three", "two", "one"])]
'''


class Wheelhouse:
    """A directory that wheels are put into.

    Attributes:
        path: the directory.
        sources: only this directory.
        acme: the source of the plugin that most tests ask.
    """

    acme = ACME

    def __init__(self, path: Path):
        self.path = path
        self.path.mkdir(exist_ok=True)
        self.sources = Sources(find_links=(str(path),), no_index=True)

    def add(self, name, files=(), version="1.0", **more):
        """Make a wheel; *files* are texts by path. Return its path."""
        wheel = Wheel(name, version, files=dict(files), **more)
        path = self.path / wheel.filename
        path.write_bytes(wheel.build())
        return path

    def plugin(self, source=ACME, version="2.0", files=(), **more):
        """Make a wheel of ``acme-variant-provider`` with this *source*; return its path."""
        files = {"acme_variant_provider/__init__.py": source, **dict(files)}
        return self.add("acme-variant-provider", files, version, **more)


@pytest.fixture
def wheelhouse(tmp_path):
    """Return a directory with the wheel of ``acme-variant-provider`` 1.0."""
    wheels = Wheelhouse(tmp_path / "wheels")
    wheels.plugin(version="1.0")
    return wheels


@pytest.fixture
def clean_environ():
    """Return environment variables that a plain user has; tests of the tests' own do not leak."""
    names = ("PATH", "HOME", "LANG", "PYTHONDONTWRITEBYTECODE")
    return {name: os.environ[name] for name in names if name in os.environ}


@pytest.fixture
def make_runner(tmp_path, wheelhouse, clean_environ):
    """Return what makes a runner that allows acme, with a cache of this test."""

    def make(*allow, sources=None, environ=None, **options):
        options.setdefault("cache_dir", tmp_path / "cache")
        if environ and LOG in environ:  # in the sandbox it could not write there
            options.setdefault("sandbox", SANDBOX_OFF)
        return PluginRunner(
            allow or ("acme-variant-provider",),
            sources or wheelhouse.sources,
            environ={**clean_environ, **(environ or {})},
            **options,
        )

    return make


@pytest.fixture
def ask(make_runner):
    """Return what asks acme, or another provider, in its own namespace."""

    def ask(*allow, requires=("acme-variant-provider",), plugin_api=None, **options):
        runner = make_runner(*allow, **options)
        return runner.ask("acme", ProviderInfo(tuple(requires), plugin_api), {})

    return ask


@pytest.fixture(scope="session")
def make_python():
    """Return what makes a virtual environment without uv, and returns its interpreter.

    It can import the engine, the plugins' runner and what they need, a pip if wanted.
    """

    def make(path, pip=True):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(path)], check=True)
        libraries = path / "libraries"
        libraries.mkdir()
        for name in ("packaging", "platformdirs", "filelock", *(["pip"] if pip else ())):
            (libraries / name).symlink_to(Path(sysconfig.get_path("purelib"), name))
        (site,) = path.glob("lib/python*/site-packages")
        ours = [PACKAGES / name / "src" for name in ("pep-variants", "variants-plugins")]
        (site / "ours.pth").write_text("\n".join(map(str, [*ours, libraries, ""])))
        return path / "bin" / "python"

    return make


@pytest.fixture(scope="session")
def shared_python(make_python, tmp_path_factory):
    """Return a Python beside which there is no uv."""
    return make_python(tmp_path_factory.mktemp("python"))
