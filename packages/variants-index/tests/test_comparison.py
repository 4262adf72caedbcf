"""What is installed or locked, against indexes, and what the doctor says of it."""

from contextlib import ExitStack, closing
from dataclasses import replace

import pytest
from packaging.version import Version

from pep_variants._providers.surroundings import Surroundings
from pep_variants._sources import Sources
from pep_variants._wheelfile.installed import Installed
from pep_variants.machines import Detector, load_machine
from pep_variants.metadata import Metadata
from pep_variants.preferences import Preferences
from support.index import Index, served
from support.projects import cuda, gpu_index
from support.published_builds import PLATFORMS, published, standing_in
from support.wheels import Release, Wheel
from variants_index._package_finder import catalog_of
from variants_index.doctor import (
    Commands,
    Comparison,
    Requirers,
    agreed,
    compare_all,
    package_problems,
    shown_states,
    wants,
)
from variants_index.doctor._packages import (
    BEST,
    UNKNOWN,
    WITHOUT,
    Asked,
    requirement_problems,
)
from variants_index.finder import PackageFinder, Prefetcher
from variants_index.target import host_target

ASKED = Asked("the index")
CUDA_12_6 = "cuda=12.6,sm=9.0"
TAG = f"cp311-cp311-{PLATFORMS[0].rpartition('-')[2].split('.')[0]}"


def item(name, version, label=None, requires=(), tags=(TAG,)):
    found = Installed(name, Version(version), label)
    found.__dict__.update(tags=frozenset(tags), requires=tuple(requires))
    return found


@pytest.fixture
def compared(session):
    """Compare what is installed with an index; return groups."""

    def compare(
        items, index, machine=CUDA_12_6, every=True, mirrors=None, surroundings=None, **preferences
    ):
        if mirrors is not None:
            pairs = dict(text.split("=") for text in mirrors)
            preferences |= {"catalog": "default", "catalog_mirrors": pairs}
        wanted = Preferences(**preferences)
        platform = load_machine(machine) if machine else None
        target = host_target()
        detector = Detector(environment=target.environment, platform=platform)
        network = session(index.url, retries=0)
        prefetcher = stack.enter_context(closing(Prefetcher()))
        finder = PackageFinder(network, Sources(index.url), prefetcher, catalog_of(network, wanted))
        comparison = Comparison(
            finder, target, detector.platform, wanted, Requirers(items, target.environment),
            surroundings,
        )  # fmt: skip
        found = compare_all(items, lambda _: comparison, wants((), every=every))
        return agreed(found, finder.entries.together)

    with ExitStack() as stack:
        yield compare


@pytest.fixture
def gpu():
    index = gpu_index()
    index.add_wheel(Wheel("plain", "1.0"))
    with served(index) as running:
        yield running


def states(groups):
    return shown_states((each for group in groups for each in group), ASKED.indexes)


def problems(groups, commands=None, **options):
    return list(package_problems(groups, commands or Commands(), ASKED, **options))


@pytest.mark.parametrize(
    ("label", "fits", "now", "verdict"),
    [
        ("cu126", True, "cu126", BEST),
        ("cu128", False, "cu126", "does not fit: needs CUDA driver 12.8"),
        ("null", True, "cu126", "another fits better: CUDA driver 12.6 or newer"),
        ("gone", None, "cu126", "the index has no variant gone of it any more"),
        (None, True, "cu126", "another fits better: CUDA driver 12.6 or newer"),
    ],
)
def test_installed(compared, gpu, label, fits, now, verdict):
    (state,) = states(compared([item("gpu", "2.0", label)], gpu))
    assert (state.fits, state.now) == (fits, now)
    assert state.verdict.startswith(verdict)
    assert (state.advice is None) == (label in ("cu126", "gone"))
    assert state.row == (
        "gpu 2.0",
        f"{label or '(no variant)'}: {state.verdict}" + ("; now cu126" if state.advice else ""),
    )


def test_plain_projects_are_of_no_interest(compared, gpu):
    assert states(compared([item("plain", "1.0")], gpu)) == []
    assert states(compared([item("gpu", "2.0")], gpu, machine="cpu=x86-64-v3")) == []


@pytest.mark.parametrize("version", ["3.0", "2.0"])
def test_versions_without_verdicts(compared, version):
    index = Index()
    index.add_wheel(Wheel("gpu", "2.0"))
    with served(index) as running:
        groups = compared([item("gpu", version, "a")], running)
    (state,) = states(groups)
    assert state.fits is None
    assert state.verdict == (WITHOUT if version == "2.0" else UNKNOWN.format("the index"))
    (problem,) = problems(groups)
    assert problem.code == ("no-variants" if version == "2.0" else "wrong-index")


def test_advice_and_its_command(compared, gpu):
    groups = compared([item("gpu", "2.0", "cu128")], gpu)
    (problem,) = problems(groups)
    assert (problem.code, problem.command) == (
        "stale-variant", "pip install --variant-switch gpu"
    )  # fmt: skip
    # No installer knows variants: that is said elsewhere, and comes first.
    assert problems(groups, Commands(knows_variants=False)) == []


def test_nothing_that_fits(compared):
    """A project without a build that runs everywhere, in any release."""
    index = Index()
    metadata = cuda("12.6", "12.8")
    del metadata["variants"]["null"]
    index.add_release(Release("gpu", "2.0", metadata))
    with served(index) as running:
        groups = compared([item("gpu", "2.0", "cu128")], running, "cuda=12.4,sm=9.0")
    (state,) = states(groups)
    assert (state.fits, state.verdict[:24]) == (False, "does not fit: needs CUDA")
    (problem,) = problems(groups)
    assert (problem.code, problem.fails) == ("stale-variant", True)
    assert problem.command == "variants explain gpu==2.0"


def test_what_is_locked_may_be_a_decision(compared, gpu):
    groups = compared([item("gpu", "2.0", "cu126")], gpu, machine="cuda=12.8,sm=9.0")
    (installed,) = problems(groups)
    (locked,) = problems(groups, switch=lambda group: "lock", how="locked")
    assert (locked.code, locked.fails, locked.command) == ("better-variant", False, "lock")
    assert (installed.code, installed.fails) == ("better-variant", True)


@pytest.mark.parametrize(
    ("machine", "label", "preferences", "missed"),
    [
        (CUDA_12_6, "cu126", {}, "cu128 needs CUDA driver 12.8"),
        ("cpu=x86-64-v3", "null", {}, "no NVIDIA driver in cpu"),
        ("cuda=12.8,sm=9.0", "cu128", {}, ""),
        (CUDA_12_6, "cu126", {"forced": {"gpu": "cu126"}}, ""),
    ],
)
def test_what_is_missed(compared, gpu, machine, label, preferences, missed):
    groups = compared([item("gpu", "2.0", label)], gpu, machine=machine, **preferences)
    found = problems(groups)
    assert len(found) == bool(missed)
    for problem in found:
        assert (problem.code, problem.fails) == ("unfit-variants", False)
        assert problem.text.partition("machine: ")[2].startswith(missed)


NEWER = ("2.13.0", "2.14.0", "2.15.0")


@pytest.fixture
def field():
    with standing_in(published(torch=NEWER, torchvision=("0.28.0", "0.29.1"))) as found:
        yield found


@pytest.mark.parametrize(
    ("version", "machine", "code", "better", "release"),
    [
        # The build of the public index is for CUDA 13.
        ("2.15.0", "cuda=12.8,sm=9.0", "stale-variant", "cuda12.6", "2.14.0"),
        ("2.15.0", "cuda=13.0,sm=7.0", "stale-variant", "cuda12.6", "2.14.0"),
        ("2.15.0", "cuda=13.2,sm=9.0", "", None, None),
        ("2.14.0+cpu", "cuda=13.0,sm=9.0", "better-variant", "cuda13.2", None),
        ("2.15.0+cpu", "cuda=12.8,sm=9.0", "better-variant", "cuda12.6", "2.14.0"),
        ("2.13.0+cu126", "cuda=12.8,sm=9.0", "", None, None),
    ],
)
def test_releases(compared, field, version, machine, code, better, release):
    """A build that does not run, or that leaves the GPU idle, goes for the newest that does."""
    groups = compared([item("torch", version)], field.index, machine, mirrors=field.mirrors)
    (state,) = states(groups)
    found = [each for each in problems(groups) if each.fails]
    assert [each.code for each in found] == ([code] if code else [])
    if code:
        assert (state.now, state.release) == (better, release)
        assert found[0].command == "pip install --variant-switch torch"
    # By the user's rule of versions.
    fixed = compared(
        [item("torch", version)], field.index, machine, mirrors=field.mirrors,
        before_version=frozenset((":none:",)),
    )  # fmt: skip
    assert states(fixed)[0].release is None


def test_a_release_that_something_else_needs(compared, field):
    """Of no use is what an installed project does not go with."""
    items = [item("torch", "2.15.0+cpu"), item("app", "1.0", requires=["torch==2.15.0"])]
    groups = compared(items, field.index, "cuda=12.8,sm=9.0", mirrors=field.mirrors)
    assert [each for each in problems(groups) if each.fails] == []


def test_a_family(compared, field):
    """What belongs together has one problem and one command."""
    items = [
        item("torch", "2.14.0+cpu"),
        item("torchvision", "0.29.1+cpu", requires=["torch==2.14.0"]),
    ]
    groups = compared(items, field.index, "cuda=13.0,sm=9.0", mirrors=field.mirrors)
    (problem,) = [each for each in problems(groups) if each.fails]
    assert problem.text.startswith("torch 2.14.0+cpu is installed as variant null; variant cuda13")
    assert "torchvision 0.29.1+cpu" in problem.text
    assert problem.command == "pip install --variant-switch torch torchvision"


def test_a_family_that_agrees(compared, field):
    """As it is, it goes together; another release of torch uses the GPU, and all move."""
    items = [
        item("torch", "2.15.0+cpu"),
        item("torchvision", "0.29.1+cpu", requires=["torch==2.15.0"]),
    ]
    groups = compared(items, field.index, "cuda=12.8,sm=9.0", mirrors=field.mirrors)
    (problem,) = [each for each in problems(groups) if each.fails]
    assert "variant cuda12.6 of 2.14.0" in problem.text
    assert problem.command == "pip install --variant-switch torch torchvision"


def test_an_accelerator_that_is_hidden(compared, gpu, monkeypatch, tmp_path):
    """Its build stays, also where no driver answers."""
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "sbatch").write_text("#!/bin/sh\n")
    (tmp_path / "sbatch").chmod(0o755)
    login = Surroundings.of({"PATH": str(tmp_path)}, tmp_path)
    plain = Surroundings.of({}, tmp_path)
    for surroundings, kept in ((login, True), (plain, False)):
        groups = compared(
            [item("gpu", "2.0", "cu126")], gpu, "cpu=x86-64-v3", surroundings=surroundings
        )
        assert bool(problems(groups)) is not kept
        (state,) = states(groups)
        assert state.verdict.startswith("kept, as this is a login node of Slurm") is kept


def test_an_index_that_cannot_be_reached(compared):
    """It is asked once, and a problem where something is not known for it."""

    class Nowhere:
        url = "http://127.0.0.1:9/simple/"

    groups = compared([item("gpu", "2.0", "cu126"), item("plain", "1.0")], Nowhere)
    assert len(groups) == 1
    (problem,) = problems(groups)
    assert (problem.code, problem.fails) == ("lookup", True)
    assert problem.command == "variants doctor --offline"
    (problem,) = problems(compared([item("plain", "1.0")], Nowhere))
    assert (problem.code, problem.fails) == ("lookup", False)


def test_unmet_requirements_and_libraries_of_no_use():
    found = Requirers(
        [
            item("torch", "2.15.0", requires=["nvidia-nccl-cu13==2.28"]),
            item("torchvision", "0.29.1", requires=["torch==2.14.0", "numpy; extra == 'x'"]),
            item("numpy", "1.0"),
            item("nvidia-nccl-cu13", "2.28"),
            item("nvidia-nccl-cu12", "2.27"),
            item("nvidia-cudnn-cu12", "9.0", requires=["nvidia-cublas-cu12"]),
            item("nvidia-cublas-cu12", "12.0"),
        ],
        host_target().environment,
    )
    unmet = [(one.project, str(asked), two.project) for one, asked, two in found.unmet({"torch"})]
    assert unmet == [("torchvision", "torch==2.14.0", "torch")]
    assert list(found.unmet({"numpy"})) == []
    assert found.orphans() == ["nvidia-cublas-cu12", "nvidia-cudnn-cu12", "nvidia-nccl-cu12"]


def test_a_build_against_another_release():
    variants = {"t28": {"abi_dependency": {"torch": ("2.8",)}}}
    ext = replace(item("ext", "1.0", "t28"), metadata=Metadata(("abi_dependency",), variants))
    found = Requirers([ext, item("torch", "2.9.1")], {})
    ext.__dict__["requires"] = ()
    (problem,) = requirement_problems(found, {"ext"}, Commands())
    assert (problem.code, problem.command) == (
        "unmet-requirement",
        "pip install --variant-switch torch ext",
    )
    assert problem.text == (
        "ext 1.0 (variant t28) is built against torch 2.8.*, and torch 2.9.1 is installed"
    )
    assert list(requirement_problems(found, {"torch"}, Commands())) == []  # it is advised


@pytest.mark.parametrize(("machine", "fits"), [("gfx=gfx942", False), ("cuda=12.4,sm=9.0", True)])
def test_an_own_wheel_that_is_a_build(compared, machine, fits):
    """The wheel that is on the index is not what would be installed for everyone else."""
    with standing_in(published(vllm=("0.8.5",))) as found:
        groups = compared([item("vllm", "0.8.5")], found.index, machine, mirrors=found.mirrors)
    (state,) = states(groups)
    assert (state.label, state.fits, state.advice) == ("cuda12", fits, None)
    assert {each.code for each in problems(groups)} == (set() if fits else {"stale-variant"})
