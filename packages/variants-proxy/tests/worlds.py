"""The machine of most tests, its platform key, and what clients see of a proxy."""

import httpx

from pep_variants._choose.preferences import preferences_from_options
from pep_variants._model.platform import Platform, Support
from support.index import JSON
from variants_proxy._choice.in_place_names import wheel_at
from variants_proxy._clients import Clients
from variants_proxy.settings import ClientSettings
from variants_proxy.urls import Machine, encode, index_url, links_url

NVIDIA = Platform({"nvidia": Support({"cuda_version_lower_bound": ("12.8", "12.7", "12.6")})})
KEY = encode(Machine(NVIDIA, target="linux-x86_64"))
BARE = encode(Machine(target="linux-x86_64"))
"""A machine of which nothing is known."""

APP = "app-1.0-py3-none-any.whl"
CU128 = "app-1.0-py3-none-any-cu128.whl"
CU128_HERE = "app-1.0-0_cu128-py3-none-any.whl"
"""The name of `CU128` on pages of the proxy."""

MARKED = ("a; 'nvidia' in variant_namespaces", "b; variant_label == ''")


def key(**options):
    """Return the key of the machine with preferences of the user."""
    return encode(
        Machine(NVIDIA, target="linux-x86_64", preferences=preferences_from_options(options))
    )


def label_of(file):
    """Return the label in the URL of an entry, None for a file of the upstream."""
    return (wheel_at(file["url"]) or (None,))[0]


class RunningProxy:
    """A running proxy, and what clients do with it."""

    def __init__(self, url, settings, server, service):
        self.url = url
        self.service = service
        self.server = server
        self.settings = settings
        # Loopback without TLS: reading certificates takes longer than most of these tests.
        self.client = httpx.Client(base_url=url, timeout=20, trust_env=False, verify=False)

    def get(self, path, **options):
        return self.client.get(path, **options)

    def page(self, project="app", key=KEY, index=None):
        url = f"{index_url(key, index)}{project}/"
        answer = self.get(url, headers={"Accept": JSON})
        answer.raise_for_status()
        tree = answer.json()
        for file in tree["files"]:
            file["url"] = str(httpx.URL(self.url + url).join(file["url"]))
        return tree

    def files(self, *args, **options):
        """Return the entries by plain filename; of equal ones the variant, as pip takes it."""
        found = {}
        for file in self.page(*args, **options)["files"]:
            label, plain = wheel_at(file["url"]) or (None, file["filename"])
            if label is not None or plain not in found:
                found[plain] = file
        return found

    def report(self, project="app", key=KEY):
        return self.get(f"/p/{key}/variants/{project}/").json()


class KnownClients(Clients):
    """Clients of in-place pages as well, by their keys in place of a platform key."""

    def __init__(self, settings):
        super().__init__(settings)
        self._in_place = {}

    def add(self, settings):
        client = self.in_place(settings)
        self._in_place[client.key] = client
        return client.key

    def client(self, key):
        return self._in_place.get(key) or super().client(key)


class Asked:
    """What a client of in-place pages sees of an index of a proxy."""

    def __init__(self, proxy, key=KEY, index="main", **settings):
        self.proxy = proxy
        self.key = proxy.service.clients.add(ClientSettings(key, **settings))
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

    def labels(self):
        """Return the labels on the page of ``app`` 1.0 by tags."""
        found = {}
        for name, file in self.files().items():
            label, plain = wheel_at(file["url"]) or (None, name)
            found[plain.removeprefix("app-1.0-").removesuffix(".whl")] = label
        return found

    def report(self, project="app"):
        return self.proxy.report(project, self.key)
