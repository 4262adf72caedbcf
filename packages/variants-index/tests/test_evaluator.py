"""The files of a version that a target can use: their order, and why others are rejected."""

import json

import pytest
from packaging.version import Version

from pep_variants._sources import Sources
from variants_index._evaluator import CandidateEvaluator
from variants_index._package_finder import PackageFinder
from variants_index.target import make_target

ONE = Version("1.0")
TARGET = make_target(python_version="3.12", platforms=["manylinux_2_28_x86_64"])


@pytest.fixture
def evaluated(session, tmp_path):
    """Return an evaluator of files of the project demo."""

    def evaluated(*entries):
        folder = tmp_path / "demo"
        folder.mkdir()
        files = [{"url": entry["filename"], **entry} for entry in entries]
        page = {"meta": {"api-version": "1.1"}, "name": "demo", "files": files}
        (folder / "index.v1_json").write_text(json.dumps(page), "utf-8")
        url = tmp_path.as_uri()
        return CandidateEvaluator(PackageFinder(session(url), Sources(index_url=url)), TARGET)

    return evaluated


def test_order(evaluated):
    """By the best tag, then by the build tag; of equal ones as the page has them."""
    fitting = [
        f"demo-1.0-{rest}.whl"
        for rest in (
            "cp312-cp312-manylinux_2_28_x86_64-null",
            "cp312-cp312-manylinux_2_28_x86_64-cu128",
            "10-cp311.cp312-abi3-manylinux_2_17_x86_64-a",
            "2b-cp311.cp312-abi3-manylinux_2_17_x86_64-py3",
            "2a-cp311.cp312-abi3-manylinux_2_17_x86_64",
            "cp311.cp312-abi3-manylinux_2_17_x86_64-x86_64_v3",
            "1-py3-none-any",
            "py3-none-any-1",
        )
    ]
    misnamed = [
        f"demo-1.0-{rest}.whl"
        for rest in ("x-py3-none-any", "py3-none", "py3-none-any-NO", f"py3-none-any-{'long' * 60}")
    ]
    unfit = [
        "demo-1.0-cp312-cp312-win_amd64-cu128.whl",
        "demo-1.0-3py-none-any.whl",
        "demo-1.0-cp310-cp310-manylinux_2_17_x86_64-cu128.whl",
    ]
    old = {"filename": "demo-1.0-py2.py3-none-any-a.whl", "requires-python": "<3.12"}
    names = [fitting[place] for place in (0, 1, 5, 3, 7, 6, 2, 4)]
    evaluator = evaluated(
        old, *({"filename": name} for names in (unfit, names, misnamed) for name in names)
    )
    assert [item.filename for item in evaluator.candidates("demo", ONE)] == fitting
    assert evaluator.rejected["demo", ONE] == {
        "misnamed": 3, "no wheel for manylinux x86_64": 2, "no wheel for Python 3.12": 1,
        "needs Python <3.12": 1,
    }  # fmt: skip


@pytest.mark.parametrize("pinned_first", [False, True])
def test_files_that_are_yanked_count_where_the_version_is_pinned(evaluated, pinned_first):
    evaluator = evaluated(
        {"filename": "demo-1.0-py3-none-any-a.whl", "yanked": True},
        {"filename": "demo-1.0-py3-none-any-b.whl", "yanked": "broken"},
        {"filename": "demo-2.0-py3-none-any-a.whl", "yanked": True},
        {"filename": "demo-2.0-py3-none-any-b.whl"},
        {"filename": "demo-3.0-py3-none-any-a.whl", "yanked": ""},
    )
    for pinned in (pinned_first, not pinned_first) * 2:
        # All of 1.0 are yanked; an empty reason is none.
        for version, labels in (("1.0", ["a", "b"] * pinned), ("2.0", ["b"]), ("3.0", ["a"])):
            found = evaluator.candidates("demo", Version(version), pinned=pinned)
            assert [item.label for item in found] == labels
