"""In-place pages as a client sees them."""

from machines import NVIDIA
from upstream_server import JSON

from pep_variants.choose.preferences import preferences_from_options
from variants_proxy import Machine, encode
from variants_proxy.choice.in_place_names import wheel_at
from variants_proxy.clients import ClientSettings
from variants_proxy.index_urls import index_url, links_url

KEY = encode(Machine(NVIDIA, target="linux-x86_64"))
CU128 = "app-1.0-py3-none-any-cu128.whl"
CU128_HERE = "app-1.0-0_cu128-py3-none-any.whl"
MARKED = ("a; 'nvidia' in variant_namespaces", "b; variant_label == ''")


class Asked:
    """What a client sees of an index of a proxy."""

    def __init__(self, proxy, key=KEY, index="main"):
        self.proxy = proxy
        if not key.startswith("c~"):
            key = proxy.service.clients.register(ClientSettings(key))
        self.key = key
        self.index = index

    def url(self, project="app"):
        if project == "":
            return self.proxy.url + links_url(self.key, self.index)
        return f"{self.proxy.url}{index_url(self.key, self.index)}{project}/"

    def get(self, path="", project="app", **options):
        options.setdefault("headers", {"Accept": JSON})
        return self.proxy.get(self.url(project) + path, **options)

    def files(self, project="app"):
        answer = self.get(project=project)
        answer.raise_for_status()
        return {file["filename"]: file for file in answer.json()["files"]}


def key(**options):
    return encode(
        Machine(NVIDIA, target="linux-x86_64", preferences=preferences_from_options(options))
    )


def registered(proxy, given=KEY, **settings):
    return Asked(proxy, proxy.service.clients.register(ClientSettings(given, **settings)))


BARE = encode(Machine(target="linux-x86_64"))
"""A machine of which nothing is known."""


def listed(asked, project="app"):
    """Return the labels on a page by tags."""
    found = {}
    for name, file in asked.files(project).items():
        label, plain = wheel_at(file["url"]) or (None, name)
        found[plain.removeprefix("app-1.0-").removesuffix(".whl")] = label
    return found
