"""A small wheel factory, and the command as its users run it."""

import io
import json
import os
import signal
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from variants_cli.main import main

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[3] / "integration-tests"))  # for `support`

from wheel_files import make_variant_json

from support.json_outputs import check_output
from support.wheels import Wheel


@pytest.fixture
def variant_json():
    """Return the function that gives the tree of a variant.json."""
    return make_variant_json


@pytest.fixture
def build_wheel(tmp_path):
    """Return the function that writes a real wheel and gives its path."""

    def build(
        filename="example_pkg-1.0-py3-none-any.whl",
        *,
        folder=tmp_path,
        variant=None,
        method=zipfile.ZIP_DEFLATED,
        comment=b"",
        record=None,
        record_last=True,
        **more,
    ):
        # variant: content of variant.json, a tree or text. more: of `support.wheels.Wheel`.
        # record: a function that edits the text of RECORD, or returns None for no RECORD.
        name, version, *tag = filename.removesuffix(".whl").split("-")[:5]
        wheel = Wheel(name, version, tag="-".join(tag), variant_json=variant, **more)
        with zipfile.ZipFile(io.BytesIO(wheel.build())) as built:
            contents = {path: built.read(path) for path in built.namelist()}
        path, data = contents.popitem()
        listed = record(data.decode()) if record else data.decode()
        if listed is not None:
            last = {path: listed.encode()}
            contents = {**contents, **last} if record_last else {**last, **contents}
        folder.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(folder / filename, "w", method) as archive:
            for number, (path, data) in enumerate(contents.items()):
                info = zipfile.ZipInfo(path, (2020, 2, 2, 3, number % 60, 14))
                info.compress_type = method
                info.external_attr = (0o100755 if path.endswith(".so") else 0o100644) << 16
                archive.writestr(info, data)
            archive.comment = comment
        return folder / filename

    return build


@pytest.fixture
def batch(tmp_path, build_wheel, variant_json):
    """Write a directory with one wheel per label, None for a plain one; return its path."""

    def write(folder, *labels, project="demo", version="1.0", tag="any", **more):
        for label in labels:
            properties = {"x86_64": {"level": [label]}} if label != "null" else {}
            build_wheel(
                f"{project}-{version}-py3-none-{tag}{f'-{label}' if label else ''}.whl",
                folder=tmp_path / folder,
                variant=variant_json(label, properties) if label else None,
                **more,
            )
        return tmp_path / folder

    return write


@pytest.fixture
def index(monkeypatch):
    """An index with the upload API that takes the user me, and no other credentials around."""
    from support.upload_server import upload_index
    from variants_cli._publishing import upload_api

    monkeypatch.setattr(upload_api, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(upload_api, "LONGEST_PAUSE", 0.01)
    for name in list(os.environ):
        if name.startswith(("TWINE_", "UV_PUBLISH_", "GITHUB_", "GITLAB_", "ACTIONS_")):
            monkeypatch.delenv(name)
    with upload_index() as running:
        running.credentials = ("me", "hunter2hunter2")
        yield running


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def variants(capsys):
    """Run the command in this process."""

    def run(*arguments):
        handler = signal.getsignal(signal.SIGTERM)
        try:
            with pytest.raises(SystemExit) as caught:
                main([str(argument) for argument in arguments])
        finally:
            signal.signal(signal.SIGTERM, handler)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        check_output([str(argument) for argument in arguments], out)
        return Result(caught.value.code, out, err)

    return run


@pytest.fixture(autouse=True)
def nothing_half_written(tmp_path):
    """Check after every test that no temporary file is left."""
    yield
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".tmp")]


@pytest.fixture(scope="module")
def storage():
    """A server of object storage with a bucket."""
    from support.object_storage import object_storage

    with object_storage("bucket") as running:
        yield running


@pytest.fixture(params=["directory", "s3"])
def place(request, tmp_path, monkeypatch):
    """A place to publish to: a directory, and S3."""
    if request.param == "directory":
        yield str(tmp_path / "place")
        return
    running = request.getfixturevalue("storage")
    for name, value in running.environ().items():
        monkeypatch.setenv(name, value)
    yield f"s3://bucket/{tmp_path.name}"
    running.faults = None
