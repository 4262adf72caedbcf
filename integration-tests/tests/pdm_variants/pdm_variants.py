"""Wheel variants for PDM: its own provider, wrapped.

What PDM has to know of variant wheels by itself is here: their names, links to metadata files,
and that two files of one version are two candidates. Which of them fits and is best, and what
their markers mean, `resolvelib_variants` says. A working example, not a product: it chooses for
the machine it runs on, and the lock file names the chosen files alone.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import wraps
from typing import Any

from dep_logic.tags.tags import EnvSpec
from pdm.models.candidates import Candidate
from pdm.models.repositories import BaseRepository, PyPIRepository
from pdm.models.requirements import Requirement, filter_requirements_with_extras, strip_extras
from pdm.models.specifiers import PySpecSet
from pdm.resolver.providers import BaseProvider
from resolvelib import Resolver
from unearth import evaluator

from pep_variants._detect.detector import Detector
from pep_variants._formats.platform_file import load_platform
from pep_variants._formats.reader import read_metadata
from pep_variants._model.filename import metadata_filename, parse_metadata_filename
from pep_variants._model.metadata import Metadata
from pep_variants._settings.loader import load_preferences
from pep_variants.errors import MetadataError
from pep_variants.labels import METADATA_SUFFIX, split_label
from pep_variants.markers import reduce_requirement
from resolvelib_variants.provider import TransparentProvider

_LINKS: dict[str, Any] = {}
"""Links to metadata files that index pages list, by their page and name."""


class VariantCandidate(Candidate):
    """A variant wheel: another candidate than the other files of its version."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        same_link = isinstance(other, Candidate) and self.link == other.link
        return same_link and super().__eq__(other)

    __hash__ = None  # type: ignore[assignment] # as in PDM

    @property
    def dep_key(self) -> tuple[str, str | None]:
        name, version = super().dep_key
        return name, f"{version} {self.link.filename}"

    def copy_with(self, requirement: Requirement) -> Candidate:
        copy = super().copy_with(requirement)
        copy.__class__ = VariantCandidate
        return copy


class PdmFiles:
    """What the wrapper has to know of PDM's candidates."""

    def __init__(self, repository: BaseRepository) -> None:
        self._repository = repository

    def version(self, candidate: Candidate) -> Hashable:
        return candidate.version

    def filename(self, candidate: Candidate) -> str | None:
        return None if getattr(candidate, "link", None) is None else candidate.link.filename

    def source(self, candidate: Candidate) -> str:
        return str(candidate.link.comes_from)

    def metadata(self, project: str, candidate: Candidate) -> Metadata:
        name = metadata_filename(project, str(candidate.version))
        link = _LINKS.get(_key(self.source(candidate), name))
        if link is None:
            raise MetadataError(self.source(candidate), "", f"lists no {name}")
        response = self._repository.environment.session.get(link.normalized)
        if response.status_code != 200:
            raise MetadataError(link.redacted, "", f"HTTP status {response.status_code}")
        return read_metadata(response.content, link.redacted)

    def has_variants(self, identifier: str) -> bool:
        # PDM asks the index when the first candidate is wanted, so nobody knows yet.
        return identifier != "python"

    def project(self, identifier: str) -> str:
        return strip_extras(identifier)[0]

    def dependencies(
        self, candidate: Candidate, reduce: Callable[[str], str | None]
    ) -> Iterable[Requirement] | None:
        return None  # PDM goes on with them, so they are reduced where it reads them


class VariantResolver(Resolver):
    """resolvelib's resolver, with whatever provider it is given wrapped."""

    def __init__(self, provider: BaseProvider, reporter: Any) -> None:
        preferences = load_preferences({}, os.environ, warn=warnings.warn)
        platform = preferences.platform_file and load_platform(preferences.platform_file)
        wrapper = TransparentProvider(
            provider,
            PdmFiles(provider.repository),
            platform=Detector(enabled=preferences.enable, platform=platform or None).platform,
            preferences=preferences,
        )
        provider.repository._variant_context = wrapper.ordering.context
        super().__init__(wrapper, reporter)


def main(core: Any) -> None:
    """Enter PDM."""
    core.resolver_class = VariantResolver
    _accept_labels()
    _tell_variants_apart()
    _reduce_markers()


def _accept_labels() -> None:
    """A name with a label is the wheel of the plain name; metadata files are taken note of."""
    _replace(evaluator, "parse_wheel_filename", lambda original, name: original(_plain(name)))
    _replace(
        EnvSpec, "wheel_compatibility", lambda original, self, name: original(self, _plain(name))
    )

    def evaluate_link(original: Any, self: Any, link: Any) -> Any:
        if link.filename.endswith(METADATA_SUFFIX):
            _LINKS[_key(str(link.comes_from), link.filename)] = link
        return original(self, link)

    _replace(evaluator.Evaluator, "evaluate_link", evaluate_link)


def _tell_variants_apart() -> None:
    """All files of a version that has variants are candidates, not the first one alone."""

    def find(original: Any, *args: Any, **kwargs: Any) -> Iterable[Candidate]:
        found = original(*args, **kwargs)
        for candidate in found:
            if candidate.link is not None and split_label(candidate.link.filename)[1] is not None:
                candidate.__class__ = VariantCandidate
        return found

    def provide(original: Any, self: Any, requirement: Any) -> Iterator[Candidate]:
        found: dict[str | None, list[Candidate]] = {}
        search = self.repository.find_candidates

        def note(*args: Any, **kwargs: Any) -> Iterator[Candidate]:
            for candidate in search(*args, **kwargs):
                found.setdefault(candidate.version, []).append(candidate)
                yield candidate

        self.repository.find_candidates = note
        try:
            chosen = list(original(self, requirement))
        finally:
            del self.repository.find_candidates
        for candidate in chosen:
            files = found.get(candidate.version, [])
            if any(isinstance(file, VariantCandidate) for file in files):
                yield from files
            else:
                yield candidate

    def hashes(original: Any, self: Any, candidate: Candidate) -> Any:
        if not isinstance(candidate, VariantCandidate):
            return original(self, candidate)
        digest = self._hash_cache.get_hash(candidate.link, self.environment.session)
        url = candidate.link.url_without_fragment
        return [{"url": url, "file": candidate.link.filename, "hash": digest}]

    _replace(PyPIRepository, "_find_candidates", find)
    _replace(BaseProvider, "_find_candidates", provide)
    _replace(BaseRepository, "get_hashes", hashes)


def _reduce_markers() -> None:
    """The requirements of a variant are read with its markers reduced, and are not cached."""

    def dependencies(original: Any, self: Any, candidate: Candidate) -> Any:
        if not isinstance(candidate, VariantCandidate):
            return original(self, candidate)
        with self.reporter.make_candidate_reporter(candidate) as reporter:
            metadata = candidate.prepare(self.environment, reporter=reporter).metadata
        context = self._variant_context(candidate.req.key, candidate)
        reduced = (reduce_requirement(text, context) for text in metadata.requires or ())
        lines = [text for text in reduced if text is not None]
        candidate.requires_python = metadata.metadata.get("Requires-Python", "")
        candidate.summary = metadata.metadata.get("Summary", "")
        requirements = filter_requirements_with_extras(lines, candidate.req.extras or ())
        return requirements, PySpecSet(candidate.requires_python), candidate.summary

    _replace(BaseRepository, "get_dependencies", dependencies)


def _plain(filename: str) -> str:
    return split_label(filename)[0]


def _key(page: str, filename: str) -> str:
    return f"{page} {parse_metadata_filename(filename)}"


def _replace(owner: Any, name: str, ours: Callable[..., Any]) -> None:
    original = getattr(owner, name)

    @wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        return ours(original, *args, **kwargs)

    setattr(owner, name, function)
