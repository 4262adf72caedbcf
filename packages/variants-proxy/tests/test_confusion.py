"""One upstream claims the hashes of another's files: what it says counts for its own files only."""

import hashlib
import io
import json
import zipfile

from upstream_server import document, wheel
from worlds import APP, CU128

from support.index import Answer, metadata_of

BAIT = "bait-1.0-py3-none-any-cu128.whl"
MARKED = "helper; 'nvidia' in variant_namespaces"


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def add_bait(other, claimed, *requires, core_metadata=None):
    """Let *other* list a wheel of its own under the hash *claimed*."""
    found = document("12.8")
    other.add("bait", BAIT, wheel(BAIT, *requires, variants=found))
    other.add("bait", "bait-1.0-variants.json", json.dumps(found).encode())
    other.attributes[BAIT] = {"hashes": {"sha256": claimed}}
    if core_metadata is not None:
        other.attributes[BAIT]["core-metadata"] = {"sha256": core_metadata}


def metadata_from(proxy, project, filename):
    file = proxy.files(project)[filename]
    answer = proxy.get(f"{file['url']}.metadata", follow_redirects=True)
    return answer.content


class TestMetadata:
    def test_of_a_wheel_under_a_trusted_hash(self, upstream, other, start):
        upstream.add_release()
        trusted = upstream.files["app"][CU128]
        add_bait(other, sha256(trusted), "evil-pkg")
        proxy = start(upstream, other)
        assert b"evil-pkg" in metadata_from(proxy, "bait", BAIT.replace("-cu128", ""))
        for running in (proxy, start(upstream, other)):
            assert metadata_from(running, "app", APP) == metadata_of(trusted)

    def test_under_the_hash_of_trusted_metadata(self, upstream, other, start):
        upstream.add_release()
        upstream.core_metadata = True
        trusted = metadata_of(upstream.files["app"][CU128])
        # It says that METADATA is beside the wheel, and there is none.
        evil = "evil-pkg; 'nvidia' in variant_namespaces"
        add_bait(other, "0" * 64, evil, core_metadata=sha256(trusted))
        proxy = start(upstream, other)
        proxy.page("bait")
        for running in (proxy, start(upstream, other)):
            assert metadata_from(running, "app", APP) == trusted


class TestAnnouncements:
    def test_of_a_wheel_that_is_put_together(self, upstream, other, start):
        """Parts of a bait differ from the whole, which has the hash that is claimed."""
        upstream.add_release("1.0", MARKED)
        found = document("12.6", "12.8", "13.0")
        trusted = wheel(CU128, MARKED, variants=found)
        upstream.add("app", CU128, trusted)
        parts = with_another_record(trusted)
        assert len(parts) == len(trusted)
        add_bait(other, sha256(trusted))
        path = f"/files/bait/{BAIT}"

        def lying(headers):
            return Answer(body=parts if headers.get("Range") else trusted, ranges=True)

        other.resources[path] = lying
        proxy = start(upstream, other)
        proxy.page("bait")
        file = proxy.files("app")[APP]
        got = proxy.get(file["url"])
        assert got.status_code == 200
        assert file["hashes"] == {"sha256": sha256(got.content)}


def with_another_record(data):
    """Return the wheel with other hashes in RECORD, and of the same length."""
    source, target = io.BytesIO(data), io.BytesIO()
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename.endswith("RECORD"):
                content = content.replace(b"sha256=", b"md5999=")
            new.writestr(info, content)
    return target.getvalue()
