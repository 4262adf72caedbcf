"""Random states: what is installed, a machine and requirements, each from a seed.

Where an upgrade and a switch of everything are asked for, the end is that of the same requirements
in an empty environment. Where what is installed meets them all, an installation changes nothing;
where it does not, they are met afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from .case import Case
from .place import prepared
from .runners.base import Runner
from .states import played, text_of

_SCHEMA = "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json"
_CUDA = ("12.6", "12.8", "13.0")
_DRIVERS = ((), ("12.6",), ("12.8", "12.6"), ("13.0", "12.8", "12.6"))
_INSTALLERS = ("pip", "uv", "pip-with-shim", "uv-variants")
_REQUIRES = {"ext": ("lib",), "vision": ("gpu",), "app": ("vision", "lib")}
_CLOSURES = {
    "ext": ("ext", "lib"),
    "vision": ("vision", "gpu"),
    "app": ("app", "vision", "gpu", "lib"),
}
_OPTIONS = {"variant-before-version": [":all:"]}
"""Without it an upgrade goes to the newest release, a switch to one that uses the accelerator."""

Properties = Mapping[str, Mapping[str, Sequence[str]]]


@dataclass(frozen=True)
class RandomState:
    """A random state.

    Attributes:
        tree: a case without steps.
        wanted: requirements on some projects, and on all that these require.
        against: releases of lib that builds of ext are built against, by version and label.
        seed: of it.
    """

    tree: Mapping[str, Any]
    wanted: Sequence[str]
    against: Mapping[str, Sequence[str]]
    seed: int

    @property
    def installed(self) -> Mapping[str, str]:
        """What is installed before, as `Outcome` has it."""
        return {item["project"]: text_of(item) for item in self.tree["installed"]}

    def is_met(self, installed: Mapping[str, str]) -> bool:
        """Return whether what is *installed* meets what is wanted, and goes together."""
        versions = {name: text.partition("-")[0] for name, text in installed.items()}
        pins = (text.partition("==")[::2] for text in self.wanted)
        releases = self.against.get(installed.get("ext", ""), ())
        return all(name in versions and pin in ("", versions[name]) for name, pin in pins) and (
            not releases or any(versions.get("lib", "").startswith(each) for each in releases)
        )

    def end(self, runner: Runner, do: str, **more: Any) -> tuple[bool, Mapping[str, str], str]:  # noqa: ANN401
        """Return how a command ends: whether it fails, what is installed, what was printed.

        Args:
            runner: plays it.
            do: the command.
            more: fields of the case that are other.
        """
        options = {"variant-switch": True} if do == "upgrade" else {}
        step = {"do": do, "what": self.wanted, "options": {**_OPTIONS, **options}}
        case = Case(f"random-{self.seed}", {**self.tree, **more, "steps": [step]})
        with prepared(case) as place:
            (result,) = played(runner, case, place)
        return bool(result.done.code), result.installed, result.done.output


def random_state(seed: int, *, abi: bool) -> RandomState:
    """Return the state of *seed*, with builds against releases of another project if *abi*."""
    random = Random(f"{seed} {abi}")
    index: list[dict[str, Any]] = []
    files: dict[str, list[tuple[str, str, Properties]]] = {}

    def add(name: str, version: str, variants: Mapping[str, Properties]) -> None:
        requires = list(_REQUIRES.get(name, ()))
        if variants:
            content = {"$schema": _SCHEMA, "default-priorities": {"namespace": ["nvidia"]}}
            document = f"{name}-{version}-variants.json"
            index.append({"document": document, "content": {**content, "variants": variants}})
        for label, properties in variants.items() or [("", {})]:
            ending = f"-{label}" if label else ""
            filename = f"{name}-{version}-py3-none-any{ending}.whl"
            index.append({"wheel": filename, "requires": requires})
            files.setdefault(name, []).append((version, label, properties))

    for version in ("1.0", "1.1", "2.0"):
        add("lib", version, {})
    for version in random.sample(("1.0", "1.1", "2.0"), 2):
        add("gpu", version, _variants(random, _CUDA, "nvidia", "cuda_version_lower_bound"))
    for name in ("vision", "app"):
        add(name, "1.0", {})
    if abi:
        for version in ("0.9", "1.0"):
            add("ext", version, _variants(random, ("1", "1.1", "2"), "abi_dependency", "lib"))
    named = random.sample([*(["ext"] if abi else []), "gpu", "vision", "app"], random.randint(1, 2))
    names = sorted({each for name in named for each in _CLOSURES.get(name, (name,))})
    random.shuffle(names)
    # With a build against another release it counts which of the two is named first.
    names.sort(key=lambda name: name != "lib")
    pins = dict.fromkeys(names, "")
    if random.random() < 0.4:
        name = random.choice([name for name in names if name in ("lib", "gpu")])
        pins[name] = random.choice(files[name])[0]
    there = {name: random.choice(files[name]) for name in names}
    if random.random() < 0.3:  # nothing requires what is left out
        there.pop(named[0])
    machine = {"nvidia": {"cuda_version_lower_bound": list(random.choice(_DRIVERS))}}
    by = random.choice(_INSTALLERS)
    tree = {
        "machine": machine if machine["nvidia"]["cuda_version_lower_bound"] else {},
        "index": index,
        "installed": [
            {"project": name, "version": version, "by": by, **({"label": label} if label else {})}
            for name, (version, label, _) in there.items()
        ],
    }
    against = {
        f"{version}-{label}": properties.get("abi_dependency", {}).get("lib", ())
        for version, label, properties in files.get("ext", ())
    }
    wanted = [f"{name}=={pin}" if pin else name for name, pin in pins.items()]
    return RandomState(tree, wanted, against, seed)


def _variants(random: Random, values: Sequence[str], *place: str) -> dict[str, Properties]:
    namespace, feature = place
    found: dict[str, Properties] = {
        f"{namespace[0]}{value.replace('.', '')}": {namespace: {feature: [value]}}
        for value in sorted(random.sample(values, random.randint(1, 2)))
    }
    return {**found, "null": {}} if random.random() < 0.7 else found
