"""Candidates that requirements name by the URL of a file or directory."""

from __future__ import annotations

from packaging.version import Version

from pep_variants.errors import redacted
from pep_variants.urls import filename_of_url, local_path
from variants_index.candidate import Candidate
from variants_index.pages import PageFile
from variants_index.source_tree import read_source_tree

from .requirements import distribution_name, is_directory


class DirectCandidates:
    """The candidates of one resolution that are named by URL, each made once."""

    def __init__(self) -> None:
        self._candidates: dict[str, Candidate] = {}

    def find(self, url: str) -> Candidate:
        """Return the candidate at *url*; raises RequirementError."""
        if url not in self._candidates:
            self._candidates[url] = _candidate(url)
        return self._candidates[url]

    def of(self, project: str) -> list[Candidate]:
        """Return those found so far of the normalized *project*."""
        return [item for item in self._candidates.values() if item.project == project]


def _candidate(url: str) -> Candidate:
    name, version = distribution_name(url)
    core = read_source_tree(local_path(url)).core if is_directory(url) else None
    plain, _, fragment = url.partition("#")
    algorithm, equals, digest = fragment.partition("=")
    hashes = {algorithm: digest} if equals else {}
    filename = filename_of_url(plain.partition("?")[0].rstrip("/"))
    file = PageFile(filename, plain, hashes)
    return Candidate(
        name, Version(version), filename, redacted(plain), file=file, direct=True, core=core
    )
