"""In-place pages: what stands in for an index's own page, and the files that it links to."""

import hashlib

import httpx
import pytest
from machines import NVIDIA
from upstream_server import JSON, metadata_of

from variants_proxy import Machine, encode
from variants_proxy.urls import in_place_url

KEY = encode(Machine(NVIDIA, target="linux-x86_64"))
CU128 = "app-1.0-py3-none-any-cu128.whl"
CU128_HERE = "app-1.0-0_cu128-py3-none-any.whl"
MARKED = ("a; 'nvidia' in variant_namespaces", "b; variant_label == ''")


class Asked:
    """What a client sees of an index of a proxy."""

    def __init__(self, proxy, key=KEY, index="main"):
        self.proxy = proxy
        self.key = key
        self.index = index

    def url(self, project="app"):
        return self.proxy.url + in_place_url(self.key, self.index, project)

    def get(self, path="", project="app", **options):
        options.setdefault("headers", {"Accept": JSON})
        return self.proxy.get(self.url(project) + path, **options)

    def files(self, project="app"):
        answer = self.get(project=project)
        answer.raise_for_status()
        return {file["filename"]: file for file in answer.json()["files"]}


class TestPages:
    def test_a_variant_is_beside_the_page(self, upstream, start):
        upstream.add_release()
        upstream.add("app", "app-1.0.tar.gz", b"source")
        files = Asked(start(upstream)).files()
        assert set(files) == {CU128_HERE, "app-1.0.tar.gz"}
        data = upstream.files["app"][CU128]
        assert files[CU128_HERE]["url"] == f".variant/cu128/{CU128_HERE}"
        assert files[CU128_HERE]["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}
        assert files[CU128_HERE]["size"] == len(data)
        assert files["app-1.0.tar.gz"]["url"] == f"{upstream.url}/files/app/app-1.0.tar.gz"

    def test_the_page_is_asked_for_again(self, upstream, start):
        upstream.add_release()
        asked = Asked(start(upstream))
        answer = asked.get()
        assert answer.headers["Cache-Control"] == "no-cache"
        again = asked.get(headers={"Accept": JSON, "If-None-Match": answer.headers["ETag"]})
        assert again.status_code == 304

    def test_no_project(self, upstream, start):
        asked = Asked(start(upstream))
        assert asked.get(project="nothing").status_code == 404
        assert asked.get(project="").status_code == 404


class TestFiles:
    def test_unchanged(self, upstream, start):
        upstream.add_release()
        answer = Asked(start(upstream)).get(f".variant/cu128/{CU128_HERE}")
        assert answer.status_code == 307
        assert answer.headers["Location"] == f"{upstream.url}/files/app/{CU128}"

    @pytest.mark.parametrize("label", ["cu126", "cu128", "cu130", "null"])
    def test_every_label(self, upstream, start, label):
        """Also what does not fit here: it is in somebody's lock file."""
        upstream.add_release()
        path = f".variant/{label}/app-1.0-0_{label}-py3-none-any.whl"
        answer = Asked(start(upstream)).get(path, follow_redirects=True)
        assert answer.content == upstream.files["app"][f"app-1.0-py3-none-any-{label}.whl"]

    def test_the_metadata(self, upstream, start):
        upstream.add_release()
        answer = Asked(start(upstream)).get(f".variant/cu128/{CU128_HERE}.metadata")
        assert answer.content == metadata_of(upstream.files["app"][CU128])
        assert answer.headers["Cache-Control"] == "no-cache"
        assert answer.headers["ETag"]

    @pytest.mark.parametrize(
        "path",
        [
            f".variant/cu126/{CU128_HERE}",
            f".variant/cu128/{CU128}",
            ".variant/cu999/app-1.0-0_cu999-py3-none-any.whl",
            ".variant/cu128/app-2.0-0_cu128-py3-none-any.whl",
            ".variant/cu128/app-1.0-0_cu128-py3-none-any.tar.gz",
        ],
    )
    def test_not_there(self, upstream, start, path):
        upstream.add_release()
        asked = Asked(start(upstream))
        assert asked.get(path).status_code == 404
        assert asked.get(f"{path}.metadata").status_code == 404

    def test_markers(self, upstream, start):
        upstream.add_release("1.0", *MARKED)
        asked = Asked(start(upstream))
        file = asked.files()[CU128_HERE]
        answer = asked.get(file["url"])
        assert hashlib.sha256(answer.content).hexdigest() == file["hashes"]["sha256"]
        assert "immutable" in answer.headers["Cache-Control"]
        metadata = asked.get(f"{file['url']}.metadata").content
        assert metadata == metadata_of(answer.content)
        assert b"Requires-Dist: a\n" in metadata
        assert b"Requires-Dist: b" not in metadata


def test_an_unknown_client_is_told_apart(upstream, start):
    upstream.add_release()
    answer = Asked(start(upstream), key="c~" + "0" * 32).get()
    assert answer.status_code == 410
    assert isinstance(answer, httpx.Response)
