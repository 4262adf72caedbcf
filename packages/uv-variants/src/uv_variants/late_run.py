"""A noted command (`noted_run`) whose uv asks an index after all: prepared while uv waits."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pep_variants.cache_directory import cache_directory

from .command_scope import scope_of
from .context import Context
from .invocation import parse
from .own_options import read_options
from .prepared_run import PreparedRun, prepare
from .run import report
from .uv_process import end_as
from .uv_program import find_uv


@dataclass(frozen=True)
class LateRun:
    """A command of which uv runs already.

    Attributes:
        context: the command.
        prepared: its session, and the state before uv changed anything.
    """

    context: Context
    prepared: PreparedRun

    @classmethod
    def prepare(
        cls,
        arguments: Sequence[str],
        environ: Mapping[str, str],
        listening: int,
        secret: str,
        name: str,
    ) -> LateRun:
        """Open the session at the socket that uv connects to.

        Args:
            arguments: of the command.
            environ: environment variables of the user.
            listening: file descriptor of the socket, which is the session's from now on.
            secret: of the daemon that is started.
            name: id of the session.

        Raises:
            UvVariantsError, ProxyError, VariantError: see `errors.USER_ERRORS`.
        """
        waiting = socket.socket(fileno=listening)
        try:
            options = read_options(arguments, environ)
            invocation = parse(options.uv_arguments)
            context = Context.of(
                find_uv(environ),
                invocation,
                scope_of(invocation),
                options,
                environ,
                cache_directory(environ, "proxy"),
            )
            return cls(context, prepare(context, waiting=(waiting, secret, name)))
        except BaseException:
            waiting.close()  # so uv does not wait
            raise

    def finish(self, code: int) -> int:
        """Print what there is to know after uv ended with *code*; return the exit code."""
        try:
            if code >= 0:
                report(self.context, self.prepared, code)
        finally:
            self.prepared.session.close()
        return end_as(code)
