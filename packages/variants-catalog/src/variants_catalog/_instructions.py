"""How the builds of the catalogue are had without it: the lines that their publishers document.

A build is on its publisher's index, has another name, or is an extra. The lines ask for that,
pinned to the release.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from packaging.requirements import Requirement
from packaging.version import Version

from pep_variants import safe_files

from .entries import CatalogProject, PublishedFile

_COMPLETE = ("https://download.pytorch.org/whl/", "https://stable.repo.amd.com/rocm/")
"""What URLs of indexes begin with that have whatever their builds require, of others as well."""
_OWN_DEPENDENCIES = frozenset(("amd", "intel"))
"""Namespaces of builds that require what is nowhere but on the index that has them."""
_UNSAFE = re.compile(r"[^\w.,:/=+~-]")


@dataclass(frozen=True)
class Source:
    """Where a build is had from.

    Attributes:
        name: what to require, with extras.
        version: public version.
        local: local version of its file, empty for none.
        more: further requirements.
        place: URL of the index or find-links page, empty for the user's own indexes.
        is_links: whether it is a find-links page.
        is_ambiguous: whether the user's indexes have a file of that name and version.
        needs_place: whether what it requires is on that index alone.
    """

    name: str
    version: str
    local: str = ""
    more: tuple[str, ...] = ()
    place: str = ""
    is_links: bool = False
    is_ambiguous: bool = False
    needs_place: bool = False

    @property
    def exact_version(self) -> str:
        """The version, with its local part."""
        return f"{self.version}+{self.local}" if self.local else self.version

    @property
    def is_complete(self) -> bool:
        """Whether its index has all that it requires, and can stand in for all others."""
        return self.place.startswith(_COMPLETE)

    @property
    def index_name(self) -> str:
        """Name for its index in a file, such as ``pytorch-cu126``."""
        parts = urlsplit(self.place)
        host = (parts.hostname or "").split(".")[-2:][0]
        last = re.sub(r"[^a-z0-9.]+", "-", parts.path.lower().strip("/").rpartition("/")[2])
        return f"{host}-{last.removesuffix('.html')}"


@dataclass(frozen=True)
class Instruction:
    """What is typed, or written into a file, to have some builds.

    Attributes:
        text: the lines; empty if there are none.
        why: why there are none, as a clause.
    """

    text: str
    why: str = ""


def source_of(entry: CatalogProject, file: PublishedFile, page: str = "") -> Source:
    """Return where a build of *entry* is had from.

    Args:
        entry: of the project.
        file: the build.
        page: URL of the page that lists it, as of `listings.Found`; empty for the user's indexes.
    """
    place = next((each for each in entry.places if page and entry.page(each) == page), "")
    needs = [Requirement(text) for text in file.requires]
    version = str(file.version)
    if not place:
        first = needs[0] if needs else Requirement(entry.name)
        return Source(_with_extras(first.name, first.extras), version, more=file.requires[1:])
    extras = {extra for each in needs if each.name == entry.name for extra in each.extras}
    local = Version(file.published_version).local or ""
    return Source(
        _with_extras(entry.name, extras),
        version,
        local,
        () if extras else file.requires,  # the extra has them
        place,
        any(item.links == place for item in entry.variants),
        not local
        and any(item.place is None and item.admits(file.version) for item in entry.variants),
        not _OWN_DEPENDENCIES.isdisjoint(file.properties),
    )


def plain_lines(sources: Sequence[Source]) -> dict[str, Instruction]:
    """Return how *sources*, of one environment, are had without us, by the name of an installer.

    >>> from variants_catalog.catalogs import Source, plain_lines
    >>> torch = Source("torch", "2.14.0", "cu126", place="https://download.pytorch.org/whl/cu126")
    >>> plain_lines([torch])["pip"].text
    'pip install torch==2.14.0 --index-url https://download.pytorch.org/whl/cu126'
    """
    return {name: _line(sources, write) for name, write in _WRITERS.items()}


def _line(sources: Sequence[Source], write: Callable[[Sequence[Source]], str]) -> Instruction:
    for each in sources if not _one_index(sources) else ():
        if each.place and each.is_ambiguous:
            why = f"{each.name} {each.version} of {each.place} has the name of another file"
            return Instruction("", why)
    return Instruction(write(sources))


def check_line(project: str, kind: str) -> str:
    """Return the line of Python that prints True where a build uses the accelerator.

    Empty where none is known: what counts is the version then.

    Args:
        project: normalized name.
        kind: namespace of the accelerator that the build is for, or ``apple``.

    >>> from variants_catalog.catalogs import check_line
    >>> check_line("torch", "amd")
    'import torch; print(torch.cuda.is_available())'
    """
    return _checks().get(project, {}).get(kind, "")


@cache
def _checks() -> Mapping[str, Mapping[str, str]]:
    text = Path(__file__).with_name("checks.toml").read_text("utf-8")
    return safe_files.read_toml(text)


def our_lines(names: Iterable[str]) -> dict[str, Instruction]:
    """Return how the projects *names* are had with us, by the name of an installer.

    >>> from variants_catalog.catalogs import our_lines
    >>> our_lines(["torch"])["pip"].text
    'pip install --variant-catalog default torch'
    """
    wanted = " ".join(names)
    return {
        "pip": Instruction(f"pip install --variant-catalog default {wanted}"),
        "uv": Instruction(f"uv-variants --variant-catalog default pip install {wanted}"),
        "poetry": Instruction(
            "variants-proxy serve --open --variant-catalog default &\n"
            'poetry source add --priority=primary variants "$(variants-proxy url)"\n'
            f"poetry add {wanted}"
        ),
        "pixi": Instruction("", "it was never tried with pixi"),
    }


def _pip(sources: Sequence[Source]) -> str:
    options = [
        f"--find-links {each.place}" if each.is_links else f"--extra-index-url {each.place}"
        for each in _places(sources)
    ]
    return _command("pip install", sources, options)


def _uv(sources: Sequence[Source]) -> str:
    places = _places(sources)
    options = [
        f"--find-links {each.place}" if each.is_links else f"--index {each.place}"
        for each in places
    ]
    # Else uv takes all versions of a project from the first index that has any.
    options += ["--index-strategy unsafe-best-match"] if len(options) > 1 else []
    return _command("uv pip install", sources, options)


def _command(program: str, sources: Sequence[Source], options: Sequence[str]) -> str:
    is_one = _one_index(sources)
    wanted = [
        text
        for each in sources
        for text in (f"{each.name}=={each.version if is_one else each.exact_version}", *each.more)
    ]
    options = [f"--index-url {sources[0].place}"] if is_one else options
    return " ".join((program, *map(_quoted, wanted), *options))


def _poetry(sources: Sequence[Source]) -> str:
    lines = []
    for place in _places(sources):
        # Others would not look on an explicit source.
        priority = "supplemental" if place.needs_place else "explicit"
        lines.append(f"poetry source add --priority={priority} {place.index_name} {place.place}")
    for each in sources:
        source = f" --source {each.index_name}" if each.place else ""
        wanted = (f"{each.name}=={each.exact_version}", *each.more)
        lines.append(f"poetry add {' '.join(map(_quoted, wanted))}{source}")
    return "\n".join(lines)


def _pixi(sources: Sequence[Source]) -> str:
    wide = [each for each in _places(sources) if each.is_links or each.needs_place]
    links = [{"url": each.place} for each in wide if each.is_links]
    indexes = [each.place for each in wide if not each.is_links]
    options = {"find-links": links, "extra-index-urls": indexes}
    lines = [f"{key} = {_toml(value)}" for key, value in options.items() if value]
    lines = ["[pypi-options]", *lines, ""] if lines else []
    lines.append("[pypi-dependencies]")
    for each in sources:
        own = each.place if each.place not in {item.place for item in wide} else ""
        for text in (f"{each.name}=={each.exact_version}", *each.more):
            wanted = Requirement(text)
            table = {
                "version": str(wanted.specifier) or "*",
                "extras": sorted(wanted.extras),
                "index": own,
            }
            lines.append(f"{wanted.name} = {_toml({k: v for k, v in table.items() if v})}")
    return "\n".join(lines)


def _toml(value: object) -> str:
    """Return *value*, of texts, lists and tables, on one line of TOML."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(held)}' for key, held in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value)


_WRITERS: Mapping[str, Callable[[Sequence[Source]], str]] = {
    "pip": _pip,
    "uv": _uv,
    "poetry": _poetry,
    "pixi": _pixi,
}


def _places(sources: Iterable[Source]) -> list[Source]:
    """Return one of *sources* for each of their places; one that needs it, if any does."""
    found: dict[str, Source] = {}
    for each in sources:
        if each.place and (each.place not in found or each.needs_place):
            found[each.place] = each
    return [*found.values()]


def _one_index(sources: Sequence[Source]) -> bool:
    return len({each.place for each in sources}) == 1 and sources[0].is_complete


def _with_extras(name: str, extras: Iterable[str]) -> str:
    names = ",".join(sorted(extras))
    return f"{name}[{names}]" if names else name


def _quoted(text: str) -> str:
    return f'"{text}"' if _UNSAFE.search(text) else text
