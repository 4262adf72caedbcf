"""What lock files and exports list of a version: every label, with hashes and metadata."""

import hashlib

import pytest
from upstream_server import wheel as built_wheel
from worlds import APP, KEY

URL = f"/p/{KEY}/i/main/variants/app/?files=1.0"
MARKED = ("a", "b; variant_label == 'cu128'", "c; 'nvidia' in variant_namespaces")


def wheels_of(proxy, url=URL):
    return {wheel["label"]: wheel for wheel in proxy.get(url).json()["wheels"]}


def test_every_label_with_its_own_url_and_hash(upstream, start):
    upstream.add_release("1.0", "a")
    tree = start(upstream).get(URL).json()
    assert {wheel["label"] for wheel in tree["wheels"]} == {"null", "cu126", "cu128", "cu130"}
    for wheel in tree["wheels"]:
        data = upstream.files["app"][wheel["filename"]]
        assert wheel["url"] == f"{upstream.url}/files/app/{wheel['filename']}"
        assert wheel["hashes"] == {"sha256": hashlib.sha256(data).hexdigest()}
        assert wheel["plain"] == APP
        assert (wheel["marked"], wheel["served"]) == (False, None)
    assert len({wheel["requires"] for wheel in tree["wheels"]}) == 1
    (document,) = tree["documents"]
    assert document["$schema"].endswith("v0.2.0.json")
    assert set(document["variants"]) == {"null", "cu126", "cu128", "cu130"}


def test_which_labels_depend_on_the_same(upstream, start):
    """And the hash of each as the proxy serves it."""
    upstream.add_release("1.0", *MARKED)
    proxy = start(upstream)
    found = wheels_of(proxy, f"{URL}&served")
    assert found["cu126"]["requires"] == found["cu130"]["requires"]
    assert len({wheel["requires"] for wheel in found.values()}) == 3
    assert all(wheel["marked"] for wheel in found.values())
    assert all(wheel["served"] != wheel["hashes"]["sha256"] for wheel in found.values())
    (served,) = proxy.files().values()
    data = proxy.get(served["url"]).content
    assert found["cu128"]["served"] == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(("tags", "count"), [("py3-none", 4), ("cp313-cp313", 0)])
def test_the_tags_that_are_asked_for(upstream, start, tags, count):
    upstream.add_release()
    assert len(wheels_of(start(upstream), f"{URL}&tags={tags}")) == count


def test_nothing_of_versions_without_variants(upstream, start):
    upstream.add_release()
    upstream.add("plain", "plain-1.0-py3-none-any.whl", b"x")
    proxy = start(upstream)
    assert proxy.get(f"{URL}.1").json() == {"documents": [], "wheels": []}
    url = URL.replace("/app/", "/plain/")
    assert proxy.get(url).json() == {"documents": [], "wheels": []}
    assert proxy.get(URL.replace("/app/", "/none/")).status_code == 404


def test_one_answer_for_metadata_that_cannot_be_read(upstream, start):
    upstream.add_release()
    upstream.files["app"]["app-1.0-variants.json"] = b"{"
    answer = start(upstream).get(URL)
    assert answer.status_code == 409
    assert "app-1.0-variants.json" in answer.text


def test_a_plain_wheel_with_variant_markers(upstream, start):
    upstream.core_metadata = True
    upstream.add("app", APP, built_wheel(APP, *MARKED))
    (found,) = start(upstream).get(f"{URL}&served").json()["wheels"]
    assert (found["label"], found["marked"]) == (None, True)
    assert found["served"] not in (None, found["hashes"]["sha256"])
