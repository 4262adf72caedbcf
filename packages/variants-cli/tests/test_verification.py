"""`variants doctor --verify`: installed files of this project and of pip, against RECORD."""

import os
import venv
from pathlib import Path

import pytest

from pep_variants._wheelfile.record import digest_of
from support.doctor_report import check_report
from variants_cli._verification import START_FILES, verify
from variants_index.doctor._findings import lines

SOURCE = Path(__file__).parents[3] / "pip-patch" / "src"
SHIM = {
    **{name: (SOURCE / name).read_bytes() for name in START_FILES},
    "pep_variants_shim_start.py": (SOURCE / "pep_variants_shim_start.py").read_bytes(),
    "pep_variants_shim/__init__.py": b"def watch(): ...\n",
    "../bin/pip-variants": b"#!/bin/sh\n",
}
PIP = {"pip/__init__.py": b"__version__ = '26.3'\n", "pip/_internal/cli/main.py": b"main = 1\n"}
PTH = "pep_variants_shim.pth"


@pytest.fixture
def folder(tmp_path):
    """A folder of packages with the shim, pip and another project."""
    folder = tmp_path / "site-packages"
    install(folder, "pep_variants_shim-0.1.0", SHIM)
    install(folder, "pip-26.3", PIP)
    install(folder, "other-1.0", {"other.pth": b"import other\n"})
    return folder


def install(folder, name, files):
    info = f"{name}.dist-info"
    project, version = name.split("-")
    files = {**files, f"{info}/METADATA": f"Name: {project}\nVersion: {version}\n".encode()}
    text = "".join(f"{path},{digest_of(data)},{len(data)}\n" for path, data in files.items())
    text += f"{info}/RECORD,,\n{project}/__pycache__/__init__.cpython-312.pyc,,\n"
    files = {**files, f"{info}/RECORD": text.encode(), f"{project}/__pycache__/a.pyc": b"compiled"}
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


def problems(folder):
    found = verify([str(folder)])
    check_report(found.as_tree())
    return [(each.code, each.text.replace(f"{folder}/", "")) for each in found.problems]


def test_unchanged(folder):
    (folder / "link").symlink_to(folder)
    found = verify([str(folder), str(folder / "link")])
    page = list(lines(found))
    assert page[:3] == ["Nothing is wrong", "", "files"]
    assert sorted(page[3:]) == [
        f"  pep-variants-shim 0.1.0  7 files of RECORD, none changed or missing, in {folder}",
        f"  pip 26.3                 4 files of RECORD, none changed or missing, in {folder}",
    ]


def changed(name):
    return [("changed-file", f"{name} differs from its hash in RECORD")]


def unlisted(name):
    return [("unlisted-file", f"{name} is in no RECORD")]


@pytest.mark.parametrize(
    ("path", "data", "expected"),
    [
        ("pep_variants_shim/__init__.py", b"def watch(): 1/0\n",
         changed("pep_variants_shim/__init__.py of pep-variants-shim 0.1.0")),
        ("pip/_internal/cli/main.py", None,
         [("changed-file", "pip/_internal/cli/main.py of pip 26.3 is missing")]),
        (PTH, b"import pep_variants_shim_start;\n",
         [("changed-file", f"{PTH} of pep-variants-shim 0.1.0 runs at each start of Python, and is "
           "not b'import pep_variants_shim_start\\n'")]),
        ("pep_variants_more.pth", b"import os\n", unlisted("pep_variants_more.pth")),
        ("zzz.pth", b"import pep_variants_shim.x\n", unlisted("zzz.pth")),
        ("pip/_internal/cli/main.abi3.so", b"\x7fELF", unlisted("pip/_internal/cli/main.abi3.so")),
        ("variants_cli/__init__.py", b"", unlisted("variants_cli/__init__.py")),
        ("pip-26.3.dist-info/x.txt", b"", unlisted("pip-26.3.dist-info/x.txt")),
        ("pep_variants_shim/__pycache__/b.pyc", b"", []),
        ("unrelated.pth", b"import os\n", []),
        ("unrelated/__init__.py", b"", []),
        ("other.pth", b"import pep_variants_shim\n", []),
        ("pep_variants_shim-0.1.0.dist-info/RECORD", None,
         [("changed-file", "pep-variants-shim 0.1.0 in FOLDER has no valid RECORD, so its files "
           "cannot be compared"),
          *(each for name in ("pep_variants_shim.pth", "pep_variants_shim.start",
                              "pep_variants_shim/__init__.py", "pep_variants_shim_start.py")
            for each in unlisted(name))]),
        ("pip-26.3.dist-info/RECORD", None,
         [("changed-file", "pip 26.3 in FOLDER has no valid RECORD, so its files cannot be "
           "compared")]),
    ],
)  # fmt: skip
def test_a_difference(folder, path, data, expected):
    (folder / path).parent.mkdir(exist_ok=True)
    if data is None:
        (folder / path).unlink()
    else:
        (folder / path).write_bytes(data)
    found = [(code, text.replace(str(folder), "FOLDER")) for code, text in problems(folder)]
    assert sorted(found) == sorted(expected)


def test_a_record_that_was_changed_as_well(folder):
    """The hash is right: the contents of a start file are known besides."""
    install(folder, "pep_variants_shim-0.1.0", {**SHIM, PTH: b"import evil\n"})
    assert [code for code, _ in problems(folder)] == ["changed-file"]
    weak = (folder / "pip-26.3.dist-info/RECORD").read_text().replace("sha256=", "md5=", 1)
    (folder / "pip-26.3.dist-info/RECORD").write_text(weak)
    assert ("changed-file", "pip/__init__.py of pip 26.3 has no SHA-2 hash in RECORD") in problems(
        folder
    )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs links and pipes")
def test_neither_files_nor_folders(folder):
    """A link to a folder is a way to add modules; a pipe is not read."""
    (folder / "elsewhere").mkdir()
    (folder / "pip/more").symlink_to(folder / "elsewhere")
    (folder / "pip/__init__.py").unlink()
    os.mkfifo(folder / "pip/__init__.py")
    assert problems(folder) == [
        ("changed-file", "pip/__init__.py of pip 26.3 is missing"), *unlisted("pip/more")
    ]  # fmt: skip


def test_command(variants, tmp_path):
    """The interpreter is not started, which would run what is in a start file."""
    venv.create(tmp_path / "env", symlinks=True)
    (folder,) = (tmp_path / "env").glob("lib/python*/site-packages")
    install(folder, "pip-26.3", PIP)
    (folder / "evil.pth").write_text(f"import os; open({str(tmp_path / 'ran')!r}, 'w')\n")
    done = variants("doctor", "--verify", "--python", tmp_path / "env")
    assert (done.code, done.out.splitlines()[0]) == (0, "Nothing is wrong")
    (folder / "pip/__init__.py").write_text("raise SystemExit\n")
    done = variants("doctor", "--verify", "--python", tmp_path / "env", "--json")
    assert (done.code, [each["code"] for each in done.json["problems"]]) == (1, ["changed-file"])
    assert [each["project"] for each in done.json["files"]] == ["pip"]
    assert not (tmp_path / "ran").exists()
    python = tmp_path / "env/bin/python"
    assert variants("doctor", "--verify", "--python", python, "--json").json == done.json
