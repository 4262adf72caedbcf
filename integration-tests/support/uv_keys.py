"""The keys of uv's configuration, as uv itself lists them, and how each is shown to count.

uv lists the fields of its tables when one is unknown. Of `[[index]]` it ignores unknown fields:
there every word around the known ones in the program is tried with a value that no field takes.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from .isolation import isolated
from .uv_forms import EMPTY, Form

UNRELATED = "unrelated"
"""For keys that have nothing to do with indexes or the network: uv alone reads them."""


def _stderr(uv: Path, text: str) -> str:
    """Return what uv says of a ``uv.toml`` with *text*."""
    with TemporaryDirectory() as name:
        file = Path(name, "uv.toml")
        file.write_text(text)
        done = subprocess.run(
            [uv, "pip", "list", "--offline", "--python", sys.executable],
            env={**isolated({}, Path(name)), "PATH": ""},
            cwd=name,
            capture_output=True,
            text=True,
            check=False,
        )
    return done.stderr


@cache
def fields(uv: Path, table: str = "") -> frozenset[str]:
    """Return the fields of a table that refuses unknown ones: of the top, or of ``[pip]``."""
    said = _stderr(uv, (f"[{table}]\n" if table else "") + "nonsense = 1\n")
    listed = said.partition("expected one of ")[2]
    found = frozenset(re.findall(r"`([a-z-]+)`", listed))
    assert len(found) > 30, said
    return found


@cache
def index_fields(uv: Path) -> frozenset[str]:
    """Return the fields of ``[[index]]``."""
    program = uv.read_bytes()
    words = {"name", "explicit", "default", "authenticate"}
    for match in re.finditer(b"publish-url(?:authenticate)?ignore-error-codes", program):
        around = program[max(0, match.start() - 120) : match.end() + 120]
        for run in re.findall(r"[a-z][a-z-]+", around.decode("latin-1")):
            for start in range(len(run)):
                ends = range(start + 2, min(len(run), start + 32) + 1)
                words |= {run[start:end].strip("-") for end in ends}
    rest = sorted(words - {"url", ""})
    head = '[[index]]\nurl = "http://127.0.0.1:9/"\n'
    found = {"url"}

    def search(keys: list[str]) -> None:
        if not keys or "error" not in _stderr(uv, head + "".join(f"{k} = [[[]]]\n" for k in keys)):
            return
        if len(keys) == 1:
            found.add(keys[0])
            return
        half = len(keys) // 2
        search(keys[:half])
        search(keys[half:])

    search(rest)
    return frozenset(found)


@dataclass(frozen=True)
class Shown:
    """A key that changes what a command does: with it and without it.

    Attributes:
        key: its name; of an index with ``index.`` before it.
        counts: the form with the key.
        without: the same without it.
    """

    key: str
    counts: Form
    without: Form


def _shown(
    key: str, line: str, command: str, text: str = "{key}", since: tuple[int, ...] = (0,),
    instead: str = "", **options: object,
) -> Shown:  # fmt: skip
    """Return a key: *text* is added to pyproject.toml, with *line* in it or *instead*."""
    forms = []
    for place in (line, instead):
        files = {"pyproject.toml": EMPTY + text.replace("{key}", place)}
        forms.append(
            Form(key, tuple(command.split()), files, since=since, **options)  # type: ignore[arg-type]
        )
    return Shown(key, *forms)


def _top(key: str, line: str, command: str, **options: object) -> Shown:
    return _shown(key, line, command, "[tool.uv]\n{key}\n", **options)  # type: ignore[arg-type]


def _index(key: str, line: str, command: str, url: str, **options: object) -> Shown:
    text = f'[[tool.uv.index]]\nname = "keyed"\nurl = "{{{url}}}"\n{{key}}\n'
    return _shown(f"index.{key}", line, command, text, **options)  # type: ignore[arg-type]


_LOGIN = {"environ": {"UV_INDEX_KEYED_USERNAME": "user", "UV_INDEX_KEYED_PASSWORD": "pass word"}}
_OWN = '[[tool.uv.index]]\nname = "keyed"\nurl = "{guarded}"\n'

SHOWN = (
    _shown("index.name", 'name = "keyed"', "add guarded",
           '[[tool.uv.index]]\nurl = "{guarded}"\n{key}\n', **_LOGIN),
    _shown("index.url", '[[tool.uv.index]]\nurl = "{newer}"', "add plain"),
    _index("explicit", "explicit = true", "add plain", "newer"),
    _index("default", "default = true", "add plain", "newer", default_index=False,
           instead='default = true\n[[tool.uv.index]]\nname = "first"\nurl = "{url}"'),
    _index("format", 'format = "flat"', "add linked", "links", since=(0, 8)),
    _index("authenticate", 'authenticate = "never"', "add guarded", "guarded", since=(0, 8),
           **_LOGIN),
    _index("ignore-error-codes", "ignore-error-codes = [403]", "add plain", "denied",
           since=(0, 8)),
    _index("exclude-newer", 'exclude-newer = "2025-01-01T00:00:00Z"', "add old", "dated",
           since=(0, 11)),
    _index("exclude-newer-package",
           'exclude-newer-package = { old = "2025-01-01T00:00:00Z" }', "add old", "dated",
           since=(0, 13, 9)),
    _top("exclude-newer", 'exclude-newer = "2025-01-01T00:00:00Z"',
         "add --index {dated} old"),
    _top("exclude-newer-package", 'exclude-newer-package = { old = "2025-01-01T00:00:00Z" }',
         "add --index {dated} old", since=(0, 8, 20)),
    _top("no-index", "no-index = true", "add plain"),
    _top("index", 'index = [{ url = "{other}" }]', "add extra"),
    _top("index-url", 'index-url = "{url}"', "add plain", default_index=False,
         instead='index-url = "{newer}"'),
    _top("extra-index-url", 'extra-index-url = ["{other}"]', "add extra"),
    _top("find-links", 'find-links = ["{links}"]', "add linked"),
    _top("index-strategy", 'index-strategy = "unsafe-best-match"',
         "add --index {url} --default-index {newer} plain", default_index=False),
    _top("keyring-provider", 'keyring-provider = "subprocess"',
         "add --index {userless} guarded", environ={"PATH": "{keyring}:{PATH}"}),
    _top("allow-insecure-host", 'allow-insecure-host = ["{secure_host}"]',
         "add --index {secure} secured"),
    _top("offline", "offline = true", "add --no-cache plain"),
    _top("no-sources", "no-sources = true", "add plain",
         instead='sources = { plain = { index = "k" } }\nindex = [{ name = "k", url = '
         '"{newer}", explicit = true }]'),
    _top("dependency-metadata",
         'dependency-metadata = [{ name = "plain", version = "1.0", requires-dist = [] }]',
         "add plain"),
    _top("sources", 'sources = { plain = { index = "k" } }', "add plain",
         ),
    _top("no-binary", "no-binary = true", "add plain"),
    _top("no-binary-package", 'no-binary-package = ["plain"]', "add plain"),
    _top("cache-dir", 'cache-dir = "kept"', "add plain", environ={"UV_CACHE_DIR": ""}),
)  # fmt: skip

INDEX_KEYS = {
    "publish-url": "test_publishing_asks_the_publish_url",
    "cache-control": "test_cache_control_of_an_index",
    "hash-algorithm": "test_the_hash_algorithm_of_an_index",
}
"""Keys of ``[[index]]`` with a test of their own, beside those of `SHOWN`."""

KEYS = {
    **dict.fromkeys(("http-proxy", "https-proxy", "no-proxy"), "test_proxies_of_uvs_own_settings"),
    **dict.fromkeys(("publish-url", "check-url"), "test_publishing_asks_the_publish_url"),
    **dict.fromkeys(("native-tls", "system-certs"), "test_certificates_of_the_user"),
    "no-cache": "test_no_cache",
    "torch-backend": "test_the_torch_backend",
    "no-sources-package": "no-sources",
    "prerelease": UNRELATED,
    **dict.fromkeys(
        (
            *("required-version", "preview", "preview-features", "python-preference"),
            *("python-downloads", "concurrent-downloads", "concurrent-builds"),
            *("concurrent-installs", "resolution", "prerelease-package", "fork-strategy"),
            *("config-settings", "config-settings-package", "no-build-isolation"),
            *("no-build-isolation-package", "require-build-hashes", "extra-build-dependencies"),
            *("extra-build-variables", "link-mode", "compile-bytecode", "upgrade"),
            *("upgrade-package", "reinstall", "reinstall-package", "no-build"),
            *("no-build-package", "python-install-mirror", "pypy-install-mirror"),
            *("graalpy-install-mirror", "pyodide-install-mirror", "python-downloads-json-url"),
            *("trusted-publishing", "add-bounds", "audit", "pip", "cache-keys"),
            *("override-dependencies", "exclude-dependencies", "constraint-dependencies"),
            *("build-constraint-dependencies", "environments", "required-environments"),
            *("minimum-libc-version", "conflicts", "workspace", "managed", "package"),
            *("default-groups", "dependency-groups", "dev-dependencies", "build-backend"),
        ),
        UNRELATED,
    ),
    # Of [pip] alone.
    **dict.fromkeys(
        (
            *("python", "system", "break-system-packages", "target", "prefix", "only-binary"),
            *("strict", "extra", "all-extras", "no-extra", "no-deps", "group"),
            *("allow-empty-requirements", "output-file", "no-strip-extras", "no-strip-markers"),
            *("no-annotate", "no-header", "custom-compile-command", "generate-hashes"),
            *("python-version", "python-platform", "universal", "no-emit-package"),
            *("emit-index-url", "emit-find-links", "emit-build-options"),
            *("emit-marker-expression", "emit-index-annotation", "annotation-style"),
            *("require-hashes", "verify-hashes"),
        ),
        UNRELATED,
    ),
}
"""Every other key: the test that shows it, the key it is shown with, or `UNRELATED`."""
