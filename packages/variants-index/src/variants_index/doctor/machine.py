"""This machine: accelerators that detection finds or that are hidden, and its surroundings.

The surroundings are container, WSL, login node, GPUs on the bus, and rights on device files.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pep_variants.internal import ACCELERATORS, BUILTIN_NAMESPACES, Examined, examine_host

from .findings import Part, Problem

if TYPE_CHECKING:
    from pep_variants.internal import Fact, Features


VENDORS = {name: BUILTIN_NAMESPACES[name].vendor for name in ACCELERATORS}
"""Vendors of accelerators by namespace."""

HIDING = {
    name: tuple(each for each, vendor in VENDORS.items() if name in vendor.hidden_by)
    for vendor in VENDORS.values()
    for name in vendor.hidden_by
}
"""Variables that hide GPUs from programs, and the namespaces of these GPUs."""

_COUNTED = {vendor.counted for vendor in VENDORS.values()}
"""Facts that there is one of for every device."""

_NOTHING = ("", "-1", "none", "void", "nodevfiles")
"""Values that hide all GPUs."""

_VENDORS = {vendor.pci: vendor.title for vendor in VENDORS.values() if vendor.pci}
_DISPLAY = "0x03"
"""Class of PCI devices that are GPUs: display controllers; ``0x12`` are accelerators."""

_ACCELERATOR = "0x12"
_FILES = tuple(dict.fromkeys(name for vendor in VENDORS.values() for name in vendor.nodes))
_SCHEDULERS = {
    "sbatch": ("Slurm", "srun --gpus=1 variants detect -o platform.toml"),
    "qsub": ("PBS", "qsub -I -l ngpus=1 -x variants detect -o platform.toml"),
    "bsub": ("LSF", "bsub -I -gpu num=1 variants detect -o platform.toml"),
}
_JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID")
_CONTAINERS = re.compile(r"docker|containerd|kubepods|libpod|lxc")
_CONTAINER_GPUS = "NVIDIA_VISIBLE_DEVICES"
"""Which GPUs the container runtime brings into a container."""

_SMALL = 1 << 16
_LIBRARIES = "LD_LIBRARY_PATH"
_DRIVER = "libcuda.so.1"


@dataclass(frozen=True)
class Drivers:
    """What detection found of accelerators.

    Attributes:
        vendors: those with a driver or GPU, ascending.
        cuda: newest CUDA version of NVIDIA's driver, None without one.
        features: what is supported, by namespace.
    """

    vendors: tuple[str, ...] = ()
    cuda: tuple[int, int] | None = None
    features: Mapping[str, Features] = field(default_factory=dict)

    @classmethod
    def of(cls, examined: Mapping[str, Examined]) -> Drivers:
        """Return the drivers among what the built-in providers found, by namespace."""
        found = {
            VENDORS[namespace].title
            for namespace, each in examined.items()
            if namespace in VENDORS and each.support.facts
        }
        versions = [
            fact.value
            for fact in (examined["nvidia"].support.facts if "nvidia" in examined else ())
            if fact.what == "CUDA driver"
        ]
        cuda = None
        if versions:
            major, minor, *_ = [*versions[0].split("."), "0"]
            cuda = int(major), int(minor)
        features = {namespace: each.support.features for namespace, each in examined.items()}
        return cls(tuple(sorted(found)), cuda, features)


def machine_part(environ: Mapping[str, str], root: Path) -> tuple[Part, Drivers]:
    """Return what every built-in provider says of this machine, and the drivers among it.

    Args:
        environ: environment variables.
        root: of the file system.
    """
    found = examine_host(environ, root)
    forcing = {fact.source for each in found.values() for fact in each.support.facts if fact.forced}
    real = _without(forcing, environ, root) if forcing else found
    hiding = [name for name in HIDING if name in environ]
    shown = _without(hiding, environ, root) if hiding else found
    rows: list[tuple[str, str]] = []
    problems: list[Problem] = []
    for namespace, examined in found.items():
        rows += ((namespace, text) for text in _texts(examined))
        problems += _problems(namespace, examined, real[namespace], environ)
        problems += _hidden(namespace, examined, shown[namespace], environ)
    part = Part(tuple(rows), tuple(problems), {name: _tree(each) for name, each in found.items()})
    return part, Drivers.of(found)


def _without(
    names: set[str] | list[str], environ: Mapping[str, str], root: Path
) -> dict[str, Examined]:
    """Return what detection finds without some of the variables."""
    return examine_host({name: text for name, text in environ.items() if name not in names}, root)


def _texts(examined: Examined) -> list[str]:
    texts = [_fact(fact) for fact in examined.support.facts]
    if examined.support.notice:
        texts.append(examined.support.notice)
    texts += (f"tried {attempt.place}: {attempt.answer}" for attempt in examined.attempts)
    texts += (f"warning: {text}" for text in examined.warnings)
    return texts or ["forced by no variable, and nothing was tried"]


def _fact(fact: Fact) -> str:
    origin = "forced by" if fact.forced else "from"
    return f"{fact.what} {fact.value}, {origin} {fact.source}"


def _problems(
    namespace: str, examined: Examined, real: Examined, environ: Mapping[str, str]
) -> Iterator[Problem]:
    for text in examined.warnings:
        yield Problem("driver", f"{namespace}: {text}")
    if examined.support.notice:
        text = examined.support.notice
        names = [name for name in environ if re.search(rf"\b{re.escape(name)}\b", text)]
        command = f"unset {' '.join(names)}" if names else ""
        yield Problem("detection", f"{namespace}: {text}", command)
    forced: dict[tuple[str, str], list[str]] = {}
    for fact in examined.support.facts:
        if fact.forced:
            forced.setdefault((fact.what, fact.source), []).append(fact.value)
    for (what, variable), values in forced.items():
        detected = [fact.value for fact in real.support.facts if fact.what == what]
        shown = f"{variable} says that {what} is {', '.join(values)}"
        if detected == values:
            text = f"{shown}, as detection does"
        elif detected:
            text = f"{shown}, but this machine has {', '.join(detected)}"
        else:
            text = f"{shown}; without the variable detection finds none here"
        differs = bool(detected) and detected != values
        yield Problem("override", text, f"unset {variable}", fails=differs)


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
    names = [name for name, hidden in HIDING.items() if namespace in hidden and name in environ]
    if not names:
        return
    values = " and ".join(f"{name}={environ[name]}" for name in names)
    command = f"unset {' '.join(names)}"
    hides = "hide" if len(names) > 1 else "hides"
    gpus, all_gpus = _gpus(examined), _gpus(shown)
    if lost := sorted((all_gpus - gpus).elements()):
        yield Problem(
            "hidden-gpu",
            f"{values} {hides} {', '.join(lost)}, so no variant for it is chosen",
            command,
        )
    elif gpus and not VENDORS[namespace].heeds_hiding:
        texts = [environ[name].strip().lower() for name in names]
        if any(text in _NOTHING for text in texts):
            how = f"every {VENDORS[namespace].title} GPU"
        elif len(gpus) > 1 and any(text.count(",") + 1 < sum(gpus.values()) for text in texts):
            how = f"some {VENDORS[namespace].title} GPUs"
        else:
            return
        text = (
            f"{values} {hides} {how} from programs; detection does not see that, and variants "
            f"are chosen for {', '.join(sorted(gpus))}"
        )
        yield Problem("hidden-gpu", text, command, fails=False)


def _gpus(examined: Examined) -> Counter[str]:
    return Counter(
        f"{fact.what} {fact.value}" for fact in examined.support.facts if fact.what in _COUNTED
    )


def _tree(examined: Examined) -> dict[str, object]:
    return {
        "facts": [fact._asdict() for fact in examined.support.facts],
        "notice": examined.support.notice,
        "tried": [attempt._asdict() for attempt in examined.attempts],
        "warnings": list(examined.warnings),
    }


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
    container = _container(environ, root)
    wsl = "microsoft" in _text(root / "proc/sys/kernel/osrelease").lower()
    gpus = list(_bus_gpus(root))
    devices = list(_devices(root))
    closed = [path for path in devices if not os.access(path, os.R_OK | os.W_OK)]
    mig = sorted(path.name for path in _glob(root, "proc/driver/nvidia/capabilities/*/mig/*"))
    scheduler = _scheduler(environ)
    facts = {
        "container": container or "none found",
        "WSL": "yes" if wsl else "no",
        "GPUs on the bus": ", ".join(f"{vendor} at {place}" for vendor, place in gpus) or "none",
        "device files": ", ".join(map(str, devices)) or "none",
        "MIG": ", ".join(mig) or "none",
        "job scheduler": _SCHEDULERS[scheduler][0] if scheduler else "none found",
    }
    limits = {name: environ[name] for name in (_CONTAINER_GPUS, *HIDING) if name in environ}
    problems = [
        *(_closed(path) for path in closed),
        *_stubs(environ, root),
        *_missing(container, wsl, environ, gpus, drivers, closed, root),
    ]
    if is_described:
        problems = [each for each in problems if each.code != "container-without-gpu"]
    in_job = any(name in environ for name in _JOBS)
    if scheduler and not in_job and not drivers.vendors and not gpus and not is_described:
        name, command = _SCHEDULERS[scheduler]
        problems.append(
            Problem(
                "login-node",
                f"{name} is here and no GPU is: a login node, whose variants are not those of the "
                "compute nodes. Write a platform file on one of them, and choose for it with "
                "--variant-platform platform.toml",
                command,
                fails=False,
            )
        )
    if mig:
        problems.append(
            Problem(
                "mig",
                "MIG is on: a slice has the compute capability of its GPU, so variants are the "
                "same; its memory is smaller",
                fails=False,
            )
        )
    rows = [*facts.items(), *limits.items()]
    return Part(tuple(rows), tuple(problems), {**facts, "variables": limits})


def _missing(
    container: str,
    wsl: bool,
    environ: Mapping[str, str],
    gpus: list[tuple[str, str]],
    drivers: Drivers,
    closed: list[Path],
    root: Path,
) -> Iterator[Problem]:
    """Yield why a vendor's driver was not found although something speaks for its GPU."""
    if wsl and not (root / "dev/dxg").exists():
        yield Problem(
            "wsl",
            "this is WSL, and /dev/dxg is missing: WSL 1 has no GPUs, and WSL 2 needs a driver "
            "of the GPU on Windows. In PowerShell:",
            "wsl --update; wsl --set-version <distribution> 2",
        )
        return
    wanted = environ.get(_CONTAINER_GPUS, "void").strip()
    asked = wanted not in ("", "void", "none")
    nvidia = [place for vendor, place in gpus if vendor == "NVIDIA"]
    if "NVIDIA" not in drivers.vendors and (nvidia or asked) and not closed:
        why = f"a GPU at {nvidia[0]}" if nvidia else f"{_CONTAINER_GPUS}={wanted}"
        if container and not asked and _CONTAINER_GPUS in environ:
            yield Problem(
                "hidden-gpu",
                f"{_CONTAINER_GPUS}={wanted} keeps the NVIDIA driver out of this container "
                f"({container}), although there is {why}. Start the container with",
                f"docker run --gpus all -e {_CONTAINER_GPUS}=all …",
            )
        elif container:
            yield Problem(
                "container-driver",
                f"this container ({container}) has no NVIDIA driver, although there is {why}: the "
                "driver comes from the host. Install the NVIDIA Container Toolkit there and start "
                "the container with GPUs",
                "docker run --gpus all …",
            )
        elif nvidia:
            yield Problem(
                "driver-missing",
                f"there is {why} and no NVIDIA driver that answers: install it, or load it",
                "sudo modprobe nvidia && nvidia-smi",
            )
    amd = [place for vendor, place in gpus if vendor == "AMD"]
    if "AMD" not in drivers.vendors and amd and not (root / "dev/kfd").exists():
        remedy = "docker run --device=/dev/kfd --device=/dev/dri …"
        yield Problem(
            "amd-driver",
            f"there is an AMD GPU at {amd[0]} and no /dev/kfd: "
            + (
                f"this container ({container}) was started without it"
                if container
                else "the driver amdgpu is not loaded, or the GPU is one without compute"
            ),
            remedy if container else "sudo modprobe amdgpu",
            fails=False,
        )
    if container and not drivers.vendors and not gpus and not asked:
        yield Problem(
            "container-without-gpu",
            f"this container ({container}) sees no GPU. Where an image is built that is usual: "
            "describe the machine that will run it, with this command there, and build with "
            "--variant-platform platform.toml",
            "variants detect -o platform.toml",
            fails=False,
        )


def _stubs(environ: Mapping[str, str], root: Path) -> Iterator[Problem]:
    """Yield folders of the CUDA toolkit whose library is loaded in place of the driver's."""
    folders = [each for each in environ.get(_LIBRARIES, "").split(os.pathsep) if each]
    for folder in folders:
        if Path(folder).name == "stubs" and (root / folder.lstrip("/") / _DRIVER).exists():
            rest = os.pathsep.join(each for each in folders if each != folder)
            yield Problem(
                "stub-driver",
                f"{_LIBRARIES} has {folder}, whose {_DRIVER} is the CUDA toolkit's stub for "
                "linking: it is loaded in place of the driver, and finds no GPU",
                f"export {_LIBRARIES}={shlex.quote(rest)}" if rest else f"unset {_LIBRARIES}",
            )


def _container(environ: Mapping[str, str], root: Path) -> str:
    """Return the kind of container this is in, empty if none is seen."""
    if (root / ".dockerenv").exists():
        return "Docker"
    if (root / "run/.containerenv").exists():
        return "Podman"
    if "APPTAINER_CONTAINER" in environ or "SINGULARITY_CONTAINER" in environ:
        return "Apptainer"
    if "KUBERNETES_SERVICE_HOST" in environ:
        return "Kubernetes"
    for name in ("proc/1/cgroup", "proc/self/mountinfo"):
        text = _text(root / name)
        if name.endswith("mountinfo"):  # with control groups v2 only the layers of the root tell
            text = next((line for line in text.splitlines() if " / / " in line), "")
        if match := _CONTAINERS.search(text):
            return match[0]
    return environ.get("container", "")


def _bus_gpus(root: Path) -> Iterator[tuple[str, str]]:
    """Yield vendor and address of GPUs on the PCI bus."""
    for device in _glob(root, "sys/bus/pci/devices/*"):
        vendor = _VENDORS.get(_text(device / "vendor").strip())
        kind = _text(device / "class").strip()
        if vendor and kind.startswith((_DISPLAY, _ACCELERATOR)):
            yield vendor, device.name


def _devices(root: Path) -> Iterator[Path]:
    for pattern in _FILES:
        yield from _glob(root, f"dev/{pattern}")


def _closed(path: Path) -> Problem:
    try:
        status = path.stat()
        owner = f"owner {status.st_uid}, group {_group(status.st_gid)}"
        group = _group(status.st_gid)
        mode = f"mode {status.st_mode & 0o777:o}"
    except OSError:
        owner, group, mode = "owner unknown", "video", "mode unknown"
    text = (
        f"you may not read and write {path} ({owner}, {mode}), so its driver finds no GPU for you"
    )
    if group in ("root", "0"):
        text += ": ask the administrator for a group that may use it"
        return Problem("permissions", text, f"ls -l {path}")
    text += ": join its group, and log in again"
    return Problem("permissions", text, f'sudo usermod -aG {group} "$USER"')


def _group(number: int) -> str:
    try:
        import grp

        return grp.getgrgid(number).gr_name  # type: ignore[attr-defined,unused-ignore]
    except (ImportError, KeyError):
        return str(number)


def _scheduler(environ: Mapping[str, str]) -> str:
    path = environ.get("PATH")
    return next((name for name in _SCHEDULERS if path and shutil.which(name, path=path)), "")


def _glob(root: Path, pattern: str) -> list[Path]:
    try:
        return sorted(root.glob(pattern))
    except OSError:
        return []


def _text(path: Path) -> str:
    try:
        with path.open(errors="replace") as file:
            return file.read(_SMALL)
    except OSError:
        return ""
