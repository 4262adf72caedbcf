"""Building the variants of a matrix on this machine, from one source distribution.

uv unpacks it for each variant: backends leave objects in the tree, and those of one variant must
not end up in another. Builds run one after the other, as each has all cores. Results are kept
beside the wheels, so that the next run continues where this one ended.
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
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO

from filelock import FileLock, Timeout
from packaging.tags import sys_tags

from pep_variants import labels as wheel_labels
from pep_variants import markers, safe_files, wheel_files
from pep_variants import metadata as variant_metadata
from pep_variants.errors import InvalidWheelFilename, VariantError
from pep_variants.markers import VariantContext
from pep_variants.metadata import Property
from pep_variants.wheel_files import Edits

from .._description import write_description
from .backends import build_requires, members, read_pyproject, variables
from .combination import built_against, metadata_of
from .model import After, BuildError, Matrix, Variant

_SHOWN_LINES = 12


@dataclass(frozen=True)
class Plan:
    """What is built, and how.

    Attributes:
        matrix: the matrix.
        variants: those of its variants that are built.
        output: folder for the wheels.
        against: wheels of other projects that variants are built against, by label of the variant.
    """

    matrix: Matrix
    variants: tuple[Variant, ...]
    output: Path
    against: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Folder for logs and results."""
        output = self.output.absolute()
        return output.with_name(f"{output.name}-build")


@dataclass(frozen=True)
class Built:
    """A finished wheel.

    Attributes:
        label: of the variant.
        wheel: its filename.
        sha256: of the file, hexadecimal.
        inputs: digest of everything that it was built from.
        contents: digest of the files that it installs, without dist-info.
        how: what was done, such as ``built in 2.0 s``.
    """

    label: str
    wheel: str
    sha256: str
    inputs: str
    contents: str
    how: str = ""


def for_this_machine(
    variants: Sequence[Variant],
) -> tuple[tuple[Variant, ...], tuple[Variant, ...]]:
    """Return the *variants* that this machine can build, and the others."""
    here = tuple(variant for variant in variants if all(host.evaluate() for host in variant.hosts))
    return here, tuple(variant for variant in variants if variant not in here)


@contextmanager
def locked(plan: Plan) -> Iterator[None]:
    """Lock the folder of *plan* against other runs, and remove what killed ones left.

    Raises:
        BuildError: another run has the lock.
    """
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


def build_all(plan: Plan) -> Iterator[tuple[Variant, Built | VariantError]]:
    """Build the variants of *plan*, one after the other; a failure stops no other.

    Raises:
        BuildError: the source is missing, or building the source distribution failed.
    """
    build = _Build(plan, make_sdist(plan))
    for variant in plan.variants:
        yield variant, build.result(variant)


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
        line = [
            *(find_uv(), "build", "--sdist", "--python", sys.executable, "--out-dir", str(target)),
            *_constraints(wheels, Path(folder)),
            str(source.resolve()),
        ]
        run(line, plan.folder / "sdist.log", os.environ, "the source distribution")
    return _only_file(target, "*.tar.gz", "the source distribution")


def _only_file(folder: Path, pattern: str, what: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise BuildError(f"{what}: expected one {pattern} in {folder}, found {len(found)}")
    return found[0].resolve()


class _Build:
    """The build of one source distribution."""

    def __init__(self, plan: Plan, sdist: Path) -> None:
        self._plan, self._sdist = plan, sdist
        self._pyproject = read_pyproject(sdist)
        self._source = fingerprint(
            sorted((name, mode, _digest(stream)) for name, mode, stream in members(sdist))
        )

    def result(self, variant: Variant) -> Built | VariantError:
        """Build *variant*, unless its wheel is up to date."""
        try:
            with tempfile.TemporaryDirectory(
                prefix="tree-", dir=self._plan.folder, ignore_cleanup_errors=True
            ) as folder:
                return self._built(variant, Path(folder))
        except VariantError as error:
            return error
        except OSError as error:
            place = f"{error.filename}: " if error.filename is not None else ""
            return BuildError(f"{place}{error.strerror or error}")

    def _built(self, variant: Variant, folder: Path) -> Built:
        plan, settings = self._plan, variant.settings
        variant_json = write_description(metadata_of(plan.matrix, [variant]))
        flags = sysconfig.get_config_var("CFLAGS") or ""
        own = variables(settings, self._pyproject, os.environ, interpreter=flags)
        python = f"{sys.version} {sysconfig.get_platform()} {platform.machine()}"
        against = plan.against.get(variant.label, ())
        inputs = fingerprint(
            [self._source, own, settings.config_settings, python,
             variant_json.decode(), [file_digest(wheel) for wheel in against]]
        )  # fmt: skip
        project = self._sdist.name.partition("-")[0]
        note = plan.folder / f"{project}-{variant.label}.json"
        former = _read_result(plan, note)
        if former is not None and former.inputs == inputs:
            return replace(former, how="is up to date")
        start, made = time.monotonic(), folder / "wheel"
        line = [
            *(find_uv(), "build", "--wheel", "--python", sys.executable),
            *("--out-dir", str(made), *_constraints(against, folder)),
            *(f"-C{key}={text}" for key, texts in settings.config_settings.items()
              for text in texts),
            str(self._sdist),
        ]  # fmt: skip
        log = plan.folder / f"{variant.label}.log"
        run(line, log, {**os.environ, **own}, variant.label)
        plain = _only_file(made, "*.whl", variant.label)
        wheel, contents = _pack(plain, plan.output, variant, variant_json)
        built = Built(
            variant.label, wheel.name, file_digest(wheel), inputs, contents,
            f"built in {time.monotonic() - start:.1f} s",
        )  # fmt: skip
        with safe_files.replacing(note) as stream:
            stream.write(json.dumps(asdict(built), indent=2).encode())
        return built


# What is built against: wheels of other projects. Installers that know nothing of variants install
# them in build environments, so they get plain wheels, named by a constraint with the URL of the
# file, which no other wheel of an index meets.


def with_other_projects(plan: Plan) -> Plan:
    """Return *plan* with the wheels that its variants are built against, from its output folder.

    Raises:
        TableError: a variant agrees with none of the other project.
        BuildError: a wheel is missing, or builds would not install it.
    """
    build, variants, against = plan.matrix.build, list(plan.variants), dict(plan.against)
    for after in build.after if variants else ():
        if after.project not in build_requires(read_pyproject(build.source)):
            raise BuildError(
                f"{build.source}: build-system.requires in pyproject.toml does not list "
                f"{after.project}, so that builds do not get it: add it there"
            )
        needed = built_against(plan.matrix, variants, after)
        for place, variant in enumerate(variants):
            wheel = _find_wheel(plan.output, after, needed[variant.label])
            against[variant.label] = (*against.get(variant.label, ()), wheel)
            variants[place] = _with_abi_dependency(variant, after, wheel)
    return replace(plan, variants=tuple(variants), against=against)


def _find_wheel(folder: Path, after: After, variant: Variant) -> Path:
    """Return the wheel of *variant* of another project in *folder* or its subfolders."""
    found = []
    for path in sorted(folder.rglob("*.whl")):
        try:
            name = wheel_files.parse_filename(path.name)
        except InvalidWheelFilename:
            continue
        if (name.name, name.label) == (after.project, variant.label):
            found += [path] if name.tags.intersection(sys_tags()) else []
    if len(found) > 1:
        raise BuildError(
            f"{folder}: there are several wheels of {after.project} {variant.label}: "
            f"{', '.join(path.name for path in found[:4])}: leave one"
        )
    if not found:
        raise BuildError(
            f"{folder} has no wheel of {after.project} {variant.label} to build against: put it "
            f"there, name its source with --source {after.project}=PATH, or build it before: "
            f"variants matrix {after.matrix} --only {variant.label} --build -o {folder}"
        )
    return found[0]


def _with_abi_dependency(variant: Variant, after: After, wheel: Path) -> Variant:
    """Return *variant* with the ``abi_dependency`` on the release of *wheel*, if it gets one.

    The null variant has no properties.
    """
    if not after.abi or variant.label == wheel_labels.NULL_LABEL:
        return variant
    release = wheel_files.parse_filename(wheel.name).version.release
    value = ".".join(map(str, (*release, 0, 0)[: after.abi]))
    feature = after.project.replace("-", "_")
    settings = variant.settings
    own = [
        p
        for p in settings.properties
        if (p.namespace, p.feature) != (variant_metadata.ABI_DEPENDENCY, feature)
    ]
    properties = (*own, Property(variant_metadata.ABI_DEPENDENCY, feature, value))
    return replace(variant, settings=replace(settings, properties=properties))


def _constraints(wheels: Sequence[Path], folder: Path) -> list[str]:
    """Return the option of uv, with a file in *folder*, by which builds get these *wheels*."""
    if not wheels:
        return []
    path = folder / "constraints.txt"
    plain = [plain_wheel(wheel, folder) for wheel in wheels]
    lines = [
        f"{wheel_files.parse_filename(wheel.name).name} @ {wheel.absolute().as_uri()}"
        for wheel in plain
    ]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return ["--build-constraints", str(path)]


def plain_wheel(wheel: Path, folder: Path) -> Path:
    """Write the plain wheel of *wheel*, a variant wheel or a plain one, to *folder*; return it.

    It has no ``variant.json``, and of the dependencies those of the variant: installers without
    variants refuse variant markers (PEP 825, "Environment markers").
    """
    label = wheel_files.parse_filename(wheel.name).label or wheel_labels.NULL_LABEL
    path = folder / wheel_labels.split_label(wheel.name)[0]
    with wheel_files.open_source(wheel) as source, path.open("wb") as stream:
        variant_json = source.contents.read(wheel_labels.VARIANT_FILE) or b"{}"
        context = VariantContext(
            label, variant_metadata.read_metadata(variant_json, label).properties_of(label) or {}
        )
        given = wheel_files.requirements_of(source.contents.read(wheel_files.METADATA_FILE) or b"")
        reduced = (markers.reduce_requirement(text, context) for text in given)
        kept = tuple(text for text in reduced if text is not None)
        source.write(stream, None, Edits(remove=("*",), add=kept) if kept != given else Edits())
    return path


# Wheels and results.


def _pack(wheel: Path, output: Path, variant: Variant, variant_json: bytes) -> tuple[Path, str]:
    """Write *wheel* to *output* as a variant wheel; return its path and the digest of its files.

    Raises:
        BuildError: the backend made a variant wheel with another label or other properties.
    """
    label = wheel_files.parse_filename(wheel.name).label
    with wheel_files.open_source(wheel) as source:
        info = f"{source.contents.dist_info}/"
        contents = fingerprint(
            sorted((row.path, row.digest) for row in source.rows if not row.path.startswith(info))
        )
        if label is not None:
            own = variant_metadata.read_metadata(
                source.contents.read(wheel_labels.VARIANT_FILE) or b"{}", wheel.name
            )
            wanted = variant_metadata.read_metadata(variant_json, variant.label).properties_of(
                variant.label
            )
            if label != variant.label or own.properties_of(label) != wanted:
                raise BuildError(
                    f"{variant.label}: the backend made {wheel.name} with "
                    f"{own.properties_of(label)!r}, the matrix has label {variant.label!r} with "
                    f"{wanted!r}"
                )
        target = output / (wheel.name if label else f"{wheel.stem}-{variant.label}.whl")
        with safe_files.replacing(target) as stream:
            source.write(stream, variant_json)
    return target, contents


def _read_result(plan: Plan, path: Path) -> Built | None:
    """Return the result in *path*, None if it is missing or the wheel has changed since."""
    try:
        built = Built(**json.loads(path.read_text(encoding="utf-8")))
        unchanged = file_digest(plan.output / Path(built.wheel).name) == built.sha256
    except (OSError, ValueError, TypeError):  # missing, or not written by us
        return None
    return built if unchanged else None


def same_contents(built: Iterable[Built]) -> list[tuple[str, ...]]:
    """Return the groups of labels whose wheels install the same."""
    groups: dict[str, list[str]] = {}
    for item in built:
        groups.setdefault(item.contents, []).append(item.label)
    return [tuple(group) for group in groups.values() if len(group) > 1]


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


# Programs.


def find_uv() -> str:
    """Return the path of uv, its name if it is not installed."""
    # Prefer the one in the current environment.
    own = shutil.which("uv", path=str(Path(sys.executable).parent))
    return own or shutil.which("uv") or "uv"


def run(line: Sequence[str], log: Path, environment: Mapping[str, str], what: str) -> None:
    """Run a command with its output in a log; end it, and its compilers, if that is interrupted.

    Args:
        line: the command and its arguments.
        log: file for its output.
        environment: its environment variables.
        what: what the command makes, for messages.

    Raises:
        BuildError: the command failed, or cannot be started.
    """
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
                # Compilers are grandchildren: terminate the whole process group.
                start_new_session=os.name == "posix",
            )
        except FileNotFoundError:
            raise BuildError(
                f"{what}: {line[0]} not found: install it, or name its folder in PATH"
            ) from None
        try:
            process.wait()
        finally:
            if process.poll() is None:
                _terminate(process)
    if process.returncode:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        killed = " (killed, perhaps for lack of memory)" * (process.returncode == -9)
        raise BuildError(
            f"{what}: exit code {process.returncode}{killed}: see {log}", lines[-_SHOWN_LINES:]
        )


def _terminate(process: subprocess.Popen[bytes]) -> None:
    for name in ("SIGTERM", "SIGKILL"):
        with suppress(ProcessLookupError):
            if os.name == "posix":
                os.killpg(process.pid, getattr(signal, name))
            else:
                process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
            return
