"""The files of a version that a target can use, against judging each of them by itself."""

import json
import random

import pytest
from packaging.version import Version

from pep_variants.errors import InvalidWheelFilename
from pep_variants.model.filename import parse_filename
from pep_variants.sources import Sources
from variants_index.evaluator import CandidateEvaluator
from variants_index.http.session import Session
from variants_index.package_finder import PackageFinder
from variants_index.target import make_target

ONE = Version("1.0")
TARGET = make_target(python_version="3.12", platforms=["manylinux_2_28_x86_64"])
BUILDS = ["", "", "-1", "-2a", "-x"]
TAGS = [
    "py3-none-any", "cp312-cp312-manylinux_2_28_x86_64", "cp311.cp312-abi3-manylinux_2_17_x86_64",
    "cp312-cp312-win_amd64", "3py-none-any", "py3-none",
]  # fmt: skip
LABELS = ["", "-null", "-cu128", "-x86_64_v3", "-NO", "-1", "-py3", f"-{'long' * 60}"]


@pytest.fixture
def evaluated(tmp_path):
    """Return what gives an evaluator of files of the project demo, and closes its session."""
    sessions = []

    def evaluator(entries):
        folder = tmp_path / "demo"
        folder.mkdir(exist_ok=True)
        files = [{"url": entry["filename"], **entry} for entry in entries]
        page = {"meta": {"api-version": "1.1"}, "name": "demo", "files": files}
        (folder / "index.v1_json").write_text(json.dumps(page), "utf-8")
        sources = Sources(index_url=tmp_path.as_uri())
        sessions.append(Session(sources, environ={}))
        return CandidateEvaluator(PackageFinder(sessions[-1], sources), TARGET)

    yield evaluator
    for session in sessions:
        session.close()


def one_by_one(names):
    """Return which of *names* fit, the best first, and how many are misnamed or do not fit."""
    judged, misnamed, unfit = [], 0, 0
    for name in names:
        try:
            wheel = parse_filename(name)
        except InvalidWheelFilename:
            misnamed += 1
            continue
        places = [TARGET.places[tag] for tag in wheel.tags if tag in TARGET.places]
        if places:
            judged.append((min(places), wheel.build or (-1, ""), name))
        else:
            unfit += 1
    judged.sort(key=lambda item: item[1], reverse=True)
    judged.sort(key=lambda item: item[0])
    return [name for *_, name in judged], misnamed, unfit


@pytest.mark.parametrize("seed", range(6))
def test_as_if_each_file_were_judged_by_itself(evaluated, seed):
    chance = random.Random(seed)
    names = list(
        {
            f"{chance.choice(['demo', 'Demo'])}-1.0{chance.choice(BUILDS)}"
            f"-{chance.choice(TAGS)}{chance.choice(LABELS)}.whl": None
            for _ in range(chance.randrange(1, 60))
        }
    )
    evaluator = evaluated([{"filename": name} for name in names])
    listed = [item.filename for item in evaluator.project("demo").versions.get(ONE, ())]
    fitting, misnamed, unfit = one_by_one(listed)
    assert [item.filename for item in evaluator.candidates("demo", ONE)] == fitting
    counts = evaluator.rejected["demo", ONE]
    assert (counts["misnamed"], counts[f"not for {TARGET.name}"]) == (misnamed, unfit)


@pytest.mark.parametrize("pinned_first", [False, True])
def test_files_that_are_yanked_count_where_the_version_is_pinned(evaluated, pinned_first):
    evaluator = evaluated(
        [
            {"filename": "demo-1.0-py3-none-any-a.whl", "yanked": True},
            {"filename": "demo-1.0-py3-none-any-b.whl", "yanked": ""},
            {"filename": "demo-2.0-py3-none-any-a.whl", "yanked": True},
            {"filename": "demo-2.0-py3-none-any-b.whl"},
            {"filename": "demo-3.0-py3-none-any-a.whl"},
        ]
    )
    order = (pinned_first, not pinned_first) * 2

    def labels(version, *, pinned):
        found = evaluator.candidates("demo", Version(version), pinned=pinned)
        return [item.label for item in found]

    for pinned in order:
        # All of them are yanked; an empty reason is a reason.
        assert labels("1.0", pinned=pinned) == (["a", "b"] if pinned else [])
        assert labels("2.0", pinned=pinned) == ["b"]
        assert labels("3.0", pinned=pinned) == ["a"]
