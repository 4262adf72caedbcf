"""The JSON schemas of outputs: valid, closed, and one for each command with ``--json``.

What the commands print is compared with them wherever tests run a command, by the fixture
`variants` and by `support.json_outputs`.
"""

from __future__ import annotations

import click
import jsonschema
import pytest

from variants_cli.main import cli
from variants_cli.schemas import names, schema

VERSION = "https://json-schema.org/draft/2020-12/schema"


def commands_with_json(group, above=""):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands_with_json(command, f"{above}{name}-")
        elif any("--json" in option.opts for option in command.params):
            yield f"{above}{name}"


def objects(tree):
    """Yield the schemas of objects in a schema."""
    if isinstance(tree, dict):
        if tree.get("type") == "object":
            yield tree
        for value in tree.values():
            yield from objects(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from objects(value)


def test_every_command_with_json_has_one():
    assert {*commands_with_json(cli), "matrix"} == set(names())


@pytest.mark.parametrize("name", names())
def test_it_is_valid_and_closed(name):
    tree = schema(name)
    jsonschema.Draft202012Validator.check_schema(tree)
    assert tree["$schema"] == VERSION
    assert tree["title"].startswith(f"variants {name.replace('-', ' ')} --")
    for each in objects(tree):
        # Either its keys are listed, or they are data.
        if name == "doctor" and each is tree["$defs"]["state"]:
            continue  # a part of objects that are closed
        if "properties" in each:
            assert each["additionalProperties"] is False
        else:
            assert isinstance(each["additionalProperties"], dict)
        assert set(each.get("required", ())) <= set(each.get("properties", ()))


def test_what_several_define_is_the_same():
    found = {}
    for name in names():
        for key, value in schema(name).get("$defs", {}).items():
            assert found.setdefault(key, value) == value, (name, key)
