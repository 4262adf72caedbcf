"""Entries of the catalogue, and the variant wheels that they make of published files.

A published file is known under a *labelled name*: a file ``torch-2.9.0+cu128-cp312-….whl`` of the
index that an entry calls ``cuda12.8`` counts as ``torch-2.9.0-cp312-…-cuda12.8.whl``. Whatever
chooses among variant wheels chooses among these; what is fetched, locked and installed is the
published file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from pep_variants import labels as wheel_labels
from pep_variants import limits, machines, wheel_files
from pep_variants import metadata as variant_metadata
from pep_variants.metadata import Features, Metadata, Properties, Property, ProviderInfo

__all__ = [
    "CatalogProject", "CatalogVariant", "Fault", "Measured", "PublishedFile", "basis", "filled",
    "platform_kind", "same_files", "target",
]  # fmt: skip

PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_NUMBER = r"[0-9]+(?:\.[0-9]+)*"
_SYSTEM = re.compile(r"^(?:(?:many|musl)?linux[0-9]*(?:_[0-9]+_[0-9]+)?|(macosx)_[0-9]+_[0-9]+)_")
_SM_ARCH = re.compile(r"([0-9]+)([0-9])[af]?_(?:real|virtual)")
_PARTS = 5
"""Parts of a wheel's filename without build tag and label."""


@dataclass(frozen=True)
class Measured:
    """A wheel whose GPU code was read to write the properties of a variant.

    Attributes:
        file: its filename.
        sha256: hexadecimal.
        date: day on which it was read, ISO 8601.
    """

    file: str
    sha256: str
    date: str


@dataclass(frozen=True)
class Fault:
    """A known fault of builds on a GPU that they have code for.

    Attributes:
        gpu: compute capability, ``12.0``, or all of a generation, ``12.*``; or an AMD
            architecture, ``gfx1151``.
        versions: public versions that have it.
        source: URL of the publisher's issue.
    """

    gpu: str
    versions: SpecifierSet
    source: str

    def __str__(self) -> str:
        kind = "" if self.gpu.startswith("gfx") else "compute capability "
        return f"has a known fault on {kind}{self.gpu}: {self.source}"

    def without(self, item: Property) -> Property:
        """Return what a build has in place of *item*: the same if that admits no such GPU.

        Otherwise it is a value that no machine has, or, of one compute capability, the code of
        the next one, as newer GPUs of the generation have no fault. Older ones go with it: they
        run the same code.
        """
        generation, _, minor = self.gpu.partition(".")
        code = _SM_ARCH.fullmatch(item.value) if item.feature == "sm_arch" else None
        if code is not None:
            is_hit = code[1] == generation and (minor == "*" or code[2] <= minor)
        else:
            is_hit = item.feature == "gfx_arch" and item.value == self.gpu
        if not is_hit:
            return item
        newer = f"{generation}{int(minor) + 1}_real" if minor.isdecimal() and minor < "9" else ""
        return item._replace(value=newer or f"{item.value}_broken")


@dataclass(frozen=True)
class PublishedFile:
    """A published wheel as a variant wheel.

    Attributes:
        filename: its labelled name.
        published: filename of the wheel that is fetched, the publisher's own.
        version: public version.
        label: variant label.
        properties: of the label; empty for the null variant.
        requires: requirements that the catalogue adds to those of the wheel; one that names the
            wheel's own project stands for the dependencies of its extras.
        origin: normalized name that the publisher gave the wheel, if it is not the project's; it
            is installed under the project's name, see `rewriting`.
        measured: as of `CatalogVariant`.
        faults: as of `Metadata`, of the label.
    """

    filename: str
    published: str
    version: Version
    label: str
    properties: Properties
    requires: tuple[str, ...] = ()
    origin: str = ""
    measured: tuple[Measured, ...] = ()
    faults: Mapping[Property, str] = field(default_factory=dict)

    @property
    def published_version(self) -> str:
        """Version as published, with its local part."""
        return self.published.split("-", 2)[1].replace("_", "-")

    @property
    def kinds(self) -> frozenset[str]:
        """The `platform_kind` of its platform tags: other platforms may have other properties."""
        return frozenset(map(platform_kind, self.filename.rsplit("-", 2)[1].split(".")))

    @property
    def is_rewritten(self) -> bool:
        """Whether the wheel that is installed differs from the publisher's."""
        return bool(self.requires or self.origin)


@dataclass(frozen=True)
class CatalogVariant:
    """One ``[[variant]]`` table.

    Attributes:
        label: variant label; may hold placeholders of `local`.
        index: index that has the files, without a slash at the end; None for another kind. One
            without index, links and requirements is of the project's own files.
        links: find-links page that has the files; None for another kind.
        local: templates of the local versions that mark the files, an empty one for files
            without local version; None for any.
        versions: public versions that it is about.
        requires: templates of the requirements that stand for the variant, ``{version}`` for the
            version. Of one with a place they are added to those of its files.
        properties: templates of properties.
        platforms: platform tags of the machines that it is for, empty for all. A file for any
            platform counts as one for these.
        measured: wheels that the properties were read from; without any, they are as the
            documentation and the sources of the entry say.
        broken: known faults.
        number: of its table in the entry, from 1.
        family: label of its table as written, if that has ``for-each``: such tables of one label
            make several variants of the same files.
    """

    label: str
    index: str | None = None
    links: str | None = None
    local: tuple[str, ...] | None = None
    versions: SpecifierSet = field(default_factory=SpecifierSet)
    requires: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    measured: tuple[Measured, ...] = ()
    broken: tuple[Fault, ...] = ()
    number: int = 0
    family: str = ""

    def is_beside(self, other: CatalogVariant) -> bool:
        """Return whether a file can be this variant and *other*."""
        return self.number == other.number or (self.family != "" and self.family == other.family)

    @property
    def place(self) -> str | None:
        """URL of the index or find-links page, None for a variant that has neither."""
        return self.index or self.links

    @property
    def is_redirect(self) -> bool:
        """Whether its files are those of another name, or the project's own with an extra."""
        return bool(self.requires) and self.place is None

    def is_for(self, platforms: Iterable[str]) -> bool:
        """Return whether it is for a machine with one of the tags *platforms*; none are all."""
        kinds = set(map(platform_kind, platforms))
        return not (kinds and self.platforms) or not kinds.isdisjoint(
            map(platform_kind, self.platforms)
        )

    @property
    def is_own_null(self) -> bool:
        """Whether it says no more than that the project's own wheels are for everyone."""
        is_null = self.label == wheel_labels.NULL_LABEL
        return is_null and self.place is None and not self.requires

    def admits(self, version: Version) -> bool:
        """Return whether it is about the public part of *version*, pre-releases included."""
        return self._admits(version)

    @cached_property
    def _admits(self) -> Callable[[Version], bool]:
        return _admission(self.versions)

    def placeholders(self, version: Version) -> Mapping[str, str] | None:
        """Return the values of placeholders in the local part of *version*.

        None if the local part is not one that marks the files.
        """
        if self.local is None:
            return {}
        for pattern in self._patterns:
            if match := pattern.fullmatch(version.local or ""):
                return match.groupdict()
        return None

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str], ...]:
        return tuple(map(_pattern, self.local or ()))

    def properties_of(
        self, values: Mapping[str, str], version: Version | None = None
    ) -> dict[str, Features]:
        """Return the properties, with the *values* of placeholders.

        GPUs on which *version* has a known fault are none that it is for.
        """
        faults = tuple(self._faults(version)) if version is not None else ()
        return self._filled(tuple(values.items()), faults)

    @cached_property
    def _filled(self) -> Callable[..., dict[str, Features]]:
        def read(values: Iterable[tuple[str, str]], faults: Iterable[Fault]) -> dict[str, Features]:
            items = [read_property(filled(text, dict(values))) for text in self.properties]
            for fault in faults:
                items = list(map(fault.without, items))
            found = variant_metadata.group_properties(items)
            return {
                namespace: {feature: tuple(sorted(set(held))) for feature, held in features.items()}
                for namespace, features in found.items()
            }

        return lru_cache(maxsize=64)(read)  # most of its files have the same

    def known_properties(self, version: Version | None = None) -> dict[str, Features]:
        """Return the properties that are the same for all of its files, as `properties_of`."""
        return self._without_templates.properties_of({}, version)

    @property
    def known_namespaces(self) -> frozenset[str]:
        """The namespaces of the `known_properties`, which need not be parsed for them."""
        texts = self._without_templates.properties
        return frozenset(text.partition("::")[0].strip() for text in texts)

    @cached_property
    def _without_templates(self) -> CatalogVariant:
        known = tuple(text for text in self.properties if not PLACEHOLDER.search(text))
        return replace(self, properties=known)

    def faults(self, version: Version) -> dict[Property, str]:
        """Return the properties that *version* lacks for a known fault, each with that in words."""
        faults = list(self._faults(version))
        if not faults:  # of nearly all files
            return {}
        items = [read_property(text) for text in self.properties if not PLACEHOLDER.search(text)]
        return {
            item: str(fault) for fault in faults for item in items if fault.without(item) != item
        }

    def _faults(self, version: Version) -> Iterator[Fault]:
        for fault in self.broken:
            if fault.versions.contains(version.public, prereleases=True):
                yield fault


@dataclass(frozen=True)
class CatalogProject:
    """The entry of one project.

    Attributes:
        name: normalized.
        documentation: URL of the publisher's documentation.
        variants: in the order of the file.
        sources: URLs of what the facts are taken from, besides the documentation.
        coherent: projects that have to come from the same variant.
        variants_index: index on which the project is published as variant wheels, None without.
        namespaces: ``default-priorities.namespace``, most important first.
        static: values of namespaces that need no detection, most important first.
        placeholder: versions of the project's own name that are no releases of it, None without:
            where an index has no others, the versions of its `targets`, or of its places, are the
            project's.
        before_version: the newest version with a build for the accelerator of a machine goes
            before newer ones without, unless the user says otherwise.
        checked: day on which a person last compared the entry with its sources, ISO 8601.
        source: file or URL that the entry is from, for messages.
        mirrors: beginnings of the publisher's URLs, longest first, and what replaces them.
        unread: variants whose places need not be asked, see `for_accelerators`.
    """

    name: str
    documentation: str
    variants: tuple[CatalogVariant, ...]
    sources: tuple[str, ...] = ()
    coherent: tuple[str, ...] = ()
    variants_index: str | None = None
    namespaces: tuple[str, ...] = ()
    static: Mapping[str, Features] = field(default_factory=dict)
    placeholder: SpecifierSet | None = None
    before_version: bool = False
    checked: str = ""
    source: str = field(default="", compare=False)
    mirrors: tuple[tuple[str, str], ...] = ()
    unread: tuple[CatalogVariant, ...] = field(default=(), compare=False)

    @property
    def places(self) -> tuple[str, ...]:
        """URLs of the indexes and find-links pages that have files of the project."""
        return tuple(dict.fromkeys(item.place for item in self.variants if item.place is not None))

    @cached_property
    def _by_place(self) -> dict[str | None, list[CatalogVariant]]:
        found: dict[str | None, list[CatalogVariant]] = {}
        for item in self.variants:
            found.setdefault(item.place, []).append(item)
        return found

    def page(self, place: str) -> str:
        """Return the URL of the page that lists the project's files at *place*, see `places`."""
        is_index = any(item.index == place for item in self.variants)
        return f"{place}/{self.name}/" if is_index else place

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """Normalized names of the other projects that have builds of this one."""
        names = (target(item) for item in self.variants if item.is_redirect)
        return tuple(dict.fromkeys(name for name in names if name != self.name))

    def labels_of(self, specifier: SpecifierSet) -> list[str]:
        """Return the labels of the very build that *specifier* pins, as ``==2.9.0+cu126`` does."""
        pins = (each.version for each in specifier if each.operator in ("==", "==="))
        versions = [
            version
            for text in pins
            if (version := wheel_files.read_version(text)) and version.local
        ]
        return [
            filled(item.label, values)
            for version in versions
            for item in self.variants
            if item.local and (values := item.placeholders(version)) is not None
        ]

    @property
    def is_elsewhere(self) -> bool:
        """Whether it says no more than where the project's files are, which are for everyone."""
        return bool(self.variants) and all(
            item.label == wheel_labels.NULL_LABEL and item.place and item.local is None
            for item in self.variants
        )

    @property
    def uses_own_files(self) -> bool:
        """Whether a variant is of the project's own files, with one of its extras or without."""
        return bool(self._own)

    @cached_property
    def _own(self) -> tuple[CatalogVariant, ...]:
        return tuple(filter(self.is_own, self.variants))

    def is_own(self, variant: CatalogVariant) -> bool:
        """Return whether *variant* is of the project's own files, wherever the user has them."""
        if variant.is_redirect:
            return target(variant) == self.name
        return variant.place is None and not variant.is_own_null

    def is_build(self, file: PublishedFile) -> bool:
        """Return whether *file*, the project's own, is a variant alone, and not for everyone.

        It is for everyone as well where the entry has a null variant of the project's own files.
        """
        return bool(file.properties and not file.is_rewritten) and not any(
            item.is_own_null and item.admits(file.version) for item in self.variants
        )

    def files(self, place: str, filename: str) -> Iterator[PublishedFile]:
        """Yield what the wheel *filename* of one of the `places` is; nothing if no variant.

        The first table that it is of counts, with those of the same family; a wheel for several
        platforms may be of another one on each.
        """
        taken: dict[str, CatalogVariant] = {}
        whole: CatalogVariant | None = None
        for item, version, values in self._matching(filename, self._by_place.get(place, ())):
            if whole is not None and not item.is_beside(whole):
                return
            for file in self._file(item, filename, version, values):
                kinds = file.kinds if item.platforms else taken.keys()
                if all(item.is_beside(taken.get(kind, item)) for kind in kinds):
                    yield file
                taken |= dict.fromkeys(file.kinds - taken.keys(), item)
            whole = whole if item.platforms else item

    def own_files(self, filename: str) -> Iterator[PublishedFile]:
        """Yield what the project's own non-variant wheel *filename* is, with each of the extras."""
        for item, version, values in self._matching(filename, self._own):
            yield from self._file(item, filename, version, values)

    def _matching(
        self, filename: str, wanted: Iterable[CatalogVariant]
    ) -> Iterator[tuple[CatalogVariant, Version, Mapping[str, str]]]:
        """Yield the *wanted* variants that a wheel of the project is, its version, placeholders."""
        named = _named(filename)
        if named is None or named[0] != self.name:
            return
        for item in wanted:
            if item.admits(named[1]):
                values = item.placeholders(named[1])
                if values is not None:
                    yield item, named[1], values

    def renamed_files(self, filename: str) -> Iterator[PublishedFile]:
        """Yield what the non-variant wheel *filename* of one of the `targets` is."""
        named = _named(filename)
        if named is None:
            return
        for item in self.variants:
            if not item.is_redirect or not item.admits(named[1]):
                continue
            if target(item) == named[0] != self.name:
                tail = filename.split("-", 1)[1]
                own = f"{self.name.replace('-', '_')}-{tail}"
                for found in self._file(item, own, named[1], {}):
                    yield replace(found, published=filename, origin=named[0])

    def for_accelerators(self, present: Iterable[str]) -> CatalogProject:
        """Return the entry without the places that only have builds for other accelerators.

        All are asked where no place has builds that need none. The variants are `unread` then.

        Args:
            present: namespaces of the accelerators of the machine.
        """
        needed = machines.ACCELERATORS.keys() - {*present}
        built = (item.place for item in self.variants if needed.isdisjoint(item.known_namespaces))
        asked = {*built} - {None}
        unread = tuple(item for item in self.variants if item.place and item.place not in asked)
        if not asked or not unread:
            return self
        variants = tuple(item for item in self.variants if not item.place or item.place in asked)
        return replace(self, variants=variants, unread=unread)

    def unread_builds(self, version: Version) -> Iterator[PublishedFile]:
        """Yield what the `unread` variants are of *version*, without files, to say why not they."""
        for item in self.unread:
            if item.admits(version) and not PLACEHOLDER.search(item.label):
                yield PublishedFile("", "", version, item.label, item.known_properties(version))

    def metadata(self, files: Collection[PublishedFile]) -> Metadata:
        """Return the variant metadata of a version that has *files*."""
        return Metadata(
            self.namespaces,
            {item.label: item.properties for item in files},
            {name: self._provider(name) for name in self.namespaces},
            schema=variant_metadata.V0_2_0.schema,
            source=self.source,
            faults={item.label: item.faults for item in files if item.faults},
        )

    def mirrored(self, mirrors: Mapping[str, str]) -> CatalogProject:
        """Return the entry with the beginnings of URLs replaced.

        Args:
            mirrors: new beginning by the one that it replaces; the longest counts.
        """
        if not mirrors:
            return self
        pairs = tuple(sorted(mirrors.items(), key=lambda item: len(item[0]), reverse=True))

        def at_mirror(url: str | None) -> str | None:
            return None if url is None else moved(url, pairs) or url

        variants = tuple(
            replace(item, index=at_mirror(item.index), links=at_mirror(item.links))
            for item in self.variants
        )
        place = at_mirror(self.variants_index)
        return replace(self, variants=variants, variants_index=place, mirrors=pairs)

    def _file(
        self, item: CatalogVariant, filename: str, version: Version, values: Mapping[str, str]
    ) -> Iterator[PublishedFile]:
        """Yield what *filename* is as a file of *item*; nothing for other platforms than its."""
        label = filled(item.label, values)
        name, version_text, tail = filename.removesuffix(".whl").split("-", 2)
        if item.platforms:
            start, _, tags = tail.rpartition("-")
            kept = _platforms(tags, item.platforms)
            if not kept:
                return
            tail = f"{start}-{kept}"
        public = version_text.partition("+")[0]
        known = {"version": str(version)}
        yield PublishedFile(
            f"{name}-{public}-{tail}-{label}.whl",
            filename,
            _public(version),
            label,
            item.properties_of(values, version),
            tuple(filled(text, known) for text in item.requires),
            measured=item.measured,
            faults=item.faults(version),
        )

    def _provider(self, namespace: str) -> ProviderInfo:
        if namespace in self.static:
            return ProviderInfo(static=self.static[namespace])
        return ProviderInfo(builtin=namespace)


def basis(measured: Sequence[Measured], version: Version | None = None) -> str:
    """Return in words where the properties of a build are from.

    Args:
        measured: the wheels that they were read from; the last one is named.
        version: of the build; a wheel of that version is named rather than another.
    """
    if not measured:
        return "as the publisher's page says, not measured"
    last = max(measured, key=lambda item: (_is_of(item.file, version), item.date))
    return f"read from {last.file} on {last.date}"


def moved(url: str, starts: Iterable[tuple[str, str]]) -> str | None:
    """Return *url* with the first of the beginnings that it has replaced, None if it has none."""
    for start, other in starts:
        if f"{url}/".startswith(f"{start.rstrip('/')}/"):
            return other.rstrip("/") + url[len(start.rstrip("/")) :]
    return None


def same_files(
    projects: Iterable[str],
    names: Container[str],
    entry: Callable[[str], CatalogProject | None],
) -> Iterator[tuple[str, list[str]]]:
    """Yield the projects of which *names* has builds, ascending, each with these builds.

    A build has the files of its project: ``cupy-cuda13x`` those of ``cupy``. So of all these names
    one is installed, and the build counts as the project where both are required.

    Args:
        projects: normalized names that are looked up.
        names: normalized names of what is, or will be, installed.
        entry: returns the entry of a project in the catalogue, None without one.

    Raises:
        CatalogError: *entry* raised it.
    """
    for project in sorted(set(projects)):
        found = entry(project)
        builds = [name for name in found.targets if name in names] if found is not None else []
        if builds:
            yield project, builds


def filled(template: str, values: Mapping[str, str]) -> str:
    """Return *template* with *values* in place of its placeholders; others stay.

    >>> from variants_catalog.entries import filled
    >>> filled("https://host.example/{version}/{label}/", {"version": "2.8.0"})
    'https://host.example/2.8.0/{label}/'
    """
    return PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), template)


def target(variant: CatalogVariant) -> str:
    """Return the normalized name of the project that gives the versions of *variant*."""
    return canonicalize_name(re.split(r"[\s\[=]", variant.requires[0], maxsplit=1)[0])


@lru_cache(maxsize=256)  # the builds of a project share most of them
def _admission(versions: SpecifierSet) -> Callable[[Version], bool]:
    def contains(version: Version) -> bool:
        return versions.contains(version.public, prereleases=True)

    return lru_cache(maxsize=1024)(contains)  # a version has many files


@lru_cache(maxsize=4096)  # so do these
def read_property(text: str) -> Property:
    """Parse a property of an entry, as `Property.parse`."""
    return Property.parse(text)


def _public(version: Version) -> Version:
    return _version(version.public)


@lru_cache(maxsize=4096)  # a version has many files; equal ones may have other texts
def _version(text: str) -> Version:
    return Version(text)


def _named(filename: str) -> tuple[str, Version] | None:
    """Return project and version of a non-variant wheel, None for anything else."""
    if not filename.endswith(".whl") or len(filename) > limits.FILENAME_CHARACTERS:
        return None
    parts = filename.split("-")
    if not _PARTS <= len(parts) <= _PARTS + 1 or wheel_labels.split_label(filename)[1] is not None:
        return None
    version = wheel_files.read_version(parts[1].replace("_", "-"))
    return None if version is None else (canonicalize_name(parts[0]), version)


def _is_of(filename: str, version: Version | None) -> bool:
    """Return whether a wheel is of a public version."""
    named = _named(filename)
    return named is not None and _public(named[1]) == version


def _platforms(tags: str, wanted: Sequence[str]) -> str:
    """Return those of the platform *tags* of a filename that are of the *wanted* platforms."""
    if tags == "any":
        return ".".join(wanted)
    kinds = set(map(platform_kind, wanted))
    return ".".join(tag for tag in tags.split(".") if platform_kind(tag) in kinds)


@lru_cache(maxsize=1024)
def platform_kind(tag: str) -> str:
    """Return system and architecture of a platform tag, without the version of the system.

    >>> from variants_catalog.entries import platform_kind
    >>> platform_kind("manylinux_2_28_x86_64"), platform_kind("macosx_14_0_arm64")
    ('linux_x86_64', 'macosx_arm64')
    """
    return _SYSTEM.sub(lambda match: f"{match[1] or 'linux'}_", tag)


def _pattern(template: str) -> re.Pattern[str]:
    """Return the pattern of the local versions that *template* stands for."""
    pieces = PLACEHOLDER.split(template)
    return re.compile(
        "".join(
            f"(?P<{piece}>{_NUMBER})" if number % 2 else re.escape(piece)
            for number, piece in enumerate(pieces)
        )
    )
