"""The field's index in the conformance corpus: its documents, pages and cases.

Its cases are played by every client in `make conformance`, and a few in `test_conformance`.
"""

import json

import pytest

from conformance.case import CASES, read_file
from conformance.field.standin import FOLDER, pages
from pep_variants._formats.reader import read_metadata

EIGHT = {
    "h100-cuda12.8", "rtx5090-cuda13.0", "v100-cuda12.2", "mi300x-rocm6.4", "arc-b580",
    "cpu-haswell", "gh200-cuda13.0", "apple-m1",
}  # fmt: skip
"""The machines for which every project has a case; some have cases for more machines."""

DOCUMENTS = sorted((FOLDER / "documents").iterdir())


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_document_is_read(path):
    metadata = read_metadata(path.read_bytes(), path.name)
    published = json.loads(path.read_bytes())["variants"]
    labels = {"null" if label == "00000000" else label for label in published}
    assert set(metadata.variants) == labels
    assert all(properties for label, properties in metadata.variants.items() if label != "null")


def test_every_project_is_judged_for_every_machine():
    for project in pages():
        cases = read_file(CASES / "field" / f"{project}.json")
        newest = {case.tree["machine"] for case in cases if case.tree["install"] == [project]}
        assert newest >= EIGHT, project
