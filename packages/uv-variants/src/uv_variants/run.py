"""One uv command with an index proxy: prepared, run, and reported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pep_variants.settings.cache_directory import cache_directory
from variants_proxy.urls import index_url

from .command_scope import EXPORTING
from .context import Context, find_lock, read_preferences
from .daemon.address import RESERVED_URL
from .daemon.connection import ProxyChoice
from .errors import USER_ERRORS, ProxyFailed
from .lockfile import HERE, locked_key
from .notices import after_failure, after_success
from .place import Place
from .prepared_run import PreparedRun, learn_afterwards, prepare, proxied_key
from .programs import program_run
from .report import warn
from .user_files import real_indexes_restored, restore_left_over
from .uv_process import end_as, run_uv
from .uv_program import become_uv
from .writable_cache import writable_cache

if TYPE_CHECKING:
    from .command_scope import Scope
    from .invocation import Invocation
    from .own_options import Options

_LOCKED = (("run",), ("sync",), ("lock",), ("tree",), ("export",))
"""Commands that ask no index if lock file and environment are up to date."""


def run(
    uv: str, invocation: Invocation, scope: Scope, options: Options, environ: Mapping[str, str]
) -> int:
    """Run uv with wheel variants; return the exit code.

    Raises:
        UvVariantsError, ProxyError, VariantError: see `errors.USER_ERRORS`.
    """
    place = Place.of(invocation, Path(), environ)
    preferences = read_preferences(options, place)
    lock = find_lock(invocation, scope, place)
    if preferences.coherent:
        warn(
            "--variant-coherent has no effect with uv, which asks for one project "
            "at a time; name the variants with --variant NAME=LABEL"
        )
    locked = locked_key(lock, options.proxy_url or RESERVED_URL, warn)
    if not preferences.use_variants and locked is None:
        return become_uv([uv, *options.uv_arguments], environ)
    with writable_cache(cache_directory(environ, "proxy")) as cache:
        context = Context(uv, invocation, scope, place, options, preferences, cache, lock)
        if options.proxy_url:
            code = _run_with_shared_proxy(context, locked)
        else:
            restore_left_over(context)
            proxy = ProxyChoice(environ, at_once=_needs_index(context, locked))
            try:
                code = _run_with_proxy(context, proxy, locked)
            finally:
                proxy.stop()
    return end_as(code)


def _needs_index(context: Context, locked: str | None) -> bool:
    """Return whether uv is almost certain to ask the index."""
    invocation = context.invocation
    if locked is None or invocation.command not in _LOCKED:
        return True
    upgrades = invocation.values("upgrade-package", "reinstall-package")
    return bool(upgrades) or invocation.has("upgrade", "U", "reinstall", "refresh")


def _run_with_proxy(context: Context, proxy: ProxyChoice, locked: str | None) -> int:
    try:
        prepared = prepare(context, proxy, locked)
    except USER_ERRORS:
        raise
    except Exception as error:
        # A bug here must not stop uv, unless the command needs variants.
        fault = f"an internal error in uv-variants: {type(error).__name__}: {error}"
        if context.preferences.forced or locked is not None:
            raise ProxyFailed(fault) from error
        warn(f"variant wheels are ignored because of {fault}")
        proxy.stop()
        return become_uv([context.uv, *context.options.uv_arguments], context.place.environ)
    try:
        with real_indexes_restored(context, prepared.plan):
            code = _run_command(context, prepared)
        if code >= 0:  # after a signal the user does not wait for explanations
            _report(context, prepared, code)
        return code
    finally:
        prepared.proxy.stop()


def _run_command(context: Context, prepared: PreparedRun) -> int:
    """Run uv; complete what it exports. Return its exit code."""
    command = [context.uv, *prepared.arguments]
    if context.invocation.command in EXPORTING:
        from .exports import ExportCommand, ExportedFiles

        export = ExportCommand.of(context.invocation, context.place, context.lock)
        if export is not None:
            client = prepared.state.choices.client
            files = ExportedFiles(client, prepared.plan.indexes, warn)
            return export.run(command, prepared.environ, files)
    return run_uv(*program_run(context, prepared.arguments, prepared.environ))


def _report(context: Context, prepared: PreparedRun, code: int) -> None:
    """Print what there is to know after uv ended with *code*.

    Raises:
        ProxyFailed: the proxy ended before uv did.
        PluginFailed: a plugin that the next command needs fails.
    """
    proxy, state = prepared.proxy, prepared.state
    failure = proxy.failure()
    if failure is not None:
        raise failure
    if code == 0:
        after_success(state, proxy.noted_projects())
        learn_afterwards(context, prepared)
        return
    for refusal in proxy.refusals():
        warn(refusal)
    after_failure(state, [*context.requested, *proxy.noted_projects()])
    for problem in prepared.plugins.failures.values() if prepared.plugins else ():
        warn(str(problem))


def _run_with_shared_proxy(context: Context, locked: str | None) -> int:
    """Run uv with the shared proxy as default index; other indexes are used directly."""
    key, machine = proxied_key(context, None, locked)
    if key == HERE or (machine is not None and machine.platforms):
        raise ProxyFailed(
            "a shared proxy does not know this machine: use a pinned lock (--variant-lock pinned), "
            "and a platform file that the proxy has if the description is too long for a URL"
        )
    default = context.options.proxy_url + index_url(key)
    environ = {**context.place.environ, "UV_DEFAULT_INDEX": default}
    return run_uv(*program_run(context, context.invocation.arguments, environ))
