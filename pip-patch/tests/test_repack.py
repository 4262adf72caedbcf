"""Repacking pip with the shim: what is rewritten, and what is refused."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hatch_build import EDITS, edited, rewritten
from patched.archive import read_wheel, release_date, with_record, write_wheel
from patched.repack import RepackError, repack
from patched.upstream import SHA256, UpstreamError, verify

from support.environments import PIPS

UPSTREAM = {
    "pip/__init__.py": b'from __future__ import annotations\n\n__version__ = "9.1"\n',
    "pip/_internal/__init__.py": b"",
    "pip-9.1.dist-info/METADATA": (
        b"Metadata-Version: 2.4\nName: pip\nVersion: 9.1\nSummary: The tool\n"
        b"License-Expression: MIT\nLicense-File: LICENSE.txt\n\nVersion: 9.1 of this text stays\n"
    ),
    "pip-9.1.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: flit\nTag: py3-none-any\n",
    "pip-9.1.dist-info/RECORD": b"old",
}
SHIM = {
    "pep_variants_shim.pth": b"import pep_variants_shim",
    "pep_variants_shim/LICENSE": b"Apache",
    "pep_variants_shim/__init__.py": b"\ndef watch(): pass\n",
    "pep_variants_shim/_vendor/licenses/lib/LICENSE": b"as you like",
    "pep_variants_shim-1.dist-info/METADATA": (
        b"Name: pep-variants-shim\nLicense-Expression: Apache-2.0 AND (MIT OR BSD-3-Clause)\n"
    ),
    "pep_variants_shim-1.dist-info/sboms/shim.cdx.json": b"{}",
}


def repacked(shim=(), upstream=()):
    return repack({**UPSTREAM, **dict(upstream)}, {**SHIM, **dict(shim)}, "9.1")


def test_files():
    files = repacked()
    info = "pip-9.1+variants.1.dist-info"
    licenses = f"{info}/licenses/src/pip/_variants"
    assert set(files) == {
        "pip/__init__.py",
        "pip/_internal/__init__.py",
        "pip/_variants/LICENSE",
        "pip/_variants/__init__.py",
        "pip/_variants/_vendor/licenses/lib/LICENSE",
        f"{licenses}/LICENSE",
        f"{licenses}/_vendor/licenses/lib/LICENSE",
        *(f"{info}/{name}" for name in ("METADATA", "RECORD", "WHEEL", "sboms/shim.cdx.json")),
    }
    assert files[f"{info}/METADATA"].decode() == (
        "Metadata-Version: 2.4\nName: pip\nVersion: 9.1+variants.1\n"
        "Summary: pip 9.1 with wheel variants built in, by the pep-variants project\n"
        "License-Expression: MIT AND Apache-2.0 AND (MIT OR BSD-3-Clause)\n"
        "License-File: LICENSE.txt\n"
        "License-File: src/pip/_variants/LICENSE\n"
        "License-File: src/pip/_variants/_vendor/licenses/lib/LICENSE\n"
        "\nVersion: 9.1 of this text stays\n"
    )
    assert b"Tag: py3-none-any\n" in files[f"{info}/WHEEL"]
    assert b"flit" not in files[f"{info}/WHEEL"]
    assert b'\n__version__ = "9.1+variants.1"\n' in files["pip/__init__.py"]


IMPORTS = {
    "from pep_variants_shim._vendor import tomli\n": "from pip._variants._vendor import tomli\n",
    "    from pep_variants_shim import hook\n": "    from pip._variants import hook\n",
    "import pep_variants_shim._vendor.a.b as c\n": "import pip._variants._vendor.a.b as c\n",
    "import pep_variants_shim.a; from pep_variants_shim import a\n": (
        "import pip._variants.a; from pip._variants import a\n"
    ),
    "from .hook import switch\n": "from .hook import switch\n",
    "NAME = 'pep_variants_shim'\n": "NAME = 'pep_variants_shim'\n",
    "import pep_variants_shim_more\n": "import pep_variants_shim_more\n",
}


@pytest.mark.parametrize(("code", "expected"), IMPORTS.items())
def test_imports(code, expected):
    code = "if True:\n" + code if code.startswith(" ") else code
    files = repacked({"pep_variants_shim/module.py": code.encode()})
    assert files["pip/_variants/module.py"].decode().removeprefix("if True:\n") == expected


def test_packages_without_init():
    """In a zip file that lists no folders they would not be found."""
    files = repacked({"pep_variants_shim/_vendor/lib/data/module.py": b"", "other/module.py": b""})
    for folder in ("", "_vendor/", "_vendor/lib/", "_vendor/lib/data/"):
        assert f"pip/_variants/{folder}__init__.py" in files
    assert "pip/_variants/_vendor/licenses/__init__.py" not in files
    assert not [name for name in files if name.startswith("other")]


INFO = "pep_variants_shim-1.dist-info/METADATA"


@pytest.mark.parametrize(
    ("shim", "upstream", "message"),
    [
        ({}, {"pip/__init__.py": b'__version__ = "9.2"\n'}, "no line __version__ = \"9.1\""),
        ({}, {"pip-9.1.dist-info/METADATA": b"Name: pip\n\nText"}, "has no Version"),
        ({"pep_variants_shim/__init__.py": b""}, {}, r"in the wheel of the shim has no watch\(\)"),
        ({INFO: b"Name: pep-variants-shim\n"}, {}, "has no License-Expression"),
        (
            {"pep_variants_shim/module.py": b"import sys\nimport os, pep_variants_shim.a\n"}, {},
            r"pep_variants_shim/module\.py:2: this import",
        ),
    ],
)  # fmt: skip
def test_unexpected(shim, upstream, message):
    with pytest.raises(RepackError, match=message):
        repacked(shim, upstream)


def test_archive(tmp_path, monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    info = "p-1.dist-info"
    files = with_record({"b/x, y.py": b"1", "a.py": b"2", f"{info}/WHEEL": b"3"}, info)
    assert files[f"{info}/RECORD"].decode().splitlines() == [
        "a.py,sha256=1HNeOiZeFu7gP1lxi5tdAwGcB9i2xR-Q2jpmbuwTqzU,1",
        '"b/x, y.py",sha256=a4ayc_80_OGda4BO_1o_V0etpOqiLx1JwB5S3beHW0s,1',
        f"{info}/WHEEL,sha256=TgdAhWK-24tgzgXB3s_jrRa3IjCWfeAfZAt-Rym0n84,1",
        f"{info}/RECORD,,",
    ]
    path = tmp_path / "p-1-py3-none-any.whl"
    write_wheel(path, dict(reversed(files.items())), (2026, 1, 2, 3, 4, 6))
    assert list(read_wheel(path)) == [
        "a.py", "b/x, y.py", "p-1.dist-info/WHEEL", "p-1.dist-info/RECORD"
    ]  # fmt: skip
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    assert release_date(path) == (2026, 1, 2, 3, 4, 6)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert release_date(path) == (1980, 1, 1, 0, 0, 0)
    with zipfile.ZipFile(path) as archive:
        assert {info.external_attr for info in archive.infolist()} == {0o100644 << 16}


def test_other_bytes_are_refused(tmp_path):
    """What is not pip as its developers released it is not built upon."""
    assert set(SHA256) == set(PIPS)
    wheel = tmp_path / "pip.whl"
    wheel.write_bytes(b"another")
    with pytest.raises(UpstreamError, match=r"is not the released wheel of pip 26.3: its sha256"):
        verify(wheel, "26.3")
    with pytest.raises(UpstreamError, match=r"pip 1.0 is not supported; supported are 24.0, "):
        verify(wheel, "1.0")


BUNDLED = {
    "import tomli\n": "from pep_variants_shim._vendor import tomli\n",
    "import tomli as t\n": "from pep_variants_shim._vendor import tomli as t\n",
    "from packaging.tags import Tag\n": (
        "from pep_variants_shim._vendor.packaging.tags import Tag\n"
    ),
    "from resolvelib import Resolver\n": "from pip._vendor.resolvelib import Resolver\n",
    "import archspec.cpu\n": (
        "import pep_variants_shim._vendor.archspec.cpu; "
        "from pep_variants_shim._vendor import archspec\n"
    ),
    "import tomllib\n": "import tomllib\n",
}


@pytest.mark.parametrize(("code", "expected"), BUNDLED.items())
def test_bundled_imports(code, expected):
    assert rewritten(code, "x.py") == expected
    with pytest.raises(ValueError, match=r"x\.py:1: write one import per line"):
        rewritten("import os, tomli\n", "x.py")


@pytest.mark.parametrize("place", EDITS)
def test_library_that_has_changed(place):
    before, after = EDITS[place]
    assert edited(f"a\n{before}b\n", place) == f"a\n{after}b\n"
    with pytest.raises(ValueError, match=place):
        edited("something else\n", place)
    assert edited(before, "elsewhere.py") == before
