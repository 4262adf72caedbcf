"""The files of a version with variants."""

import io
import json
import zipfile

NAME = "app-1.0-variants.json"


def document(*labels):
    return json.dumps(
        {
            "default-priorities": {"namespace": ["n"]},
            "providers": {"n": {"requires": ["n-provider"]}},
            "variants": {label: {"n": {"f": [label]}} for label in labels},
        }
    ).encode()


def wheel(data, label="a", *, padding=0, last=False):
    """Return the bytes of a wheel of *label*; the metadata is before *padding* bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        if data is not None:
            archive.writestr("app-1.0.dist-info/variant.json", data)
        archive.writestr("app-1.0.dist-info/METADATA", b"")
        archive.writestr("app/padding", bytes(padding))
    return buffer.getvalue()


def a_wheel(label):
    return f"app-1.0-py3-none-any-{label}.whl"
