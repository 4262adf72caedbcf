"""Building the variants of a matrix on this machine.

A source distribution is made once. Each variant is built from a tree of its own that is unpacked
from it: backends leave objects in the tree, and those of one variant must not end up in another.
What is done is written down beside the wheels, so that the next run goes on where this one ended.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import threading
import time
import zipfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO

from pep_variants.errors import InvalidWheelFilename, VariantError
from pep_variants.filename import parse_filename
from pep_variants.reader import read_metadata
from pep_variants.wheel import VARIANT_FILE

from ..atomic import replacing
from ..description import write_description
from ..rewriting import SourceWheel, open_source
from .backends import config_settings
from .combination import metadata_of
from .frontends import command
from .model import Matrix, Variant
from .repairing import repair_command, same_release

BUILT, PACKED, KEPT = "built", "packed", "kept"
"""Ways to a wheel: anew; with other metadata, from the one that was there; as it was."""

_CHUNK = 1024 * 1024
_SHOWN_LINES = 12


class BuildError(VariantError):
    """A build that failed.

    Attributes:
        tail: the last lines of its log.
    """

    def __init__(self, message: str, tail: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.tail = tuple(tail)


@dataclass(frozen=True)
class Plan:
    """How to build.

    Attributes:
        matrix: what.
        output: folder that gets the wheels.
        frontend: one of `frontends.FRONTENDS`.
        isolated: every build in an environment of its own.
        jobs: builds at a time.
        fresh: build again what is done already.
    """

    matrix: Matrix
    output: Path
    frontend: str
    isolated: bool = True
    jobs: int = 1
    fresh: bool = False

    @property
    def folder(self) -> Path:
        """Where logs, notes on what is done and trees are: beside the wheels, not among them."""
        return self.output.absolute().with_name(f"{self.output.absolute().name}-build")


@dataclass(frozen=True)
class Built:
    """A wheel that is done.

    Attributes:
        label: of which variant.
        wheel: its filename.
        sha256: of the file, hexadecimal.
        fingerprint: of everything that it was built from.
        metadata: digest of the variant metadata that was put into it.
        contents: digest of what will be installed of it, but for its metadata.
        seconds: that building took.
        how: how it came about in this run: `BUILT`, `PACKED` or `KEPT`.
    """

    label: str
    wheel: str
    sha256: str
    fingerprint: str
    metadata: str
    contents: str
    seconds: float = 0.0
    how: str = BUILT


@dataclass(frozen=True)
class Failed:
    """A variant that could not be built, and why."""

    label: str
    error: VariantError


def for_this_machine(
    variants: Sequence[Variant],
) -> tuple[tuple[Variant, ...], tuple[Variant, ...]]:
    """Return those of *variants* that this machine can build, and the others."""
    fits = [all(host.evaluate() for host in variant.hosts) for variant in variants]
    pairs = list(zip(variants, fits, strict=True))
    return tuple(v for v, fit in pairs if fit), tuple(v for v, fit in pairs if not fit)


@contextmanager
def alone(plan: Plan) -> Iterator[None]:
    """Keep other runs out of the folder, and remove what a killed one left.

    Raises:
        BuildError: there is another run.
    """
    from filelock import FileLock, Timeout

    plan.folder.mkdir(parents=True, exist_ok=True)
    plan.output.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(plan.folder / "lock", timeout=0):
            for left in plan.folder.glob("tree-*"):
                shutil.rmtree(left, ignore_errors=True)
            yield
    except Timeout:
        raise BuildError(
            f"{plan.output}: another build writes there: wait for it, or choose another folder"
        ) from None


def make_sdist(plan: Plan) -> Path:
    """Return the source distribution to build from, made anew unless the matrix names one.

    Raises:
        BuildError: it is not there, or making it failed.
    """
    source = plan.matrix.build_source
    if source.is_file():
        return source.resolve()
    if not source.is_dir():
        raise BuildError(f"{source}: there is nothing to build: name it with --source")
    target = plan.folder / "sdist"
    shutil.rmtree(target, ignore_errors=True)
    log = plan.folder / "sdist.log"
    line = command(plan.frontend, "sdist", source.resolve(), target, {}, isolated=plan.isolated)
    _Run(threading.Event()).run(line, log, os.environ, "the source distribution")
    found = sorted((*target.glob("*.tar.gz"), *target.glob("*.zip")))
    if len(found) != 1:
        raise BuildError(f"{target}: expected one source distribution, found {len(found)}")
    return found[0].resolve()


def build_all(
    plan: Plan, variants: Sequence[Variant], sdist: Path
) -> Generator[Variant | Built | Failed, None, None]:
    """Build *variants*; yield each one when it starts, and its end in the order of ends.

    One that fails stops no other. Whoever stops iterating stops the builds that run.
    """
    source = contents_digest(sdist)
    stop = threading.Event()
    pending = list(variants)
    running: dict[Future[Built | Failed], Variant] = {}
    with ThreadPoolExecutor(plan.jobs) as executor:
        try:
            while pending or running:
                while pending and len(running) < plan.jobs:
                    variant = pending.pop(0)
                    yield variant
                    running[executor.submit(_build, plan, variant, sdist, source, stop)] = variant
                # Not for ever: signals are only seen between waits on some systems.
                for future in wait(running, timeout=0.5, return_when=FIRST_COMPLETED).done:
                    del running[future]
                    yield future.result()
        finally:
            stop.set()


def contents_digest(sdist: Path) -> str:
    """Return a digest of what is in *sdist*, whenever and by whom it was packed."""
    return _fingerprint(sorted(_members(sdist)))


def strangers(output: Path, built: Sequence[Built], variants: Sequence[Variant]) -> list[str]:
    """Return the wheels in *output* of the release that was *built* which none of *variants* is."""
    releases = {(name.name, name.version) for name in (parse_filename(b.wheel) for b in built)}
    labels = {variant.label for variant in variants}
    found = []
    for path in sorted(output.glob("*.whl")):
        try:
            name = parse_filename(path.name)
        except InvalidWheelFilename:
            continue
        if name.label is not None and name.label not in labels:
            found += [path.name] if (name.name, name.version) in releases else []
    return found


def same_contents(built: Sequence[Built]) -> list[tuple[str, ...]]:
    """Return the groups of labels whose wheels install the same files."""
    groups: dict[str, list[str]] = {}
    for item in built:
        groups.setdefault(item.contents, []).append(item.label)
    return [tuple(labels) for labels in groups.values() if len(labels) > 1]


def _members(sdist: Path) -> Iterator[tuple[str, int, str]]:
    """Yield name, executable bits and digest of the contents of every member of *sdist*."""
    if sdist.suffix == ".zip":
        with zipfile.ZipFile(sdist) as archive:
            for info in archive.infolist():
                with archive.open(info) as stream:
                    yield info.filename, 0, _digest(stream)
        return
    with tarfile.open(sdist) as tar:
        for member in tar:
            contents = tar.extractfile(member) if member.isfile() else None
            digest = _digest(contents) if contents else member.linkname
            yield member.name, member.mode & 0o111, digest


def _build(
    plan: Plan, variant: Variant, sdist: Path, source: str, stop: threading.Event
) -> Built | Failed:
    try:
        return _build_or_reuse(plan, variant, sdist, source, stop)
    except VariantError as error:
        return Failed(variant.label, error)
    except OSError as error:
        place = f"{error.filename}: " if error.filename is not None else ""
        return Failed(variant.label, BuildError(f"{place}{error.strerror or error}"))


def _build_or_reuse(
    plan: Plan, variant: Variant, sdist: Path, source: str, stop: threading.Event
) -> Built:
    variant_json = write_description(metadata_of(plan.matrix, [variant]), None)
    environment = build_environment(variant, os.environ)
    settings = config_settings(plan.matrix.backend, variant)
    own = {name: environment[name] for name in _variables(variant)}
    # A backend that writes the metadata itself has to do it again when it changes.
    told = variant_json.decode() if plan.matrix.backend else ""
    fingerprint = _fingerprint(
        [source, told, own, settings, plan.frontend, plan.isolated,
         sys.version, sysconfig.get_platform(), platform.machine()]
    )  # fmt: skip
    # The build may have taken hours: what came of it is kept until it is repaired and packed.
    kept = plan.folder / f"built-{variant.label}-{fingerprint[:16]}"
    repair = plan.matrix.repair.get(sys.platform, ())
    if repair:
        fingerprint = _fingerprint([fingerprint, repair])
    metadata = hashlib.sha256(variant_json).hexdigest()
    note = plan.folder / f"{variant.label}.json"
    done = None if plan.fresh else _done(plan, note, fingerprint)
    if done is not None and done.metadata == metadata:
        return replace(done, how=KEPT)
    if done is not None:
        wheel = plan.output / done.wheel
        with replacing(wheel) as stream, open_source(wheel) as old:
            old.write(stream, variant_json)
        built = replace(done, sha256=_file_digest(wheel), metadata=metadata, how=PACKED)
        _write_note(note, built)
        return built

    start = time.monotonic()
    log = plan.folder / f"{variant.label}.log"
    with tempfile.TemporaryDirectory(
        prefix="tree-", dir=plan.folder, ignore_cleanup_errors=True
    ) as folder:
        if plan.fresh or not kept.is_dir():
            _forget_kept(plan, variant)
            tree, target = _unpack(sdist, Path(folder) / "source"), Path(folder) / "wheel"
            line = command(plan.frontend, "wheel", tree, target, settings, isolated=plan.isolated)
            _Run(stop).run(line, log, environment, variant.label)
            _only_wheel(target, variant.label, log)
            target.rename(kept)
        wheel = _only_wheel(kept, variant.label, log)
        if repair:
            wheel = _repaired(plan, variant, repair, wheel, Path(folder), environment, stop)
        wheel, contents = _pack(wheel, plan.output, variant, variant_json)
    seconds = round(time.monotonic() - start, 1)
    built = Built(
        variant.label, wheel.name, _file_digest(wheel), fingerprint, metadata, contents, seconds
    )
    _remove_former(plan, note, wheel)
    _write_note(note, built)
    _forget_kept(plan, variant)
    return built


def _repaired(
    plan: Plan,
    variant: Variant,
    repair: Sequence[str],
    wheel: Path,
    folder: Path,
    environment: Mapping[str, str],
    stop: threading.Event,
) -> Path:
    """Return the wheel, below *folder*, that the command *repair* makes of the built *wheel*.

    Raises:
        BuildError: it fails, makes none, several, or one of another release.
    """
    log = plan.folder / f"{variant.label}-repair.log"
    target = folder / "repaired"
    target.mkdir()
    what = f"{variant.label}: the repair"
    line = repair_command(repair, wheel, target)
    _Run(stop).run(line, log, environment, what, "correct build.repair")
    found = _only_wheel(target, what, log)
    if not same_release(wheel, found):
        raise BuildError(f"{what} made {found.name} of {wheel.name}: see {log}")
    return found


def _only_wheel(folder: Path, what: str, log: Path) -> Path:
    wheels = sorted(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise BuildError(f"{what}: expected one wheel, found {len(wheels)}: see {log}")
    return wheels[0]


def _forget_kept(plan: Plan, variant: Variant) -> None:
    for left in plan.folder.glob(f"built-{variant.label}-*"):
        shutil.rmtree(left, ignore_errors=True)


def _write_note(note: Path, built: Built) -> None:
    with replacing(note) as stream:
        stream.write(json.dumps(asdict(built), indent=2).encode())


def build_environment(variant: Variant, base: Mapping[str, str]) -> dict[str, str]:
    """Return *base* with what *variant* sets, and with its flags behind those that are there."""
    environment = {**base, **variant.settings.environment}
    for name, words in variant.settings.flags.items():
        environment[name] = " ".join([*filter(None, [base.get(name, "")]), *words])
    return environment


def _variables(variant: Variant) -> list[str]:
    return sorted({*variant.settings.environment, *variant.settings.flags})


def _fingerprint(parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _file_digest(path: Path) -> str:
    with path.open("rb") as stream:
        return _digest(stream)


def _digest(stream: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while chunk := stream.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def _done(plan: Plan, note: Path, fingerprint: str) -> Built | None:
    """Return what *note* says if it is still true, and about a wheel made from *fingerprint*."""
    built = _noted(plan, note)
    return built if built is not None and built.fingerprint == fingerprint else None


def _remove_former(plan: Plan, note: Path, wheel: Path) -> None:
    """Remove the wheel of *note* if it is of the same version as *wheel*, but has other tags."""
    former = _noted(plan, note)
    if former is not None and former.wheel != wheel.name:
        path = plan.output / Path(former.wheel).name
        if same_release(path, wheel):
            path.unlink()


def _noted(plan: Plan, note: Path) -> Built | None:
    """Return what *note* says if the wheel is there and is still that one."""
    try:
        built = Built(**json.loads(note.read_text(encoding="utf-8")))
        wheel = plan.output / Path(built.wheel).name
        unchanged = _file_digest(wheel) == built.sha256
    except (OSError, ValueError, TypeError):  # gone, or no note of ours
        return None
    return built if unchanged else None


def _unpack(sdist: Path, target: Path) -> Path:
    """Unpack *sdist* and return its only folder."""
    target.mkdir()
    if sdist.suffix == ".zip":
        with zipfile.ZipFile(sdist) as archive:
            archive.extractall(target)  # noqa: S202 - zipfile keeps names inside
    else:
        with tarfile.open(sdist) as tar:
            if hasattr(tarfile, "data_filter"):
                tar.extractall(target, filter="data")
            else:  # a Python without the fix of PEP 706
                tar.extractall(target)  # noqa: S202 - the user's own source distribution
    folders = [path for path in target.iterdir() if path.is_dir()]
    if len(folders) != 1:
        raise BuildError(f"{sdist}: is no source distribution: it has no single folder")
    return folders[0]


def _pack(wheel: Path, output: Path, variant: Variant, variant_json: bytes) -> tuple[Path, str]:
    """Put *wheel* into *output* as the variant wheel that it is to be.

    Returns:
        Its path, and the digest of its contents.

    Raises:
        BuildError: the backend made a variant wheel of its own accord, and another one.
    """
    label = parse_filename(wheel.name).label
    with open_source(wheel) as source:
        contents = _installed(source)
        target = output / (wheel.name if label else f"{wheel.stem}-{variant.label}.whl")
        if label is None:
            with replacing(target) as stream:
                source.write(stream, variant_json)
            return target, contents
        written = source.contents.read(VARIANT_FILE) or b"{}"
    own = read_metadata(written, wheel.name)
    wanted = read_metadata(variant_json, variant.label)
    if label != variant.label or own.properties_of(label) != wanted.properties_of(label):
        raise BuildError(
            f"{variant.label}: the backend made {wheel.name} with "
            f"{own.properties_of(label)!r}, the matrix wants label {variant.label!r} with "
            f"{wanted.properties_of(variant.label)!r}"
        )
    with wheel.open("rb") as stream_in, replacing(target) as stream:
        shutil.copyfileobj(stream_in, stream)
    return target, contents


def _installed(source: SourceWheel) -> str:
    rows = sorted(
        (row.path, row.digest)
        for row in source.rows
        if not row.path.startswith(f"{source.contents.dist_info}/")
    )
    return _fingerprint(rows)


class _Run:
    """One command at a time, which ends when somebody wants everything to stop."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def run(
        self,
        line: Sequence[str],
        log: Path,
        environment: Mapping[str, str],
        what: str,
        otherwise: str = "choose another --frontend",
    ) -> None:
        """Run *line* with its output in *log*; *otherwise* is said to do where it is not there.

        Raises:
            BuildError: it failed, cannot be started, or was stopped.
        """
        if self._stop.is_set():
            raise BuildError(f"{what}: stopped")
        with log.open("wb") as stream:
            stream.write(f"$ {' '.join(line)}\n".encode())
            stream.flush()
            try:
                process = subprocess.Popen(
                    line,
                    stdin=subprocess.DEVNULL,
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                    env=dict(environment),
                    # Compilers are grandchildren: the whole group has to end together.
                    start_new_session=os.name == "posix",
                )
            except FileNotFoundError:
                raise BuildError(
                    f"{what}: there is no {line[0]}: install it, or {otherwise}"
                ) from None
            try:
                while process.poll() is None and not self._stop.wait(0.02):
                    pass
            finally:
                if process.poll() is None:
                    _end(process)
        if process.returncode:
            if self._stop.is_set():
                raise BuildError(f"{what}: stopped")
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            raise BuildError(
                f"{what}: exit code {process.returncode}: see {log}", lines[-_SHOWN_LINES:]
            )


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGTERM)
        else:
            process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            if os.name == "posix":
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        process.wait()
