"""Random small worlds for locks: what an index has, a project, and the commands that are typed.

A world is data, made from a seed: its text is Python that makes it again. The projects of its index
have variants, or are published as the projects of a catalogue are; what each requires depends on
the build. `support.lock_play` types the commands.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.utils import canonicalize_name

from .catalog_places import HOST, entry, numbered_entry, place_url, variant
from .index import Index
from .projects import DRIVER, GPU
from .published_builds import Builds, Field, page_path
from .wheels import NVIDIA, PURE, X86_64, SourceDistribution, Wheel, metadata

Tags = tuple[str, ...]
LINUX, ARM = "py3-none-manylinux_2_17_x86_64", "py3-none-manylinux_2_17_aarch64"
MAC, WINDOWS = "py3-none-macosx_11_0_arm64", "py3-none-win_amd64"
PYTHONS = tuple(
    f"cp3{minor}-cp3{minor}-manylinux_2_17_x86_64"
    for minor in sorted({sys.version_info.minor, 12, 13, 14})
)
ON_LINUX: tuple[Tags, ...] = (
    (PURE,),
    (LINUX,),
    (LINUX, ARM),
    PYTHONS,
    (*PYTHONS, WINDOWS),
)
"""Tags of the wheels of a build: one of them fits this machine."""
ELSEWHERE: tuple[Tags, ...] = (
    (),
    (),
    (PURE,),
    (MAC,),
    (MAC, WINDOWS),
    (LINUX, MAC, WINDOWS),
)
"""Tags of plain wheels beside builds."""

MACHINES = {
    "12.8": ({DRIVER: "12.8", GPU: "9.0"}, "cuda=12.8,sm=9.0,cpu=x86-64-v3"),
    "13.0": ({DRIVER: "13.0", GPU: "9.0"}, "cuda=13.0,sm=9.0,cpu=x86-64-v3"),
    "rocm": (
        {
            "AMD_VARIANT_PROVIDER_FORCE_GFX_ARCH": "gfx942",
            "AMD_VARIANT_PROVIDER_FORCE_ROCM_VERSION": "6.4",
        },
        "rocm=6.4,gfx=gfx942,cpu=x86-64-v3",
    ),
    "none": ({}, "cpu=x86-64-v2"),
}
"""Variables with which the machine is detected, and its facts, by name."""

PROPERTIES = {
    "cu126": {"nvidia": {"cuda_version_lower_bound": ["12.6"]}},
    "cu128": {"nvidia": {"cuda_version_lower_bound": ["12.8"]}},
    "cu130": {"nvidia": {"cuda_version_lower_bound": ["13.0"]}},
    "rocm": {"amd": {"gfx_arch": ["gfx942"]}},
    "v3": {"x86_64": {"level": ["v3"]}},
    "null": {},
}
"""What builds need, by label."""
_AMD = {
    "requires": ["amd-variant-provider>=0.0.1,<1.0.0"],
    "plugin-api": "amd_variant_provider.plugin:AMDVariantPlugin",
}
_PROVIDERS = {"nvidia": NVIDIA, "amd": _AMD, "x86_64": X86_64}

NEWER = "uv self update"
"""The command from which on uv is the newest."""
VARIANTS, RENAMED, EXTRA, LOCAL, PLAIN = "variants", "renamed", "extra", "local", "plain"


@dataclass(frozen=True)
class Project:
    """A project of the index.

    Attributes:
        name: normalized.
        kind: of its builds: variant wheels; wheels of another name; extras that require more;
            local versions on a publisher's index; none.
        versions: in ascending order.
        labels: of its builds. Those of a catalogue are for two drivers.
        tags, plain: of builds, and of plain wheels.
        sdist: there is one, with the requirements of a plain wheel.
        markers: METADATA of all variants is one, with variant markers.
        library: what builds require by label: a project with a version for each. Empty for none.
        requires: of every file.
        metadata_files, hashed: of its pages.
        large: builds are too large to be read for their hash.
    """

    name: str
    kind: str = PLAIN
    versions: tuple[str, ...] = ("1.0",)
    labels: tuple[str, ...] = ()
    tags: tuple[str, ...] = (PURE,)
    plain: tuple[str, ...] = ()
    sdist: bool = False
    markers: bool = False
    library: str = ""
    requires: tuple[str, ...] = ()
    metadata_files: bool = True
    hashed: bool = True
    large: bool = False

    @property
    def choices(self) -> tuple[str, ...]:
        """Labels that can be asked for by name."""
        if self.kind == PLAIN:
            return ()
        return self.labels if self.kind in (VARIANTS, LOCAL) else ("cuda12", "cuda13")

    @property
    def files(self) -> dict[str, bytes]:
        """More files of its builds."""
        return {f"{self.name}.bin": bytes(33 * 2**20)} if self.large else {}

    @property
    def pages(self) -> tuple[str, ...]:
        """Projects of the index whose files are its own."""
        if self.kind == RENAMED:
            return self.name, f"{self.name}-cuda12x", f"{self.name}-cuda13x"
        return (self.name,)

    def required(self, label: str) -> tuple[str, ...]:
        """Return what a build requires, the plain one without *label*."""
        return (*self.requires, *([self._of(label)] if self.library else []))

    def _of(self, label: str) -> str:
        if label[:2] == "cu":
            return f"{self.library}=={label[2:4]}.{label[4:]}"
        return f"{self.library}-{label if label in ('rocm', 'v3') else 'cpu'}"

    def wheels(self) -> Iterator[tuple[str, Wheel]]:
        """Yield its wheels, and the URLs of other indexes that have them."""
        for version in self.versions:
            for tag in self.plain:
                files = self.files if self.kind == EXTRA else {}
                yield "", Wheel(self.name, version, None, tag, self.own, None, files, self.extras)
            for label in self.labels:
                for tag in self.tags:
                    yield from self._builds(version, label, tag)

    def _builds(self, version: str, label: str, tag: str) -> Iterator[tuple[str, Wheel]]:
        requires = self.required(label)
        if self.kind == VARIANTS:
            if self.markers and self.library:
                of_labels = ((each, self._of(each)) for each in self.labels)
                marked = (f"{text}; variant_label == '{each}'" for each, text in of_labels)
                requires = (*self.requires, *marked)
            own = {**self.metadata, "variants": {label: PROPERTIES[label]}}
            yield "", Wheel(self.name, version, label, tag, requires, own, self.files)
        elif self.kind == RENAMED:
            name = f"{self.name}-cuda{label[2:4]}x"
            if self.markers:
                requires = tuple(f"{item}; extra == 'ctk'" for item in requires)
            extras = ("ctk",) if self.markers else ()
            yield "", Wheel(name, version, None, tag, requires, None, self.files, extras)
        elif self.kind == LOCAL:
            url = f"{HOST}/whl/{label}/{self.name}/"
            yield url, Wheel(self.name, f"{version}+{label}", None, tag, requires)

    @property
    def extras(self) -> tuple[str, ...]:
        """Extras of plain wheels and sources."""
        return ("cuda12", "cuda13") if self.kind == EXTRA else ()

    @property
    def own(self) -> tuple[str, ...]:
        """What plain wheels and sources require."""
        if self.kind != EXTRA:
            return self.required("")
        more = (f"{self._of(label)}; extra == 'cuda{label[2:4]}'" for label in self.labels)
        return (*self.requires, *(more if self.library else ()))

    @property
    def metadata(self) -> dict[str, object]:
        """The index metadata of each version."""
        variants = {label: PROPERTIES[label] for label in self.labels}
        used = [name for name in _PROVIDERS if any(name in each for each in variants.values())]
        return metadata(
            variants, namespaces=used, providers={name: _PROVIDERS[name] for name in used}
        )

    def libraries(self) -> Iterator[Wheel]:
        """Yield what its builds require."""
        if self.library:
            for version in ("12.6", "12.8", "13.0"):
                yield Wheel(self.library, version)
            for word in ("cpu", "rocm", "v3"):
                yield Wheel(f"{self.library}-{word}", "1.0")


@dataclass(frozen=True)
class World:
    """What there is, and what is typed.

    Attributes:
        projects: of the index, and of the catalogue.
        start: what is required at first: names, or exact versions.
        steps: commands, without what `lock_play` adds in each place. ``at NAME`` goes to another
            machine, ``publish NAME`` puts one more version of a project on the index, `NEWER`
            replaces uv.
        place: ``project``, ``script`` or ``workspace``.
        machine: where the first command is typed.
        ranges: the index serves parts of files.
        library: the machine's driver is a library; else variables stand for it.
        api: form of the index's pages.
    """

    projects: tuple[Project, ...]
    start: tuple[str, ...]
    steps: tuple[str, ...]
    place: str = "project"
    machine: str = "12.8"
    ranges: bool = True
    library: bool = False
    api: str = "json"

    def project(self, name: str) -> Project:
        """Return the project of that name."""
        return next(item for item in self.projects if item.name == name)

    def published(self, name: str) -> World:
        """Return the same with one more version of a project."""
        item = self.project(name)
        more = f"{int(item.versions[-1].split('.')[0]) + 1}.0"
        new = replace(item, versions=(*item.versions, more))
        return replace(self, projects=tuple(new if it == item else it for it in self.projects))

    def field(self) -> Field:
        """Return the index, and the publishers' one."""
        found = Field(Index(ranges=self.ranges, api=self.api), Builds())
        for item in self.projects:
            put(found, item)
        return found

    def write_catalog(self, builds: Builds, folder: Path) -> None:
        """Write the entries of its projects into *folder*."""
        folder.mkdir(exist_ok=True)
        for item in self.projects:
            if item.kind == RENAMED:
                extra = "[ctk]" if item.markers else ""
                text = numbered_entry(item.name, f"{item.name}-cuda{{}}x{extra}=={{{{version}}}}")
            elif item.kind == EXTRA:
                null = '[[variant]]\nlabel = "null"\n'
                text = numbered_entry(item.name, "{{name}}[cuda{}]=={{version}}", null)
            elif item.kind == LOCAL:
                text = _entry_of_places(builds, item)
            else:
                continue
            (folder / f"{item.name}.toml").write_text(text)


_FACTS = {name: facts for name, (_, facts) in MACHINES.items()}
_IDNA = Project("idna", plain=(PURE,))
_BACK = (f"--variant-platform {_FACTS['13.0']} lock", f"--variant-platform {_FACTS['12.8']} lock")
REPORTED = {
    "another name": World(
        (
            Project(
                "cupy", RENAMED, ("13.0", "14.0", "15.0"), ("cu128", "cu130"), (LINUX, WINDOWS),
                (MAC,), sdist=True, markers=True, library="ctk", metadata_files=False,
            ),
            _IDNA,
        ),
        ("cupy==13.0",),
        ("lock", "add idna", *_BACK, "sync"),
    ),
    "large": World(
        (
            Project(
                "cupy", RENAMED, ("14.0",), ("cu128",), (LINUX,), (MAC,), sdist=True,
                library="ctk", large=True,
            ),
            _IDNA,
        ),
        ("cupy",),
        ("lock", "add idna", "sync", "lock --upgrade-package cupy"),
    ),
    "extras": World(
        (
            Project(
                "jax", EXTRA, ("1.0", "2.0"), ("cu128", "cu130"), plain=(PURE,), sdist=True,
                library="plugin",
            ),
            _IDNA,
        ),
        ("jax", "idna"),
        ("lock", *_BACK, "remove idna"),
    ),
    "a library for each driver": World(
        (
            Project(
                "torch", VARIANTS, ("1.0", "2.0"), ("cu128", "cu130", "null"), (LINUX, ARM),
                (MAC,), sdist=True, library="cudalib", requires=("idna",),
            ),
            _IDNA,
        ),
        ("torch",),
        ("lock", *_BACK, "at 13.0", "add idna"),
    ),
    "places": World(
        (
            Project("torch", LOCAL, ("1.0", "2.0"), ("cu126", "cu130"), PYTHONS,
                (*PYTHONS, MAC, WINDOWS), library="cudalib"),
            Project("vision", LOCAL, ("1.0",), ("cu126", "cu130"), PYTHONS,
                (*PYTHONS, MAC), requires=("torch",), metadata_files=False),
            _IDNA,
        ),
        ("vision",),
        ("lock", _BACK[0], "sync"),
    ),
}  # fmt: skip
"""Worlds in which locks were wrong once, or could be, one of each kind."""


def _entry_of_places(builds: Builds, item: Project) -> str:
    tables = [
        variant(
            label,
            f'index = "{place_url(builds, label)}"\nlocal = "{label}"',
            cuda=f"{label[2:4]}.{label[4:]}",
            order=number,
        )
        for number, label in enumerate(sorted(item.labels, reverse=True), 1)
    ]
    return entry(item.name, tables)


def put(field: Field, item: Project) -> None:
    """Put the files of a project on the indexes: those that are not there yet."""
    index, builds = field.index, field.builds
    for url, wheel in item.wheels():
        if url:
            builds.put(url, wheel)
            builds.unhashed |= set() if item.hashed else {page_path(url)}
        else:
            index.add_wheel(wheel, metadata_file=item.metadata_files)
    if item.kind == VARIANTS:
        for version in item.versions:
            name = f"{item.name.replace('-', '_')}-{version}-variants.json"
            index.add(item.name, name, _json(item.metadata))
    if item.sdist:
        for version in item.versions:
            source = SourceDistribution(item.name, version, (), item.own, item.extras)
            index.add(item.name, source.filename, source.build())
    for wheel in item.libraries():
        index.add_wheel(wheel, metadata_file=True)
    if not item.hashed:
        index.unhashed |= set(item.pages)


def _json(tree: object) -> bytes:
    import json

    return json.dumps(tree).encode()


def public_version(filename: str) -> tuple[str, str]:
    """Return name and public version of a file of an index."""
    stem = filename.removesuffix(".tar.gz").removesuffix("-variants.json")
    parts = stem.split("-")
    if filename.endswith(".tar.gz"):
        parts = stem.rsplit("-", 1)
    return str(canonicalize_name(parts[0])), parts[1].partition("+")[0]


def world_of(seed: int) -> World:
    """Return the world that *seed* stands for."""
    found = _Maker(random.Random(seed)).world()
    if seed % 5:
        return found
    middle = len(found.steps) // 2
    return replace(found, steps=(*found.steps[:middle], NEWER, *found.steps[middle:]))


class _Maker:
    """Makes a world by throwing dice."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice

    def chance(self, one_in: int) -> bool:
        """Return True once in so many times."""
        return self.dice.randrange(one_in) == 0

    def world(self) -> World:
        """Return one."""
        dice = self.dice
        kinds = dice.sample((VARIANTS, VARIANTS, RENAMED, EXTRA, LOCAL), dice.randint(1, 3))
        names = dice.sample(("bnb", "cupy", "jax", "onnx", "torch", "vllm"), len(kinds))
        plain = tuple(
            Project(name, plain=(PURE,)) for name in dice.sample(("aaa", "idna", "zzz"), 2)
        )
        projects: tuple[Project, ...] = plain
        for name, kind in zip(names, kinds, strict=True):
            projects = (*projects, self.project(name, kind, [item.name for item in projects]))
        start = [
            f"{item.name}=={item.versions[0]}" if self.chance(4) else item.name
            for item in dice.sample(projects, dice.randint(1, len(projects)))
        ]
        place = dice.choice(("project", "project", "project", "script", "workspace"))
        machine = dice.choice(tuple(MACHINES))
        ranges, library = not self.chance(3), self.chance(4)
        api = "html" if self.chance(4) else "json"
        found = World(projects, tuple(start), (), place, machine, ranges, library, api)
        return replace(found, steps=("lock", *self.steps(found)))

    def project(self, name: str, kind: str, others: list[str]) -> Project:
        """Return a project with builds."""
        dice = self.dice
        versions = tuple(f"{number}.0" for number in range(1, dice.choice((1, 1, 2, 4)) + 1))
        labels: tuple[str, ...] = ("cu128", "cu130")
        tags: tuple[str, ...] = dice.choice(ON_LINUX)
        plain: tuple[str, ...] = dice.choice(ELSEWHERE)
        if kind == VARIANTS:
            known = list(PROPERTIES)[:-1]
            chosen = dice.sample(known, dice.randint(1, 4))
            labels = tuple(label for label in known if label in chosen)
            labels += ("null",) if dice.randrange(4) else ()
        elif kind == LOCAL:
            labels = dice.choice((("cu126",), labels, ("cu126", "cu130")))
            plain = dice.choice(((PURE,), (LINUX, MAC), (*PYTHONS, MAC, WINDOWS)))
        elif kind == EXTRA:
            plain = dice.choice(((PURE,), (LINUX, MAC, WINDOWS), PYTHONS))
        library = f"{dice.choice(('a-', ''))}{name}-lib"
        return Project(
            name,
            kind,
            versions,
            labels,
            tags,
            plain,
            sdist=kind == RENAMED or not self.chance(3),
            markers=bool(dice.randrange(2)),
            library=library if dice.randrange(5) else "",
            requires=tuple(dice.sample(others, dice.randint(0, min(2, len(others))))),
            metadata_files=bool(dice.randrange(3)),
            hashed=bool(dice.randrange(4)),
        )

    def steps(self, world: World) -> Iterator[str]:
        """Yield commands."""
        dice = self.dice
        names = [item.name for item in world.projects]
        required = {text.partition("=")[0] for text in world.start}
        here = locked_for = world.machine
        groups = dict.fromkeys(required, "")
        for _ in range(dice.randint(3, 6)):
            kind = dice.randrange(14)
            if kind < 3:
                name = dice.choice(sorted(set(names) - required) or names)
                group = groups.setdefault(name, "" if dice.randrange(5) else " --dev")
                required.add(name)
                exact = f"=={world.project(name).versions[0]}" * self.chance(4)
                yield f"add{group} {name}{exact}"
            elif kind == 3 and len(required) > 1:
                name = dice.choice(sorted(required))
                required.remove(name)
                yield f"remove{groups.pop(name)} {name}"
            elif kind == 4:
                command = dice.choice(("lock", "lock", "sync"))
                yield f"{command} --upgrade-package {dice.choice(names)}"
            elif kind == 5:
                yield dice.choice(("lock --upgrade", "lock --upgrade", "sync --upgrade"))
            elif kind == 6:
                yield dice.choice(("lock", "sync", "run python -c 0", "tree", "export"))
            elif kind < 9:
                name = dice.choice(tuple(MACHINES))
                locked_for = f"for {name}"
                yield f"--variant-platform {MACHINES[name][1]} lock"
            elif kind == 9:
                here = dice.choice(tuple(MACHINES))
                yield f"at {here}"
                if dice.randrange(2):
                    locked_for = here
                    yield "--variant-platform native lock"
            elif kind == 10:
                choices = [
                    f"{name}={label}"
                    for name in sorted(required)
                    for label in world.project(name).choices
                ]
                if choices and here == locked_for:
                    yield f"--variant {dice.choice(choices)} lock"
            elif kind == 11:
                option = ("switch", "exclude nvidia")[dice.randrange(2)]
                yield dice.choice((f"--variant-{option} lock", "--no-variants lock"))
            elif kind == 12:
                yield "version --bump minor"
            else:
                yield f"publish {dice.choice(names)}"
