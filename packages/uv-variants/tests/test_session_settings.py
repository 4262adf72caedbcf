"""Settings of a session: to and from JSON, and their hash."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pep_variants.errors import PluginFailed
from uv_variants.daemon.session import SessionSettings, network_variables
from uv_variants.indexes import UserIndex

SETTINGS = SessionSettings(
    indexes=(
        UserIndex("https://a.example/simple/", "a", username="u", password="p"),
        UserIndex("https://pypi.org/simple", default=True),
    ),
    key="1~abc",
    cache=Path("/cache"),
    projects={"a": frozenset(("x", "y"))},
    platforms={"h100": Path("/h100.toml")},
    locked={"torch": {"2.9.0": ("cu128", "")}},
    floating=True,
    insecure_hosts=("b.example",),
    keyring=True,
    failures={"0" * 16: PluginFailed("plugin", "cause", "output")},
    requested=("torch",),
    environ={"HTTPS_PROXY": "http://proxy.example"},
)


def test_json_and_back():
    found = SessionSettings.from_tree(json.loads(json.dumps(SETTINGS.tree())))
    assert found.tree() == SETTINGS.tree()
    assert found.digest == SETTINGS.digest
    assert found.indexes == SETTINGS.indexes
    assert str(found.failures["0" * 16]) == str(SETTINGS.failures["0" * 16])


def test_the_minimum():
    settings = SessionSettings((), "1~abc", Path("/cache"))
    assert SessionSettings.from_tree(settings.tree()) == settings


@pytest.mark.parametrize(
    "change",
    [
        {"key": "1~abd"}, {"locked": {}}, {"floating": False}, {"environ": {}},
        {"indexes": SETTINGS.indexes[1:]}, {"failures": {}},
    ],
)  # fmt: skip
def test_everything_counts(change):
    assert replace(SETTINGS, **change).digest != SETTINGS.digest


def test_the_order_of_names_does_not_count():
    assert replace(SETTINGS, requested=("b", "a")).digest == replace(
        SETTINGS, requested=("a", "b")
    ).digest  # fmt: skip


def test_secrets_do_not_show():
    assert "'p'" not in repr(SETTINGS)
    assert "proxy.example" not in repr(SETTINGS)


def test_variables_of_the_network_only():
    given = {"HTTPS_PROXY": "http://p", "NO_PROXY": "", "AWS_SECRET_ACCESS_KEY": "s", "NETRC": "/n"}
    assert network_variables(given) == {"HTTPS_PROXY": "http://p", "NETRC": "/n"}
