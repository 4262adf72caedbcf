"""Platform keys: canonical, compact, and invalid ones are refused."""

import base64
import json
import zlib

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pep_variants._choose.preferences import Preferences, preferences_from_options
from pep_variants._model.platform import Platform, Support
from variants_proxy._key import MAX_KEY, MAX_TEXT, Machine, decode, encode
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
    return "2~" + base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def packed(tree):
    return raw(zlib.compress(json.dumps(tree, separators=(",", ":")).encode()))


def supported(lines, namespace="a"):
    """Return the text of a platform file, as it is in a description."""
    head = '[metadata]\ncreated-by = ""\nversion = "0.1"\n\n[[provider]]\nresolved = []\n'
    return f'{head}namespace = "{namespace}"\n\n[provider.properties]\n{lines}\n'


@settings(max_examples=30, deadline=None)
@given(machines)
def test_what_goes_in_comes_out(machine):
    try:
        key = encode(machine)
    except InvalidKey as error:
        assume("too long" not in str(error))
        raise
    assert set(key) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~")
    found = decode(key)
    assert found == machine
    # Order is preference: it has to survive.
    for name, support in machine.platform.namespaces.items():
        assert list(found.platform.namespaces[name].features) == list(support.features)


def test_what_a_key_says():
    cuda = ("12.8", "12.7", "12.6")
    machine = Machine(
        Platform({"nvidia": Support({"cuda_version_lower_bound": cuda})}), target="linux-x86_64"
    )
    text = supported('cuda_version_lower_bound = ["12.8", "12.7", "12.6"]', "nvidia")
    assert decode(packed({"p": text, "t": "linux-x86_64"})) == machine
    detected = decode(packed({"d": text, "t": "linux-x86_64"}))
    assert detected == Machine(detected=machine.platform, target="linux-x86_64")


@pytest.mark.parametrize(
    "options",
    [{"variant-prefer": ["nvidia"]}, *({"variant-before-version": names} for names in (
        [":all:"], ["7zip", "torch"], [":none:", "7zip"]))],
)  # fmt: skip
def test_names_and_preferences(options):
    assert encode(Machine(name="h100-zen4")) == "h100-zen4"
    assert decode("h100-zen4") == Machine(name="h100-zen4")
    for name in ("", "h100"):
        machine = Machine(name=name, preferences=preferences_from_options(options))
        assert encode(machine).startswith("2~")
        assert decode(encode(machine)) == machine


def test_wishes_that_change_nothing_here_are_not_in_it():
    wishes = Preferences(platform_file="/home/me/x.toml", allow_providers=("a",), coherent=("b",))
    assert encode(Machine(preferences=wishes)) == encode(Machine())


@pytest.mark.parametrize(
    "key",
    [
        "", ".", "..", "../etc", "a/b", "2~", "2~!!!!", "2~AAAA", "3~AAAA", "a" * 65,
        "2~" + "A" * MAX_KEY,
        raw(b"\x01\xff\xff\x7f"), raw(b"\xff" * 40), raw(zlib.compress(b"{}")[:-1]),
        raw(zlib.compress(b"{}") + b"x"), raw(zlib.compress(b"\xff")), raw(zlib.compress(b"{} ")),
        packed([]), packed("x"), packed({"p": []}), packed({"q": {}}), packed({"f": 3}),
        packed({"t": "beos-ppc"}), packed({"p": "["}), packed({"p": ""}), packed({"a": {"x": ""}}),
        packed({"p": supported('b = ["1"]', "A")}), packed({"p": supported('b = ["C D"]')}),
        packed({"p": supported('b = []')}), packed({"p": supported('b = ["1","2"]')}),
        packed({"p": supported('b = ["1"]\nb = ["1"]')}),
        packed({"p": supported('b = ["1"]').replace("[]", '["evil==1"]')}),
        packed({"prefer": ["a :: b :: c :: d"]}),
        packed({"platform": "/etc/passwd"}), packed({"allow-provider": ["evil"]}),
        packed({"f": "../x"}),
        packed({"t": "linux-x86_64", "p": supported('b = ["1"]')}), packed({"no-variants": False}),
        packed({"d": supported('b = ["1"]'), "f": "h100"}),
    ],
)  # fmt: skip
def test_what_is_no_key(key):
    with pytest.raises(InvalidKey):
        decode(key)


def test_what_is_too_long_says_what_to_do():
    many = {f"feature_{number}": (f"{number * 7919}",) for number in range(1000)}
    with pytest.raises(InvalidKey, match="--variant-platform"):
        encode(Machine(Platform({"x": Support(many)})))


def test_bombs_stop_at_the_limit():
    with pytest.raises(InvalidKey, match="larger than 16384 bytes"):
        decode(raw(zlib.compress(b"a" * (MAX_TEXT + 1))))
