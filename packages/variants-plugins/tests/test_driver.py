"""Shapes that a plugin may have; the usual ones are cases of the conformance corpus."""

import sys

import pytest

from variants_plugins import _driver as driver

SOURCE = """
from collections import namedtuple
Config = namedtuple("Config", "name values multi_value", defaults=[False])
Bare = namedtuple("Bare", "name values")
LEVELS = [Config("level", ["two", "one"])]

class NamespaceOfInstance:
    @property
    def namespace(self): return "acme"
    @classmethod
    def get_supported_configs(cls): return LEVELS
class KnownProperties:
    def get_supported_configs(self, known_properties):
        assert known_properties is None
        return LEVELS
class Outer:
    class Inner:
        plugin = KnownProperties()
class Missing:
    get_supported_configs = staticmethod(lambda: [Bare("level", ["two", "one"])])
class Tuples:
    get_supported_configs = staticmethod(lambda: (Config("level", ("two", "one")),))
class Build(Missing):
    is_build_plugin = True
class Aot(Missing):
    is_aot_plugin = True
class AllCompatible(Missing):
    all_properties_compatible = True
class NotFixed(Missing):
    is_aot_plugin = False
class Abstract:
    def __init__(self, x): pass
    def get_supported_configs(self): return LEVELS
class Generator:
    @staticmethod
    def get_supported_configs(): yield LEVELS[0]
class Texts:
    get_supported_configs = staticmethod(lambda: ["level"])
"""


@pytest.fixture(autouse=True)
def zoo(tmp_path, monkeypatch):
    (tmp_path / "zoo.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("zoo", None)


@pytest.mark.parametrize(
    ("path", "fixed"),
    [
        ("NamespaceOfInstance", False),
        ("KnownProperties", False),
        ("Outer.Inner.plugin", False),
        ("Missing", False),
        ("Tuples", False),
        ("Build", True),
        ("Aot", True),
        ("AllCompatible", True),
        ("NotFixed", False),
    ],
)
def test_answers(path, fixed):
    answer = driver.ask(f"zoo:{path}", "get_supported_configs")
    assert answer["fixed"] is fixed
    (feature,) = answer["features"]
    assert (feature["name"], list(feature["values"])) == ("level", ["two", "one"])
    assert feature["multi_value"] is False


@pytest.mark.parametrize(
    ("path", "error"),
    [("Abstract", TypeError), ("Texts", AttributeError), ("Outer.Inner.none", AttributeError)],
)
def test_fails(path, error):
    with pytest.raises(error):
        driver.ask(f"zoo:{path}", "get_supported_configs")


def test_what_is_no_list_is_left_for_the_reader():
    answer = driver.ask("zoo:Generator", "get_supported_configs")
    assert not isinstance(answer["features"], list)


def test_an_error_that_cannot_be_told():
    class Strange(BaseException):
        def __str__(self):
            raise self

    assert driver.described(Strange()) == "Strange"
