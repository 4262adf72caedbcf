"""flash-attn's and vLLM's releases, in two batches, by two publishers at once, killed and resumed.

After each kill every machine gets the version before, or what it gets in the end: never a fallback
of half a release. No variant is lost.
"""

import functools
import zipfile
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path
from urllib.request import urlopen

import pytest

from pep_variants.formats.reader import read_metadata
from pep_variants.model.label import split_label
from support.field_releases import AARCH64, FLASH_ATTN, VLLM, X86_64, FieldRelease, dependencies
from support.loopback import served_folder
from support.object_storage import object_storage
from support.publishers import Machine, Publishers, chosen
from support.upload_server import STORED, upload_index
from support.wheels import Wheel
from variants_index.pages import read_page

LINUX, ARM = "linux-x86_64", "linux-aarch64"
TORCH = [Wheel("torch", version) for version in ("2.8.0", "2.9.1", "2.14.0", "2.14.0+cpu")]


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


@dataclass
class Place:
    """An index that is published to.

    Attributes:
        options: of ``variants publish``.
        index: URL of its pages.
        environ: variables of the publishers.
        on_request: sets what is called at each request to it; None where there are none.
        kills: which request, or else which rename, is the last one of each run.
    """

    options: tuple[str, ...]
    index: str
    environ: dict[str, str]
    on_request: Callable[[Callable[[], None]], None] | None = None
    kills: tuple[int, ...] = (2, 7, 9, 6, 11)


@contextmanager
def upload_api(folder):
    with upload_index(folder) as server:

        def set_hook(call):
            server.hook = lambda _stage, _filename: call()

        options = ("--repository-url", server.url)
        # Two of the requests check the credentials, so every kill is reached in any order.
        yield Place(options, server.simple, {}, set_hook, kills=(2, 11, 9, 7, 5))


@contextmanager
def directory(folder):
    with served_folder(folder) as url:
        yield Place(("--to", str(folder)), f"{url}simple/", {}, kills=(2, 3, 5, 4, 3))


@contextmanager
def bucket(_folder):
    with object_storage("wheels") as server:

        def set_hook(call):
            def faults(_method, _path, _number):
                call()

            server.faults = faults

        yield Place(
            ("--to", "s3://wheels"), f"{server.url}/wheels/simple/", server.environ(), set_hook
        )


PLACES = {"upload API": upload_api, "directory": directory, "S3": bucket}


@pytest.fixture(scope="session")
def batches(tmp_path_factory):
    """Return what makes the dist folders of a release, a folder with its dependencies."""

    @functools.cache
    def make(name):
        case = CASES[name]
        folder = tmp_path_factory.mktemp(name)
        dists = [case.release.make(machine, folder) for machine in (X86_64, AARCH64)]
        links = folder / "links"
        links.mkdir()
        requires = {
            requirement
            for dist in dists
            for path in dist.glob("*.whl")
            for requirement in requirements_of(path)
        }
        for wheel in (*dependencies(sorted(requires)), *TORCH):
            (links / wheel.filename).write_bytes(wheel.build())
        old = folder / "old"
        old.mkdir()
        wheel = Wheel(name, case.before)
        (old / wheel.filename).write_bytes(wheel.build())
        return [old, *dists], links

    return make


def requirements_of(path: Path) -> list[str]:
    """The dependencies of a wheel, without markers."""
    with zipfile.ZipFile(path) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        headers = Parser().parsestr(archive.read(name).decode())
    return [text.partition(";")[0] for text in headers.get_all("Requires-Dist") or ()]


def pip_gets_the_same(environment, case, machine, index, links, folder):
    """pip with the shim downloads the variant of *machine*."""
    tag = f"manylinux_2_28_{machine.system.partition('-')[2]}"
    done = environment.pip(
        "download", "-d", str(folder), "-i", index, "-f", str(links), "--only-binary=:all:",
        "--platform", tag, "--python-version", "3.12", "--variant-platform", machine.platform,
        *(() if machine.requires else ("--no-deps",)), case.release.name, *machine.requires,
    )  # fmt: skip
    wheels = {split_label(path.name)[1] for path in folder.glob("*.whl")}
    assert case.machines[machine] in wheels, (machine, done)


def labels_of(index, name, version):
    """The labels that the index knows of a version."""
    with urlopen(f"{index}{name}/") as answer:
        page = answer.read().decode()
    wanted = f"{name.replace('-', '_')}-{version}-variants.json"
    found = read_page(page.encode(), "text/html", f"{index}{name}/", name)
    for file in found.files:
        if file.filename == wanted:
            with urlopen(file.url) as answer:
                return set(read_metadata(answer.read(), wanted).variants)
    return set()


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
    case = CASES[name]
    (old, *dists), links = batches(name)
    (tmp_path / "place").mkdir()
    with PLACES[kind](tmp_path / "place") as place:
        publishers = Publishers(place.environ)
        assert publishers.run([("publish", old, *place.options)]) == [0]
        commands = [("publish", dist, *place.options) for dist in dists]
        known: set[str] = set()
        done: set[Machine] = set()
        kills = 0
        for number in (*place.kills, 0):
            variables = {}
            if place.on_request is None:
                variables["KILL_AT_RENAME"] = str(number)
            else:
                place.on_request(counted(number, publishers.kill))
            codes = publishers.run(commands, **variables)
            kills += any(codes)
            if place.on_request is not None:
                place.on_request(lambda: None)
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
        machine = next(iter(case.machines))
        pip_gets_the_same(patched, case, machine, place.index, links, tmp_path / "wheels")


def test_no_half_release(tmp_path, batches, name):
    """After each upload, to an index that shows it at once and has all metadata first."""
    case = CASES[name]
    (old, *dists), links = batches(name)
    seen = {machine: [(case.before, None)] for machine in case.machines}
    with upload_index(tmp_path) as server:
        publishers = Publishers({})

        def look(stage, filename):
            if stage == STORED and filename.endswith(".whl"):
                for machine, outcomes in seen.items():
                    got = chosen(name, machine, server.simple, links)
                    if got != outcomes[-1]:
                        outcomes.append(got)

        publishers.run([("publish", old, "--repository-url", server.url)])
        server.hook = look
        for dist in dists:
            publishers.run([("publish", dist, "--repository-url", server.url)])
    for machine, outcomes in seen.items():
        final = case.outcome(machine)
        assert outcomes in ([final], [(case.before, None), final]), machine


def counted(number, call):
    """Return what calls *call* when it is called for the *number*-th time; never for 0."""
    left = number

    def count():
        nonlocal left
        left -= 1
        if left == 0:
            call()

    return count
