"""A resolver over an index that lists variant wheels, complete: save it and run it."""

import json
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from resolvelib import AbstractProvider, BaseReporter, Resolver

from pep_variants.machines import Detector, load_machine
from pep_variants.metadata import read_metadata
from pep_variants.wheel_files import parse_filename
from resolvelib_variants.provider import VariantProvider

# What an index has: files, newest version first, and a metadata file beside them.
INDEX = "https://index.example/simple/"
FILES = {
    "tensors": [
        "tensors-2.0-py3-none-any-null.whl",
        "tensors-2.0-py3-none-any-cu128.whl",
        "tensors-2.0-py3-none-any-cu130.whl",
        "tensors-1.0-py3-none-any.whl",
    ],
    "cuda-runtime": ["cuda_runtime-13.0-py3-none-any.whl", "cuda_runtime-12.8-py3-none-any.whl"],
}
REQUIRES = {
    "tensors": [
        "cuda-runtime == 12.8; variant_label == 'cu128'",
        "cuda-runtime == 13.0; variant_label == 'cu130'",
    ]
}
TENSORS_2_0_VARIANTS_JSON = json.dumps(
    {
        "$schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
        "default-priorities": {"namespace": ["nvidia"]},
        "variants": {
            "null": {},
            "cu128": {"nvidia": {"cuda_version_lower_bound": ["12.8"]}},
            "cu130": {"nvidia": {"cuda_version_lower_bound": ["13.0"]}},
        },
    }
)


class Candidate(NamedTuple):
    name: str
    version: Version
    filename: str


class PlainProvider(AbstractProvider):
    """A provider as it was before: it takes every file for a candidate."""

    def identify(self, requirement_or_candidate):
        return canonicalize_name(requirement_or_candidate.name)

    def get_preference(self, identifier, resolutions, candidates, information, backtrack_causes):
        return identifier

    def find_matches(self, identifier, requirements, incompatibilities):
        wanted = list(requirements[identifier])
        excluded = list(incompatibilities[identifier])
        for filename in FILES[identifier]:
            candidate = Candidate(identifier, parse_filename(filename).version, filename)
            if candidate not in excluded and all(
                self.is_satisfied_by(requirement, candidate) for requirement in wanted
            ):
                yield candidate

    def is_satisfied_by(self, requirement, candidate):
        return candidate.version in requirement.specifier

    def get_dependencies(self, candidate):
        return [Requirement(text) for text in REQUIRES.get(candidate.name, [])]


class Files:
    """What the wrapper has to know of that provider: `ProviderFiles`."""

    def version(self, candidate):
        return candidate.version

    def filename(self, candidate):
        return candidate.filename

    def source(self, candidate):
        return INDEX

    def metadata(self, project, candidate):
        return read_metadata(TENSORS_2_0_VARIANTS_JSON, f"{INDEX}tensors-2.0-variants.json")

    def has_variants(self, identifier):
        return any(parse_filename(filename).label for filename in FILES[identifier])

    def project(self, identifier):
        return identifier

    def dependencies(self, candidate, reduce):
        reduced = [reduce(text) for text in REQUIRES.get(candidate.name, [])]
        parsed = [Requirement(text) for text in reduced if text is not None]
        return [item for item in parsed if item.marker is None or item.marker.evaluate()]


# `Detector().platform` looks at this machine; this stands for one with a driver for CUDA 12.9.
platform = load_machine("cuda=12.9")
provider = VariantProvider(PlainProvider(), Files(), platform=Detector(platform=platform).platform)
result = Resolver(provider, BaseReporter()).resolve([Requirement("tensors")])
for candidate in result.mapping.values():
    print(candidate.filename)
