"""What is to be resolved: requirements and constraints, from the command line and from files.

Files are pip's requirements files, as far as they say what is wanted and from where; options that
are about building or installing are refused.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name, parse_sdist_filename

from pep_variants import labels as wheel_labels
from pep_variants import limits, wheel_files
from pep_variants import preferences as user_preferences
from pep_variants.errors import InvalidWheelFilename, redacted, shortened

from .errors import RequirementError

_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")
# White space before these is stripped later: a pattern for runs of it takes long for long ones.
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_OPTIONS = re.compile(r"\s(?=--[a-z])")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)
_VCS = re.compile(r"(git|hg|svn|bzr)\+", re.IGNORECASE)
_EXTRAS = re.compile(r"\[[^\[\]]*\]$")
_ARCHIVES = (".whl", ".tar.gz", ".zip")
_HASHES = ("sha256", "sha384", "sha512")
_NOT_BUILT = (
    "source code is not built here: run 'pip wheel --no-deps REQUIREMENT -w DIR' and name the "
    "wheel in DIR"
)


@dataclass(frozen=True)
class Wanted:
    """One requirement or constraint of the user's.

    Attributes:
        requirement: parsed.
        hashes: allowed hexadecimal digests by algorithm; empty for any.
    """

    requirement: Requirement
    hashes: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def project(self) -> str:
        """The normalized name."""
        return canonicalize_name(self.requirement.name)

    def __str__(self) -> str:
        return redacted(str(self.requirement))


@dataclass(frozen=True)
class RequirementSet:
    """All requirements and what was said along with them.

    Attributes:
        requirements: what has to be in the result, in order.
        constraints: what has to hold for whatever is in it.
        index_url: replaces the index, None if nothing was said.
        extra_index_urls, find_links, no_index: add to the settings.
        pre: take pre-releases as readily as final ones.
        labels: values of ``--variant`` in comments.
    """

    requirements: tuple[Wanted, ...] = ()
    constraints: tuple[Wanted, ...] = ()
    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    pre: bool = False
    labels: tuple[str, ...] = ()

    def __add__(self, other: RequirementSet) -> RequirementSet:
        return RequirementSet(
            self.requirements + other.requirements,
            self.constraints + other.constraints,
            other.index_url or self.index_url,
            self.extra_index_urls + other.extra_index_urls,
            self.find_links + other.find_links,
            self.no_index or other.no_index,
            self.pre or other.pre,
            self.labels + other.labels,
        )


def parse_requirement(text: str, origin: str = "", folder: Path | None = None) -> Wanted:
    """Return the requirement in *text*: a specifier, or path or URL of a distribution.

    Args:
        text: without options.
        origin: for messages.
        folder: what paths are relative to.

    Raises:
        RequirementError: it is not valid.

    >>> from resolvelib_variants.resolution import parse_requirement
    >>> wanted = parse_requirement("torch[extra]>=2.8; sys_platform == 'linux'")
    >>> wanted.project, str(wanted.requirement.specifier)
    ('torch', '>=2.8')
    """
    bare, separator, marker = text.partition(" ;") if ";" in text else (text, "", "")
    bare, extras = _split_extras(bare.strip())
    url = ""
    if _SCHEME.match(bare):
        _check_url(bare, origin)
        if bare.endswith(_ARCHIVES) or _VCS.match(bare):
            url = bare
    elif bare.endswith(_ARCHIVES) and "@" not in bare:
        url = ((folder or Path()) / bare).absolute().as_uri()
    elif _is_path(bare):
        raise RequirementError(f"{_place(origin)}{shortened(bare, 200)}: {_NOT_BUILT}")
    if url:
        text = f"{distribution_name(url, origin)[0]}{extras} @ {url}{separator}{marker}"
    try:
        wanted = Wanted(Requirement(text))
    except InvalidRequirement as error:
        reason = str(error).splitlines()[0]
        raise RequirementError(
            f"{_place(origin)}{shortened(redacted(text), 200)} is not a valid requirement: {reason}"
        ) from None
    found = wanted.requirement.url
    if found is not None and not url:
        distribution_name(found, origin)
    return wanted


def distribution_name(url: str, origin: str = "") -> tuple[str, str]:
    """Return name and version of the wheel or source distribution at *url*.

    Raises:
        RequirementError: its filename is that of neither.
    """
    _check_url(url, origin)
    if _VCS.match(url):
        raise RequirementError(f"{_place(origin)}{redacted(url)}: {_NOT_BUILT}")
    filename = wheel_labels.filename_of_url(url)
    try:
        if filename.endswith(".whl"):
            wheel = wheel_files.parse_filename(filename)
            return wheel.name, str(wheel.version)
        name, version = parse_sdist_filename(filename)
    except (InvalidWheelFilename, ValueError) as error:
        raise RequirementError(f"{_place(origin)}{redacted(url)}: {error}") from None
    return name, str(version)


def _check_url(url: str, origin: str) -> None:
    """Raise RequirementError if *url* cannot be split into its parts."""
    try:
        urlsplit(url)
    except ValueError as error:
        raise RequirementError(
            f"{_place(origin)}{shortened(redacted(url), 200)} is not a valid URL: {error}"
        ) from None


def _split_extras(text: str) -> tuple[str, str]:
    """Return path or URL, and the extras in brackets after it."""
    found = _EXTRAS.search(text)
    return (text[: found.start()], found[0]) if found and found.start() else (text, "")


def _is_path(text: str) -> bool:
    """Return whether *text* cannot but be the path of a directory."""
    if text.startswith(".") or Path(text).is_absolute():
        return True
    return ("/" in text or os.sep in text) and "@" not in text and "://" not in text


def read_file(
    path: Path, environ: Mapping[str, str], *, constraints: bool = False
) -> RequirementSet:
    """Read a requirements file, or a file of constraints.

    Args:
        path: of the file; what it includes is relative to it.
        environ: values for ``${VARIABLE}``.
        constraints: take what it lists for constraints.

    Raises:
        RequirementError: it cannot be read or understood; the message names file and line.
    """
    return _read(path, environ, constraints, ())


def _read(
    path: Path, environ: Mapping[str, str], constraints: bool, above: tuple[Path, ...]
) -> RequirementSet:
    path = Path(os.path.abspath(path))  # noqa: PTH100 - links stay as they are
    if "\0" in str(path):
        raise RequirementError(f"{shortened(str(path), 200)}: not a valid path")
    if path in above:
        raise RequirementError(f"{path}: includes itself")
    try:
        with path.open("rb") as stream:
            data = stream.read(limits.REQUIREMENTS_BYTES + 1)
        if len(data) > limits.REQUIREMENTS_BYTES:
            raise RequirementError(f"{path}: larger than {limits.REQUIREMENTS_BYTES} bytes")
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise RequirementError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise RequirementError(f"{path}: is not UTF-8: {error}") from None
    requirement_set = RequirementSet(labels=user_preferences.listed_labels(text))
    listed: list[Wanted] = []  # apart, or adding each would copy all before it
    for count, (number, line) in enumerate(_lines(text), 1):
        origin = f"{path}:{number}"
        if count > limits.REQUIREMENT_LINES:
            raise RequirementError(f"{origin}: more than {limits.REQUIREMENT_LINES} requirements")
        if line.startswith("-") and len(line) > limits.URL_CHARACTERS:
            raise RequirementError(
                f"{origin}: an option of {len(line)} characters, at most {limits.URL_CHARACTERS} "
                "are read"
            )
        line = _VARIABLE.sub(lambda match: environ.get(match[1], match[0]), line)
        try:
            words = shlex.split(line) if line.startswith("-") else []
        except ValueError as error:
            raise RequirementError(f"{origin}: {error}") from None
        if not words:
            wanted = _listed(line, origin, path.parent)
            listed.append(wanted)
            continue
        option, equals, value = words[0].partition("=")
        if not option.startswith("--"):  # -rFILE is -r FILE
            option, value = words[0][:2], words[0][2:].lstrip("=")
            equals = value
        values = [value, *words[1:]] if equals else words[1:]
        if option in ("-e", "--editable"):
            raise RequirementError(f"{origin}: {shortened(redacted(line), 200)}: {_NOT_BUILT}")
        if option in ("-r", "--requirement", "-c", "--constraint") and len(values) == 1:
            if "://" in values[0]:
                raise RequirementError(
                    f"{origin}: a file at a URL is not supported: "
                    f"download {redacted(values[0])} first"
                )
            inner = constraints or option in ("-c", "--constraint")
            requirement_set += _of(listed, constraints)  # what is included comes in its place
            listed.clear()
            requirement_set += _read(path.parent / values[0], environ, inner, (*above, path))
        else:
            requirement_set += _option(option, values, origin, path.parent)
    return requirement_set + _of(listed, constraints)


def _of(listed: Sequence[Wanted], constraints: bool) -> RequirementSet:
    return RequirementSet(
        () if constraints else tuple(listed), tuple(listed) if constraints else ()
    )


def _option(option: str, values: list[str], origin: str, folder: Path) -> RequirementSet:
    flags = {"--no-index": RequirementSet(no_index=True), "--pre": RequirementSet(pre=True)}
    if option in flags and not values:
        return flags[option]
    if len(values) == 1:
        value = values[0]
        if option in ("-i", "--index-url"):
            return RequirementSet(index_url=value)
        if option == "--extra-index-url":
            return RequirementSet(extra_index_urls=(value,))
        if option in ("-f", "--find-links"):
            place = value if _SCHEME.match(value) else str(folder / value)
            return RequirementSet(find_links=(place,))
    raise RequirementError(f"{origin}: {option} is not supported here")


def _lines(text: str) -> Iterable[tuple[int, str]]:
    """Yield number and contents of every logical line that has any."""
    pending = ""
    start = 0
    for number, raw in enumerate(text.splitlines(), 1):
        start = start or number
        line = raw
        if not pending or not line.lstrip().startswith("#"):
            if line.rstrip().endswith("\\"):
                pending += line.rstrip()[:-1] + " "
                continue
            pending += line
        line, pending = _COMMENT.sub("", pending).strip(), ""
        if line:
            yield start, line
        start = 0
    line = _COMMENT.sub("", pending).strip()
    if line:
        yield start, line


def _listed(line: str, origin: str, folder: Path) -> Wanted:
    text, *options = map(str.rstrip, _OPTIONS.split(line))
    if len(text) > limits.REQUIREMENT_LENGTH:
        raise RequirementError(
            f"{origin}: {shortened(text)} has {len(text)} characters, "
            f"at most {limits.REQUIREMENT_LENGTH} are read"
        )
    hashes: dict[str, set[str]] = {}
    for option in options:
        name, _, value = option.replace(" ", "=", 1).partition("=")
        algorithm, _, digest = value.strip().partition(":")
        if name != "--hash" or algorithm not in _HASHES or not digest.isalnum():
            raise RequirementError(
                f"{origin}: {shortened(option)} is not of the form --hash=sha256:DIGEST "
                f"({', '.join(_HASHES)})"
            )
        hashes.setdefault(algorithm, set()).add(digest.lower())
    wanted = parse_requirement(text.strip(), origin, folder)
    return replace(wanted, hashes={name: frozenset(found) for name, found in hashes.items()})


def _place(origin: str) -> str:
    return f"{origin}: " if origin else ""
