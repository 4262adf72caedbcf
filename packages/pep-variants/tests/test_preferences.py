import contextlib
import json
from dataclasses import replace

import pytest

from pep_variants._choose.preferences import (
    NON_VARIANT_LABEL,
    Preferences,
    given_variables,
    preferences_from_options,
    read_configuration,
    unmatched,
)
from pep_variants._model.metadata import Metadata
from pep_variants._model.property import Selector
from pep_variants.errors import PreferenceError
from pep_variants.limits import SETTINGS_BYTES
from pep_variants.options import OPTIONS
from support.waiting import processor_limit


def from_environment(environ, base=None):
    given = {item.attribute: item.value for item in given_variables(environ)}
    return replace(base or Preferences(), **given)


LEVEL = Selector("x86_64", "level", "v3")
SM = Selector("nvidia", "sm_arch")

# Option, what is given for it, and what becomes of it.
ACCEPTED = [
    ("no-variants", True, "use_variants", False),
    ("no-variants", 1, "use_variants", False),  # what pip makes of PIP_NO_VARIANTS=1
    ("variant", ["torch=cu128"], "forced", {"torch": "cu128"}),
    ("variant", ["My.Torch=null", "b="], "forced", {"my-torch": "null", "b": NON_VARIANT_LABEL}),
    ("variant", ["a=x", "a=y"], "forced", {"a": "y"}),
    ("variant", ["a=x b=y"], "forced", {"a": "x", "b": "y"}),
    ("variant-prefer", ["x86_64 :: level :: v3"], "prefer", (LEVEL,)),
    ("variant-exclude", ["nvidia::sm_arch"], "exclude", (SM,)),
    ("variant-platform", "machine.toml", "platform_file", "machine.toml"),
    ("variant-allow-provider", ["acme"], "allow_providers", ("acme",)),
    ("variant-allow-provider", ["acme >= 1, < 2", "b"], "allow_providers", ("acme>=1,<2", "b")),
    ("variant-allow-provider", ["a[x, y] ~= 1.0"], "allow_providers", ("a[x,y]~=1.0",)),
    ("variant-allow-provider", ["a [x] b"], "allow_providers", ("a[x]", "b")),
    ("variant-allow-provider", ["a @ https://h/a.whl"], "allow_providers", ("a@https://h/a.whl",)),
    (
        "variant-allow-provider",
        ["a == 1 --hash=sha256:ab", "--hash=sha256:cd", "b"],
        "allow_providers",
        ("a==1 --hash=sha256:ab --hash=sha256:cd", "b"),
    ),
    ("variant-coherent", ["nvidia", "amd"], "coherent", ("nvidia", "amd")),
    ("variant-plugin-variable", ["ACME_HOME", "B"], "plugin_variables", ("ACME_HOME", "B")),
    ("variant-plugin-sandbox", "off", "plugin_sandbox", "off"),
    ("variant-switch", True, "switch", True),
]


@pytest.mark.parametrize(("option", "value", "attribute", "expected"), ACCEPTED)
def test_options(option, value, attribute, expected):
    found = preferences_from_options({option: value})
    assert getattr(found, attribute) == expected
    assert found == Preferences(**{attribute: expected})


@pytest.mark.parametrize("nothing", [None, False, [], ()])
def test_not_given(nothing):
    base = Preferences(use_variants=False, prefer=(LEVEL,), platform_file="x")
    assert preferences_from_options({option.name: nothing for option in OPTIONS}, base) == base
    assert preferences_from_options({}, base) == base
    assert preferences_from_options({"unknown": 5}) == Preferences()


# Option, a value that makes no sense, and what the message quotes.
REFUSED = [
    ("variant", ["torch"], "'torch': write NAME=LABEL or NAME="),
    ("variant", ["torch==cu128"], "'torch==cu128': write NAME=LABEL or NAME="),
    ("variant", ["torch=CU128"], "'CU128' is not a valid variant label"),
    ("variant", ["a/b=x"], "'a/b'"),
    ("variant-prefer", ["a :: b :: c :: d"], "'a::b::c::d' has 4 parts"),
    ("variant-enable", ["a :: b"], "'a :: b' is not a namespace"),
    ("variant-allow-provider", ["-r evil.txt"], "'-r' is not a requirement"),
    ("variant-allow-provider", ["a==1 --hash=x"], "'--hash=x' is not a requirement"),
    ("variant-allow-provider", ["a; os_name == 'nt'"], "'a;' is not a requirement"),
    ("variant-allow-provider", [">=1"], "'>=1' is not a requirement"),
    ("variant-plugin-variable", ["A=b"], "'A=b' is not the name of an environment variable"),
    ("variant-on-plugin-error", "ignore", "expected 'abort' or 'skip'"),
    ("variant-plugin-sandbox", "ignore", "expected 'auto'"),
]


@pytest.mark.parametrize(("option", "value", "quoted"), REFUSED)
def test_refused(option, value, quoted):
    (known,) = [item for item in OPTIONS if item.name == option]
    variable = "VARIANTS_" + known.key.upper().replace("-", "_")
    text = value if isinstance(value, str) else " ".join(value)
    line = f"{known.key} = {json.dumps(value)}"
    for place, read in (
        (f"--{option}", lambda: preferences_from_options({option: value})),
        (variable, lambda: from_environment({variable: text})),
        (f"x.toml: {known.key}", lambda: read_configuration(line, "x.toml")),
    ):
        with pytest.raises(PreferenceError) as raised:
            read()
        assert str(raised.value).startswith(f"{place}: ")
        assert quoted in str(raised.value)


ALL = Preferences(
    use_variants=False,
    forced={"torch": "cu128", "numpy": ""},
    prefer=(LEVEL, SM),
    exclude=(Selector("amd"), Selector("intel")),
    platform_file="/etc/my machine.toml",
    enable=frozenset({"acme", "other"}),
    allow_providers=("acme>=1,<2", "b"),
    coherent=("nvidia",),
)


def test_variables():
    variables = {
        "NO_VARIANTS": "1",
        "VARIANT": "torch=cu128, numpy=",
        "PREFER": "x86_64 :: level :: v3 nvidia::sm_arch",
        "EXCLUDE": "amd,intel",
        "PLATFORM": "/etc/my machine.toml",
        "ENABLE": "acme other",
        "ALLOW_PROVIDER": "acme >=1,<2 b",
        "COHERENT": " nvidia ",
        "UNKNOWN": "x",
    }
    environ = {f"VARIANTS_{name}": value for name, value in variables.items()}
    assert from_environment({**environ, "OTHER": "x"}) == ALL
    for nothing in ("", " ", "\n"):
        assert from_environment(dict.fromkeys(environ, nothing), ALL) == ALL
    for text, use in (("YES", False), ("on", False), ("0", True), ("F", True), ("off", True)):
        for before in (True, False):
            given = {"VARIANTS_NO_VARIANTS": text}
            assert from_environment(given, Preferences(before)).use_variants is use
    with pytest.raises(
        PreferenceError, match=r"^VARIANTS_NO_VARIANTS: expected 1 or 0, found 'm'$"
    ):
        from_environment({"VARIANTS_NO_VARIANTS": "m"})


def test_configuration():
    text = """
no-variants = true
variant = ["torch=cu128", "numpy="]
prefer = ["x86_64 :: level :: v3", "nvidia :: sm_arch"]
exclude = "amd intel"
platform = "/etc/my machine.toml"
enable = ["acme", "other"]
allow-provider = ["acme>=1,<2", "b"]
coherent = ["nvidia"]

# As variantlib has them.
namespace_priorities = ["nvidia", "x86_64"]
feature_priorities.nvidia = ["sm_arch"]
property_priorities.x86_64.level = ["v2", "v3"]
"""
    expected = replace(
        ALL,
        namespace_priorities=("nvidia", "x86_64"),
        feature_priorities={"nvidia": ("sm_arch",)},
        property_priorities={"x86_64": {"level": ("v2", "v3")}},
    )
    assert read_configuration(text, "x") == read_configuration(text.encode(), "x") == expected
    assert read_configuration("", "x") == Preferences()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("on-plugin-error = ['skip']", "expected 'abort' or 'skip'"),
        (
            "prefers = []",
            "prefers: unknown key; the keys are allow-missing-sources, allow-provider, "
            "before-version, catalog, ",
        ),
        (
            "before-version = 'gpu=1'",
            "before-version: 'gpu=1' is not the name of a project, ':all:'",
        ),
        ("prefer = [5]", "prefer: expected a list of strings, found [5]"),
        ("variant = {torch = 'x'}", "variant: expected a list of strings, found {'torch': 'x'}"),
        ("namespace_priorities = ['a', 'a']", "namespace_priorities: 'a' is listed twice"),
        ("feature_priorities = []", "feature_priorities: expected a table, found []"),
        ("property_priorities.a = []", "property_priorities.a: expected a table, found []"),
        ("x = ", "not valid TOML: "),
    ],
)
def test_broken_configuration(text, said):
    with pytest.raises(PreferenceError) as raised:
        read_configuration(text, "/home/x/variants.toml")
    assert str(raised.value).startswith("/home/x/variants.toml: ")
    assert said in str(raised.value)


@pytest.mark.parametrize("unit", [" ", "::", " ]", "a ", "--hash=md5:a "])
def test_long_values_end(unit):
    """Patterns that begin with any white space took quadratic time."""
    value = (unit * SETTINGS_BYTES)[: SETTINGS_BYTES - 100]
    with processor_limit(), contextlib.suppress(PreferenceError):
        read_configuration(f'allow-provider = "{value}"', "x")


@pytest.mark.parametrize("text", ["exclude = [{}]", "feature_priorities.a = [{}]"])
def test_number_of_values(text):
    values = ", ".join(f"'a{index}'" for index in range(1000))
    read_configuration(text.format(values), "x")
    with pytest.raises(PreferenceError, match="1001 entries, at most 1000 are read"):
        read_configuration(text.format(f"{values}, 'b'"), "x")


ESCAPE = "\\u001b]0;x\\u0007\\u202e"


@pytest.mark.parametrize(
    "text",
    [
        f'"{ESCAPE}" = 1',
        *(f'{option.key} = "{ESCAPE}"' for option in OPTIONS if option.key != "platform"),
        *(f'{option.key} = ["a {ESCAPE}", "b::{ESCAPE}", "c={ESCAPE}"]' for option in OPTIONS),
        f'platform = ["{ESCAPE}"]',
        f'namespace_priorities = ["{ESCAPE}"]',
        f'feature_priorities."{ESCAPE}" = []',
        f'feature_priorities.a = "{ESCAPE}"',
        f'property_priorities.a."{ESCAPE}" = []',
        f'property_priorities.a.b = ["{ESCAPE}"]',
        f'property_priorities.{"a" * 9999}.b = "{ESCAPE}"',
        "\x1b = 1",
        'a = "\x1b"',
    ],
)
def test_messages_are_one_short_printable_line(text):
    with pytest.raises(PreferenceError) as raised:
        read_configuration(text, "/checkout/\x1b[31m/variants.toml")
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 600
    assert str(raised.value).startswith("/checkout/?[31m/variants.toml: ")


# What preferences mean for orders.


@pytest.mark.parametrize(
    ("given", "first", "not_first"),
    [
        ([], ["torch"], ["gpu"]),  # torch is so by default
        ([":all:"], ["torch", "gpu"], []),
        ([":all:", ":none:"], [], ["torch", "gpu"]),
        ([":none:", "GPU,Other_One"], ["gpu", "other-one"], ["torch"]),
        ([":all: :none: gpu"], ["gpu"], ["torch", "other"]),  # as pip splits a variable
    ],
)
def test_before_version_has_the_grammar_of_pip(given, first, not_first):
    found = preferences_from_options({"variant-before-version": given})
    for names, expected in ((first, True), (not_first, False)):
        for name in names:
            assert found.puts_first(name, by_default=name == "torch") is expected


def test_a_forced_label_and_no_variants_leave_the_order_of_versions():
    values = {"variant-before-version": [":all:"]}
    assert not preferences_from_options({**values, "variant": ["gpu=x"]}).puts_first("gpu")
    assert not preferences_from_options({**values, "no-variants": True}).puts_first("gpu")


# Names on the command line that match nothing.

SEEN = [
    Metadata(("nvidia", "x86_64"), {"v3": {"x86_64": {"level": ("v3",)}}}),
    Metadata(("nvidia",), {"cu": {"nvidia": {"sm_arch": ("90_real",)}}}),
]


@pytest.mark.parametrize(
    ("option", "preferences", "name"),
    [
        ("--variant", Preferences(forced={"gppu": "cu"}), "--variant gppu=cu: this command has"),
        (
            "--variant-exclude",
            Preferences(exclude=(Selector.parse("x86_63"), Selector.parse("x86_64"))),
            "--variant-exclude 'x86_63' matches no variant",
        ),
        (
            "--variant-prefer",
            Preferences(prefer=(Selector.parse("nvidia :: sm_arch :: 91"),)),
            "--variant-prefer 'nvidia :: sm_arch :: 91' matches no variant",
        ),
        (
            "--variant-enable",
            Preferences(enable=frozenset(("nope", "nvidia"))),
            "--variant-enable 'nope' matches no variant",
        ),
    ],
)
def test_a_name_that_matches_nothing(option, preferences, name):
    for arguments in (["install", option, "x", "gpu"], ["install", f"{option}=x", "gpu"]):
        (text,) = unmatched(preferences, arguments, ["gpu"], SEEN)
        assert text.startswith(name)
    # From a setting or a variable it is for all commands.
    assert unmatched(preferences, ["install", "gpu"], ["gpu"], SEEN) == ()


def test_what_matches_is_not_mentioned():
    preferences = Preferences(
        forced={"gpu": "cu"},
        prefer=(Selector.parse("nvidia :: sm_arch"),),
        exclude=(Selector.parse("x86_64"),),
        enable=frozenset(("nvidia",)),
    )
    options = ["--variant", "--variant-prefer", "--variant-exclude", "--variant-enable"]
    assert unmatched(preferences, options, ["gpu", "other"], SEEN) == ()
    assert unmatched(preferences, options, ["gpu"], []) == ()
