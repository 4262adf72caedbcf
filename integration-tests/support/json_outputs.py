"""What commands print with ``--json``, against the schemas that the distributions ship."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any


@cache
def validator(name: str) -> Any:
    """Return the validator of a command, None if it has no schema."""
    import jsonschema

    from variants_cli.schemas import schema

    try:
        return jsonschema.Draft202012Validator(schema(name))
    except FileNotFoundError:
        return None


def is_json(arguments: Sequence[str]) -> bool:
    """Return whether a command line of ``variants`` asks for JSON."""
    form = next((after for word, after in pairwise(arguments) if word == "--format"), "")
    return "--json" in arguments or ("matrix" in arguments[:1] and form == "json")


def check_output(arguments: Sequence[str], output: str) -> None:
    """Check what ``variants`` printed, if these arguments ask for JSON.

    Args:
        arguments: of the command line, without the program.
        output: on stdout, empty if the command failed.

    Raises:
        jsonschema.ValidationError: it is not as the schema says.
    """
    if not is_json(arguments) or not output.strip() or "--help" in arguments:
        return
    words = [word for word in arguments if not word.startswith("-")]
    name = "-".join(words[: 2 if words[0] == "catalog" else 1])
    found = validator(name)
    if found is not None:
        found.validate(json.loads(output))
