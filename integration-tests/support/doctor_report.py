"""The JSON of the doctor, held against its schema, without room for keys that it does not name."""

from __future__ import annotations

from typing import Any

import jsonschema

from variants_index.doctor import report_schema


def check_report(tree: dict[str, Any]) -> None:
    """Check what ``variants doctor --json`` or ``uv-variants doctor --json`` printed.

    Raises:
        ValidationError: it is not as the schema has it.
    """
    jsonschema.Draft202012Validator(_closed(report_schema())).validate(tree)


def _closed(schema: Any) -> Any:
    """Return *schema* without room for keys that it does not name."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    if "allOf" in schema:  # the state of a project, whose other keys are in `state`
        closed["unevaluatedProperties"] = False
    elif schema.get("type") == "object" and "verdicts" not in schema.get("properties", "verdicts"):
        closed.setdefault("additionalProperties", False)
    return closed
