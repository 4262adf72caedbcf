"""The wrapper: what it passes through, what it arranges, what it reduces."""

import copy
import re
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement as ParsedRequirement
from resolvelib import AbstractProvider, BaseReporter, ResolutionImpossible, Resolver

import resolvelib_variants
from pep_variants._choose.preferences import Preferences
from pep_variants._model.metadata import Metadata
from pep_variants._model.platform import Platform, Support
from pep_variants.errors import InvalidMarker
from resolvelib_variants.provider import TransparentProvider, VariantProvider


class Requirement(NamedTuple):
    name: str
    versions: str


class Candidate(NamedTuple):
    name: str
    version: str
    filename: str | None
    requires: tuple[str, ...] = ()
    source: str = "https://a.example/simple/"


def wheel(name, version, label=None, requires=(), platform="any", **more):
    suffix = f"-{label}" if label else ""
    filename = f"{name}-{version}-py3-none-{platform}{suffix}.whl"
    return Candidate(name, version, filename, tuple(requires), **more)


class Provider(AbstractProvider):
    """Names and exact versions; `form` makes the matches what find_matches returns."""

    greeting = "hello"

    def __init__(self, *candidates, form=list):
        self.candidates = candidates
        self.form = form
        self.found = []
        self.asked = []

    def identify(self, requirement_or_candidate):
        return requirement_or_candidate.name

    def get_preference(self, identifier, resolutions, candidates, information, backtrack_causes):
        return identifier

    def find_matches(self, identifier, requirements, incompatibilities):
        wanted = list(requirements[identifier])
        excluded = list(incompatibilities[identifier])
        self.found.append(
            self.form(
                [
                    candidate
                    for candidate in self.candidates
                    if candidate.name == identifier
                    and candidate not in excluded
                    and all(candidate.version in requirement.versions for requirement in wanted)
                ]
            )
        )
        return self.found[-1]

    def is_satisfied_by(self, requirement, candidate):
        return candidate.version in requirement.versions

    def get_dependencies(self, candidate):
        self.asked.append(candidate)
        return [Requirement(*text.split("==")) for text in candidate.requires]

    def narrow_requirement_selection(
        self, identifiers, resolutions, candidates, information, backtrack_causes
    ):
        return sorted(identifiers)


METADATA = Metadata(
    namespaces=("cpu",),
    variants={f"v{n}": {"cpu": {"level": (f"v{n}",)}} for n in (1, 2, 3, 4)},
)


class Files:
    """`ProviderFiles` of the provider above: names with an `x` have variants.

    What is found, or raised, may be given by project or source; projects of these have variants.
    """

    def __init__(self, found=METADATA, *, markers=True):
        self.found = found
        self.markers = markers
        self.read = []

    def version(self, candidate):
        return candidate.version

    def filename(self, candidate):
        return candidate.filename

    def source(self, candidate):
        assert candidate.filename is not None
        return candidate.source

    def metadata(self, project, candidate):
        self.read.append((project, candidate.version))
        found = self.found
        if isinstance(found, dict):
            found = found[project if project in found else candidate.source]
        if isinstance(found, Exception):
            raise found
        return found

    def has_variants(self, identifier):
        return identifier in self.found if isinstance(self.found, dict) else identifier[0] == "x"

    def project(self, identifier):
        return identifier

    def dependencies(self, candidate, reduce):
        if not self.markers:
            return None
        texts = filter(None, map(reduce, candidate.requires))
        parsed = map(ParsedRequirement, texts)
        return [Requirement(item.name, str(item.specifier).removeprefix("==")) for item in parsed]


def wrap(base, files=None, kind=VariantProvider, **preferences):
    platform = Platform({"cpu": Support({"level": ("v3", "v2", "v1")})})
    return kind(
        base,
        files or Files(),
        platform=lambda metadata: platform,
        preferences=Preferences(**preferences),
    )


class Iterators(dict):
    """A mapping as resolvelib passes it: each look-up gives a new iterator."""

    def __getitem__(self, key):
        return iter(super().__getitem__(key))

    def get(self, key, default=()):
        return iter(super().get(key, default))


def matches(provider, name, versions="123", excluded=()):
    return provider.find_matches(
        identifier=name,
        requirements=Iterators({name: [Requirement(name, versions)]}),
        incompatibilities=Iterators({name: excluded}),
    )


def resolve(provider, *requirements):
    wanted = [Requirement(*requirement.split("==")) for requirement in requirements]
    mapping = Resolver(provider, BaseReporter()).resolve(wanted, max_rounds=100).mapping
    return {name: candidate.filename for name, candidate in mapping.items()}


X = [
    wheel("x", "2", "v1"),
    wheel("x", "2", "v2"),
    wheel("x", "2"),
    wheel("x", "1", "v1"),
    wheel("x", "1"),
]
FORMS = [list, tuple, set, iter, lambda items: lambda: iter(items)]


class TestFindMatches:
    @pytest.mark.parametrize("form", FORMS)
    def test_without_variants_the_very_same_object(self, form):
        base = Provider(wheel("a", "2"), wheel("a", "1"), form=form)
        assert matches(wrap(base), "a") is base.found[0]

    @pytest.mark.parametrize("form", [list, tuple, iter, lambda items: lambda: iter(items)])
    def test_arranged_lazily_and_as_often_as_wanted(self, form):
        files = Files()
        found = matches(wrap(Provider(*X, form=form), files), "x")
        assert not files.read
        first = iter(found())
        assert next(first) == X[1]
        assert files.read == [("x", "2")]
        assert list(first) == [X[3]]
        assert list(found()) == [X[1], X[3]]
        assert files.read == [("x", "2"), ("x", "1")]


class TestGetDependencies:
    MARKERS = (
        "a==1",
        "b==1; 'cpu :: level :: v2' in variant_properties",
        "c==1; variant_label == ''",
        "d==1; 'cpu' not in variant_namespaces and python_version >= '3'",
    )

    def test_reduced(self):
        candidates = [wheel("x", "1", label, self.MARKERS) for label in ("v1", "v2", None)]
        base = Provider(*candidates)
        provider = wrap(base)
        list(matches(provider, "x")())
        for candidate, expected in zip(candidates, ("a", "ab", "acd"), strict=True):
            found = provider.get_dependencies(candidate=candidate)
            assert "".join(requirement.name for requirement in found) == expected
        assert provider.get_dependencies(wheel("a", "1")) == []  # which is not None
        assert not base.asked

    def test_none_asks_the_wrapped_provider(self):
        candidate = wheel("a", "1", requires=["b==1"])
        base = Provider(candidate)
        assert wrap(base, Files(markers=False)).get_dependencies(candidate) == [
            Requirement("b", "1")
        ]
        assert base.asked == [candidate]

    def test_a_marker_that_makes_no_sense_is_for_the_client_to_judge(self):
        candidate = wheel("x", "1", "v1", ["a; variant_label == os_name"])
        with pytest.raises(InvalidMarker, match="variant_label"):
            wrap(Provider(candidate)).get_dependencies(candidate)


class TestProvisional:
    """Where the index tells that the wheels of a version have the same METADATA."""

    class Hashed(Files):
        def metadata_hash(self, candidate):
            return candidate.version, candidate.requires

    LABELS = ("v1", "v2", "v3", "null")

    def test_variants_are_judged_of_versions_whose_dependencies_are_accepted(self):
        files = self.Hashed()
        candidates = [
            wheel("x", version, label, () if version == "1" else ["a==2"])
            for version in "987654321"
            for label in (self.LABELS if version != "2" else ("v1", "v2", "null"))
        ]
        base = Provider(*candidates, wheel("a", "2"), wheel("a", "1"))
        found = resolve(wrap(base, files), "x==123456789", "a==1")
        assert found == {"x": "x-1-py3-none-any-v3.whl", "a": "a-1-py3-none-any.whl"}
        # There is no v3 of 2, which the others have.
        assert files.read == [("x", "9"), ("x", "2"), ("x", "1")]

    def test_what_was_confirmed_is_not_offered_again(self):
        files = self.Hashed()
        candidates = [wheel("x", version, label) for version in "21" for label in self.LABELS]
        provider = wrap(Provider(*candidates), files)
        found = iter(matches(provider, "x")())
        assert next(found) == wheel("x", "2", "v3")
        provisional = next(found)
        assert provisional == wheel("x", "1", "v3")
        assert files.read == [("x", "2")]
        assert provider.ordering.confirm("x", provisional)
        assert files.read == [("x", "2"), ("x", "1")]
        assert not list(found)

    def test_refused_where_another_variant_is_chosen(self):
        class OtherwiseIn2(self.Hashed):
            def metadata(self, project, candidate):
                found = super().metadata(project, candidate)
                if (project, candidate.version) == ("x", "2"):
                    unfit = {**found.variants, "v3": {"cpu": {"level": ("v9",)}}}
                    return Metadata(found.namespaces, unfit)
                return found

        candidates = [
            wheel(name, version, label, ["a==2"] if version == "3" else [])
            for name in ("x", "xx")
            for version in "32"
            for label in self.LABELS
        ]
        provider = wrap(Provider(*candidates, wheel("a", "2"), wheel("a", "1")), OtherwiseIn2())
        found = resolve(provider, "a==1", "x==32", "xx==32")
        assert (found["x"], found["xx"]) == ("x-2-py3-none-any-v2.whl", "xx-2-py3-none-any-v3.whl")

    def test_a_refusal_is_not_told_as_a_cause(self):
        candidates = [
            *(wheel("x", "2", label, ["a==3"]) for label in ("v2", "null")),
            *(wheel("x", "1", label, ["b==1"]) for label in self.LABELS),
            wheel("b", "1", requires=["a==4"]),
            wheel("a", "1"),
        ]
        provider = wrap(Provider(*candidates), self.Hashed())
        with pytest.raises(ResolutionImpossible) as caught:
            resolve(provider, "x==12")
        assert "another variant" not in provider.explain(caught.value.causes)


def test_a_forced_label_of_a_project_without_variants_is_missing():
    provider = wrap(Provider(wheel("a", "1")), forced={"a": "v1"})
    with pytest.raises(ResolutionImpossible):
        resolve(provider, "a==1")
    assert "a 1 has no variant 'v1'" in str(provider.ordering.missing["a"])


class TestDelegation:
    def test_what_is_not_ours_is_the_wrapped_providers(self):
        base = Provider(*X)
        provider = wrap(base)
        assert provider.identify(X[0]) == provider.identify(requirement_or_candidate=X[0]) == "x"
        assert provider.get_preference("x", {}, {}, {}, []) == "x"
        assert provider.is_satisfied_by(Requirement("x", "1"), X[3]) is True
        assert provider.is_satisfied_by(requirement=Requirement("x", "1"), candidate=X[0]) is False
        assert provider.narrow_requirement_selection(["y", "x"], {}, {}, {}, []) == ["x", "y"]

    def test_one_that_is_transparent_has_the_attributes_of_the_wrapped_provider(self):
        base = Provider(*X)
        provider = wrap(base, kind=TransparentProvider)
        assert resolve(provider, "x==12") == resolve(wrap(base), "x==12")
        assert provider.greeting == copy.copy(provider).greeting == "hello"
        assert provider.candidates is base.candidates
        with pytest.raises(AttributeError, match="'Provider' object has no attribute 'nonsense'"):
            _ = provider.nonsense


def test_resolvelib_is_imported_in_one_place():
    package = Path(resolvelib_variants.__file__).parent
    imports = re.compile(r"^\s*(?:import|from) resolvelib\b", re.MULTILINE)
    # What is below that is no part of the wrapper, and is not bundled.
    found = [path.name for path in package.glob("*.py") if imports.search(path.read_text())]
    assert found == ["provider.py"]


def test_everything_public_is_documented():
    for module in ("abi_requirements", "interfaces", "ordering", "provider"):
        face = import_module(f"resolvelib_variants.{module}")
        assert face.__all__ == sorted(face.__all__)
        assert all(getattr(face, name).__doc__ for name in face.__all__)
