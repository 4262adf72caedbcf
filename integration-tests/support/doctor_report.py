"""The JSON of the doctor, held against its schema."""

from __future__ import annotations

from typing import Any

import jsonschema

from variants_index.doctor import report_schema


def check_report(tree: dict[str, Any]) -> None:
    """Check what ``variants doctor --json`` or ``uv-variants doctor --json`` printed.

    Raises:
        ValidationError: it is not as the schema has it; the schema has every key.
    """
    jsonschema.Draft202012Validator(report_schema()).validate(tree)
