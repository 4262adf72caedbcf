"""Trust of the user in plugin packages, by name.

A provider's requirements come from an untrusted file. They are parsed, compared with the user's
allow list and written from what was parsed: no text of that file ever reaches an installer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from .._detect.detector import Refused
from .._providers.registry import applicable
from ..errors import PreferenceError, redacted, shortened

_HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})")
# What specifiers consist of. In particular nothing that a requirements file gives a meaning.
_SPECIFIERS = re.compile(r"[A-Za-z0-9.!+*_<>=~,-]*", re.ASCII)


class Wanted(NamedTuple):
    """One package to install, from what the metadata asks for and the user allowed.

    Attributes:
        name: normalized project name.
        extras: normalized, sorted.
        specifier: version specifiers of both sides, or in hash mode the user's pin.
        asked: version specifiers of the metadata alone.
        url: the very wheel, empty for one from the sources.
        hashes: ``algorithm:digest`` of files that may be used, sorted; empty for any file.
    """

    name: str
    extras: tuple[str, ...] = ()
    specifier: str = ""
    asked: str = ""
    url: str = ""
    hashes: tuple[str, ...] = ()

    @property
    def requirement(self) -> str:
        """Return the requirement without hashes."""
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        return f"{self.name}{extras}" + (f" @ {self.url}" if self.url else self.specifier)

    @property
    def line(self) -> str:
        """Return the line for a requirements file."""
        return " ".join((self.requirement, *(f"--hash={value}" for value in self.hashes)))

    def __str__(self) -> str:
        return redacted(self.requirement)


class Allowed(NamedTuple):
    """Packages to install to get a provider's plugin.

    Attributes:
        wanted: the packages that the metadata asks for, in its order, each allowed by the user.
        dependencies: in hash mode, what else the user allowed by hash: what the packages above
            depend on is taken from here. Otherwise empty, and dependencies are free.
    """

    wanted: tuple[Wanted, ...]
    dependencies: tuple[Wanted, ...] = ()

    @property
    def hash_mode(self) -> bool:
        """Whether every file has to have a hash that the user gave."""
        return bool(self.wanted[0].hashes)

    @property
    def endpoint(self) -> str:
        """The endpoint of a provider that names none: its first package's name as a module."""
        return self.wanted[0].name.replace("-", "_")


class _Entry(NamedTuple):
    requirement: Requirement
    hashes: tuple[str, ...]

    @property
    def pin(self) -> str | None:
        """Return the one version that the entry allows, None if it does not pin one."""
        specifiers = list(self.requirement.specifier)
        if len(specifiers) == 1 and specifiers[0].operator == "==":
            version = specifiers[0].version
            return None if version.endswith(".*") else version
        return None


class AllowList(NamedTuple):
    """Packages that the user allows.

    Attributes:
        entries: by normalized project name. Several entries of one project all apply.
    """

    entries: Mapping[str, tuple[_Entry, ...]]

    @classmethod
    def parse(cls, texts: Iterable[str]) -> AllowList:
        """Read the values of ``--variant-allow-provider``.

        Each is a requirement, optionally with hashes as in a requirements file:
        ``acme-variant-provider>=1`` or ``acme-variant-provider==1.2 --hash=sha256:…``. A text of
        hashes only belongs to the one before, as settings that are split at white space give
        them. An entry with hashes has exactly one version (``==``) or the URL of a wheel.

        Raises:
            PreferenceError: a text in another form; the message names it.
        """
        found: list[tuple[str, list[str]]] = []
        for text in texts:
            words = text.split()
            options = [index for index, word in enumerate(words) if word.startswith("--")]
            start = options[0] if options else len(words)
            if start:
                found.append((" ".join(words[:start]), []))
            if options:
                if not found:
                    raise _wrong(text, "names no package")
                found[-1][1].extend(words[start:])
        entries: dict[str, tuple[_Entry, ...]] = {}
        for requirement_text, hashes in found:
            entry = _entry(requirement_text, hashes)
            name = str(canonicalize_name(entry.requirement.name))
            entries[name] = (*entries.get(name, ()), entry)
        return cls(entries)

    def judge(self, requires: Sequence[str], environment: Mapping[str, str]) -> Allowed | Refused:
        """Return the packages for the requirements *requires* of a provider, or why there are none.

        Args:
            requires: requirements from metadata, with their markers; not trusted at all, but within
                the limits that the reader of metadata holds.
            environment: PEP 508 marker environment; requirements that do not apply in it are
                dropped, and so are entries of the allow list.

        Every requirement needs an entry of its project, and what both say applies together:

        - versions: the intersection;
        - a URL: only if the entry names the very same one. One that only the entry has is used,
          and the version found there must be one that the metadata asks for;
        - extras: only those that the entry has, as they bring further packages;
        - hashes: one entry with hashes makes it hash mode. Then every requirement needs hashes,
          and so does every dependency: it must have its own entry with hashes.

        Without hashes, dependencies are whatever the packages ask for: allowing a package is
        trusting its authors' choice of them.
        """
        asked: dict[str, list[Requirement]] = {}
        try:
            for requirement in applicable(requires, lambda: environment):
                name = str(canonicalize_name(requirement.name))
                asked.setdefault(name, []).append(requirement)
        except ValueError as error:
            text = shortened(str(error))
            return Refused(f"its provider requires {text}, which is not a valid requirement")
        if not asked:
            return Refused("no requirement of its provider applies to this environment")
        entries = self._applicable(environment)
        wanted = []
        for name, requirements in asked.items():
            result = _combined(name, requirements, entries.get(name, ()))
            if isinstance(result, Refused):
                return result
            wanted.append(result)
        if not any(item.hashes for item in wanted):
            return Allowed(tuple(wanted))
        for item in wanted:
            if not item.hashes:
                return Refused(
                    f"its provider requires {item}, which is allowed without a hash while others "
                    "have one: add --hash=sha256:… to it",
                    item.name,
                )
        pinned = (
            _combined(name, (), own)
            for name, own in sorted(entries.items())
            if name not in asked and any(entry.hashes for entry in own)
        )
        return Allowed(tuple(wanted), tuple(item for item in pinned if isinstance(item, Wanted)))

    def _applicable(self, environment: Mapping[str, str]) -> dict[str, tuple[_Entry, ...]]:
        found = {
            name: tuple(
                entry
                for entry in entries
                if (marker := entry.requirement.marker) is None
                or marker.evaluate(dict(environment))
            )
            for name, entries in self.entries.items()
        }
        return {name: entries for name, entries in found.items() if entries}


def _entry(text: str, options: Sequence[str]) -> _Entry:
    try:
        requirement = Requirement(text)
        # Evaluated once for an error now rather than in the middle of a resolution.
        if requirement.marker is not None:
            requirement.marker.evaluate()
    except (ValueError, LookupError, RecursionError) as error:
        problem = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise _wrong(text, f"is not a valid requirement: {redacted(problem)}") from None
    hashes = []
    for option in options:
        match = _HASH.fullmatch(option)
        if not match:
            raise _wrong(option, "is not a hash: write --hash=sha256:…")
        hashes.append(match[1])
    entry = _Entry(requirement, tuple(hashes))
    if not _SPECIFIERS.fullmatch(_text(requirement.specifier)):
        raise _wrong(text, "has a version specifier that no version can match")
    if requirement.url:
        path = requirement.url.partition("#")[0].partition("?")[0]
        if not requirement.url.isprintable() or not path.lower().endswith(".whl"):
            raise _wrong(text, "must name a wheel: providers are not built from source")
    elif hashes and entry.pin is None:
        raise _wrong(text, "has a hash and so needs one version: write NAME==VERSION --hash=…")
    return entry


def _combined(
    name: str, requirements: Sequence[Requirement], entries: Sequence[_Entry]
) -> Wanted | Refused:
    """Return *requirements* and *entries* of the project *name*, joined."""
    shown = _bare(requirements[0]) if requirements else name
    required = f"its provider requires {shortened(shown)}"
    if not entries:
        return Refused(f"{required}, which is not allowed to run", shown)
    allowed_extras = {_extra(e) for entry in entries for e in entry.requirement.extras}
    extras = {_extra(extra) for requirement in requirements for extra in requirement.extras}
    if not extras <= allowed_extras:
        missing = min(extras - allowed_extras)
        return Refused(f"{required}, which is allowed without the extra {missing}", shown)
    urls = {entry.requirement.url for entry in entries if entry.requirement.url}
    for requirement in requirements:
        if requirement.url and requirement.url not in urls:
            return Refused(f"{required}, which is allowed only as '{name} @' that very URL", shown)
    if len(urls) > 1:
        return Refused(f"{name} is allowed from several URLs, of which only one can be used")
    asked, own = SpecifierSet(), SpecifierSet()
    for requirement in requirements:
        asked &= SpecifierSet(str(requirement.specifier))
    for entry in entries:
        own &= SpecifierSet(str(entry.requirement.specifier))
    if not _SPECIFIERS.fullmatch(_text(asked)):
        return Refused(f"{required}, which no version can match")
    both = asked & own
    pins = sorted(entry.pin for entry in entries if entry.pin)
    if any(not both.contains(pin, prereleases=True) for pin in pins):
        return Refused(f"{required}, while {name}{_text(own)} is allowed")
    hashes = tuple(sorted({value for entry in entries for value in entry.hashes}))
    # Installers want exactly one == beside a hash; that it satisfies the rest was seen above.
    specifier = f"=={pins[0]}" if hashes and pins else _text(both)
    return Wanted(
        name,
        tuple(sorted(allowed_extras)),
        specifier,
        _text(asked),
        urls.pop() if urls else "",
        hashes,
    )


def _bare(requirement: Requirement) -> str:
    """Return *requirement* without its marker, fit to be shown."""
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    url = f" @ {redacted(requirement.url)}" if requirement.url else ""
    text = f"{requirement.name}{extras}{_text(requirement.specifier)}{url}"
    return text if text.isprintable() else requirement.name


def _text(specifiers: Iterable[object]) -> str:
    return ",".join(sorted(set(map(str, specifiers))))


def _extra(name: str) -> str:
    return str(canonicalize_name(name))


def _wrong(text: str, problem: str) -> PreferenceError:
    return PreferenceError(f"allowed provider {shortened(redacted(text))} {problem}")
