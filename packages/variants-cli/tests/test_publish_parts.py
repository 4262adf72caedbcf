"""The parts of the uploader: answers of servers, pauses, URLs, form fields."""

from functools import partial

import httpx
import pytest

from variants_cli.publishing.answers import BODY_BYTES, read_answer
from variants_cli.publishing.errors import Changed, Unavailable
from variants_cli.publishing.form_fields import core_metadata_fields
from variants_cli.publishing.index_pages import Presence, presence_of
from variants_cli.publishing.retries import Retries, Temporary
from variants_cli.publishing.simple_urls import simple_url_of
from variants_cli.publishing.upload_client import FileContent

BOTTLE = b"""<html><head><title>Error: 400 Bad Request</title><style type="text/css">x{}</style>
</head><body><h1>Error: 400 Bad Request</h1><p>Sorry, the requested URL <tt>&#039;http://x/&#039;
</tt> caused an error:</p><pre>Bad filename: a&amp;b</pre></body></html>"""


def answered(status, body=b"", kind="text/plain", phrase=b"Bad Request", **headers):
    response = httpx.Response(
        status,
        headers={"Content-Type": kind, **headers},
        extensions={"reason_phrase": phrase},
    )
    return read_answer(response, body, ["hunter2"])


@pytest.mark.parametrize(
    ("body", "kind", "phrase", "reason"),
    [
        (b"", "text/plain", b"Bad Request", ""),
        (b"no\nway", "text/plain", b"Bad Request", "no way"),
        (b"<b>x</b>", "text/html", b"'a' is no archive", "'a' is no archive"),
        (BOTTLE, "text/html", b"Bad Request", "Bad filename: a&b"),
        (b'{"message": "\\n", "title": "taken"}', "application/json", b"Bad Request", "taken"),
        (b'{"errors": [{"status": 400, "message": "late"}]}', "application/json", b"", "late"),
        (b'{"detail": {"error": "deep"}}', "application/problem+json", b"", "deep"),
        (b"{", "application/json", b"Teapot", "Teapot"),
        (b"[" * 8000, "application/json", b"", ""),
        (b"<style" * (BODY_BYTES // 6), "text/html", b"", None),
        (b"your password hunter2 \x1b[31m", "text/plain", b"", "your password **** ?[31m"),
        (b"see https://me:pw@x.example/?sig=1", "text/plain", b"", "see https://****@x.example/?****"),
        (b"x" * 5000, "text/plain", b"", "x" * 299 + "…"),
    ],
)  # fmt: skip
def test_reason(body, kind, phrase, reason):
    answer = answered(400, body, kind, phrase)
    assert reason is None or answer.reason == reason
    assert len(answer.reason) <= 300


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [
        (409, b"", True),
        (400, b"File already exists ('a.whl', with blake2_256 hash '1')", True),
        (400, b"Validation failed: File name has already been taken", True),
        (403, b"a-1.whl already exist", True),
        (400, b"Invalid", False),
        (200, b"already exists", False),
    ],
)
def test_file_that_exists(status, reason, expected):
    assert answered(status, reason).says_exists == expected


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_temporary(status):
    with pytest.raises(Temporary) as caught:
        answered(status, b"busy", **{"Retry-After": "7"})
    assert caught.value.asked == 7


class TestRetries:
    def run(self, problems, **options):
        pauses, notes = [], []

        def attempt(number):
            if number < len(problems):
                raise problems[number]
            return number

        policy = Retries(**options)
        notes_of = lambda problem, pause: notes.append((problem, pause))  # noqa: E731
        return policy.run(attempt, notes_of, pauses.append), pauses, notes

    def test_pauses_double_with_jitter(self):
        result, pauses, notes = self.run([Temporary("busy")] * 5, first_pause=1.0)
        assert result == 5
        for number, pause in enumerate(pauses):
            assert 0.75 * 2**number <= pause <= 1.25 * 2**number
        assert notes[0] == ("busy", pauses[0])
        assert len({self.run([Temporary("x")], first_pause=1.0)[1][0] for _ in range(5)}) > 1

    def test_longest_pause(self):
        assert max(self.run([Temporary("busy")] * 12, retries=12)[1]) <= 60 * 1.25

    def test_server_asks(self):
        assert self.run([Temporary("busy", 30)])[1] == [30]

    def test_end(self):
        with pytest.raises(Unavailable, match="busy; tried 3 times"):
            self.run([Temporary("busy")] * 3, retries=2)
        with pytest.raises(Unavailable, match="asks to wait for 3600 seconds"):
            self.run([Temporary("busy", 3600)])


@pytest.mark.parametrize(
    ("upload", "devpi", "pages", "certain"),
    [
        ("https://upload.pypi.org/legacy/", False, "https://pypi.org/simple/", True),
        ("https://test.pypi.org/legacy/", False, "https://test.pypi.org/simple/", True),
        ("https://x.example/root/dev/", True, "https://x.example/root/dev/+simple/", True),
        ("https://x.example/root/dev", False, "https://x.example/root/dev/simple/", False),
        ("http://localhost:8080", False, "http://localhost:8080/simple/", False),
        (
            "https://nexus.example/repository/pypi-hosted/", False,
            "https://nexus.example/repository/pypi-hosted/simple/", True,
        ),
        (
            "https://git.example/api/packages/me/pypi", False,
            "https://git.example/api/packages/me/pypi/simple/", True,
        ),
        (
            "https://d-1.d.codeartifact.eu-west-1.amazonaws.com/pypi/r/", False,
            "https://d-1.d.codeartifact.eu-west-1.amazonaws.com/pypi/r/simple/", True,
        ),
        (
            "https://python.cloudsmith.io/org/repo/", False,
            "https://dl.cloudsmith.io/basic/org/repo/python/simple/", True,
        ),
    ],
)  # fmt: skip
def test_simple_url(upload, devpi, pages, certain):
    assert simple_url_of(upload, devpi=devpi) == (pages, certain)


def test_form_fields():
    metadata = """Metadata-Version: 2.4
Name: flash_attn
Version: 2.8.3
Summary: Fast
Keywords: gpu,attention
Home-page: https://x.example
Author-email: a@x.example
Classifier: Programming Language :: Python
Classifier: License :: OSI
Project-URL: Source, https://x.example/src
License-Expression: BSD-3-Clause
License-File: LICENSE
License-File: AUTHORS
Platform: linux
Provides-Extra: all
Dynamic: requires-dist
Requires-Python: >=3.9
Requires-Dist: torch; 'abi_dependency :: torch :: 2.9' in variant_properties
Requires-Dist: einops
Description-Content-Type: text/markdown

# Fast é
""".encode()
    assert core_metadata_fields(metadata) == {
        "metadata_version": "2.4",
        "name": "flash_attn",
        "version": "2.8.3",
        "summary": "Fast",
        "keywords": "gpu,attention",
        "home_page": "https://x.example",
        "author_email": "a@x.example",
        "classifiers": ["Programming Language :: Python", "License :: OSI"],
        "project_urls": ["Source, https://x.example/src"],
        "license_expression": "BSD-3-Clause",
        "license_file": ["LICENSE", "AUTHORS"],
        "platform": ["linux"],
        "provides_extra": ["all"],
        "dynamic": ["requires-dist"],
        "requires_python": ">=3.9",
        "requires_dist": [
            "torch; 'abi_dependency :: torch :: 2.9' in variant_properties",
            "einops",
        ],
        "description_content_type": "text/markdown",
        "description": "# Fast é\n",
    }


def test_license_files_of_older_metadata():
    fields = core_metadata_fields(b"Metadata-Version: 2.1\nName: a\nVersion: 1\nLicense-File: L\n")
    assert "license_file" not in fields
    assert fields["requires_python"] == ""


@pytest.mark.parametrize(
    ("hashes", "expected"),
    [
        (None, Presence.ABSENT),
        ({}, Presence.UNKNOWN),
        ({"crc": "1"}, Presence.UNKNOWN),
        ({"md5": "5D41402ABC4B2A76B9719D911017C592"}, Presence.SAME),
        ({"md5": "0" * 32}, Presence.OTHER),
        ({"sha256": "AB"}, Presence.SAME),
        ({"sha256": "cd", "md5": "5d41402abc4b2a76b9719d911017c592"}, Presence.OTHER),
    ],
)
def test_presence(tmp_path, hashes, expected):
    path = tmp_path / "file"
    path.write_bytes(b"hello")
    assert presence_of(path, "ab", hashes) is expected


class TestFileContent:
    SHA = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

    def test_progress_and_restart(self, tmp_path):
        path = tmp_path / "file"
        path.write_bytes(b"hello")
        seen = []
        with FileContent(path, 5, self.SHA, seen.append) as content:
            assert [content.read(3), content.read(3), content.read(3)] == [b"hel", b"lo", b""]
            content.seek(0)
            assert content.read() == b"hello"
        assert sum(seen) == 5

    @pytest.mark.parametrize("data", [b"hellO", b"hell", b""])
    def test_changed_meanwhile(self, tmp_path, data):
        path = tmp_path / "file"
        path.write_bytes(data)
        with FileContent(path, 5, self.SHA, lambda _: None) as content:
            with pytest.raises(Changed, match="changed while it was uploaded"):
                list(iter(partial(content.read, 2), b""))

    def test_grown_meanwhile(self, tmp_path):
        path = tmp_path / "file"
        path.write_bytes(b"hello, world")
        with FileContent(path, 5, self.SHA, lambda _: None) as content:
            assert content.read() == b"hello"
