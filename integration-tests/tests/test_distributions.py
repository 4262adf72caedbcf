"""Metadata, sdists and reproducible builds of the distributions."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.metadata.spec import get_core_metadata_constructors
from hatchling.plugin.manager import PluginManager
from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.version import Version

import floors
import release
from support.environments import DISTRIBUTIONS, ROOT, uv_command
from support.isolation import outside

SAMPLE = "packages/variants-proxy"
"""The distribution whose sdist is built by ``make test``, too."""
VERSION = (ROOT / "VERSION").read_text("utf-8").strip()
PYTHONS = [f"Programming Language :: Python :: 3.{minor}" for minor in range(10, 14)]


def test_all_are_released():
    assert set(release.distributions(ROOT)) == set(DISTRIBUTIONS)


def metadata_requires(project):
    """Return the dependencies of a distribution, those of its extras included."""
    extras = project.core.optional_dependencies.values()
    return [*project.core.dependencies, *itertools.chain.from_iterable(extras)]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_metadata(distribution):
    """hatchling refuses unknown classifiers, packaging what core metadata does not allow.

    They import modules of each other that are not public: all have to be of one version.
    """
    project = ProjectMetadata(str(ROOT / distribution), PluginManager())
    assert project.version == VERSION
    text = get_core_metadata_constructors()["2.4"](project)
    metadata = Metadata.from_email(text, validate=True)
    assert metadata.author == "The pep-variants maintainers"
    assert metadata.description_content_type == "text/markdown"
    assert str(metadata.requires_python) == ">=3.10"
    assert set(PYTHONS) < set(metadata.classifiers or ())
    for field in ("description", "summary", "keywords", "project_urls", "license_expression"):
        assert getattr(metadata, field), field
    licence = next(path for path in metadata.license_files or () if path.endswith("LICENSE"))
    assert (ROOT / distribution / licence).read_bytes() == (ROOT / "LICENSE").read_bytes()
    own = {ProjectMetadata(str(ROOT / name), PluginManager()).core.name for name in DISTRIBUTIONS}
    for requirement in map(Requirement, metadata_requires(project)):
        if requirement.name in own:
            assert str(requirement.specifier) == f"=={VERSION}", requirement


# Releases that fix known vulnerabilities, for when no service can be asked: see `make audit`.
ADVISORIES = json.loads((ROOT / "integration-tests" / "advisories.json").read_text("utf-8"))


def test_no_release_with_a_known_vulnerability_is_admitted():
    admitted = [*floors.admitted(ROOT)]
    for distribution, project, floor in admitted:
        known = ADVISORIES.get(project)
        if known is not None:
            assert floor is not None, (distribution, project)
            assert floor >= Version(known["fixed"]), (distribution, project, known["ids"])
    assert {project for _, project, _ in admitted} >= {"anyio", "requests", "starlette"}


def test_no_release_with_a_known_vulnerability_is_locked():
    lock = (ROOT / "uv.lock").read_text("utf-8")
    locked = re.findall(r'^name = "([^"]+)"\nversion = "([^"]+)"', lock, re.MULTILINE)
    assert ADVISORIES.keys() <= {name for name, _ in locked}
    for name, version in locked:
        if name in ADVISORIES:
            assert Version(version) >= Version(ADVISORIES[name]["fixed"]), (name, version)


def test_the_uv_of_make_is_that_of_the_lock():
    lock = (ROOT / "uv.lock").read_text("utf-8")
    (package,) = re.findall(r'^name = "uv"\n.*?^\[\[', lock, re.MULTILINE | re.DOTALL)
    version = re.search(r'^version = "(.+)"', package, re.MULTILINE)
    hashes = re.findall(r'\.whl", hash = "([^"]+)"', package)
    given = (ROOT / ".ci" / "uv.txt").read_text("utf-8")
    assert version
    assert f"\nuv=={version[1]} " in given
    assert re.findall(r"--hash=(\S+)", given) == sorted(hashes)


def test_owners_are_of_places_that_exist():
    lines = (ROOT / ".github" / "CODEOWNERS").read_text("utf-8").splitlines()
    places = [line.split()[0] for line in lines if line.startswith("/")]
    assert [place for place in places if not (ROOT / place.strip("/")).exists()] == []


def build(source: Path, target: str, out: Path) -> Path:
    """Build the *target* of the distribution in *source* with this environment's hatchling."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)],
        cwd=source,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"},
        check=True,
        capture_output=True,
    )
    (path,) = (path for path in out.iterdir() if path.suffix in (".whl", ".gz"))
    return path


@pytest.mark.parametrize(
    "distribution",
    [
        pytest.param(name, marks=[pytest.mark.nightly] if name != SAMPLE else [])
        for name in DISTRIBUTIONS
    ],
)
def test_sdist(distribution, tmp_path):
    """It has the tests and what they need, and gives the same wheel as the repository."""
    path = build(ROOT / distribution, "sdist", tmp_path / "sdist")
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path)
    source = tmp_path / path.name.removesuffix(".tar.gz")
    for place in ("PKG-INFO", "conftest.py", "pytest.ini", "support/environments.py", "tests"):
        assert (source / place).exists(), place
    if distribution != "pip-patch":  # needs exact versions of what it bundles, see below
        direct = build(ROOT / distribution, "wheel", tmp_path / "direct")
        unpacked = build(source, "wheel", tmp_path / "unpacked")
        assert direct.name == unpacked.name
        assert direct.read_bytes() == unpacked.read_bytes()


@pytest.mark.nightly  # CI runs `make release`, which does it for all
def test_release_twice(tmp_path):
    """Two builds of the sdist of the pip shim, and of the wheel from it, are equal."""
    git = ["git", "-C", str(ROOT), "-c", "user.name=tests", "-c", "user.email=tests@example.org"]
    tree = subprocess.check_output([*git, "stash", "create"], text=True).strip() or "HEAD"
    (uv,) = uv_command()
    builds = release.build_twice(tree, tmp_path, uv, 1_700_000_000, outside(), ["pip-patch"])
    release.check(*builds)
    names = [line.split()[1].partition("-")[0] for line in release.sums(builds[0]).splitlines()]
    assert names == ["pep_variants_shim", "pep_variants_shim", "pip_variants"]


def test_the_changelog_is_made_of_the_change_notes(tmp_path):
    (tmp_path / "changes").mkdir()
    for name in ("pyproject.toml", "CHANGELOG.md", "changes/README.md"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    before = (tmp_path / "CHANGELOG.md").read_text("utf-8")
    with pytest.raises(
        release.ReleaseError, match=r"^CHANGELOG\.md has no 1\.0: run make changelog"
    ):
        release.check_changelog(tmp_path, "1.0")
    (tmp_path / "changes" / "+fast.bugfix.md").write_text("pip: what was\nslow is fast.\n")
    (tmp_path / "changes" / "42.feature.md").write_text("**New**: an option.\n")
    with pytest.raises(release.ReleaseError, match=r"^changes has \+fast\.bugfix\.md, 42\.feat"):
        release.check_changelog(tmp_path, "1.0")
    release.make_changelog(tmp_path, "1.0")
    release.check_changelog(tmp_path, "1.0")
    after = (tmp_path / "CHANGELOG.md").read_text("utf-8")
    head, marker, rest = before.partition("<!-- towncrier release notes start -->\n")
    assert after.startswith(head + marker)
    assert after.endswith(rest), "what was there stays"
    heading, *entries = (
        line for line in after[len(head + marker) : -len(rest)].split("\n") if line
    )
    assert heading.startswith("## 1.0, 20")
    assert entries == [
        *("### Added", "- **New**: an option. (#42)"),
        *("### Fixed", "- pip: what was", "  slow is fast."),
    ]
    assert [path.name for path in (tmp_path / "changes").iterdir()] == ["README.md"]
    (tmp_path / "changes" / "new.md").touch()
    with pytest.raises(subprocess.CalledProcessError):
        release.make_changelog(tmp_path, "1.1")


def test_differences_are_errors():
    with pytest.raises(release.ReleaseError, match=r"differ: a, c$"):
        release.check({"a": b"1", "b": b"2"}, {"a": b"2", "b": b"2", "c": b""})
