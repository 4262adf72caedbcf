"""A command that uses a shared proxy as its default index; other indexes are used directly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from variants_proxy.upstream_options import split_token
from variants_proxy.urls import keyed_url

from .errors import ProxyFailed
from .programs import program_run
from .session_plan import SessionPlan
from .uv_process import run_uv

if TYPE_CHECKING:
    from .context import Context


def run_with_shared_proxy(context: Context) -> int:
    """Run uv with the shared proxy; return its exit code.

    Raises:
        ProxyFailed: a shared proxy cannot do what the command asks for.
    """
    plan = SessionPlan(context)
    if plan.floating or plan.machine.platforms:
        raise ProxyFailed(
            "a shared proxy does not know this machine: use a pinned lock (--variant-lock pinned), "
            "and a platform file that the proxy has if the description is too long for a URL"
        )
    base, token = split_token(context.options.proxy_url)
    default = keyed_url(base, plan.machine.key, token)
    environ = {**context.place.environ, "UV_DEFAULT_INDEX": default}
    return run_uv(*program_run(context, context.invocation.arguments, environ))
