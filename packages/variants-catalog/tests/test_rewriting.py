"""A published wheel as it is installed: under the project's name, with the entry's dependencies."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import zipfile

import pytest

from pep_variants._formats.reader import read_metadata
from pep_variants._wheelfile.wheel import open_wheel
from pep_variants.errors import CatalogError, InvalidWheel
from pep_variants.labels import ORIGIN_FILE
from support.catalog_places import entry, variant
from support.wheels import Wheel
from variants_catalog._entry_reader import read_entry
from variants_catalog._installed_builds import (
    added_files,
    installed_metadata,
    read_origin,
    rewritten,
)

URL = "https://user:secret@example.org/my_app_cu12-1.5-py3-none-any.whl"


def described(requires: str):
    table = variant("a", f"requires = {json.dumps([requires, 'more'])}", cuda="12.0")
    return read_entry(entry("my-app", [table]), "app.toml")


def rewrite(project, wheel: Wheel, file=None, url=URL) -> bytes:
    data = wheel.build()
    (file,) = project.renamed_files(wheel.filename) if file is None else (file,)
    stream, target = io.BytesIO(data), io.BytesIO()
    hashes = {"sha256": hashlib.sha256(data).hexdigest()}
    with open_wheel(stream, "x", filename=wheel.filename) as contents:
        found = rewritten(contents, stream, project, file, added_files(project, file, url, hashes))
        found.write(stream, target)
    assert len(target.getvalue()) == found.size
    return target.getvalue()


def check_record(archive: zipfile.ZipFile) -> None:
    """Check that RECORD lists every file with its digest, and nothing else."""
    (record,) = (name for name in archive.namelist() if name.endswith("/RECORD"))
    rows = list(csv.reader(io.StringIO(archive.read(record).decode())))
    assert sorted(path for path, _, _ in rows) == sorted(archive.namelist())
    for path, digest, size in rows:
        data = archive.read(path)
        expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        assert path == record or (digest, size) == (f"sha256={expected}", str(len(data)))


def test_a_build_of_another_name():
    project = described("my-app-cu12[cuda]=={version}")
    wheel = Wheel(
        "my-app-cu12",
        "1.5",
        requires=("libcuda; extra == 'cuda'", "My_App.cu12[x] ; extra == 'all'", "numpy"),
        extras=("cuda", "all"),
        files={"my_app/core.py": "1", "my_app_cu12-1.5.data/scripts/app": "2"},
    )
    data = rewrite(project, wheel)
    archive = zipfile.ZipFile(io.BytesIO(data))
    assert archive.testzip() is None
    check_record(archive)
    assert {name.partition("/")[0] for name in archive.namelist()} == {
        "my_app", "my_app_cu12", "my_app-1.5.dist-info", "my_app-1.5.data",
    }  # fmt: skip
    assert archive.read("my_app_cu12/__init__.py") == b"LABEL = None\n"  # a module, not the name
    lines = archive.read("my_app-1.5.dist-info/METADATA").decode().splitlines()
    assert lines == [
        "Metadata-Version: 2.1",
        "Name: my-app",
        "Version: 1.5",
        "Provides-Extra: cuda",
        "Provides-Extra: all",
        "Requires-Dist: libcuda; extra == 'cuda'",
        "Requires-Dist: numpy",
        "Requires-Dist: my-app[x] ; extra == 'all'",
        "Requires-Dist: more",
        "Requires-Dist: libcuda",
    ]
    metadata = read_metadata(archive.read("my_app-1.5.dist-info/variant.json"), "x")
    properties = {"cuda_version_lower_bound": ("12.0",)}
    assert metadata.variants == {"a": {"nvidia": properties, "priority": {"order": ("1",)}}}
    origin = read_origin(archive.read(f"my_app-1.5.dist-info/{ORIGIN_FILE}"), "x")
    assert origin.requirement == "my-app-cu12==1.5"
    assert origin.url == "https://example.org/my_app_cu12-1.5-py3-none-any.whl"
    assert origin.hashes == {"sha256": hashlib.sha256(wheel.build()).hexdigest()}
    assert data == rewrite(project, wheel)


def test_an_extra_of_the_project_itself():
    project = described("{name}[cuda]=={version}")
    wheel = Wheel("my-app", "1.5", requires=("libcuda; extra == 'cuda'",), extras=("cuda",))
    (file,) = project.own_files(wheel.filename)
    archive = zipfile.ZipFile(io.BytesIO(rewrite(project, wheel, file)))
    check_record(archive)
    assert b"Requires-Dist: libcuda\n" in archive.read("my_app-1.5.dist-info/METADATA")
    assert "my_app-1.5.dist-info/variant.json" in archive.namelist()
    assert f"my_app-1.5.dist-info/{ORIGIN_FILE}" not in archive.namelist()


def test_metadata_beside_the_wheel():
    project = described("my-app-cu12=={version}")
    wheel = Wheel("my-app-cu12", "1.5")
    (file,) = project.renamed_files(wheel.filename)
    archive = zipfile.ZipFile(io.BytesIO(rewrite(project, wheel)))
    inside = archive.read("my_app-1.5.dist-info/METADATA")
    assert installed_metadata(wheel.metadata(), project, file) == inside
    with pytest.raises(InvalidWheel, match="METADATA is of 'other'"):
        installed_metadata(b"Metadata-Version: 2.1\nName: other\nVersion: 1.5\n", project, file)


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"my_app_cu12-1.5.dist-info/variant.json": "{}"}, "has .*variant.json already"),
        ({f"my_app_cu12-1.5.dist-info/{ORIGIN_FILE}": "{}"}, "has .*variant_origin.json already"),
        ({"my_app-1.5.dist-info/METADATA": ""}, "dist-info"),
        ({"my_app-1.5.data/data/x": "", "my_app_cu12-1.5.data/data/x": ""}, "already"),
    ],
)
def test_hostile_wheels(files, problem):
    with pytest.raises(InvalidWheel, match=problem):
        rewrite(described("my-app-cu12=={version}"), Wheel("my-app-cu12", "1.5", files=files))


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"name": "A b", "version": "1", "url": "", "hashes": {}}',
     '{"name": "a", "version": "x", "url": "", "hashes": {}}',
     '{"name": "a", "version": "1", "url": "", "hashes": []}', "[" * 5000],
)  # fmt: skip
def test_no_record_of_origin(text):
    with pytest.raises(CatalogError, match="x: is not a record of origin"):
        read_origin(text, "x")
