"""What tests put on an index, and how they ask for it."""

import hashlib
import json

from pep_variants.choose.preferences import preferences_from_options
from pep_variants.formats.platform_file import read_platform
from pep_variants.sources import Sources
from resolvelib_variants.resolution import IndexResolver, RequirementSet, parse_requirement
from support.wheels import NVIDIA, Release, Wheel, metadata
from variants_index.cache import Store
from variants_index.http.session import Session
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
    """An index.

    Attributes:
        server: the server, see `index_server`.
        files: page entries by project and filename; `publish` shows them.
    """

    def __init__(self, server, folder):
        self.server = server
        self.folder = folder
        self.files = {}
        self.links = folder / "links"

    def add(self, *items, core_metadata=True, **attributes):
        """Put wheels, releases and files (name, filename, bytes) on the index."""
        for item in items:
            if isinstance(item, Release):
                self.add(*item.wheels(), core_metadata=core_metadata, **attributes)
                data = json.dumps(item.metadata).encode()
                self.add((item.name, item.metadata_filename, data))
            elif isinstance(item, Wheel):
                entry = dict(attributes)
                if core_metadata:
                    data = item.metadata()
                    path = f"/files/{item.filename}.metadata"
                    self.server.resources[path] = resource(data)
                    entry["core-metadata"] = {"sha256": hashlib.sha256(data).hexdigest()}
                entry["body"] = item.build()
                self.files.setdefault(item.name, {})[item.filename] = entry
            else:
                name, filename, data = item
                self.files.setdefault(name, {})[filename] = {"body": data, **attributes}
        return self

    def publish(self):
        for project, files in self.files.items():
            copies = {filename: dict(entry) for filename, entry in files.items()}
            self.server.page(project, copies, etag=True)
        return self

    def resolver(self, *, options=None, cached=False, sources=None, **more):
        sources = sources or Sources(index_url=self.server.simple, **more)
        store = Store(self.folder / "cache") if cached else None
        session = Session(sources, store=store, environ={}, retries=1, first_pause=0.01)
        return IndexResolver(
            sources, preferences=preferences_from_options(options or {}), session=session
        )

    def resolve(
        self, *requirements, on=None, constraints=(), pre=False, requirement_set=None, **options
    ):
        """Publish and resolve; return the resolution."""
        self.publish()
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


def resource(body):
    from support.index_server import Resource

    return Resource(body, ranges=True)


def short(resolution):
    return " ".join(
        "-".join(filter(None, (package.name, str(package.version), package.label)))
        for package in resolution.packages
    )
