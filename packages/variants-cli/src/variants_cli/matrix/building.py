"""Building the variants of a matrix on this machine, from one source distribution.

Each variant is built in a source tree of its own: backends leave objects in the tree, and those of
one variant must not end up in another. Results are kept beside the wheels, so that the next run
continues where this one ended.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO

from pep_variants.choose.explanation import why_not
from pep_variants.choose.markers import VariantContext, reduce_requirement
from pep_variants.choose.preferences import Preferences
from pep_variants.choose.ranking import rank
from pep_variants.errors import VariantError
from pep_variants.files import replacing
from pep_variants.formats.reader import read_metadata
from pep_variants.model.filename import parse_filename
from pep_variants.model.label import NULL_LABEL, split_label
from pep_variants.settings.loader import load_preferences
from pep_variants.wheelfile.core_metadata import METADATA_FILE, requirements_of
from pep_variants.wheelfile.metadata_edits import Edits
from pep_variants.wheelfile.rewriting import open_source
from pep_variants.wheelfile.wheel import VARIANT_FILE

from ..description import write_description
from ..detection import detector_for
from .combination import metadata_of
from .flags import additions
from .frontends import Runner, command, find_interpreter, make_environment
from .model import BuildError, Matrix, Test, Variant
from .source import members, read_pyproject, unpack
from .targets import is_built_for


@dataclass(frozen=True)
class Plan:
    """Options of a build.

    Attributes:
        matrix: the matrix.
        output: folder for the wheels.
        isolated: build in isolated environments.
        jobs: number of parallel builds.
        fresh: rebuild wheels that are up to date.
        against: wheels of other projects that variants are built against, by name of the variant.
        subfolder: folder below `folder` for what belongs to this project alone; empty for none.
    """

    matrix: Matrix
    output: Path
    isolated: bool = True
    jobs: int = 1
    fresh: bool = False
    against: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    subfolder: str = ""

    @property
    def folder(self) -> Path:
        """Folder for logs, results and source trees, beside the one for wheels."""
        output = self.output.absolute()
        return output.with_name(f"{output.name}-build") / self.subfolder

    @property
    def unchecked(self) -> Path:
        """Folder for wheels that were not tested yet, or failed."""
        return self.folder / "unchecked"

    def path_of(self, wheel: str) -> Path:
        """Return the path of the wheel with this name, which may be unchecked."""
        path = self.unchecked / wheel
        return path if path.exists() else self.output / wheel


@dataclass(frozen=True)
class Built:
    """A finished wheel.

    Attributes:
        name: of the variant, see `Variant.name`.
        label: of the variant.
        wheel: its filename.
        sha256: of the file, hexadecimal.
        inputs: digest of everything that it was built from.
        contents: digest of the files that it installs, without dist-info.
        seconds: duration of the build.
        tested: digest of the tests that it passed, empty for none.
        kept: whether this run found it up to date, and built nothing.
        untested: why this machine cannot test it, empty if it was tested or has no tests.
    """

    name: str
    label: str
    wheel: str
    sha256: str
    inputs: str
    contents: str
    seconds: float = 0.0
    tested: str = ""
    kept: bool = False
    untested: str = ""


@dataclass(frozen=True)
class Failed:
    """A variant whose build failed: its name, and the error."""

    name: str
    error: VariantError


def for_this_machine(
    variants: Sequence[Variant],
) -> tuple[tuple[Variant, ...], tuple[Variant, ...]]:
    """Return the *variants* that this machine can build, and the others."""

    def fits(variant: Variant) -> bool:
        target = variant.platform
        return all(host.evaluate() for host in variant.hosts) and (
            target is None or target.can_build(sys.platform, platform.machine())
        )

    here = tuple(filter(fits, variants))
    return here, tuple(variant for variant in variants if variant not in here)


def parallel_builds(jobs: int, memory: int) -> int:
    """Return how many of *jobs* builds that take *memory* bytes run at a time, at least one."""
    available = _machine_memory() if memory else 0
    return max(1, min(jobs, available // memory)) if available else jobs


def _machine_memory() -> int:
    """Return the memory of this machine, or of its container, in bytes; 0 if it does not tell."""
    try:
        limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, ValueError, OSError):  # Windows, for example
        return 0
    with suppress(OSError, ValueError):  # missing, or "max"
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(limits)


@contextmanager
def locked(plan: Plan) -> Iterator[None]:
    """Lock the folder of *plan* against other runs, and remove source trees of killed ones.

    Raises:
        BuildError: another run has the lock.
    """
    from filelock import FileLock, Timeout

    for folder in (plan.folder, plan.output):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(plan.folder / "lock", timeout=0):
            for left in plan.folder.glob("tree-*"):
                shutil.rmtree(left, ignore_errors=True)
            yield
    except Timeout:
        raise BuildError(
            f"{plan.output}: another build is running: wait for it, or choose another folder"
        ) from None


def build_all(
    plan: Plan, variants: Sequence[Variant], every: Sequence[Variant], sdist: Path
) -> Generator[Built | Failed, None, None]:
    """Build and test *variants*; yield each result as soon as it is there.

    A failure does not stop other builds. Closing the iterator stops those that are running.

    Args:
        plan: options.
        variants: what to build.
        every: all variants of the matrix.
        sdist: the source distribution.
    """
    stop = threading.Event()
    untested = _reasons_not_here(plan.matrix, every) if plan.matrix.build.tests else {}
    build = _Build(plan, sdist, untested, Runner(stop))
    with ThreadPoolExecutor(parallel_builds(plan.jobs, plan.matrix.build.memory)) as executor:
        running: set[Future[Built | Failed]] = set()
        try:
            running.update(executor.submit(build.result, variant) for variant in variants)
            while running:
                # With a timeout: some systems deliver signals only between waits.
                done, running = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        finally:
            stop.set()
            executor.shutdown(cancel_futures=True)


def make_sdist(plan: Plan) -> Path:
    """Return the source distribution to build from; build it unless the matrix names one.

    Raises:
        BuildError: the source is missing, or building the source distribution failed.
    """
    source = plan.matrix.build.source
    if source.is_file():
        return source.resolve()
    if not source.is_dir():
        raise BuildError(f"{source}: no such file or directory: name the source with --source")
    target = plan.folder / "sdist"
    shutil.rmtree(target, ignore_errors=True)
    # One for all variants, made beside what the first of them is built against.
    wheels = next(iter(plan.against.values()), ())
    with tempfile.TemporaryDirectory(prefix="tree-", dir=plan.folder) as folder:
        constraints, environment = _foundation(plan, wheels, Path(folder), os.environ)
        line = command(
            "sdist", source.resolve(), target, {},
            isolated=plan.isolated, constraints=constraints,
        )  # fmt: skip
        log = plan.folder / "sdist.log"
        Runner(threading.Event()).run(line, log, environment, "the source distribution")
    found = sorted((*target.glob("*.tar.gz"), *target.glob("*.zip")))
    if len(found) != 1:
        raise BuildError(f"{target}: expected one source distribution, found {len(found)}")
    return found[0].resolve()


class _Build:
    """The build of one source distribution, shared by the threads that build its variants."""

    def __init__(
        self, plan: Plan, sdist: Path, untested: Mapping[str, str], runner: Runner
    ) -> None:
        self._plan, self._sdist, self._untested, self._runner = plan, sdist, untested, runner
        self._pyproject = read_pyproject(sdist)
        self._source = fingerprint(
            sorted((name, mode, _digest(stream)) for name, mode, stream in members(sdist))
        )

    def result(self, variant: Variant) -> Built | Failed:
        """Build and test *variant*, unless its wheel is up to date."""
        try:
            with tempfile.TemporaryDirectory(
                prefix="tree-", dir=self._plan.folder, ignore_cleanup_errors=True
            ) as folder:
                built = self._built(variant, Path(folder))
                return self._tested(variant, built, Path(folder))
        except VariantError as error:
            return Failed(variant.name, error)
        except OSError as error:
            place = f"{error.filename}: " if error.filename is not None else ""
            return Failed(variant.name, BuildError(f"{place}{error.strerror or error}"))

    def _built(self, variant: Variant, folder: Path) -> Built:
        plan, settings = self._plan, variant.settings
        variant_json = write_description(metadata_of(plan.matrix, [variant]))
        interpreter = find_interpreter(variant.python)
        own = dict(settings.environment)
        for name, words in settings.flags.items():
            own[name] = " ".join([*filter(None, [os.environ.get(name, "")]), *words])
        own |= additions(
            settings.compiler_flags, self._pyproject, {**os.environ, **own},
            interpreter=interpreter.flags,
        )  # fmt: skip
        against = plan.against.get(variant.name, ())
        inputs = fingerprint(
            [self._source, own, settings.config_settings, plan.isolated,
             interpreter.version, variant_json.decode(),
             [file_digest(wheel) for wheel in against]]
        )  # fmt: skip
        former = _read_result(plan, plan.folder / f"{variant.name}.json")
        if former is not None and former.inputs == inputs and not plan.fresh:
            return replace(former, kept=True)
        start, log = time.monotonic(), plan.folder / f"{variant.name}.log"
        constraints, environment = _foundation(plan, against, folder, {**os.environ, **own})
        tree, target = unpack(self._sdist, folder / "source"), folder / "wheel"
        line = command(
            "wheel", tree, target, settings.config_settings,
            isolated=plan.isolated, python=interpreter.executable, constraints=constraints,
        )  # fmt: skip
        self._runner.run(line, log, environment, variant.name)
        wheels = list(target.glob("*.whl"))
        if len(wheels) != 1:
            raise BuildError(f"{variant.name}: expected one wheel, found {len(wheels)}: see {log}")
        _check_target(variant, wheels[0])
        target = plan.unchecked if plan.matrix.build.tests else plan.output
        target.mkdir(exist_ok=True)
        wheel, contents = _pack(wheels[0], target, variant, variant_json)
        if target != plan.output:
            (plan.output / wheel.name).unlink(missing_ok=True)  # a former one
        if former is not None and former.wheel != wheel.name:
            old, new = parse_filename(former.wheel), parse_filename(wheel.name)
            if (old.name, old.version) == (new.name, new.version):  # of other tags
                plan.path_of(former.wheel).unlink()
        return self._written(
            Built(variant.name, variant.label, wheel.name, file_digest(wheel), inputs, contents,
                  round(time.monotonic() - start, 1))
        )  # fmt: skip

    def _written(self, built: Built) -> Built:
        """Write *built* where the next run reads it."""
        with replacing(self._plan.folder / f"{built.name}.json") as stream:
            stream.write(json.dumps(asdict(built), indent=2).encode())
        return built

    def _tested(self, variant: Variant, built: Built, folder: Path) -> Built:
        """Run the tests of *variant* in one fresh environment; put the wheel where it belongs.

        Raises:
            BuildError: one fails, or something cannot be installed.
        """
        plan, wheel = self._plan, self._plan.path_of(built.wheel)
        tests = [test for test in plan.matrix.build.tests if test.is_for(built.label)]
        digest = fingerprint([asdict(test) for test in tests])
        target = plan.unchecked
        try:
            if tests and built.label in self._untested:
                built = replace(built, untested=self._untested[built.label])
            elif tests and digest != built.tested:
                self._run_tests(variant, tests, wheel, folder)
                built = self._written(replace(built, tested=digest))
            target = plan.output
        finally:
            if wheel.parent != target:
                target.mkdir(exist_ok=True)
                shutil.move(wheel, target / wheel.name)
        return built

    def _run_tests(
        self, variant: Variant, tests: Sequence[Test], wheel: Path, folder: Path
    ) -> None:
        what = f"{variant.name}: the environment of its test"
        source = self._plan.matrix.build.source
        project = source.resolve() if source.is_dir() else unpack(self._sdist, folder / "project")
        against = self._plan.against.get(variant.name, ())
        constraints, _ = _foundation(self._plan, against, folder, {})
        requires = dict.fromkeys(text for test in tests for text in test.requires)
        environment = make_environment(
            folder / "environment",
            find_interpreter(variant.python).executable,
            [str(_plain(wheel, folder)), *requires],
            constraints,
            self._runner,
            self._plan.folder / f"{variant.name}-install.log",
            what,
        )
        values = {"project": str(project), "label": variant.label, "wheel": str(wheel)}
        empty = folder / "empty"
        empty.mkdir()
        for test in tests:
            program, *words = _filled(test.words, values)
            program = shutil.which(program, path=environment["PATH"]) or program
            self._runner.run(
                [program, *words], self._plan.folder / f"{variant.name}-test.log",
                {**environment, "VARIANT": variant.label}, f"{variant.name}: the test",
                "correct build.test", empty,
            )  # fmt: skip


def _reasons_not_here(matrix: Matrix, variants: Iterable[Variant]) -> dict[str, str]:
    """Return by label why a variant does not run here; labels of those that do are left out.

    The machine is what the providers detect, as for an installer; the user's preferences and
    platform files do not count. Optional namespaces are asked, too.

    Raises:
        PluginFailed: an allowed provider plugin fails.
    """
    metadata = metadata_of(matrix, variants)
    own = load_preferences({}, os.environ, warn=lambda _: None)
    preferences = Preferences(
        enable=frozenset(name for name, item in metadata.providers.items() if item.optional),
        allow_providers=own.allow_providers,
        on_plugin_error=own.on_plugin_error,
        plugin_variables=own.plugin_variables,
        plugin_sandbox=own.plugin_sandbox,
    )
    ranking = rank(metadata, detector_for(preferences).platform(metadata), preferences)
    return {
        label: "; ".join(why_not(ranking, label)) or "it does not fit this machine"
        for label in ranking.rejected_labels
    }


# What is built against: installers that know nothing of variants install it in the build
# environment, so they get plain wheels, named by a constraint with the URL of the file, which no
# other wheel of an index meets. Without isolation nothing is installed: there it is unpacked, and
# first on PYTHONPATH.


def _foundation(
    plan: Plan, wheels: Sequence[Path], folder: Path, environ: Mapping[str, str]
) -> tuple[Path | None, dict[str, str]]:
    """Return the constraints for a build against *wheels*, and its variables, *environ* included.

    Args:
        plan: options.
        wheels: variant wheels, or plain ones.
        folder: for the plain wheels and the constraints.
        environ: environment of the build without them.
    """
    environment, target = dict(environ), folder / "against"
    if not wheels:
        return None, environment
    target.mkdir(exist_ok=True)
    plain = [_plain(wheel, target) for wheel in wheels]
    if not plan.isolated:
        for wheel in plain:
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(target / "unpacked")
        before = filter(None, [environ.get("PYTHONPATH", "")])
        environment["PYTHONPATH"] = os.pathsep.join([str(target / "unpacked"), *before])
        return None, environment
    path = target / "constraints.txt"
    lines = [f"{parse_filename(wheel.name).name} @ {wheel.absolute().as_uri()}" for wheel in plain]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return path, environment


def _plain(wheel: Path, folder: Path) -> Path:
    """Write the plain wheel of *wheel*, a variant wheel or a plain one, to *folder*; return it.

    It has no ``variant.json``, and of the dependencies those of the variant: installers without
    variants refuse variant markers (PEP 825, "Environment markers").
    """
    label = parse_filename(wheel.name).label or NULL_LABEL
    path = folder / split_label(wheel.name)[0]
    with open_source(wheel) as source, path.open("wb") as stream:
        variant_json = source.contents.read(VARIANT_FILE) or b"{}"
        context = VariantContext(
            label, read_metadata(variant_json, label).properties_of(label) or {}
        )
        given = requirements_of(source.contents.read(METADATA_FILE) or b"")
        reduced = (reduce_requirement(text, context) for text in given)
        kept = tuple(text for text in reduced if text is not None)
        source.write(stream, None, Edits(remove=("*",), add=kept) if kept != given else Edits())
    return path


# Wheels.


def _check_target(variant: Variant, wheel: Path) -> None:
    """Check that *wheel* is for the Python and the platform of *variant*.

    Raises:
        BuildError: it is not.
    """
    if is_built_for(wheel.name, variant.python, variant.platform):
        return
    wanted = " on ".join(str(part) for part in (variant.python, variant.platform) if part)
    raise BuildError(
        f"{variant.name}: the build made {wheel.name}, which is not for {wanted}: "
        "correct the axes or, if a repair adds the tag, build it with cibuildwheel"
    )


def _pack(wheel: Path, output: Path, variant: Variant, variant_json: bytes) -> tuple[Path, str]:
    """Write *wheel* to *output* as a variant wheel; return its path and the digest of its files.

    Raises:
        BuildError: the backend made a variant wheel with another label or other properties.
    """
    label = parse_filename(wheel.name).label
    with open_source(wheel) as source:
        info = f"{source.contents.dist_info}/"
        contents = fingerprint(
            sorted((row.path, row.digest) for row in source.rows if not row.path.startswith(info))
        )
        if label is not None:
            own = read_metadata(source.contents.read(VARIANT_FILE) or b"{}", wheel.name)
            wanted = read_metadata(variant_json, variant.label).properties_of(variant.label)
            if label != variant.label or own.properties_of(label) != wanted:
                raise BuildError(
                    f"{variant.label}: the backend made {wheel.name} with "
                    f"{own.properties_of(label)!r}, the matrix has label {variant.label!r} with "
                    f"{wanted!r}"
                )
        target = output / (wheel.name if label else f"{wheel.stem}-{variant.label}.whl")
        with replacing(target) as stream:
            source.write(stream, variant_json)
    return target, contents


def _only_wheel(folder: Path, what: str, log: Path) -> Path:
    wheels = sorted(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise BuildError(f"{what}: expected one wheel, found {len(wheels)}: see {log}")
    return wheels[0]


def _filled(words: Iterable[str], values: Mapping[str, str]) -> list[str]:
    """Return *words* with ``{name}`` replaced by *values*; other braces are left alone."""
    found = []
    for word in words:
        for name, value in values.items():
            word = word.replace(f"{{{name}}}", value)
        found.append(word)
    return found


# Results.


def _read_result(plan: Plan, path: Path) -> Built | None:
    """Return the result in *path*, None if it is missing or the wheel has changed since."""
    try:
        built = Built(**json.loads(path.read_text(encoding="utf-8")))
        unchanged = file_digest(plan.path_of(Path(built.wheel).name)) == built.sha256
    except (OSError, ValueError, TypeError):  # missing, or not written by us
        return None
    return built if unchanged else None


def same_contents(built: Sequence[Built]) -> list[tuple[str, ...]]:
    """Return the groups of labels whose wheels for one Python and platform install the same."""
    return _several((f"{b.contents} {b.name.removeprefix(b.label)}", b.label) for b in built)


def same_wheels(built: Sequence[Built]) -> list[tuple[str, ...]]:
    """Return the groups of names whose wheels have one filename, so that the last one remains."""
    return _several((item.wheel, item.name) for item in built)


def _several(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, ...]]:
    groups: dict[str, list[str]] = {}
    for key, name in pairs:
        groups.setdefault(key, []).append(name)
    return list(dict.fromkeys(tuple(group) for group in groups.values() if len(group) > 1))


# Digests.


def file_digest(path: Path) -> str:
    """Return the SHA-256 digest of a file, hexadecimal."""
    with path.open("rb") as stream:
        return _digest(stream)


def fingerprint(value: object) -> str:
    """Return the SHA-256 digest of *value*, which is JSON data."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _digest(stream: IO[bytes] | None) -> str:
    found = hashlib.sha256()
    while chunk := stream.read(1024 * 1024) if stream is not None else b"":
        found.update(chunk)
    return found.hexdigest()
