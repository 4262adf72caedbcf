"""What is bundled: pinned, checked, listed, licensed."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import hatch_build
from hatch_build import LIBRARIES, check, check_licenses, installed_files, sbom

PROJECT = Path(hatch_build.__file__).parent
PYPROJECT = hatch_build.tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))


def test_what_is_bundled_is_pinned_and_licensed():
    pins = dict(item.split("==") for item in PYPROJECT["build-system"]["requires"])
    assert pins.pop("hatchling")
    assert pins == {project: item["version"] for project, item in LIBRARIES.items()}
    parts = {
        part.strip("()") for part in re.split(r" AND (?![^(]*\))", PYPROJECT["project"]["license"])
    }
    assert parts == {"Apache-2.0", *(item["license"] for item in LIBRARIES.values())}
    folders = {path.name for path in (PROJECT / "licenses").iterdir() if path.is_dir()}
    assert folders == set(LIBRARIES)


@pytest.fixture
def library(monkeypatch):
    """A library of this environment as vendor.toml would have it, and its files."""
    files = {place: path.read_bytes() for place, path in installed_files("packaging", "packaging")}
    assert "packaging/version.py" in files
    assert not any(place.endswith(".pyc") for place in files)
    monkeypatch.setitem(LIBRARIES, "packaging", {**LIBRARIES["packaging"], "files": "unknown"})
    with pytest.raises(ValueError, match=r"packaging .* is not what vendor.toml says") as caught:
        check("packaging", files)
    (digest,) = re.findall("sha256 ([0-9a-f]{64})", str(caught.value))
    LIBRARIES["packaging"]["files"] = digest
    return files


def test_files_are_checked(library, tmp_path):
    check("packaging", dict(reversed(library.items())))
    for changed in (
        {**library, "packaging/version.py": library["packaging/version.py"] + b"#"},
        {**library, "packaging/more.py": b""},
        {place: data for place, data in library.items() if place != "packaging/tags.py"},
    ):
        with pytest.raises(ValueError, match="review the files"):
            check("packaging", changed)
    with pytest.raises(ValueError, match=r"of packaging .*: copy it"):
        check_licenses("packaging", tmp_path)


def test_sbom():
    found = json.loads(json.dumps(sbom("1.2")))
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.6")
    assert found["metadata"]["component"]["purl"] == "pkg:pypi/pep-variants-shim@1.2"
    parts = {part["bom-ref"]: part for part in found["components"]}
    assert {f"pkg:pypi/{name}@1.2" for name in hatch_build.OWN} < parts.keys()
    assert found["dependencies"][0]["dependsOn"] == list(parts)
    for project, item in LIBRARIES.items():
        part = parts[f"pkg:pypi/{project}@{item['version']}"]
        assert part["licenses"] == [{"expression": item["license"]}]
        assert part["hashes"] == [{"alg": "SHA-256", "content": item["wheel"]}]
