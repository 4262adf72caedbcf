"""METADATA of a version with variants: merged for uv, of each wheel for other installers."""

import base64
import hashlib
import json

import pytest
from machines import NVIDIA
from upstream_server import JSON, document, wheel

from pep_variants.wheelfile.core_metadata import requirements_of
from variants_proxy import Machine, encode, index_url
from variants_proxy.clients import ClientSettings

LINUX, MAC = "cp312-cp312-manylinux_2_28_x86_64", "cp312-cp312-macosx_11_0_arm64"
KEY = encode(Machine(NVIDIA, target="linux-x86_64"))
UV = {"User-Agent": 'uv/0.13.9 {"installer":{"name":"uv"}}'}
LOCKING = [UV["User-Agent"], "poetry/2.5.1 CPython/3.12.7 Linux/6.8", "pdm/2.29.2 CPython/3.12.7"]
ON_LINUX = "sys_platform == 'linux' and platform_machine == 'x86_64'"
MERGED = ("a", f"cuda; {ON_LINUX}")
MERGED_FOR_MAC = ("a", "mac; sys_platform != 'linux' or platform_machine != 'x86_64'")


def add(upstream, filename, *requires):
    variants = document("12.8")
    own = variants if filename.endswith(("-cu128.whl", "-null.whl")) else None
    upstream.add("app", filename, wheel(filename, *requires, variants=own))
    upstream.add("app", "app-1.0-variants.json", json.dumps(variants).encode())


@pytest.fixture
def index(upstream):
    upstream.core_metadata = True
    add(upstream, f"app-1.0-{LINUX}-cu128.whl", "a", "cuda")
    add(upstream, f"app-1.0-{LINUX}.whl", "a")
    add(upstream, f"app-1.0-{MAC}.whl", "a")
    return upstream


class Asked:
    """A page, and the METADATA that belongs to its files."""

    def __init__(self, proxy, path, headers):
        self.proxy = proxy
        self.path = path
        self.headers = {"Accept": JSON, **headers}
        self.answer = proxy.get(path, headers=self.headers)
        self.answer.raise_for_status()
        self.files = {file["filename"]: file for file in self.answer.json()["files"]}

    def requires(self, filename):
        file = self.files[filename]
        url = f"{file['url']}.metadata"
        path = url if url.startswith("http") else self.path + url
        answer = self.proxy.get(path, headers=self.headers, follow_redirects=True)
        answer.raise_for_status()
        promised = file["core-metadata"]
        if promised is not True:
            assert promised == {"sha256": hashlib.sha256(answer.content).hexdigest()}
        return requirements_of(answer.content)


def in_place(proxy, key=KEY, headers=(), **settings):
    name = proxy.service.clients.register(ClientSettings(key, **settings))
    return Asked(proxy, f"{index_url(name, 'main')}app/", dict(headers))


def usual(proxy, headers=()):
    return Asked(proxy, f"{index_url(KEY)}app/", dict(headers))


class TestInPlace:
    def test_the_metadata_is_merged(self, index, start):
        asked = in_place(start(index))
        assert asked.requires(f"app-1.0-0_cu128-{LINUX}.whl") == MERGED

    def test_plain_wheels_keep_their_url(self, index, start):
        """uv does not read their METADATA: they have no build tag."""
        asked = in_place(start(index))
        name = f"app-1.0-{MAC}.whl"
        assert asked.files[name]["url"] == f"{index.url}/files/app/{name}"
        assert asked.requires(name) == ("a",)

    def test_build_tags_of_plain_wheels(self, index, start):
        name = f"app-1.0-1-{MAC}.whl"
        add(index, name, "a", "mac")
        asked = in_place(start(index))
        assert asked.files[name]["url"] == f".variant/-/{name}"
        cuda = asked.requires(f"app-1.0-0_cu128-{LINUX}.whl")
        assert set(cuda) == set(asked.requires(name)) == {*MERGED, MERGED_FOR_MAC[1]}
        assert asked.proxy.get(asked.path + asked.files[name]["url"]).status_code == 307

    def test_what_a_lock_has_is_what_counts(self, index, start):
        add(index, f"app-1.0-{LINUX}-null.whl", "a", "cpu")
        asked = in_place(start(index), locked={"app": {"1.0": ("null",)}})
        assert asked.requires(f"app-1.0-0_null-{LINUX}.whl") == ("a", f"cpu; {ON_LINUX}")

    def test_a_label_that_is_not_on_the_page(self, index, start):
        """It stands in for the one that is."""
        add(index, f"app-1.0-{LINUX}-null.whl", "a", "cpu")
        asked = in_place(start(index))
        path = f"{asked.path}.variant/null/app-1.0-0_null-{LINUX}.whl.metadata"
        assert requirements_of(asked.proxy.get(path).content) == ("a", f"cpu; {ON_LINUX}")

    def test_variant_markers_are_evaluated_first(self, upstream, start):
        marked = ("cuda; 'nvidia' in variant_namespaces and python_version >= '3.9'", "a")
        upstream.core_metadata = True
        add(upstream, f"app-1.0-{LINUX}-cu128.whl", *marked)
        add(upstream, f"app-1.0-{MAC}.whl", *marked)
        asked = in_place(start(upstream))
        # The plain wheel has markers itself, so it comes from the proxy, too.
        for name in (f"app-1.0-0_cu128-{LINUX}.whl", f"app-1.0-{MAC}.whl"):
            assert set(asked.requires(name)) == {
                "a",
                f"cuda; python_version >= '3.9' and {ON_LINUX}",
            }

    def test_a_wheel_that_cannot_be_read(self, index, start):
        name = f"app-1.0-{MAC}.whl"
        index.faults[f"/files/app/{name}.metadata"] = (404, {}, b"")
        index.faults[f"/files/app/{name}"] = (404, {}, b"")
        asked = in_place(start(index))
        cuda = f"app-1.0-0_cu128-{LINUX}.whl"
        assert asked.requires(cuda) == ("a", "cuda")

    def test_equal_dependencies(self, upstream, start):
        upstream.core_metadata = True
        upstream.add_release("1.0", "a", tags=[LINUX, MAC])
        asked = in_place(start(upstream))
        assert asked.requires(f"app-1.0-0_cu128-{LINUX}.whl") == ("a",)

    def test_every_page_is_the_same(self, index, start):
        add(index, f"app-1.0-{LINUX}-null.whl", "a", "cpu")
        proxy = start(index)
        name = f"app-1.0-0_cu128-{LINUX}.whl"
        items = ({}, {"hashes": False}, {"locked": {"app": {"1.0": ("cu128",)}}})
        pages = [in_place(proxy, **item) for item in items]
        urls = [f"{page.path}{page.files[name]['url']}.metadata" for page in pages]
        assert len({proxy.get(url).content for url in urls}) == 1


class TestClients:
    """Addresses that all installers use: who asks decides."""

    @pytest.mark.parametrize("agent", LOCKING)
    def test_those_that_lock_for_several_platforms(self, index, start, agent):
        asked = usual(start(index), {"User-Agent": agent})
        assert asked.requires(f"app-1.0-0_cu128-{LINUX}.whl") == MERGED
        assert "User-Agent" in asked.answer.headers["Vary"]

    def test_others(self, index, start):
        asked = usual(start(index))
        assert asked.requires(f"app-1.0-0_cu128-{LINUX}.whl") == ("a", "cuda")
        assert asked.requires(f"app-1.0-{MAC}.whl") == ("a",)
        assert "User-Agent" in asked.answer.headers["Vary"]

    def test_neither_gets_what_was_made_for_the_other(self, index, start):
        proxy = start(index)
        name = f"app-1.0-0_cu128-{LINUX}.whl"
        for headers, expected in 2 * [(UV, MERGED), ({}, ("a", "cuda"))]:
            assert usual(proxy, headers).requires(name) == expected

    def test_one_index_for_all_machines(self, index, start):
        """The pages have labels in names, as in-place pages have, but pip reads them as well."""
        proxy = start(index)
        basic = base64.b64encode(f"{KEY}:v".encode()).decode()
        name = f"app-1.0-0_cu128-{LINUX}.whl"
        for headers, expected in 2 * [(UV, MERGED), ({}, ("a", "cuda"))]:
            asked = Asked(proxy, "/simple/app/", {**headers, "Authorization": f"Basic {basic}"})
            assert asked.requires(name) == expected
            assert "User-Agent" in asked.answer.headers["Vary"]
