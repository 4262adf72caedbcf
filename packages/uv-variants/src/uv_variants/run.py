"""One uv command whose requests a session answers: prepared, run, and reported."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pep_variants.internal import NotPrivate, cache_directory, make_private

from .command_scope import EXPORTING
from .context import Context
from .dry_run import Planned, is_planned, run_and_read
from .errors import USER_ERRORS, ProxyFailed
from .prepared_run import PreparedRun, learn_afterwards, prepare
from .report import warn
from .site_packages import installed_variants
from .uv_environment import program_run
from .uv_process import end_as, run_uv
from .uv_program import become_uv
from .version_bounds import bounds_of, may_run_again

if TYPE_CHECKING:
    from .command_scope import Scope
    from .invocation import Invocation
    from .own_options import Options


def run(
    uv: str, invocation: Invocation, scope: Scope, options: Options, environ: Mapping[str, str]
) -> int:
    """Run uv with wheel variants; return the exit code.

    Raises:
        UvVariantsError, ProxyError, VariantError: see `errors.USER_ERRORS`.
    """
    with writable_cache(cache_directory(environ, "proxy")) as cache:
        context = Context.of(uv, invocation, scope, options, environ, cache)
        if context.preferences.coherent:
            warn(
                "--variant-coherent has no effect with uv, which asks for one project "
                "at a time; name the variants with --variant NAME=LABEL"
            )
        if context.lock.problem:
            warn(f"{context.lock.problem}: the variants of the lock are not known")
        if not _has_to_do_with_variants(context):
            return become_uv([uv, *options.uv_arguments], environ)
        return end_as(_run(context))


@contextmanager
def writable_cache(directory: Path) -> Iterator[Path]:
    """Yield *directory*, or with a warning a temporary one.

    That is if it cannot be written, or if other users could write it: nothing in it is opened then.
    """
    problem = _problem(directory)
    if problem is None:
        yield directory
        return
    warn(
        f"{directory}: the cache cannot be used ({problem}): using a temporary one; "
        "set VARIANTS_CACHE_DIR to a writable directory"
    )
    from .private_folder import PrivateFolder

    temporary = PrivateFolder()
    try:
        yield temporary.path
    finally:
        temporary.remove()


def _problem(directory: Path) -> str | None:
    """Return why *directory* cannot be used, None if it can."""
    try:
        make_private(directory)
    except NotPrivate as error:
        return str(error)
    except OSError as error:
        return error.strerror or str(error)
    return None if os.access(directory, os.W_OK | os.X_OK) else "permission denied"


def _has_to_do_with_variants(context: Context) -> bool:
    """Return whether there may be variants; with ``--no-variants`` only if they are there."""
    return bool(
        context.preferences.use_variants
        or context.lock.wheels
        or installed_variants(context.environments)
    )


def _run(context: Context) -> int:
    try:
        prepared = prepare(context)
    except ProxyFailed as error:
        return _without_variants(context, str(error), error)
    except USER_ERRORS:
        raise
    except Exception as error:
        # A bug here must not stop uv, unless the command needs variants.
        fault = f"an internal error in uv-variants: {type(error).__name__}: {error}"
        return _without_variants(context, fault, error)
    try:
        code, planned = _run_uv(context, prepared)
        if code == 1 and prepared.builds:  # no solution
            bounds = ", ".join(bounds_of(prepared.builds))
            if may_run_again(context):
                warn(f"uv failed with {bounds}, for builds for the accelerator; it runs without")
                prepared = prepared.unbound()
                code, planned = _run_uv(context, prepared)
            else:
                warn(f"uv ran with {bounds}; --variant-before-version :none: leaves that out")
        if code >= 0:  # after a signal the user does not wait for explanations
            _report(context, prepared, code, planned)
        return code
    finally:
        prepared.session.close()


def _without_variants(context: Context, why: str, error: Exception) -> int:
    """Run plain uv, unless the command needs variants.

    Raises:
        ProxyFailed: it does.
    """
    if context.preferences.forced or context.lock.wheels:
        raise ProxyFailed(why) from error
    warn(f"variant wheels are ignored because of {why}")
    return become_uv([context.uv, *context.options.uv_arguments], context.place.environ)


def _run_uv(context: Context, prepared: PreparedRun) -> tuple[int, Planned]:
    """Run uv; complete what it exports. Return its exit code, and what a dry run has planned."""
    command, environ = program_run(context, prepared.arguments, prepared.environ)
    if is_planned(context):
        return run_and_read(command, environ)
    if context.invocation.command in EXPORTING:
        from .exports import ExportCommand, ExportedFiles

        export = ExportCommand.of(context.invocation, context.place, context.lock.path)
        if export is not None:
            choices = prepared.state.choices
            files = ExportedFiles(
                choices,
                prepared.plan.indexes,
                warn,
                has_catalog=context.preferences.catalog is not None,
                is_universal=context.invocation.has("universal"),
            )

            def check() -> None:
                from .checks import check_sources

                noted = prepared.session.noted_projects()
                check_sources(context, choices, noted, lambda: "nothing is written")

            return export.run(command, environ, files, check), ()
    if any("pylock" in text for text in context.invocation.arguments):
        from .exports.command import unread_variants

        for line in unread_variants(context.invocation, context.place):
            warn(line)
    return run_uv(command, environ), ()


def _report(context: Context, prepared: PreparedRun, code: int, planned: Planned) -> None:
    """Print what there is to know after uv ended with *code*; a dry run has *planned* something.

    Raises:
        ProxyFailed: the session could not answer.
        PluginFailed: a plugin that the next command needs fails.
        VariantMissing: uv did not install what was asked for by name.
        SourcesMissing, TwoNames: what uv wrote or installed is not to be used.
    """
    from .checks import check_after, check_installed, check_lock
    from .lock_advice import after_lock
    from .notices import after_failure, after_success

    session, state = prepared.session, prepared.state
    failure = session.failure()
    if failure is not None:
        raise failure
    if code == 0:
        if planned:  # a dry run names everything that would be installed
            state.choices.expect_none(session.plain_projects())
        noted = list(session.noted_projects())
        check_lock(state, noted)
        after_success(state, noted, planned, prepared.builds, prepared.refused)
        check_after(state)
        check_installed(state)
        after_lock(prepared.plan, state)
        learn_afterwards(prepared)
        return
    refusals = session.refusals()
    for refusal in refusals:
        warn(refusal)
    after_failure(state, [*context.requested, *session.noted_projects()])
    plugins = prepared.plan.plugins
    failures = map(str, plugins.failures.values()) if plugins else ()
    for problem in dict.fromkeys(failures):
        if problem not in refusals:
            warn(problem)
