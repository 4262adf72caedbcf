"""A command that uses a shared proxy as its default index; other indexes are used directly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from variants_proxy.upstream_options import split_token
from variants_proxy.urls import keyed_url

from .errors import ProxyFailed
from .fitting_marks import FittingMarks
from .forced_variants import check_after, check_before
from .installed_state import InstalledState
from .notices import after_failure, after_success
from .prepared_run import added_options, cache_options, learn
from .programs import program_run
from .proxy_client import Choices
from .report import report_platform, warn
from .session_plan import SessionPlan
from .shared_proxy_client import SharedProxyClient
from .uv_process import run_uv

if TYPE_CHECKING:
    from .context import Context


def run_with_shared_proxy(context: Context) -> int:
    """Run uv with the shared proxy; return its exit code.

    Raises:
        ProxyFailed: a shared proxy cannot do what the command asks for.
        VariantMissing: what is asked for by name cannot be had, or was not installed.
    """
    plan = SessionPlan(context)
    if "variant-catalog" in context.options.variants:
        warn("--variant-catalog has no effect with a shared proxy, whose own catalogue counts")
    client = _client(plan)
    if context.is_verbose and plan.machine.platform is not None:
        report_platform(plan.machine.platform)
    if learn(plan, client, context.requested):
        plan.relearned()
        client = _client(plan)
    choices = Choices(client)
    check_before(context, choices)
    marks = FittingMarks(context.cache / "fits", client.key, client.indexes)
    state = InstalledState.of(context, choices, marks)
    default = keyed_url(client.base, client.key, client.token)
    environ = {**context.place.environ, "UV_DEFAULT_INDEX": default}
    values = {}
    if plan.has_own_cache:
        environ["UV_CACHE_DIR"] = str(plan.uv_cache)
        values = cache_options(plan)
    arguments = context.invocation.rewritten(values, added_options(context, state))
    code = run_uv(*program_run(context, arguments, environ))
    if code == 0:
        after_success(state, ())
        check_after(state)
    elif code > 0:  # after a signal the user does not wait for explanations
        after_failure(state, context.requested)
    return code


def _client(plan: SessionPlan) -> SharedProxyClient:
    if plan.floating or plan.machine.platforms:
        raise ProxyFailed(
            "a shared proxy does not know this machine: use a pinned lock (--variant-lock pinned), "
            "and a platform file that the proxy has if the description is too long for a URL"
        )
    base, token = split_token(plan.context.options.proxy_url)
    return SharedProxyClient(
        base,
        plan.machine.key,
        token,
        plan.insecure_hosts,
        needed=bool(plan.context.preferences.forced),
        offline=plan.context.is_offline,
    )
