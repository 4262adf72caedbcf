"""The keys of uv's configuration that concern indexes, and how each is shown to count."""

from __future__ import annotations

from dataclasses import dataclass

from .uv_forms import EMPTY, Form


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
