"""The field's index in the conformance corpus: its documents, and the stand-in.

Its cases are played by every client in `make conformance`, and a few in `test_conformance`.
"""

import hashlib
import io
import json
import urllib.request
import zipfile

import pytest

from conformance.case import CASES, read_file
from conformance.field.standin import FOLDER, Standin, pages
from pep_variants.formats.reader import read_metadata
from pep_variants.model.filename import parse_filename
from support.index import JSON, served

EIGHT = {
    "h100-cuda12.8", "rtx5090-cuda13.0", "v100-cuda12.2", "mi300x-rocm6.4", "arc-b580",
    "cpu-haswell", "gh200-cuda13.0", "apple-m1",
}  # fmt: skip
"""The machines for which every project has a case; some have cases for more machines."""

DOCUMENTS = sorted((FOLDER / "documents").iterdir())


@pytest.fixture(scope="module")
def index():
    with served(Standin(ranges=True)) as found:
        yield found


def get(url, accept="*/*"):
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": accept})) as answer:
        return answer.read()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_document_is_read(path):
    metadata = read_metadata(path.read_bytes(), path.name)
    published = json.loads(path.read_bytes())["variants"]
    labels = {"null" if label == "00000000" else label for label in published}
    assert set(metadata.variants) == labels
    assert all(properties for label, properties in metadata.variants.items() if label != "null")


def test_every_listed_document_is_recorded():
    documents = [path for page in pages().values() for path in page.documents.values()]
    assert len(documents) == 132
    assert {*documents} == {path for path in DOCUMENTS if "unversioned" not in path.name}


def test_every_labelled_wheel_is_in_its_document():
    unknown = []
    for project in pages().values():
        read = {
            name.split("-")[1]: read_metadata(path.read_bytes(), name)
            for name, path in project.documents.items()
        }
        for filename in project.wheels:
            parsed = parse_filename(filename)
            assert parsed.name == project.project
            if parsed.label is not None:
                metadata = read[str(parsed.version)]
                if metadata.label_of(parsed.label) not in metadata.variants:
                    unknown.append(filename)
    assert not unknown


def test_pages_list_what_the_field_listed(index):
    tree = json.loads(get(f"{index.url}torch/", JSON))
    names = [file["filename"] for file in tree["files"]]
    assert names == [*pages()["torch"].documents, *pages()["torch"].wheels]
    for file in tree["files"]:
        version = file["filename"].split("-")[1]
        unhashed = file["filename"].endswith(".whl") and version in ("2.10.0", "2.9.0", "2.8.0")
        assert bool(file["hashes"]) != unhashed, file
        assert not file["core-metadata"]


def test_pages_in_html(index):
    text = get(f"{index.url}nvidia-nccl/").decode()
    assert ">nvidia_nccl-2.29.2-variants.json</a>" in text
    assert text.count("#sha256=") == len(pages()["nvidia-nccl"].wheels) + 8


def test_wheels_are_what_the_page_and_the_document_say(index):
    tree = json.loads(get(f"{index.url}nvidia-cudnn/", JSON))
    (file,) = (
        file
        for file in tree["files"]
        if file["filename"].startswith("nvidia_cudnn-9.17.1.4-")
        and file["filename"].endswith("x86_64-cu13.whl")
    )
    data = get(index.url.removesuffix("/simple/") + file["url"])
    assert hashlib.sha256(data).hexdigest() == file["hashes"]["sha256"]
    with zipfile.ZipFile(io.BytesIO(data)) as wheel:
        info = "nvidia_cudnn-9.17.1.4.dist-info"
        variant = json.loads(wheel.read(f"{info}/variant.json"))
        assert variant["variants"] == {"cu13": {"nvidia": {"cuda_version_lower_bound": ["13.0"]}}}
        tags = [
            line.removeprefix("Tag: ")
            for line in wheel.read(f"{info}/WHEEL").decode().splitlines()
            if line.startswith("Tag: ")
        ]
        assert tags == ["py3-none-manylinux_2_27_x86_64"]


def test_torchvision_requires_its_torch(index):
    path = "/files/torchvision/torchvision-0.23.0-cp313-cp313-manylinux_2_28_x86_64-00000000.whl"
    with zipfile.ZipFile(io.BytesIO(get(index.url.removesuffix("/simple/") + path))) as wheel:
        assert b"\nRequires-Dist: torch==2.8.0\n" in wheel.read(
            "torchvision-0.23.0.dist-info/METADATA"
        )
        (name,) = (name for name in wheel.namelist() if name.endswith("variant.json"))
        assert json.loads(wheel.read(name))["variants"] == {"00000000": {}}


def test_every_project_is_judged_for_every_machine():
    for project in pages():
        cases = read_file(CASES / "field" / f"{project}.json")
        newest = {case.tree["machine"] for case in cases if case.tree["install"] == [project]}
        assert newest >= EIGHT, project
