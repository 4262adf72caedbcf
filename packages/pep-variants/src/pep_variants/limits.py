"""Limits on untrusted input: one table, with the reason for each number.

Every reader of bytes that come from an index, a wheel, a plugin or a checkout checks these numbers
before it spends work on the input, so that no document, page or answer costs more than 300 MB of
memory or two seconds of CPU. `integration-tests/benchmarks/bench_limits.py` measures the worst
inputs within them. Imports nothing: pip loads it at every start that meets variants.

"Real" below is the largest one found on PyPI, on the public variant indexes or in a build matrix.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ADVICE_SECONDS", "ANSWER_SECONDS", "APPROVED_WHEEL_BYTES", "CACHED_ANSWER_BYTES",
    "CATALOG_BYTES", "CATALOG_ENTRY_BYTES", "CATALOG_PROJECTS", "CATALOG_VARIANTS",
    "CORE_METADATA_BYTES", "CORE_METADATA_FIELDS", "CORE_REQUIREMENTS",
    "CORE_REQUIREMENTS_CHARACTERS", "DOCUMENT_BYTES", "DOCUMENT_VALUES", "FEATURES",
    "FILENAME_CHARACTERS", "FILENAME_TAGS", "HEAD_BYTES", "INSPECTED_WHEELS",
    "INSPECTED_WHEEL_BYTES", "LABELS", "LABEL_LENGTH", "LEAST_BYTES_PER_SECOND", "LIBRARIES_BYTES",
    "LIBRARY_READS", "LIBRARY_SECTIONS", "LOCK_BUILDS", "LOCK_BYTES", "LOCK_MARKER_CHARACTERS",
    "LOCK_TAGS", "LOCK_TEXT_BYTES", "MARKER_LENGTH", "MARKER_NESTING", "MATRIX_BYTES",
    "MATRIX_CHECKS", "MATRIX_VALUES", "MIB", "NAMESPACES", "NAME_LENGTH", "PAGE_BYTES",
    "PAGE_FILES", "PAGE_PYTHON_CHARACTERS", "PAGE_TAGS", "PAGE_VALUES", "PARTIAL_BYTES",
    "PARTIAL_PARTS", "PIECE_BYTES", "PLACE_RETRIES", "PLUGIN_ANSWER_BYTES", "PLUGIN_ENVIRONMENTS",
    "PLUGIN_FEATURES", "PLUGIN_FILE_BYTES", "PLUGIN_MEMORY_BYTES", "PLUGIN_NOISE_BYTES",
    "PLUGIN_PROCESSES", "PLUGIN_SECONDS", "PLUGIN_THREADS", "PLUGIN_VALUES", "PROJECTS",
    "PROJECTS_BYTES", "PROVIDER_REQUIREMENTS", "PROVIDER_REQUIREMENT_CHARACTERS", "PYPROJECT_BYTES",
    "READ_VERSIONS", "RECORD_BYTES", "REQUIREMENTS_BYTES", "REQUIREMENT_LENGTH",
    "REQUIREMENT_LINES", "SCHEMA_LENGTH", "SDIST_MEMBERS", "SDIST_UNPACKED", "SETTINGS_BYTES",
    "SETTINGS_VALUES", "SLOW_SECONDS", "SMALL_PIECES", "TOML_DEPTH", "TOML_KEY_PARTS",
    "TOML_WORD_CHARACTERS", "TOML_WORK", "URL_CHARACTERS", "VALUES", "VALUE_LENGTH",
    "WHEEL_DIRECTORY_BYTES", "WHEEL_ENTRIES", "json_values", "size_in_words",
]  # fmt: skip

MIB: Final = 2**20

# --- Variant metadata (``*-variants.json``, ``variant.json``, ``[variant]`` in pyproject.toml)

DOCUMENT_BYTES: Final = 8 * MIB
"""Bytes of one metadata document. Real: 5 KiB; a matrix of 10,000 variants has 3 MiB."""

DOCUMENT_VALUES: Final = 1_000_000
"""JSON values in one document; each takes up to 200 bytes of memory once it is parsed."""

LABELS: Final = 50_000
"""Variants in one document. Real: 57; benchmarks have 10,000."""

NAMESPACES: Final = 100
"""Namespaces in one document. Real: 4."""

FEATURES: Final = 1_000
"""Features of one namespace of one variant or provider. Real: about 60, CPU extensions."""

VALUES: Final = 10_000
"""Values of one feature. Real: 40, GPU architectures."""

SCHEMA_LENGTH: Final = 2_000
"""Characters of ``$schema``, in which a version is looked for. Real: 60."""

LABEL_LENGTH: Final = 128
"""Characters of a variant label. PEP 825 recommends at most 16; a filename has at most 255."""

NAME_LENGTH: Final = 128
"""Characters of the name of a namespace or feature. Real: 24."""

VALUE_LENGTH: Final = 64
"""Characters of a feature value. Real: 12."""

PROVIDER_REQUIREMENTS: Final = 200
"""Requirements of plugins, all providers of a document together. Real: 4."""

PROVIDER_REQUIREMENT_CHARACTERS: Final = 20_000
"""Characters of these and of ``enable-if`` together: `packaging` takes up to 0.6 µs for each, five
hundred times as long as `json`. Real: 500."""

REQUIREMENT_LENGTH: Final = 2_000
"""Characters of one requirement, with its marker and URL. Real: 300."""

MARKER_LENGTH: Final = 2_000
"""Characters of the marker in ``enable-if``. Real: 40."""

MARKER_NESTING: Final = 16
"""Parentheses inside one another in a marker; the parser of pip 24.0 gives up soon after."""

# --- Pages of an index

PAGE_BYTES: Final = 24 * MIB
"""One page or list of projects, decompressed. The largest project pages on PyPI have less than
10 MiB."""

PAGE_VALUES: Final = 1_000_000
"""JSON values, or tags, attributes and character references (each counts as four) of HTML, in one
page: 60,000 files with 15 each."""

PAGE_FILES: Final = 75_000
"""Files on one page; each takes up to 20 µs and 800 bytes of memory."""

PAGE_TAGS: Final = 300_000
"""Platform compatibility tags that the filenames of one page stand for. Each takes 4 µs and 300
bytes of memory. Real: 30,000."""

PAGE_PYTHON_CHARACTERS: Final = 512 * 1024
"""Characters of the different ``Requires-Python`` values of one page: `packaging` takes 0.8 µs for
each. Real: 2,000."""

PROJECTS_BYTES: Final = 48 * MIB
"""The list of the projects of an index, decompressed. Real: 30 MiB, PyPI's."""

PROJECTS: Final = 1_000_000
"""Projects in it. Real: 750,000."""

URL_CHARACTERS: Final = 8_192
"""One link of a page; nginx and Apache take no longer request lines by default."""

FILENAME_CHARACTERS: Final = 255
"""A filename: file systems take no longer ones. Also bounds the digits of a version or build tag,
of which `int` refuses more than 4,300."""

FILENAME_TAGS: Final = 1_000
"""Platform compatibility tags that a compressed set in a filename stands for. Real: 48."""

# --- Answers of servers

HEAD_BYTES: Final = MIB // 4
"""Everything before the body of an answer, interim responses included, and a first read of it.
Headers have at most 100 KiB, by the HTTP library's own limit."""

SLOW_SECONDS: Final = 20
LEAST_BYTES_PER_SECOND: Final = 1024
"""Servers that send less for that long, after the timeout for their first byte, are given up."""

ANSWER_SECONDS: Final = 300
"""One page or document, with all retries: 24 MiB at 80 KiB/s."""

PLACE_RETRIES: Final = 2
"""How often a page of a catalogue's place is asked for again: less than one of the user's indexes,
since there is a line about what it has and a way to go on without it. A place that failed after
that is asked once for its next page."""

SMALL_PIECES: Final = 65_536
PIECE_BYTES: Final = 1024
"""An answer may come in so many pieces (chunks), and one more for each so many bytes: reading one
takes 20 µs."""

CACHED_ANSWER_BYTES: Final = PAGE_BYTES
"""Larger answers are passed on without being kept: keeping one takes three times its memory."""

ADVICE_SECONDS: Final = 3
"""How long all projects together may take that are installed already, while pip looks whether a
better variant of them exists. Nothing is installed by that look, so it must not cost much."""

# --- Wheels

WHEEL_DIRECTORY_BYTES: Final = 16 * MIB
"""Central directory of a zip archive. Real: 4 MiB, 30,000 files."""

WHEEL_ENTRIES: Final = 100_000
"""Files in a wheel or zip archive, each about 900 bytes of memory. Real: 30,000."""

RECORD_BYTES: Final = 16 * MIB
"""RECORD of a wheel. Real: 4 MiB."""

CORE_METADATA_BYTES: Final = 8 * MIB
"""One METADATA or PKG-INFO file. Real: 1 MiB, a long description."""

CORE_METADATA_FIELDS: Final = 50_000
"""Fields of one METADATA, WHEEL or PKG-INFO. Real: 3,000."""

CORE_REQUIREMENTS: Final = 5_000
"""``Requires-Dist`` fields of one METADATA, where pip and uv are served those with variant markers
alone. Real: 800, those of all extras."""

CORE_REQUIREMENTS_CHARACTERS: Final = 512 * 1024
"""Characters of these fields together. Real: 60 KiB."""

PARTIAL_PARTS: Final = 32
"""Requests for parts of a wheel on a server. Real: 4."""

PARTIAL_BYTES: Final = 32 * MIB
"""Bytes of these parts together: a directory, RECORD, and what lies between."""

READ_VERSIONS: Final = 500
"""Versions of a project whose variant metadata is read in one resolution, a request or more each.
Real: 60, until one fits."""

INSPECTED_WHEELS: Final = 64
"""Wheels of one version, one for each label, that are looked into when its index has no metadata
file. Real: 57 labels, of a version whose index has the file."""

INSPECTED_WHEEL_BYTES: Final = 64 * MIB
"""One of these wheels, from a server that gives no parts of files: larger ones are not downloaded
for their metadata."""

# --- Libraries

LIBRARY_SECTIONS: Final = 10_000
"""Sections of a library that are looked at. Real: 60."""

LIBRARY_READS: Final = 1_000_000
"""Places of a library that are looked at, each of up to 4 KiB. Real: 130,000."""

LIBRARIES_BYTES: Final = 32 * 1024 * MIB
"""Libraries of one wheel, unpacked twice and kept nowhere. Real: 4 GiB."""

# --- Source distributions and trees

SDIST_UNPACKED: Final = 512 * MIB
"""Bytes that are unpacked of a source distribution while looking for PKG-INFO. Real: 300 MiB."""

SDIST_MEMBERS: Final = 50_000
"""Files in a source distribution. Real: 30,000."""

PYPROJECT_BYTES: Final = MIB
"""``pyproject.toml`` of a source tree. Real: 60 KiB."""

# --- Lock and requirements files

LOCK_BYTES: Final = 4 * MIB
"""A lock file; TOML is read at 3 MiB per second. Real: 1 MiB, 500 packages."""

LOCK_MARKER_CHARACTERS: Final = MIB
"""Characters of the markers and ``requires-python`` in a lock file: `packaging` takes up to a
microsecond for each. Real: 150 KiB, 500 packages."""

LOCK_TAGS: Final = 300_000
"""Platform compatibility tags that the filenames in a lock file stand for, see `PAGE_TAGS`. Real:
20,000."""

LOCK_BUILDS: Final = 50_000
"""Builds in the dependency groups of a lock file, as groups times projects. Real: 12 times 8."""

LOCK_TEXT_BYTES: Final = 16 * MIB
"""A ``uv.lock``, which is searched and not parsed. Real: 5 MiB, 1,500 packages."""

REQUIREMENTS_BYTES: Final = 2 * MIB
"""A requirements file. Real: 300 KiB, with hashes."""

REQUIREMENT_LINES: Final = 10_000
"""Requirements and options in one requirements file. Real: 700."""

# --- Plugins

PLUGIN_ANSWER_BYTES: Final = MIB
"""Bytes of a plugin's answer. Real: 4 KiB."""

PLUGIN_FEATURES: Final = 1_000
"""Features in a plugin's answer. Real: about 60."""

PLUGIN_VALUES: Final = 10_000
"""Values in a plugin's answer, all features together. Real: about 100."""

PLUGIN_ENVIRONMENTS: Final = 20
"""Environments that one command makes. Metadata chooses the versions of an allowed plugin, so that
every release of a project could want another environment; real projects want one or two."""

PLUGIN_SECONDS: Final = 10
"""How long a plugin may take; also the processor time of each of its processes, in whole seconds.
The slowest real ones start a driver, which takes two."""

PLUGIN_NOISE_BYTES: Final = 16 * MIB
"""What a plugin may print."""

PLUGIN_MEMORY_BYTES: Final = 4096 * MIB
"""Resident memory of a plugin's processes together, and private data of each of them.

A plugin that imports a machine learning framework and starts a GPU runtime needs 2 GiB. The limit
of a process is RLIMIT_DATA, not RLIMIT_AS: GPU runtimes reserve address space by the terabyte
(unified memory maps the memory of all devices) without using it, which RLIMIT_AS counts and
RLIMIT_DATA does not."""

PLUGIN_PROCESSES: Final = 64
"""Processes of a plugin at a time. Real ones start a tool or two."""

PLUGIN_THREADS: Final = 1024
"""Threads and processes of a plugin (RLIMIT_NPROC in its own user namespace, where they are counted
apart from those of the user). Numeric libraries start one thread per processor."""

PLUGIN_FILE_BYTES: Final = 64 * MIB
"""One file that a plugin writes."""

# --- Settings of the user

SETTINGS_BYTES: Final = MIB // 4
"""One ``variants.toml`` or platform file. Real: 20 KiB."""

MATRIX_BYTES: Final = MIB // 4
"""One matrix file. Real: 11 KiB."""

MATRIX_VALUES: Final = 1_000
"""Values of all axes of a matrix. Real: 21."""

MATRIX_CHECKS: Final = 1_000_000
"""Conditions and overrides that are tried on combinations of these. Real: 500."""

APPROVED_WHEEL_BYTES: Final = 64 * MIB
"""One plugin wheel that an approved ``variants.toml`` names by path. Real: 20 KiB."""

SETTINGS_VALUES: Final = 1_000
"""Values of one option, variable or list in ``variants.toml``, all of which are compared with what
metadata has. Real: 20."""

# --- The catalogue of existing builds

CATALOG_ENTRY_BYTES: Final = MIB // 2
"""The entry of one project. Real: 20 KiB."""

CATALOG_BYTES: Final = 8 * MIB
"""Entries of several projects in one file."""

CATALOG_VARIANTS: Final = 500
"""``[[variant]]`` tables of one entry. Real: 30."""

CATALOG_PROJECTS: Final = 10_000
"""Projects in one catalogue. Real: 40."""

# --- TOML of any kind

TOML_DEPTH: Final = 64
TOML_KEY_PARTS: Final = 16
"""Arrays and inline tables in each other, and parts of a dotted key. Real: 6. The parsers recurse
for the former and take quadratic time for the latter."""

TOML_WORD_CHARACTERS: Final = 10_000
"""One key or number without quotes. The parsers' patterns take 130 bytes for each character."""

TOML_WORK: Final = 700_000
"""Words, strings, escapes, comments, lines and punctuation of one document, each dot weighted by
its place in the key: at most 2 µs and 120 bytes each. Real: 75,000, a lock file of 1 MiB."""


def size_in_words(count: int) -> str:
    """Return a number of bytes for a message: ``8 MiB``, or ``300 bytes`` below one MiB.

    >>> from pep_variants.limits import PAGE_BYTES, size_in_words
    >>> size_in_words(PAGE_BYTES), size_in_words(300)
    ('24 MiB', '300 bytes')
    """
    return f"{count // MIB} MiB" if count >= MIB else f"{count} bytes"


_NOT_BEFORE_VALUES: Final = bytes(set(range(256)) - set(b",[{:"))


def json_values(data: bytes) -> int:
    """Return an upper bound of the number of values in the JSON text *data*, without parsing it.

    Every value but the first follows one of these characters. Those inside strings count as well,
    which errs on the safe side.

    >>> from pep_variants.limits import json_values
    >>> json_values(b'{"variants": {"cu128": {}, "cu130": {}}}')
    9
    """
    return 1 + len(data.translate(None, _NOT_BEFORE_VALUES))  # a third of the time of four counts
