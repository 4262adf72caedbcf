"""The questions of the page for people, and the machine that they describe.

People name a GPU and perhaps its driver; a machine is a known platform, or what a key says, where
one is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote

from pep_variants import machines
from pep_variants.errors import shortened, some
from pep_variants.machines import KnownDriver, KnownGpu

from .._key import Machine, decode
from ..errors import InvalidKey

SYSTEMS = {
    "": "any",
    "linux": "Linux",
    "linux-aarch64": "Linux, 64-bit Arm",
    "win": "Windows",
    "macosx": "macOS",
}
"""Operating systems of the form: `Machine.target`, or how one begins."""
_SITE_SYSTEMS = {"linux-arm": "linux-aarch64", "windows": "win", "macos": "macosx"}
"""Those that links to the selector of the documentation call otherwise."""
PYTHONS = ("", "3.10", "3.11", "3.12", "3.13", "3.14")
"""Versions of Python of the form, empty for any."""
GPUS: dict[str, list[KnownGpu]] = {}
"""GPUs of the form by title; a machine without one has a row for each processor."""
for _gpu in machines.KNOWN_GPUS:
    GPUS.setdefault("No GPU" if _gpu.name == "none" else _gpu.name, []).append(_gpu)
_KINDS = {"nvidia": "NVIDIA", "jetson": "Jetson", "amd": "AMD ROCm"}
DRIVERS = {
    title: {each.name: each.title for each in reversed(machines.KNOWN_DRIVERS) if each.kind == kind}
    for kind, title in _KINDS.items()
}
"""Names of drivers of the form with their titles, newest first, by kind."""

_TARGETS = {
    "linux-x86_64": ("linux-x86_64", "Linux on x86-64"),
    "linux-aarch64": ("linux-aarch64", "Linux on 64-bit Arm"),
    "windows-x86_64": ("win-x86_64", "Windows"),
    "macos-arm64": ("macosx-aarch64", "macOS"),
}
"""Targets by the systems of a `KnownGpu`, with their titles."""
_KEY_IN_URL = re.compile(r"https?://(?:([^/:@]+)(?::[^/@]*)?@[^/]*/.*|[^/]*/p/([^/]+)/.*)")
_PROJECTS = 8
_NAMES = 6


@dataclass(frozen=True)
class Question:
    """Fields of the form, as a person filled them in.

    Attributes:
        installer: a name, checked by who has the lines.
        project: names of projects, as typed.
        gpu: name of a GPU, as typed.
        driver: one of `DRIVERS`, empty for an unknown one.
        platform: name of a platform of the proxy in place of a GPU, empty for none.
        key: platform key or URL as pasted, in place of both.
        system: one of `SYSTEMS`.
        python: one of `PYTHONS`.
    """

    installer: str
    project: str
    gpu: str
    driver: str
    platform: str
    key: str
    system: str
    python: str

    @property
    def projects(self) -> Sequence[str]:
        """The names of the projects."""
        return re.split(r"[\s,+]+", self.project)[:_PROJECTS]

    def described(self) -> Described:
        """Return the machine of the question.

        Raises:
            InvalidKey: nothing says which, or what is said is not known.
        """
        if self.key:
            found = _KEY_IN_URL.fullmatch(self.key)
            machine = decode(unquote(found[1] or found[2]) if found else self.key)
        elif self.platform:
            machine = Machine(name=self.platform)
        elif self.gpu:
            return self._with_gpu()
        else:
            raise InvalidKey(
                "choose a GPU or a platform, or paste what 'variants-proxy url' prints there"
            )
        return Described(replace(machine, python=machine.python or self.python))

    def _with_gpu(self) -> Described:
        gpus = named_gpus(self.gpu)
        for gpu in gpus:
            for target, system in map(_TARGETS.__getitem__, gpu.systems):
                if target.startswith(self.system):
                    driver, warning = _driver(gpu, self.driver)
                    parts = (_title(gpu), driver and _driver_title(driver), system)
                    machine = Machine(name=gpu.machine(driver), target=target, python=self.python)
                    return Described(machine, ", ".join(filter(None, parts)), warning)
        raise InvalidKey(f"{_title(gpus[0])} is not known with {SYSTEMS[self.system]}")


@dataclass(frozen=True)
class Described:
    """A machine that a question describes.

    Attributes:
        machine: for a platform key.
        title: its GPU and driver, empty if it was not described by them.
        warning: what a person has to look up, empty for nothing.
    """

    machine: Machine
    title: str = ""
    warning: str = ""


def read_question(query: Mapping[str, str]) -> Question:
    """Read the query of a request; what the form does not have is left out."""
    system, python = query.get("system", ""), query.get("python", "")
    system = _SITE_SYSTEMS.get(system, system)
    return Question(
        query.get("installer", ""),
        query.get("project", "").strip()[:201],
        query.get("gpu", "").strip()[:100],
        query.get("driver", "")[:20],
        query.get("platform", "")[:100],
        query.get("key", "").strip()[:8192],
        system if system in SYSTEMS else "",
        python if python in PYTHONS else "",
    )


def named_gpus(text: str) -> list[KnownGpu]:
    """Return the GPU that a person calls *text*: its rows, of different systems.

    The last words of a name are enough: ``4090``, ``rtx 3060``, which is no ``RTX 3060 Ti``.

    Raises:
        InvalidKey: there is none, or several.
    """
    words = _words("No GPU" if text == "none" else text)
    known = {title: _words(title) for title in GPUS}
    ends = [title for title, name in known.items() if name[-len(words) :] == words]
    among = ends or [title for title, name in known.items() if {*words} <= {*name}]
    if len(among) == 1:
        return GPUS[among[0]]
    numbers = {word for word in words if any(map(str.isdigit, word))}
    close = among or [title for title, name in known.items() if numbers & {*name}]
    meant = f"did you mean {some(close, _NAMES)}?" if close else "choose a platform, or paste a key"
    raise InvalidKey(f"no GPU is known as {shortened(text)}: {meant}")


def how_to_see() -> Iterator[tuple[str, str]]:
    """Yield each kind of drivers with the command that shows which one there is."""
    for kind, title in _KINDS.items():
        yield title, next(iter(machines.SEEN_BY[kind].values()))


def _driver(gpu: KnownGpu, name: str) -> tuple[KnownDriver | None, str]:
    """Return the driver called *name*, or the assumed one with a warning if it is empty."""
    known = {driver.name: driver for driver in gpu.known_drivers()}
    if name and name not in known:
        names = [*known]
        which = f"has one of {names[0]} to {names[-1]}" if names else "has none of these drivers"
        raise InvalidKey(f"{_title(gpu)} {which}, not {shortened(name)}")
    newest = gpu.assumed_driver()
    if name or newest is None:
        return known.get(name), ""
    command = next(iter(machines.SEEN_BY[gpu.drivers].values()))
    return newest, (
        f"This is for {_driver_title(newest)}, the newest that this GPU can have. With an older "
        f"one another build may be right: {command} shows yours."
    )


def _driver_title(driver: KnownDriver) -> str:
    return f"driver {driver.title}" if driver.kind == "nvidia" else driver.title


def _title(gpu: KnownGpu) -> str:
    return next(title for title, rows in GPUS.items() if gpu in rows)


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.casefold())
