"""Platform keys: canonical, compact, and invalid ones are refused."""

import base64
import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pep_variants.choose.preferences import Preferences, preferences_from_options
from pep_variants.model.platform import Platform, Support
from variants_proxy.client.key import MAX_KEY, MAX_TEXT, Machine, decode, encode, host_target
from variants_proxy.client.key_codec import pack, unpack
from variants_proxy.client.key_dictionary import DICTIONARY
from variants_proxy.errors import InvalidKey

names = st.text("abcdefghijklmnopqrstuvwxyz0123456789_", min_size=1, max_size=12)
values = st.text("abcdefghijklmnopqrstuvwxyz0123456789_.", min_size=1, max_size=8)
features = st.dictionaries(names, st.lists(values, min_size=1, max_size=5, unique=True).map(tuple))
platforms = st.dictionaries(names, features.map(Support), max_size=4).map(Platform)
wishes = st.builds(
    Preferences,
    use_variants=st.booleans(),
    forced=st.dictionaries(st.sampled_from(["torch", "my-app"]), st.sampled_from(["", "cu128"])),
    enable=st.frozensets(names, max_size=2),
    namespace_priorities=st.lists(names, max_size=2, unique=True).map(tuple),
    feature_priorities=st.dictionaries(names, st.just(("a", "b")), max_size=2),
    property_priorities=st.dictionaries(names, st.just({"f": ("1", "2")}), max_size=2),
)
machines = st.builds(
    Machine, platform=platforms, target=st.sampled_from(["", "linux-x86_64", "win-aarch64"]),
    preferences=wishes, detected=platforms,
    answers=st.dictionaries(st.text("0123456789abcdef", min_size=24, max_size=24),
                            features.map(Support), max_size=3),
)  # fmt: skip


def raw(text):
    return "1~" + base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def packed(tree):
    return raw(pack(json.dumps(tree).encode(), DICTIONARY))


def key_of(machine):
    """Return the key of a machine whose description fits into a URL."""
    try:
        return encode(machine)
    except InvalidKey as error:
        assume("too long" not in str(error))
        raise


@given(machines)
def test_what_goes_in_comes_out(machine):
    found = decode(key_of(machine))
    assert found == machine
    # Order is preference: it has to survive.
    for name, support in machine.platform.namespaces.items():
        assert list(found.platform.namespaces[name].features) == list(support.features)


@given(machines)
def test_a_key_fits_into_a_url_as_it_is(machine):
    key = key_of(machine)
    assert set(key) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~")


def test_order_of_namespaces_does_not_matter():
    a, b = Support({"x": ("1",)}), Support({"y": ("2",)})
    assert encode(Machine(Platform({"a": a, "b": b}))) == encode(
        Machine(Platform({"b": b, "a": a}))
    )


def test_the_bytes_of_keys_are_fixed():
    # Keys are in lock files: neither packing nor vocabulary may change under this prefix.
    cuda = ("12.8", "12.7", "12.6")
    machine = Machine(
        Platform({"nvidia": Support({"cuda_version_lower_bound": cuda})}), target="linux-x86_64"
    )
    assert encode(machine) == "1~VUsdwQUCXSWKEg"


def test_what_was_detected_and_what_was_stated_differ():
    platform = Platform({"nvidia": Support({"cuda_version_lower_bound": ("12.8",)})})
    detected, stated = encode(Machine(detected=platform)), encode(Machine(platform))
    assert detected != stated
    assert len(detected) < len(stated) + 12
    assert decode(detected).detected == platform


def test_names_are_keys():
    assert encode(Machine(name="h100-zen4")) == "h100-zen4"
    assert decode("h100-zen4") == Machine(name="h100-zen4")
    prefers = Machine(
        name="h100", preferences=preferences_from_options({"variant-prefer": ["nvidia"]})
    )
    assert encode(prefers).startswith("1~")
    assert decode(encode(prefers)) == prefers


def test_wishes_that_change_nothing_here_are_not_in_it():
    wishes = Preferences(platform_file="/home/me/x.toml", allow_providers=("a",), coherent=("b",))
    assert encode(Machine(preferences=wishes)) == encode(Machine())


@pytest.mark.parametrize(
    "key",
    [
        "", ".", "..", "../etc", "a/b", "1~", "1~!!!!", "1~AAAA", "2~AAAA", "a" * 65,
        "1~" + "A" * MAX_KEY,
        raw(b"\x01\xff\xff\x7f"), raw(b"\xff" * 40), raw(b"\x09\x02"),
        packed([]), packed("x"), packed({"p": []}), packed({"q": {}}), packed({"f": 3}),
        packed({"t": "beos-ppc"}),
        packed({"p": {"A": []}}), packed({"p": {"a": [["b", "C D"]]}}), packed({"p": {"a": [[]]}}),
        packed({"p": {"a": ["b", "b"]}}), packed({"prefer": ["a :: b :: c :: d"]}),
        packed({"platform": "/etc/passwd"}), packed({"allow-provider": ["evil"]}),
        packed({"f": "../x"}),
        packed({"t": "linux-x86_64", "p": {}}), packed({"no-variants": False}),
        packed({"p": {"a": [["b", "on"]]}}), packed({"d": {}}), packed({"d": {"a": [["b", "on"]]}}),
        packed({"d": {"a": ["b"]}, "f": "h100"}),
    ],
)  # fmt: skip
def test_what_is_no_key(key):
    with pytest.raises(InvalidKey):
        decode(key)


@given(st.text(max_size=60))
def test_any_text(text):
    try:
        decode(f"1~{text}")
    except InvalidKey:
        pass


@given(st.binary(max_size=80))
def test_any_bytes(data):
    try:
        assert encode(decode(raw(data))) == raw(data)
    except InvalidKey:
        pass


def test_what_is_too_long_says_what_to_do():
    many = {f"feature_{number}": (f"{number * 7919}",) for number in range(1000)}
    with pytest.raises(InvalidKey, match="--variant-platform"):
        encode(Machine(Platform({"x": Support(many)})))


def test_host_target():
    assert host_target()


class TestPacking:
    @given(st.binary(max_size=300), st.binary(max_size=100))
    def test_round_trip(self, text, dictionary):
        assert unpack(pack(text, dictionary), dictionary, 300) == text

    def test_bombs_stop_at_the_limit(self):
        def number(value):
            parts = []
            while value > 127:
                parts.append(value & 127 | 128)
                value >>= 7
            return bytes([*parts, value])

        # Four bytes as they are, then again and again all that there is.
        text = number(8) + b"aaaa"
        for power in range(2, 20):
            text += number((2**power - 4) << 1 | 1) + number(0)
        assert len(text) < 120
        with pytest.raises(ValueError, match="larger than 16384 bytes"):
            unpack(text, b"", MAX_TEXT)
