"""Names of variant wheels on in-place pages: one rule, in both directions."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.utils import parse_wheel_filename

from variants_proxy.choice.in_place_names import (
    decoded_name,
    encoded_name,
    label_in_folder,
    variant_path,
    wheel_at,
)

TAGS = "cp313-cp313-manylinux_2_28_x86_64"
LABELS = st.from_regex(r"[0-9a-z_.]{1,20}", fullmatch=True)
BUILDS = st.from_regex(r"([0-9]{1,4}[a-z0-9_.]{0,8})?", fullmatch=True)


def plain(build, version="2.9.0"):
    return "-".join(filter(None, ("torch", version, build, f"{TAGS}.whl")))


@pytest.mark.parametrize(
    ("build", "label", "tag"),
    [
        ("", "cu128", "0_cu128"),
        ("2", "cu128", "2_cu128"),
        ("0", "cu128", "00_cu128"),
        ("00", "cu128", "000_cu128"),
        ("1_cu128", "cu128", "1_cu128_cu128"),
        ("", "..", "0_.."),
    ],
)
def test_the_build_tag(build, label, tag):
    name = encoded_name(plain(build), label)
    assert name == f"torch-2.9.0-{tag}-{TAGS}.whl"
    assert decoded_name(name, label) == plain(build)


@settings(max_examples=60, deadline=None)
@given(BUILDS, LABELS)
def test_there_and_back(build, label):
    """So two wheels have two URLs."""
    path = variant_path(label, plain(build))
    assert wheel_at(f"https://index.example/simple/torch/{path}#sha256=00") == (label, plain(build))
    assert path.split("/")[1] not in (".", "..", "-")
    name, version, found, tags = parse_wheel_filename(encoded_name(plain(build), label))
    assert (name, str(version), len(tags)) == ("torch", "2.9.0", 1)
    assert found[1].endswith(f"_{label}")


@given(st.text(max_size=40), st.text(max_size=20))
def test_any_text_is_read(name, label):
    decoded_name(name, label)
    wheel_at(name)
    label_in_folder(label)


@pytest.mark.parametrize(
    "url",
    [
        f".variant/torch-2.9.0-0_cu128-{TAGS}.whl",
        f".variant/cu126/torch-2.9.0-0_cu128-{TAGS}.whl",
        f".variant/cu128/torch-2.9.0-{TAGS}.whl",
        f".variant/cu128/torch-2.9.0-_cu128-{TAGS}.whl",
        f".variant/~cu128/torch-2.9.0-0_cu128-{TAGS}.whl",
        f".variant/CU128/torch-2.9.0-0_CU128-{TAGS}.whl",
        f"variant/cu128/torch-2.9.0-0_cu128-{TAGS}.whl",
        ".variant/cu128/torch-2.9.0.tar.gz",
        f".variant//torch-2.9.0-0_-{TAGS}.whl",
    ],
)
def test_what_is_no_such_url(url):
    assert wheel_at(url) is None


def test_without_a_label_and_with_a_local_version():
    assert wheel_at(variant_path(None, plain("7"))) == (None, plain("7"))
    local = plain("", "2.9.0+cu128")
    assert "%2Bcu128" in variant_path("x", local)
    assert wheel_at(variant_path("x", local)) == ("x", local)
