"""flash-attn's and vLLM's releases, in two batches, by two publishers at once, killed and resumed.

After each kill every machine gets the version before, or what it gets in the end: never a fallback
of half a release. No variant is lost.
"""

import functools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from pep_variants._wheelfile.core_metadata import requirements_of
from pep_variants.labels import split_label
from support.environments import clean_environ
from support.field_releases import AARCH64, FLASH_ATTN, VLLM, X86_64, FieldRelease, dependencies
from support.json_outputs import check_output
from support.loopback import served_folder
from support.object_storage import object_storage
from support.upload_server import STORED, upload_index
from support.wheels import Wheel
from variants_cli._indexing.wheelhouse import read_core_metadata, read_distribution
from variants_cli.main import cli
from variants_index.pages import read_page

LINUX, ARM = "linux-x86_64", "linux-aarch64"
# Ends the process just before a rename: what replaces a file, in a directory.
PROGRAM = """
import itertools, os, signal, sys
kill_at, renames = int(os.environ.pop("KILL_AT_RENAME", 0)), itertools.count(1)
def count(event, arguments):
    if event == "os.rename" and next(renames) == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(count)
from variants_cli.main import main
main()
"""
TORCH = [Wheel("torch", version) for version in ("2.8.0", "2.9.1", "2.14.0", "2.14.0+cpu")]


class Machine(NamedTuple):
    """A known machine, what ``--python-platform`` is to be, and what is installed beside."""

    platform: str
    system: str
    requires: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """A release, what was there before, and what each machine gets in the end."""

    release: FieldRelease
    before: str
    machines: dict[Machine, str | None]

    def outcome(self, machine):
        label = self.machines[machine]
        return (self.before, None) if label is None else (self.release.version, label)


CASES = {
    "flash-attn": Case(
        FLASH_ATTN,
        "2.8.2",
        {
            Machine("h100-zen4", LINUX, ("torch==2.9.*",)): "cu12_torch2.9",
            Machine("h100-zen4", LINUX, ("torch==2.8.*",)): "cu12_torch2.8",
            Machine("h100-sapphirerapids", LINUX, ("torch==2.9.*",)): "cu13_torch2.9",
            Machine("mi300x-rocm6.4", LINUX, ("torch==2.9.*",)): "rocm6.4_torch2.9",
            Machine("cpu-zen4", LINUX): None,
            Machine("gh200-grace", ARM, ("torch==2.9.*",)): "cu13_torch2.9",
            Machine("gh200-grace", ARM, ("torch==2.8.*",)): "cu13_torch2.8",
        },
    ),
    "vllm": Case(
        VLLM,
        "0.32.0",
        {
            Machine("h100-zen4", LINUX): "cuda12.9",
            Machine("h100-sapphirerapids", LINUX): "cuda13.0",
            Machine("mi300x-rocm7.0", LINUX): "rocm7.0",
            Machine("cpu-zen4", LINUX): "null",
            Machine("gh200-grace", ARM): "cuda13.0",
            Machine("cpu-grace", ARM): "null",
        },
    ),
}


class Place(NamedTuple):
    """An index that is published to.

    Attributes:
        options: of ``variants publish``.
        index: URL of its pages.
        environ: variables of the publishers.
        kills: which request, or else which rename, is the last one of each run.
        on_request: sets what is called at each request to it; None where there are none.
    """

    options: tuple[str, ...]
    index: str
    environ: dict[str, str]
    kills: tuple[int, ...]
    on_request: Callable[[Callable[..., None]], None] | None = None


@contextmanager
def upload_api(_folder):
    with upload_index() as server:
        on_request = functools.partial(setattr, server, "hook")
        # Two of the requests check the credentials, so every kill is reached in any order.
        options = ("--repository-url", server.url)
        yield Place(options, server.simple, {}, (2, 11, 9, 7, 5), on_request)


@contextmanager
def directory(folder):
    with served_folder(folder) as url:
        yield Place(("--to", str(folder)), f"{url}simple/", {}, (2, 3, 5, 4, 3))


@contextmanager
def bucket(_folder):
    with object_storage("wheels") as server:
        on_request = functools.partial(setattr, server, "faults")
        pages = f"{server.url}/wheels/simple/"
        yield Place(("--to", "s3://wheels"), pages, server.environ(), (2, 7, 9, 6, 11), on_request)


PLACES = {"upload API": upload_api, "directory": directory, "S3": bucket}


class Publishers:
    """Processes that publish, which can all be killed from any thread."""

    def __init__(self, place):
        self.place, self.running, self.lock = place, [], threading.Lock()

    def run(self, *folders, kill_at=0):
        """Publish all *folders* at once, killed at that request or rename; return exit codes."""
        environ, requests = dict(self.place.environ), count(1)
        if self.place.on_request is None:
            environ["KILL_AT_RENAME"] = str(kill_at)
        elif kill_at:
            self.place.on_request(lambda *_: self.kill() if next(requests) == kill_at else None)
        with self.lock:
            self.running = [
                subprocess.Popen(
                    [sys.executable, "-c", PROGRAM, "publish", folder, *self.place.options],
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    text=True, env=clean_environ(environ),
                )
                for folder in folders
            ]  # fmt: skip
        outputs = [process.communicate(timeout=120)[0] for process in self.running]
        codes = [process.returncode for process in self.running]
        for code, output in zip(codes, outputs, strict=True):
            assert code in (0, -signal.SIGKILL), output
        return codes

    def kill(self):
        with self.lock:
            for process in self.running:
                if process.poll() is None:
                    os.kill(process.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def batches(tmp_path_factory):
    """Return what makes the directories of a release, and one with what the release needs."""

    @functools.cache
    def make(name):
        case = CASES[name]
        folder = tmp_path_factory.mktemp(name)
        dists = [case.release.make(machine, folder) for machine in (X86_64, AARCH64)]
        requires = {
            text.partition(";")[0]
            for path in (path for dist in dists for path in dist.glob("*.whl"))
            for text in requirements_of(read_core_metadata(read_distribution(path)))
        }
        links, old = folder / "links", folder / "old"
        for place, wheels in (
            (links, [*dependencies(sorted(requires)), *TORCH]),
            (old, [Wheel(name, case.before)]),
        ):
            place.mkdir()
            for wheel in wheels:
                (place / wheel.filename).write_bytes(wheel.build())
        return old, dists, links

    return make


def chosen(project, machine, index, links):
    """Return version and label of what *machine* gets of *project*."""
    arguments = [
        "resolve", project, *machine.requires, "--json", "--no-cache", "-i", index,
        "-f", str(links), "--index-strategy", "unsafe-best-match", "--target", machine.platform,
        "--python-version", "3.12", "--python-platform", machine.system,
    ]  # fmt: skip
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    check_output(arguments, done.stdout)
    (resolution,) = json.loads(done.stdout)["resolutions"]
    (package,) = (item for item in resolution["packages"] if item["name"] == project)
    return package["version"], package["label"]


def labels_of(index, name, version):
    """The labels that the index knows of a version."""
    wanted = f"{name.replace('-', '_')}-{version}-variants.json"
    with urlopen(f"{index}{name}/") as answer:
        page = read_page(answer.read(), "text/html", f"{index}{name}/", name)
    urls = [file.url for file in page.files if file.filename == wanted]
    with urlopen(urls[0]) if urls else nullcontext() as answer:
        return set(json.load(answer)["variants"]) if urls else set()


def pytest_generate_tests(metafunc):
    """Publish each release to each place in ``make test-matrix``; else each to another one.

    `variants-cli`'s own tests kill a publisher to a directory before every write.
    """
    full = metafunc.config.getoption("full_matrix")
    if metafunc.function is test_killed_five_times:
        pairs = [("flash-attn", "upload API"), ("vllm", "S3")]
        if full:
            pairs = [(name, kind) for name in CASES for kind in PLACES]
        metafunc.parametrize(("name", "kind"), pairs, ids=["-".join(pair) for pair in pairs])
    if metafunc.function is test_no_half_release:
        metafunc.parametrize("name", CASES if full else ["vllm"])


@pytest.mark.one
def test_killed_five_times(tmp_path, batches, patched, name, kind):
    """Six runs of two publishers, each with a resolution for every machine: ten seconds."""
    case = CASES[name]
    old, dists, links = batches(name)
    (tmp_path / "place").mkdir()
    with PLACES[kind](tmp_path / "place") as place:
        publishers = Publishers(place)
        assert publishers.run(old) == [0]
        known: set[str] = set()
        done: set[Machine] = set()
        kills = 0
        for number in (*place.kills, 0):
            codes = publishers.run(*dists, kill_at=number)
            kills += any(codes)
            labels = labels_of(place.index, name, case.release.version)
            assert labels >= known, number
            known = labels
            for machine in case.machines:
                got = chosen(name, machine, place.index, links)
                allowed = {case.outcome(machine)}
                if machine not in done:
                    allowed.add((case.before, None))
                assert got in allowed, (number, machine)
                if got == case.outcome(machine):
                    done.add(machine)
        assert kills == 5
        assert codes == [0, 0]
        assert done == set(case.machines)
        assert known == {label for label in case.machines.values() if label}
        # pip with the shim downloads the same.
        machine, label = next(iter(case.machines.items()))
        got = patched.pip(
            "download", "-d", str(tmp_path / "wheels"), "-i", place.index, "-f", str(links),
            "--only-binary=:all:", "--platform", "manylinux_2_28_x86_64",
            "--python-version", "3.12", "--variant-platform", machine.platform,
            *(() if machine.requires else ("--no-deps",)), name, *machine.requires,
        )  # fmt: skip
        wheels = {split_label(path.name)[1] for path in (tmp_path / "wheels").glob("*.whl")}
        assert label in wheels, got


def test_no_half_release(batches, name):
    """After each upload, to an index that shows it at once and has all metadata first."""
    case = CASES[name]
    old, dists, links = batches(name)
    seen = {machine: [(case.before, None)] for machine in case.machines}
    with upload_index() as server:
        publishers = Publishers(Place(("--repository-url", server.url), server.simple, {}, ()))

        def look(stage, filename):
            if stage == STORED and filename.endswith(".whl"):
                for machine, outcomes in seen.items():
                    got = chosen(name, machine, server.simple, links)
                    if got != outcomes[-1]:
                        outcomes.append(got)

        publishers.run(old)
        server.hook = look
        for dist in dists:
            publishers.run(dist)
    for machine, outcomes in seen.items():
        final = case.outcome(machine)
        assert outcomes in ([final], [(case.before, None), final]), machine
