"""Surroundings of the drivers: container, WSL, job scheduler, GPUs on the bus, device files.

Detection asks drivers. Where none answers, `Surroundings` tells whether there is no accelerator, or
whether it is merely invisible: on a login node, in a container that was started without GPUs, after
a driver was replaced and before the reboot. `why_invisible` says which.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from .registry import ACCELERATORS, BUILTIN_NAMESPACES

_CLASSES = ("0x03", "0x12")
"""Classes of PCI devices that are GPUs: display controllers and accelerators."""

_SCHEDULERS = {"sbatch": "Slurm", "qsub": "PBS", "bsub": "LSF"}
_JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID")
_SMALL = 1 << 16


class Surroundings(NamedTuple):
    """Facts about a machine in ``/proc``, ``/sys``, ``/dev`` and environment variables.

    Attributes:
        container: its kind, ``Docker`` or another one; empty outside.
        wsl: whether this is Linux on Windows.
        gpus: vendor and address of each GPU on the PCI bus, of vendors with a built-in provider.
        devices: device files of accelerators.
        closed: those of `devices` that the user may not read and write.
        scheduler: a job scheduler whose commands are on ``PATH``; empty without one.
        in_job: whether this process is part of one of its jobs.
        hiding: variables that hide accelerators from programs, with their values.
    """

    container: str
    wsl: bool
    gpus: tuple[tuple[str, str], ...]
    devices: tuple[Path, ...]
    closed: tuple[Path, ...]
    scheduler: str
    in_job: bool
    hiding: Mapping[str, str]

    @classmethod
    def of(cls, environ: Mapping[str, str], root: Path = Path("/")) -> Surroundings:
        """Look at *environ*, and at the file system below *root*."""
        vendors = [BUILTIN_NAMESPACES[name].vendor for name in ACCELERATORS]
        pci = {vendor.pci: vendor.title for vendor in vendors if vendor.pci}
        patterns = dict.fromkeys(node for vendor in vendors for node in vendor.nodes)
        devices = tuple(path for pattern in patterns for path in _glob(root, f"dev/{pattern}"))
        path = environ.get("PATH")
        commands = (name for name in _SCHEDULERS if path and shutil.which(name, path=path))
        hiding = dict.fromkeys(name for vendor in vendors for name in vendor.hidden_by)
        return cls(
            _container(environ, root),
            "microsoft" in _text(root / "proc/sys/kernel/osrelease").lower(),
            tuple(_bus_gpus(root, pci)),
            devices,
            tuple(path for path in devices if not os.access(path, os.R_OK | os.W_OK)),
            _SCHEDULERS.get(next(commands, ""), ""),
            any(name in environ for name in _JOBS),
            {name: environ[name] for name in hiding if name in environ},
        )


def why_invisible(found: Surroundings, namespace: str) -> str:
    """Return why there may be an accelerator that detection does not see, as a clause; else empty.

    To be asked where detection finds nothing of *namespace*, such as ``nvidia``.
    """
    if namespace not in ACCELERATORS:
        return ""
    vendor = BUILTIN_NAMESPACES[namespace].vendor
    # Every GPU with a screen has a file in dri.
    nodes = [node for node in vendor.nodes if not node.startswith("dri/")]
    devices = [path for path in found.devices if any(path.match(f"dev/{node}") for node in nodes)]
    closed = [path for path in devices if path in found.closed]
    hidden = [name for name in vendor.hidden_by if name in found.hiding]
    place = next((place for title, place in found.gpus if title == vendor.title), "")
    where = f"in this container ({found.container})" if found.container else "here"
    if closed:
        return f"you may not read and write {closed[0]}"
    if hidden and vendor.heeds_hiding:
        return f"{hidden[0]}={found.hiding[hidden[0]]} hides GPUs"
    if place:
        return f"there is a GPU at {place}, and no {vendor.title} driver answers {where}"
    if devices:
        return f"{devices[0]} is there, and no {vendor.title} driver answers {where}"
    if found.wsl:
        return "this is WSL, where the driver of Windows shows the GPU"
    if found.container:
        return f"this container ({found.container}) sees no GPU"
    if found.scheduler and not found.in_job:
        return f"this is a login node of {found.scheduler}"
    return ""


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
    return environ.get("container", "")


def _bus_gpus(root: Path, pci: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for device in _glob(root, "sys/bus/pci/devices/*"):
        vendor = pci.get(_text(device / "vendor").strip())
        if vendor and _text(device / "class").startswith(_CLASSES):
            yield vendor, device.name


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
