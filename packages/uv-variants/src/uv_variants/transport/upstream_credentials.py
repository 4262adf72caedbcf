"""What the service sends to an index: exactly the ``Authorization`` that uv sent, or nothing.

uv finds credentials itself (``uv auth``, keyring, netrc, variables, URLs), once per host and with
the rules that the user set per index. A service per index and ``Authorization`` never mixes pages
of two users, or of a user and of none.
"""

from __future__ import annotations

import base64
import binascii
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from variants_index.internal import Credentials

if TYPE_CHECKING:
    from variants_proxy import Settings, Upstream


def with_authorization(settings: Settings, index: str, authorization: str) -> Settings:
    """Return *settings* with the credentials of a request for one index, and no others.

    Places of a catalogue, which uv does not know of, keep those of netrc and keyring.

    Args:
        settings: of the service.
        index: name of the upstream that the request is for.
        authorization: value of the header, empty without one.
    """
    upstreams = tuple(
        _authorized(each, authorization if each.name == index else "")
        for each in settings.upstreams
    )
    environ = {**settings.environ, "NETRC": os.devnull}
    return replace(
        settings,
        upstreams=upstreams,
        environ=environ,
        keyring=False,
        catalog_environ=settings.environ,
        catalog_keyring=settings.keyring,
    )


def _authorized(upstream: Upstream, authorization: str) -> Upstream:
    scheme, _, given = authorization.partition(" ")
    given = given.strip()
    if scheme.lower() == "bearer":
        return replace(upstream, credentials=None, token=given)
    if scheme.lower() == "basic":
        try:
            user, _, password = base64.b64decode(given, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return replace(upstream, credentials=None, token="")
        return replace(upstream, credentials=Credentials(user, password), token="")
    return replace(upstream, credentials=None, token="")
