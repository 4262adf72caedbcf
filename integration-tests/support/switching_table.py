"""What is installed × machine × command: what is there afterwards, in every client.

    cd integration-tests; python -m support.switching_table [CLIENT …]

prints a table for each client, and how many cells are wrong. The table of
``docs/explanation/switching.md`` is that of `page`.

Wheels are stand-ins that know which machine they run on: importing one raises ImportError on
another, and torchvision beside a torch for another CUDA. Builds for CUDA 12 and 13 require
libraries of which two own one file, as NVIDIA's do. What is expected follows from the publishers'
facts in `support.torch_field` and from the rules in `problem`, not from our code.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .environments import PIPS, Environment, Environments, Result, clean_environ
from .index import Index
from .nvidia_drivers import driver_library, nvml, redirection
from .pip_commands import PipCommands, versions
from .published_builds import LINUX, Builds, Field, standing_in
from .torch_field import BOXES, CUDA_OF_DRIVER, RELEASES, Box, Build, Picks, build_of, builds_of
from .uvs import UVS, Machine, downloaded_uv, uv_variants
from .uvs import project as write_project
from .wheels import PURE, Wheel

FAMILY = ("torch", "torchvision", "torchaudio")
TORCHES = ("2.13.0", "2.14.0", "2.15.0")
"""Releases of torch that the indexes have; torchvision's are those for them."""
LIBRARIES = {
    12: ("nvidia-nccl-cu12==2.27.5", "nvidia-cublas-cu12==12.6.4.1"),
    13: ("nvidia-nccl-cu13==2.28.3", "nvidia-cublas==13.1.0.3"),
}
"""What torch requires, by major version of CUDA."""
PLACES = (
    "cpu cu118 cu121 cu124 cu126 cu128 cu129 cu130 cu132 "
    "rocm6.3 rocm6.4 rocm7.0 rocm7.1 rocm7.2 xpu"
)
"""PyTorch's indexes, all of which have a page of each project."""
SHARED = "nvidia/nccl/lib/libnccl.so.2"
"""The file that both packages of NCCL own."""

RUNS = """\
import os
CUDA, CODE, DRIVER = {cuda}, {code!r}.split(), {driver}
arch = os.environ.get("FAKE_ARCH", "")
if CODE:
    major, _, minor = arch.partition(".")
    fits = arch in CODE
    if CUDA:
        known = [each.split(".") for each in CODE]
        fits = any(each[0] == major and int(each[1]) <= int(minor) for each in known)
        fits = fits and int(os.environ.get("FAKE_DRIVER", 0)) >= DRIVER
    if not fits:
        raise ImportError(f"{{__name__}} {version}: no kernel image for {{arch or 'this machine'}}")
"""
NEEDS_LIBRARY = """\
if CUDA:
    from pathlib import Path
    library = Path(__file__).parents[1] / "{shared}"
    if not library.exists() or library.read_text() != f"for CUDA {{CUDA}}":
        raise ImportError(f"libnccl.so.2: undefined symbol, torch is for CUDA {{CUDA}}")
"""
BESIDE = """\
import torch
if torch.CUDA != CUDA or bool(torch.CODE) != bool(CODE):
    raise ImportError(f"{{__name__}} and torch were compiled with different CUDA versions")
"""


@dataclass(frozen=True)
class Target:
    """A machine.

    Attributes:
        name: of it.
        box: its hardware.
        visible: whether programs see its GPU.
        variables: show a process this machine.
    """

    name: str
    box: Box
    visible: bool
    variables: Mapping[str, str]

    def uses(self, build: Build | None) -> bool:
        """Return whether a build is one that its GPU runs, and is seen to."""
        return build is not None and self.visible and self.box.uses(build)


def box(title: str) -> Box:
    """Return the machine of `BOXES` for Linux with this title."""
    return next(each for each in BOXES if each.title == title and each.system == "linux")


MACHINES = {
    "no GPU": box("no GPU"),
    "driver 12.4": box("H100, driver 550"),
    "driver 12.8": box("H100, driver 570"),
    "driver 13.0": box("H100, driver 580"),
    "V100, driver 13.0": box("V100, driver 580"),
    "MI300X": box("MI300X"),
    "driver invisible": box("H100, driver 570"),
}
INSTALLED: dict[str, Picks] = {
    "nothing": {},
    **{
        f"{'family' if family else 'torch'} {name}": (
            {"torch": torch, "torchvision": vision, "torchaudio": audio}
            if family
            else {"torch": torch}
        )
        for family in (False, True)
        for name, torch, vision, audio in (
            ("of PyPI", "2.15.0", "0.30.0", "2.11.0"),
            ("+cpu", "2.15.0+cpu", "0.30.0+cpu", "2.11.0+cpu"),
            ("+cu126", "2.14.0+cu126", "0.29.0+cu126", "2.11.0+cu126"),
            ("+cu132", "2.15.0+cu132", "0.30.0+cu132", "2.11.0+cu130"),
            ("+rocm7.2", "2.13.0+rocm7.2", "0.28.0+rocm7.2", "2.11.0+rocm7.2"),
        )
    },
}
"""What is there before, by a name: version with its local part by project."""
COMMANDS = tuple(
    ("install", *options, *FAMILY[:number])
    for number in (1, 2, 3)
    for options in ((), ("-U",), ("--variant-switch",), ("-U", "--variant-switch"))
)
"""Words of a command, without the client."""


@dataclass(frozen=True)
class World:
    """The indexes and machines, and environments to copy.

    Attributes:
        field: the indexes.
        folder: for what clients write.
        environments: with pip.
        targets: the machines, by name.
        stack: closed with the world.
        started: pips that are imported, by the path of their environment.
    """

    field: Field
    folder: Path
    environments: Environments
    targets: Mapping[str, Target]
    stack: ExitStack
    started: dict[str, PipCommands]

    @property
    def variables(self) -> dict[str, str]:
        """What leads every client to the indexes."""
        return {
            "PIP_INDEX_URL": self.field.index.url,
            "UV_DEFAULT_INDEX": self.field.index.url,
            "VARIANTS_CATALOG": "default",
            "VARIANTS_CATALOG_MIRROR": " ".join(self.field.mirrors),
        }


Client = Callable[[World, Environment, Target, Sequence[str]], Result]
"""Types the words of a command of `COMMANDS` on a machine; the environment is the active one."""


# The indexes.


def release_of(project: str, torch: str) -> str:
    """Return the release of *project* that goes with a release of torch."""
    return next(own for own, other in RELEASES[project].items() if other in (torch, ""))


def wheel(project: str, version: str) -> Wheel:
    """Return the stand-in of one build; without a local version that of PyPI."""
    public = version.partition("+")[0]
    build = build_of(project, version, "linux")
    cuda = build.cuda if build else 0
    torch = RELEASES[project][public]
    text = RUNS.format(
        cuda=cuda,
        code=build.code if build else "",
        driver={11: 450, 12: 525, 13: 580}.get(cuda, 0),
        version=version,
    )
    requires: tuple[str, ...] = ()
    if project == "torch":
        text += NEEDS_LIBRARY.format(shared=SHARED)
        requires = LIBRARIES.get(cuda, ())
    else:
        text += BESIDE.format()
        requires = (f"torch=={torch}",) if torch else ()
    return Wheel(project, version, tag=LINUX, requires=requires,
                 files={f"{project}/__init__.py": text})  # fmt: skip


def libraries() -> Iterator[Wheel]:
    """Yield what builds for CUDA require."""
    for cuda, required in LIBRARIES.items():
        for text in required:
            name, _, version = text.partition("==")
            files = {SHARED: f"for CUDA {cuda}"} if "nccl" in name else {}
            yield Wheel(name, version, tag=PURE, files=files)


def standin() -> Field:
    """Return PyPI and PyTorch's indexes, with `FAMILY` for Linux."""
    found = Field(Index(core_metadata=True), Builds())
    for project in FAMILY:
        for public in dict.fromkeys(release_of(project, torch) for torch in TORCHES):
            found.index.add_wheel(wheel(project, public))
            for local in ("cpu", *(each.local for each in builds_of(project, public))):
                page = f"https://download.pytorch.org/whl/{local}/{project}/"
                found.builds.put(page, wheel(project, f"{public}+{local}"))
        for local in PLACES.split():  # every page has files of other versions
            page = f"https://download.pytorch.org/whl/{local}/{project}/"
            found.builds.put(page, Wheel(project, "0.0.1+old", tag=LINUX))
    for each in libraries():
        found.index.add_wheel(each)
    return found


def machines(
    folder: Path, environments: Environments, boxes: Mapping[str, Box]
) -> dict[str, Target]:
    """Return machines with the hardware of *boxes*, for programs that run here.

    Args:
        folder: for what is written.
        environments: of clients.
        boxes: by name; the driver of one that is called invisible does not answer.
    """
    shown = {
        "LD_LIBRARY_PATH": str(driver_library(environments)),
        "LD_PRELOAD": str(redirection(folder / "redirection")),
        "REDIRECTED_FROM": "/.dockerenv",  # the tests may run in a container
        "REDIRECTED_TO": "/nowhere",
    }
    targets = {}
    for name, box in boxes.items():
        root = folder / "machines" / name.replace(" ", "-")
        node = root / "sys/class/kfd/kfd/topology/nodes/1/properties"
        for path in (node.parent, root / "sys/bus/pci/devices", root / "opt/rocm/.info"):
            path.mkdir(parents=True)
        visible = "invisible" not in name
        variables = {**shown, "REDIRECTED_ROOT": str(root), "FAKE_ARCH": box.architecture,
                     "FAKE_DRIVER": str(box.driver), "FAKE_NVML_INIT": "9"}  # fmt: skip
        if box.driver and visible:
            variables |= nvml(CUDA_OF_DRIVER[box.driver], box.architecture)
            del variables["FAKE_NVML_INIT"]
        elif box.architecture == "gfx942":
            node.write_text("simd_count 304\ngfx_target_version 90402\n")
            (root / "opt/rocm/.info/version").write_text("7.0.2\n")
        elif not visible:
            variables["container"] = "docker"
        targets[name] = Target(name, box, visible, variables)
    return targets


@contextmanager
def running(folder: Path, environments: Environments) -> Iterator[World]:
    """Serve the indexes and make the machines.

    Args:
        folder: for what is written.
        environments: of clients.
    """
    targets = machines(folder, environments, MACHINES)
    with standing_in(standin()) as field, ExitStack() as stack:
        yield World(field, folder, environments, targets, stack, {})


# Clients.


def pip_client(*, command: bool) -> Client:
    """Return pip with the shim, or ``pip-variants``."""

    def run(world: World, environment: Environment, target: Target, words: Sequence[str]) -> Result:
        module = "pep_variants_shim" if command else "pip"
        key = f"{environment.path}"
        if key not in world.started:
            shown = ("LD_LIBRARY_PATH", "LD_PRELOAD")
            started = PipCommands(
                Environment(environment.path, module),
                {name: target.variables[name] for name in shown},
            )
            world.started[key] = world.stack.enter_context(started)
        return world.started[key].pip(*words, env={**world.variables, **target.variables})

    return run


def uv_client(*, project: bool) -> Client:
    """Return ``uv-variants pip``, or ``uv-variants sync`` of a project that is not locked yet."""

    def run(world: World, environment: Environment, target: Target, words: Sequence[str]) -> Result:
        home, work = world.folder / "uv-home", world.folder / "uv-work"
        for folder in (home, work):
            folder.mkdir(exist_ok=True)
        shown = {**world.variables, **target.variables}
        shown |= {"VIRTUAL_ENV": str(environment.path), "UV_PYTHON": str(environment.python)}
        made = world.environments
        uv = downloaded_uv(UVS[-1], made.wheelhouse)
        machine = Machine(uv, uv_variants(made.folder), home, work, shown)
        ours = [word for word in words if word.startswith("--variant")]
        if not project:
            return machine.run(*ours, "pip", *(word for word in words if word not in ours))
        for path in work.glob("uv.*"):
            path.unlink()
        write_project(work, [word for word in words if word in FAMILY])
        machine = machine.with_environ({"UV_PROJECT_ENVIRONMENT": str(environment.path)})
        return machine.run(*ours, "sync", *(word for word in words if word == "-U"))

    return run


SYNC = "uv-variants sync"
CLIENTS: dict[str, Client] = {
    "pip with the shim": pip_client(command=False),
    "pip-variants": pip_client(command=True),
    "uv-variants pip": uv_client(project=False),
    SYNC: uv_client(project=True),
}


def environment_for(world: World, client: str) -> Environment:
    """Return an environment for the commands of a client, which they change."""
    path = world.folder / client.replace(" ", "-")
    if path.exists():
        return Environment(path)
    python = "{}.{}".format(*sys.version_info)
    make = {
        "pip with the shim": world.environments.patched,
        "pip-variants": world.environments.with_command,
    }.get(client, world.environments.plain)
    return Environment(make(python, PIPS[-1]).copied(path).path)


# What is installed.


def put(environment: Environment, picks: Picks, installer: str = "pip") -> None:
    """Have just these of `FAMILY` installed, as named by the user, with what they require."""
    folder = environment.site_packages
    for path in [*folder.glob("*.dist-info")]:
        name = path.name.partition("-")[0]
        if name not in ("pip", "pep_variants_shim", "pip_variants"):
            shutil.rmtree(path)
            shutil.rmtree(folder / name, ignore_errors=True)
    shutil.rmtree(folder / "nvidia", ignore_errors=True)
    wheels = [wheel(*each) for each in picks.items()]
    required = {text for each in wheels for text in each.requires}
    wheels += [each for each in libraries() if f"{each.name}=={each.version}" in required]
    for each in wheels:
        info = f"{each.name.replace('-', '_')}-{each.version}.dist-info"
        with zipfile.ZipFile(io.BytesIO(each.build())) as archive:
            archive.extractall(folder)
        is_requested = each.name in picks or installer == "uv"  # uv says so of everything
        own = ["INSTALLER", *(["REQUESTED"] if is_requested else [])]
        (folder / info / "INSTALLER").write_text(f"{installer}\n")
        with (folder / info / "RECORD").open("a") as record:
            for name in own:
                (folder / info / name).touch()
                record.write(f"{info}/{name},,\n")


def owned(environment: Environment) -> dict[str, dict[str, str]]:
    """Return path and hash of the files of each distribution, by its name."""
    found: dict[str, dict[str, str]] = {}
    for info in environment.site_packages.glob("*.dist-info"):
        name = canonicalize_name(info.name.partition("-")[0])
        with (info / "RECORD").open(newline="") as record:
            found[name] = {row[0]: row[1] for row in csv.reader(record) if row}
    return found


def damage(environment: Environment, *, clean: bool) -> list[str]:
    """Return which files of what is required are missing or not its own.

    Args:
        environment: after a command.
        clean: no file may have two owners.
    """
    folder, found = environment.site_packages, []
    required = set(FAMILY)
    for info in folder.glob("*.dist-info"):
        lines = (info / "METADATA").read_text("utf-8").splitlines()
        required |= {
            canonicalize_name(Requirement(line.partition(": ")[2]).name)
            for line in lines
            if line.startswith("Requires-Dist")
        }
    owners: dict[str, list[str]] = {}
    for name, files in owned(environment).items():
        if name in ("pip", "pep-variants-shim", "pip-variants"):
            continue
        for path, told in files.items():
            owners.setdefault(path, []).append(name)
            data = (folder / path).read_bytes() if (folder / path).exists() else None
            digest = None if data is None else _digest(data)
            if name in required and digest is None:
                found.append(f"{path} of {name} is missing")
            elif name in required and told and told != f"sha256={digest}":
                found.append(f"{path} is not that of {name}")
    if clean:
        found += [f"{path} has {names}" for path, names in owners.items() if len(names) > 1]
    return found


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def imported(environment: Environment, target: Target) -> dict[str, str]:
    """Return why each of `FAMILY` that is installed cannot be imported; empty text for none."""
    names = [name for name in FAMILY if (environment.site_packages / name).exists()]
    code = (
        "import importlib, json\nfound = {}\n"
        f"for name in {names}:\n"
        "    try: importlib.import_module(name); found[name] = ''\n"
        "    except ImportError as error: found[name] = str(error)\n"
        "print(json.dumps(found))"
    )
    variables = {name: target.variables[name] for name in ("FAKE_ARCH", "FAKE_DRIVER")}
    done = subprocess.run([environment.python, "-c", code], env=clean_environ(variables),
                          capture_output=True, text=True, check=True)  # fmt: skip
    found: dict[str, str] = json.loads(done.stdout)
    return found


# What is expected.


def newest(projects: Sequence[str], target: Target) -> str | None:
    """Return the newest torch of which the GPU uses a build, and one of each of *projects*."""
    for torch in reversed(TORCHES):
        if usable(projects, torch, target):
            return torch
    return None


def usable(projects: Sequence[str], torch: str, target: Target) -> set[int]:
    """Return the CUDA of the builds of *projects* for *torch* that the GPU uses; 0 for ROCm."""
    found = [
        {each.cuda for each in builds_of(name, release_of(name, torch)) if target.uses(each)}
        for name in {"torch", *projects}
    ]
    return set.intersection(*found)


def kinds(picks: Picks) -> list[Build | None]:
    """Return the builds of what is installed of `FAMILY`."""
    return [build_of(name, version, "linux") for name, version in picks.items()]


def problem(before: Picks, after: Picks, target: Target, words: Sequence[str]) -> str:
    """Return what is wrong with what a command left, empty for nothing.

    - What is installed stays, unless ``-U`` or ``--variant-switch`` is given.
    - Nothing takes a GPU build away while the driver is merely invisible.
    - ``--variant-switch`` keeps the release where it has a build for the GPU that is here, and
      takes the best; else that of the newest release that has one; on a machine without a GPU
      the build for CPUs of the installed release.
    - ``-U`` and a first installation take the newest release that uses the GPU, or the newest;
      what ``-U`` finds installed of that release stays as it is.
    - ``-U`` also leaves what goes with those of the family that are not named.
    - What is installed of the family moves along. What is new comes for what is there, or all is
      as in a first installation.
    """
    named = [word for word in words if word in FAMILY]
    projects = list(dict.fromkeys([*before, *named]))
    if {*after} != {*projects, *(["torch"] if "torchvision" in projects else [])}:
        return f"{sorted(after)} are there"
    upgrade, switch = "-U" in words, "--variant-switch" in words
    if upgrade and not switch and not before.keys() <= {*named} and after == before:
        return ""
    builds, had = kinds(after), kinds({"torch": before["torch"]})[0] if before else None
    torch = after["torch"].partition("+")[0]
    best = newest(projects, target)
    held = not target.visible and had is not None
    old = before.get("torch", "")
    is_new = bool(before) and not {*named} <= before.keys()
    if is_new and not held and after["torch"] != old and not problem({}, after, target, projects):
        return ""  # what is new has no release for the torch that is there, which moves
    if (old and not (upgrade or switch)) or held:
        changed = {name: after[name] for name in before if after[name] != before[name]}
        if changed:
            return f"{changed} should have stayed"
        return _fits(builds)
    release = old.partition("+")[0]
    if not old or (upgrade and not switch):
        wanted = best or TORCHES[-1]
        if old and release == wanted:
            return _fits(builds) if after["torch"] == old else "the build changed"
    elif upgrade:
        wanted = best or TORCHES[-1]
    else:
        wanted = release if best is None or usable(projects, release, target) else best
    if torch != wanted:
        return f"torch {wanted} was to be had"
    cudas = usable(projects, wanted, target)
    if not cudas:
        return "" if not any(builds) else "not the build for CPUs"
    if not all(map(target.uses, builds)):
        return "does not use the GPU"
    return "" if {each and each.cuda for each in builds} == {max(cudas)} else "a lesser build"


def _fits(builds: Sequence[Build | None]) -> str:
    """Return what is wrong with *builds* beside each other."""
    kinds = {(each.cuda, bool(each.code)) if each else (0, False) for each in builds}
    return "" if len(kinds) == 1 else "the family does not go together"


def runs(picks: Picks, target: Target) -> bool:
    """Return whether what is installed can be imported on a machine, seen or not."""
    return all(build is None or target.box.uses(build) for build in kinds(picks))


@dataclass(frozen=True)
class Cell:
    """What a command did.

    Attributes:
        installed, target, words: of the case.
        after: what is there of `FAMILY`.
        wrong: what is wrong with that, empty for nothing.
        result: what the command printed.
    """

    installed: str
    target: Target
    words: Sequence[str]
    after: Picks
    wrong: str
    result: Result


def tried(world: World, client: str, installed: str, machine: str, words: Sequence[str]) -> Cell:
    """Return what a client leaves, and what is wrong with it."""
    environment, target = environment_for(world, client), world.targets[machine]
    before = INSTALLED[installed]
    put(environment, before, "uv" if client.startswith("uv") else "pip")
    done = CLIENTS[client](world, environment, target, words)
    # A lock decides, whatever is installed.
    return judged(environment, installed if client != SYNC else "nothing", target, words, done)


def judged(
    environment: Environment, installed: str, target: Target, words: Sequence[str], done: Result
) -> Cell:
    """Return what a command left in *environment*, and what is wrong with it."""
    before = INSTALLED[installed]
    after = {name: text for name, text in versions(environment).items() if name in FAMILY}
    wrong = [f"exit code {done.code}"] if done.code else []
    wrong += filter(None, [problem(before, after, target, words)])
    wrong += damage(environment, clean="--variant-switch" in words)
    works = imported(environment, target)
    if any(works.values()) is runs(after, target):
        wrong.append(f"import: {works}")
    return Cell(installed, target, words, after, "; ".join(wrong), done)


def cases() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield what is installed, machine and command."""
    for installed in INSTALLED:
        for words in COMMANDS:
            for machine in MACHINES:
                yield installed, machine, words


def table(world: World, client: str) -> tuple[str, Counter[str]]:
    """Return the table of a client and how many of its cells are right and wrong."""
    counts: Counter[str] = Counter()
    lines = [f"| installed | command | {' | '.join(MACHINES)} |", "|---|---|" + "---|" * 7]
    row: list[str] = []
    for installed, machine, words in cases():
        cell = tried(world, client, installed, machine, words)
        counts["wrong" if cell.wrong else "right"] += 1
        text = " ".join(cell.after.get(name, "-") for name in FAMILY if name in cell.after)
        row.append(f"✗ {text}: {cell.wrong}" if cell.wrong else text)
        if len(row) == len(MACHINES):
            lines.append(f"| {installed} | `{' '.join(words)}` | {' | '.join(row)} |")
            row = []
    return "\n".join(lines), counts


PAGE_WORDS = ("install", "--variant-switch", "torch")
"""The command of the table in ``docs/explanation/switching.md``."""
PAGE_ROWS = [name for name in INSTALLED if not name.startswith("family")]


def page(world: World) -> str:
    """Return the table of the page: what pip leaves of torch."""
    lines = [f"| installed | {' | '.join(MACHINES)} |", "|---|" + "---|" * len(MACHINES)]
    for installed in PAGE_ROWS:
        cells = [
            tried(world, "pip with the shim", installed, machine, PAGE_WORDS)
            for machine in MACHINES
        ]
        texts = [f"{each.after['torch']}{' ✗' if each.wrong else ''}" for each in cells]
        lines.append(f"| {installed} | {' | '.join(texts)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        (folder / "wheelhouse").mkdir()
        (folder / "world").mkdir()
        made = Environments(folder / "environments", folder / "wheelhouse")
        with running(folder / "world", made) as world:
            for client in sys.argv[1:] or CLIENTS:
                found, counts = table(world, client)
                print(f"{client}\n\n{found}\n\nwrong cells: {counts['wrong']} of {counts.total()}")
