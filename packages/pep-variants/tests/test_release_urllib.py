"""Another installer: `ReleaseReader` with nothing but `urllib`, from a real server."""

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from release_files import NAME, a_wheel, document, wheel

from pep_variants.errors import MetadataError
from pep_variants.release import ReleaseFile

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "use-the-engine.md"
WHEELS = {a_wheel(label): wheel(document(label), label, padding=300_000) for label in "ab"}


@pytest.fixture(scope="module")
def variant_metadata():
    """Return the function that the page shows."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (text,) = (block for block in blocks if "def variant_metadata" in block)
    names = {}
    exec(compile(text, str(PAGE), "exec"), names)
    return names["variant_metadata"]


class Handler(BaseHTTPRequestHandler):
    """Serves ranges of `WHEELS`."""

    def do_GET(self):
        data = WHEELS.get(self.path[1:])
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        self.server.asked.append((self.path[1:], wanted and wanted[0]))
        if data is None:
            self.send_error(404)
            return
        start = int(wanted[1]) if wanted[1] else max(0, len(data) - int(wanted[2]))
        part = data[start : int(wanted[2]) + 1] if wanted[1] else data[start:]
        self.send_response(206)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Content-Range", f"bytes {start}-{start + len(part) - 1}/{len(data)}")
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.asked = []
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()


def test_by_ranges(server, variant_metadata):
    url = f"http://127.0.0.1:{server.server_port}/"
    wheels = [ReleaseFile(name, url + name) for name in WHEELS]
    found = variant_metadata(wheels, ReleaseFile(NAME, url + NAME), url)
    assert set(found.variants) == {"a", "b"}
    ranges = [wanted for name, wanted in server.asked if name != NAME]
    assert ranges == ["bytes=-65536", "bytes=0-16383"] * 2


def test_a_server_that_does_not_answer(variant_metadata):
    url = "http://127.0.0.1:1/"
    with pytest.raises(MetadataError, match=f"{NAME}: cannot be fetched: .*refused"):
        variant_metadata([], ReleaseFile(NAME, url + NAME), url)
