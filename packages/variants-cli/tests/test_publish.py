"""Publishing: the order of the steps, and uploads with the real uv to a server that takes notes."""

import re
import threading
from email import message_from_bytes
from email.policy import HTTP
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from variants_cli.publishing.steps import steps_of
from variants_cli.publishing.tools import credentials_of, find_tool

V3 = {"x86_64": {"level": ["v3"]}}


@pytest.fixture
def dist(tmp_path, build_wheel, variant_json, variants):
    folder = tmp_path / "dist"
    build = partial(build_wheel, folder=folder)
    build("example_pkg-1.0-py3-none-any.whl")
    build("example_pkg-1.0-py3-none-any-null.whl", variant=variant_json("null"))
    build("example_pkg-1.0-py3-none-any-x86_64_v3.whl", variant=variant_json("x86_64_v3", V3))
    assert variants("index", folder).code == 0
    return folder


class Index:
    """A server that takes uploads, and remembers what it was sent.

    Attributes:
        received: filename, user name and fields of every upload, in order.
        refuses: answers filenames that match this with status 400.
    """

    def __init__(self):
        self.received = []
        self.refuses = "nothing"
        index = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
                fields = {}
                for part in message_from_bytes(head + body, policy=HTTP).iter_parts():
                    name = part.get_param("name", header="Content-Disposition")
                    fields[name] = part.get_filename() or part.get_content().strip()
                filename = fields["content"]
                index.received.append((filename, self.headers.get("Authorization"), fields))
                status = 400 if re.search(index.refuses, filename) else 200
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_GET(self):
                self.send_response(404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/legacy/"


@pytest.fixture
def index(monkeypatch):
    index = Index()
    thread = threading.Thread(target=index.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("UV_PUBLISH_USERNAME", "me")
    monkeypatch.setenv("UV_PUBLISH_PASSWORD", "secret")
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    yield index
    index.server.shutdown()
    index.server.server_close()
    thread.join()


def test_order():
    names = [
        "a-1-py3-none-any.whl",
        "a-1.tar.gz",
        "a-1-py3-none-any-null.whl",
        "a-1-variants.json",
        "a-1-py3-none-any-x.whl",
        "a-1-py3-none-any-x.whl.metadata",
        "index.html",
    ]
    steps = steps_of(map(Path, names))
    assert [(step.kind.value, [path.name for path in step.files]) for step in steps] == [
        ("variant wheels", ["a-1-py3-none-any-x.whl"]),
        ("index-level metadata", ["a-1-variants.json"]),
        ("null variants", ["a-1-py3-none-any-null.whl"]),
        ("non-variant wheels", ["a-1-py3-none-any.whl"]),
        ("source distributions", ["a-1.tar.gz"]),
    ]


def publish(variants, dist, index, *more):
    return variants("publish", dist, "--tool", "uv", "--repository-url", index.url, *more)


def test_everything_is_uploaded_in_order(dist, index, variants):
    result = publish(variants, dist, index)
    assert result.code == 0, result.err
    assert [name for name, *_ in index.received] == [
        "example_pkg-1.0-py3-none-any-x86_64_v3.whl",
        "example_pkg-1.0-variants.json",
        "example_pkg-1.0-py3-none-any-null.whl",
        "example_pkg-1.0-py3-none-any.whl",
    ]
    assert len({who for _, who, _ in index.received}) == 1
    fields = index.received[1][2]
    assert (fields["name"], fields["version"], fields[":action"]) == (
        "example-pkg",
        "1.0",
        "file_upload",
    )
    assert result.out.splitlines() == [
        f"[1/4] variant wheels: 1 file to {index.url}",
        f"[2/4] index-level metadata: 1 file to {index.url}",
        f"[3/4] null variants: 1 file to {index.url}",
        f"[4/4] non-variant wheels: 1 file to {index.url}",
    ]


def test_index_that_takes_no_metadata(dist, index, variants):
    index.refuses = r"json"
    result = publish(variants, dist, index)
    assert result.code == 1
    assert "does not accept example_pkg-1.0-variants.json (status 400)" in result.err
    assert "--without-metadata" in result.err
    # What every index accepts has not been uploaded.
    assert [name for name, *_ in index.received][2:] == []
    index.received.clear()
    assert publish(variants, dist, index, "--without-metadata").code == 0
    assert len(index.received) == 3


def test_nothing_follows_a_wheel_that_is_refused(dist, index, variants):
    index.refuses = r"x86_64_v3"
    result = publish(variants, dist, index)
    assert result.code == 1
    assert {name for name, *_ in index.received} == {"example_pkg-1.0-py3-none-any-x86_64_v3.whl"}
    assert "failed with exit code" in result.err


def test_faults_are_not_published(dist, index, variants):
    (dist / "bad-1-py3-none-any.whl").write_bytes(b"")
    result = publish(variants, dist, index)
    assert result.code == 1
    assert index.received == []
    assert "nothing was uploaded" in result.err


def test_dry_run(dist, index, variants):
    result = publish(variants, dist, index, "--dry-run")
    assert result.code == 0
    assert index.received == []
    assert result.out.index("variants.json") < result.out.index("-null.whl")


def test_credentials_are_not_shown(dist, index, variants):
    url = index.url.replace("://", "://user:hunter2@")
    index.refuses = "json"
    result = variants("publish", dist, "--tool", "uv", "--repository-url", url)
    assert "hunter2" not in result.out + result.err
    assert "****@127.0.0.1" in result.out


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"TWINE_USERNAME": "a", "TWINE_PASSWORD": "b"}, ("a", "b")),
        ({"UV_PUBLISH_TOKEN": "t"}, ("__token__", "t")),
        ({"UV_PUBLISH_PASSWORD": "p"}, ("__token__", "p")),
    ],
)
def test_credentials(environ, expected, tmp_path):
    found = credentials_of("https://index.example/legacy/", {**environ, "HOME": str(tmp_path)})
    assert (found.username, found.password) == expected


def test_tool_that_is_not_there(tmp_path):
    with pytest.raises(Exception, match="twine is not installed here: pip install twine"):
        find_tool("twine", {"PATH": str(tmp_path)})
