"""Where this runs: container, WSL, login node; GPUs on the bus, MIG, rights on device files."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from .drivers import VENDORS, Drivers
from .findings import Part, Problem
from .machine import HIDING

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
    gpus = list(_gpus(root))
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


def _gpus(root: Path) -> Iterator[tuple[str, str]]:
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
