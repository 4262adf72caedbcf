"""The tool of the short example on the page: a provider over an index that is in memory."""

import json
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.version import Version
from resolvelib import AbstractProvider

from pep_variants._model.filename import parse_filename

LABELS = {"tensors-2.0": ["cu130", "cu128", "cu126", "null"], "vision-1.0": ["cu130", "cu126"]}
REQUIRES = {"tensors": ["runtime; 'nvidia' in variant_namespaces"]}


class Candidate(NamedTuple):
    name: str
    version: Version
    filename: str
    page: str


def filenames(project):
    releases = [*LABELS, "runtime-12.6"]
    return [
        f"{release}-py3-none-any{label and '-'}{label}.whl"
        for release in releases
        if release.startswith(f"{project}-")
        for label in LABELS.get(release, [""])
    ]


def fetch(url):
    release = url.rpartition("/")[2].removesuffix("-variants.json")
    variants = {
        label: {"nvidia": {"cuda_version_lower_bound": [f"{label[2:4]}.{label[4:]}"]}}
        for label in LABELS[release]
        if label != "null"
    }
    return json.dumps(
        {
            "$schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
            "default-priorities": {"namespace": ["nvidia"]},
            "variants": variants,
        }
    ).encode()


def requires_dist(candidate):
    return REQUIRES.get(candidate.name, [])


def requirements(lines):
    parsed = map(Requirement, lines)
    return [item for item in parsed if item.marker is None or item.marker.evaluate()]


class Provider(AbstractProvider):
    def identify(self, requirement_or_candidate):
        return requirement_or_candidate.name

    def get_preference(self, identifier, resolutions, candidates, information, backtrack_causes):
        return identifier

    def find_matches(self, identifier, requirements, incompatibilities):
        excluded = list(incompatibilities[identifier])
        page = f"https://index.example/simple/{identifier}/"
        found = [
            Candidate(identifier, parse_filename(name).version, name, page)
            for name in filenames(identifier)
        ]
        return [candidate for candidate in found if candidate not in excluded]

    def is_satisfied_by(self, requirement, candidate):
        return candidate.version in requirement.specifier

    def get_dependencies(self, candidate):
        return requirements(requires_dist(candidate))
