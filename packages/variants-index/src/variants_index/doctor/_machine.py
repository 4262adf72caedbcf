"""This machine: accelerators that detection finds or that are hidden, and its surroundings.

The surroundings are container, WSL, login node, GPUs on the bus, and rights on device files.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pep_variants import machines
from pep_variants import selection as wheel_selection
from pep_variants.errors import PlatformFileError, listed
from pep_variants.machines import Examined, Surroundings

from ._findings import Part, Problem

if TYPE_CHECKING:
    from pep_variants.machines import Support
    from pep_variants.metadata import Features
    from pep_variants.selection import Ranking


VENDORS = {name: machines.BUILTIN_NAMESPACES[name].vendor for name in machines.ACCELERATORS}
"""Vendors of accelerators by namespace."""

HIDING = tuple(dict.fromkeys(name for each in VENDORS.values() for name in each.hidden_by))
"""Variables that hide GPUs from programs."""

_NOTHING = ("", "-1", "none", "void", "nodevfiles")
"""Values that hide all GPUs."""

_STARTS = {
    "Podman": ("podman run {} …", {"NVIDIA": "--device nvidia.com/gpu=all"}),
    "Apptainer": ("apptainer exec {} …", {"NVIDIA": "--nv", "AMD": "--rocm"}),
    "Kubernetes": (
        "kubectl set resources deployment … --limits={}=1",
        {"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu"},
    ),
}
"""How a kind of container is started with the GPUs of a vendor; others as Docker is."""

_DOCKER = {"NVIDIA": "--gpus all", "AMD": "--device=/dev/kfd --device=/dev/dri"}
_LOADS = {"NVIDIA": "sudo modprobe nvidia && nvidia-smi", "AMD": "sudo modprobe amdgpu"}
"""What loads the driver of a vendor."""

_JOBS = {
    "Slurm": "srun --gpus=1 {}",
    "PBS": "qsub -I -l select=1:ngpus=1 -- {}",
    "LSF": "bsub -I -gpu num=1 {}",
}
"""What runs a command on a compute node, by scheduler."""

_WORDS = {"nvidia": ("CUDA driver", "cuda={},sm={}"), "amd": ("ROCm", "rocm={},gfx={}")}
"""Fact about the driver, and how a machine with it and one GPU is described, by namespace."""

_ACCELERATOR = "0x12"
"""Class of PCI devices that only compute."""

_BLIND = ("driver", "driver-library", "hidden-gpu", "override")
"""Problems of a machine that has more than detection or programs see."""

_SHOWN = ("NVIDIA_VISIBLE_DEVICES", *HIDING)
_DETECT = "variants detect -o platform.toml"
_JETSON = "https://pypi.jetson-ai-lab.io"
_JETPACKS = {35: "jp5", 36: "jp6"}
"""NVIDIA's index of builds for a Jetson, and its part by release of L4T; later ones need none."""


class Drivers(NamedTuple):
    """What detection found of accelerators.

    Attributes:
        vendors: those with a driver or GPU, ascending.
        cuda: newest CUDA version of NVIDIA's driver, None without one.
        features: what is supported, by namespace.
        failing: vendors whose driver is there and does not work.
    """

    vendors: tuple[str, ...] = ()
    cuda: tuple[int, int] | None = None
    features: Mapping[str, Features] = {}
    failing: tuple[str, ...] = ()

    @classmethod
    def of(cls, examined: Mapping[str, Examined]) -> Drivers:
        """Return the drivers among what the built-in providers found, by namespace."""
        found = {
            VENDORS[namespace].title
            for namespace, each in examined.items()
            if namespace in VENDORS and each.support.facts
        }
        cuda = None
        for fact in examined["nvidia"].support.facts:
            if fact.what == "CUDA driver":
                major, minor, *_ = [*fact.value.split("."), "0"]
                cuda = int(major), int(minor)
        features = {namespace: each.support.features for namespace, each in examined.items()}
        failing = [vendor.title for name, vendor in VENDORS.items() if examined[name].warnings]
        return cls(tuple(sorted(found)), cuda, features, tuple(failing))


def _described(namespace: str, support: Support) -> Iterator[str]:
    """Yield each kind of GPU of a vendor in the words of `load_machine`."""
    driver, words = _WORDS.get(namespace, ("", ""))
    facts = dict.fromkeys((fact.what, fact.value) for fact in support.facts)
    for version in [value for what, value in facts if what == driver][:1]:
        for what, value in facts:
            if what == VENDORS[namespace].counted:
                yield words.format(version, value)


def idle_gpus(ranking: Ranking, label: str) -> list[str]:
    """Return the GPUs for which a build that fits this machine has no code.

    Builds are chosen for the newest GPU of NVIDIA, and for any one of AMD.

    Args:
        ranking: of the release, for this machine as it was detected.
        label: of the build.

    Returns:
        descriptions of machines: ``cuda=12.8,sm=6.1``
    """
    idle_here = []
    for namespace in ranking.metadata.properties_of(label) or {}:
        gpus = list(_described(namespace, ranking.platform.support(namespace)))
        reasons = {}
        for gpu in gpus:
            with suppress(PlatformFileError):  # older than any that builds are for
                reasons[gpu] = wheel_selection.rank(
                    ranking.metadata, machines.load_machine(gpu)
                ).reasons(label)
        idle = [gpu for gpu, found in reasons.items()
                if any(each.namespace == namespace for each in found)]  # fmt: skip
        idle_here += idle if len(idle) < len(reasons) else []
    return idle_here


def machine_part(environ: Mapping[str, str], root: Path) -> tuple[Part, Drivers]:
    """Return what every built-in provider says of this machine, and the drivers among it.

    Args:
        environ: environment variables.
        root: of the file system.
    """
    found = real = machines.examine_host(environ, root)
    around = Surroundings.of(environ, root)
    names = {fact.source for each in found.values() for fact in each.support.facts if fact.forced}
    names.update(HIDING)
    if names & environ.keys():
        real = machines.examine_host({key: environ[key] for key in environ.keys() - names}, root)
    rows: list[tuple[str, str]] = []
    problems: list[Problem] = []
    for namespace, examined in found.items():
        rows += ((namespace, text) for text in _texts(examined))
        problems += _problems(namespace, examined, environ, around)
        problems += _overridden(examined, real[namespace])
        if namespace in VENDORS:
            problems += _hidden(namespace, examined, real[namespace], environ)
            facts, container = examined.support.facts, around.container
            troubles = VENDORS[namespace].troubles(environ, root, facts, container)
            problems += (Problem(*trouble) for trouble in troubles)
    is_blind = any(each.fails and each.code in _BLIND for each in problems)
    return Part(tuple(rows), tuple(problems), is_blind=is_blind), Drivers.of(found)


def _texts(examined: Examined) -> list[str]:
    texts = [
        f"{fact.what} {fact.value}, {'forced by' if fact.forced else 'from'} {fact.source}"
        for fact in examined.support.facts
    ]
    if examined.support.notice:
        texts.append(examined.support.notice)
    texts += (f"tried {attempt.place}: {attempt.answer}" for attempt in examined.attempts)
    return texts or ["forced by no variable, and nothing was tried"]


def _problems(
    namespace: str, examined: Examined, environ: Mapping[str, str], around: Surroundings
) -> Iterator[Problem]:
    nodes = VENDORS[namespace].nodes if namespace in VENDORS else ()
    is_closed = any(path.match(f"dev/{node}") for path in around.closed for node in nodes)
    for text in () if is_closed else examined.warnings:  # told with the device files
        command = examined.remedies.get(text, "")
        if command and around.container:
            command = _start(around.container, VENDORS[namespace].title)
        yield Problem("driver", text, command)
    if text := examined.support.notice:
        names = [name for name in environ if re.search(rf"\b{re.escape(name)}\b", text)]
        command = f"unset {' '.join(names)}" if names else ""
        yield Problem("detection", f"{namespace}: {text}", command)


def _overridden(examined: Examined, real: Examined) -> Iterator[Problem]:
    """Yield the variables that force facts, against what is detected without them."""
    forced: dict[tuple[str, str], list[str]] = {}
    for fact in examined.support.facts:
        if fact.forced:
            forced.setdefault((fact.what, fact.source), []).append(fact.value)
    for (what, variable), values in forced.items():
        detected = [fact.value for fact in real.support.facts if fact.what == what]
        text = f"{variable} sets {what} {', '.join(values)}, "
        if not detected:
            text += "but none was detected: meant where an image is built, else wrong"
            yield Problem("override", text, f"unset {variable}", fails=False)
        elif all(map(_is_stand_in, values, detected)):
            text += f"for {', '.join(detected)}, as is usual where builds have no code for that one"
            yield Problem("override", text, fails=False)
        else:
            text += f"but {', '.join(detected)} was detected"
            yield Problem("override", text, f"unset {variable}", fails=detected != values)


def _is_stand_in(given: str, detected: str) -> bool:
    """Return whether an architecture is given for another consumer GPU of its generation.

    ROCm has code for few of them; those of data centres all have their own.
    """
    return given != detected and given[:-2] == detected[:-2] and given.startswith("gfx1")


def _hidden(
    namespace: str, examined: Examined, shown: Examined, environ: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield what is wrong with the variables that hide GPUs of *namespace*.

    Args:
        namespace: of the GPUs.
        examined: the answer.
        shown: the answer without these variables.
        environ: environment variables.
    """
    vendor = VENDORS[namespace]
    names = [name for name in vendor.hidden_by if name in environ]
    values = " and ".join(f"{name}={environ[name]}" for name in names)
    command = f"unset {' '.join(names)}"
    gpus = _gpus(examined, vendor.counted)
    if not names:
        return
    if not vendor.heeds_hiding:
        if gpus and any(environ[name].strip().lower() in _NOTHING for name in names):
            text = (
                f"{values} hides every {vendor.title} GPU from programs; detection does not see "
                f"that, and variants are chosen for {', '.join(sorted(gpus))}"
            )
            yield Problem("hidden-gpu", text, command, fails=False)
        return
    lost = sorted((_gpus(shown, vendor.counted) - gpus).elements())
    if lost and not any(fact.forced for fact in examined.support.facts):
        text = f"{values} hides {', '.join(lost)}, so no variant for it is chosen"
        yield Problem("hidden-gpu", text, command)


def _gpus(examined: Examined, counted: str) -> Counter[str]:
    return Counter(
        f"{fact.what} {fact.value}" for fact in examined.support.facts if fact.what == counted
    )


def surroundings_part(
    environ: Mapping[str, str], root: Path, drivers: Drivers, *, is_described: bool = False
) -> Part:
    """Return what ``/proc``, ``/sys``, ``/dev`` and the environment tell.

    Args:
        environ: environment variables.
        root: of the file system.
        drivers: that detection found.
        is_described: a platform file says for which machine builds are chosen.
    """
    found = Surroundings.of(environ, root)
    gpus = ", ".join(f"{vendor} at {place}" for vendor, place in found.gpus)
    facts = {
        "container": found.container or "none found",
        "WSL": "yes" if found.wsl else "no",
        "GPUs on the bus": gpus or "none",
        "device files": ", ".join(map(str, found.devices)) or "none",
        "job scheduler": found.scheduler or "none found",
        **{name: environ[name] for name in _SHOWN if name in environ},
    }
    problems = list(_surrounding_problems(found, root, drivers, is_described=is_described))
    is_blind = not is_described and (
        any(problem.fails for problem in problems)
        or (not drivers.vendors and any(machines.why_invisible(found, name) for name in VENDORS))
    )
    return Part(tuple(facts.items()), tuple(problems), is_blind=is_blind)


def _surrounding_problems(
    found: Surroundings, root: Path, drivers: Drivers, *, is_described: bool
) -> Iterator[Problem]:
    nvidia, libraries = "NVIDIA" in drivers.vendors, root / "usr/lib/wsl/lib"
    if found.closed:
        yield _closed(found, drivers)
    elif found.wsl and not (root / "dev/dxg").exists():
        text = "this is WSL, and /dev/dxg is missing: WSL 1 has no GPUs, and WSL 2 needs a driver"
        text += " of the GPU on Windows. In PowerShell"
        yield Problem("wsl", text, "wsl --update; wsl --set-version <distribution> 2")
    elif found.wsl and not drivers.vendors and not drivers.failing:
        text = f"this is WSL with /dev/dxg, and {libraries} has no libcuda.so.1: install or update"
        text += " the NVIDIA driver on Windows, none in Linux; then in PowerShell"
        # Without an NVIDIA GPU this folder has other libraries.
        yield Problem("wsl", text, "wsl --shutdown", fails=not libraries.exists())
    elif (release := _tegra(root)) and not nvidia and not drivers.failing:
        text = "this is a Jetson, and no NVIDIA driver answers: "
        if found.container:
            text += "start this container with the libraries of the host"
            yield Problem("container-driver", text, "docker run --runtime nvidia …")
        else:
            text += "install the libraries of JetPack"
            yield Problem("driver-missing", text, "sudo apt-get install nvidia-l4t-cuda")
    elif release in _JETPACKS and nvidia and drivers.cuda:
        major, minor = drivers.cuda
        index = f"{_JETSON}/{_JETPACKS[release]}/cu{major}{minor}"
        text = f"this is a Jetson (L4T {release}): PyTorch's builds for aarch64 are made for "
        text += "servers, those for a Jetson are on an index of NVIDIA"
        yield Problem("jetson", text, f"pip install --index-url {index} torch", fails=False)
    else:
        yield from _without_driver(found, root, drivers)
    # One cause, one line: the driver that fails is told already.
    if drivers.vendors or drivers.failing or found.gpus or found.closed or is_described:
        return
    if found.scheduler and not found.in_job:
        text = (
            f"this is a login node of {found.scheduler}, whose variants are not those of the "
            "compute nodes: describe one of them, and install with --variant-platform platform.toml"
        )
        command = _JOBS[found.scheduler].format(_DETECT)
        yield Problem("login-node", text, command, fails=False)
    elif found.container and not release:
        text = (
            f"this container ({found.container}) sees no GPU. Start it with one (of AMD with "
            f"{_options(found.container)['AMD']}); for image builds use --variant-platform MACHINE"
        )
        command = _start(found.container, "NVIDIA")
        yield Problem("container-without-gpu", text, command, fails=False)


def _closed(found: Surroundings, drivers: Drivers) -> Problem:
    """Return the problem of device files that the user may not open."""
    files = listed([str(path) for path in found.closed], "and")
    groups = sorted({*filter(None, map(_group, found.closed))})
    text = f"you may not read and write {files}, so programs find no GPU"
    # A screen alone has a file in dri.
    fails = not drivers.vendors or any(path.parent.name != "dri" for path in found.closed)
    if found.container and groups:
        command = f"docker run {' '.join(f'--group-add {group}' for group in groups)} …"
        return Problem("permissions", f"{text}: start this container with", command, fails=fails)
    if groups:
        command = f"sudo usermod -aG {','.join(groups)} $USER"
        text += f": join {listed(groups, 'and')}, then log in again"
    else:
        command = f"sudo chmod a+rw {shlex.join(map(str, found.closed))}"
    return Problem("permissions", text, command, fails=fails)


def _group(path: Path) -> str:
    """Return the group whose members may open *path*, empty if that is no group for users."""
    try:
        status = path.stat()
        may = status.st_gid and status.st_mode & 0o060 == 0o060
        return path.group() if may else ""
    except KeyError:  # of the host, in a container
        return str(status.st_gid)
    except (OSError, NotImplementedError):
        return ""


def _tegra(root: Path) -> int:
    """Return the major release of L4T, the Linux of a Jetson; 0 elsewhere."""
    try:
        text = (root / "etc/nv_tegra_release").read_text(errors="replace")
    except OSError:
        # Containers have the device tree alone.
        return 1 if (root / "proc/device-tree/tegra-fuse").exists() else 0
    match = re.match(r"# R([0-9]+)", text)
    return int(match[1]) if match else 1


def _start(container: str, vendor: str) -> str:
    """Return the command that starts a *container* with the GPUs of a vendor."""
    command = _STARTS.get(container, ("docker run {} …", _DOCKER))[0]
    return command.format(_options(container)[vendor])


def _options(container: str) -> Mapping[str, str]:
    return {**_DOCKER, **_STARTS.get(container, ("", _DOCKER))[1]}


def _without_driver(found: Surroundings, root: Path, drivers: Drivers) -> Iterator[Problem]:
    """Yield the vendors whose GPU is on the bus, and whose driver detection did not find."""
    for vendor, place in dict(reversed(found.gpus)).items():
        if vendor in (*drivers.vendors, *drivers.failing) or vendor not in _LOADS:
            continue
        # GPUs in AMD's CPUs, which show pictures, do not compute.
        kind = root / "sys/bus/pci/devices" / place / "class"
        fails = vendor == "NVIDIA" or kind.read_text().startswith(_ACCELERATOR)
        if found.container:
            text = (
                f"this container ({found.container}) has no {vendor} driver, although there is a "
                f"GPU at {place}: the driver comes from the host. Start the container with GPUs"
            )
            if vendor == "NVIDIA":
                text += ", which takes the NVIDIA Container Toolkit there"
            yield Problem("container-driver", text, _start(found.container, vendor), fails=fails)
        else:
            text = f"there is a GPU at {place} and no {vendor} driver that answers: load it"
            yield Problem("driver-missing", f"{text}, or install it", _LOADS[vendor], fails=fails)
