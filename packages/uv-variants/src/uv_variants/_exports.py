"""Exports: what uv writes for others, with the files of the indexes; and lock files that it reads.

In requirements a version has the hashes of every label. In pylock.toml (PEP 751) it has the wheels
of every label at their own URLs, and the table ``variants-json``. All else stays as uv wrote it.

A publisher may have the files of a project under another name: cupy's are those of cupy-cuda13x.
uv-variants installs them as the project's. Other installers get them under the publisher's name.
Where the lock has files of both names, for different platforms, each name has its own marker.

Of a pylock.toml with dependency groups for kinds of machines, uv is told the one for this machine.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import tomli_w
from packaging.markers import default_environment
from packaging.pylock import is_valid_pylock_path
from packaging.utils import canonicalize_name

from pep_variants import limits, lock_entries, markers, safe_files
from pep_variants.errors import LockError, some, without_userinfo
from pep_variants.machines import Detector, Platform
from pep_variants.markers import Term
from variants_index import target as target_machines
from variants_proxy import service as proxy_service
from variants_proxy import urls as proxy_urls
from variants_proxy.service import IndexRelease, IndexWheel

from ._command_line import EXPORTING
from ._environments import listed
from ._errors import ExportFailed, ProxyFailed
from ._platform_key import target_of
from ._uv_lock import Lock
from ._uv_process import run_uv

if TYPE_CHECKING:
    from ._choices import Choices
    from ._command_line import Invocation
    from ._context import Context
    from ._indexes import UserIndex
    from ._named_projects import CommandPlace


_MOST_LABELS = 6
_STRONG = ("sha256", "sha384", "sha512")

Shown = tuple["str | None", str]
"""Label and plain filename of a wheel."""


def shown_as(wheel: IndexWheel) -> Shown:
    """Return label and plain filename of *wheel*, as locks have them."""
    return wheel.label, wheel.plain


def strong_hashes(wheel: IndexWheel) -> dict[str, str]:
    """Return the hexadecimal digests of *wheel* that others may rely on, by algorithm."""
    return {kind: wheel.hashes[kind] for kind in _STRONG if kind in wheel.hashes}


def digests_of(wheel: IndexWheel) -> set[str]:
    """Return the hashes of *wheel*, as requirements have them."""
    return {f"{kind}:{value}" for kind, value in strong_hashes(wheel).items()}


def with_dependencies_of(
    locked: Collection[Shown], release: IndexRelease
) -> tuple[list[IndexWheel], list[str]]:
    """Return the wheels that depend on what *locked* ones do, and the labels of the others.

    A wheel is compared with the locked wheel for the same tags, which is what a machine that takes
    it would have taken. Dependencies that could not be read count as other ones.
    """
    fixed = [wheel for wheel in release.wheels if shown_as(wheel) in locked]
    by_plain: dict[str, set[str | None]] = {}
    for wheel in fixed:
        by_plain.setdefault(wheel.plain, set()).add(wheel.requires)
    every = set().union(*by_plain.values())
    kept = [
        wheel
        for wheel in release.wheels
        if shown_as(wheel) in locked
        or (wheel.requires is not None and wheel.requires in by_plain.get(wheel.plain, every))
    ]
    kept = [wheel for wheel in kept if not wheel.origin]
    known = {wheel.label for wheel in (*kept, *fixed)}
    labels = dict.fromkeys(wheel.label or "" for wheel in release.wheels)
    return kept, [label for label in labels if label and label not in known]


@dataclass(frozen=True)
class ExportPart:
    """The files of a package that have one name.

    Attributes:
        name: normalized, that of the publisher; empty for the package's own files.
        version: as published.
        where: environments that they are for.
        wheels: as the publisher has them; none of the package's own files.
    """

    name: str
    version: str
    where: Term | bool
    wheels: Sequence[IndexWheel] = ()

    def marker(self, given: str) -> str:
        """Return the marker in the export, where the package has the marker *given*."""
        both = markers.all_of((Term(given, loose=" or " in given) if given else True, self.where))
        return both.text if isinstance(both, Term) else ""


def parts_of(
    release: IndexRelease, version: str, shown: Sequence[Shown], *, has_others: bool = False
) -> list[ExportPart]:
    """Return the parts of a package, its own files last; none if they all are its own.

    Args:
        release: its version.
        version: as it is in the export.
        shown: the wheels that the export has.
        has_others: whether it has files besides, such as a source distribution.
    """
    known = {(wheel.label, wheel.plain): wheel for wheel in release.wheels}
    wheels = [known.get(pair) for pair in shown]
    origins = [wheel.origin if wheel is not None else "" for wheel in wheels]
    names = list(dict.fromkeys(filter(None, origins)))
    has_own = has_others or "" in origins
    where: Mapping[str, Term | bool] = {}
    if names and (has_own or len(names) > 1):
        where = proxy_service.group_markers([plain for _, plain in shown], origins, "") or {}
    found = []
    for name in names:
        own = [wheel for wheel in wheels if wheel is not None and wheel.origin == name]
        published = str(own[0].published).split("-", 2)[1].replace("_", "-")
        found.append(ExportPart(name, published, where.get(name, True), own))
    if names and has_own and where.get("") is not False:
        found.append(ExportPart("", version, where.get("", True)))
    return found


@dataclass(frozen=True)
class ExportedFiles:
    """The releases of one export, each asked for once.

    Attributes:
        choices: of the proxy.
        indexes: of the command, by their names in the proxy.
        warn: prints a line.
        has_catalog: whether there may be builds of a catalogue.
        is_universal: whether a command that has no lock resolves for all platforms.
    """

    choices: Choices
    indexes: Mapping[str, UserIndex]
    warn: Callable[[str], None]
    has_catalog: bool = False
    is_universal: bool = False
    _known: dict[tuple[object, ...], IndexRelease] = field(default_factory=dict)

    def prepare(self, names: Iterable[str]) -> None:
        """Ask for the choices for projects (normalized names) at once, not one by one."""
        if self.has_catalog:
            self.choices.ask(names)

    def parts(self, name: str, version: str, lock: Lock | None) -> list[ExportPart]:
        """Return under which names plain installers get a version; nothing for its own alone.

        Args:
            name: normalized name.
            version: as it is in the export.
            lock: that is exported, None without one.

        Raises:
            ExportFailed: the index cannot be asked.
        """
        if not self.has_catalog:
            return []
        index, shown, has_others = "", list[Shown](), self.is_universal
        if lock is not None:
            index = _index_of(name, lock)
            shown, has_others = lock.files(name, version) if index else ([], False)
        else:
            self.choices.ask([name])
            choice = next(map(self.choices.of_installed, listed([(name, version, None)])), None)
            if choice is not None and choice.origins:
                rows = (row for row in choice.verdicts if row.verdict in ("chosen", "locked"))
                taken = next((row.label for row in rows), "")
                files = choice.labels.items()
                shown = [(label, plain) for plain, label in files
                         if self.is_universal or label == taken]  # fmt: skip
        if not shown:
            return []
        release = self._release(name, version, index)
        found = parts_of(release, version, shown, has_others=has_others)
        if names := " or ".join(part.name for part in found if part.name):
            self.warn(f"{name} {version} is published as {names}, which is exported in its place")
        return found

    def locked(
        self, name: str, version: str, index: str, wheels: Sequence[Shown]
    ) -> tuple[IndexRelease, list[IndexWheel]]:
        """Return the release of a package with variants, and its wheels that are exported.

        Args:
            name, version: of the package.
            index: URL of its index.
            wheels: those that are locked.

        Raises:
            ExportFailed: the index has no such files any more, or cannot be asked.
        """
        tags = {"-".join(plain.removesuffix(".whl").split("-")[-3:-1]) for _, plain in wheels}
        found = self._release(name, version, index, tuple(sorted(tags)))
        if not found.wheels:
            raise self._gone(name, version)
        kept, labels = with_dependencies_of(wheels, found)
        if labels:
            self.warn(
                f"{name} {version}: without {some(labels, _MOST_LABELS)}, which have other "
                "dependencies than those that are exported; export on such a machine, or see "
                "variants resolve"
            )
        return found, kept

    def hashes(self, name: str, version: str, lock: Lock | None) -> set[str]:
        """Return the hashes of all labels of a version, empty for one without variants.

        Args:
            name: normalized name.
            version: as it is in the export.
            lock: that is exported, None without one.

        Raises:
            ExportFailed: the index cannot be asked about variants of a lock.
        """
        index = _index_of(name, lock)
        if lock is not None and not index:
            return set()
        found = self._release(name, version, index, served=True)
        if lock is not None and not found.wheels:
            raise self._gone(name, version)
        if lock is None and all(wheel.label is None for wheel in found.wheels):
            return set()
        # Where hashes are given, nothing is renamed.
        wheels = [wheel for wheel in found.wheels if not wheel.origin]
        if any((wheel.marked or not wheel.requires) and not wheel.served for wheel in wheels):
            self.warn(
                f"{name} {version}: there are hashes for pip, but not of all wheels as uv-variants "
                "installs them on another kind of machine: export there as well"
            )
        if not all(map(strong_hashes, wheels)):
            self.warn(f"{name} {version}: the index has no hash of some of its wheels")
        served = {f"sha256:{wheel.served}" for wheel in wheels if wheel.served is not None}
        shown = self.choices.session.hashed(name, version, self._index(index))
        known = (each.hashes.get("sha256") for each in shown)
        served.update(f"sha256:{digest}" for digest in known if digest)
        return served.union(*map(digests_of, wheels))

    def _release(
        self,
        name: str,
        version: str,
        url: str,
        tags: tuple[str, ...] = (),
        *,
        served: bool = False,
    ) -> IndexRelease:
        key = name, version, url, tags, served
        if key not in self._known:
            index = self._index(url)
            try:
                release = self.choices.session.release_files(
                    name, version, index=index, tags=tags, served=served
                )
            except ProxyFailed as error:
                raise ExportFailed(f"{error}; nothing was written") from None
            self._known[key] = release or IndexRelease()
        return self._known[key]

    def _index(self, url: str) -> str:
        """Return the name in the proxy of the index at *url*, empty for an unknown one."""
        known = self.indexes.items()
        return next(
            (name for name, at in known if proxy_urls.bare_url(at.url) == proxy_urls.bare_url(url)),
            "",
        )

    def _gone(self, name: str, version: str) -> ExportFailed:
        which = "" if self.has_catalog else ", or name the catalogue that the lock was made with"
        return ExportFailed(
            f"{name} {version}: the index has no such files any more, or cannot be asked: nothing "
            f"was written; lock again with uv-variants lock{which}"
        )


def _index_of(name: str, lock: Lock | None) -> str:
    """Return the index that the variants of a project are locked from, empty for none."""
    wheels = lock.wheels if lock is not None else ()
    return next((wheel.index_url for wheel in wheels if wheel.project == name), "")


_PINNED = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?P<extras>\[[^\]]*\]|)"
    r"==(?P<version>[^\s;#\\]+)\s*(?:;\s*(?P<marker>[^\\#]*?))?(?:\s+(?P<comment>#.*?))?(?: \\)?"
)
_HASH = re.compile(r"    --hash=(?P<hash>[a-z0-9]+:[0-9a-f]+)(?: \\)?")
_PACKAGE = re.compile(r"(?m)^\[\[packages\]\]$")


class Pinned(NamedTuple):
    """A requirement of a file.

    Attributes:
        name: normalized name.
        version: as it is in the file.
    """

    name: str
    version: str


def pinned_requirements(text: str) -> list[Pinned]:
    """Return the requirements with a version in *text*, each once."""
    found = (_PINNED.fullmatch(line) for line in text.splitlines())
    return list(dict.fromkeys(_pinned(match) for match in found if match))


def with_hashes(
    text: str,
    parts: Callable[[Pinned], Sequence[ExportPart]],
    hashes: Callable[[Pinned], set[str]] | None,
) -> str:
    """Return requirements with the names that publishers gave files, and the hashes of all labels.

    Args:
        text: of a requirements file that uv wrote.
        parts: returns the parts of a requirement, see `ExportedFiles.parts`.
        hashes: returns further hashes (``sha256:…``) of its own files, None for no hashes at all.
    """
    blocks: list[list[str]] = []
    for line in text.splitlines(keepends=True):
        if blocks and line.startswith("    "):  # hashes and comments of a requirement
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return "".join(line for block in blocks for line in _requirement(block, parts, hashes))


def _requirement(
    block: Sequence[str],
    parts: Callable[[Pinned], Sequence[ExportPart]],
    hashes: Callable[[Pinned], set[str]] | None,
) -> Iterator[str]:
    """Yield the lines of a requirement, *block*, for every part of it."""
    end = block[0][len(block[0].rstrip("\r\n")) :]
    match = _PINNED.fullmatch(block[0].rstrip("\r\n"))
    pinned = _pinned(match) if match is not None else None
    found = parts(pinned) if pinned is not None else ()
    own = any(not part.name for part in found) or not found
    more = hashes(pinned) if hashes is not None and pinned is not None and own else set()
    if match is None or pinned is None or not (found or more):
        yield from block
        return
    read = [_HASH.fullmatch(line.rstrip("\r\n")) for line in block[1:]]
    given = {each["hash"] for each in read if each is not None}
    others = [line for line, each in zip(block[1:], read, strict=True) if each is None]
    for part in found or (ExportPart("", pinned.version, True),):
        name, version = (part.name, part.version) if part.name else (match["name"], pinned.version)
        listed = given | more
        if part.name:
            digests = set[str]().union(*map(digests_of, part.wheels))
            listed = digests if hashes is not None else set()
        marker = part.marker(match["marker"] or "")
        line = f"{name}{match['extras']}=={version}" + (f" ; {marker}" if marker else "")
        comment = match["comment"] or ""
        if not listed:
            yield f"{line}  {comment}{end}" if comment else f"{line}{end}"
        else:
            yield " \\".join((line, *(f"{end}    --hash={each}" for each in sorted(listed)))) + end
            yield from [f"    {comment}{end}"] if comment else ()
        yield from others


def _pinned(match: re.Match[str]) -> Pinned:
    return Pinned(canonicalize_name(match["name"]), match["version"])


class LockedVariants(NamedTuple):
    """A package of a lock file with wheels that the proxy serves.

    Attributes:
        name, version: as in the file.
        source: URL of its index, without the last slash.
        wheels: label and plain filename of every wheel at a ``.variant`` URL.
    """

    name: str
    version: str
    source: str
    wheels: Sequence[Shown]


def is_pylock(text: str) -> bool:
    """Return whether *text* is a ``pylock.toml`` of uv."""
    return re.search(r"(?m)^lock-version = ", text) is not None


def with_real_files(
    text: str,
    release: Callable[[LockedVariants], tuple[IndexRelease, Sequence[IndexWheel]]],
    parts: Callable[[LockedVariants], Sequence[ExportPart]],
) -> str:
    """Return a ``pylock.toml`` with the files of the index in place of those that uv was shown.

    Args:
        text: of a file that uv wrote.
        release: returns what the index has, see `ExportedFiles.locked`.
        parts: returns the parts of a package, see `ExportedFiles.parts`; each becomes a package.

    Raises:
        LockError: the text is not what uv writes.
    """
    try:
        packages = safe_files.read_toml(text).get("packages", [])
    except ValueError as error:
        raise LockError(f"uv's pylock.toml: {error}") from None
    starts = [match.start() for match in _PACKAGE.finditer(text)]
    if len(starts) != len(packages):
        raise LockError("uv's pylock.toml: its packages are not written as tables")
    written = text[: starts[0]] if starts else text
    for package, start, end in zip(packages, starts, [*starts[1:], len(text)], strict=True):
        block, locked = text[start:end], _locked(package)
        if locked is not None:
            tables = list(_tables(package, locked, release, parts(locked)))
            gap = block[len(block.rstrip("\n")) :]
            block = tomli_w.dumps({"packages": tables}).rstrip("\n") + gap
        written += block
    return written


def _locked(package: dict[str, Any]) -> LockedVariants | None:
    found = {
        url: proxy_urls.wheel_at(url)
        for wheel in package.get("wheels", ())
        if (url := wheel.get("url"))
    }
    wheels = {url: wheel for url, wheel in found.items() if wheel is not None}
    if not wheels:
        return None
    page = next(iter(wheels)).partition(f"/{proxy_urls.FOLDER}/")[0]
    source, version = page.rpartition("/")[0], package.get("version", "")
    return LockedVariants(package["name"], version, source, tuple(wheels.values()))


def _tables(
    package: dict[str, Any],
    locked: LockedVariants,
    release: Callable[[LockedVariants], tuple[IndexRelease, Sequence[IndexWheel]]],
    parts: Sequence[ExportPart],
) -> Iterator[dict[str, Any]]:
    """Yield the tables of *package*: one, or that of every part of it."""
    for part in parts:
        if part.name:
            names = {"name": part.name, "version": part.version}
            found = {**package, **names, "wheels": list(map(_table, part.wheels))}
            found.pop("sdist", None)
            yield _with_marker(found, part)
    own = next((part for part in parts if not part.name), None)
    if parts and own is None:
        return
    known, wheels = release(locked)
    if own is not None:  # no others than those that are locked
        wheels = [wheel for wheel in wheels if shown_as(wheel) in locked.wheels]
    # Those at their own URL are as uv wrote them. Several labels of the catalogue may be one file.
    kept = [
        wheel for wheel in package["wheels"] if proxy_urls.wheel_at(wheel.get("url", "")) is None
    ]
    plain = {lock_entries.filename_of(wheel) for wheel in kept}
    entries = {wheel.get("url", ""): wheel for wheel in kept}
    for wheel in wheels:
        if wheel.label is not None or wheel.plain not in plain:
            entries.setdefault(without_userinfo(wheel.url), _table(wheel))
    if not entries and "sdist" not in package:
        raise LockError(f"{locked.name} {locked.version}: the index has no wheels of it any more")
    labels = {wheel.label for wheel in wheels if wheel.label and wheel.published is None}
    table = {key: value for key, value in package.items() if key != "wheels"}
    table |= {"wheels": list(entries.values())} if entries else {}
    table |= {lock_entries.KEY: lock_entries.write_table(known.documents, labels)} if labels else {}
    yield table if own is None else _with_marker(table, own)


def _with_marker(table: dict[str, Any], part: ExportPart) -> dict[str, Any]:
    marker = part.marker(table.get("marker", ""))
    return {**table, "marker": marker} if marker else table


def _table(wheel: IndexWheel) -> dict[str, Any]:
    """Return the table of a wheel."""
    table: dict[str, Any] = {"url": without_userinfo(wheel.url)}
    try:
        uploaded = datetime.fromisoformat((wheel.upload_time or "").replace("Z", "+00:00"))
    except ValueError:
        uploaded = None
    if uploaded is not None and uploaded.tzinfo is not None:
        table["upload-time"] = uploaded
    if wheel.size is not None:
        table["size"] = wheel.size
    return {**table, "hashes": strong_hashes(wheel)}


@dataclass(frozen=True)
class ExportCommand:
    """A command that writes an export.

    Attributes:
        is_compile: ``pip compile``, which resolves; ``export`` reads a lock.
        path: file that it writes, None for standard output alone.
        lock: path of the lock file, None without one.
        hashes: whether the user wants hashes, as far as the command line says.
    """

    is_compile: bool
    path: Path | None
    lock: Path | None
    hashes: bool

    @classmethod
    def of(
        cls, invocation: Invocation, place: CommandPlace, lock: Path | None
    ) -> ExportCommand | None:
        """Return the export that *invocation* writes, None if it writes none."""
        if invocation.command not in EXPORTING or invocation.has("dry-run"):
            return None
        is_compile = invocation.command == ("pip", "compile")
        output = invocation.last("output-file")
        path = place.cwd / output if output else None
        return cls(is_compile, path, lock, not is_compile and not invocation.has("no-hashes"))

    def run(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        files: ExportedFiles,
        check: Callable[[], None],
    ) -> int:
        """Run uv, and complete what it writes; return its exit code.

        If that fails, the file has the contents that it had before, and nothing is printed.

        Args:
            command: uv's command line.
            environ: environment variables.
            files: what the indexes have; asked after uv has ended.
            check: raises if what was resolved is not to be written.

        Raises:
            SourcesMissing: *check* raised it.
            ExportFailed, ProxyFailed, VariantError: what belongs there cannot be found out.
            OSError: the file cannot be written.
        """
        with restored(self.path) as write:
            code, printed, written = run_export(command, environ, self.path)
            if code == 0:
                if self.is_compile:
                    check()
                known = {data: self._completed(data, files) for data in {printed, written or b""}}
                printed = known[printed]
                if written is not None:
                    write(known[written])
        print_bytes(printed)
        return code

    def _completed(self, data: bytes, files: ExportedFiles) -> bytes:
        """Return an export of uv, *data*, with the files of the indexes."""
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise LockError("what uv wrote is not UTF-8") from None
        lock = None if self.is_compile else Lock.read(self.lock)

        @cache
        def parts(each: Pinned | LockedVariants) -> list[ExportPart]:
            return files.parts(each.name, each.version, lock)

        @cache
        def hashes(each: Pinned) -> set[str]:
            return files.hashes(each.name, each.version, lock)

        if is_pylock(text):
            text = with_real_files(text, lambda each: files.locked(*each), parts)
        elif not text.startswith("{"):
            names = {pinned.name for pinned in pinned_requirements(text)}
            files.prepare(names if lock is None else names.intersection(lock.projects))
            is_hashed = self.hashes or "--hash=" in text
            text = with_hashes(text, parts, hashes if is_hashed else None)
        before, found, _ = text.partition(f"/{proxy_urls.FOLDER}/")
        if found:
            raise ExportFailed(
                f"{before.rpartition('/')[2]} is locked with variants, whose files uv cannot list "
                "in this format: nothing was written; export --format pylock.toml"
            )
        return text.encode()


def run_export(
    command: Sequence[str], environ: Mapping[str, str], path: Path | None
) -> tuple[int, bytes, bytes | None]:
    """Run uv; return its exit code, what it printed, and what there is at *path*."""
    with tempfile.TemporaryFile() as output:
        code = run_uv(command, environ, stdout=output)
        output.seek(0)
        printed = output.read()
    return code, printed, _contents(path)


@contextmanager
def restored(path: Path | None) -> Iterator[Callable[[bytes], None]]:
    """Yield what writes the file at *path*, which has its contents from before without that."""
    kept = [_contents(path)]
    try:
        yield kept.append
    except BaseException:
        del kept[1:]
        raise
    finally:
        if path is not None and kept[-1] is not None:
            _replace(path, kept[-1])
        elif path is not None and path.is_file():
            path.unlink()


def _contents(path: Path | None) -> bytes | None:
    return path.read_bytes() if path is not None and path.is_file() else None


def print_bytes(data: bytes) -> None:
    """Print what uv would have printed."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _replace(path: Path, data: bytes) -> None:
    """Write *data* to the file at *path*, or the one that it is a link to, all or nothing."""
    target = Path(os.path.realpath(path))
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666
    if not target.exists() or target.read_bytes() != data:
        with safe_files.replacing(target, mode=mode) as stream:
            stream.write(data)


def group_options(
    context: Context, platform: Platform | None, tell: Callable[[str], None]
) -> list[str]:
    """Return the options that name the dependency groups for a machine.

    Args:
        context: the command.
        platform: what the machine supports, None without variants.
        tell: prints which group and why, and what uv does not take.

    Raises:
        LockError: no group of a lock file is for the machine.
    """
    version = context.environment_python
    system = target_of(context.invocation.last("python-platform") or "")
    here = {name: str(value) for name, value in default_environment().items()}
    environment = target_machines.environment_of(system) if system else here
    if version:
        python = ".".join(version.split(".")[:2])
        environment |= {"python_version": python, "python_full_version": version}
    named = [text.rpartition(":")[2] for text in context.invocation.values("group")]
    detector = Detector(environment=environment, platform=platform or Platform())
    added = []
    for text, tree in _locks_given(context):
        if lock_entries.lists_variants(tree):
            first = next(item for item in tree["packages"] if any(lock_entries.labels_of(item)))
            tell(
                f"{text}: uv takes no variants from it: it installs {first.get('name')} without, "
                "or fails; sync from uv.lock, export requirements instead, or install the file "
                "with pip and pep-variants-shim"
            )
        choice = lock_entries.choose_group(
            tree, text, environment, detector.platform, context.preferences, named
        )
        if choice is not None:
            tell(f"{text}: {choice}")
            added += [] if named else [f"--group={choice.name}"]
    return added


def _locks_given(context: Context) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the lock files of a command that can be read, with what is in them."""
    invocation = context.invocation
    if invocation.command not in (("pip", "install"), ("pip", "sync")):
        return
    given = invocation.values("requirements")
    for text in [*given, *(invocation.operands if invocation.command == ("pip", "sync") else ())]:
        path = context.place.cwd / text
        try:
            if is_valid_pylock_path(Path(text)):
                yield text, safe_files.read_toml(safe_files.read_text(path, limits.LOCK_TEXT_BYTES))
        except (OSError, ValueError, RecursionError):
            continue  # for uv to report
