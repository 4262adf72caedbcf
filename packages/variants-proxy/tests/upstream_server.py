"""An index on loopback, and small wheels for it."""

import json

from support.index import Index
from support.wheels import NVIDIA, Wheel, metadata


def document(*cuda):
    """Variant metadata with the null variant and one for each CUDA version."""
    bounds = {
        f"cu{each.replace('.', '')}": {"nvidia": {"cuda_version_lower_bound": [each]}}
        for each in cuda
    }
    return metadata({"null": {}, **bounds}, namespaces=["nvidia"], providers={"nvidia": NVIDIA})


def wheel(filename, *requires, variants=None, **more):
    """Contents of a wheel; *variants* is the document of its version."""
    name, version, *rest = filename[:-4].split("-")
    label = rest[3] if len(rest) == 4 else None
    own = None
    if label is not None and variants is not None:
        own = {**variants, "variants": {label: variants["variants"][label]}}
    more.setdefault("description", "A description of variant_label.")
    return Wheel(name, version, label, "-".join(rest[:3]), requires, own, **more).build()


class Upstream(Index):
    """An index with what PyPI's pages say of files."""

    def __init__(self):
        super().__init__(ranges=True, sizes=True, metadata_hashes=True)

    def add_release(
        self, version="1.0", *requires, labels=("null", "cu126", "cu128", "cu130"),
        tags=("py3-none-any",), plain=False, project="app", **more,
    ):  # fmt: skip
        found = document("12.6", "12.8", "13.0")
        for tag in tags:
            for label in (*labels, *[None] * plain):
                name = "-".join(filter(None, (project, version, tag, label))) + ".whl"
                self.add(project, name, wheel(name, *requires, variants=found, **more))
        self.add(project, f"{project}-{version}-variants.json", json.dumps(found).encode())
