"""This machine: accelerators that detection finds or that are hidden, and its surroundings.

The surroundings are container, WSL, login node, GPUs on the bus, and rights on device files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pep_variants.internal import (
    ACCELERATORS,
    BUILTIN_NAMESPACES,
    Examined,
    Surroundings,
    examine_host,
    why_invisible,
)

from .findings import Part, Problem

if TYPE_CHECKING:
    from pep_variants.internal import Features


VENDORS = {name: BUILTIN_NAMESPACES[name].vendor for name in ACCELERATORS}
"""Vendors of accelerators by namespace."""

HIDING = tuple(dict.fromkeys(name for each in VENDORS.values() for name in each.hidden_by))
"""Variables that hide GPUs from programs."""

_NOTHING = ("", "-1", "none", "void", "nodevfiles")
"""Values that hide all GPUs."""

_REMEDIES = {
    "NVIDIA": ("docker run --gpus all …", "sudo modprobe nvidia && nvidia-smi"),
    "AMD": ("docker run --device=/dev/kfd --device=/dev/dri …", "sudo modprobe amdgpu"),
}
"""What brings a vendor's driver into a container, and what loads it."""

_SHOWN = ("NVIDIA_VISIBLE_DEVICES", *HIDING)
_DETECT = "variants detect -o platform.toml"


class Drivers(NamedTuple):
    """What detection found of accelerators.

    Attributes:
        vendors: those with a driver or GPU, ascending.
        cuda: newest CUDA version of NVIDIA's driver, None without one.
        features: what is supported, by namespace.
    """

    vendors: tuple[str, ...] = ()
    cuda: tuple[int, int] | None = None
    features: Mapping[str, Features] = {}

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
        return cls(tuple(sorted(found)), cuda, features)


def machine_part(environ: Mapping[str, str], root: Path) -> tuple[Part, Drivers]:
    """Return what every built-in provider says of this machine, and the drivers among it.

    Args:
        environ: environment variables.
        root: of the file system.
    """
    found = real = examine_host(environ, root)
    names = {fact.source for each in found.values() for fact in each.support.facts if fact.forced}
    names.update(HIDING)
    if names & environ.keys():
        real = examine_host({key: environ[key] for key in environ.keys() - names}, root)
    rows: list[tuple[str, str]] = []
    problems: list[Problem] = []
    for namespace, examined in found.items():
        rows += ((namespace, text) for text in _texts(examined))
        problems += _problems(namespace, examined, environ)
        problems += _overridden(examined, real[namespace])
        if namespace in VENDORS:
            problems += _hidden(namespace, examined, real[namespace], environ)
    is_blind = any(each.fails and each.code in ("driver", "hidden-gpu") for each in problems)
    return Part(tuple(rows), tuple(problems), is_blind=is_blind), Drivers.of(found)


def _texts(examined: Examined) -> list[str]:
    texts = [
        f"{fact.what} {fact.value}, {'forced by' if fact.forced else 'from'} {fact.source}"
        for fact in examined.support.facts
    ]
    if examined.support.notice:
        texts.append(examined.support.notice)
    texts += (f"tried {attempt.place}: {attempt.answer}" for attempt in examined.attempts)
    texts += (f"warning: {text}" for text in examined.warnings)
    return texts or ["forced by no variable, and nothing was tried"]


def _problems(namespace: str, examined: Examined, environ: Mapping[str, str]) -> Iterator[Problem]:
    for text in examined.warnings:
        yield Problem("driver", f"{namespace}: {text}")
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
        text = f"{variable} says that {what} is {', '.join(values)}; without it detection finds "
        text += f"{', '.join(detected) or 'none'} here"
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
    container, scheduler, gpus = found.container, found.scheduler, list(found.gpus)
    facts = {
        "container": container or "none found",
        "WSL": "yes" if found.wsl else "no",
        "GPUs on the bus": ", ".join(f"{vendor} at {place}" for vendor, place in gpus) or "none",
        "device files": ", ".join(map(str, found.devices)) or "none",
        "job scheduler": scheduler or "none found",
        **{name: environ[name] for name in _SHOWN if name in environ},
    }
    problems = [
        Problem(
            "permissions",
            f"you may not read and write {path} ({_owner(path)}), so its driver finds no GPU for "
            "you: join its group, and log in again",
            f"ls -l {path}",
        )
        for path in found.closed
    ]
    if found.wsl and not (root / "dev/dxg").exists():
        text = (
            "this is WSL, and /dev/dxg is missing: WSL 1 has no GPUs, and WSL 2 needs a driver of "
            "the GPU on Windows. In PowerShell:"
        )
        problems.append(Problem("wsl", text, "wsl --update; wsl --set-version <distribution> 2"))
    elif not found.closed:
        problems += _without_driver(gpus, drivers, container)
    if not drivers.vendors and not gpus and not is_described:
        if container:
            text = (
                f"this container ({container}) sees no GPU. Where an image is built that is usual: "
                "describe the machine that will run it, with this command there, and build with "
                "--variant-platform platform.toml"
            )
            problems.append(Problem("container-without-gpu", text, _DETECT, fails=False))
        if scheduler and not found.in_job:
            text = (
                f"{scheduler} is here and no GPU is: a login node, whose variants are not those of "
                "the compute nodes. Write a platform file in a job on one of them, and choose for "
                "it with --variant-platform platform.toml"
            )
            problems.append(Problem("login-node", text, _DETECT, fails=False))
    is_blind = not is_described and (
        any(problem.fails for problem in problems)
        or (not drivers.vendors and any(why_invisible(found, name) for name in VENDORS))
    )
    return Part(tuple(facts.items()), tuple(problems), is_blind=is_blind)


def _without_driver(
    gpus: list[tuple[str, str]], drivers: Drivers, container: str
) -> Iterator[Problem]:
    """Yield the vendors whose GPU is on the bus, and whose driver detection did not find."""
    for vendor, place in dict(reversed(gpus)).items():
        if vendor in drivers.vendors or vendor not in _REMEDIES:
            continue
        start, load = _REMEDIES[vendor]
        fails = vendor == "NVIDIA"  # GPUs in AMD's CPUs do not compute
        if container:
            text = (
                f"this container ({container}) has no {vendor} driver, although there is a GPU at "
                f"{place}: the driver comes from the host. Start the container with GPUs"
            )
            text += ", which takes the NVIDIA Container Toolkit there" if fails else ""
            yield Problem("container-driver", text, start, fails=fails)
        else:
            text = f"there is a GPU at {place} and no {vendor} driver that answers: load it"
            yield Problem("driver-missing", f"{text}, or install it", load, fails=fails)


def _owner(path: Path) -> str:
    try:
        status = path.stat()
    except OSError:
        return "owner unknown"
    return f"owner {status.st_uid}, group {status.st_gid}, mode {status.st_mode & 0o777:o}"
