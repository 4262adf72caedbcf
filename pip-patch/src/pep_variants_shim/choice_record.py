"""The choice of an installed variant, recorded in its dist-info folder where markers need it later.

``variant_properties`` contains only values that the machine supported when the wheel was installed.
Later that cannot be computed again: a driver may have been removed, or a platform file described
another machine. So dist-info gets a copy of ``variant.json`` with just these values, if a marker
asks for them and the wheel lists several values of a feature, which is rare.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pep_variants.choose.markers import VariantContext

CHOICE_FILE = "variant-decided.json"


def choice_text(variant_json: bytes | None, context: VariantContext) -> str | None:
    """Return the contents of `CHOICE_FILE`, None if ``variant.json`` alone is sufficient.

    That is ``variant.json`` with fewer values. Everything else stays as it is, in every generation
    of the format.

    Args:
        variant_json: contents of that file.
        context: what markers were evaluated against.
    """
    from pep_variants.errors import VariantError
    from pep_variants.formats.reader import read_metadata
    from pep_variants.model.label import VARIANT_FILE

    if variant_json is None or not context.properties:
        return None
    try:
        metadata = read_metadata(variant_json, VARIANT_FILE)
    except VariantError:
        return None  # reported where the wheel is checked
    label = metadata.label_of(context.label)
    listed = metadata.properties_of(label) or {}
    if all(len(values) == 1 for features in listed.values() for values in features.values()):
        return None  # a variant is only installed if one value of each feature is supported
    # pip 26 refuses imports while it installs: `record_choice` needs this module loaded by then.
    from pep_variants.wheelfile import record  # noqa: F401

    tree = json.loads(variant_json)
    tree["variants"] = {label: context.properties}
    return json.dumps(tree, indent=2) + "\n"


def record_choice(dist_info: str, text: str) -> None:
    """Write *text* to `CHOICE_FILE` in the folder *dist_info*, and list it in ``RECORD``.

    Raises:
        OSError: a file cannot be written.
    """
    from pep_variants.wheelfile.record import record_line

    data = text.encode()
    with open(os.path.join(dist_info, CHOICE_FILE), "wb") as file:  # noqa: PTH118, PTH123
        file.write(data)
    path = f"{os.path.basename(dist_info)}/{CHOICE_FILE}"  # noqa: PTH119
    with open(os.path.join(dist_info, "RECORD"), "a", encoding="utf-8", newline="") as file:  # noqa: PTH118, PTH123
        file.write(record_line(path, data, "\r\n"))
