"""Building one variant, in a source tree that no other variant uses.

Backends leave objects in the tree, and those of one variant must not end up in another.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pep_variants.errors import VariantError
from pep_variants.files import replacing
from pep_variants.formats.reader import read_metadata
from pep_variants.model.filename import parse_filename
from pep_variants.wheelfile.rewriting import SourceWheel, open_source
from pep_variants.wheelfile.wheel import VARIANT_FILE

from ..description import write_description
from .backends import config_settings
from .build_plan import BuildError, Plan
from .build_process import CommandRunner
from .build_results import (
    KEPT,
    PACKED,
    Built,
    Failed,
    file_digest,
    fingerprint,
    read_result,
    remove_former,
    write_result,
)
from .combination import metadata_of
from .flags import additions
from .frontends import command
from .interpreters import find_interpreter
from .model import Variant
from .repairing import repair_command, same_release
from .source_archive import SourceArchive, unpack
from .wheel_targets import is_built_for


def build_variant(
    plan: Plan, variant: Variant, source: SourceArchive, stop: threading.Event
) -> Built | Failed:
    """Build one variant, unless its wheel is up to date.

    Args:
        plan: options.
        variant: what to build.
        source: the source distribution.
        stop: set to stop the build.
    """
    try:
        return _build_or_reuse(plan, variant, source, stop)
    except VariantError as error:
        return Failed(variant.name, error)
    except OSError as error:
        place = f"{error.filename}: " if error.filename is not None else ""
        return Failed(variant.name, BuildError(f"{place}{error.strerror or error}"))


def build_environment(variant: Variant, base: Mapping[str, str]) -> dict[str, str]:
    """Return *base* with the variables of *variant*; its flags are appended to existing ones."""
    environment = {**base, **variant.settings.environment}
    for name, words in variant.settings.flags.items():
        environment[name] = " ".join([*filter(None, [base.get(name, "")]), *words])
    return environment


def _build_or_reuse(
    plan: Plan, variant: Variant, source: SourceArchive, stop: threading.Event
) -> Built:
    variant_json = write_description(metadata_of(plan.matrix, [variant]), None)
    environment = build_environment(variant, os.environ)
    settings = config_settings(plan.matrix.build.backend, variant)
    interpreter = find_interpreter(variant.python, plan.frontend)
    added = additions(
        variant.settings.compiler_flags, source.project, environment, settings,
        folder=plan.folder, interpreter=interpreter.flags,
    )  # fmt: skip
    environment.update(added.environment)
    settings.update(added.config_settings)
    own = {name: environment[name] for name in sorted({*_variables(variant), *added.environment})}
    # A backend that writes the metadata itself has to run again when it changes.
    written = variant_json.decode() if plan.matrix.build.backend else ""
    inputs = fingerprint(
        [source.digest, written, own, settings, plan.frontend, plan.isolated,
         interpreter.version, interpreter.platform, interpreter.machine]
    )  # fmt: skip
    against = plan.against.get(variant.name)
    if against is not None:
        inputs = fingerprint([inputs, against.digest])
    # A build may take hours: its result is kept until it is repaired and packed.
    kept = plan.folder / f"built-{variant.name}-{inputs[:16]}"
    repair = plan.matrix.build.repair.get(sys.platform, ())
    if repair:
        inputs = fingerprint([inputs, repair])
    metadata = hashlib.sha256(variant_json).hexdigest()
    path = plan.folder / f"{variant.name}.json"
    done = None if plan.fresh else read_result(plan, path)
    if done is not None and done.fingerprint != inputs:
        done = None
    if done is not None and done.metadata == metadata:
        return replace(done, how=KEPT)
    if done is not None:
        wheel = plan.place(done.wheel)
        with replacing(wheel) as stream, open_source(wheel) as old:
            old.write(stream, variant_json)
        built = replace(done, sha256=file_digest(wheel), metadata=metadata, how=PACKED)
        write_result(path, built)
        return built

    start = time.monotonic()
    log = plan.folder / f"{variant.name}.log"
    with tempfile.TemporaryDirectory(
        prefix="tree-", dir=plan.folder, ignore_cleanup_errors=True
    ) as folder:
        if plan.fresh or not kept.is_dir():
            _remove_kept(plan, variant)
            tree, target = unpack(source.path, Path(folder) / "source"), Path(folder) / "wheel"
            constraints = None
            if against is not None:
                constraints = against.constraints(Path(folder))
                environment.update(against.environment(environment, constraints))
            line = command(
                plan.frontend, "wheel", tree, target, settings, isolated=plan.isolated,
                python=interpreter.executable, constraints=constraints,
            )  # fmt: skip
            runner = CommandRunner(stop, plan.matrix.build.memory)
            runner.run(line, log, environment, variant.name)
            _only_wheel(target, variant.name, log)
            target.rename(kept)
        wheel = _only_wheel(kept, variant.name, log)
        if repair:
            wheel = _repaired(plan, variant, repair, wheel, Path(folder), environment, stop)
        _check_target(variant, wheel, repaired=bool(repair))
        wheel, contents = _pack(wheel, plan.target, variant, variant_json)
    if plan.has_checks:  # until it is checked, no former one takes its place
        (plan.output / wheel.name).unlink(missing_ok=True)
    seconds = round(time.monotonic() - start, 1)
    built = Built(
        variant.name,
        variant.label,
        wheel.name,
        file_digest(wheel),
        inputs,
        metadata,
        contents,
        seconds,
    )
    remove_former(plan, path, wheel)
    write_result(path, built)
    _remove_kept(plan, variant)
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
    """Run the command *repair* on the built *wheel*; return the repaired one, below *folder*.

    Raises:
        BuildError: the command fails, or does not make exactly one wheel of the same release.
    """
    log = plan.folder / f"{variant.name}-repair.log"
    target = folder / "repaired"
    target.mkdir()
    what = f"{variant.name}: the repair"
    line = repair_command(repair, wheel, target)
    CommandRunner(stop).run(line, log, environment, what, "correct build.repair")
    found = _only_wheel(target, what, log)
    if not same_release(wheel, found):
        raise BuildError(f"{what} made {found.name} of {wheel.name}: see {log}")
    return found


def _check_target(variant: Variant, wheel: Path, *, repaired: bool) -> None:
    """Check that *wheel* is for the Python and the platform of *variant*.

    Raises:
        BuildError: it is not.
    """
    if is_built_for(wheel.name, variant.python, variant.platform):
        return
    wanted = " on ".join(str(part) for part in (variant.python, variant.platform) if part)
    way_out = "correct build.repair" if repaired else "set build.repair, if a repair adds the tag"
    raise BuildError(
        f"{variant.name}: the build made {wheel.name}, which is not for {wanted}: {way_out}, or "
        "correct the axes"
    )


def _pack(wheel: Path, output: Path, variant: Variant, variant_json: bytes) -> tuple[Path, str]:
    """Write *wheel* to *output* as a variant wheel; return its path and the digest of its files.

    Raises:
        BuildError: the backend made a variant wheel with another label or other properties.
    """
    label = parse_filename(wheel.name).label
    with open_source(wheel) as source:
        contents = _contents(source)
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
            f"{own.properties_of(label)!r}, the matrix has label {variant.label!r} with "
            f"{wanted.properties_of(variant.label)!r}"
        )
    with wheel.open("rb") as stream_in, replacing(target) as stream:
        shutil.copyfileobj(stream_in, stream)
    return target, contents


def _only_wheel(folder: Path, what: str, log: Path) -> Path:
    wheels = sorted(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise BuildError(f"{what}: expected one wheel, found {len(wheels)}: see {log}")
    return wheels[0]


def _remove_kept(plan: Plan, variant: Variant) -> None:
    for left in plan.folder.glob(f"built-{variant.name}-*"):
        if left.name.rpartition("-")[0] != f"built-{variant.name}":
            continue  # of the same label for another Python
        shutil.rmtree(left, ignore_errors=True)


def _variables(variant: Variant) -> list[str]:
    return [*variant.settings.environment, *variant.settings.flags]


def _contents(source: SourceWheel) -> str:
    rows = sorted(
        (row.path, row.digest)
        for row in source.rows
        if not row.path.startswith(f"{source.contents.dist_info}/")
    )
    return fingerprint(rows)
