"""Every error the engine raises. Catch `VariantError` for all of them.

Messages name the file or URL and the offending value, and say what to do about it. They never
contain credentials: sources are passed through `redacted` first.
"""

from __future__ import annotations

import re

# A password may itself hold an '@': the last one before the host's end counts, as in `urllib`.
_CREDENTIALS = re.compile(r"(?<=://)[^/?#\s]+@")


def redacted(source: str) -> str:
    """Return *source* with the user information of every URL in it replaced by ``****``."""
    return _CREDENTIALS.sub("****@", source)


def shortened(value: object, limit: int = 80) -> str:
    """Return a `repr` of *value* that is fit for a message: one line, at most *limit* characters.

    Values come from files of strangers: huge ones must not flood a terminal.
    """
    try:
        # Slicing first keeps a value of many megabytes from being rendered whole.
        text = repr(value[:limit] if isinstance(value, str) else value)
    except (RecursionError, ValueError):  # deeply nested data, integers of thousands of digits
        text = f"<{type(value).__name__}>"
    return text if len(text) <= limit else text[: limit - 1] + "…"


class VariantError(Exception):
    """Base of all errors of the engine."""


class InvalidLabel(VariantError):
    """A variant label that does not match ``[0-9a-z_.]+`` (PEP 825, "Variant label")."""


class InvalidProperty(VariantError):
    """A property, feature or namespace that is not well-formed (PEP 825, "Variant properties")."""


class InvalidWheelFilename(VariantError):
    """A filename that is no wheel filename, with or without a label."""


class InvalidMarker(VariantError):
    """A dependency specifier or its marker that cannot be parsed."""


class InvalidWheel(VariantError):
    """A wheel file whose contents cannot be used: no archive, no or several dist-info, bad data."""


class MetadataError(VariantError):
    """Variant metadata that breaks the format.

    Attributes:
        source: file or URL the data came from.
        path: place inside the data, e.g. ``variants.cu128.nvidia``; empty for the whole file.
        problem: what is wrong, with the offending value.
    """

    def __init__(self, source: str, path: str, problem: str) -> None:
        self.source = redacted(source)
        self.path = path
        self.problem = problem
        super().__init__(": ".join(part for part in (self.source, path, problem) if part))


class UnsupportedSchema(MetadataError):
    """Metadata of a major format version that this engine does not know."""


class InconsistentMetadata(VariantError):
    """Metadata of two sources of one version that contradict each other (or a wheel and its index).

    Attributes:
        sources: the two files or URLs.
        path: place inside the data.
        values: what the first and what the second source says.
    """

    def __init__(self, sources: tuple[str, str], path: str, values: tuple[object, object]) -> None:
        self.sources = (redacted(sources[0]), redacted(sources[1]))
        self.path = path
        self.values = values
        super().__init__(
            f"{path} differs: {self.sources[0]} says {shortened(values[0], 200)}, "
            f"{self.sources[1]} says {shortened(values[1], 200)}"
        )


class PlatformFileError(VariantError):
    """A platform file that cannot be read."""


class PreferenceError(VariantError):
    """An option, environment variable or ``variants.toml`` entry that makes no sense."""


class ProviderError(VariantError):
    """A provider that failed or answered nonsense. Its namespace counts as unsupported."""


class NoSuchVariant(VariantError):
    """The label that the user asked for does not exist, or does not fit this platform."""
