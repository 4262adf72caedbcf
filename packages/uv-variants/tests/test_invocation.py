"""uv's command line, as far as we understand it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pep_variants.errors import PreferenceError
from uv_variants._command_line import Scope, parse, scope_of
from uv_variants._own_options import read_options
from uv_variants._uv_program import is_direct


@pytest.mark.parametrize(
    ("arguments", "command", "values", "operands"),
    [
        ("pip install torch", ("pip", "install"), [], ("torch",)),
        ("pip install -qi URL torch", ("pip", "install"), [("index-url", "URL")], ("torch",)),
        ("pip install --index=a=URL -- x", ("pip", "install"), [("index", "a=URL")], ("x",)),
        ("--config-file f sync", ("sync",), [("config-file", "f")], ()),
        ("run --with a cmd --index b", ("run",), [("with", "a")], ("cmd",)),
        ("run --index a -m module --index b", ("run",), [("index", "a")], ("module",)),
        ("run --no-binary x --index b", ("run",), [], ("x",)),
        ("add --editable ./x", ("add",), [], ("./x",)),
        ("pip install --editable ./x", ("pip", "install"), [("editable", "./x")], ()),
        ("pip install --no-binary x y", ("pip", "install"), [("no-binary", "x")], ("y",)),
        ("pip list -e --outdated", ("pip", "list"), [], ()),
        ("pip compile --override o", ("pip", "compile"), [("overrides", "o")], ()),
        ("run --script s.py -i b", ("run",), [], ("s.py",)),
        ("run -- cmd -i b", ("run",), [], ()),
        ("lock --script s.py", ("lock",), [("script", "s.py")], ()),
        ("pip install -r", ("pip", "install"), [("requirements", "")], ()),
        ("", (), [], ()),
    ],
)
def test_command_lines(arguments, command, values, operands):
    found = parse(arguments.split())
    assert found.command == command
    assert [(item.name, item.value) for item in found.given] == values
    assert found.operands == operands


@pytest.mark.parametrize(
    ("arguments", "rewritten"),
    [
        ("pip install -i URL torch", "pip install -i NEW torch --added"),
        ("pip install -qiURL torch", "pip install -qiNEW torch --added"),
        ("pip install --index-url=URL torch", "pip install --index-url=NEW torch --added"),
        ("run -m module -i URL", "run -m --added module -i URL"),
        ("run -i URL -- cmd", "run -i NEW --added -- cmd"),
    ],
)
def test_values_are_replaced_where_they_stand(arguments, rewritten):
    found = parse(arguments.split())
    values = {item.start: "NEW" for item in found.given if item.name == "index-url"}
    assert found.rewritten(values, ["--added"]) == rewritten.split()


WORDS = st.sampled_from(
    "pip install run sync tool -i -r --index --with -- - -q --script -m --index=a -ix x".split()
)


@given(st.lists(st.one_of(WORDS, st.text(max_size=4)), max_size=8))
def test_nothing_is_lost(arguments):
    found = parse(arguments)
    assert found.rewritten({}) == arguments
    complete = [item for item in found.given if item.glued or item.start + 1 < len(arguments)]
    assert found.rewritten({item.start: item.value for item in complete}) == arguments


@pytest.mark.parametrize(
    ("arguments", "scope"),
    [
        ("", Scope.NOTHING),
        ("--version", Scope.NOTHING),
        ("pip install --help", Scope.NOTHING),
        ("pip list", Scope.NOTHING),
        ("pip list --outdated", Scope.ENVIRONMENT),
        ("pip compile r.in", Scope.ENVIRONMENT),
        ("venv", Scope.NOTHING),
        ("venv --seed", Scope.BUILD),
        ("tool list", Scope.NOTHING),
        ("tool upgrade --all", Scope.TOOL),
        ("run --version", Scope.NOTHING),
        ("run python --version", Scope.PROJECT),
        ("something-new", Scope.BUILD),
    ],
)
def test_what_commands_are_about(arguments, scope):
    assert scope_of(parse(arguments.split())) is scope


@pytest.mark.parametrize(
    ("line", "variants", "rest"),
    [
        ("--variant-platform m lock", {"variant-platform": "m"}, "lock"),
        ("lock --variant-platform m", {"variant-platform": "m"}, "lock"),
        ("lock --variant-platform=m --offline", {"variant-platform": "m"}, "lock --offline"),
        ("--offline --no-variants lock", {"no-variants": True}, "--offline lock"),
        ("pip --variant a=b install x --variant c=", {"variant": ["a=b", "c="]}, "pip install x"),
        ("pip install -r --variant x", {}, "pip install -r --variant x"),  # a file of that name
        ("pip install x -- --variant", {}, "pip install x -- --variant"),
        ("run --variant-platform m x.py", {"variant-platform": "m"}, "run x.py"),
        ("run --with a x.py --variant b", {}, "run --with a x.py --variant b"),
        ("run -- x --no-variants", {}, "run -- x --no-variants"),
        ("run -m x --no-variants", {}, "run -m x --no-variants"),
        ("tool run --no-variants x --variant", {"no-variants": True}, "tool run x --variant"),
        ("pip list --no-variants", {"no-variants": True}, "pip list"),
        ("doctor --variant-catalog x", {"variant-catalog": "x"}, "doctor"),
        ("--no-variants config --variant-platform m", {"no-variants": True},
         "config --variant-platform m"),
    ],
)  # fmt: skip
def test_own_options_stand_anywhere(line, variants, rest):
    found = read_options(line.split())
    assert (dict(found.variants), list(found.uv_arguments)) == (variants, rest.split())
    assert not is_direct(line.split()) or found.uv_arguments == tuple(line.split())


def test_own_options_of_uvx():
    found = read_options(["--with", "a", "--no-variants", "x", "--variant", "y"], ("tool", "run"))
    assert found == ({"no-variants": True}, ("--with", "a", "x", "--variant", "y"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("lock --variant-platfrom m", "did you mean --variant-platform?"),
        ("lock --variantz", "is not an option of uv-variants"),
        ("sync --variant", "--variant needs a value"),
    ],
)
def test_errors_of_own_options(line, message):
    with pytest.raises(PreferenceError, match=re.escape(message)):
        read_options(line.split())
