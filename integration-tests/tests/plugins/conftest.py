"""Plugins as tiny wheels in a directory, and Pythons that have what a test wants and no more."""

import base64
import hashlib
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from pep_variants.choose.preferences import SANDBOX_OFF
from pep_variants.model.metadata import ProviderInfo
from variants_plugins import PluginRunner, Sources

LOG = "ACME_VARIANT_PROVIDER_LOG"
"""Environment variable that names the file in which the tests' plugins leave a trace."""

PACKAGES = Path(__file__).resolve().parents[3] / "packages"

LINUX = {"python_version": "3.11", "sys_platform": "linux", "platform_system": "Linux"}
"""A marker environment; the tests' requirements ask for nothing else."""


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

    def add(self, name, files, version="1.0", *, requires=(), extras=()):
        """Make a wheel; *files* are texts by path. Return its path."""
        escaped = name.replace("-", "_")
        info = f"{escaped}-{version}.dist-info"
        metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
        metadata += [f"Provides-Extra: {extra}" for extra in extras]
        metadata += [f"Requires-Dist: {each}" for each in requires]
        contents = {
            **files,
            f"{info}/METADATA": "\n".join(metadata) + "\n",
            f"{info}/WHEEL": (
                "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            ),
        }
        record = [f"{path},sha256={_digest(text)},{len(text)}" for path, text in contents.items()]
        contents[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,"]) + "\n"
        wheel = self.path / f"{escaped}-{version}-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for path, text in contents.items():
                archive.writestr(zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0)), text)
        return wheel


def _digest(text):
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture
def wheelhouse(tmp_path):
    """Return a directory with the wheel of ``acme-variant-provider`` 1.0."""
    wheels = Wheelhouse(tmp_path / "wheels")
    wheels.add("acme-variant-provider", {"acme_variant_provider/__init__.py": ACME})
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
        return runner.ask("acme", ProviderInfo(tuple(requires), plugin_api), LINUX)

    return ask


def _make_python(path, importable=("packaging", "platformdirs", "filelock", "pip")):
    """Make a virtual environment at *path* that can import the engine and *importable* only."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(path)], check=True)
    libraries = path / "libraries"
    libraries.mkdir()
    site = Path(sysconfig.get_path("purelib"))
    for name in importable:
        (libraries / name).symlink_to(site / name)
    python = path / "bin" / "python"
    purelib = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    ours = [PACKAGES / name / "src" for name in ("pep-variants", "variants-plugins")]
    lines = "\n".join(map(str, [*ours, libraries, ""]))
    Path(purelib, "ours.pth").write_text(lines)
    return python


@pytest.fixture(scope="session")
def make_python():
    """Return what makes a virtual environment without uv, and returns its interpreter."""
    return _make_python


@pytest.fixture(scope="session")
def shared_python(tmp_path_factory):
    """Return a Python beside which there is no uv."""
    return _make_python(tmp_path_factory.mktemp("python"))
