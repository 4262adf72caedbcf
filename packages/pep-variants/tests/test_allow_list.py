"""What the user allowed, compared with what untrusted metadata asks for."""

import pytest

from pep_variants._settings.allow_list import Allowed, AllowList, Refused
from pep_variants.errors import PreferenceError

LINUX = {"sys_platform": "linux", "python_version": "3.11"}
A, B = "a" * 64, "b" * 64
WHEEL = "https://wheels.example/acme-1.0-py3-none-any.whl"


def judge(allow, *requires):
    allow = [allow] if isinstance(allow, str) else allow
    return AllowList.parse(allow).judge(requires, LINUX)


# What the user allows, what the metadata requires, the lines of the requirements file.
ALLOWED = [
    ("acme", ["acme>=1,<2"], ["acme<2,>=1"]),
    ("acme>=1", ["acme<2"], ["acme<2,>=1"]),
    ("acme==1.2", ["acme>=1"], ["acme==1.2,>=1"]),
    ("acme==1.2a1", ["acme>=1"], ["acme==1.2a1,>=1"]),
    (["acme>=1", "acme<3"], ["acme"], ["acme<3,>=1"]),
    (["acme>=1"], ["acme>=1"], ["acme>=1"]),
    ("acme", ["acme>=1", "acme<2"], ["acme<2,>=1"]),
    ("acme", ["other ; sys_platform == 'win32'", "acme"], ["acme"]),
    (["acme>=1", "acme>=2 ; sys_platform == 'win32'"], ["acme"], ["acme>=1"]),
    ("acme[gpu,Big_Cat]", ["acme[GPU]"], ["acme[big-cat,gpu]"]),
    ("acme[gpu]", ["acme"], ["acme[gpu]"]),
    (f"acme@{WHEEL}", ["acme>=1"], [f"acme @ {WHEEL}"]),
    # A setting that was split at white space.
    (["acme==1.2", f"--hash=sha256:{A}"], ["acme"], [f"acme==1.2 --hash=sha256:{A}"]),
    (f"acme @ {WHEEL} --hash=sha256:{A}", ["acme"], [f"acme @ {WHEEL} --hash=sha256:{A}"]),
]


@pytest.mark.parametrize(("allow", "requires", "lines"), ALLOWED)
def test_allowed(allow, requires, lines):
    allowed = judge(allow, *requires)
    assert isinstance(allowed, Allowed), allowed
    assert [each.line for each in allowed.wanted] == lines


# What the user allows, what the metadata requires, what the reason says, what is to be allowed.
REFUSED = [
    ("acme", ["acme ; sys_platform == 'win32'"], "no requirement of its provider applies", ""),
    ("acme", ["acme ; nonsense == 'x'"], "not a valid requirement", ""),
    ("acme[cpu]", ["acme[gpu]"], "allowed without the extra gpu", "acme[gpu]"),
    (f"acme==1.2 --hash=sha256:{A}", ["acme>2"], "while acme==1.2 is allowed", ""),
    ([], ["acme>=1"], "'acme>=1', which is not allowed", "acme>=1"),
    ("acme", ["acme", "other>=2"], "'other>=2', which is not allowed", "other>=2"),
    (["acme ; sys_platform == 'win32'"], ["acme"], "not allowed", "acme"),
    ("acme", ["--index-url=https://evil.example acme"], "not a valid requirement", ""),
    ("acme", ["-r /etc/passwd"], "not a valid requirement", ""),
    ("acme", ["acme\n--index-url https://evil.example"], "not a valid requirement", ""),
    ("acme", ["acme --hash=sha256:" + A], "not a valid requirement", ""),
    ("acme", ["acme ; os_name ~= 'x'"], "not a valid requirement", ""),
    ("acme", ["./acme-1.0-py3-none-any.whl"], "not a valid requirement", ""),
    ("acme", ["acme ===1\\"], "no version can match", ""),
    ("acme", ["acme ===${HOME}"], "no version can match", ""),
    ("acme", ["acme[gpu]"], "allowed without the extra gpu", "acme[gpu]"),
    ("acme", [f"acme @ {WHEEL}"], "that very URL", f"acme @ {WHEEL}"),
    (f"acme @ {WHEEL}", [f"acme @ {WHEEL}?x"], "that very URL", f"acme @ {WHEEL}?****"),
    (f"acme @ {WHEEL}", ["acme @ git+https://evil.example"], "that very URL", None),
    (["acme @ https://a.example/a.whl", f"acme @ {WHEEL}"], ["acme"], "several URLs", ""),
    ("acme==1.2", ["acme>=2"], "while acme==1.2 is allowed", ""),
    (["acme==1.2", "acme==1.3"], ["acme"], "while acme==1.2,==1.3 is allowed", ""),
    ([f"acme==1.2 --hash=sha256:{A}", "base"], ["acme", "base"], "without a hash", "base"),
    ("acme", ["acme ; " + "(" * 3_000], "not a valid requirement", ""),
]


@pytest.mark.parametrize(("allow", "requires", "reason", "requirement"), REFUSED)
def test_refused(allow, requires, reason, requirement):
    refused = judge(allow, *requires)
    assert isinstance(refused, Refused)
    assert reason in refused.reason
    assert len(refused.reason) < 400
    assert refused.reason.isprintable()
    if requirement is not None:
        assert refused.requirement == requirement


def test_credentials_are_not_shown():
    url = "https://user:password@wheels.example/acme-1.0-py3-none-any.whl"
    refused = judge("acme", f"acme @ {url}")
    assert "password" not in refused.reason + refused.requirement
    allowed = judge(f"acme @ {url}", "acme")
    assert allowed.wanted[0].line == f"acme @ {url}"
    assert "password" not in str(allowed.wanted[0])


def test_dependencies_in_hash_mode():
    allow = [
        f"acme==1 --hash=sha256:{A}",
        f"base==2 --hash=sha256:{B}",
        "free>=1",
        f"elsewhere==1 --hash=sha256:{B} ; sys_platform == 'win32'",
    ]
    with pytest.raises(PreferenceError):
        AllowList.parse(allow)  # the marker belongs before the hash
    allow[3] = f"elsewhere==1 ; sys_platform == 'win32' --hash=sha256:{B}"
    allowed = judge(allow, "acme")
    assert allowed.hash_mode
    assert [each.line for each in allowed.dependencies] == [f"base==2 --hash=sha256:{B}"]
    allowed = judge(allow, "free")
    assert not allowed.hash_mode
    assert not allowed.dependencies


def test_default_endpoint_is_the_first_package():
    allowed = judge(
        ["acme-variant_provider", "base"],
        "x ; python_version < '3'",
        "Acme.variant-provider",
        "base",
    )
    assert allowed.endpoint == "acme_variant_provider"


@pytest.mark.parametrize(
    "text",
    [
        "-r requirements.txt",
        "--index-url https://evil.example",
        "acme ==",
        "acme>=1 --hash=sha256:" + A,
        "acme==1 --hash=sha256:abc",
        "acme==1 --hash=md5:" + "a" * 32,
        "acme===a\\",
        "acme @ git+https://example.org/acme",
        "acme @ https://example.org/acme-1.0.tar.gz",
        f"--hash=sha256:{A}",
    ],
)
def test_entries_that_make_no_sense(text):
    with pytest.raises(PreferenceError, match="allowed provider"):
        AllowList.parse([text])
