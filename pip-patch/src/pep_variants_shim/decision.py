"""What was decided about an installed variant, kept with it.

Markers may ask for single values (``variant_properties``), of which those count that the machine
supported when the wheel was installed: a driver may be gone since, a platform file was for another
machine. So the dist-info folder gets a copy of ``variant.json`` that has just these values. It is
written where they are fewer than the wheel lists and a marker asks, which is rare.
"""

from __future__ import annotations

import base64
import hashlib
import os
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pep_variants.markers import VariantContext

DECISION_FILE = "variant-decided.json"


def decision_text(variant_json: bytes | None, context: VariantContext) -> str | None:
    """Return what to keep of the decision, None if it is all in ``variant.json``.

    Args:
        variant_json: contents of that file.
        context: what markers were evaluated against.
    """
    from pep_variants.errors import VariantError
    from pep_variants.label import VARIANT_FILE
    from pep_variants.reader import read_metadata
    from pep_variants.writer import write_metadata

    if variant_json is None:
        return None
    try:
        metadata = read_metadata(variant_json, VARIANT_FILE)
        own = metadata.properties_of(metadata.label_of(context.label)) or {}
        if not context.properties or _sets(own) == _sets(context.properties):
            return None
        decided = {metadata.label_of(context.label): context.properties}
        return write_metadata(replace(metadata, variants=decided))
    except VariantError:
        return None  # whether it may be installed is decided elsewhere


def _sets(properties: object) -> object:
    return (
        {key: _sets(value) for key, value in properties.items()}
        if isinstance(properties, dict)
        else frozenset(properties)  # type: ignore[call-overload]
    )


def keep_decision(folder: str, text: str) -> None:
    """Write *text* into dist-info *folder*, and into its ``RECORD``.

    Raises:
        OSError: it cannot be written.
    """
    data = text.encode()
    with open(os.path.join(folder, DECISION_FILE), "wb") as file:  # noqa: PTH118, PTH123
        file.write(data)
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    name = f"{os.path.basename(folder)}/{DECISION_FILE}"  # noqa: PTH119
    with open(os.path.join(folder, "RECORD"), "a", encoding="utf-8", newline="") as file:  # noqa: PTH118, PTH123
        file.write(f"{name},sha256={digest},{len(data)}\r\n")
