"""The selector's answers: each is what `variants resolve` says on an index that has the record."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from click.testing import CliRunner

from support.environments import ROOT
from support.index import Index
from support.published_builds import Builds, Field, page_path, standing_in
from variants_cli.main import cli

sys.path.insert(0, str(ROOT / "docs" / "_ext"))

from selector import answers as selector_answers
from selector import machines as selector_machines
from selector import record as selector_record
from selector.session import every_page, filenames, metadata, sdist

PUBLIC = f"{selector_record.PUBLIC}/"
FAMILY = "torch+torchvision+torchaudio"
SYSTEMS = {system.id: system for system in selector_machines.SYSTEMS}
EVERY = [id_ for ids in selector_answers.GROUPS.values() for id_ in ids]

NOTHING = "no version fits"

RECORD = selector_record.read_record()


@pytest.fixture(scope="module")
def answers() -> Iterator[selector_answers.Answers]:
    found = selector_answers.Answers(RECORD)
    yield found
    found.close()


@dataclass
class Served:
    """The record as indexes, and the clients of these."""

    field: Field

    def resolve(
        self, question: selector_answers.Question, facts: list[str]
    ) -> list[dict[str, tuple[str, str | None]]]:
        """Version and label by project for each of several machines; nothing if nothing fits."""
        machines = [f"--platform={each}" for each in facts]
        command = ["resolve", *question.names, *machines, "--json", "--variant-catalog=default"]
        command += [f"--index-url={self.field.index.url}", *self.field.options]
        command += [f"--python-version={question.python}"]
        command += [f"--python-platform={question.system.tag}"]
        done = CliRunner().invoke(cli, command, env={"VARIANTS_CACHE_DIR": ""})
        if done.exit_code and len(facts) > 1:  # one of them may have nothing that fits
            return [self.resolve(question, [each])[0] for each in facts]
        if done.exit_code:
            assert NOTHING in done.stderr, done.stderr
            return [{}]
        return [
            {item["name"]: (item["version"], item["label"]) for item in found["packages"]}
            for found in json.loads(done.stdout)["resolutions"]
        ]


@pytest.fixture(scope="module")
def record() -> Iterator[Served]:
    found = Field(Index(), Builds())
    for url, releases in every_page(RECORD)[0].items():
        is_public = url.startswith(PUBLIC)
        index = found.index if is_public else found.builds
        project = url.rstrip("/").rpartition("/")[2]
        if url.endswith(".html"):
            project = next(iter(_projects_of(url)))
        for version, release in releases.items():
            more = {"requires-python": release.python} if release.python else {}
            more |= {"yanked": "record"} if release.yanked else {}
            for name in filenames(project, version, release):
                page = project if is_public else page_path(url)
                data = b"" if name.endswith(".whl") else sdist(project, version)
                index.add(page, name, data, **more)
                if name.endswith(".whl"):
                    index.metadata_files[name] = metadata(project, version, release)
    with standing_in(found):
        found.files.metadata_files = found.builds.metadata_files
        yield Served(found)


def _projects_of(url: str) -> Iterator[str]:
    for name in selector_answers.shipped_catalog().names():
        entry = selector_answers.entry_of(name)
        if entry is not None and url in entry.places:
            yield name


def asked(project: str, system: str, python: str, key: str) -> selector_answers.Question:
    machine = next(
        each for each in selector_machines.machines_of(SYSTEMS[system]) if each.key == key
    )
    return selector_answers.Question(project, SYSTEMS[system], python, machine)


def chosen(answer: dict) -> dict[str, tuple[str, str]]:
    return {
        item["project"]: (item["release"], item["build"])
        for item in answer.get("chosen", ())
        if item["asked"]
    }


def said(answer: dict, resolved: dict[str, tuple[str, str | None]]) -> dict[str, tuple[str, str]]:
    return {
        name: (version.partition("+")[0], "" if label in (None, "null") else label)
        for name, (version, label) in resolved.items()
        if name in chosen(answer)
    }


# Project, system, Python, facts of the GPU with the driver: what is chosen of the first project.
PEOPLE = [
    (FAMILY, "linux", "3.12", "sm=12.0/595", "cuda13.2"),
    (FAMILY, "linux", "3.12", "sm=7.0/580", "cuda12.6"),
    (FAMILY, "linux", "3.12", "gfx=gfx1103/", "rocm10.0_gfx1103"),
    (FAMILY, "linux", "3.12", "cpu=x86-64-v3/", ""),
    (FAMILY, "windows", "3.13", "gfx=gfx1103/", "rocm10.0_gfx1103"),
    (FAMILY, "windows", "3.13", "sm=6.1/580", "cuda12.6"),
    (FAMILY, "macos", "3.12", "cpu=m1/", ""),
    ("jax", "linux", "3.12", "sm=8.9/580", "cuda13"),
    ("jax", "linux", "3.12", "sm=8.9/570", "cuda12"),
    ("onnxruntime", "linux", "3.12", "sm=7.0/580", "cuda12"),
    ("vllm", "linux", "3.12", "sm=9.0/580", "cuda13.0"),
]


@pytest.mark.parametrize("python", ["3.12", "3.13"])
def test_the_people_of_the_page_get_the_build_that_they_need(answers, record, python):
    for project in dict.fromkeys(project for project, *_ in PEOPLE):
        for system in SYSTEMS:
            rows = [row for row in PEOPLE if (project, system, python) == (*row[:2], row[2])]
            if not rows:
                continue
            questions = [asked(*row[:4]) for row in rows]
            resolved = record.resolve(questions[0], [each.machine.facts for each in questions])
            for row, question, found in zip(rows, questions, resolved, strict=True):
                answer = answers.answer(question)
                assert chosen(answer) == said(answer, found), row
                assert answer["chosen"][0]["build"] == row[4], row


@pytest.mark.nightly
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("project", EVERY)
def test_every_answer_is_what_resolve_says(answers, record, project, system):
    for python in selector_record.PYTHONS:
        by_facts: dict[str, list[selector_answers.Question]] = {}
        for machine in selector_machines.machines_of(SYSTEMS[system]):
            question = asked(project, system, python, machine.key)
            by_facts.setdefault(machine.facts, []).append(question)
        first = next(iter(by_facts.values()))[0]
        if any(map(answers.is_unknown, first.names)):
            return
        for found, questions in zip(
            record.resolve(first, list(by_facts)), by_facts.values(), strict=True
        ):
            for question in questions:
                answer = answers.answer(question)
                assert bool(found) == bool(chosen(answer)), question
                assert chosen(answer) == said(answer, found), question


def test_what_people_are_told(answers):
    answer = answers.answer(asked(FAMILY, "linux", "3.12", "sm=7.0/580"))
    assert answer["title"].endswith("for CUDA 12.6")
    assert answer["without"]["pip"].endswith("--index-url https://download.pytorch.org/whl/cu126")
    assert "built for compute capability 7.5" in answer["not_newer"]
    assert "compute capability 7.0" in answer["why"]
    assert answer["supposed"]
    assert answer["check"] == 'python -c "import torch; print(torch.cuda.is_available())"'
    none = answers.answer(asked("jax", "windows", "3.12", "sm=8.9/580"))
    assert "does not use your GPU" in none["warning"]
    unread = answers.answer(asked("flash-attn", "linux", "3.12", "sm=8.9/580"))
    assert unread["ask"]
    assert "chosen" not in unread


def test_projects_of_the_page_are_those_of_the_catalogue():
    known = {name for id_ in EVERY for name in selector_answers.FAMILIES.get(id_, (id_,))}
    left_out = {"triton", "triton-rocm", "triton-xpu", "pytorch-triton-rocm"}
    assert known | left_out | {"pytorch-triton-xpu", "vllm-ascend"} == {*selector_record.projects()}


def test_a_record_is_written_as_it_is_read(tmp_path):
    selector_record.write_record(RECORD, tmp_path / "record.json")
    assert selector_record.read_record(tmp_path / "record.json") == RECORD
