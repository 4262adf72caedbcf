"""Every error the engine raises. Catch `VariantError` for all of them.

Messages name the file or URL and the offending value, and say what to do about it. They never
contain credentials: sources are passed through `redacted` first. So is what commands log.
"""

from __future__ import annotations

import binascii
import errno
import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

__all__ = [
    "EXIT_CODE", "CatalogError", "InconsistentMetadata", "InvalidMarker", "InvalidProperty",
    "InvalidSdist", "InvalidWheel", "InvalidWheelFilename", "LockError", "MetadataError",
    "NoSuchVariant", "PlatformFileError", "PluginFailed", "PreferenceError", "ProviderError",
    "UnsupportedSchema", "VariantError", "cut", "fault_report", "file_problem", "in_words",
    "listed", "printable", "redacted", "shortened", "some", "without_userinfo",
]  # fmt: skip

# A password may itself hold an '@': the last one before the host's end counts, as in `urllib`.
_CREDENTIALS = re.compile(r"(?<=://)[^/?#\s]+@")
# Query and fragment of a URL; urllib3 writes "Max retries exceeded with url: /path?query".
_QUERY = re.compile(r"((?:://|url: /)[^\s?#\"<>]*)(\?[^\s#\"<>]*)?(#[^\s\"<>]*)?")
_HASH = re.compile(r"(?:sha(?:1|224|256|384|512)|md5|blake2b)=[0-9A-Fa-f]+")
_LOGIN = re.compile(r"\b(basic|bearer) +([\w+/=.~-]{6,})", re.IGNORECASE)
_TOKEN_LENGTH = 16
_PUNCTUATION = ".,:;)]}'"

FULL = (errno.ENOSPC, errno.EDQUOT)
"""Of errors of a disk without room for this user."""

EXIT_CODE = 70
"""Exit code of a command after an internal error: EX_SOFTWARE of ``sysexits.h``."""


MAX_LISTED = 4
"""Values that `listed` names; of more it gives the number."""


def redacted(source: str) -> str:
    """Return *source* with what may be secret in the URLs in it replaced by ``****``.

    That is the user information, the query (signatures and tokens of storage services are there),
    and fragments other than hashes; and logins as in ``Authorization``, which a server may say
    again. For messages, logs and output for people only: a URL that is
    data, in a lock file or a key, needs its query. See `without_userinfo`.

    >>> from pep_variants.errors import redacted
    >>> redacted("cannot read https://me:secret@host.example/simple/torch/?token=1.")
    'cannot read https://****@host.example/simple/torch/?****.'
    """
    source = _LOGIN.sub(_without_login, source)
    return _QUERY.sub(_without_query, _CREDENTIALS.sub("****@", source))


def without_userinfo(source: str) -> str:
    """Return *source* without the user information of the URLs in it.

    >>> from pep_variants.errors import without_userinfo
    >>> without_userinfo("https://me:secret@host.example/simple/?page=2")
    'https://host.example/simple/?page=2'
    """
    return _CREDENTIALS.sub("", source)


def _without_login(match: re.Match[str]) -> str:
    scheme, token = match.groups()
    is_login = len(token) >= _TOKEN_LENGTH
    if scheme.lower() == "basic":
        with suppress(ValueError):
            is_login = b":" in binascii.a2b_base64(f"{token.rstrip('=')}===")
    return f"{scheme} ****" if is_login else match[0]


def _without_query(match: re.Match[str]) -> str:
    place, query, fragment = match.groups()
    text = match[0]
    # The sentence goes on after the URL.
    end = text[len(text.rstrip(_PUNCTUATION)) :] if query or fragment else ""
    if query:
        place += "?****" if query.rstrip(_PUNCTUATION) != "?" else "?"
    if fragment:
        parts = fragment[1:].rstrip(_PUNCTUATION).split("&")
        place += "#" + "&".join(part if _HASH.fullmatch(part) else "****" for part in parts)
    return place + end


def shortened(value: object, limit: int = 80) -> str:
    """Return a `repr` of *value* that is fit for a message: one line, at most *limit* characters.

    Values come from untrusted files: huge ones must not flood a terminal.

    >>> from pep_variants.errors import shortened
    >>> shortened("cuda_version_lower_bound " * 1000, limit=30)
    "'cuda_version_lower_bound cud…"
    """
    try:
        # Slicing first keeps a value of many megabytes from being rendered whole.
        text = repr(value[:limit] if isinstance(value, str) else value)
    except (RecursionError, ValueError):  # deeply nested data, integers of thousands of digits
        text = f"<{type(value).__name__}>"
    return cut(text, limit)


def cut(text: str, limit: int) -> str:
    """Return *text* with at most *limit* characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def listed(values: Sequence[str], word: str = "or") -> str:
    """Return *values* as a list in words, a long one cut short.

    >>> from pep_variants.errors import listed
    >>> listed(["cu126", "cu128", "cu130"])
    'cu126, cu128 or cu130'
    >>> listed(["cu118", "cu126", "cu128", "cu130", "cu132"])
    'cu118, cu126, cu128, cu130, … (5 values)'
    """
    shown = list(values[:MAX_LISTED])
    if len(values) > MAX_LISTED:
        return f"{', '.join(shown)}, … ({len(values)} values)"
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} {word} {shown[-1]}"


def some(names: Sequence[str], shown: int = 5) -> str:
    """Return the first of *names*, and how many more there are.

    >>> from pep_variants.errors import some
    >>> some(["jax", "numpy", "torch"], shown=2)
    'jax, numpy and 1 more'
    """
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")


def in_words(value: object, limit: int = 200) -> str:
    """Return nested names as they are written in text: ``ns :: feature :: value``, with commas.

    Args:
        value: a string, a list of strings, mappings of them, or an object with a string form.
        limit: the most characters.

    >>> from pep_variants.errors import in_words
    >>> in_words({"nvidia": {"sm_arch": ["90_real", "100_real"]}})
    'nvidia :: sm_arch :: 90_real, nvidia :: sm_arch :: 100_real'
    """
    return cut(printable(", ".join(itertools.islice(_flat(value), limit))) or "nothing", limit)


def _flat(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from (f"{key} :: {item}" for item in _flat(inner))
    elif isinstance(value, (list, tuple)):
        yield from map(str, value)
    else:
        yield str(value)


def printable(text: str) -> str:
    """Return *text* with every character that is not printable replaced by ``?``.

    For paths, names and other text from files: control characters could make a terminal show
    something else than what is there.
    """
    return "".join(char if char.isprintable() else "?" for char in text)


def file_problem(error: OSError) -> str:
    """Return *error* in one line, with the place that it is about.

    A full disk often goes without one: what is printed, or a temporary file, did not fit.

    >>> from pep_variants.errors import file_problem
    >>> file_problem(FileNotFoundError(2, "No such file or directory", "torch.toml"))
    'torch.toml: No such file or directory'
    """
    place = error.filename
    if place is None and error.errno in FULL:
        place = f"standard output, or the temporary folder {os.environ.get('TMPDIR', '')}".rstrip()
    problem = redacted(str(error.strerror or error))
    return problem if place is None else f"{printable(redacted(str(place)))}: {problem}"


def fault_report(program: str, fault: BaseException) -> str:
    """Return the lines that *program* prints of *fault*: a traceback, and how to report it.

    What may be secret in URLs is redacted. The error may quote a page or a file: all but the
    ends of lines is printable.
    """
    import traceback

    text = redacted("".join(traceback.format_exception(fault)))
    lines = "\n".join(map(printable, text.split("\n")))
    described = printable(" ".join(redacted(str(fault)).split()))
    return (
        f"{lines}{program}: internal error: {type(fault).__name__}: {described}; this is a bug: "
        f"report it with the lines above, the command, and what '{program} --version' prints"
    )


class VariantError(Exception):
    """Base of all errors of the engine.

    Attributes:
        may_pass: it is a failure that may pass, such as of a server: nothing is said of the data.
    """

    may_pass = False


class InvalidLabel(VariantError):
    """A variant label that does not match ``[0-9a-z_.]+`` (PEP 825, "Variant label")."""


class InvalidProperty(VariantError):
    """A property, feature or namespace that is not well-formed (PEP 825, "Variant properties")."""


class InvalidWheelFilename(VariantError):
    """A filename that is not a valid wheel filename, with or without a label."""


class InvalidMarker(VariantError):
    """A dependency specifier or its marker that cannot be parsed."""


class InvalidWheel(VariantError):
    """A wheel file whose contents cannot be used: no archive, no or several dist-info, bad data.

    Attributes:
        problem: what is wrong, without the source.
    """

    def __init__(self, problem: str, source: object = "") -> None:
        self.problem = problem
        super().__init__(f"{source}: {problem}" if source != "" else problem)


class InvalidSdist(VariantError):
    """A source distribution that cannot be read: no archive, damaged, beyond the limits."""


class MetadataError(VariantError):
    """Variant metadata that breaks the format.

    Attributes:
        source: file or URL the data came from.
        path: place inside the data, e.g. ``variants.cu128.nvidia``; empty for the whole file.
        problem: what is wrong, with the offending value.
    """

    def __init__(self, source: str, path: str, problem: str, *, may_pass: bool = False) -> None:
        self.source = redacted(source)
        self.path = path
        self.problem = problem
        self.may_pass = may_pass
        super().__init__(": ".join(part for part in (self.source, path, problem) if part))


class UnsupportedSchema(MetadataError):
    """Metadata of a major format version that this engine does not know."""


class InconsistentMetadata(VariantError):
    """Metadata of two sources of one version that contradict each other (or a wheel and its index).

    Attributes:
        sources: the two files or URLs.
        path: place inside the data.
        values: what the first and what the second source says.
        difference: both in words.
    """

    def __init__(self, sources: tuple[str, str], path: str, values: tuple[object, object]) -> None:
        self.sources = (redacted(sources[0]), redacted(sources[1]))
        self.path = path
        self.values = values
        self.difference = (
            f"differs: {self.sources[0]} says {in_words(values[0])}, "
            f"{self.sources[1]} says {in_words(values[1])}"
        )
        super().__init__(f"{path} {self.difference}")


class LockError(VariantError):
    """A lock file that cannot be written, read, or installed from; names file and package."""


class CatalogError(VariantError):
    """An entry of the catalogue that cannot be used.

    Attributes:
        source: file or URL of the entry.
        path: place inside it, e.g. ``variant 2.local``; empty for the whole file.
        problem: what is wrong, with the offending value.
    """

    def __init__(self, source: str, path: str, problem: str) -> None:
        self.source = redacted(source)
        self.path = path
        self.problem = redacted(problem)
        parts = (self.source, path, self.problem)
        super().__init__(printable(": ".join(filter(None, parts))))


class PlatformFileError(VariantError):
    """A platform file that cannot be read, or a machine that there is not."""


class PreferenceError(VariantError):
    """A malformed option, environment variable or ``variants.toml`` entry."""


class ProviderError(VariantError):
    """A provider that failed or answered nonsense. Its namespace counts as unsupported."""


class PluginFailed(ProviderError):
    """A provider plugin that the user allowed and that gave no usable answer.

    It ends the command, unless the user asked to skip such plugins: what an allowed plugin would
    have chosen must not silently become another wheel.

    Attributes:
        plugin: its package and, once that is known, its version and endpoint.
        cause: what is wrong, a predicate to *plugin*.
        output: the end of what it printed, on one line; empty if nothing.
        problem: all of this in one sentence; the message has besides how to go on without it.
    """

    def __init__(self, plugin: str, cause: str, output: str = "") -> None:
        self.plugin = plugin
        self.cause = cause
        self.output = output
        printed = f"; it printed: {output}" if output else ""
        self.problem = f"the provider plugin {plugin} {cause}{printed}"
        super().__init__(
            f"{self.problem} (to go on without its variants: --variant-on-plugin-error skip)"
        )


class NoSuchVariant(VariantError):
    """The label that the user asked for does not exist, or does not fit this platform."""
