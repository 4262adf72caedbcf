"""Another installer: `ReleaseReader` with nothing but `urllib`, from a real server."""

import re
import threading
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from release_files import NAME, a_wheel, document, wheel

from pep_variants.errors import MetadataError
from pep_variants.release import ReleaseFile

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "use-the-engine.md"


@cache
def example():
    """Return the function that the page shows."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (text,) = (block for block in blocks if "def variant_metadata" in block)
    names = {}
    exec(compile(text, str(PAGE), "exec"), names)
    return names["variant_metadata"]


class Server(ThreadingHTTPServer):
    """Serves *files* by name, ranges of them too unless *ranges* is off."""

    daemon_threads = True

    def __init__(self, files, *, ranges=True, suffixes=True):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = files
        self.ranges = ranges
        self.suffixes = suffixes
        self.asked = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *args):
        self.shutdown()
        self.server_close()

    def metadata(self, *listed):
        files = [ReleaseFile(name, self.url + name) for name in (*self.files, *listed)]
        wheels = [file for file in files if file.filename.endswith(".whl")]
        documents = [file for file in files if file.filename == NAME]
        return example()(wheels, *(documents or [None]), self.url)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path[1:]
        data = self.server.files.get(name)
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        self.server.asked.append((name, wanted and wanted[0]))
        if data is None:
            self.send_error(404)
        elif wanted is None or not self.server.ranges:
            self.reply(200, data)
        elif not wanted[1] and not self.server.suffixes:
            self.send_error(501)
        else:
            start = int(wanted[1]) if wanted[1] else max(0, len(data) - int(wanted[2]))
            end = min(int(wanted[2]) + 1, len(data)) if wanted[1] else len(data)
            self.reply(206, data[start:end], f"bytes {start}-{end - 1}/{len(data)}")

    def reply(self, status, data, content_range=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        if content_range:
            self.send_header("Content-Range", content_range)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


WHEELS = {a_wheel(label): wheel(document(label), label, padding=300_000) for label in "ab"}


def test_the_file_on_the_index():
    with Server({**WHEELS, NAME: document("a", "b", "c")}) as server:
        assert set(server.metadata().variants) == {"a", "b", "c"}
        assert server.asked == [(NAME, None)]


@pytest.mark.parametrize("listed", [(), (NAME,)])
def test_by_ranges(listed):
    with Server(WHEELS) as server:
        assert set(server.metadata(*listed).variants) == {"a", "b"}
        wheels = [ranges for name, ranges in server.asked if name != NAME]
        assert wheels == ["bytes=-65536", "bytes=0-16383"] * 2


def test_a_server_that_does_not_answer():
    with Server({}) as server:
        file = ReleaseFile(NAME, server.url + NAME)
    with pytest.raises(MetadataError, match=f"{NAME}: cannot be fetched: .*refused"):
        example()([], file, server.url)
