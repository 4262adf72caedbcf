"""What tests put on an index, and how they ask for it."""

from pep_variants._choose.preferences import preferences_from_options
from pep_variants._formats.platform_file import read_platform
from pep_variants._sources import Sources
from resolvelib_variants.resolution import IndexResolver, RequirementSet, parse_requirement
from support.wheels import NVIDIA, Release, Wheel, metadata
from variants_index._cache import Store
from variants_index._http.session import Session
from variants_index.target import make_target

GPU = """
[[provider]]
namespace = "nvidia"
[provider.properties]
cuda_version_lower_bound = ["12.8", "12.7", "12.6"]
"""


def cuda(name, version, *releases, requires=(), **options):
    """Return a release with the null variant and one for each CUDA release."""
    variants = {"null": {}}
    for release in releases:
        label = f"cu{release.replace('.', '')}"
        variants[label] = {"nvidia": {"cuda_version_lower_bound": [release]}}
    tree = metadata(variants, namespaces=["nvidia"], providers={"nvidia": NVIDIA})
    return Release(name, version, tree, tuple(requires), **options)


def target(platform=GPU, name="gpu"):
    return make_target(
        python_version="3.12",
        platforms=["manylinux_2_28_x86_64"],
        name=name,
        platform=read_platform(f'[metadata]\nversion = "0.1"\n{platform}', f"{name}.toml"),
    )


class World:
    """An index and how it is asked; `files` are contents by project and filename."""

    def __init__(self, server, folder):
        self.server, self.folder, self.files = server, folder, server.files
        server.ranges = server.etags = server.metadata_hashes = True
        self.links = folder / "links"

    def add(self, *items, core_metadata=True, **attributes):
        """Put wheels, releases and files (name, filename, bytes) on the index."""
        for item in items:
            if isinstance(item, Release):
                self.server.add_release(item, metadata_file=core_metadata)
            elif isinstance(item, Wheel):
                self.server.add_wheel(item, metadata_file=core_metadata, **attributes)
            else:
                self.server.add(*item, **attributes)
        return self

    def resolver(self, *, options=None, cached=False, sources=None, **more):
        sources = sources or Sources(index_url=self.server.url, **more)
        store = Store(self.folder / "cache") if cached else None
        session = Session(sources, store=store, environ={}, retries=1, first_pause=0.01)
        return IndexResolver(
            sources, preferences=preferences_from_options(options or {}), session=session
        )

    def resolve(
        self, *requirements, on=None, constraints=(), pre=False, requirement_set=None, **options
    ):
        """Resolve; return the resolution."""
        requirement_set = requirement_set or RequirementSet(
            tuple(map(parse_requirement, requirements)),
            tuple(map(parse_requirement, constraints)),
            pre=pre,
        )
        with self.resolver(**options) as resolver:
            return resolver.resolve(requirement_set, on or target())

    def names(self, *requirements, **options):
        """Resolve and return what is chosen, as ``name-version-label``."""
        return short(self.resolve(*requirements, **options))


def short(resolution):
    return " ".join(
        "-".join(filter(None, (package.name, str(package.version), package.label)))
        for package in resolution.packages
    )
