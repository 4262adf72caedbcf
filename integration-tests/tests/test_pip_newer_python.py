"""pip with the shim on Pythons that are newer than those around.

They run in WebAssembly, without processes and threads: pip's commands are called one after the
other in one process, with its network and its progress bar left out.
"""

from __future__ import annotations

import json
import zipfile

import pytest

from support import webassembly
from support.environments import PIPS
from support.wheels import X86_64, Release, Wheel, metadata

pytestmark = pytest.mark.nightly
SCRIPT = """
import json, sys, warnings
from pathlib import Path

folder = Path({folder!r})
# What Python itself is warned of when it starts is none of ours.
warnings.simplefilter("always")
print(json.dumps([type(finder).__name__ for finder in sys.meta_path]))
sys.argv = ["pip"]
for command in json.loads((folder / "commands.json").read_text()):
    from pip._internal.cli.main import main

    print("$", *command, flush=True)
    try:
        code = main(command)
    except SystemExit as exit:
        code = exit.code
    print("exit code", code, flush=True)
"""
RELEASE = Release(
    "kernel",
    "1.0",
    metadata(
        {
            "null": {},
            "v3": {"x86_64": {"level": ["v3"]}},
            "v4": {"x86_64": {"level": ["v4"]}},
        },
        namespaces=["x86_64"],
        providers={"x86_64": X86_64},
    ),
    requires=('fast; "x86_64 :: level :: v3" in variant_properties',),
)


@pytest.fixture(params=webassembly.PYTHONS)
def python(request, environments):
    try:
        webassembly.node()
        return webassembly.downloaded_python(request.param, environments)
    except webassembly.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def site_packages(environments, tmp_path):
    """The newest pip and the shim, as an installer lays them down."""
    folder = tmp_path / "site-packages"
    for wheel in (environments.pip_wheel(PIPS[-1]), environments.shim_wheel):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    return folder


@pytest.fixture
def pip(python, site_packages, tmp_path):
    """Run commands of pip; return what each printed, and the names of the finders at the start."""
    folder = tmp_path / "work"
    folder.mkdir()
    for wheel in (*RELEASE.wheels(), Wheel("fast", "1.0")):
        (folder / wheel.filename).write_bytes(wheel.build())
    (folder / RELEASE.metadata_filename).write_text(json.dumps(RELEASE.metadata))

    def run(*commands):
        files = f" --no-index --find-links {folder} --progress-bar off"
        lines = [f"{line}{files * line.startswith('install')}".split() for line in commands]
        (folder / "commands.json").write_text(json.dumps(lines))
        done = webassembly.run(
            python, site_packages, folder, SCRIPT.replace("{folder!r}", repr(str(folder)))
        )
        assert done.code == 0, done
        assert "DeprecationWarning" not in done.err, done
        finders, *outputs = done.out.split("\n$ ")
        return json.loads(finders), outputs, done

    return run


def test_commands(pip):
    finders, outputs, done = pip(
        "install --dry-run -v --variant-platform cpu-haswell kernel",
        "install --variant-platform cpu-haswell kernel",
        "list",
        "show kernel",
        "check",
        "install --variant kernel=v4 --force-reinstall --no-deps kernel",
        "uninstall -y kernel",
    )
    assert finders[0] == "PipWatch"
    planned, installed, listed, shown, checked, refused, removed = outputs
    assert [line.split()[:2] for line in planned.splitlines() if line.startswith("    ")] == [
        ["v3", "chosen"],
        ["null", "compatible"],
        ["v4", "rejected"],
    ]
    assert "Would install fast-1.0 kernel-1.0-v3\n" in planned
    assert "Successfully installed fast-1.0 kernel-1.0-v3\n" in installed
    assert ["kernel", "1.0", "v3"] in [line.split() for line in listed.splitlines()]
    assert "Variant: v3\n" in shown
    assert "Requires: fast\n" in shown
    assert "No broken requirements found.\n" in checked
    assert refused.endswith("exit code 1")
    assert "no x86-64 CPU found. Variants that fit: null" in done.err
    assert "Successfully uninstalled kernel-1.0\n" in removed


def test_start_files(pip, site_packages, python):
    """Python 3.15 reads ``.start`` files, older ones know ``.pth`` files alone."""
    (site_packages / "pep_variants_shim.pth").unlink()
    version = json.loads((python / "pyodide-lock.json").read_text())["info"]["python"]
    finders, *_ = pip()
    assert ("PipWatch" in finders) is (tuple(map(int, version.split(".")[:2])) >= (3, 15))
